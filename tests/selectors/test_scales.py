"""Answers called exact, and error bounds, against sums in rational numbers: tiny residuals, large means."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

from skpursuit import Budget, Certified, Exact, Greedy
from skpursuit.data import as_design
from skpursuit.selectors import Query
from tests.support import data

SELECTORS = {"exact": Exact(), "greedy": Greedy(Budget(1.0)), "certified": Certified()}
MANY = [pytest.param(60, id="few"), pytest.param(2000, id="many", marks=pytest.mark.slow)]
EPS = Fraction(2) ** -52


def alike(rng):
    """Columns that differ by little, so that rounding decides where it is not bounded."""
    n, d = int(rng.integers(4, 30)), int(rng.integers(2, 9))
    Z = rng.standard_normal((n, 1)) + 10.0 ** rng.uniform(-9, -2) * rng.standard_normal((n, d))
    return np.asfortranarray(Z) if rng.random() < 0.5 else Z


def products(X, r, centre=None):
    """X^T r and the sums of |x| |r|, as rational numbers, for X less its centres."""
    r = [Fraction(float(v)) for v in r]
    columns = [[Fraction(float(v)) for v in x] for x in X.T]
    if centre is not None:
        columns = [[v - Fraction(float(c)) for v in x] for x, c in zip(columns, centre)]
    terms = [[v * u for v, u in zip(x, r)] for x in columns]
    return [sum(t) for t in terms], [sum(abs(v) for v in t) for t in terms]


def is_right(answer, g, reach, n):
    """Whether no column beats the answer by more than the rounding of a float64 product of that column."""
    assert answer.certificate == "exact"
    best = abs(g[int(answer.columns[0])])
    return all(best + 4 * n * EPS * max(reach) >= abs(other) for other in g)


@pytest.mark.parametrize("count", MANY)
@pytest.mark.parametrize("selector", SELECTORS)
def test_tiny_and_huge_residuals(selector, count):
    wrong = 0
    for seed in range(count):
        rng = np.random.default_rng(seed)
        power, size = rng.choice([-570, -300, 300, 900]), rng.choice([-140, -120, 0, 100])
        X = np.ldexp(alike(rng), size).astype(np.float32 if rng.random() < 0.7 else np.float64)
        r = np.ldexp(rng.standard_normal(len(X)), power)
        source = sparse.csr_array(X) if rng.random() < 0.3 else X
        answer = SELECTORS[selector].select(as_design(source), Query(r))
        wrong += not is_right(answer, *products(X, r), len(X))
    assert wrong == 0


@pytest.mark.parametrize("count", MANY)
@pytest.mark.parametrize("selector", SELECTORS)
@pytest.mark.parametrize("ratio", [1.0, 1e9, 1e12])
def test_means_that_dwarf_the_spread(selector, ratio, count):
    wrong = 0
    for seed in range(count):
        rng = np.random.default_rng(seed)
        X = alike(rng)
        X += ratio * rng.standard_normal(X.shape[1])
        r = rng.standard_normal(len(X))
        r -= r.mean() if rng.random() < 0.6 else 0.0
        base = as_design(sparse.csc_array(X) if rng.random() < 0.3 else X)
        centre = base.survey().means
        view, counted = data.view(base, centre), X
        if rng.random() < 0.3:
            view, counted = data.with_intercept(view), np.column_stack([X, np.ones(len(X))])
            centre = np.append(centre, 0.0)
        answer = SELECTORS[selector].select(view, Query(r))
        wrong += not is_right(answer, *products(counted, r, centre), len(X))
    assert wrong == 0


@pytest.mark.parametrize("ratio", [1e6, 1e9])
@pytest.mark.parametrize("power", [0, -700, -1040])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_bounds_of_views_hold(ratio, power, dtype):
    """Bounds of every way to a product, on a constant column over a centred view and on the view."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = (ratio + 1e-3 * rng.standard_normal((20, 4))).astype(dtype)
        r = np.ldexp(rng.standard_normal(20), power)
        base = as_design(X)
        centre = base.survey().means
        view = data.view(base, centre, scale=rng.uniform(1.0, 1e3, 4))
        truth, _ = products(X, r, centre)
        truth = [g / Fraction(float(s)) for g, s in zip(truth, view.view.scale)]
        with_ones = [*truth, sum(Fraction(float(v)) for v in r)]
        for design, wanted in ((view, truth), (data.with_intercept(view), with_ones)):
            everything, sums = np.arange(20), np.zeros(len(wanted))
            design.add_rows(everything, r, sums)
            ways = {
                "product": (design.product(r), design.rounding(r)),
                "sums": (sums, design.rounding(r, any_order=True)),
                "codes": design.codes().estimate(r),
                "fine codes": design.codes(fine=True).estimate(r, second_byte=True),
            }
            for way, (g, bound) in ways.items():
                for j, right in enumerate(wanted):
                    assert bound[j] > 0, way
                    assert abs(Fraction(float(g[j])) - right) <= Fraction(float(bound[j])), way


def test_equal_columns_tie_however_their_means_were_rounded():
    for seed in range(100):
        rng = np.random.default_rng(seed)
        n, d = int(rng.integers(5, 3000)), int(rng.integers(3, 12))
        X = rng.standard_normal((n, d)) + 10.0 ** rng.uniform(0, 9)
        X[:, rng.permutation(d)[: d // 2]] = X[:, [0]]
        y = X[:, 0] - X[:, 0].mean() + 1e-3 * rng.standard_normal(n)
        base = as_design(np.asfortranarray(X) if seed % 2 else X)
        answer = Exact().select(data.view(base, base.survey().means), Query(y - y.mean()))
        assert answer.columns.tolist() == [0]
