"""The largest of many scores: first, top k, top half; ties go to the lowest index, nothing is sorted in full.

Scores are what is to be large: ``|v|`` for the absolute problem, ``-v`` for the signed one (`absolute`,
`signed`). Excluded entries score -inf.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray


def absolute(values: NDArray, excluded: NDArray | None = None, out: NDArray | None = None) -> NDArray:
    """Scores |v|; -inf at the excluded indices (or where a mask is True)."""
    scores = np.abs(values, out=out)
    if excluded is not None:
        scores[excluded] = -np.inf
    return scores


def signed(values: NDArray, excluded: NDArray | None = None, out: NDArray | None = None) -> NDArray:
    """Scores -v, so that the smallest entry wins; -inf at the excluded indices (or where a mask is True)."""
    scores = np.negative(values, out=out)
    if excluded is not None:
        scores[excluded] = -np.inf
    return scores


def first(scores: NDArray) -> int:
    """Index of the largest score, the lowest on ties."""
    return int(scores.argmax())


@njit(cache=True, nogil=True)
def _above(scores, cut, equal, out):  # type: ignore[no-untyped-def]
    """List the indices, increasing, of the scores above `cut` and of the first `equal` ones equal to it.

    Without branches, which would be mispredicted half of the time; hence one place more in `out` than kept.
    """
    count = 0
    for j in range(scores.shape[0]):
        tie = np.intp((scores[j] == cut) & (equal > 0))
        out[count] = j
        equal -= tie
        count += np.intp(scores[j] > cut) + tie


def keep(scores: NDArray, k: int) -> NDArray:
    """Select the k largest scores: their indices, in increasing order.

    Of the scores equal to the smallest kept one, the lowest indices stay. Linear time.
    """
    count = scores.shape[0]
    if k <= 0 or k >= count:
        return np.arange(count if k > 0 else 0)
    cut = np.partition(scores, count - k)[count - k]
    out = np.empty(k + 1, np.intp)
    _above(scores, cut, k - np.count_nonzero(scores > cut), out)
    return out[:k]


def keep_half(scores: NDArray, least: int = 1) -> NDArray:
    """Select the better half of the scores, rounded up, but at least `least`: indices, increasing."""
    return keep(scores, max(least, -(-scores.shape[0] // 2)))


def top(scores: NDArray, k: int) -> NDArray:
    """Rank the indices of the k largest scores, best first, the lowest index first among equals."""
    if k == 1 and scores.shape[0]:
        return np.array([first(scores)])
    kept = keep(scores, k)
    return kept[np.argsort(-scores[kept], kind="stable")]
