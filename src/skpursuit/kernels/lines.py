"""Sums of rows of X, and copies of its columns into contiguous memory, at the speed of memory.

Row accumulation is ``out[j] += sum_i weights[i] * X[rows[i], j]``. Eight rows are read at a time, columns
innermost, so that every load is a stream and the partial sums stay in the second-level cache. Each column is
summed in the order of ``rows``, eight by eight, whatever the tile or the number of threads: the bits of the
result depend on ``rows`` alone. Sums are float64 for float32 data too, and no operation is contracted or
reordered by the compiler, so equal columns give equal sums.

In C order a listed column costs one cache line for every row, so a tenth of the columns is as slow as all of
them: columns that will be asked for again are worth a copy.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from skpursuit.kernels.llvm import prefetch
from skpursuit.numerics import threads

# Columns a pass works on: 8192 sums are 64 kB, a comfortable part of a second-level cache. Shorter tiles cut
# the streams (512 columns: 1.5 times slower). With several targets the rows, read once for each, must stay
# in cache too.
TILE_COLUMNS = 8192
TILE_TARGETS = 1024
# Columns are handed to threads in multiples of this: no two threads write the same cache line.
ALIGN = 64
HEIGHT = 128  # rows copied of one column before the next: the lines asked for wait in the first cache
BATCH = 512  # columns copied in one sweep over the rows: their lines being written stay in cache


@njit(cache=True, nogil=True)
def accumulate_flat(lo, hi, flat, stride, rows, weights, out):  # type: ignore[no-untyped-def]
    """Columns lo to hi of ``out += weights.T @ X[rows]`` for X[i, j] = flat[i * stride + j] (`flat_rows`).

    Rows, int64, are added in their order; weights are (k, m) and sums (m, d), both float64.
    """
    m = weights.shape[1]
    tile = TILE_COLUMNS if m == 1 else TILE_TARGETS
    count = rows.shape[0]
    even = count - count % 8
    for a in range(lo, hi, tile):
        b = min(a + tile, hi)
        for i in range(0, even, 8):
            x0 = flat[rows[i] * stride + a : rows[i] * stride + b]
            x1 = flat[rows[i + 1] * stride + a : rows[i + 1] * stride + b]
            x2 = flat[rows[i + 2] * stride + a : rows[i + 2] * stride + b]
            x3 = flat[rows[i + 3] * stride + a : rows[i + 3] * stride + b]
            x4 = flat[rows[i + 4] * stride + a : rows[i + 4] * stride + b]
            x5 = flat[rows[i + 5] * stride + a : rows[i + 5] * stride + b]
            x6 = flat[rows[i + 6] * stride + a : rows[i + 6] * stride + b]
            x7 = flat[rows[i + 7] * stride + a : rows[i + 7] * stride + b]
            for t in range(m):
                w0, w1, w2, w3 = weights[i, t], weights[i + 1, t], weights[i + 2, t], weights[i + 3, t]
                w4, w5, w6, w7 = weights[i + 4, t], weights[i + 5, t], weights[i + 6, t], weights[i + 7, t]
                sums = out[t, a:b]
                for j in range(b - a):
                    sums[j] += ((w0 * x0[j] + w1 * x1[j]) + (w2 * x2[j] + w3 * x3[j])) + (
                        (w4 * x4[j] + w5 * x5[j]) + (w6 * x6[j] + w7 * x7[j])
                    )
        for i in range(even, count):
            x = flat[rows[i] * stride + a : rows[i] * stride + b]
            for t in range(m):
                w = weights[i, t]
                sums = out[t, a:b]
                for j in range(b - a):
                    sums[j] += w * x[j]


def flat_rows(X: NDArray) -> tuple[NDArray, int] | None:
    """View the memory of X as a read-only 1-d array, with the number of entries from one row to the next.

    None if the columns are not adjacent in memory (or a row does not start at a whole entry after the last).
    One type for arrays, slices of columns, memory maps and read-only arrays: one compiled kernel for all.
    """
    if X.flags.c_contiguous:
        flat = X.reshape(-1)
        stride = X.shape[1]
    else:
        step = X.strides[0]
        adjacent = X.strides[1] == X.itemsize or X.shape[1] == 1
        if not adjacent or step < 0 or step % X.itemsize:
            return None
        stride = step // X.itemsize
        size = (X.shape[0] - 1) * stride + X.shape[1]
        flat = np.lib.stride_tricks.as_strided(X, (size,), (X.itemsize,), writeable=False)
    flat.flags.writeable = False
    return flat, stride


def accumulate_dense(X: NDArray, rows: NDArray, weights: NDArray, out: NDArray) -> None:
    """Add the weighted rows of a dense float32 or float64 X to out.

    Fast when columns are adjacent in memory (C order, slices of columns); right for any strides. Rows, int64,
    may repeat; weights are (k,) or (k, m), and out, in C order, (d,) or (m, d).
    """
    weights, sums = (weights[:, None], out[None]) if weights.ndim == 1 else (weights, out)
    memory = flat_rows(X)
    per_row = X.shape[1] * weights.shape[1]
    step = max(8, threads.MAX_KERNEL_WORK // max(per_row, 1) // 8 * 8)
    for a in range(0, rows.shape[0], step):
        some, their = rows[a : a + step], weights[a : a + step]
        work = some.shape[0] * per_row
        if memory is None:  # columns are not adjacent: rows are copied
            copy, some = np.ascontiguousarray(X[some]).reshape(-1), np.arange(len(some))
            copy.flags.writeable = False  # as memory of X: one compiled kernel for both
        flat, stride = (copy, X.shape[1]) if memory is None else memory
        threads.parallel_for(accumulate_flat, X.shape[1], ALIGN, work, (flat, stride, some, their, sums))


@njit(cache=True, nogil=True)
def gather_flat(lo, hi, flat, stride, cols, out):  # type: ignore[no-untyped-def]
    """Set out[c, i] = X[i, cols[c]] for rows i from lo to hi; rows adjacent in memory."""
    # While some rows of a column are copied, the line of each in the column that comes next is asked for: no
    # processor guesses such steps by itself, and waiting for them takes half of the time.
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
    """Copy columns of X into the rows of out (c, n), which may be of another precision."""
    # In C order long lists are copied at the speed of reading X; short ones cost a cache line for each entry.
    memory = flat_rows(X)
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
