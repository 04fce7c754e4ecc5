# mypy: disable-error-code="no-untyped-def"
"""Kernels that turn columns into int8 codes in one pass over the matrix; see `quantized`."""

import numpy as np
from numba import njit

from skpursuit.kernels.quantized import FINE, ROWS
from skpursuit.kernels.vectors import dot, transpose

WIDTH = 512  # columns encoded at a time: long enough reads of a row, short enough to stay in the cache
STEP = np.float32(1.0 / 128.0)
ROUND = np.float32(1.5 * 2**23)  # adding and subtracting it rounds to the nearest integer
LOW_SCALE = 2.0**-80  # smallest scale of a column that is not constant: its error is still a normal float32


@njit(cache=True, nogil=True)
def encode_columns(X, first, width, dither, codes, fine, params):
    """Encode the columns first ... first + width - 1 of a C-ordered X in one pass over them.

    Parameters
    ----------
    X : (n, d) array, C order
    first, width : int, width at most WIDTH
    dither : (1 or n, WIDTH) float32; 0 rounds to nearest, k - 63.5 with random k < 128 rounds stochastically
    codes, fine : (at least width rounded up to 16, padded rows) int8, written
    params : (4, width, blocks) float64, written: scale, centre, error bound, largest magnitude
    """
    n = X.shape[0]
    rows = codes.shape[1]
    code_bytes = codes.reshape(codes.size)
    fine_bytes = fine.reshape(fine.size)
    span = np.zeros(2 * WIDTH)
    centre = np.zeros(WIDTH)
    inverse = np.zeros(WIDTH, np.float32)
    line = np.zeros(WIDTH, np.float32)
    strip = np.zeros(32 * WIDTH, np.int8)
    odd = np.zeros(WIDTH)
    for b in range(params.shape[2]):
        start = b * ROWS
        stop = min(start + ROWS, n)
        _span(X, first, width, start, stop, span)
        _frame(span, centre, inverse, params[:, :, b])
        for i in range(start, min(start + ROWS, rows), 16):
            for k in range(16):
                if i + k < stop:
                    _subtract(X[i + k, first : first + width], centre, line, odd)
                    _encode_row(
                        line, dither[min(i + k, dither.shape[0] - 1)], inverse, strip[2 * WIDTH * k :]
                    )
                else:
                    strip[2 * WIDTH * k : 2 * WIDTH * (k + 1)] = 0
            for j in range(0, width, 16):
                transpose(strip, j, 2 * WIDTH, code_bytes, j * rows + i, rows)
                transpose(strip, j + WIDTH, 2 * WIDTH, fine_bytes, j * rows + i, rows)
        for j in range(width):
            at = j * rows + start
            squares = dot(fine_bytes, at, fine_bytes, at, min(ROWS, rows - start))
            # The second byte leaves at most 1/256 of the scale, and the float32 rounding of its steps.
            lost = np.sqrt(np.float64(squares)) + 0.505 * np.sqrt(np.float64(stop - start))
            params[2, j, b] = lost * params[0, j, b] * (1.0 + 2.0**-40) / FINE
    for j in range(width):
        if odd[j] != 0.0:  # not a number was among the entries; comparisons have passed over it
            params[3, j, 0] = np.inf


@njit(cache=True, nogil=True)
def copy_columns(X, first, width, out):
    """Copy some columns of X, of any layout, into the C-ordered `out`, in tiles for X in Fortran order."""
    for start in range(0, X.shape[0], 64):
        stop = min(start + 64, X.shape[0])
        for j in range(width):
            for i in range(start, stop):
                out[i, j] = X[i, first + j]


@njit(cache=True, nogil=True)
def _span(X, first, width, start, stop, span):
    """Smallest and largest entry of each column; four rows at a time spare the running ones."""
    last = first + width
    span[:width] = X[start, first:last]
    span[WIDTH : WIDTH + width] = X[start, first:last]
    for i in range(start, stop, 4):
        # Repeating the last row at the end changes no extremum.
        a = X[i, first:last]
        b = X[min(i + 1, stop - 1), first:last]
        c = X[min(i + 2, stop - 1), first:last]
        d = X[min(i + 3, stop - 1), first:last]
        for j in range(width):
            m = span[j]
            m = a[j] if a[j] < m else m
            m = b[j] if b[j] < m else m
            m = c[j] if c[j] < m else m
            span[j] = d[j] if d[j] < m else m
            m = span[j + WIDTH]
            m = a[j] if a[j] > m else m
            m = b[j] if b[j] > m else m
            m = c[j] if c[j] > m else m
            span[j + WIDTH] = d[j] if d[j] > m else m


@njit(cache=True, nogil=True)
def _frame(span, centre, inverse, params):
    """From the extremes, the centre and scale of each column. A constant column has scale zero."""
    for j in range(params.shape[1]):
        low = span[j]
        high = span[j + WIDTH]
        c = 0.5 * (low + high)
        half = max(high - c, c - low)
        s = 0.0
        if half > 0.0:
            s = max(np.float64(np.float32(half / 127.0 * (1.0 + 2.0**-20))), LOW_SCALE)
        centre[j] = c
        inverse[j] = FINE / s if s > 0.0 else 0.0
        params[0, j] = s
        params[1, j] = c
        params[3, j] = max(abs(low), abs(high))


@njit(cache=True, nogil=True)
def _subtract(x, centre, out, odd):
    for j in range(x.size):
        u = x[j] - centre[j]
        out[j] = np.float32(u)
        odd[j] += u - u  # zero, unless the entry is not finite


@njit(cache=True, nogil=True, fastmath={"contract"})
def _encode_row(x, dither, inverse, out):
    for j in range(WIDTH):
        v = (x[j] * inverse[j] + ROUND) - ROUND
        q = ((v + dither[j]) * STEP + ROUND) - ROUND
        out[j] = np.int8(np.int32(q))
        out[j + WIDTH] = np.int8(np.int32(v - FINE * q))
