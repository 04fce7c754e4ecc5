"""Proofs against brute force: no bound above the best model, and "optimal" is the best model."""

from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp

from skpursuit import OMP, PursuitRegressor, certify, minimize
from skpursuit.fit.newton import fit_outputs
from skpursuit.problem.losses import Logistic
from skpursuit.problem.problem import SampleLosses


def columns(rng, kind, n, d):
    """Gaussian, neighbours correlated, few factors, near-duplicates; in units over four decades."""
    X = rng.standard_normal((n, d))
    if kind == 1:
        for j in range(1, d):
            X[:, j] = 0.9 * X[:, j - 1] + np.sqrt(0.19) * X[:, j]
    elif kind == 2:
        X = rng.standard_normal((n, 3)) @ rng.standard_normal((3, d)) + 0.5 * X
    elif kind == 3:
        for j in range(1, d, 2):
            X[:, j] = X[:, j - 1] + 1e-3 * X[:, j]
    return X * 10.0 ** rng.uniform(-2, 2, d)


def check(proof, best, scale):
    for k, value in best.items():
        at, slack = k - 1, 1e-9 * value + 1e-13 * scale
        assert proof.lower_bound[at] <= value + slack, k
        assert proof.objective[at] >= value - 1e-8 * value - 1e-11 * scale, k
        assert proof.status[at] != "optimal" or proof.objective[at] <= value * (1 + 2e-6) + slack, k


