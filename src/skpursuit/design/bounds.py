"""Bounds on the rounding of products, which never vanish.

A bound is a product of small numbers: a rounding unit, the size of a column, the size of a residual. Where a
column or a residual is tiny, such a product underflows, and a bound of zero would call a rounded number
exact. So every bound on rounding is made here. Norms are taken without squaring what cannot be squared, and
each multiplication that may round to zero is followed by adding the smallest positive number. A bound is zero
only where there is nothing to round: for a zero column or a zero residual.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skpursuit.design.kept import Floats
from skpursuit.design.sums import scaled_norm, scaled_norms, spare_bits

EPS = float(np.finfo(np.float64).eps)
LEAST = float(np.finfo(np.float64).smallest_subnormal)
PLAIN = 1e-15  # columns and residuals above this lose nothing to underflow that their bounds do not cover
LEAST_SINGLE = float(np.finfo(np.float32).smallest_subnormal)


def norms_of(r: Floats) -> Any:
    """||r|| of each target, without overflow or underflow."""
    return np.float64(scaled_norm(r)) if r.ndim == 1 else scaled_norms(r.T)


def outer_bound(unit: float, sizes: Floats, reach: Any) -> Floats:
    """The products unit * sizes[j] * reach[m], one row for each column, rounded up."""
    reach = np.asarray(reach)
    amount = np.where(reach > 0, unit * reach + LEAST, 0.0)
    return raised(np.multiply.outer(sizes, amount), np.multiply.outer(sizes, amount > 0))


def raised(bound: Floats, source: Floats) -> NDArray[np.float64]:
    """A bound that came from `source` by a multiplication or division, and may have underflowed in it."""
    return bound + LEAST * (source > 0)


def product_bound(unit: float, sizes: Floats, r: Floats, dtype: np.dtype[Any]) -> Floats:
    """Rounding of X^T r in the precision of X: unit ||x_j|| ||r||, and products that are below its range.

    The residual of a float32 product is divided by at most 4 n max|r| first (see `as_precision`), so that
    what vanishes there is relative to it.
    """
    reach = norms_of(r)
    if sizes.min() > PLAIN and reach.min() > PLAIN:
        return np.multiply.outer(sizes, unit * reach)
    if dtype == np.float32:
        vanished = len(r) * LEAST_SINGLE * 2.0 ** (1 + spare_bits(len(r)))
        sizes = np.where(sizes > 0, sizes + vanished / unit, 0.0)
    bound = outer_bound(unit, sizes, reach)
    return bound + len(r) * LEAST * (bound > 0)


def total_bound(unit: float, amounts: Floats, r: Floats) -> Floats:
    """Rounding of amounts[j] * sum(r), and of a sum that it is subtracted from."""
    return outer_bound(unit, np.abs(amounts), np.abs(r).sum(axis=0))
