# mypy: disable-error-code="no-untyped-def"
"""Sums over some rows from two bytes an entry, at the speed of memory; see `quantized` for the codes."""

import numpy as np
from numba import njit

from skpursuit.kernels.vectors import prefetch

TILE = 16384  # columns whose sums stay in the second cache: long reads of a row
PIECE = 256  # columns summed before the next are asked for
AHEAD = 512  # columns by which rows are asked for ahead
ALIGN = 64  # columns are handed to threads in multiples of this: no two threads write the same cache line


@njit(cache=True, nogil=True)
def add_rows(lo, hi, steps, scale, centre, rows, starts, weights, units, totals, out):
    """Estimates of sums of weighted rows, for the columns from lo to hi: up to the end of each part.

    Rows come in segments: those of one part that lie in one block. The sums of a segment are made in float32
    and then put to the scale and the centre of the block.

    Parameters
    ----------
    steps : (n, columns) int16
    scale, centre : (blocks, columns) float32, per step, and float64
    rows : (count,) int64, segment by segment
    starts : (parts * blocks + 1,) int64, where the segments start
    weights : (m, count) float32
    units : (m,), of the weights
    totals : (m, parts * blocks), sums of the weights in these units
    out : (m, parts, columns) float64, zero in the first part, written
    """
    blocks = scale.shape[0]
    flat = steps.reshape(steps.size)
    stride = steps.shape[1]
    held = np.empty(TILE, np.float32)
    for a in range(lo, hi, TILE):
        b = min(a + TILE, hi)
        sums = held[: b - a]
        for t in range(out.shape[0]):
            for s in range(totals.shape[1]):
                part, block = divmod(s, blocks)
                if part > 0 and block == 0:
                    for j in range(a, b):
                        out[t, part, j] = out[t, part - 1, j]
                if starts[s] < starts[s + 1]:
                    _add_segment(
                        flat, stride, a, rows[starts[s] : starts[s + 1]], weights[t, starts[s] :], sums
                    )
                    _put(
                        sums, scale[block, a:b], centre[block, a:b], units[t], totals[t, s], out[t, part, a:b]
                    )


@njit(cache=True, nogil=True, fastmath={"contract"})
def _add_segment(flat, stride, a, rows, weights, sums):
    """Sum over rows of weight times steps, eight rows at a time; rows past the last weigh nothing."""
    size = sums.size
    w = np.zeros(8, np.float32)
    at = np.zeros(8, np.int64)
    for i in range(0, rows.size, 8):
        for p in range(8):
            w[p] = weights[i + p] if i + p < rows.size else np.float32(0.0)
            at[p] = rows[min(i + p, rows.size - 1)] * stride + a
        w0, w1, w2, w3, w4, w5, w6, w7 = w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7]
        for start in range(0, size, PIECE):
            stop = min(start + PIECE, size)
            for p in range(8):
                for j in range(start + AHEAD, min(stop + AHEAD, size), 32):
                    prefetch(flat, at[p] + j)
            x0, x1 = flat[at[0] + start : at[0] + stop], flat[at[1] + start : at[1] + stop]
            x2, x3 = flat[at[2] + start : at[2] + stop], flat[at[3] + start : at[3] + stop]
            x4, x5 = flat[at[4] + start : at[4] + stop], flat[at[5] + start : at[5] + stop]
            x6, x7 = flat[at[6] + start : at[6] + stop], flat[at[7] + start : at[7] + stop]
            some = sums[start:stop]
            for j in range(stop - start):
                one = (
                    w0 * np.float32(x0[j])
                    + w1 * np.float32(x1[j])
                    + w2 * np.float32(x2[j])
                    + w3 * np.float32(x3[j])
                )
                two = (
                    w4 * np.float32(x4[j])
                    + w5 * np.float32(x5[j])
                    + w6 * np.float32(x6[j])
                    + w7 * np.float32(x7[j])
                )
                some[j] = (one + two) + (some[j] if i else np.float32(0.0))


@njit(cache=True, nogil=True)
def _put(sums, scale, centre, unit, total, out):
    """Add a segment to its part."""
    for j in range(sums.size):
        out[j] += unit * (np.float64(scale[j]) * np.float64(sums[j]) + centre[j] * total)
