"""OMP and matching pursuit against scikit-learn and plain NumPy."""

import numpy as np
import pytest
from sklearn.linear_model import orthogonal_mp

from skpursuit import OMP, MatchingPursuit, Status, minimize


def random_problem(rng):
    n, d = int(rng.integers(4, 60)), int(rng.integers(4, 80))
    X = rng.standard_normal((n, d)) * rng.uniform(0.5, 2.0, d)
    return X, rng.standard_normal(n), int(rng.integers(1, min(n, d) // 2 + 1))


@pytest.mark.parametrize("selector", ["exact", "gram"])
def test_omp_equals_scikit_learn_on_500_problems(selector):
    rng = np.random.default_rng(0)
    for _ in range(500):
        X, y, k = random_problem(rng)
        result = minimize(X, y, OMP(n_nonzero_coefs=k), selector)
        reference = orthogonal_mp(X, y, n_nonzero_coefs=k)
        assert set(result.support) == set(np.flatnonzero(reference))
        np.testing.assert_allclose(result.coef, reference, atol=1e-8)
        assert result.status is Status.COMPLETE


def test_matching_pursuit_follows_its_definition():
    rng = np.random.default_rng(2)
    for _ in range(50):
        X, y, _ = random_problem(rng)
        w = np.zeros(X.shape[1])
        for _ in range(10):
            g = X.T @ (X @ w - y)
            j = np.argmax(np.abs(g))
            w[j] -= g[j] / (X[:, j] @ X[:, j])
        result = minimize(X, y, MatchingPursuit(max_iter=10), "exact")
        np.testing.assert_allclose(result.coef, w, atol=1e-10)
