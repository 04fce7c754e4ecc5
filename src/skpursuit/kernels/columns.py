"""Copies of columns into contiguous memory.

In C order a listed column costs one cache line for every row, so a tenth of the columns is as slow as all of
them: columns that will be asked for again are worth a copy.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from skpursuit.kernels.llvm import prefetch
from skpursuit.numerics import threads

from . import rows as by_rows

HEIGHT = 128  # rows copied of one column before the next: the lines asked for wait in the first cache
BATCH = 512  # columns copied in one sweep over the rows: their lines being written stay in cache


@njit(cache=True, nogil=True)
def gather_flat(lo, hi, flat, stride, cols, out):  # type: ignore[no-untyped-def]
    """Set out[c, i] = X[i, cols[c]] for rows i from lo to hi; rows adjacent in memory.

    While some rows of a column are copied, the line of each in the column that comes next is asked for: no
    processor guesses such steps by itself, and waiting for them takes half of the time.
    """
    for first in range(0, cols.shape[0], BATCH):
        last = min(first + BATCH, cols.shape[0])
        for a in range(lo, hi, HEIGHT):
            b = min(a + HEIGHT, hi)
            for c in range(first, last):
                step = min(HEIGHT, hi - b) * stride + cols[first] - cols[c]
                if c + 1 < last:
                    step = cols[c + 1] - cols[c]
                for i in range(a, b):
                    at = i * stride + cols[c]
                    prefetch(flat, at + step)
                    out[c, i] = flat[at]


def gather_columns(X: NDArray, cols: NDArray, out: NDArray) -> None:
    """Copy columns of X into the rows of out (c, n), which may be of another precision.

    In C order long lists are copied at the speed of reading X; short ones cost a cache line for each entry.
    """
    memory = by_rows.flat_rows(X)
    if memory is None:
        out[:] = X.T[cols]
        return
    work = X.shape[0] * cols.shape[0]
    threads.parallel_for(gather_flat, X.shape[0], 64, work, (*memory, cols, out))


def transposed(X: NDArray) -> NDArray:
    """Copy X.T into C order by blocks: the second layout of a C-ordered X, or X.T of an F-ordered one."""
    out = np.empty(X.shape[::-1], X.dtype)
    gather_columns(X, np.arange(X.shape[1]), out)
    return out
