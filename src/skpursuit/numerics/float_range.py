"""The sizes that numbers may have, so that their squares and products stay within the range of floats.

The range of float64 ends near 1e308 and 1e-308, and squares of numbers beyond 1e154 or below 1e-154 leave it.
So X, y and weights of other sizes are refused where a caller gives them (`check_range`), and nothing below
has to mind. Every constant near the ends of the range stands here, or in `error_bounds` beside what it is
for.

Every comparison with NaN is False, so code that looks for the largest of some scores may pass over a NaN, and
the column with such a score may well be the one that wins. Whatever orders scores therefore also asks for a
maximum, which is NaN if one of them is, and raises `NonFiniteError`. The loop then ends the run as diverged.
"""

from collections.abc import Callable
from math import frexp
from typing import Any

import numpy as np

from skpursuit.numerics.arrays import Floats

EPS = float(np.finfo(np.float64).eps)
FLOAT64_MAX = float(np.finfo(np.float64).max)
LEAST_SIZE, MOST_SIZE = 1e-100, 1e100  # of columns, targets and weights
MIN_SAFE_NORM, MAX_SAFE_NORM = 1e-140, 1e140  # norms whose squares were summed without loss
TINY_POSITIVE = 1e-300  # stands for zero where a number must be positive
UNDERFLOW_NORM_BOUND = 2.0**-500  # more than the root of any sum of squares that underflowed
MOST_POWER = 1000  # powers of two up to which numbers, and squares of their roots, are within range


def check_range(sizes: Floats, name_of: Callable[[int], str]) -> None:
    """Refuse sizes other than zero outside of [LEAST_SIZE, MOST_SIZE]; `name_of` names what has a size."""
    wrong = np.flatnonzero((sizes != 0.0) & ~((sizes >= LEAST_SIZE) & (sizes <= MOST_SIZE)))
    if len(wrong):
        i, size = int(wrong[0]), float(sizes[wrong[0]])
        raise ValueError(
            f"{name_of(i)} is of size {size:.2g}, and sizes must lie between {LEAST_SIZE:g} and "
            f"{MOST_SIZE:g}, or products leave the range of floats; divide it by {size:.0e}"
        )


def product_in_range(A: Any, B: Floats) -> Floats:
    """A @ B for dense or sparse A, in their dtype, or in float64 where the product leaves float32."""
    if np.result_type(A, B) != np.float64:
        with np.errstate(over="ignore", invalid="ignore"):
            product = np.asarray(A @ B)
        if np.isfinite(product).all():
            return product
        A = A.astype(np.float64)
    return np.asarray(A @ B)


def power_of(size: float) -> int:
    """The power of two by which to divide a number, so that it is near one."""
    return max(-MOST_POWER, min(MOST_POWER, frexp(size)[1]))


class NonFiniteError(ValueError):
    """NaN, or a number beyond the float range, where a finite one is needed."""


def kth_largest(values: Floats, k: int) -> float:
    """The k-th largest of some numbers, 1 <= k <= their count; raises `NonFiniteError` where one is NaN."""
    place = len(values) - k
    parted = np.partition(values, place)  # NaN goes to the end
    if np.isnan(parted[place:].max()):
        raise NonFiniteError("some scores are NaN")
    return float(parted[place])
