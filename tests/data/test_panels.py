"""Panels of one-byte codes: intervals hold for every layout of X and every form of the product kernel."""

import math
import sys
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

from skpursuit.data.codes.coded_tile import CodedTile
from skpursuit.data.survey import block_sums
from skpursuit.kernels import codes as panels
from tests.support.failing import fails

REAL = np.longdouble
FORMS = panels.available_isas()
SIZES = [(1, 1), (3, 40), (63, 17), (513, 33), (1000, 40), (2563, 100)]


MATRICES = {
    "gaussian": lambda rng, n, d: rng.standard_normal((n, d)),
    "cauchy": lambda rng, n, d: rng.standard_cauchy((n, d)),
    "offsets": lambda rng, n, d: rng.standard_normal((n, d)) + 10.0 ** rng.uniform(0, 12, d),
    "thousand": lambda rng, n, d: rng.standard_normal((n, d)) + 1000.0,
    "drifting": lambda rng, n, d: rng.standard_normal((n, d)).cumsum(axis=0) * 100.0,
    "mixed scales": lambda rng, n, d: rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-150, 150, d),
    "mixed entries": lambda rng, n, d: rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-30, 30, (n, d)),
    "few values": lambda rng, n, d: rng.integers(0, 2, (n, d)) * rng.choice([0.0, 1.0, -3.5], d),
    "single precision": lambda rng, n, d: rng.standard_normal((n, d)).astype(np.float32),
    "subnormal": lambda rng, n, d: rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-320, -300, (n, d)),
    "t(4)": lambda rng, n, d: rng.standard_t(4, (n, d)),
    "rare outliers": lambda rng, n, d: np.where(
        rng.random((n, d)) < 3 / (n * d), 1e4, rng.standard_normal((n, d))
    ),
    "constant": lambda rng, n, d: np.ones((n, d)) * rng.integers(0, 3, d),
}
gaussian = MATRICES["gaussian"]


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


LAYOUTS = {
    "F": np.asfortranarray,
    "steps": lambda X: np.repeat(np.repeat(X, 2, axis=1), 2, axis=0)[::2, ::2],
    "reversed": lambda X: np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1],
    "slice": lambda X: np.hstack([X, X])[:, X.shape[1] :],
}


def by_rows(panels, n, d):
    return panels.transpose(0, 2, 1, 3).reshape(-1, panels.shape[1] * 4)[:d, :n].T.astype(REAL) - 128


def decoded(tile, fine=False):
    """The columns as the codes have them, in real numbers."""
    n, d = tile.shape
    codes = by_rows(tile.codes, n, d) + (by_rows(tile.second_byte, n, d) / 256 if fine else 0)
    blocks = np.arange(n) // panels.BLOCK_ROWS
    real = tile.centre[blocks, :d].astype(REAL) + tile.scale[blocks, :d].astype(REAL) * codes
    return real * np.ldexp(REAL(1.0), tile.exponent)


@pytest.mark.parametrize("shape", SIZES)
@pytest.mark.parametrize("matrix", MATRICES)
def test_intervals_hold_for_all_layouts_and_forms(matrix, shape):
    rng = np.random.default_rng(shape[0])
    X = MATRICES[matrix](rng, *shape)
    r = rng.standard_normal((shape[0], 4)) * [1.0, 1e-150, 1e30, 1e-310]
    r[:, 1] *= 10.0 ** rng.uniform(-100, 0, shape[0])
    exact = X.astype(REAL).T @ r.astype(REAL)
    for k, layout in enumerate([np.ascontiguousarray, *LAYOUTS.values()]):
        one, both = (CodedTile.build(layout(X), FORMS[k % len(FORMS)], fine) for fine in (False, True))
        rows = -(-shape[0] // 4)
        np.testing.assert_array_equal(one.codes[:, :rows], both.codes[:, :rows])
        for g, bound in (both.estimate(r, True), both.estimate(r), one.estimate(r)):
            assert g.shape == bound.shape == (shape[1], 4)
            assert (np.abs(g - exact) <= bound).all()
    for t in range(2):
        cols = np.unique(np.linspace(0, shape[1] - 1, 3).astype(int))
        assert_holds(X, r[:, t], g[cols, t], bound[cols, t], cols)


finite = st.floats(-1e150, 1e150, allow_subnormal=True)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.data(), st.integers(1, 70), st.integers(1, 3))
def test_intervals_hold_for_any_numbers(data, n, d):
    X = np.array(data.draw(st.lists(finite, min_size=n * d, max_size=n * d))).reshape(n, d)
    r = np.array(data.draw(st.lists(finite, min_size=n, max_size=n)))
    tile = CodedTile.build(X, fine=True)
    for fine in (False, True):
        assert_holds(X, r, *tile.estimate(r, fine), range(d))


