"""Numbers that have no order, and what happens when some turn up.

Every comparison with NaN is False. Code that looks for the largest of some scores therefore passes over a
NaN, stops at it, or leaves its answer unset, depending on how the comparison is written; and an infinity says
only that a sum left the float range on its way. The column with such a score may well be the one that wins.
So whatever orders scores also asks for a maximum, which is NaN if one of them is, and raises `NotFinite`. The
loop then ends the run as diverged.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

FLOAT64_MAX = float(np.finfo(np.float64).max)


class NonFiniteError(ValueError):
    """NaN, or a number beyond the float range, where a finite one is needed."""


def kth_largest(values: NDArray[np.floating[Any]], k: int) -> float:
    """The k-th largest of some numbers, 1 <= k <= their count; raises `NotFinite` where one is NaN."""
    place = len(values) - k
    parted = np.partition(values, place)  # NaN goes to the end
    if np.isnan(parted[place:].max()):
        raise NonFiniteError("some scores are NaN")
    return float(parted[place])
