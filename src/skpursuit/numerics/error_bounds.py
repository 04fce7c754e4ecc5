"""Estimates: numbers with a bound on their error, and the bounds on rounding that they are made with.

A proposal is an `Estimate`: computed in any order and precision, with a bound. A decision (which column, its
sign) comes from sums in a fixed order, and `resolve_top_k` in `selectors/top_k` is the only way from one to
the other.

A bound is a product of small numbers: a rounding unit, the size of a column, the size of a residual. Where a
column or a residual is tiny, such a product underflows, and a bound of zero would call a rounded number
exact. So every bound on rounding is made here. Norms are taken without squaring what cannot be squared, and
each multiplication that may round to zero is followed by adding the smallest positive number. A bound is zero
only where there is nothing to round: for a zero column or a zero residual.
"""

from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from skpursuit.numerics.arrays import Floats, FloatType
from skpursuit.numerics.float_range import EPS
from skpursuit.numerics.sums import safe_norm, safe_norms

Norm = TypeVar("Norm", float, Floats)
SMALLEST_SUBNORMAL = float(np.finfo(np.float64).smallest_subnormal)
SMALLEST_SUBNORMAL_F32 = float(np.finfo(np.float32).smallest_subnormal)


class Estimate(NamedTuple):
    """Numbers and a bound on the error of each; None or zeros: they are products in a fixed order."""

    value: Floats
    error: Floats | None


def residual_norms(r: Floats) -> Floats | float:
    """||r|| of each target, without overflow or underflow."""
    return safe_norm(r) if r.ndim == 1 else safe_norms(r.T)


def outer_error_bound(
    unit: float, sizes: Floats, vector_norms: Floats | float, underflow: Floats | float = SMALLEST_SUBNORMAL
) -> Floats:
    """The products unit * sizes[j] * vector_norms[m], one row for each column, rounded up.

    `underflow` is what it may cost an entry besides; `vector_norms` are positive or zero.
    """
    used = vector_norms > 0
    amount, besides = unit * vector_norms + SMALLEST_SUBNORMAL * used, underflow * used
    if isinstance(vector_norms, float):
        bound = sizes * amount
        if besides < 0.2 * EPS * bound.min(initial=np.inf):  # lost in the rounding of all
            return bound
        return bound + (sizes > 0) * besides
    return np.multiply.outer(sizes, amount) + np.multiply.outer(sizes > 0, besides)


def guard_underflow(bound: Floats, source: Floats) -> NDArray[np.float64]:
    """A bound that came from `source` by a multiplication or division, and may have underflowed in it."""
    return bound + SMALLEST_SUBNORMAL * (source > 0)


def product_error_bound(unit: float, sizes: Floats, r: Floats, dtype: FloatType) -> Floats:
    """Rounding of X^T r in the precision of X: unit ||x_j|| ||r||, and products that are below its range."""
    # The residual of a float32 product is divided by at most 4 n max|r| first (see `cast_residual`), so that
    # what vanishes there is relative to it.
    n, reach = len(r), residual_norms(r)
    if dtype == np.float64:
        return outer_error_bound(unit, sizes, reach, n * SMALLEST_SUBNORMAL)
    below = n * 4 * n * SMALLEST_SUBNORMAL_F32 * reach + n * SMALLEST_SUBNORMAL
    return outer_error_bound(unit, sizes, reach, below)


def sum_error_bound(unit: float, amounts: Floats, r: Floats) -> Floats:
    """Rounding of amounts[j] * sum(r), and of a sum that it is subtracted from."""
    return outer_error_bound(unit, np.abs(amounts), np.abs(r).sum(axis=0))


def rank_tolerance(n: int) -> float:
    """The size of a remainder that is rounding, relative to its column of n numbers.

    One rule for "this column depends on the others". A column that is projected off others leaves a
    remainder. In exact arithmetic that of a column that depends on them is zero; in floats it is as large as
    the rounding of the projection, some n EPS of the column, and at least as large as what was rounding in
    the column before. At or below that size it says nothing, and its column counts as dependent.
    """
    return 8 * max(16, n) * EPS


def dependence_threshold(n: int, size: Norm, floor: Norm) -> Norm:
    """The norm at or below which the remainder of a column of n numbers and that size is rounding.

    `floor` is the norm of the rounding that the column had before, as by centring (`Design.noise_floor`).
    """
    return np.maximum(floor, rank_tolerance(n) * size)
