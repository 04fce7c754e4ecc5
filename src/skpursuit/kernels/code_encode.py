# mypy: disable-error-code="no-untyped-def"
"""Kernels that turn columns into panels of one-byte codes.

A column is cut into blocks of ``BLOCK_ROWS`` rows. In each block ``x_i = c + s q_i + error`` with a centre
``c``, a scale ``s`` and a code ``q_i`` in [-127, 127], which is stored as the byte ``q_i + 128``. Bytes lie
as [panel of 16 columns][row / 4][16 columns][4 rows]: one cache line holds four rows of a panel, which is
what instructions that multiply bytes take, and what four rows of a C-ordered matrix, or four columns of an
F-ordered one, give without being transposed.

Scales come from the extremes of the block, or are predicted from a sample of rows, which spares a second look
at X: entries beyond the prediction are cut off. What the codes lose is measured after that, so its bound is a
proof either way.
With u = x - c and t = u / s in float32, each step of which rounds by 2**-24 at most, the loss t - q is off by
at most 4 * 2**-24 |t| <= 2**-22 (127 + |t - q|); the sum of its squares in float32 by 2**-15 of itself. So

    ||x - c - s q|| <= s ((1 + 2**-14) ||t - q|| + 2**-14 sqrt(rows))

The squares of the codes are summed too; these sums are integers below 2**24, exact in float32. Rows that fill
up the last four of a block repeat its last row: sums over them are larger, and bounds still hold.

A second byte, where it is asked for, has t - q in 256ths, cut to [-127, 127] too; what it leaves is exact, so
the bound above holds with it in place of t - q, apart from the rounding of t, now relative to a smaller loss.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from skpursuit.kernels.code_intrinsics import (
    PANEL_COLUMNS,
    QUAD_BYTES,
    QUAD_ROWS,
    encode_column_quad,
    encode_row_quad,
    min_max,
)
from skpursuit.kernels.llvm import prefetch

BLOCK_ROWS = 512  # rows in a block
PREFETCH_ROWS = 16  # rows of a block that are asked for before they are looked at
LOW_SCALE = 2.0**-80  # smallest scale of a column that is not constant: its error is still a normal float32


class EncoderArrays(NamedTuple):
    """What is written: codes, and of each block and column how it is encoded and what that loses.

    `sums` has the squares of what one byte loses, of its codes, and of what both lose, added to what is
    there; it and the frames are (..., blocks, columns). `totals` has the sums of the columns of a block, row
    by row, where it is not empty.
    """

    scale: NDArray[np.float32]
    centre: NDArray[np.float64]
    factor: NDArray[np.float32]
    peak: NDArray[np.float64]
    sums: NDArray[np.float32]
    codes: NDArray[np.uint8]
    fine: NDArray[np.uint8] | NDArray[np.bool_]
    totals: NDArray[np.float64]


@njit(cache=True, nogil=True)
def encode_block(b, first, count, flat, at, stride, n, out):
    """Encode block b of `count` columns (a multiple of `PANEL_COLUMNS`) from `first` on, by four rows.

    Entries begin at flat[at], rows are `stride` apart.
    """
    rows, column = min(n - b * BLOCK_ROWS, BLOCK_ROWS), b * out.centre.shape[1] + first
    step = out.codes.shape[1] * QUAD_BYTES
    place = first // PANEL_COLUMNS * step + b * BLOCK_ROWS * PANEL_COLUMNS
    for i in range(0, rows, QUAD_ROWS):
        lines, places = (flat, at + i * stride, stride, rows - i), (place + i * PANEL_COLUMNS, step)
        encode_row_quad(lines, count, out, (column, out.centre.size, out.totals.size), places)


@njit(cache=True, nogil=True)
def min_max_of_rows(flat, at, stride, rows, low, high):
    """Smallest and largest entry of some columns; four rows at a time spare the running ones.

    Entries begin at flat[at], rows are `stride` apart.
    """
    wide = low.size
    for j in range(wide):
        low[j] = flat[at + j]
        high[j] = low[j]
    for i in range(0, rows, 4):
        # Repeating the last row at the end changes no extremum.
        p, q = at + i * stride, at + min(i + 1, rows - 1) * stride
        r, t = at + min(i + 2, rows - 1) * stride, at + min(i + 3, rows - 1) * stride
        # No processor guesses such steps where few columns are looked at.
        for k in range(PREFETCH_ROWS, PREFETCH_ROWS + 4):
            prefetch(flat, p + k * stride)
            prefetch(flat, p + k * stride + wide - 1)
        a, b, c, d = flat[p : p + wide], flat[q : q + wide], flat[r : r + wide], flat[t : t + wide]
        for j in range(wide):
            m = low[j]
            m = a[j] if a[j] < m else m
            m = b[j] if b[j] < m else m
            m = c[j] if c[j] < m else m
            low[j] = d[j] if d[j] < m else m
            m = high[j]
            m = a[j] if a[j] > m else m
            m = b[j] if b[j] > m else m
            m = c[j] if c[j] > m else m
            high[j] = d[j] if d[j] > m else m


@njit(cache=True, nogil=True)
def encode_f_order(lo, hi, flat, stride, shape, room, out):
    """Encode the columns from lo to hi (multiples of `PANEL_COLUMNS`) of a matrix whose columns lie together.

    Four columns of a block stay in the first cache from the time their extremes are found until they are
    encoded. `room` is (copy, held, span): what is no whole number of vectors is copied, with its last row and
    column repeated; `held` is `copy` as memory of X; `span` has room for the extremes of four columns.
    """
    (n, d), (copy, held, span) = shape, room
    scale, codes = out.scale, out.codes
    for j in range(lo, hi, QUAD_ROWS):
        first = (j // PANEL_COLUMNS * codes.shape[1] * PANEL_COLUMNS + j % PANEL_COLUMNS) * QUAD_ROWS
        for b in range(scale.shape[0]):
            start = b * BLOCK_ROWS
            rows = min(BLOCK_ROWS, n - start)
            full = -(-rows // PANEL_COLUMNS) * PANEL_COLUMNS
            x, at, apart = flat, j * stride + start, stride
            if rows < full or j + QUAD_ROWS > d:
                for k in range(QUAD_ROWS):
                    for i in range(full):
                        copy[k * BLOCK_ROWS + i] = flat[min(j + k, d - 1) * stride + start + min(i, rows - 1)]
                x, at, apart = held, 0, BLOCK_ROWS
            for k in range(QUAD_ROWS):
                min_max(x, at + k * apart, full, span, k)
                low = span[0, k]
                high = span[1, k]
                c = 0.5 * np.float64(low + high)  # a number of the type of X
                half = max(high - c, c - low)
                s = 0.0
                if half > 0.0:
                    s = max(np.float64(np.float32(half / 127.0 * (1.0 + 2.0**-20))), LOW_SCALE)
                scale[b, j + k] = s
                out.factor[b, j + k] = 1.0 / s if s > 0.0 else 0.0
                out.centre[b, j + k] = c
                out.peak[b, j + k] = max(abs(low), abs(high))
            ahead = BLOCK_ROWS if b + 1 < scale.shape[0] else QUAD_ROWS * stride - start
            columns, places = (b * scale.shape[1] + j, scale.size), (first + start * PANEL_COLUMNS, ahead)
            encode_column_quad((x, at, apart), full, out, columns, places)
