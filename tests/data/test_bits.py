import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from skpursuit.data.bits import SAMPLE, PackedBits
from skpursuit.kernels import bits


def error_of(guess, exact):
    """Error of a guess up to a common factor, in standard deviations of the exact products."""
    return np.std(guess * (guess @ exact) / (guess @ guess) - exact) / np.std(exact)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("offset", [0.0, 1000.0])
@pytest.mark.parametrize("n", [100, 3000])
def test_guess_follows_the_product(n, offset, dtype):
    rng = np.random.default_rng(n)
    X = (rng.standard_normal((n, 1500)) + offset).astype(dtype)
    r = rng.standard_normal(n)
    r -= r.mean()
    packed = PackedBits.build(X)
    exact = X.T.astype(float) @ r
    assert error_of(packed.estimate(r), exact) < 0.75
    assert error_of(packed.refine(r, np.arange(1500)), exact) < 0.45
    cols = np.array([1400, 3])
    np.testing.assert_array_equal(packed.refine(r, cols), packed.refine(r, np.arange(1500))[cols])


def test_offset_and_scale_of_a_column_are_kept():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((2000, 40))
    scale = 10.0 ** rng.uniform(-6, 6, 40)
    r = X[:, 7] + 0.5 * rng.standard_normal(2000)
    plain, scaled = PackedBits.build(X), PackedBits.build(X * scale)
    np.testing.assert_allclose(
        scaled.estimate(r), plain.estimate(r) * scale, rtol=1e-9, atol=1e-9 * scale.max()
    )
    shifted = PackedBits.build(X + 5.0).estimate(r + 1.0) - 5.0 * (r + 1.0).sum()
    np.testing.assert_allclose(np.delete(shifted, 7), np.delete(X.T @ (r + 1.0), 7), atol=300.0)
    assert np.argmax(np.abs(plain.estimate(r))) == 7


@pytest.mark.parametrize("n", [1, 3, 64, 255, 256, 257, 9000])
def test_bits_are_the_cells_and_the_counts_are_the_products(n):
    rng = np.random.default_rng(n)
    X = rng.standard_normal((n, 9))
    packed = PackedBits.build(X)
    centre = packed.fit[0]
    sample = X[np.unique(np.linspace(0, n - 1, SAMPLE).astype(int))]
    s1 = np.where(centre > X, -1, 1)
    s2 = np.where(np.abs(X - centre) < bits.EDGE * np.abs(sample - centre).mean(axis=0), -s1, s1)
    np.testing.assert_allclose(packed.fit[1], np.abs(X - centre).mean(axis=0), rtol=1e-12)
    unpack = lambda words: np.unpackbits(words.view(np.uint8), axis=1, bitorder="little")  # noqa: E731
    np.testing.assert_array_equal(1 - 2 * unpack(packed.signs)[:, :n].T.astype(int), s1)
    np.testing.assert_array_equal(1 - 2 * unpack(packed.sizes)[:, :n].T.astype(int), s2)
    assert not unpack(packed.signs)[:, n:].any()
    r = rng.standard_normal(n)
    step = 0.7
    residual = np.zeros((3, packed.signs.shape[1]), np.uint64)
    levels = np.minimum(np.floor(np.abs(r) / step + 0.5), bits.MOST)
    total = bits.pack_residual(r, step, residual)
    assert total == levels.sum()
    out, plain = np.empty(9), np.repeat([[0.0], [1.0], [1.0], [10.0]], 9, axis=1)
    given = plain, residual, 1.0, total, 0.0, out
    bits.guess_all(0, 9, packed.signs, *given)
    np.testing.assert_array_equal(out, s1.T @ (np.sign(r) * levels))
    bits.guess_some(0, 9, np.arange(9), packed.signs, packed.sizes, *given)
    np.testing.assert_array_equal(out, (s1 + 10 * s2).T @ (np.sign(r) * levels))


@pytest.mark.parametrize("layout", [np.asfortranarray, lambda X: np.repeat(X, 2, axis=1)[:, ::2]])
def test_layout_and_threads_change_no_bit(layout):
    rng = np.random.default_rng(2)
    X, r = rng.standard_normal((500, 2100)), rng.standard_normal(500)
    one = PackedBits.build(X)
    with threadpool_limits(2):
        other = PackedBits.build(layout(X))
        np.testing.assert_array_equal(one.estimate(r), other.estimate(r))
    for name in ("signs", "sizes", "fit"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_zero_residual_constant_columns_and_empty_matrices():
    packed = PackedBits.build(np.full((70, 3), 2.0))
    np.testing.assert_array_equal(packed.estimate(np.zeros(70)), 0.0)
    np.testing.assert_allclose(packed.estimate(np.ones(70)), 140.0)
    np.testing.assert_allclose(packed.refine(np.ones(70), np.array([1])), 140.0)
    assert PackedBits.build(np.zeros((0, 2))).estimate(np.zeros(0)).tolist() == [0.0, 0.0]
    assert PackedBits.build(np.zeros((3, 0))).estimate(np.zeros(3)).size == 0


@pytest.mark.parametrize("size", [1e-300, 1e-150, 1e150, 1e300])
def test_guess_scales_with_the_residual(size):
    rng = np.random.default_rng(6)
    packed, r = PackedBits.build(rng.standard_normal((200, 30))), rng.standard_normal(200)
    for guess in (packed.estimate, lambda r: packed.refine(r, np.arange(30))):
        np.testing.assert_allclose(guess(r * size) / size, guess(r), rtol=1e-6, atol=1e-6)


def test_residual_with_few_rows_ignores_the_others():
    rng = np.random.default_rng(4)
    X = rng.standard_normal((1000, 300))
    r = np.zeros(1000)
    r[:50] = rng.choice([-1.0, 1.0], 50)
    assert error_of(PackedBits.build(X).refine(r, np.arange(300)), X.T @ r) < 0.45


def test_costs_are_what_is_stored():
    packed = PackedBits.build(np.ones((1000, 48)))
    assert packed.estimate_cost == (48_000, 48 * 16 * 8 + 48 * 16)
    assert packed.refine_cost(5) == (5000, 5 * (2 * 16 * 8 + 24))
    assert packed.nbytes == 48 * (2 * 16 * 8 + 32)


@pytest.mark.parametrize("place", [(0, 0), (131, 1029), (64, 3)])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_matrix_that_is_not_finite_is_refused(value, place):
    X = np.random.default_rng(5).standard_normal((132, 1030)) * 2e307
    PackedBits.build(X)  # sums of its entries may overflow; the entries do not
    X[place] = value
    with pytest.raises(ValueError, match="matrix is not finite"):
        PackedBits.build(X)
