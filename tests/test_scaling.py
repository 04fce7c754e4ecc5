"""X or y near the ends of the float range: the answer is that of ordinary numbers, scaled."""

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.linalg import aslinearoperator

from skpursuit import (
    OMP,
    CoSaMP,
    FrankWolfe,
    GraSP,
    Huber,
    L1Ball,
    MatchingPursuit,
    OrthogonalMatchingPursuit,
    OrthogonalMatchingPursuitCV,
    PursuitClassifier,
    PursuitRegressor,
    Quantile,
    Simplex,
    Status,
    StoGradMP,
    minimize,
    orthogonal_mp,
)
from skpursuit.data import as_design, check_finite
from skpursuit.loop.run import make_run

from .support.asking import prepare

MANY = [pytest.param(12, id="few"), pytest.param(500, id="many", marks=pytest.mark.slow)]
SOLVERS = {
    "omp": lambda radius: OMP(4),
    "mp": lambda radius: MatchingPursuit(4, max_iter=15),
    "cosamp": lambda radius: CoSaMP(4, max_iter=10),
    "grasp": lambda radius: GraSP(4, max_iter=10),
    "stogradmp": lambda radius: StoGradMP(4, max_iter=6, batch_size=30),
    "fw": lambda radius: FrankWolfe(L1Ball(radius), max_iter=15),
    "fw-pairwise": lambda radius: FrankWolfe(L1Ball(radius), max_iter=15, variant="pairwise"),
    "fw-simplex": lambda radius: FrankWolfe(Simplex(radius), max_iter=15, variant="away"),
    "fw-steps": lambda radius: FrankWolfe(L1Ball(radius), 15, step="backtracking", variant="blended"),
}
SELECTORS = ("auto", "exact", "gram", "certified", "greedy", "halving", "sketch")
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
    """Powers of two for X and y: coefficients and the radius, of size 2^(y - x), must be numbers."""
    while True:
        x = int(rng.choice([-990, -660, -510, 0, 400, 512, 990]))
        y = int(rng.choice([-990, -500, 0, 500, 990])) if loss in ("squared", "huber", "quantile") else 0
        if (x or y) and abs(y - x) <= 1000:
            return x, y


def in_units(loss, y):
    if loss == "quantile":
        return Quantile(0.3, float(np.ldexp(0.5, y)), float(np.ldexp(1.0, y)))
    return Huber(float(np.ldexp(1.35, y))) if loss == "huber" else loss


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
        wanted = minimize(kind(X), y, SOLVERS[name](3.0), selector, in_units(loss, 0), random_state=0)
        far_X, far_y = kind(np.ldexp(X, s)), np.ldexp(y, t)
        solver = SOLVERS[name](float(np.ldexp(3.0, t - s)))
        got = minimize(far_X, far_y, solver, selector, in_units(loss, t), random_state=0)
        case = (seed, name, selector, s, t)
        assert got.status == wanted.status, case
        assert got.support.tolist() == wanted.support.tolist(), case
        np.testing.assert_allclose(np.ldexp(got.coef, s - t), wanted.coef, rtol=1e-5, atol=1e-7)
        with np.errstate(over="ignore", under="ignore"):
            objectives = [np.ldexp(record.objective, 2 * t) for record in wanted.history]
            objective = np.ldexp(wanted.objective, 2 * t)
        np.testing.assert_allclose([record.objective for record in got.history], objectives, rtol=1e-6)
        np.testing.assert_allclose(got.objective, objective, rtol=1e-6)


def fitted(loss, X, y, s, t, given):
    if loss == "logistic":
        return PursuitClassifier(**given).fit(np.ldexp(X, s), y)
    return PursuitRegressor(loss=in_units(loss, t), **given).fit(np.ldexp(X, s), np.ldexp(y, t))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("solver", ["omp", "mp", "grasp"])
def test_estimators_do_not_depend_on_the_scale(loss, solver):
    kinds = [{}, {"normalize": True}, {"fit_intercept": False}]
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
        PursuitRegressor(solver="mp", loss=Huber(size), n_nonzero_coefs=4).fit(X, size * (y + 50))
        for size in (1.0, 1e6)
    )
    assert far.intercept_ == pytest.approx(1e6 * near.intercept_, rel=1e-5)


