"""StoIHT and StoGradMP follow their definitions and recover what they should."""

import numpy as np
import pytest

from skpursuit import Status, StoGradMP, StoIHT, datasets, metrics, minimize


def batches(seed, n, b, steps):
    """The rows the solvers draw: one generator for each (seed, iteration)."""
    return [np.random.default_rng([seed, t]).choice(n, size=b, replace=False) for t in range(steps)]


def keep_largest(v, k):
    out = np.zeros_like(v)
    kept = np.argsort(-np.abs(v), kind="stable")[:k]
    out[kept] = v[kept]
    return out


@pytest.mark.parametrize("step_size", [None, 0.02])
def test_stoiht_follows_its_definition(step_size):
    n, d, k, b = 60, 90, 4, 12
    X, y, _ = datasets.make_sparse_signal(n, d, k, snr=20, random_state=0)
    w = np.zeros(d)
    for rows in batches(3, n, b, 25):
        r = X[rows] @ w - y[rows]
        w = keep_largest(w - (step_size or b / n) * (n / b) * X[rows].T @ r, k)
    solver = StoIHT(k, max_iter=25, batch_size=b, step_size=step_size)
    np.testing.assert_allclose(minimize(X, y, solver, "exact", random_state=3).coef, w, atol=1e-10)


def test_stogradmp_follows_its_definition():
    n, d, k, b = 60, 90, 4, 12
    X, y, _ = datasets.make_sparse_signal(n, d, k, snr=3, random_state=1)
    w = np.zeros(d)
    for rows in batches(5, n, b, 8):
        g = X[rows].T @ (X[rows] @ w - y[rows])
        merged = np.union1d(np.argsort(-np.abs(g), kind="stable")[: 2 * k], np.flatnonzero(w))
        w = np.zeros(d)
        w[merged] = np.linalg.lstsq(X[:, merged], y, rcond=None)[0]
        w = keep_largest(w, k)
    solver = StoGradMP(k, max_iter=8, batch_size=b)
    np.testing.assert_allclose(minimize(X, y, solver, "exact", random_state=5).coef, w, atol=1e-10)


@pytest.mark.parametrize(
    "solver", [StoIHT(5, max_iter=600, batch_size=60), StoGradMP(5, max_iter=30, batch_size=60)]
)
def test_recovery_and_reproducibility(solver):
    X, y, w = datasets.make_sparse_signal(200, 300, 5, snr=30, random_state=0)
    results = [minimize(X, y, solver, "exact", random_state=seed) for seed in (0, 0, 1)]
    assert all(metrics.f_measure(w, result.coef) == 1.0 for result in results)
    assert results[0].coef.tobytes() == results[1].coef.tobytes()
    assert results[0].history[0].selected != results[2].history[0].selected


@pytest.mark.parametrize(
    "solver", [StoIHT(5, max_iter=3, batch_size=20), StoGradMP(5, max_iter=3, batch_size=20)]
)
def test_a_batch_reads_only_its_rows(solver):
    X, y, _ = datasets.make_sparse_signal(200, 300, 5, random_state=0)
    result = minimize(X, y, solver, "exact", random_state=0)
    for record in result.history:
        assert 20 * 300 <= record.entries_read <= 20 * 300 + 200 * 10


def test_a_step_that_is_too_long_ends_with_the_best_iterate():
    X, y, _ = datasets.make_sparse_signal(100, 150, 5, random_state=0)
    result = minimize(X, y, StoIHT(5, batch_size=50, step_size=30.0), "exact", random_state=0)
    assert result.status is Status.DIVERGED
    assert result.objective <= 0.5 * (y @ y) * (1 + 1e-12)


def test_tolerance_stops_a_run():
    X, y, _ = datasets.make_sparse_signal(100, 150, 5, snr=np.inf, random_state=0)
    for solver in (StoIHT(5, rtol=1e-6, batch_size=50), StoGradMP(5, rtol=1e-6, batch_size=50)):
        assert minimize(X, y, solver, "exact", random_state=0).status.ok
