"""One rule for "this column depends on the others".

A column that is projected off others leaves a remainder. In exact arithmetic the remainder of a column that
depends on them is zero; in floats it is as large as the rounding of the projection, some n EPS of the column,
and at least as large as what was rounding in the column before. At or below that size a remainder says
nothing, and its column counts as dependent, whichever way the projection was computed.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from skpursuit.numerics.arrays import Floats
from skpursuit.numerics.float_range import EPS

Norm = TypeVar("Norm", float, Floats)


def rank_tolerance(n: int) -> float:
    """The size of a remainder that is rounding, relative to its column of n numbers."""
    return 8 * max(16, n) * EPS


def dependence_threshold(n: int, size: Norm, floor: Norm) -> Norm:
    """The norm at or below which the remainder of a column of n numbers and that size is rounding.

    `floor` is the norm of the rounding that the column had before, as by centring (`Design.noise_floor`).
    """
    return np.maximum(floor, rank_tolerance(n) * size)
