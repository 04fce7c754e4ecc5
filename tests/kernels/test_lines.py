"""Kernels that read lines of dense arrays of any layout: sums of rows, copies of columns."""

import numpy as np
import pytest

from skpursuit.kernels import lines

LAYOUTS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "column slice": lambda X: np.ascontiguousarray(np.hstack([X, X, X]))[:, X.shape[1] : 2 * X.shape[1]],
    "row slice of F": lambda X: np.asfortranarray(np.vstack([X, X]))[X.shape[0] :],
    "steps": lambda X: np.repeat(np.repeat(X, 2, axis=1), 2, axis=0)[::2, ::2],
    "row steps": lambda X: np.repeat(X, 3, axis=0)[::3],
    "reversed rows": lambda X: np.ascontiguousarray(X[::-1])[::-1],
    "column steps": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "reversed columns": lambda X: np.ascontiguousarray(X[:, ::-1])[:, ::-1],
    "one row, many times": lambda X: np.broadcast_to(X[:1], X.shape),
}


@pytest.fixture
def rng():
    return np.random.default_rng(7)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 50])
def test_accumulate_dense_is_the_weighted_sum_of_rows(rng, dtype, layout, count):
    X = LAYOUTS[layout](rng.standard_normal((40, 37)).astype(dtype))
    chosen = rng.integers(0, 40, count)
    weights = rng.standard_normal(count)
    out = rng.standard_normal(37)
    expected = out + weights @ X[chosen].astype(float)
    lines.accumulate_dense(X, chosen, weights, out)
    np.testing.assert_allclose(out, expected, rtol=1e-13, atol=1e-13)


def test_equal_columns_get_equal_bits_wherever_they_stand(rng):
    d = lines.TILE_COLUMNS + 500
    column = rng.standard_normal((53, 1))
    X = np.repeat(column, d, axis=1)
    out = np.zeros(d)
    lines.accumulate_dense(X, rng.permutation(53), rng.standard_normal(53), out)
    assert np.unique(out).size == 1


def test_the_length_of_a_call_does_not_change_bits(rng, monkeypatch):
    X = rng.standard_normal((200, 70))
    chosen, weights = rng.permutation(200), rng.standard_normal(200)
    once, often = np.zeros(70), np.zeros(70)
    lines.accumulate_dense(X, chosen, weights, once)
    monkeypatch.setattr(lines.threads, "MAX_KERNEL_WORK", 1000)
    lines.accumulate_dense(X, chosen, weights, often)
    np.testing.assert_array_equal(once, often)


def test_float32_data_is_summed_in_float64():
    X = np.array([[1.0], [2.0**-30], [-1.0]], np.float32)
    out = np.zeros(1)
    lines.accumulate_dense(X, np.arange(3), np.ones(3), out)
    assert out[0] == 2.0**-30


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("listed", [2, 100])
def test_gather_columns_copies(rng, layout, listed):
    X = LAYOUTS[layout](rng.standard_normal((75, 300)))
    cols = np.sort(rng.permutation(300)[:listed])
    out = np.full((listed, 75), np.nan)
    lines.gather_columns(X, cols, out)
    np.testing.assert_array_equal(out, X[:, cols].T)
    half = np.full((listed, 75), np.nan, np.float32)
    lines.gather_columns(X, cols, half)
    np.testing.assert_array_equal(half, X[:, cols].T.astype(np.float32))


@pytest.mark.parametrize("shape", [(1, 1), (9, 700), (700, 9), (130, 1100)])
def test_transposed_gives_the_other_layout(rng, shape):
    X = rng.standard_normal(shape)
    other = lines.transposed(X)
    assert other.flags.c_contiguous
    np.testing.assert_array_equal(other, X.T)
