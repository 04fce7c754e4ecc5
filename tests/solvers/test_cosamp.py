"""CoSaMP and GraSP against plain NumPy, and what they do where plain NumPy breaks."""

import numpy as np
import pytest

from skpursuit import CoSaMP, GraSP, Status, SubspacePursuit, as_design, datasets, minimize


def logistic_fit(A, y, ridge=0.0):
    w = np.zeros(A.shape[1])
    for _ in range(100):
        p = 1 / (1 + np.exp(y * (A @ w)))
        g = -A.T @ (y * p) + ridge * w
        H = (A.T * (p * (1 - p))) @ A + ridge * np.eye(len(w))
        step = np.linalg.solve(H, g)
        w -= step
        if np.abs(step).max() < 1e-12:
            break
    return w


LOSSES = {
    "squared": (
        lambda y, z: 0.5 * np.sum((z - y) ** 2),
        lambda y, z: z - y,
        lambda A, y: np.linalg.lstsq(A, y, rcond=None)[0],
    ),
    "logistic": (
        lambda y, z: np.sum(np.logaddexp(0, -y * z)),
        lambda y, z: -y / (1 + np.exp(y * z)),
        lambda A, y: logistic_fit(A, y, ridge=1e-3 * len(y)),
    ),
}


def reference(X, y, k, max_iter, loss="squared", prune="size"):
    """Needell and Tropp's algorithm as printed; when it returns to an old merged set, its best iterate."""
    value, slope, fit = LOSSES[loss]
    w, merged_sets, iterates = np.zeros(X.shape[1]), [], []
    for _ in range(max_iter):
        g = X.T @ slope(y, X @ w)
        merged = np.union1d(np.argsort(-np.abs(g), kind="stable")[: 2 * k], np.flatnonzero(w))
        if any(np.array_equal(merged, old) for old in merged_sets):
            if np.array_equal(merged, merged_sets[-1]):
                return w
            return min(iterates, key=lambda v: value(y, X @ v))
        merged_sets.append(merged)
        b = fit(X[:, merged], y)
        worth = np.abs(b)
        if prune == "gain":  # what the loss rises by without one column, the others fitted again
            rest = [np.delete(X[:, merged], i, axis=1) for i in range(len(merged))]
            worth = np.array([value(y, A @ fit(A, y)) for A in rest]) - value(y, X[:, merged] @ b)
        keep = np.argsort(-worth, kind="stable")[:k]
        w = np.zeros(X.shape[1])
        w[merged[keep]] = b[keep]
        iterates.append(w)
    return w


