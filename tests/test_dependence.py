"""A pursuit that has spanned what X can span ends there, however many columns are left."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.linalg import aslinearoperator

import skpursuit as sk
from skpursuit.fit.growing import dependent_columns
from skpursuit.loop.run import make_run
from skpursuit.solvers.matching_pursuit import MAX_REJECTIONS

LOSSES = ("squared", "logistic", "huber", "poisson")
SOURCES = (np.ascontiguousarray, np.asfortranarray, csr_array, aslinearoperator)
MANY = [*range(50), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(50, 600))]


def of_rank(rng, n, d, rank):
    """Columns of wildly different sizes in a space of `rank` dimensions."""
    X = rng.standard_normal((n, rank)) @ rng.standard_normal((rank, d))
    return X * 10.0 ** rng.uniform(-2.0, 2.0, d)


def labels(rng, n, loss):
    """Targets that the zero model does not fit."""
    odd = np.arange(n) % 2
    if loss == "logistic":
        return 2.0 * odd - 1.0
    return rng.poisson(2.0, n) + 2.0 * odd if loss == "poisson" else rng.standard_normal(n)


def left_over(X, support):
    """Norm of what the support leaves of each column, relative to the column."""
    Q = np.linalg.qr(X[:, support])[0]
    rest = X - Q @ (Q.T @ X)
    return np.linalg.norm(rest, axis=0) / np.linalg.norm(X, axis=0)


@pytest.mark.parametrize("seed", MANY)
def test_a_run_ends_once_its_support_spans_all_columns(seed):
    rng = np.random.default_rng(seed)
    n, loss = int(rng.integers(2, 16)), LOSSES[seed % 4]
    rank = n if rng.random() < 0.4 else int(rng.integers(1, n + 1))
    d = int(rng.integers(10 * n, 20 * n))
    X = of_rank(rng, n, d, rank)
    weights = rng.integers(1, 3, n) * 1.0 if rng.random() < 0.3 else None
    solver = sk.OMP(d, ridge=0.0 if loss == "squared" and seed % 3 else 0.1)
    selectors = ("exact", "auto") if loss != "squared" else ("exact", "auto", "gram", "certified")
    make = SOURCES[seed // 4 % 4]
    chosen = "exact" if make is aslinearoperator else selectors[seed % len(selectors)]
    result = sk.minimize(make(X), labels(rng, n, loss), solver, chosen, loss, sample_weight=weights)
    assert result.status in (sk.Status.OPTIMAL, sk.Status.ZERO_RESIDUAL)
    assert len(result.support) <= rank
    assert result.n_iter <= rank + MAX_REJECTIONS + 1
    if result.status is sk.Status.OPTIMAL:
        assert len(result.support) == rank
        assert left_over(X, result.support).max() < 1e-9
    seen = np.append(result.support, result.dropped)
    assert len(np.unique(seen)) == len(seen)


@pytest.mark.parametrize("seed", MANY)
def test_all_columns_that_depend_are_found_and_no_others(seed):
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(4, 30)), int(rng.integers(1, 4))
    kept = rng.standard_normal((n, k))
    inside = kept @ rng.standard_normal((k, 15))
    outside = kept @ rng.standard_normal((k, 15))
    outside += rng.standard_normal((n, 15)) * 10.0 ** -rng.uniform(0.0, 11.5, 15)
    X = np.hstack([kept, inside, outside, np.zeros((n, 1))])
    weights = rng.uniform(0.5, 2.0, n) if seed % 2 else None
    loss = "huber" if seed % 2 else "squared"
    run = make_run(
        sk.as_design(X), rng.standard_normal(n), sk.OMP(k, always_include=range(k)), "exact", loss, weights
    )
    found = dependent_columns(run.problem, run.state)
    assert found.tolist() == [*range(k, k + 15), k + 30]


def test_the_look_at_all_columns_is_counted():
    rng = np.random.default_rng(0)
    X = of_rank(rng, 20, 300, 6)
    result = sk.minimize(X, rng.standard_normal(20), sk.OMP(50), "exact")
    assert result.entries_read > result.n_iter * X.size


@pytest.mark.parametrize("k", [39, 40, 41, 400, None])
@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_a_classifier_has_no_cliff_at_the_number_of_samples(loss, k):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 1600)), np.arange(40) % 2
    model = sk.PursuitClassifier(loss=loss, n_nonzero_coefs=k).fit(X, y)
    assert model.n_iter_ <= 40 + MAX_REJECTIONS
    assert model.status_.ok
    assert model.score(X, y) == 1.0


@pytest.mark.parametrize(("n", "d"), [(5, 8), (5, 40), (12, 400), (60, 30)])
def test_by_default_no_more_coefficients_than_rows_or_columns(n, d):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((n, d)), rng.standard_normal(n)
    for solver in (sk.OMP(), sk.CoSaMP(), sk.GraSP(), sk.StoIHT()):
        run = make_run(sk.as_design(X), y, solver, "exact", "squared")
        assert solver.sparsity(run.problem) <= min(n, d)
    for name in ("omp", "mp", "cosamp", "grasp"):
        for tol in (None, 1e-30):
            assert len(sk.PursuitRegressor(solver=name, tol=tol).fit(X, y).support_) <= min(n, d)
    coder = sk.PursuitCoder(rng.standard_normal((d, n)), n_nonzero_coefs=None)
    codes = coder.fit_transform(rng.standard_normal((3, n)))
    assert np.diff(codes.indptr).max() <= min(n, d)


def test_a_column_that_is_left_by_rounding_alone_is_not_an_error():
    rng = np.random.default_rng(0)
    X, y = of_rank(rng, 30, 500, 5) + 1e6, rng.standard_normal(30)
    model = sk.PursuitRegressor(n_nonzero_coefs=300).fit(X, y)
    assert model.n_iter_ <= 40
    assert len(model.support_) <= 29
