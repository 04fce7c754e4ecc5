"""Greedy selection: which rows, how many entries, what the answer is called."""

import numpy as np
import pytest
import scipy.sparse as sp

from skpursuit import OMP, Budget, Greedy, Importance, Stability, Uniform, as_design, minimize
from skpursuit.selectors.row_sampling import argsort_descending

from ..support.asking import ask, by_energy, prepare
from ..support.data import reads


def problem(n=200, d=40, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * rng.exponential(size=(n, 1))
    return X, rng.standard_normal(n)


@pytest.mark.parametrize("layout", [np.ascontiguousarray, np.asfortranarray, sp.csr_array, sp.csc_array])
def test_rows_are_added_by_energy(layout):
    X, r = problem()
    for share in (0.05, 0.3, 0.8):
        rows = by_energy(X, r)[: int(np.ceil(share * 200))]
        answer = ask(Greedy(stop=Budget(share)), layout(X), r, k=40)
        partial = X[rows].T @ r[rows]
        assert answer.columns.tolist() == np.argsort(-np.abs(partial)).tolist()
        np.testing.assert_allclose(answer.gradient, partial[answer.columns], rtol=1e-12)
        assert answer.certificate == "heuristic"
        assert answer.entries_read == len(rows) * 40


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_counts_of_dense_rows(dtype):
    X, r = problem()
    design = as_design(np.asfortranarray(X, dtype=dtype))
    prepare(Greedy(), design)
    before = reads(design).prepared_entries
    for share, rows in ((0.1, 20), (0.5, 100)):
        for kind in (Greedy, Uniform, Importance):
            answer = ask(kind(stop=Budget(share)), design, r)
            assert answer.entries_read == rows * 40
            assert answer.bytes_read == answer.entries_read * np.dtype(dtype).itemsize
    assert reads(design).prepared_entries == before  # the second layout is made once


def test_counts_of_sparse_rows_are_stored_entries():
    X, r = problem()
    X[np.abs(X) < 1] = 0
    rows = by_energy(X, r)[:20]
    answer = ask(Greedy(stop=Budget(0.1)), sp.csr_array(X), r)
    assert answer.entries_read == np.count_nonzero(X[rows])
    assert answer.bytes_read == answer.entries_read * (8 + 4)


@pytest.mark.parametrize("n", [1, 2, 7, 8, 1000, 70_000])
@pytest.mark.parametrize("kind", ["spread", "ties", "neighbours", "extremes"])
def test_decreasing_is_a_stable_sort(n, kind):
    rng = np.random.default_rng(n)
    values = {
        "spread": rng.exponential(size=n),
        "ties": rng.integers(0, 9, n).astype(float),
        "neighbours": 1.0 + np.finfo(float).eps * rng.integers(0, 9, n),  # differ in the last bits alone
        "extremes": rng.choice([0.0, 5e-324, 1e-310, 1.0, 1e308, np.inf], n),
    }[kind]
    assert argsort_descending(values).tolist() == np.argsort(-values, kind="stable").tolist()


def test_ties_go_to_the_lowest_index():
    rng = np.random.default_rng(1)
    X, r = rng.choice([-1.0, 1.0], (50, 9)), rng.choice([-2.0, 2.0], 50)  # rows of one energy
    answer = ask(Greedy(stop=Budget(0.2)), X, r, k=9)
    assert answer.gradient.tolist() == (X[:10].T @ r[:10])[answer.columns].tolist()
    X, r = problem()
    X[:, [30, 12, 7]] = 10 * X[:, [3]]
    for stop in (Budget(0.2), Budget(1.0), Stability()):
        for kind in (Greedy, Uniform, Importance):
            answer = ask(kind(stop=stop), X, r, k=3)
            assert answer.columns.tolist() == [7, 12, 30]


def test_a_zero_residual_reads_nothing():
    X, _ = problem()
    for selector in (Greedy(), Importance()):
        answer = ask(selector, X, np.zeros(200))
        assert (answer.columns.tolist(), answer.entries_read) == ([0], 0)


def test_a_run_reports_the_sum_of_its_selections():
    X, _ = problem()
    y = X[:, :4].sum(axis=1)
    for selector in ("exact", "greedy", "uniform", "importance", "halving", "halving-random", "reject"):
        result = minimize(X, y, OMP(n_nonzero_coefs=6), selector, random_state=0)
        assert result.entries_read == sum(record.entries_read for record in result.history) > 0
        assert result.bytes_read == 8 * result.entries_read
        assert selector != "exact" or result.entries_read == result.n_iter * X.size
        again = minimize(as_design(X), y, OMP(n_nonzero_coefs=6), selector, random_state=0)
        assert again.support.tolist() == result.support.tolist()
        assert again.entries_read == result.entries_read