@pytest.mark.parametrize(("x", "y"), [(600, 600), (-600, -600), (900, 0)])
def test_the_drop_in_does_not_depend_on_the_scale(x, y):
    X, target = made(np.random.default_rng(1), "squared")
    far_X, far_y = np.ldexp(X, x), np.ldexp(target, y)
    for coefficients in (
        lambda X, y: orthogonal_mp(X, y, n_nonzero_coefs=3),
        lambda X, y: OrthogonalMatchingPursuit(n_nonzero_coefs=3).fit(X, y).coef_,
    ):
        wanted, got = coefficients(X, target), coefficients(far_X, far_y)
        np.testing.assert_allclose(np.ldexp(got, x - y), wanted, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("selector", ["exact", "certified", "sketch", "greedy", "halving"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_ordinary_runs_are_left_alone(selector, order):
    """No view, no pass over X: a run reads beforehand what preparing and checking X reads."""
    X, y = made(np.random.default_rng(0), "squared", 200, 50)
    X = np.asarray(X * 1e20, order=order)
    run = make_run(as_design(X, check=False), y, OMP(3), selector, "squared")
    assert not run.units
    assert type(run.problem.design) is type(as_design(X))
    if selector in ("certified", "sketch"):  # which refuse NaN themselves
        assert not run.problem.design.kept.norms
    before = as_design(X, check=False)
    prepare(run.selector, before)
    check_finite(before)
    assert run.problem.design.reads.prepared_bytes == before.reads.prepared_bytes


REFUSED = [(1e5, 1e300, "squared"), (1e200, 1.0, "poisson"), (1.0, 1e-200, "logistic")]


@pytest.mark.parametrize(("radius", "scale", "loss"), REFUSED)
def test_a_radius_beyond_all_reason_is_refused(radius, scale, loss):
    X, y = made(np.random.default_rng(0), loss)
    with pytest.raises(ValueError, match="choose a radius near"):
        minimize(X * scale, y, FrankWolfe(L1Ball(radius)), "exact", loss)


@pytest.mark.parametrize("scale", [1e-300, 1e-150, 1e150, 1e200])
@pytest.mark.parametrize("step", ["exact", "backtracking"])
def test_a_radius_that_does_not_fit_the_scale(scale, step):
    """Small columns: the best vertex. Large ones: the ball does not bind, and the fit is close."""
    X, y = made(np.random.default_rng(0), "squared")
    result = minimize(X * scale, y, FrankWolfe(L1Ball(1.0), step=step, max_iter=150), "exact")
    if scale < 1:
        best = int(np.argmax(np.abs(X.T @ y)))
        assert result.support.tolist() == [best]
        assert result.coef[best] == np.sign(X[:, best] @ y)
    else:
        fitted = np.linalg.lstsq(X, y, rcond=None)[0]
        np.testing.assert_allclose(result.coef * scale, fitted, atol=0.05)


def test_coefficients_that_no_float_holds_are_refused():
    X, y = made(np.random.default_rng(0), "squared")
    for s, t in ((-900, 900), (900, -900)):
        with pytest.raises(ValueError, match="beyond the range of floats"):
            minimize(np.ldexp(X, s), np.ldexp(y, t), OMP(3))


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_operators_are_scaled_too(scale):
    X, y = made(np.random.default_rng(0), "logistic")
    wanted = minimize(X, y, OMP(3), "exact", "logistic")
    got = minimize(aslinearoperator(X * scale), y, OMP(3), "exact", "logistic")
    np.testing.assert_allclose(got.coef * scale, wanted.coef, rtol=1e-6)


@pytest.mark.parametrize("selector", ["exact", "certified", "gram"])
def test_small_columns_beside_huge_ones_are_found_for_a_small_target(selector):
    rng, powers = np.random.default_rng(0), np.array([110, 160, 470, -350])
    Z, v = rng.standard_normal((58, 4)), rng.standard_normal(58)
    result = minimize(np.ldexp(Z, powers), np.ldexp(v, -320), OMP(4), selector)
    assert sorted(result.support.tolist()) == [0, 1, 2, 3]
    expected = np.linalg.lstsq(Z, v)[0]
    np.testing.assert_allclose(np.ldexp(result.coef, powers + 320), expected, rtol=1e-9)


def test_a_ridge_that_leaves_nothing_is_refused():
    X, y = made(np.random.default_rng(0), "logistic")
    with pytest.raises(ValueError, match="too large beside numbers"):
        minimize(X * 1e-200, y, OMP(3, ridge=0.1), "exact", "logistic")
    plain = minimize(X, y, OMP(3), "exact", "logistic")
    large = minimize(X * 1e200, y, OMP(3, ridge=0.1), "exact", "logistic")  # nothing beside such columns
    np.testing.assert_allclose(large.coef * 1e200, plain.coef, rtol=1e-6)


def test_tolerances_have_units():
    X, y = made(np.random.default_rng(0), "squared")
    wanted = minimize(X, y, OMP(tol=5.0))
    for t in (-400, 400):
        got = minimize(X, np.ldexp(y, t), OMP(tol=float(np.ldexp(5.0, 2 * t))))
        assert (got.status, got.support.tolist()) == (Status.CONVERGED, wanted.support.tolist())


def test_a_run_in_other_units_goes_on_from_its_checkpoint(tmp_path):
    X, y = made(np.random.default_rng(0), "logistic")
    X = X * 1e200
    whole = minimize(X, y, OMP(5), "exact", "logistic", random_state=0)
    stop = lambda record: record.iteration == 1  # noqa: E731
    path = tmp_path / "run"
    part = minimize(X, y, OMP(5), "exact", "logistic", random_state=0, callback=stop, checkpoint=path)
    assert part.status is Status.CALLBACK
    rest = minimize(X, y, OMP(5), "exact", "logistic", random_state=0, checkpoint=path)
    assert rest.coef.tobytes() == whole.coef.tobytes()


@pytest.mark.parametrize("count", MANY)
def test_float32_coefficients_are_not_lost(count):
    for seed in range(count):
        rng = np.random.default_rng(seed)
        s, t = rng.uniform(-37, 37), rng.uniform(-80, 80)
        X = (rng.standard_normal((200, 8)) * 10.0**s).astype(np.float32)
        w = np.zeros(8)
        w[rng.permutation(8)[:3]] = np.array([1.0, -2.0, 3.0]) * 10.0 ** (t - s)
        y = X.astype(np.float64) @ w
        result = minimize(X, y, OMP(3))
        assert result.status in (Status.ZERO_RESIDUAL, Status.COMPLETE)
        np.testing.assert_allclose(result.coef, w, rtol=1e-5, atol=1e-7 * np.abs(w).max())
        model = (PursuitRegressor, OrthogonalMatchingPursuit)[seed % 2](n_nonzero_coefs=3).fit(X, y)
        error = (model.predict(X).astype(np.float64) - y) / np.abs(y).max()
        assert np.abs(error).max() < 1e-5, (seed, s, t)


def test_float32_models_of_ordinary_numbers_stay_float32():
    X, y = made(np.random.default_rng(0), "squared")
    X = X.astype(np.float32)
    models = [PursuitRegressor(), OrthogonalMatchingPursuit(), OrthogonalMatchingPursuitCV(cv=3)]
    assert minimize(X, y, OMP(3)).coef.dtype == np.float64  # results of `minimize` always have all digits
    assert all(model.fit(X, y).coef_.dtype == np.float32 for model in models)


@pytest.mark.filterwarnings("ignore:Orthogonal matching pursuit ended prematurely")
@pytest.mark.parametrize("seed", range(10))
def test_float32_of_low_rank_is_fitted_as_well_as_float64(seed):
    """Columns that depend on each other up to their rounding have coefficients whose last digits matter."""
    rng = np.random.default_rng(seed)
    X = (rng.standard_normal((37, 3)) @ rng.standard_normal((3, 29))).astype(np.float32)
    y = rng.standard_normal(37)
    result = minimize(X, y, OMP(10))
    there = 0.5 * np.sum((X.astype(np.float64) @ result.coef - y) ** 2)
    assert result.objective == pytest.approx(there, rel=1e-6)
    for kind in (PursuitRegressor, OrthogonalMatchingPursuit):
        scores = [kind(n_nonzero_coefs=10).fit(X.astype(t), y).score(X, y) for t in (np.float32, np.float64)]
        assert scores[0] == pytest.approx(scores[1], abs=1e-4)


def test_float32_columns_far_from_zero_keep_the_digits_of_their_coefficients():
    rng = np.random.default_rng(0)
    X = (rng.standard_normal((60, 5)) + 1e5).astype(np.float32)
    y = 0.3 * (X[:, 1].astype(np.float64) - 1e5)
    model = PursuitRegressor(n_nonzero_coefs=2).fit(X, y)
    assert model.coef_.dtype == np.float64
    assert model.score(X, y) == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("selector", ["exact", "gram", "greedy"])
def test_rows_whose_norms_overflow_are_answered_where_the_columns_fit(selector):
    X = np.random.default_rng(0).uniform(0.5, 1.0, (2, 50))
    large, plain = (minimize(X * size, [1.0, 2.0], OMP(2), selector) for size in (1e308, 1.0))
    assert large.support.tolist() == plain.support.tolist()
    assert large.status == plain.status
