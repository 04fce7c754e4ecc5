"""The k largest of many scores; ties go to the lowest index, nothing is sorted in full.

The k-th largest value comes from a partition. One pass over the scores then lists those above it and, of
those equal to it, the first ones. That pass has no branches: every index is written, and the place to write
moves on only if it is kept.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from skpursuit.numerics.finite import kth_largest


@njit(cache=True, nogil=True)
def _above(scores, lowest, equal, out):  # type: ignore[no-untyped-def]
    """List the indices, increasing, of the scores above `lowest` and of the first `equal` ones equal to it.

    `out` has one place more than are kept.
    """
    count = 0
    for j in range(scores.shape[0]):
        tie = np.intp((scores[j] == lowest) & (equal > 0))
        out[count] = j
        equal -= tie
        count += np.intp(scores[j] > lowest) + tie


def keep(scores: NDArray, k: int) -> NDArray:
    """Select the k largest scores: their indices, in increasing order.

    Of the scores equal to the smallest kept one, the lowest indices stay. Linear time. Raises `NotFinite`
    where a score is NaN, with which `_above` would not fill its list.
    """
    count = scores.shape[0]
    if k <= 0 or k >= count:
        return np.arange(count if k > 0 else 0)
    lowest = kth_largest(scores, k)
    out = np.empty(k + 1, np.intp)
    _above(scores, lowest, k - np.count_nonzero(scores > lowest), out)
    return out[:k]
