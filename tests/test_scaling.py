"""X and y of sizes that are accepted: the answer is that of numbers near one, scaled. Others are refused."""

import numpy as np
import pytest
from scipy import sparse

import skpursuit as sk
from skpursuit.data import as_design, check_finite
from skpursuit.loop.run import make_run

from .support.asking import prepare

MANY = [pytest.param(12, id="few"), pytest.param(500, id="many", marks=pytest.mark.slow)]
SOLVERS = {
    "omp": lambda radius: sk.OMP(4),
    "mp": lambda radius: sk.MatchingPursuit(4, max_iter=15),
    "cosamp": lambda radius: sk.CoSaMP(4, max_iter=10),
    "grasp": lambda radius: sk.GraSP(4, max_iter=10),
    "stogradmp": lambda radius: sk.StoGradMP(4, max_iter=6, batch_size=30),
    "fw": lambda radius: sk.FrankWolfe(sk.L1Ball(radius), max_iter=15),
    "fw-pairwise": lambda radius: sk.FrankWolfe(sk.L1Ball(radius), max_iter=15, variant="pairwise"),
    "fw-simplex": lambda radius: sk.FrankWolfe(sk.Simplex(radius), max_iter=15, variant="away"),
    "fw-steps": lambda radius: sk.FrankWolfe(
        sk.L1Ball(radius), 15, line_search="backtracking", variant="blended"
    ),
}
SELECTORS = ("auto", "exact", "gram", "certified", "greedy", "halving", "quantized")
LOSSES = ("squared", "huber", "quantile", "logistic", "poisson")


def made(rng, loss, n=60, d=12):
    X = rng.standard_normal((n, d))
    w = np.zeros(d)
    w[rng.permutation(d)[:4]] = [1.5, -2.0, 1.0, 0.7]
    z = X @ w
    if loss == "logistic":
        return X, np.where(rng.random(n) < 1 / (1 + np.exp(-z)), 1.0, -1.0)
    if loss == "poisson":
        return X, rng.poisson(np.exp(0.5 * z)).astype(float)
    return X, z + 0.1 * rng.standard_normal(n)


def exponents(rng, loss):
    """Powers of two for X and y; 2^300 is 2e90."""
    y = int(rng.integers(-300, 300)) if loss in ("squared", "huber", "quantile") else 0
    return int(rng.integers(-300, 300)), y


def in_units(loss, y):
    if loss == "quantile":
        return sk.Quantile(0.3, float(np.ldexp(0.5, y)))
    return sk.Huber(float(np.ldexp(1.35, y))) if loss == "huber" else loss


@pytest.mark.parametrize("count", MANY)
@pytest.mark.parametrize("loss", LOSSES)
def test_runs_do_not_depend_on_the_scale(loss, count):
    for seed in range(count):
        rng = np.random.default_rng(seed)
        name = str(rng.choice([s for s in SOLVERS if loss == "squared" or s != "cosamp"]))
        known = loss == "squared" and name != "stogradmp"
        selector = str(rng.choice([s for s in SELECTORS if known or s != "gram"]))
        X, y = made(rng, loss)
        s, t = exponents(rng, loss)
        kind = sparse.csr_array if rng.random() < 0.2 else np.asarray
        wanted = sk.minimize(kind(X), y, SOLVERS[name](3.0), selector, in_units(loss, 0), random_state=0)
        far_X, far_y = kind(np.ldexp(X, s)), np.ldexp(y, t)
        solver = SOLVERS[name](float(np.ldexp(3.0, t - s)))
        got = sk.minimize(far_X, far_y, solver, selector, in_units(loss, t), random_state=0)
        case = (seed, name, selector, s, t)
        assert got.status == wanted.status, case
        assert got.support.tolist() == wanted.support.tolist(), case
        np.testing.assert_allclose(np.ldexp(got.coef, s - t), wanted.coef, rtol=1e-5, atol=1e-7)
        power = t if loss == "quantile" else 2 * t
        np.testing.assert_allclose(got.objective, np.ldexp(wanted.objective, power), rtol=1e-6)


