# mypy: disable-error-code="no-untyped-def"
"""Kernels that turn columns into int8 codes in one pass over the matrix; `quantized` says what codes are.

Centre and scale of a column hold for one block of rows, and both follow from its smallest and largest entry
there. So a panel of columns that fits in the cache is read twice, from memory once: for its extremes, then to
round. The squares of what rounding leaves are summed on the way and bound the error of every later estimate.
X comes by rows and codes are kept by columns, so that bytes go through a strip of rows that is transposed.
"""

import numpy as np
from numba import njit

from skpursuit.kernels.encode_vectors import WIDTH, encode_codes, transpose
from skpursuit.kernels.quantized import ROWS
from skpursuit.kernels.vectors import GROUP, prefetch

COMPILED_WITH = "1038296e51a4"  # digest of these files: Numba notes changes of its own file only

LOW_SCALE = 2.0**-80  # smallest scale of a column that is not constant: its error is still a normal float32
STRIP = 32  # rows encoded before they are stored by columns

inlined = njit(cache=True, nogil=True, inline="always")  # compiled once, within its caller


def make_scratch(dtype):
    """Memory that `encode_columns` works in: an array made in a kernel takes a while to compile."""
    sizes = ((2 * WIDTH, dtype), (WIDTH, dtype), (2 * WIDTH, "f4"), (STRIP * WIDTH, "i1"))
    return tuple(np.empty(size, kind) for size, kind in sizes)


@njit(cache=True, nogil=True)
def encode_columns(X, first, width, dither, codes, steps, squares, column, params, scratch):
    """Encode the columns first ... first + width - 1 of a C-ordered X in one pass over them.

    Blocks of rows go outside, panels of columns inside: memory is read in order, and a block of a panel is
    still in the cache when its extremes are known and it is read again.

    Parameters
    ----------
    X : (n, d) array, C order
    first, width : int, width a multiple of GROUP
    dither : (1 or n, width) float32, added to entries in scales; 0 rounds to nearest
    codes : (width, padded rows) int8, written
    steps : (n, columns) int16, entries in 1/128 of a scale, written from `column` on; left alone when empty
    squares : (n, panels), sums of squares of each row are added, with those of `steps`
    params : (4, width, blocks) float64, written: scale, centre, error bound, largest magnitude
    scratch : what `make_scratch` makes
    """
    span, centre, work, strip = scratch
    for b in range(params.shape[2]):
        start = b * ROWS
        stop = min(start + ROWS, X.shape[0])
        for p in range(0, width, WIDTH):
            some = params[:, p : min(p + WIDTH, width), b]
            _span(X, first + p, some.shape[1], start, stop, span)
            _frame(span, centre, work, some)
            to = column + p if steps.size else -WIDTH
            wide, at = some.shape[1], first + p
            for i in range(start, min(start + ROWS, codes.shape[1]), STRIP):
                _encode_codes(X, i, stop, at, wide, dither, p, centre, work, strip, steps, to)
                _store(strip, wide, codes, p, i)
                if steps.size:
                    for row in range(i, min(i + STRIP, stop)):
                        squares[row, to // WIDTH] += _square(X[row, at : at + wide])
            _bound_errors(work, stop - start, some)


@inlined
def _ask_for(flat, at, wide):
    """Ask for a part of a row."""
    for j in range(0, wide, 64 // flat.itemsize):
        prefetch(flat, at + j)


@inlined
def _encode_codes(X, start, stop, first, wide, dither, offset, centre, work, strip, steps, to):
    """Encode up to STRIP rows of a panel, and ask for the same rows of the next one.

    In 1/128 of a scale they go to `steps`, from column `to` on if that is not negative.
    """
    if start + STRIP > stop:
        for place in range(STRIP * WIDTH):  # as in `_span`: a loop compiles sooner than `strip[:] = 0`
            strip[place] = 0
    flat = X.reshape(X.size)
    random = dither.reshape(dither.size)
    by_rows = steps.reshape(steps.size)
    for i in range(start, min(start + STRIP, stop)):
        at = i * X.shape[1] + first
        _ask_for(flat, min(at + WIDTH, X.size - WIDTH), wide)
        lead = min(i, dither.shape[0] - 1) * dither.shape[1] + offset
        here, row = i * steps.shape[1] + to, (i - start) * WIDTH
        for j in range(0, wide, GROUP):
            encode_codes(flat, at + j, centre, work, random, lead + j, j, strip, row + j, by_rows, here + j)


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _square(x):
    """Sum of squares."""
    total = 0.0
    for j in range(x.size):
        total += np.float64(x[j]) * np.float64(x[j])
    return total


@inlined
def _store(strip, wide, codes, first, row):
    """Store the bytes of a strip by columns."""
    rows = codes.shape[1]
    flat = codes.reshape(codes.size)
    for j in range(0, wide, 16):
        for i in range(0, STRIP, 16):
            transpose(strip, i * WIDTH + j, WIDTH, flat, (first + j) * rows + row + i, rows)


@inlined
def _bound_errors(work, rows, params):
    """Bound the 2-norm of what the codes lose in a block, from the squares of what they leave.

    Rounding in float32: of entries up to 127 scales, and of sums of up to ROWS squares.
    """
    for j in range(params.shape[1]):
        loss = np.sqrt(np.float64(work[j + WIDTH])) + 2.0**-14 * np.sqrt(np.float64(rows))
        params[2, j] = loss * params[0, j] * (1.0 + 2.0**-14)


@njit(cache=True, nogil=True)
def copy_columns(X, first, width, out):
    """Copy some columns of X, of any layout, into the C-ordered `out`, in tiles for X in Fortran order."""
    for start in range(0, X.shape[0], 64):
        stop = min(start + 64, X.shape[0])
        for j in range(width):
            for i in range(start, stop):
                out[i, j] = X[i, first + j]


@inlined
def _span(X, first, width, start, stop, span):
    """Smallest and largest entry of each column; four rows at a time spare the running ones."""
    last = first + width
    for j in range(width):  # assigning a slice would compile for seconds, most of it for its error message
        span[j] = X[start, first + j]
        span[j + WIDTH] = X[start, first + j]
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


@inlined
def _frame(span, centre, work, params):
    """From the extremes, the centre and scale of each column. A constant column has scale zero.

    `work` holds the factor from entries to codes, and then sums of squares.
    """
    for j in range(params.shape[1]):
        low = np.float64(span[j])
        high = np.float64(span[j + WIDTH])
        centre[j] = 0.5 * (low + high)
        c = np.float64(centre[j])
        half = max(high - c, c - low)
        s = 0.0
        if half > 0.0:
            s = max(np.float64(np.float32(half / 127.0 * (1.0 + 2.0**-20))), LOW_SCALE)
        work[j] = 1.0 / s if s > 0.0 else 0.0
        work[j + WIDTH] = 0.0
        params[0, j] = s
        params[1, j] = c
        params[3, j] = max(abs(low), abs(high))
