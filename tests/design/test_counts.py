"""Entries and bytes read are exact: an instrumented matrix reports what was really touched."""

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator

from skpursuit import OMP, as_design, minimize
from skpursuit.design import AffineDesign, InterceptDesign
from skpursuit.design.dense import DenseDesign


class Touched(np.ndarray):
    """An array that counts the entries every indexing of it hands out."""

    def __getitem__(self, key):
        part = np.asarray(self)[key]
        self.log.append(part.size)
        return part


class Instrumented(DenseDesign):
    def __init__(self, X):
        super().__init__(X)
        self.X = X.view(Touched)
        self.X.log = []

    def touched(self):
        total = sum(self.X.log)
        self.X.log.clear()
        return total


def instrumented(order="C"):
    return Instrumented(np.asarray(np.random.default_rng(0).standard_normal((40, 30)), order=order))


def test_verbs_count_what_they_touch_or_what_their_kernels_are_given():
    for order in "CF":
        design = instrumented(order)
        rows, cols = np.arange(7), np.array([1, 4, 9])
        verbs = [
            lambda d: d.correlate(np.ones(40)),
            lambda d: d.correlate(np.ones(40), np.array([1, 4, 9])),
        ]
        for verb in verbs:
            before = design.reads.entries, design.reads.bytes
            verb(design)
            touched = design.touched()
            assert design.reads.entries - before[0] == touched
            assert design.reads.bytes - before[1] == 8 * touched
        prepared = design.reads.prepared_entries
        design.norms(0)
        assert design.touched() == design.reads.prepared_entries - prepared == 1200
        design.columns(cols + 10)
        design.columns(cols + 10)
        assert design.touched() == 3 * 40
        before = design.reads.entries
        design.accumulate(rows, np.ones(7), np.zeros(30))
        assert design.reads.entries - before == 7 * 30
        before = design.reads.entries
        design.accumulate(rows, np.ones(7), np.zeros(3), cols)
        assert design.reads.entries - before == (7 * 30 if order == "C" else 40 * 3)
        before = design.reads.entries
        design.accumulate(rows, np.ones(7), np.zeros(1), cols[:1])
        assert design.reads.entries - before == (7 * 1 if order == "C" else 40 * 1)


def test_sparse_counts_are_stored_entries():
    X = sp.random_array((50, 20), density=0.2, rng=np.random.default_rng(1), format="csr")
    for design in (as_design(X), as_design(X.tocsc()), AffineDesign(as_design(X), centre=np.ones(20))):
        before = design.reads.entries
        design.correlate(np.ones(50))
        assert design.reads.entries - before == X.nnz
        before = design.reads.entries
        design.correlate(np.ones(50), np.array([3, 7]))
        assert design.reads.entries - before == X[:, [3, 7]].nnz
        before, before_bytes = design.reads.entries, design.reads.bytes
        design.accumulate(np.array([0, 9]), np.ones(2), np.zeros(20))
        assert design.reads.entries - before == X[[0, 9]].nnz
        assert design.reads.bytes - before_bytes == X[[0, 9]].nnz * (8 + 4)


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
        for design in (as_design(source), AffineDesign(as_design(source))):
            np.testing.assert_allclose(design.pick(rows, cols), X[rows, cols], atol=1e-12)
            assert (design.reads.entries, design.reads.bytes) == (entries, 8 * entries)
    design = InterceptDesign(as_design(X))
    np.testing.assert_array_equal(design.pick(rows[:3], np.array([2, 30, 1])), [X[0, 2], 1.0, X[2, 1]])
    assert design.reads.entries == 2


def test_a_view_goes_on_counting_where_the_design_was():
    design = as_design(np.ones((4, 3)))
    design.correlate(np.ones(4))
    for view in (AffineDesign(design), InterceptDesign(design)):
        assert design.reads.entries == view.reads.entries == 12
