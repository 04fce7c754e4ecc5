"""Fits on the support: degenerate data, non-negativity, forced columns, weights, general losses."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import nnls

from skpursuit import OMP, Status, minimize

RNG = np.random.default_rng(5)


@pytest.mark.parametrize("selector", ["exact", "gram"])
def test_duplicate_zero_and_collinear_columns(selector):
    X = RNG.standard_normal((30, 8))
    X[:, 4] = X[:, 1]
    X[:, 5] = 0.0
    X[:, 6] = X[:, 0] + X[:, 1]
    y = RNG.standard_normal(30)
    result = minimize(X, y, OMP(n_nonzero_coefs=8), selector)
    assert np.isfinite(result.coef).all()
    assert len(result.support) == np.linalg.matrix_rank(X) == 5
    best = y - X @ np.linalg.lstsq(X, y, rcond=None)[0]
    np.testing.assert_allclose(y - X @ result.coef, best, atol=1e-9)


def test_ties_go_to_the_lowest_index_in_every_layout():
    for trial in range(50):
        rng = np.random.default_rng(trial)
        base = rng.standard_normal((37, 6))
        order = rng.permutation(np.repeat(np.arange(6), 4))
        X = base[:, order]
        y = rng.standard_normal(37)
        for source in (X, np.asfortranarray(X), X.astype(np.float32), sp.csr_array(X), sp.csc_array(X)):
            result = minimize(source, y, OMP(n_nonzero_coefs=3), "exact")
            for j in result.support:
                assert j == np.flatnonzero(order == order[j])[0]


@pytest.mark.parametrize("trial", range(20))
def test_positive_is_non_negative_least_squares_on_the_support(trial):
    rng = np.random.default_rng(trial)
    X, y = rng.standard_normal((25, 15)), rng.standard_normal(25)
    result = minimize(X, y, OMP(n_nonzero_coefs=6, positive=True))
    assert (result.coef >= 0).all()
    np.testing.assert_allclose(result.coef[result.support], nnls(X[:, result.support], y)[0], atol=1e-9)
    full = minimize(X, y, OMP(n_nonzero_coefs=15, positive=True))
    assert full.status in (Status.OPTIMAL, Status.COMPLETE)
    np.testing.assert_allclose(full.coef, nnls(X, y)[0], atol=1e-8)
    n, d = int(rng.integers(2, 7)), int(rng.integers(2, 14))
    X, y, first = rng.standard_normal((n, d)), rng.standard_normal(n), rng.permutation(d)[: trial % 2]
    X[:, rng.integers(d)] = -X[:, rng.integers(d)]  # more columns than rows, and opposite ones
    few = minimize(X, y, OMP(d, positive=True, always_include=first), "exact")
    assert few.status.ok
    assert few.objective <= 0.5 * nnls(X, y)[1] ** 2 * (1 + 1e-9) + 1e-12


def test_positive_fits_have_the_same_bits_in_all_units_of_the_columns():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        n, d = int(rng.integers(2, 20)), int(rng.integers(2, 50))
        X, y, powers = rng.standard_normal((n, d)), rng.standard_normal(n), rng.integers(-30, 31, d)
        solver = OMP(d, positive=True, always_include=range(d))
        expected, found = minimize(X, y, solver).coef, minimize(np.ldexp(X, powers), y, solver).coef
        np.testing.assert_array_equal(np.ldexp(found, powers), expected)


def far_means(seed, n, d, most):
    """Columns with means up to 10^most, nearly all parallel to the constant; d > n, so they depend."""
    rng = np.random.default_rng(seed)
    means = 10.0 ** rng.uniform(0, most, d) * rng.choice([-1.0, 1.0, 0.0], d)
    return rng.standard_normal((n, d)) + means, rng.standard_normal(n)


def test_positive_fits_prefer_columns_that_gain_to_large_ones():
    """Large columns cancel each other, and of the sum of theirs float64 keeps too few digits."""
    runs = [minimize(*far_means(seed, 18, 48, 12.5), OMP(48, positive=True)) for seed in range(20)]
    assert sum(run.status.ok for run in runs) >= 8


@pytest.mark.parametrize(("seed", "n", "d", "most"), [(187, 24, 48, 12.5), (544, 24, 60, 11.0)])
def test_positive_fits_end_however_often_columns_come_and_go(seed, n, d, most):
    X, y = far_means(seed, n, d, most)
    result = minimize(X, y, OMP(d, positive=True))
    assert (result.coef >= 0).all()
    rounding = np.finfo(float).eps * np.linalg.norm(X, axis=0) @ result.coef  # of the predictions
    assert result.objective < 10 * rounding**2


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, sp.csc_array])
def test_weights_are_repeated_samples(kind):
    X, y = RNG.standard_normal((20, 9)), RNG.standard_normal(20)
    counts = RNG.integers(0, 4, 20)
    repeated = np.repeat(np.arange(20), counts)
    for loss, target in (("squared", y), ("logistic", np.sign(y)), ("huber", y), ("poisson", np.abs(y))):
        weighted = minimize(kind(X), target, OMP(n_nonzero_coefs=3), loss=loss, sample_weight=counts)
        plain = minimize(X[repeated], target[repeated], OMP(n_nonzero_coefs=3), loss=loss)
        assert weighted.support.tolist() == plain.support.tolist()
        np.testing.assert_allclose(weighted.coef, plain.coef, atol=1e-6)
        assert weighted.objective == pytest.approx(plain.objective, rel=1e-9)


def test_separable_classes_need_the_ridge_to_stay_small():
    X = RNG.standard_normal((40, 10))
    y = np.sign(X[:, 2])
    plain = minimize(X, y, OMP(n_nonzero_coefs=2), loss="logistic")
    ridged = minimize(X, y, OMP(n_nonzero_coefs=2, ridge=1e-3), loss="logistic")
    assert np.isfinite(plain.coef).all()
    assert 0 < ridged.coef[2] < 100
    assert np.abs(plain.coef).max() > np.abs(ridged.coef).max()


def test_huber_fits_of_noise_free_targets_end_as_those_of_squared_loss_do():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 60))
    y = X[:, :4] @ np.array([5.0, -4.0, 3.0, 2.0])
    result = minimize(X, y, OMP(30), loss="huber")
    assert result.status.name == "ZERO_RESIDUAL"
    assert sorted(result.support) == [0, 1, 2, 3]
