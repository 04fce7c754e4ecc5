import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

from skpursuit.data import as_design
from skpursuit.data.quantized import QuantizedTile
from skpursuit.kernels.quantized import ROWS

from ..support import data

SIZES = [(1, 1), (1, 40), (7, 1), (63, 17), (257, 16), (513, 33), (1000, 530)]


def gaussian(rng, n, d):
    return rng.standard_normal((n, d))


def cauchy(rng, n, d):
    return rng.standard_cauchy((n, d))


def offsets(rng, n, d):
    return rng.standard_normal((n, d)) + 10.0 ** rng.uniform(0, 12, d)


def thousand(rng, n, d):
    return rng.standard_normal((n, d)) + 1000.0


def drifting(rng, n, d):
    return rng.standard_normal((n, d)).cumsum(axis=0) * 100.0


def mixed_scales(rng, n, d):
    return rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-150, 150, d)


def mixed_entries(rng, n, d):
    return rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-30, 30, (n, d))


def few_values(rng, n, d):
    return rng.integers(0, 2, (n, d)) * rng.choice([0.0, 1.0, -3.5], d)


def single_precision(rng, n, d):
    return rng.standard_normal((n, d)).astype(np.float32)


def subnormal(rng, n, d):
    return rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-320, -300, (n, d))


MATRICES = [
    gaussian,
    cauchy,
    offsets,
    drifting,
    mixed_scales,
    mixed_entries,
    few_values,
    single_precision,
    subnormal,
]


def exact_product(x, r):
    """The real number x . r of two float vectors."""
    unit = 2**1100  # every float64 is an integer over this
    whole = lambda v: [int(Fraction(float(a)) * unit) for a in v]  # noqa: E731
    return Fraction(sum(a * b for a, b in zip(whole(x), whole(r))), unit * unit)


def assert_holds(X, r, g, bound, cols):
    for a, j in enumerate(cols):
        if math.isfinite(bound[a]):
            assert abs(exact_product(X[:, j], r) - Fraction(float(g[a]))) <= Fraction(float(bound[a])), (
                j,
                g[a],
            )


