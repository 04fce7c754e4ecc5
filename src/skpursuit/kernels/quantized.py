# mypy: disable-error-code="no-untyped-def"
"""Kernels on int8 codes: encode columns, multiply the codes by a residual, bound the error.

A column is cut into blocks of ``ROWS`` rows. In each block ``x_i = c + s q_i + error`` with a centre ``c``, a
scale ``s`` and a code ``q_i`` in [-127, 127]. Codes are stored column by column, so that one column is one
contiguous read. The residual is rounded to 16-bit integers per block: the sum over a block is then exact in
32-bit integers (127 * 32767 * 512 < 2**31), in any order.
"""

import numpy as np
from numba import njit

from skpursuit.kernels.vectors import dot, prefetch

COMPILED_WITH = "2f31b2f868eb"  # digest of these files: Numba notes changes of its own file only

ROWS = 512  # rows in a block; with more the 32-bit sums could overflow
LANES = 64  # rows are padded to a multiple of this many zero codes
FINE = 128.0  # steps of an entry by rows in one step of the code
ROUND = 1.5 * 2**52  # adding and subtracting it rounds to the nearest integer
FEW = 8  # columns whose products with a residual are made before they are put together
TABLE = 7  # numbers per block that `estimate_columns` needs of the residual


@njit(cache=True, nogil=True)
def estimate_columns(lo, hi, codes, scale, centre, error, cols, residual, table, out):
    """Estimate, error bound and variance proxy of x_j . r for the columns cols[lo:hi].

    `residual` is (m, rows) int16 and `table` (m, TABLE, blocks), both from `quantize_residual`; `out` is
    (m, 3, columns). The codes of a few columns stay in the cache for all m residuals, and those of the next
    are asked for meanwhile: they may be far away.
    """
    rows = codes.shape[1]
    flat = codes.reshape(codes.size)
    whole = residual.reshape(residual.size)
    sums = np.empty((FEW, scale.shape[1]))
    for start in range(lo, hi, FEW):
        stop = min(start + FEW, hi)
        for k in range(residual.shape[0]):
            for a in range(start, stop):
                here = cols[a] * rows
                ahead = cols[min(a + 1, hi - 1)] * rows
                for b in range(scale.shape[1]):
                    first = b * ROWS
                    count = min(ROWS, rows - first)
                    for i in range(first, first + count, LANES):
                        prefetch(flat, ahead + i)
                    sums[a - start, b] = dot(flat, here + first, whole, k * rows + first, count)
            _add_blocks(sums, scale, centre, error, cols, start, stop, table, k, out)


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _add_blocks(sums, scale, centre, error, cols, start, stop, t, k, out):
    """Entries start to stop of residual k: sums over the blocks of their columns."""
    for a in range(start, stop):
        j = cols[a]
        g = 0.0
        bound = 0.0
        spread = 0.0
        for b in range(scale.shape[1]):
            s = np.float64(scale[j, b])
            c = centre[j, b]
            g += s * t[k, 0, b] * sums[a - start, b] + c * t[k, 1, b]
            norm = error[j, b] * t[k, 2, b]
            most = s * t[k, 3, b]
            bound += (norm if norm < most else most) + s * t[k, 4, b] + abs(c) * t[k, 5, b]
            spread += s * s * t[k, 6, b]
        out[k, 0, a] = g
        out[k, 1, a] = bound
        out[k, 2, a] = spread


@njit(cache=True, nogil=True)
def quantize_residual(r, whole, table, sums):
    """Round one padded residual with max|r| < 1 to 16-bit integers, with upper bounds of the rounding.

    Column b of `table` starts with the step t and the sum of block b; the rest is the caller's. Column b of
    `sums` has upper bounds of the 1-norm, the 2-norm and the 1-norm of r - t * integers. The step has 24
    bits, so that step times integer is exact.
    """
    for b in range(table.shape[1]):
        first = b * ROWS
        last = min(first + ROWS, r.size)
        top = 0.0
        for i in range(first, last):
            top = max(top, abs(r[i]))
        step = 0.0
        inverse = 0.0
        if top > 2.0**-100:
            step = np.float64(np.float32(top / 32767.0 * (1.0 + 2.0**-22)))
            inverse = 1.0 / step
        total = 0.0
        one = 0.0
        two = 0.0
        rounding = 0.0
        for i in range(first, last):
            v = (r[i] * inverse + ROUND) - ROUND
            whole[i] = np.int16(v)
            total += r[i]
            one += abs(r[i])
            two += r[i] * r[i]
            rounding += abs(r[i] - step * v)
        # 2**-40 covers sums of 512 terms, 2**-500 the squares that underflow.
        tiny = 2.0**-500 if top > 0.0 else 0.0
        table[0, b] = step
        table[1, b] = total
        sums[0, b] = one * (1.0 + 2.0**-40) + tiny
        sums[1, b] = np.sqrt(two) * (1.0 + 2.0**-40) + tiny
        sums[2, b] = rounding * (1.0 + 2.0**-40) + tiny
