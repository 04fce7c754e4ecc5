import numpy as np
import pytest

from skpursuit.kernels import lines as rows

LAYOUTS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "column slice": lambda X: np.ascontiguousarray(np.hstack([X, X, X]))[:, X.shape[1] : 2 * X.shape[1]],
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
    rows.accumulate_dense(X, chosen, weights, out)
    np.testing.assert_allclose(out, expected, rtol=1e-13, atol=1e-13)


def test_equal_columns_get_equal_bits_wherever_they_stand(rng):
    d = rows.TILE_COLUMNS + 500
    column = rng.standard_normal((53, 1))
    X = np.repeat(column, d, axis=1)
    out = np.zeros(d)
    rows.accumulate_dense(X, rng.permutation(53), rng.standard_normal(53), out)
    assert np.unique(out).size == 1


def test_the_length_of_a_call_does_not_change_bits(rng, monkeypatch):
    X = rng.standard_normal((200, 70))
    chosen, weights = rng.permutation(200), rng.standard_normal(200)
    once, often = np.zeros(70), np.zeros(70)
    rows.accumulate_dense(X, chosen, weights, once)
    monkeypatch.setattr(rows.threads, "MAX_KERNEL_WORK", 1000)
    rows.accumulate_dense(X, chosen, weights, often)
    np.testing.assert_array_equal(once, often)


def test_float32_data_is_summed_in_float64():
    X = np.array([[1.0], [2.0**-30], [-1.0]], np.float32)
    out = np.zeros(1)
    rows.accumulate_dense(X, np.arange(3), np.ones(3), out)
    assert out[0] == 2.0**-30