def squared_problem(seed, largest):
    rng = np.random.default_rng([7, seed])
    d, ridge = int(rng.integers(4, largest + 1)), float(rng.choice([0, 0, 1e-3, 1e-1, 1]))
    n = int(rng.integers(d + 3, 4 * d)) if ridge == 0 else int(rng.integers(max(3, d // 2), 4 * d))
    X, w, intercept = columns(rng, seed % 4, n, d), np.zeros(d), bool(rng.integers(2))
    some = rng.choice(d, int(rng.integers(1, d)), replace=False)
    w[some] = rng.standard_normal(len(some))
    signal = X / X.std(axis=0) @ w
    y = signal + rng.standard_normal(n) * signal.std() * rng.choice([0.1, 0.5, 2])
    path = rng.permutation(d)[: int(rng.integers(1, d + 1))]
    proof = certify(X, y, path, ridge=ridge, fit_intercept=intercept, max_nodes=int(rng.choice([1, 5, 200])))
    A, z = (X - X.mean(axis=0), y - y.mean()) if intercept else (X, y)
    # By orthogonal triangles: normal equations of near-duplicates are wrong in the eighth digit.
    A, z, best = np.vstack([A, np.sqrt(ridge * n) * np.eye(d)]), np.append(z, np.zeros(d)), {}
    for k in range(1, len(path) + 1):
        models = np.array(list(combinations(range(d), k)))
        found = []
        for some in np.array_split(models, len(models) // 2000 + 1):
            Q = np.linalg.qr(A.T[some].transpose(0, 2, 1))[0]
            rest = z - np.matvec(Q, np.vecmat(z, Q))
            found.append(0.5 * np.vecdot(rest, rest).min())
        best[k] = min(found)
    check(proof, best, 0.5 * z @ z)
    return proof


def logistic_problem(seed, largest):
    rng = np.random.default_rng([8, seed])
    d, n = int(rng.integers(4, largest + 1)), int(rng.integers(15, 80))
    X, intercept, ridge = columns(rng, seed % 4, n, d), bool(seed % 2), float(rng.choice([1e-3, 1e-2, 1e-1]))
    X /= X.std(axis=0)
    y = np.where(X[:, :3] @ rng.standard_normal(3) + 0.5 + rng.logistic(size=n) > 0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    path = rng.permutation(d)[: int(rng.integers(1, min(d, 4) + 1))]
    nodes = int(rng.choice([1, 5, 100]))
    proof = certify(X, y, path, loss="logistic", ridge=ridge, fit_intercept=intercept, max_nodes=nodes)
    A, best = np.vstack([X.T, np.ones(n)]), {}
    for k in range(1, len(path) + 1):
        values = []
        for some in combinations(range(d), k):
            used, r = (*some, d)[: k + intercept], np.array([n * ridge] * k + [0.0])[: k + intercept]
            w, _, (at,) = fit_outputs(
                A[list(used)], [SampleLosses(y, Logistic())], np.zeros(len(used)), None, r, 1e-15, 300
            )
            values.append(at.value + 0.5 * r @ (w * w))
        best[k] = min(values)
    check(proof, best, n * np.log(2))
    return proof


@pytest.mark.parametrize(
    ("problem", "seeds", "largest"),
    [
        (squared_problem, range(40), 9),
        (logistic_problem, range(12), 7),
        pytest.param(squared_problem, range(1000, 2000), 16, marks=pytest.mark.slow),
        pytest.param(logistic_problem, range(1000, 1200), 9, marks=pytest.mark.slow),
    ],
)
def test_bounds_hold(problem, seeds, largest):
    proofs = [problem(seed, largest) for seed in seeds]
    assert sum(proof.status.count("optimal") for proof in proofs) > len(seeds) / 3


def problem(n=60, d=12, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, X[:, 2] - X[:, 5] + 0.5 * X[:, 7] + rng.standard_normal(n)


def test_a_better_model_is_found():
    """Two columns that sum to y beside one that correlates with it more than either."""
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 100))
    X, y = np.column_stack([a, b, a + b + 0.5 * rng.standard_normal(100)]), a + b
    result = minimize(X, y, OMP(n_nonzero_coefs=2))
    proof = certify(X, y, result, ridge=1e-3)
    assert result.support[0] == 2
    assert sorted(proof.support[1]) == [0, 1]
    assert proof.objective[1] < proof.path_objective[1]
    assert proof.status == ["optimal", "optimal"]
    assert "is known" in proof.sentence


def test_sources_give_the_same_proof(tmp_path):
    X, y = problem()
    np.save(tmp_path / "X.npy", X)
    path = [2, 5, 7, 1]
    known = certify(X, y, path)
    assert known.status[-1] == "optimal"
    for other in (np.asfortranarray(X), sp.csr_array(X), [X[:20], X[20:]], str(tmp_path / "X.npy")):
        np.testing.assert_allclose(certify(other, y, path).lower_bound, known.lower_bound, rtol=1e-9)
    single = certify(X.astype(np.float32), y, path)
    np.testing.assert_allclose(single.lower_bound, known.lower_bound, rtol=1e-5)


def test_a_limit_on_nodes_or_time_leaves_a_bound():
    X, y = problem(300, 60)
    path = minimize(X, y, OMP(n_nonzero_coefs=8)).support
    full, root = certify(X, y, path), certify(X, y, path, max_nodes=1)
    none = certify(X, y, path, time_limit=0.0)
    assert (root.lower_bound <= full.lower_bound * (1 + 1e-9)).all()
    assert (none.lower_bound <= root.lower_bound).all()
    assert none.status == ["uninformative"] * 8
    assert "nothing is proven" in none.sentence
    assert (full.closed[:3] > 0.9).all()
    assert np.array_equal(full.gap, (full.objective - full.lower_bound) / full.objective)


def test_an_estimator_brings_its_ridge_and_intercept():
    X, y = problem()
    model = PursuitRegressor(n_nonzero_coefs=3, ridge=0.1, scale="column").fit(X + 3.0, y)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    by_hand = certify(Z, y - y.mean(), model.support_, ridge=0.1)
    np.testing.assert_allclose(certify(X + 3.0, y, model).lower_bound, by_hand.lower_bound, rtol=1e-9)


X, Y = problem()


@pytest.mark.parametrize(
    ("given", "options", "error", "message"),
    [
        ((X, Y, []), {}, ValueError, "path has no columns; give at least one"),
        ((X, Y, [1, 2, 1]), {}, ValueError, "distinct column numbers"),
        ((X, Y, [1, 12]), {}, ValueError, "path names column 12, but X has 12 columns"),
        ((X, Y[:-1], [1]), {}, ValueError, "y has 59 rows and X has 60"),
        ((np.where(X > 2, np.nan, X), Y, [1]), {}, ValueError, "NaN or infinity"),
        ((X, np.where(Y > 1, np.nan, Y), [1]), {}, ValueError, "y contains NaN"),
        ((X[:12], Y[:12], [1]), {"fit_intercept": True}, ValueError, "more rows than columns"),
        ((X[:, [0, 1, 1]], Y, [1]), {}, ValueError, "do not depend on each other"),
        ((X, np.sign(Y), [1]), {"loss": "logistic"}, ValueError, "ridge=0 needs squared loss"),
        ((X, Y, [1]), {"loss": "huber", "ridge": 1.0}, ValueError, "for squared and logistic loss"),
        ((X, np.c_[Y, Y], [1]), {}, ValueError, "models of one target"),
        ((np.eye(3, 5001), Y[:3], [1]), {}, ValueError, "5001 columns, more than 5000; choose columns"),
        ((X, Y, [1]), {"max_nodes": 0}, ValueError, "max_nodes must be at least 1"),
        ((X, Y, [1]), {"ridge": -1.0}, ValueError, "ridge must be at least 0"),
        ((X, Y, 3), {}, TypeError, "path must be a list of column numbers"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(given, options, error, message):
    with pytest.raises(error, match=message):
        certify(*given, **options)
