"""The short ways of orthogonal matching pursuit against the loop of `minimize`."""

import numpy as np
import pytest

from skpursuit import OrthogonalMatchingPursuit, as_design
from skpursuit.estimators.omp_functions import ColumnPursuit, GramPursuit, choose_backend, omp_path


def problem(seed, n, d, order="C"):
    rng = np.random.default_rng(seed)
    X = np.asarray(rng.standard_normal((n, d)) + rng.standard_normal(d) * 3, order=order)
    y = X[:, :3] @ [3.0, -2.0, 1.0] + 0.5 * rng.standard_normal(n) + 7
    return X, y


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("n", "d", "k"), [(600, 8, 5), (300, 40, 10), (30, 200, 20), (25, 60, 20)])
@pytest.mark.parametrize("seed", range(4))
def test_short_ways_equal_the_loop(n, d, k, seed, weighted, order):
    X, y = problem(seed, n, d, order)
    weights = np.where(np.arange(n) < 2, 0.0, 1.0 + np.arange(n) % 3) if weighted else None
    assert choose_backend(as_design(X), k, "auto", "auto") != "loop"
    fits = [
        OrthogonalMatchingPursuit(n_nonzero_coefs=k, selector=name).fit(X, y, weights)
        for name in ("auto", "exact")
    ]
    assert fits[0].coef_.nonzero()[0].tolist() == fits[1].coef_.nonzero()[0].tolist()
    np.testing.assert_allclose(fits[0].coef_, fits[1].coef_, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(fits[0].intercept_, fits[1].intercept_, rtol=1e-8)


def test_both_ways_are_taken():
    cases = [(600, 8, 10, 0), (30, 500, 10, 0), (50, 1000, 200, 0), (50, 1000, 200, 5)]  # steps and folds
    ways = [choose_backend(as_design(problem(0, n, d)[0]), k, "auto", "auto", f) for n, d, k, f in cases]
    assert ways == ["gram", "columns", "gram", "columns"]


@pytest.mark.parametrize("pursue", ["gram", "columns"])
def test_ties_and_dependent_columns(pursue):
    """Of equal columns the first wins; a dependent column is passed over, a zero one never taken."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((40, 4))
    columns = np.column_stack([A[:, 0], A[:, 0], A[:, 1], np.zeros(40), A[:, 0] + A[:, 1], A[:, 2]]).T.copy()
    y = 2 * A[:, 0] + A[:, 1] + 0.1 * A[:, 2]
    if pursue == "gram":
        path = omp_path(GramPursuit(columns @ columns.T, columns @ y, 6))
    else:
        path = omp_path(ColumnPursuit(columns, y, 6))
    assert 1 not in path.support.tolist()
    assert 3 not in path.support.tolist()
    assert len(path) == 3
    assert path.ended_early
    coef = np.zeros(6)
    coef[path.support] = path.coef(len(path))
    np.testing.assert_allclose(coef @ columns, y, atol=1e-10)


@pytest.mark.parametrize("seed", range(40))
def test_products_in_float32_change_no_bit(seed, monkeypatch):
    """Also with copies, with columns that only float64 tells apart, and with y in their span."""
    rng = np.random.default_rng(seed)
    n, d, k = 30, 80, 29
    sizes = rng.integers(-60, 60) + rng.uniform(0, seed % 3, (d, 1))
    columns = rng.standard_normal((d, n)) * 10.0**sizes
    columns[40:60] = columns[:20] * (1.0 + rng.choice([0.0, 1e-9, -1e-9, 1e-15], (20, 1)))
    columns[60:65] += 1e-9 * columns[1] + columns[2]
    y = columns[:6].sum(axis=0) + (seed % 2) * rng.standard_normal(n)
    paths, matrices = [], (columns, np.asfortranarray(columns))
    for least in (0, columns.size + 1):
        monkeypatch.setattr("skpursuit.estimators.omp_functions.SINGLE_ENTRIES", least)
        pursuits = [ColumnPursuit(matrix, y, k) for matrix in matrices]
        assert [pursuit.single is not None for pursuit in pursuits] == [least == 0] * 2
        paths.append([omp_path(pursuit) for pursuit in pursuits])
    for single, double in zip(*paths):
        np.testing.assert_array_equal(single.support, double.support)
        np.testing.assert_array_equal(single.L, double.L)
        np.testing.assert_array_equal(single.projections, double.projections)


@pytest.mark.parametrize("seed", range(20))
def test_near_ties_of_far_columns_are_told_apart(seed):
    """Means of 1e6 leave products of BLAS in doubt where those in a fixed order differ."""
    rng = np.random.default_rng(seed)
    twin = rng.standard_normal((12, 1)) + 1e-7 * rng.standard_normal((12, 20))
    X, y = 1e6 + twin, rng.standard_normal(12)
    path = omp_path(ColumnPursuit(np.ascontiguousarray(X.T), y, 1))
    scores = np.abs((X.astype(np.longdouble) * y[:, None]).sum(axis=0))
    assert scores[path.support[0]] > scores.max() - 2e-8  # the rounding of one product


@pytest.mark.parametrize("bad", [np.nan, 1e130])
@pytest.mark.parametrize("shape", [(600, 8), (30, 200)])
def test_numbers_that_are_refused_are_named_by_their_column(shape, bad):
    X, y = problem(0, *shape)
    X[4, 3] = bad
    for fit_intercept in (True, False):
        with pytest.raises(ValueError, match="column 3"):
            OrthogonalMatchingPursuit(fit_intercept=fit_intercept).fit(X, y)
