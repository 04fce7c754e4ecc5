import numpy as np
import pytest
import scipy.sparse as sp

from skpursuit.kernels import columns, rows

LAYOUTS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "column slice": lambda X: np.ascontiguousarray(np.hstack([X, X]))[:, X.shape[1] :],
    "row slice of F": lambda X: np.asfortranarray(np.vstack([X, X]))[X.shape[0] :],
    "steps": lambda X: np.repeat(np.repeat(X, 2, axis=1), 2, axis=0)[::2, ::2],
}


@pytest.fixture
def rng():
    return np.random.default_rng(8)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("listed", [0, 1, 5, 60])
def test_accumulate_dense_columns(rng, dtype, layout, listed):
    X = LAYOUTS[layout](rng.standard_normal((53, 120)).astype(dtype))
    cols = np.sort(rng.permutation(120)[:listed])
    chosen = rng.integers(0, 53, 43)
    for weights in (rng.standard_normal(43), rng.standard_normal((43, 2))):
        out = rng.standard_normal((*weights.shape[1:], listed))
        expected = out + weights.T @ X[np.ix_(chosen, cols)].astype(float)
        columns.accumulate_dense_columns(X, chosen, weights, cols, out)
        np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-12)


def test_picking_entries_and_reading_whole_rows_give_the_same_bits(rng, monkeypatch):
    X = rng.standard_normal((61, 90))
    cols, chosen, weights = np.arange(3, 90, 9), rng.permutation(61), rng.standard_normal(61)
    start = rng.standard_normal(cols.size)
    answers = []
    for share in (0.0, np.inf):
        monkeypatch.setattr(columns, "FULL_ROW_THRESHOLD", share)
        out = start.copy()
        columns.accumulate_dense_columns(X, chosen, weights, cols, out)
        answers.append(out)
    np.testing.assert_array_equal(*answers)


def test_a_contiguous_column_has_the_same_bits_wherever_it_is_listed(rng):
    X = np.asfortranarray(np.repeat(rng.standard_normal((77, 1)), 7, axis=1))
    chosen, weights = np.arange(77), rng.standard_normal(77)
    seen = set()
    for count in range(1, 8):
        out = np.zeros(count)
        columns.accumulate_dense_columns(X, chosen, weights, np.arange(count), out)
        seen |= set(out.tolist())
    assert len(seen) == 1


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("listed", [2, 100])
def test_gather_columns_copies(rng, layout, listed):
    X = LAYOUTS[layout](rng.standard_normal((75, 300)))
    cols = np.sort(rng.permutation(300)[:listed])
    out = np.full((listed, 75), np.nan)
    columns.gather_columns(X, cols, out)
    np.testing.assert_array_equal(out, X[:, cols].T)
    half = np.full((listed, 75), np.nan, np.float32)
    columns.gather_columns(X, cols, half)
    np.testing.assert_array_equal(half, X[:, cols].T.astype(np.float32))


@pytest.mark.parametrize("shape", [(1, 1), (9, 700), (700, 9), (130, 1100)])
def test_transposed_gives_the_other_layout(rng, shape):
    X = rng.standard_normal(shape)
    other = columns.transposed(X)
    assert other.flags.c_contiguous
    np.testing.assert_array_equal(other, X.T)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_listed_columns_of_sparse_matrices(rng, dtype):
    X = sp.random(50, 40, 0.2, "csr", dtype, rng)
    cols, chosen, weights = np.arange(1, 40, 3), rng.integers(0, 50, 30), rng.standard_normal((30, 2))
    expected = 1 + weights.T @ X.toarray()[np.ix_(chosen, cols)]
    place = np.full(40, -1)
    place[cols] = np.arange(cols.size)
    out = np.ones((2, cols.size))
    columns.accumulate_csr_columns(X.indptr, X.indices, X.data, chosen, weights, place, out)
    np.testing.assert_allclose(out, expected, rtol=1e-12)


def test_picked_columns_agree_with_row_accumulation_bit_for_bit(rng):
    X = rng.standard_normal((45, 400))
    chosen, weights, cols = rng.permutation(45), rng.standard_normal(45), np.array([0, 17, 399])
    whole, some = np.zeros(400), np.zeros(3)
    rows.accumulate_dense(X, chosen, weights, whole)
    columns.accumulate_dense_columns(X, chosen, weights, cols, some)
    np.testing.assert_array_equal(some, whole[cols])