@pytest.mark.parametrize(("selector", "prune"), [("exact", "size"), ("gram", "size"), ("exact", "gain")])
def test_cosamp_equals_plain_numpy_on_200_problems(selector, prune):
    stopped = set()
    for seed in range(200):
        rng = np.random.default_rng(seed)
        n, d = int(rng.integers(24, 80)), int(rng.integers(20, 120))
        k = int(rng.integers(1, n // 6))
        X, y, _ = datasets.make_sparse_signal(
            n, d, min(k, d // 3), snr=rng.choice([0, 3, 10, 30]), random_state=seed
        )
        k = min(k, d // 3)
        result = minimize(X, y, CoSaMP(k, max_iter=12, prune=prune), selector)
        expected = reference(X, y, k, 12, prune=prune)
        assert set(result.support) == set(np.flatnonzero(expected))
        np.testing.assert_allclose(result.coef, expected, atol=1e-9)
        stopped.add(result.status)
    assert Status.CYCLING in stopped
    assert Status.STALLED in stopped


def test_grasp_equals_plain_numpy_on_200_problems():
    for seed in range(200):
        rng = np.random.default_rng(seed)
        n, d, k = int(rng.integers(60, 120)), int(rng.integers(10, 40)), int(rng.integers(1, 4))
        if seed % 2:
            X, y, _ = datasets.make_sparse_signal(n, d, k, random_state=seed)
            result, loss = minimize(X, y, GraSP(k, max_iter=6)), "squared"
        else:
            X, y, _ = datasets.make_logistic_signal(n, d, k, random_state=seed)
            result, loss = minimize(X, y, GraSP(k, max_iter=6, ridge=1e-3), loss="logistic"), "logistic"
        expected = reference(X, y, k, 6, loss)
        assert set(result.support) == set(np.flatnonzero(expected))
        np.testing.assert_allclose(result.coef, expected, rtol=1e-5, atol=1e-7)


def test_refit_gives_least_squares_on_the_support():
    X, y, _ = datasets.make_sparse_signal(100, 200, 5, random_state=0)
    result = minimize(X, y, CoSaMP(5, refit=True))
    A = X[:, result.support]
    np.testing.assert_allclose(result.coef[result.support], np.linalg.lstsq(A, y, rcond=None)[0], atol=1e-12)
    plain = minimize(X, y, CoSaMP(5))
    assert result.objective < plain.objective


@pytest.mark.parametrize(("solver", "loss"), [(CoSaMP(4), "squared"), (GraSP(4, ridge=1e-3), "logistic")])
def test_dependent_columns_are_dropped_lowest_index_kept(solver, loss):
    X, y, w = datasets.make_sparse_signal(120, 40, 4, snr=20, random_state=1)
    y = np.sign(y) if loss == "logistic" else y
    doubled = np.hstack([X, X, np.zeros((120, 2)), X[:, :1] + X[:, 1:2]])
    alone = minimize(X, y, solver, "exact", loss)
    result = minimize(doubled, y, solver, "exact", loss)
    assert (result.support < 40).all()
    assert len(result.dropped) > 0
    assert np.isfinite(result.coef).all()
    if loss == "squared":
        assert set(result.support) == set(np.flatnonzero(w))
        assert result.objective <= alone.objective * 1.1


def test_nearly_dependent_columns_are_fitted_not_dropped():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 6))
    X[:, 1] = X[:, 0] + 1e-6 * rng.standard_normal(50)
    w = np.array([1.0, -1.0, 0, 0, 0, 0])
    result = minimize(X, X @ w, CoSaMP(2), "exact")
    assert len(result.dropped) == 0
    np.testing.assert_allclose(X @ result.coef, X @ w, atol=1e-12)


def blowing_up(n=60):
    """Columns that nearly cancel: the merged fit needs pairs that pruning tears apart."""
    rng = np.random.default_rng(0)
    base = rng.standard_normal((n, 1))
    X = base + 1e-4 * rng.standard_normal((n, 30))
    return X, rng.standard_normal(n)


def test_an_iterate_that_blows_up_is_not_returned():
    X, y = blowing_up()
    result = minimize(X, y, CoSaMP(3), "exact")
    assert result.status is Status.DIVERGED
    assert result.objective <= 0.5 * (y @ y) * (1 + 1e-12)
    assert result.objective <= min(record.objective for record in result.history) + 1e-9


def test_tol_and_rtol_are_on_the_squared_residual():
    X, y, _ = datasets.make_sparse_signal(100, 150, 5, snr=10, random_state=0)
    full = minimize(X, y, CoSaMP(5))
    residual = np.sum((y - X @ full.coef) ** 2)
    assert minimize(X, y, CoSaMP(5, tol=1.001 * residual)).status is Status.CONVERGED
    assert minimize(X, y, CoSaMP(5, rtol=1.001 * residual / (y @ y))).status is Status.CONVERGED
    assert minimize(X, y, CoSaMP(5, tol=0.5 * residual)).status is not Status.CONVERGED


@pytest.mark.parametrize("solver", [CoSaMP(3), SubspacePursuit(3)], ids=repr)
def test_several_targets_share_a_support(solver):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 40))
    W = np.zeros((40, 3))
    W[[3, 17, 30]] = rng.standard_normal((3, 3)) + 2
    result = minimize(X, X @ W, solver, "exact")
    assert sorted(result.support) == [3, 17, 30]
    np.testing.assert_allclose(result.coef, W, atol=1e-10)


def test_columns_merged_before_are_not_read_again():
    X, y, _ = datasets.make_sparse_signal(100, 150, 5, random_state=0)
    design = as_design(X)
    result = minimize(design, y, CoSaMP(5), "exact")
    merged = 3 * 5 * result.n_iter
    assert result.n_iter > 2
    assert len(design.caches.columns.arrays) < merged


def test_cosamp_refuses_other_losses_and_bad_sizes():
    X, y, _ = datasets.make_logistic_signal(30, 10, 2, random_state=0)
    with pytest.raises(ValueError, match="use GraSP"):
        minimize(X, y, CoSaMP(2), loss="logistic")
    with pytest.raises(ValueError, match="10 columns"):
        minimize(X, y, CoSaMP(11))
