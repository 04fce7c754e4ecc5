# mypy: disable-error-code="no-untyped-def"
"""Sums over some rows from two bytes an entry, at the speed of memory; see `quantized` for the codes.

Here both bytes of an entry stand together as one 16-bit step, row by row, because halving reads some rows of
all columns. Eight rows are added at a time, so that the sums of a tile of columns are loaded and stored once
for eight rows; rows of one block share a scale and a centre, which are applied once, when its rows are done.
"""

import numpy as np
from numba import njit

ROW_GROUP = 8  # rows that are added at a time
TILE = 16384  # columns whose sums stay in the second cache: long reads of a row
ALIGN = 64  # columns are handed to threads in multiples of this: no two threads write the same cache line


@njit(cache=True, nogil=True)
def add_rows(lo, hi, steps, scale, centre, rows, starts, weights, units, totals, out):
    """Estimates of sums of weighted rows, for the columns from lo to hi: up to the end of each part.

    Rows come in segments: those of one part that lie in one block. The sums of a segment are made in float32
    and then put to the scale and the centre of the block.

    Parameters
    ----------
    steps : (n, columns padded to a multiple of 8) int16
    scale, centre : (blocks, columns) float32, per step, and float64
    rows : (count,) int64, segment by segment, each filled up to a multiple of ROW_GROUP
    starts : (parts * blocks + 1,) int64, where the segments start
    weights : (m, count) float32, zero for what segments were filled up with
    units : (m,), of the weights
    totals : (m, parts * blocks), sums of the weights in these units
    out : (m, parts, columns) float64, zero in the first part, written
    """
    blocks = scale.shape[0]
    sums = np.empty(TILE, np.float32)
    for a in range(lo, hi, TILE):
        count = min(TILE, hi - a)
        for t in range(out.shape[0]):
            for s in range(totals.shape[1]):
                part = s // blocks
                sums[:count] = 0.0
                for i in range(starts[s], starts[s + 1], ROW_GROUP):
                    _add_eight(steps, rows[i : i + ROW_GROUP], a, weights[t, i : i + ROW_GROUP], sums[:count])
                b = s % blocks
                before = out[t, part - 1 if part > 0 and b == 0 else part, a : a + count]
                frames = scale[b, a : a + count], centre[b, a : a + count]
                _put(sums, *frames, units[t], totals[t, s], before, out[t, part, a : a + count])


@njit(cache=True, nogil=True, fastmath={"contract"})
def _add_eight(steps, rows, a, w, sums):
    """Add eight weighted rows of steps, from column a on."""
    x0, x1, x2, x3 = steps[rows[0], a:], steps[rows[1], a:], steps[rows[2], a:], steps[rows[3], a:]
    x4, x5, x6, x7 = steps[rows[4], a:], steps[rows[5], a:], steps[rows[6], a:], steps[rows[7], a:]
    w0, w1, w2, w3, w4, w5, w6, w7 = w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7]
    for j in range(sums.size):
        even = sums[j] + w0 * np.float32(x0[j])
        odd = w1 * np.float32(x1[j])
        even += w2 * np.float32(x2[j])
        odd += w3 * np.float32(x3[j])
        even += w4 * np.float32(x4[j])
        odd += w5 * np.float32(x5[j])
        even += w6 * np.float32(x6[j])
        odd += w7 * np.float32(x7[j])
        sums[j] = even + odd


@njit(cache=True, nogil=True)
def _put(sums, scale, centre, unit, total, before, out):
    """Set out to `before` and the sums in the scale and about the centre of their block."""
    for j in range(out.size):
        out[j] = before[j] + unit * (np.float64(scale[j]) * np.float64(sums[j]) + total * centre[j])