@pytest.mark.parametrize("matrix", ["gaussian", "cauchy", "thousand", "mixed scales", "single precision"])
def test_residual_along_the_error_of_the_codes_comes_close_to_the_bound(matrix):
    X = MATRICES[matrix](np.random.default_rng(3), 600, 5)
    tile = CodedTile.build(X)
    lost = (X - decoded(tile)) / np.ldexp(REAL(1.0), tile.exponent)
    for j, r in enumerate(lost.T.astype(np.float64)):
        g, bound = tile.estimate(r)
        error = abs(math.fsum(X[:, j] * r) - g[j])
        # Within a block the bound is attained; over blocks only for errors of equal proportion.
        assert 0.8 * bound[j] < error <= bound[j]


def test_bounds_are_useful():
    rng = np.random.default_rng(8)
    n = 2000
    r = rng.standard_normal(n)
    for X in (gaussian(rng, n, 200), gaussian(rng, n, 200) + 1000.0, gaussian(rng, n, 200) * 1e-40):
        noise = X.std(axis=0) * np.linalg.norm(r)
        assert (CodedTile.build(X).estimate(r)[1] < 0.6 * noise).all()


def test_zero_columns_and_residuals():
    X = np.zeros((100, 3))
    X[:, 1] = 7.0
    tile, r = CodedTile.build(X), np.ones(100)
    g, bound = tile.estimate(r)
    assert g[0] == bound[0] == 0.0
    assert abs(g[1] - 700.0) <= bound[1] < 1e-9
    for answer in tile.estimate(0.0 * r):
        assert (answer == 0.0).all()
    assert tile.estimate(r, cols=np.array([], int))[0].size == 0


def test_several_residuals_are_the_single_ones():
    rng = np.random.default_rng(7)
    X, R = rng.standard_normal((300, 40)), rng.standard_normal((300, 3)) * [1.0, 1e-9, 1e9]
    tile = CodedTile.build(X)
    G, B = tile.estimate(R)
    assert G.shape == (40, 3)
    for k in range(3):
        np.testing.assert_allclose((G[:, k], B[:, k]), tile.estimate(R[:, k]), rtol=1e-12)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("matrix", ["gaussian", "cauchy", "thousand", "few values", "t(4)", "rare outliers"])
def test_products_and_what_they_lose(matrix, form):
    rng = np.random.default_rng(1)
    for shape in ((700, 33), (2200, 50)):
        X = MATRICES[matrix](rng, *shape) * 10.0 ** rng.integers(-9, 9, shape[1])
        tile = CodedTile.build(X, form, fine=True)
        real = decoded(tile)
        assert (tile.norm_bounds >= np.sqrt((X.astype(REAL) ** 2).sum(axis=0))).all()
        V = np.column_stack([rng.standard_normal(shape[0]), X[:, 0], rng.standard_cauchy(shape[0]) * 1e-9])
        for v in V.T:
            g, loss, norms, _ = tile.path_products(v[None])
            assert (np.abs(g - v.astype(REAL) @ real) <= loss @ tile.column_factors.T).all()
            assert (np.abs((X - real).T @ v) <= norms @ tile.block_errors[0]).all()
        R = np.cumsum((rng.standard_normal((9, shape[0])) * 0.6 ** np.arange(9)[:, None])[::-1], axis=0)[::-1]
        for fine in (False, True):
            both = decoded(tile, fine)
            first = tile.path_products(R[:4], fine=fine)
            for begin, trail in (
                (0, first),
                (2, tile.path_products(R[2:], first.represented(1), fine=fine)),
                (4, tile.path_products(R[4:], first.represented(-1), fine=fine)),
            ):
                some = R[begin : begin + len(trail.g)]
                assert (
                    np.abs(trail.g - some.astype(REAL) @ both) <= trail.vector_errors @ tile.column_factors.T
                ).all()
                lost = trail.norms @ tile.block_errors[int(fine)]
                assert (np.abs(some.astype(REAL) @ (X - both)) <= lost).all()
        near = np.abs(tile.decoded(np.arange(shape[1])) - real.T).max(axis=1)
        assert (near <= 1e-6 * np.abs(real).max(axis=0)).all()


