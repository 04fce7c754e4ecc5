"""Matching pursuit with a small step: L2 boosting."""

import numpy as np
import pytest

from skpursuit import Huber, MatchingPursuit, datasets, minimize


def boosted(X, y, steps, step):
    w, r = np.zeros(X.shape[1]), y.copy()
    for _ in range(steps):
        g = X.T @ r
        j = int(np.argmax(np.abs(g)))
        move = step * g[j] / (X[:, j] @ X[:, j])
        w[j] += move
        r = r - move * X[:, j]
    return w


@pytest.mark.parametrize("step", [0.1, 1.0])
@pytest.mark.parametrize("selector", ["exact", "gram", "certified", "auto"])
def test_it_equals_the_plain_algorithm(selector, step):
    for seed in range(6):
        X, y, _ = datasets.make_sparse_signal(60, 40, 5, snr=3.0, random_state=seed)
        steps = 200 if step < 1 else 30
        result = minimize(X, y, MatchingPursuit(step_size=step, max_iter=steps), selector)
        np.testing.assert_allclose(result.coef, boosted(X, y, steps, step), rtol=1e-8, atol=1e-10)
        assert all(a.objective >= b.objective for a, b in zip(result.history, result.history[1:]))


def test_gram_columns_are_read_and_x_is_not():
    X, y, _ = datasets.make_sparse_signal(100, 80, 5, snr=3.0, random_state=0)
    result = minimize(X, y, MatchingPursuit(step_size=0.1, max_iter=300), "gram")
    assert result.n_iter == 300
    assert result.entries_read < 12 * X.size
    assert result.stored_bytes < 300 * 3 * 8 * 80


@pytest.mark.parametrize("size", [1e-30, 1e30])
def test_a_step_without_curvature_gains_for_columns_of_any_size(size):
    """Huber's loss is straight far from the targets."""
    X, y = np.array([[1.0, 2.0], [2.0, -1.0], [1.0, 1.0]]), np.array([50.0, 90.0, 60.0])
    plain, scaled = (minimize(A, y, MatchingPursuit(max_iter=5), loss="huber") for A in (X, X * size))
    assert scaled.objective == pytest.approx(plain.objective, rel=1e-9)
    assert plain.objective < 0.99 * Huber().value(y, np.zeros(3)).sum()
