"""CoSaMP and GraSP against plain NumPy, and what they do where plain NumPy breaks."""

import numpy as np
import pytest
from scipy.optimize import nnls

from skpursuit import CoSaMP, GraSP, Status, StoGradMP, SubspacePursuit, as_design, datasets, minimize
from tests.solvers.test_subspace_pursuit import most_worth, plain


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
LOSSES["positive"] = (*LOSSES["squared"][:2], lambda A, y: nnls(A, y)[0])


def reference(X, y, k, max_iter, loss="squared", prune="size", inside=(), labels=None):
    """Needell and Tropp's algorithm as printed; when it returns to an old merged set, its best iterate.

    Columns `inside` stay in the model; groups of columns by their labels enter and leave together.
    """
    (value, slope, fit), inside = LOSSES[loss], np.array(inside, dtype=int)
    labels = np.arange(X.shape[1]) if labels is None else labels
    w, count = np.zeros(X.shape[1]), 2 * (k - len(set(labels[inside])))
    w[inside] = fit(X[:, inside], y) if len(inside) else ()
    merged_sets, iterates = [], [w]
    for _ in range(max_iter):
        new = most_worth(X.T @ slope(y, X @ w), loss, labels, count, inside, sign=-1)
        merged = np.unique(np.concatenate([new, np.flatnonzero(w), inside]))
        if any(np.array_equal(merged, old) for old in merged_sets):
            if np.array_equal(merged, merged_sets[-1]):
                return w
            return min(iterates, key=lambda v: value(y, X @ v))
        merged_sets.append(merged)
        b = fit(X[:, merged], y)
        whole = np.zeros(X.shape[1])
        whole[merged] = b
        if prune == "gain":  # what the loss rises by without one column, the others fitted again
            rest = [np.delete(X[:, merged], i, axis=1) for i in range(len(merged))]
            rises = np.array([value(y, A @ fit(A, y)) for A in rest]) - value(y, X[:, merged] @ b)
            b = np.sqrt(np.maximum(rises, 0))
        sizes = np.zeros(X.shape[1])
        sizes[merged] = b
        w = np.zeros(X.shape[1])
        keep = most_worth(sizes, loss, labels, k, inside)
        w[keep] = whole[keep]
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


@pytest.mark.parametrize("rule", ["squared", "positive", "groups"])
def test_included_positive_and_grouped_columns_equal_plain_numpy_on_200_problems(rule):
    for seed in range(200):
        rng = np.random.default_rng(seed)
        n, d, k = int(rng.integers(40, 80)), int(rng.integers(20, 60)), int(rng.integers(3, 6))
        n *= 3 if rule == "groups" else 1  # merged columns are independent
        X, y, w = datasets.make_sparse_signal(n, d, k, random_state=seed)
        X = X * np.where(w < 0, -1.0, 1.0) if seed % 3 else X  # of which all coefficients are positive
        labels = rng.integers(0, d // 3, d) if rule == "groups" else np.arange(d)
        labels = np.unique(labels, return_inverse=True)[1]
        inside = np.flatnonzero(np.isin(labels, labels[rng.choice(d, seed % 3, replace=False)]))
        given = {"always_include": inside, "positive": rule == "positive"}
        if rule == "groups":
            given["feature_groups"] = labels
        loss = "positive" if rule == "positive" else "squared"
        make, selector = ((CoSaMP, "exact"), (GraSP, "auto"))[seed % 2]
        result = minimize(X, y, make(k, max_iter=6, **given), selector)
        expected = reference(X, y, k, 6, loss, inside=inside, labels=labels)
        np.testing.assert_allclose(result.coef, expected, atol=1e-9)
        support, coef = plain(X, y, k, loss, inside, labels)
        result = minimize(X, y, SubspacePursuit(k, **given), ("exact", "certified")[seed % 2])
        assert set(np.flatnonzero(result.coef)) == set(support[coef != 0])
        np.testing.assert_allclose(result.coef[support], coef, atol=1e-9)


def test_grasp_with_included_columns_equals_plain_numpy_and_keeps_those_that_depend():
    for seed in range(40):
        X, y, _ = datasets.make_logistic_signal(100, 20, 3, random_state=seed)
        result = minimize(X, y, GraSP(4, max_iter=5, ridge=1e-3, always_include=[1, 7]), loss="logistic")
        expected = reference(X, y, 4, 5, "logistic", inside=[1, 7])
        np.testing.assert_allclose(result.coef, expected, rtol=1e-5, atol=1e-7)
        twice = np.hstack([X, X])
        for solver in (CoSaMP(4, always_include=[25]), SubspacePursuit(4, always_include=[25])):
            assert 25 in minimize(twice, y, solver).support
    alone = minimize(X, y, CoSaMP(2, always_include=[9, 4]))
    assert alone.status is Status.COMPLETE
    np.testing.assert_allclose(alone.coef[[4, 9]], np.linalg.lstsq(X[:, [4, 9]], y)[0], atol=1e-12)
    stochastic = minimize(X, y, StoGradMP(3, always_include=[5], max_iter=5), loss="logistic", random_state=0)
    assert 5 in stochastic.support


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
