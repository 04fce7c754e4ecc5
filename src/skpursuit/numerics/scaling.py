"""Sizes whose squares and products stay within the range of floats, and units that bring numbers there.

The range of float64 ends near 1e308 and 1e-308, so squares of numbers beyond 1e154 or below 1e-154 leave it.
What squares a number, or multiplies two, asks here whether the result still has all its digits. Where it has
not, numbers are divided by a power of two, which changes no digit: the largest of them is then near one.
Every constant near the ends of the range stands here, or in `estimate` and `finite` beside what it is for.
"""

from __future__ import annotations

from math import frexp

import numpy as np

SAFE_SIZES = 1e-100, 1e100  # of entries whose products with each other are floats
LEAST_NORM, MOST_NORM = 1e-140, 1e140  # norms whose squares were summed without loss
LEAST_SQUARE, MOST_SQUARE = 1e-180, 1e180  # squared norms of columns that can be multiplied with each other
LEAST_OBJECTIVE, MOST_OBJECTIVE = 1e-200, 1e200  # sums of squares of which none was lost
NEARLY_ZERO, NEARLY_INFINITE = 1e-300, 1e300  # stand for the ends where a number must be positive and finite
LEAST_NORMAL = float(np.finfo(np.float64).tiny)  # numbers below it have fewer digits
VANISHED_SQUARES = 2.0**-500  # more than the root of any sum of squares that underflowed
ORDINARY_POWER = 332  # 2 to this power, 1e100, and its inverse are sizes that every solver can bear
MOST_POWER = 1000  # powers of two up to which numbers, and squares of their roots, are within range


def is_ordinary(size: float) -> bool:
    """Whether squares and products of numbers of this size stay well within the range of floats."""
    return size == 0.0 or abs(frexp(size)[1]) < ORDINARY_POWER


def power_of(size: float) -> int:
    """The power of two by which to divide a number, so that it is near one."""
    return max(-MOST_POWER, min(MOST_POWER, frexp(size)[1]))


def power_of_both(size: float, power: int | None, always: bool = False) -> int | None:
    """The power of two by which to divide numbers of one size and, if given, others of size 2^power.

    0 where both are ordinary, unless `always`. Half-way between the two otherwise, so that neither square is
    lost; None where they are too far apart for that.
    """
    if not always and is_ordinary(size) and (power is None or abs(power) < ORDINARY_POWER):
        return 0
    if power is None:
        return power_of(size)
    if size == 0.0:
        return power
    return None if abs(power - power_of(size)) > MOST_POWER else (power_of(size) + power) // 2
