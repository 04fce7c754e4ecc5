"""One meaning of the ridge: (ridge / 2) ||w||^2 beside the mean loss, for every solver, loss and selector."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge

from skpursuit import OMP, CoSaMP, GraSP, Multinomial, StoGradMP, SubspacePursuit, as_design, minimize


def made(seed, n=60, d=40, targets=()):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) @ (np.eye(d) + 0.3 * rng.standard_normal((d, d)))
    w = np.zeros((d, *targets))
    w[rng.choice(d, 6, replace=False)] = rng.standard_normal((6, *targets))
    return X, X @ w + rng.standard_normal((n, *targets))


def ridge_fit(A, y, penalty):
    """The best coefficients with a penalty for each."""
    lifted = np.vstack([A, np.diag(np.sqrt(np.broadcast_to(penalty, A.shape[1])))])
    return np.linalg.lstsq(lifted, np.concatenate([y, np.zeros((A.shape[1], *y.shape[1:]))]), rcond=None)[0]


def score(g):
    return np.abs(g) if g.ndim == 1 else np.linalg.norm(g, axis=1)


def pursuit(X, y, k, ridge):
    """Orthogonal matching pursuit whose residual is that of the ridge fit."""
    support, w = [], np.zeros((0, *y.shape[1:]))
    for _ in range(k):
        g = score(X.T @ (y - X[:, support] @ w))
        g[support] = -1.0
        support.append(int(np.argmax(g)))
        w = ridge_fit(X[:, support], y, len(y) * ridge)
    return support, w


@pytest.mark.parametrize("selector", ["exact", "gram", "certified", "auto"])
@pytest.mark.parametrize("targets", [(), (3,)])
def test_pursuit_equals_the_plain_algorithm(selector, targets):
    for seed in range(32):
        X, y = made(seed, *((60, 40), (30, 80))[seed % 2], targets)
        ridge = 0.0 if seed % 4 == 0 else 10.0 ** (seed % 7 - 5)
        support, w = pursuit(X, y, 12, ridge)
        result = minimize(X, y, OMP(12, ridge=ridge), selector)
        assert result.support.tolist() == support
        np.testing.assert_allclose(result.coef[support], w, rtol=1e-8, atol=1e-10)
        assert result.objective == pytest.approx(0.5 * np.sum((y - X @ result.coef) ** 2), rel=1e-9)


def merging(X, y, k, ridge, width, refit):
    """CoSaMP, and subspace pursuit without its end: merge, fit, prune."""
    d, penalty = X.shape[1], len(y) * ridge
    w = np.zeros(d)
    for _ in range(5):
        found = np.argsort(-np.abs(X.T @ (y - X @ w)), kind="stable")
        found = found[np.isin(found, np.flatnonzero(w), invert=True)] if refit else found
        merged = np.union1d(np.flatnonzero(w), found[: width * k])
        fit = ridge_fit(X[:, merged], y, penalty)
        kept = np.sort(np.argsort(-np.abs(fit), kind="stable")[:k])
        new = np.zeros(d)
        new[merged[kept]] = ridge_fit(X[:, merged[kept]], y, penalty) if refit else fit[kept]
        value = [np.sum((y - X @ v) ** 2) + penalty * v @ v for v in (w, new)]
        if refit and not value[1] < value[0]:
            break
        w = new
    return w


@pytest.mark.parametrize("selector", ["exact", "gram", "certified"])
@pytest.mark.parametrize("kind", [CoSaMP, GraSP, SubspacePursuit])
def test_merging_solvers_equal_the_plain_algorithm(kind, selector):
    for seed in range(20):
        X, y = made(seed)
        ridge, exchanges = 10.0 ** (seed % 5 - 3), kind is SubspacePursuit
        result = minimize(X, y, kind(5, max_iter=5, ridge=ridge), selector)
        if result.status.name in ("CYCLING", "DIVERGED"):
            continue  # the best iterate is not the last one
        expected = merging(X, y, 5, ridge, 1 if exchanges else 2, exchanges)
        np.testing.assert_allclose(result.coef, expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("solver", [OMP(6, ridge=0.2), OMP(6, ridge=0.2, positive=True)])
def test_weights_sparse_x_and_checkpoints_keep_the_meaning(solver, tmp_path):
    for seed in range(4):
        X, y = made(seed)
        weights = np.random.default_rng(seed).integers(0, 4, len(y)).astype(float)
        repeated = np.repeat(np.arange(len(y)), weights.astype(int))
        expected = minimize(X[repeated], y[repeated], solver)
        for data in (X, csr_array(X), as_design(X)):
            found = minimize(data, y, solver, sample_weight=weights)
            np.testing.assert_allclose(found.coef, expected.coef, rtol=1e-8, atol=1e-10)
        file = tmp_path / str(seed)
        minimize(X, y, solver, callback=lambda record: record.iteration == 3, checkpoint=file)
        resumed, whole = minimize(X, y, solver, checkpoint=file), minimize(X, y, solver)
        np.testing.assert_array_equal(resumed.coef, whole.coef)


def test_non_negative_coefficients_are_those_of_the_penalised_problem():
    for seed in range(10):
        X, y = made(seed)
        w = minimize(X, y, OMP(10, ridge=0.1, positive=True)).coef
        chosen = np.flatnonzero(w)
        g = X.T @ (X @ w - y) + len(y) * 0.1 * w
        assert (w >= 0).all()
        np.testing.assert_allclose(g[chosen], 0.0, atol=1e-8)


def test_near_dependent_columns_keep_their_digits_whatever_the_ridge():
    rng = np.random.default_rng(0)
    X, y = made(1, d=20)
    X = np.column_stack([X, X + 1e-6 * rng.standard_normal(X.shape)])
    for ridge in (1e-14, 1e-8, 1e-2):
        for solver in (OMP(30, ridge=ridge), CoSaMP(20, ridge=ridge, max_iter=1)):
            result = minimize(X, y, solver)
            S = result.support if isinstance(solver, OMP) else np.arange(40)
            w = ridge_fit(X[:, S], y, len(y) * ridge)
            full = np.zeros(40)
            full[S] = w
            if isinstance(solver, CoSaMP):
                full[np.argsort(-np.abs(full), kind="stable")[20:]] = 0.0
            np.testing.assert_allclose(X @ result.coef, X @ full, atol=1e-6 * np.linalg.norm(y))


def test_the_constant_column_of_a_design_is_spared():
    X, y = made(3, d=8)
    base = as_design(X)
    design = base.with_view(base.view.compose(constant=True))
    for solver in (OMP(9, ridge=0.5), GraSP(9, ridge=0.5), SubspacePursuit(9, ridge=0.5)):
        w = minimize(design, y + 5.0, solver).coef
        reference = Ridge(alpha=0.5 * len(y)).fit(X, y + 5.0)
        np.testing.assert_allclose(w, [*reference.coef_, reference.intercept_], rtol=1e-6)


@pytest.mark.parametrize("kind", [OMP, GraSP, StoGradMP])
def test_other_losses_have_the_same_meaning(kind):
    X, y = made(2, n=200, d=6)
    given = {"max_iter": 30} | ({"batch_size": 200, "refit": True} if kind is StoGradMP else {})
    solver, n = kind(6, ridge=0.05, **given), len(y)
    labels, counts = np.where(y > 0, 1.0, -1.0), np.floor(np.exp(np.clip(y / 3, -2, 2)))
    logistic = LogisticRegression(C=1 / (0.05 * n), fit_intercept=False, tol=1e-10, max_iter=1000)
    expected = logistic.fit(X, labels).coef_[0]
    np.testing.assert_allclose(minimize(X, labels, solver, loss="logistic").coef, expected, rtol=1e-4)
    poisson = PoissonRegressor(alpha=0.05, fit_intercept=False, tol=1e-10, max_iter=1000).fit(X, counts)
    np.testing.assert_allclose(minimize(X, counts, solver, loss="poisson").coef, poisson.coef_, rtol=1e-4)
    if kind is OMP:
        classes = np.digitize(y, [-1.0, 1.0])
        expected = logistic.fit(X, classes).coef_.T
        np.testing.assert_allclose(
            minimize(X, classes, solver, loss=Multinomial()).coef, expected, rtol=1e-3, atol=1e-5
        )


@pytest.mark.parametrize("scale", [1e-40, 1e40])
def test_it_has_units(scale):
    X, y = made(4)
    expected = minimize(X, y, OMP(5, ridge=0.1)).coef
    found = minimize(X * scale, y, OMP(5, ridge=0.1 * scale * scale)).coef
    np.testing.assert_allclose(found * scale, expected, rtol=1e-9)