def fitted(loss, X, y, s, t, given):
    if loss == "logistic":
        return sk.PursuitClassifier(**given).fit(np.ldexp(X, s), y)
    return sk.PursuitRegressor(loss=in_units(loss, t), **given).fit(np.ldexp(X, s), np.ldexp(y, t))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("solver", ["omp", "mp", "grasp"])
def test_estimators_do_not_depend_on_the_scale(loss, solver):
    kinds = [{}, {"scale": "column"}, {"fit_intercept": False}]
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, y = made(rng, loss)
        X += 0.3
        s, t = exponents(rng, loss)
        given = {"solver": solver, "n_nonzero_coefs": 4, "ridge": 0.0, **kinds[seed % 3]}

        wanted, got = (fitted(loss, X, y, *powers, given) for powers in ((0, 0), (s, t)))
        assert got.status_ == wanted.status_
        np.testing.assert_allclose(np.ldexp(got.coef_, s - t), wanted.coef_, rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(np.ldexp(got.intercept_, -t), wanted.intercept_, rtol=1e-5, atol=1e-7)


def test_huber_targets_in_thousands_have_an_intercept():
    rng = np.random.default_rng(0)
    X, y = made(rng, "huber")
    near, far = (
        sk.PursuitRegressor(solver="mp", loss=sk.Huber(size), n_nonzero_coefs=4).fit(X, size * (y + 50))
        for size in (1.0, 1e6)
    )
    assert far.intercept_ == pytest.approx(1e6 * near.intercept_, rel=1e-5)


@pytest.mark.parametrize(("x", "y"), [(300, 300), (-300, -300), (300, -300)])
def test_the_drop_in_does_not_depend_on_the_scale(x, y):
    X, target = made(np.random.default_rng(1), "squared")
    far_X, far_y = np.ldexp(X, x), np.ldexp(target, y)
    for coefficients in (
        lambda X, y: sk.orthogonal_mp(X, y, n_nonzero_coefs=3),
        lambda X, y: sk.OrthogonalMatchingPursuit(n_nonzero_coefs=3).fit(X, y).coef_,
    ):
        wanted, got = coefficients(X, target), coefficients(far_X, far_y)
        np.testing.assert_allclose(np.ldexp(got, x - y), wanted, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("selector", ["exact", "certified", "quantized", "greedy", "halving"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_checking_sizes_reads_nothing_more(selector, order):
    """A run reads beforehand what preparing X and checking that it is finite reads."""
    X, y = made(np.random.default_rng(0), "squared", 200, 50)
    X = np.asarray(X * 1e20, order=order)
    run = make_run(as_design(X, check=False), y, sk.OMP(3), selector, "squared")
    if selector in ("certified", "quantized"):  # which refuse NaN themselves
        assert not run.problem.design.caches.norms
    before = as_design(X, check=False)
    prepare(run.selector, before)
    check_finite(before)
    assert run.problem.design.reads.prepared_bytes == before.reads.prepared_bytes


REFUSED = {
    "column 2 of X": (lambda X, y: (X * np.array([1.0, 1.0, 1e120, *[1.0] * 9]), y, None)),
    "column 0 of X": (lambda X, y: (X * 1e-130, y, None)),
    "y is of size": (lambda X, y: (X, y * 1e-110, None)),
    "sample_weight is of size": (lambda X, y: (X, y, np.full(len(y), 1e130))),
}


@pytest.mark.parametrize("kind", [np.asarray, np.asfortranarray, sparse.csr_array])
@pytest.mark.parametrize("words", REFUSED)
def test_numbers_whose_squares_leave_the_range_are_refused(words, kind):
    X, y, weights = REFUSED[words](*made(np.random.default_rng(0), "squared"))
    for fit in (
        lambda: sk.minimize(kind(X), y, sk.OMP(3), sample_weight=weights),
        lambda: sk.minimize(kind(X), y, sk.OMP(3), "certified", sample_weight=weights),
        lambda: sk.PursuitRegressor().fit(kind(X), y, weights),
        lambda: sk.PursuitRegressorCV().fit(kind(X), y, weights),
        lambda: sk.OrthogonalMatchingPursuit().fit(kind(X), y, weights),
        lambda: (
            sk.orthogonal_mp(kind(X), y)
            if weights is None
            else sk.minimize(X, y, sk.OMP(1), sample_weight=weights)
        ),
    ):
        with pytest.raises(ValueError, match=f"{words}.*divide it by"):
            fit()


@pytest.mark.parametrize("selector", ["exact", "certified", "gram"])
def test_small_columns_beside_huge_ones_are_found(selector):
    rng, powers = np.random.default_rng(0), np.array([100, 50, -100, -50])  # 2^100 is 1e30
    Z, v = rng.standard_normal((58, 4)), rng.standard_normal(58)
    result = sk.minimize(np.ldexp(Z, powers), v, sk.OMP(4), selector)
    assert sorted(result.support.tolist()) == [0, 1, 2, 3]
    np.testing.assert_allclose(np.ldexp(result.coef, powers), np.linalg.lstsq(Z, v)[0], rtol=1e-9)


@pytest.mark.parametrize("radius", [1e-200, 1e200])
def test_a_radius_far_from_all_predictions_ends_without_an_error(radius):
    X, y = made(np.random.default_rng(0), "squared")
    result = sk.minimize(X, y, sk.FrankWolfe(sk.L1Ball(radius)), "exact")
    assert np.isfinite(result.coef).all()


def test_tolerances_have_units():
    X, y = made(np.random.default_rng(0), "squared")
    wanted = sk.minimize(X, y, sk.OMP(tol=5.0))
    for t in (-300, 300):
        got = sk.minimize(X, np.ldexp(y, t), sk.OMP(tol=float(np.ldexp(5.0, 2 * t))))
        assert (got.status, got.support.tolist()) == (sk.Status.CONVERGED, wanted.support.tolist())


@pytest.mark.parametrize("count", MANY)
def test_float32_coefficients_are_not_lost(count):
    for seed in range(count):
        rng = np.random.default_rng(seed)
        s, t = rng.uniform(-37, 37), rng.uniform(-80, 80)
        X = (rng.standard_normal((200, 8)) * 10.0**s).astype(np.float32)
        w = np.zeros(8)
        w[rng.permutation(8)[:3]] = np.array([1.0, -2.0, 3.0]) * 10.0 ** (t - s)
        y = X.astype(np.float64) @ w
        result = sk.minimize(X, y, sk.OMP(3))
        assert result.status in (sk.Status.ZERO_RESIDUAL, sk.Status.COMPLETE)
        np.testing.assert_allclose(result.coef, w, rtol=1e-5, atol=1e-7 * np.abs(w).max())
        model = (sk.PursuitRegressor, sk.OrthogonalMatchingPursuit)[seed % 2](n_nonzero_coefs=3).fit(X, y)
        error = (model.predict(X).astype(np.float64) - y) / np.abs(y).max()
        assert np.abs(error).max() < 1e-5, (seed, s, t)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_float32_models_of_ordinary_numbers_stay_float32_and_reach_beyond_it(kind):
    X, y = made(np.random.default_rng(0), "squared")
    X, y = X.astype(np.float32), 1e37 * y
    models = [sk.PursuitRegressor(), sk.OrthogonalMatchingPursuit(), sk.OrthogonalMatchingPursuitCV(cv=3)]
    assert sk.minimize(kind(X), y, sk.OMP(3)).coef.dtype == np.float64
    for model in models:
        assert model.fit(kind(X), y).coef_.dtype == np.float32
        found = model.predict(kind(1000 * X)) - model.intercept_
        np.testing.assert_allclose(found, 1000 * X @ model.coef_.astype(np.float64), rtol=1e-5)
    coder = sk.PursuitCoder(1e38 * np.eye(3, dtype=np.float32)).fit(X[:, :3])
    np.testing.assert_allclose(coder.inverse_transform(kind(10 * X[:, :3])) / 1e38, 10 * X[:, :3], rtol=1e-6)
