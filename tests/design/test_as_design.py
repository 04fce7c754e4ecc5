"""The boundary: what is taken, what is refused, and that nothing is copied without need."""

import numpy as np
import pytest
import scipy.sparse as sp

from skpursuit import OMP, as_design, minimize

from ..support.data import product


def test_dense_input_is_not_copied():
    X = np.random.default_rng(0).standard_normal((5, 4))
    for view in (X, np.asfortranarray(X), X[::2, ::-1], X.astype(np.float32)):
        assert np.shares_memory(as_design(view).X, view)
        assert as_design(view).dtype == view.dtype
    design = as_design(X)
    assert as_design(design) is design


def test_sparse_input_is_not_copied():
    X = sp.random_array((9, 7), density=0.3, rng=np.random.default_rng(0), format="csc")
    assert np.shares_memory(as_design(X).matrix.data, X.data)


def test_unsorted_and_duplicate_entries_are_sorted_in_a_copy():
    X = sp.csr_array((np.array([1.0, 2.0, 3.0]), np.array([2, 0, 2]), np.array([0, 3])), shape=(1, 4))
    design = as_design(X)
    np.testing.assert_array_equal(product(design, np.ones(1)), [2.0, 0.0, 4.0, 0.0])
    assert X.indices.tolist() == [2, 0, 2]


@pytest.mark.parametrize(
    ("X", "error", "words"),
    [
        (np.ones(3), ValueError, "two-dimensional"),
        (np.ones((0, 3)), ValueError, "empty"),
        (np.ones((3, 0)), ValueError, "empty"),
        (np.ones((2, 2), dtype=complex), TypeError, "complex"),
        (np.array([["a", "b"]]), TypeError, "encode"),
        (np.array([[1.0, np.nan]]), ValueError, "NaN or infinity, first in column 1"),
        (np.array([[np.inf, 0.0]]), ValueError, "NaN or infinity, first in column 0"),
        (sp.csr_array(np.array([[1.0, np.nan]])), ValueError, "NaN or infinity"),
        (sp.csr_array(np.eye(2, dtype=complex)), TypeError, "complex"),
        (np.full((2, 2), 1.5e308), ValueError, "too large"),
    ],
)
def test_bad_X(X, error, words):
    for order in "CF":
        X = np.asarray(X, order=order) if isinstance(X, np.ndarray) else X
        with pytest.raises(error, match=words):
            as_design(X)
        with pytest.raises(error, match=words):
            minimize(X, np.ones(X.shape[0]), OMP(n_nonzero_coefs=1))


@pytest.mark.parametrize(
    ("indices", "indptr"),
    [([0, 999], [0, 1, 2]), ([0, -1], [0, 1, 2]), ([0, 1], [0, 2, 1]), ([0, 1], [0, 1, 5])],
)
def test_corrupt_csr_is_refused(indices, indptr):
    X = sp.csr_array(np.eye(2))
    X.indices, X.indptr = np.array(indices, dtype=np.int32), np.array(indptr, dtype=np.int32)
    with pytest.raises(ValueError, match="corrupt"):
        as_design(X)


def test_truncated_memory_map_is_refused(tmp_path):
    path = tmp_path / "x.bin"
    np.ones(64).tofile(path)
    X = np.memmap(path, dtype=np.float64, mode="r", shape=(8, 8))
    with open(path, "r+b") as file:
        file.truncate(100)
    with pytest.raises(ValueError, match="shorter"):
        as_design(X)


def test_other_byte_order_and_half_floats():
    X = np.random.default_rng(0).standard_normal((4, 3))
    np.testing.assert_array_equal(as_design(X.astype(">f8")).X, X)
    assert as_design(X.astype(np.float16)).dtype == np.float32
    assert as_design(X > 0).dtype == np.float64
