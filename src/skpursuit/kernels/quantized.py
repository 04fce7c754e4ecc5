# mypy: disable-error-code="no-untyped-def"
"""Kernels on int8 codes: encode columns, multiply the codes by a residual, bound the error.

A column is cut into blocks of ``ROWS`` rows. In each block ``x_i = c + s (q_i + l_i / 128) + error`` with a
centre ``c``, a scale ``s``, a code ``q_i`` in [-127, 127] and a second byte ``l_i`` in [-127, 127]. Codes are
stored column by column, so that one column is one contiguous read. The residual is cut into 16-bit integers
per block: the sum over a block is then exact in 32-bit integers (127 * 32767 * 512 < 2**31), in any order.
"""

import numpy as np
from numba import njit

from skpursuit.kernels.vectors import dot

ROWS = 256  # rows in a block; at most 512 or the 32-bit sums overflow
LANES = 64  # rows are padded to a multiple of this many zero codes
FINE = np.float32(128.0)  # steps of the second byte in one step of the code
ROUND = 1.5 * 2**52  # adding and subtracting it rounds to the nearest integer
TABLE = 7  # numbers per block that `estimate_columns` needs of the residual


@njit(cache=True, nogil=True)
def estimate_columns(codes, scale, centre, error, residual, table, out):
    """Estimate, error bound and variance proxy of x_j . r for every column of a slab of codes.

    `residual` is (m, rows) int16 and `table` (m, blocks, TABLE), both from `cut_residual`; `out` is
    (m, 3, columns). The codes of one column stay in the first cache for all m residuals.
    """
    rows = codes.shape[1]
    flat = codes.reshape(codes.size)
    whole = residual.reshape(residual.size)
    for j in range(scale.shape[0]):
        for k in range(residual.shape[0]):
            g = 0.0
            bound = 0.0
            spread = 0.0
            for b in range(scale.shape[1]):
                first = b * ROWS
                total = dot(flat, j * rows + first, whole, k * rows + first, min(ROWS, rows - first))
                s = np.float64(scale[j, b])
                c = centre[j, b]
                t = table[k, b]
                g += s * t[0] * total + c * t[1]
                bound += min(error[j, b] * t[2], s * t[3]) + s * t[4] + abs(c) * t[5]
                spread += s * s * t[6]
            out[k, 0, j] = g
            out[k, 1, j] = bound
            out[k, 2, j] = spread


@njit(cache=True, nogil=True)
def refine_columns(codes, fine, scale, centre, cols, residual, table, out):
    """Estimate and bound of x_j . r for some columns from both bytes.

    `residual` and `table` as in `estimate_columns`; `out` is (m, 2, columns).
    """
    rows = codes.shape[1]
    coarse_bytes = codes.reshape(codes.size)
    fine_bytes = fine.reshape(fine.size)
    whole = residual.reshape(residual.size)
    for a in range(cols.size):
        j = cols[a]
        for k in range(residual.shape[0]):
            g = 0.0
            bound = 0.0
            for b in range(scale.shape[1]):
                first = b * ROWS
                count = min(ROWS, rows - first)
                coarse = dot(coarse_bytes, j * rows + first, whole, k * rows + first, count)
                rest = dot(fine_bytes, j * rows + first, whole, k * rows + first, count)
                s = np.float64(scale[j, b])
                c = centre[j, b]
                t = table[k, b]
                g += s * t[0] * (coarse + rest / np.float64(FINE)) + c * t[1]
                bound += s * t[4] + abs(c) * t[5]
            out[k, 0, a] = g
            out[k, 1, a] = bound


@njit(cache=True, nogil=True)
def cut_residual(r, whole, table, sums):
    """Cut one padded residual with max|r| < 1 into 16-bit integers, with upper bounds of what was lost.

    Row b of `table`: step t, sum, then zeros for the caller; row b of `sums`: upper bounds of the 1-norm, the
    2-norm and the 1-norm of r - t * integers. The step has 24 bits, so that step times integer is exact.
    """
    for b in range(table.shape[0]):
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
        lost = 0.0
        for i in range(first, last):
            v = (r[i] * inverse + ROUND) - ROUND
            whole[i] = np.int16(v)
            total += r[i]
            one += abs(r[i])
            two += r[i] * r[i]
            lost += abs(r[i] - step * v)
        # 2**-40 covers sums of 512 terms, 2**-500 the squares that underflow.
        tiny = 2.0**-500 if top > 0.0 else 0.0
        table[b, 0] = step
        table[b, 1] = total
        sums[b, 0] = one * (1.0 + 2.0**-40) + tiny
        sums[b, 1] = np.sqrt(two) * (1.0 + 2.0**-40) + tiny
        sums[b, 2] = lost * (1.0 + 2.0**-40) + tiny
