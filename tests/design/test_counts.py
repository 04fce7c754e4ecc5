"""Entries and bytes read are exact: an instrumented matrix reports what was really touched."""

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator

from skpursuit import OMP, as_design, minimize

from ..support import data
from ..support.data import Instrumented, read_by, reads, view, with_intercept


def instrumented(order="C"):
    return Instrumented(np.asarray(np.random.default_rng(0).standard_normal((40, 30)), order=order))


def test_verbs_count_what_they_touch_or_what_their_kernels_are_given():
    for order in "CF":
        design = instrumented(order)
        rows, cols = np.arange(7), np.array([1, 4, 9])
        for chosen in (None, np.array([1, 4, 9])):
            read = read_by(design, data.product, np.ones(40), chosen)
            touched = design.touched()
            assert read.entries == touched
            assert read.bytes == 8 * touched
        read = read_by(design, data.norms, 0)
        assert design.touched() == read.prepared_entries == 1200
        data.columns(design, cols + 10)
        data.columns(design, cols + 10)
        assert design.touched() == 3 * 40

        def added(width, cols=None, rows=rows, design=design):
            return read_by(design, data.add_rows, rows, np.ones(7), np.zeros(width), cols).entries

        assert added(30) == 7 * 30
        assert added(3, cols) == (7 * 30 if order == "C" else 40 * 3)
        assert added(1, cols[:1]) == (7 * 1 if order == "C" else 40 * 1)


def test_sparse_counts_are_stored_entries():
    X = sp.random_array((50, 20), density=0.2, rng=np.random.default_rng(1), format="csr")
    for design in (as_design(X), as_design(X.tocsc()), view(X, centre=np.ones(20))):
        assert read_by(design, data.product, np.ones(50)).entries == X.nnz
        some = read_by(design, data.product, np.ones(50), np.array([3, 7]))
        assert some.entries == X[:, [3, 7]].nnz
        rows = read_by(design, data.add_rows, np.array([0, 9]), np.ones(2), np.zeros(20))
        assert rows.entries == X[[0, 9]].nnz
        assert rows.bytes == X[[0, 9]].nnz * (8 + 4)


def test_a_run_reports_the_sum_of_its_selections():
    rng = np.random.default_rng(2)
    X, y = rng.standard_normal((40, 30)), rng.standard_normal(40)
    result = minimize(X, y, OMP(n_nonzero_coefs=5), "exact")
    assert result.entries_read == 5 * 40 * 30 == sum(r.entries_read for r in result.history)
    assert result.bytes_read == 8 * result.entries_read
    twice = minimize(as_design(X), y, OMP(n_nonzero_coefs=5), "exact")
    assert twice.entries_read == result.entries_read


def test_single_entries_are_counted_as_what_a_source_must_read():
    X = np.random.default_rng(0).standard_normal((40, 30))
    rows, cols = np.arange(5), np.array([3, 0, 7, 29, 3])
    for source, entries in ((X, 5), (sp.csr_array(X), 5), (aslinearoperator(X), X.size)):
        for design in (as_design(source), view(source)):
            np.testing.assert_allclose(data.entries(design, rows, cols), X[rows, cols], atol=1e-12)
            assert reads(design)[:2] == (entries, 8 * entries)
    design = with_intercept(X)
    np.testing.assert_array_equal(
        data.entries(design, rows[:3], np.array([2, 30, 1])), [X[0, 2], 1.0, X[2, 1]]
    )
    assert reads(design).entries == 2


def test_a_view_goes_on_counting_where_the_design_was():
    design = as_design(np.ones((4, 3)))
    data.product(design, np.ones(4))
    for other in (view(design), with_intercept(design)):
        assert reads(design).entries == reads(other).entries == 12