@pytest.mark.parametrize("form", FORMS)
def test_sums_of_bytes_never_overflow(form):
    """The largest codes, and vectors whose bytes are as large as their form allows, all of one sign."""
    for values in ([1.0, -1.0], [1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0], [1.0, 1.0, -1.0, -1.0], [1.0]):
        v = np.resize(values, 1024)
        X = np.column_stack([v, -v, np.ones(1024), np.resize([1.0, -1.0], 1024)])
        tile = CodedTile.build(X, form)
        for r in (v, -v, np.abs(v)):
            g, bound = tile.estimate(r)
            assert (np.abs(g - X.T @ r) <= bound).all()
            assert (bound < 0.1 * np.linalg.norm(X, axis=0) * np.linalg.norm(r) + 1e-9).all()


@pytest.mark.parametrize("form", FORMS)
def test_following_loses_little_and_threads_change_nothing(form):
    rng = np.random.default_rng(9)
    X, y = gaussian(rng, 2500, 800), rng.standard_normal(2500)
    R = np.array([y - X[:, :k] @ (X[:, :k].T @ y) / 2500 for k in range(30)])
    tile = CodedTile.build(X, form)
    found = []
    for threads in (1, 2, 3):
        with threadpool_limits(threads):
            trail = tile.path_products(R)
            found.append((trail.g, trail.vector_errors, *tile.estimate(y), CodedTile.build(X).codes[:, :625]))
    for other in found[1:]:
        for a, b in zip(found[0], other):
            np.testing.assert_array_equal(a, b)
    bound = found[0][1] @ tile.column_factors.T
    assert (bound < 0.01 * np.linalg.norm(R, axis=1)[:, None] * tile.norm_bounds).all()
    assert (np.linalg.norm(found[0][0] - R @ X, axis=1) < 0.02 * np.linalg.norm(R @ X, axis=1)).all()


@pytest.mark.parametrize("order", "CF")
def test_a_second_byte_loses_two_hundred_times_less(order):
    X = np.asarray(gaussian(np.random.default_rng(3), 2560, 64), order=order)
    tile = CodedTile.build(X, fine=True)
    better = tile.error[1] * 200 < tile.error[0]
    assert better.all() if order == "F" else better.mean() > 0.95  # a few entries are cut off


def test_predicted_scales_lose_little_more_than_extremes():
    rng = np.random.default_rng(2)
    for matrix, most in (
        ("gaussian", 1.6),
        ("few values", 1.01),
        ("t(4)", 1.01),
        ("cauchy", 1.01),
        ("rare outliers", 1.6),
    ):
        X = MATRICES[matrix](rng, 4096, 320)
        streamed, measured = CodedTile.build(X), CodedTile.build(np.asfortranarray(X))
        size = np.linalg.norm(X, axis=0)
        scale = np.where(size > 0, size, 1.0)
        one, two = (t.error[0].sum(axis=0)[:320] / scale for t in (streamed, measured))
        assert one.mean() <= most * two.mean() + 1e-4, matrix
        assert (one < 2.5 * two + 1e-4).all(), matrix