def check(tile, X, r, columns=3):
    cols = np.unique(np.linspace(0, X.shape[1] - 1, columns).astype(int))
    g, bound = tile.estimate(r)
    assert g.shape == bound.shape == (X.shape[1],)
    assert_holds(X, r, g[cols], bound[cols], cols)
    np.testing.assert_array_equal(tile.estimate(r, cols=cols), (g[cols], bound[cols]))
    if tile.has_steps:
        order = np.argsort(-np.abs(r), kind="stable")
        parts = np.split(order, sorted({1, len(r) // 3, len(r)}))[:-1]
        sums, error = tile.estimate_rows(r, parts)
        assert sums.shape == error.shape == (len(parts), X.shape[1])
        for i in range(len(parts)):
            so_far = np.zeros(len(r))
            some = np.concatenate(parts[: i + 1])
            so_far[some] = r[some]
            assert_holds(X, so_far, sums[i, cols], error[i, cols], cols)


@pytest.mark.parametrize("shape", SIZES)
@pytest.mark.parametrize("matrix", MATRICES)
def test_interval_holds_for_the_real_number_product(matrix, shape):
    rng = np.random.default_rng(shape[0])
    X = matrix(rng, *shape)
    for rounding, steps in ((None, True), (rng, True), (None, False)):
        tile = QuantizedTile.build(X, rounding, steps)
        for scale in (1.0, 1e-150, 1e150, 1e-310):
            check(tile, X, rng.standard_normal(shape[0]) * scale)
        check(tile, X, rng.standard_cauchy(shape[0]))
        check(tile, X, np.where(np.arange(shape[0]) == shape[0] // 2, 3.0, 0.0))
        check(tile, X, rng.standard_normal(shape[0]) * 10.0 ** rng.uniform(-300, 0, shape[0]))


@pytest.mark.parametrize("matrix", [gaussian, cauchy, thousand, mixed_scales, single_precision])
def test_residual_along_the_quantisation_error_comes_close_to_the_bound(matrix):
    rng = np.random.default_rng(3)
    X = matrix(rng, 600, 5)
    tile = QuantizedTile.build(X)
    blocks = np.arange(600) // ROWS
    for j in range(5):
        scaled = np.ldexp(X[:, j].astype(float), -tile.exponent[j])
        lost = scaled - tile.centre[j, blocks] - tile.scale[j, blocks] * tile.codes[j, :600].astype(float)
        check(tile, X, lost, columns=5)
        g, bound = tile.estimate(lost)
        error = abs(math.fsum(X[:, j] * lost) - g[j])
        # Within a block the bound is attained; over blocks only for errors of equal proportion.
        assert 0.9 * bound[j] < error <= bound[j]


finite = st.floats(-1e150, 1e150, allow_subnormal=True)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.data(), st.integers(1, 70), st.integers(1, 3))
def test_interval_holds_for_any_numbers(data, n, d):
    X = np.array(data.draw(st.lists(finite, min_size=n * d, max_size=n * d))).reshape(n, d)
    r = np.array(data.draw(st.lists(finite, min_size=n, max_size=n)))
    check(QuantizedTile.build(X, steps=True), X, r)
    check(QuantizedTile.build(X), X, r)


def test_steps_are_the_entries_in_finer_units_and_change_no_code():
    X = gaussian(np.random.default_rng(4), 600, 40)
    plain, tile = QuantizedTile.build(X), QuantizedTile.build(X, steps=True)
    np.testing.assert_array_equal(plain.codes, tile.codes)
    assert np.abs(tile.steps[:, :40].T - 128.0 * tile.codes[:40, :600]).max() <= 64.5


LAYOUTS = {
    "F": np.asfortranarray,
    "steps": lambda X: np.repeat(np.repeat(X, 2, axis=1), 2, axis=0)[::2, ::2],
    "reversed": lambda X: np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1],
    "slice": lambda X: np.hstack([X, X])[:, X.shape[1] :],
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layout_changes_no_bit(layout, dtype):
    X = np.random.default_rng(5).standard_normal((300, 530)).astype(dtype)
    one, other = QuantizedTile.build(X), QuantizedTile.build(LAYOUTS[layout](X))
    for name in ("codes", "scale", "centre", "error", "exponent"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_number_of_threads_changes_no_bit():
    rng = np.random.default_rng(6)
    X, r = rng.standard_normal((700, 2100)), rng.standard_normal((700, 3))
    answers = []
    for threads in (1, 2, 3):
        with threadpool_limits(threads):
            tile = QuantizedTile.build(X, np.random.default_rng(1))
            answers.append((tile.codes, *tile.estimate(r)))
    for other in answers[1:]:
        for a, b in zip(answers[0], other):
            np.testing.assert_array_equal(a, b)


def test_several_residuals_are_the_single_ones():
    rng = np.random.default_rng(7)
    X, R = rng.standard_normal((300, 40)), rng.standard_normal((300, 3)) * [1.0, 1e-9, 1e9]
    tile = QuantizedTile.build(X)
    G, B = tile.estimate(R)
    assert G.shape == (40, 3)
    for k in range(3):
        np.testing.assert_array_equal((G[:, k], B[:, k]), tile.estimate(R[:, k]))


def test_bound_is_useful():
    rng = np.random.default_rng(8)
    n = 2000
    r = rng.standard_normal(n)
    for X in (gaussian(rng, n, 200), gaussian(rng, n, 200) + 1000.0, gaussian(rng, n, 200) * 1e-40):
        tile = QuantizedTile.build(X)
        noise = X.std(axis=0) * np.linalg.norm(r)
        assert (tile.estimate(r)[1] < 0.4 * noise).all()
    # One outlier spoils its own block of rows and no other.
    X = gaussian(rng, n, 2)
    X[1000, 1] = 1e6
    r[ROWS * (1000 // ROWS) : ROWS * (1000 // ROWS + 1)] = 0.0
    bound = QuantizedTile.build(X).estimate(r)[1]
    assert bound[1] < 1.2 * bound[0]


def test_zero_columns_residuals_and_sizes():
    X = np.zeros((100, 3))
    X[:, 1] = 7.0
    tile = QuantizedTile.build(X)
    r = np.ones(100)
    g, bound = tile.estimate(r)
    assert g[0] == bound[0] == 0.0
    assert abs(g[1] - 700.0) <= bound[1] < 1e-9
    for answer in tile.estimate(0.0 * r):
        assert (answer == 0.0).all()
    assert QuantizedTile.build(np.zeros((0, 4))).estimate(np.zeros(0))[0].tolist() == [0.0] * 4
    assert QuantizedTile.build(np.zeros((4, 0))).estimate(np.zeros(4))[0].size == 0
    assert tile.estimate(r, cols=np.array([], int))[0].size == 0


def test_stochastic_codes_are_unbiased_and_the_tail_bound_holds():
    rng = np.random.default_rng(9)
    n, d, trials = 200, 40, 150
    X, r = rng.standard_normal((n, d)), rng.standard_normal(n)
    exact = X.T @ r
    errors, bounds = [], []
    for seed in range(trials):
        g, bound = QuantizedTile.build(X, np.random.default_rng(seed)).estimate(r, log_delta=math.log(0.3))
        errors.append(g - exact)
        bounds.append(bound)
    errors, bounds = np.array(errors), np.array(bounds)
    assert 0.001 < (np.abs(errors) > bounds).mean() < 0.3
    # The mean over all trials and columns is zero within four standard errors.
    assert abs(errors.mean()) < 4 * errors.std() / math.sqrt(errors.size)
    tile = QuantizedTile.build(X, np.random.default_rng(0))
    never = tile.estimate(r, log_delta=-1000.0)[1]
    assert (never > tile.estimate(r, log_delta=math.log(1e-6))[1]).all()


def test_tail_bound_is_tighter_than_the_certain_one_on_tall_matrices():
    rng = np.random.default_rng(10)
    X, r = rng.standard_normal((20000, 20)), rng.standard_normal(20000)
    tile = QuantizedTile.build(X, rng)
    assert (tile.estimate(r, log_delta=math.log(1e-9))[1] < 0.1 * tile.estimate(r)[1]).all()


def test_costs_are_what_is_stored():
    tile = QuantizedTile.build(np.ones((1000, 64)))
    assert tile.estimate_cost() == (64_000, 64 * 1024 + 64 * 2 * 16)
    assert tile.nbytes == 64 * (1024 + 2 * 16 + 4)
    assert QuantizedTile.build(np.ones((1000, 64)), steps=True).nbytes == tile.nbytes + 2 * 64_000


def test_what_cannot_be_done_is_said():
    tile = QuantizedTile.build(np.ones((4, 2)))
    with pytest.raises(ValueError, match="stochastic"):
        tile.estimate(np.ones(4), log_delta=-3.0)
    with pytest.raises(ValueError, match="3 rows, the codes 4"):
        tile.estimate(np.ones(3))
    with pytest.raises(ValueError, match="residual is not finite"):
        tile.estimate(np.array([1.0, np.nan, 1.0, 1.0]))
    with pytest.raises(ValueError, match="matrix is not finite"):
        QuantizedTile.build(np.array([[1.0, np.inf]]))
    for shape, place, size in (
        ((600, 70), (599, 69), 1.0),
        ((600, 70), (3, 2), 1e-200),
        ((9, 3), (0, 0), 1e200),
    ):
        X = np.full(shape, size)
        X[place] = np.nan
        with pytest.raises(ValueError, match="matrix is not finite"):
            QuantizedTile.build(X)


def test_sums_over_rows_for_several_targets_and_threads():
    rng = np.random.default_rng(12)
    X, R = gaussian(rng, 1500, 700), rng.standard_normal((1500, 3)) * [1e-90, 1.0, 1e90]
    tile = QuantizedTile.build(X, steps=True)
    parts = np.split(rng.permutation(1500), [40, 41, 700])[:3]
    with threadpool_limits(1):
        sums, error = tile.estimate_rows(R, parts)
    with threadpool_limits(2):
        again = tile.estimate_rows(R, parts)
    np.testing.assert_array_equal((sums, error), again)
    for t in range(3):
        one, bound = tile.estimate_rows(R[:, t], parts)
        np.testing.assert_array_equal((sums[..., t], error[..., t]), (one, bound))
    rows = np.concatenate(parts)
    exact = X[rows].T @ R[rows]
    assert (np.abs(sums[-1] - exact) <= error[-1] * 1.001).all()
    assert (error[-1] < 0.01 * np.linalg.norm(R[rows], axis=0)).all()  # a hundredth of a sum's deviation
    with pytest.raises(ValueError, match="steps=True"):
        QuantizedTile.build(X[:30]).estimate_rows(R[:30], [np.arange(3)])


@pytest.mark.parametrize("order", ["C", "F"])
def test_row_norms_come_with_the_steps(order):
    X = np.asarray(np.random.default_rng(13).standard_normal((300, 1100)) + 3.0, order=order)
    for scale in (1.0, 1e-200, 1e200):
        design = as_design(X * scale, check=False)
        data.codes(design, steps=True)
        assert data.keeps_row_norms(design) == (scale == 1.0)  # columns far from one are encoded twice
        np.testing.assert_allclose(data.norms(design, 1) / scale, np.linalg.norm(X, axis=1), rtol=1e-14)


def test_sums_over_rows_of_constant_columns_hold_where_the_residual_vanishes():
    X = np.ones((5, 3))
    X[:, 1] = 7.3
    r = np.array([1e300, 1.2345e-20, 3.0, 4.0, 5.0])
    g, bound = QuantizedTile.build(X, steps=True).estimate_rows(r, [np.array([1]), np.array([0])])
    assert (np.abs(g[0] - X[1] * r[1]) <= bound[0]).all()
