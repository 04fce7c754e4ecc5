# mypy: disable-error-code="no-untyped-def"
"""Sums over some rows from two bytes an entry, at the speed of memory; see `quantized` for the codes.

Here both bytes of an entry stand together as one 16-bit step, row by row, because halving reads some rows of
all columns. Eight rows are added at a time, so that the sums of a tile of columns are loaded and stored once
for eight rows; rows of one block share a scale and a centre, which are applied once, when its rows are done.

The two inner loops are vectors spelled out (`add_steps`, `put_sums`). Plain Numba was measured against them
on an AVX-512 machine, one thread: 1.29 and 1.05 times slower for 128 and 1000 rows of 5000 x 10000, 1.11
times for 64 rows of 1000 x 2000, and equal for 400 rows of 2000 x 4000.
"""

import numpy as np
from numba import njit

from skpursuit.kernels.vectors import ROW_GROUP, add_steps, put_sums

COMPILED_WITH = "4254ac058d25"  # digest of these files: Numba notes changes of its own file only

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
    parts = out.shape[1]
    flat, scales, centres = steps.reshape(steps.size), scale.reshape(scale.size), centre.reshape(centre.size)
    results = out.reshape(out.size)
    sums = np.empty(TILE, np.float32)
    at = np.empty(ROW_GROUP, np.int64)
    for a in range(lo, hi, TILE):
        count = min(TILE, hi - a)
        wide = (count + 7) // 8 * 8
        for t in range(out.shape[0]):
            for s in range(totals.shape[1]):
                part = s // blocks
                here = (t * parts + part) * out.shape[2] + a
                source = here - out.shape[2] if part > 0 and s % blocks == 0 else here
                if starts[s] == starts[s + 1]:
                    for j in range(wide):
                        sums[j] = 0.0
                for i in range(starts[s], starts[s + 1], ROW_GROUP):
                    for p in range(ROW_GROUP):
                        at[p] = rows[i + p] * steps.shape[1] + a
                    add_steps(flat, at, weights, t * weights.shape[1] + i, sums, wide, i == starts[s])
                frame = s % blocks * scale.shape[1] + a
                put_sums(sums, scales, centres, frame, units[t], totals[t, s], source, results, here, count)
