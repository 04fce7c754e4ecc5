"""Some columns only: exact scores of the few that survive, and copies of columns into contiguous memory.

Which way is fastest is a matter of cache lines. In C order a listed column costs one line for every row, so a
tenth of the columns is as slow as all of them; there, columns that will be asked for again are worth a copy
(`gather_columns`). In F order, or in such a copy, a column is one stream (`dot_columns`).
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from skpursuit.kernels.llvm import prefetch
from skpursuit.numerics import threads

from . import rows as by_rows

# Partial sums of `dot_columns`: fixed lanes instead of leave to reorder, so that the bits are the same
# on every machine, and the compiler still vectorises.
DOT_LANES = 16
LINE = 64  # bytes
# Listed columns per cache line of a row from which reading whole rows is faster than picking (measured:
# picking 625 of 10000 float64 columns, 0.5 a line, takes 0.85 to 1.15 of the time of whole rows).
FULL_ROW_THRESHOLD = 0.4
HEIGHT = 128  # rows copied of one column before the next: the lines asked for wait in the first cache
BATCH = 512  # columns copied in one sweep over the rows: their lines being written stay in cache


@njit(cache=True, nogil=True)
def accumulate_flat_columns(lo, hi, flat, stride, rows, weights, cols, out):  # type: ignore[no-untyped-def]
    """Add ``weights.T @ X[rows][:, cols[lo:hi]]`` to out[:, lo:hi] for rows adjacent in memory.

    The same sums in the same order as `rows.accumulate_flat`.
    """
    count = rows.shape[0]
    even = count - count % 8
    for i in range(0, even, 8):
        p0, p1, p2, p3 = rows[i] * stride, rows[i + 1] * stride, rows[i + 2] * stride, rows[i + 3] * stride
        p4, p5, p6, p7 = (
            rows[i + 4] * stride,
            rows[i + 5] * stride,
            rows[i + 6] * stride,
            rows[i + 7] * stride,
        )
        for t in range(weights.shape[1]):
            w0, w1, w2, w3 = weights[i, t], weights[i + 1, t], weights[i + 2, t], weights[i + 3, t]
            w4, w5, w6, w7 = weights[i + 4, t], weights[i + 5, t], weights[i + 6, t], weights[i + 7, t]
            for c in range(lo, hi):
                j = cols[c]
                out[t, c] += (
                    (w0 * flat[p0 + j] + w1 * flat[p1 + j]) + (w2 * flat[p2 + j] + w3 * flat[p3 + j])
                ) + ((w4 * flat[p4 + j] + w5 * flat[p5 + j]) + (w6 * flat[p6 + j] + w7 * flat[p7 + j]))
    for i in range(even, count):
        p = rows[i] * stride
        for t in range(weights.shape[1]):
            for c in range(lo, hi):
                out[t, c] += weights[i, t] * flat[p + cols[c]]


@njit(cache=True, nogil=True)
def dot_columns(lo, hi, flat, stride, weights, cols, out):  # type: ignore[no-untyped-def]
    """Add ``weights @ X[:, cols[lo:hi]]`` to out[:, lo:hi] for columns adjacent in memory.

    Parameters
    ----------
    lo, hi : int
        Which of `cols`.
    flat : array, 1-d
        The memory of X.T, X[i, j] = flat[j * stride + i].
    stride : int
        Entries from one column to the next.
    weights : float64 array (m, n)
        Weight of every row for each of m targets; zero for rows that are left out.
    cols : int64 array (k,)
        The columns.
    out : float64 array (m, k)
        The sums.
    """
    n = weights.shape[1]
    sums = np.empty((4, DOT_LANES))
    for a in range(lo, hi, 4):
        # Four columns at a time for four streams; the last group repeats its last column, so that a column
        # is summed in the same order wherever it stands.
        p0, p1 = cols[a] * stride, cols[min(a + 1, hi - 1)] * stride
        p2, p3 = cols[min(a + 2, hi - 1)] * stride, cols[min(a + 3, hi - 1)] * stride
        x0, x1, x2, x3 = flat[p0 : p0 + n], flat[p1 : p1 + n], flat[p2 : p2 + n], flat[p3 : p3 + n]
        for t in range(weights.shape[0]):
            w = weights[t]
            sums[:] = 0.0
            full = n - n % DOT_LANES
            for i in range(0, full, DOT_LANES):
                for q in range(DOT_LANES):
                    sums[0, q] += x0[i + q] * w[i + q]
                    sums[1, q] += x1[i + q] * w[i + q]
                    sums[2, q] += x2[i + q] * w[i + q]
                    sums[3, q] += x3[i + q] * w[i + q]
            for i in range(full, n):
                sums[0, i - full] += x0[i] * w[i]
                sums[1, i - full] += x1[i] * w[i]
                sums[2, i - full] += x2[i] * w[i]
                sums[3, i - full] += x3[i] * w[i]
            for c in range(a, min(a + 4, hi)):
                total = 0.0
                for q in range(DOT_LANES):
                    total += sums[c - a, q]
                out[t, c] += total


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


@njit(cache=True, nogil=True)
def accumulate_csr_columns(indptr, indices, data, rows, weights, place, out):  # type: ignore[no-untyped-def]
    """Add the listed columns of ``weights.T @ X[rows]`` to out (m, k) for X in CSR.

    ``place[j]`` is where column j stands in the list, or -1.
    """
    for i in range(rows.shape[0]):
        row = rows[i]
        for p in range(indptr[row], indptr[row + 1]):
            c = place[indices[p]]
            if c >= 0:
                for t in range(weights.shape[1]):
                    out[t, c] += weights[i, t] * data[p]


def scatter_weights(n: int, rows: NDArray, weights: NDArray) -> NDArray:
    """Weights (k, m) of some rows as weights (m, n) of all: what the column-wise kernels take."""
    return np.stack([np.bincount(rows, w, n) for w in weights.T])


def prefer_full_rows(X: NDArray, count: int) -> bool:
    """Whether `count` columns of a C-ordered X touch so many cache lines that all may as well be read."""
    return count * (LINE // X.itemsize) > FULL_ROW_THRESHOLD * X.shape[1]


def accumulate_dense_columns(
    X: NDArray, rows: NDArray, weights: NDArray, cols: NDArray, out: NDArray
) -> None:
    """Add the listed columns of the weighted rows of a dense X to out.

    Parameters
    ----------
    X : float32 or float64 array (n, d)
        C order: single entries are picked, or whole rows read where that is faster (the same bits). Columns
        adjacent (F order): whole columns are read, whatever the rows.
    rows : int64 array (k,)
        The rows.
    weights : float64 array (k,) or (k, m)
        Their weights.
    cols : int64 array (c,), increasing
        The columns.
    out : float64 array (c,) or (m, c)
        Receives the sums.
    """
    weights, sums = by_rows.targets(weights, out)
    wide = by_rows.flat_rows(X)
    tall = by_rows.flat_rows(X.T) if wide is None else None
    if tall is not None:
        everywhere = scatter_weights(X.shape[0], rows, weights)
        work = everywhere.size * cols.shape[0]
        threads.parallel_for(dot_columns, cols.shape[0], 8, work, (*tall, everywhere, cols, sums))
    elif wide is None or prefer_full_rows(X, cols.shape[0]):
        whole = np.zeros((weights.shape[1], X.shape[1]))
        whole[:, cols] = sums
        by_rows.accumulate_dense(X, rows, weights, whole)
        sums[:] = whole[:, cols]
    else:
        work = weights.size * cols.shape[0]
        threads.parallel_for(
            accumulate_flat_columns, cols.shape[0], 8, work, (*wide, rows, weights, cols, sums)
        )


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