def test_values_that_cut_a_range_into_few_parts_have_exact_codes():
    rng = np.random.default_rng(3)
    for levels in (2, 3, 4, 5, 7):
        X = rng.integers(0, levels, (3000, 48)).astype(float)
        tile = CodedTile.build(X)
        assert (tile.error < 1e-3 * tile.scale.max() * np.sqrt(512)).all()


@pytest.mark.parametrize("matrix", MATRICES)
def test_sums_that_are_made_with_codes_have_the_bits_of_a_survey(matrix):
    for fine, (n, d) in product((False, True), ((5, 40), (1030, 17), (2563, 700))):
        X = MATRICES[matrix](np.random.default_rng(0), n, d)
        blocks = [X[i : i + 512] for i in range(0, n, 512)]
        expected = np.stack([block_sums(block, None, False, False)[1] for block in blocks])
        CodedTile.build(X, fine=fine, totals=(found := np.empty_like(expected)))
        assert found.tobytes() == (expected + 0.0).tobytes()


def test_what_cannot_be_encoded_is_said():
    for shape, place in (
        ((9, 3), (0, 0)),
        ((2500, 70), (2499, 69)),
        ((2500, 70), (3, 2)),
        ((2500, 64), (700, 1)),
    ):
        for size, bad in ((1.0, np.nan), (1e-200, np.nan), (1e200, np.inf)):
            for order in "CF":
                X = np.full(shape, size, order=order)
                X[place] = bad
                fails("matrix is not finite", CodedTile.build, X)
    tile = CodedTile.build(np.ones((4, 2)))
    fails("3 rows, the codes 4", tile.estimate, np.ones(3))
    fails("residual is not finite", tile.estimate, np.array([1.0, np.nan, 1.0, 1.0]))
    assert CodedTile.build(np.zeros((0, 4))).estimate(np.zeros(0))[0].tolist() == [0.0] * 4
    assert CodedTile.build(np.zeros((4, 0))).estimate(np.zeros(4))[0].size == 0


@pytest.mark.parametrize("form", FORMS)
def test_estimates_at_some_columns_are_those_of_all(form):
    rng = np.random.default_rng(3)
    X, r = gaussian(rng, 700, 70) * 10.0 ** rng.integers(-30, 30, 70), rng.standard_normal((700, 2))
    cols = np.array([69, 3, 17, 18, 3])
    tile = CodedTile.build(X, form, fine=True)
    for fine in (False, True):
        (g, bound), (some, error) = tile.estimate(r, fine), tile.estimate(r, fine, cols)
        np.testing.assert_allclose(some, g[cols], rtol=1e-12)
        np.testing.assert_allclose(error, bound[cols], rtol=1e-12)


def test_codes_go_to_other_processors(monkeypatch):
    """Products are made the way that the processor has which makes them, and Dask is told of their size."""
    tile = CodedTile.build(gaussian(np.random.default_rng(0), 1000, 50), fine=True)
    assert sys.getsizeof(tile) >= tile.nbytes > 2 * 1000 * 50
    found = []
    for form in FORMS:
        monkeypatch.setattr(panels, "DEFAULT_ISA", form)
        found.append(tile.estimate(np.ones(1000)))
    monkeypatch.setattr(panels, "DEFAULT_ISA", "of another processor")
    with pytest.raises(KeyError):
        tile.estimate(np.ones(1000))
    for g, bound in found:
        assert (np.abs(g - found[0][0]) <= bound + found[0][1]).all()


def test_a_form_that_the_processor_lacks_is_fails(monkeypatch):
    monkeypatch.setenv("SKPURSUIT_PRODUCTS", "sse9")
    fails("SKPURSUIT_PRODUCTS=sse9", panels.select_isa)
    monkeypatch.setenv("SKPURSUIT_PRODUCTS", "plain")
    assert panels.select_isa() == "plain"


@pytest.mark.parametrize("form", FORMS)
def test_certified_selections_of_hostile_families(form, monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    from certified_proof import FAMILIES, check

    for seed in (0, 1, 2, 3):
        for family in FAMILIES:
            for selections, missed, wrong in check(form, family, seed):
                assert (selections > 0, missed, wrong) == (True, 0, 0), (family, seed)
