import numpy as np
import pytest

from skpursuit.kernels import lines as columns

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
