# mypy: disable-error-code="no-untyped-def"
"""Kernels on one or two bits an entry: a heuristic estimate of X^T r by exclusive-or and population count.

Each column has three thresholds a < c < b. The first bit of an entry says x < c, the second is one for x < a
and for c <= x < b, so that with signs s = 1 - 2 bit the four cells are s1 + weight * s2 in increasing order.
The residual is cut into a sign and some magnitude bits. 64 rows make a word, four words a vector.
"""

import numpy as np
from numba import njit

from skpursuit.kernels.vectors import LANES, RUN, count_three, count_two

WORD = 64
ALIGN = WORD * LANES  # rows are padded to a multiple of this
WIDTH = 1024  # columns packed at a time
ONE, TWO, FOUR, EIGHT, NONE = (np.uint64(v) for v in (1, 2, 4, 8, 0))


@njit(cache=True, nogil=True)
def count_columns(lo, hi, words, cols, residual, total, out):
    """Sum over the rows of sign times level, for the columns cols[lo:hi].

    Parameters
    ----------
    words : (columns, words) uint64
    cols : indices of columns
    residual : (1 + magnitudes, words) uint64 from `cut_bits`
    total : sum of the levels
    out : (cols,) float64, written
    """
    length = words.shape[1]
    flat = words.reshape(words.size)
    bits = residual.reshape(residual.size)
    for a in range(lo, hi):
        start = cols[a] * length
        differ = np.int64(0)
        for w in range(0, length, RUN):
            size = min(RUN, length - w)
            if residual.shape[0] == 3:
                differ += count_two(flat, start + w, bits, w, length, size)
            else:
                differ += count_three(flat, start + w, bits, w, length, size)
        out[a] = total - 2 * differ


@njit(cache=True, nogil=True)
def cut_bits(r, step, residual):
    """Sign and magnitude bits of r in units of `step`, clipped; return the sum of the levels."""
    residual[:] = 0
    most = 2 ** (residual.shape[0] - 1) - 1
    total = 0
    inverse = 1.0 / step
    for i in range(r.size):
        level = int(min(abs(r[i]) * inverse + 0.5, most))
        total += level
        place = np.uint64(i % WORD)
        residual[0, i // WORD] |= np.uint64(r[i] < 0.0) << place
        for p in range(1, residual.shape[0]):
            residual[p, i // WORD] |= np.uint64((level >> (p - 1)) & 1) << place
    return total


@njit(cache=True, nogil=True)
def best_step(r, most):
    """Step of levels up to `most` with the least squared error on every fourth row, of a few steps tried.

    The best step grows with the tails, and shrinks as there are more levels.
    """
    size = 0.0
    for i in range(0, r.size, 4):
        size += abs(r[i])
    unit = size / max(1, -(-r.size // 4)) * 3.0 / most
    best = 0.0
    least = np.inf
    for factor in (0.5, 0.65, 0.8, 1.0, 1.3, 1.8):
        step = unit * factor
        lost = 0.0
        for i in range(0, r.size, 4):
            level = min(np.floor(abs(r[i]) / step + 0.5), most) if step > 0.0 else 0.0
            lost += (abs(r[i]) - step * level) ** 2
        if lost < least:
            least = lost
            best = step
    return best


@njit(cache=True, nogil=True)
def pack_columns(X, first, width, thresholds, signs, sizes):
    """Pack the columns first ... first + width - 1 of a C-ordered X; each entry is read once, in order.

    Returns whether X may hold a NaN or an infinity: a sum of four rows is not finite.

    Parameters
    ----------
    X : (n, d) array, C order
    first, width : int
    thresholds : (panels of WIDTH columns, 3 * WIDTH) array of X's type: a, c and b of each column of a panel
    signs, sizes : (width, words) uint64, the first and the second bits, written
    """
    held = np.zeros(3 * WIDTH, np.uint64)
    suspect = NONE
    for start in range(0, X.shape[0], WORD):
        stop = min(start + WORD, X.shape[0])
        for p in range(0, width, WIDTH):
            a = first + p
            b = first + min(p + WIDTH, width)
            edges = thresholds[p // WIDTH]
            held[:] = 0
            for i in range(start, stop - 3, 4):
                place = np.uint64(i - start)
                _pack_rows(X[i, a:b], X[i + 1, a:b], X[i + 2, a:b], X[i + 3, a:b], edges, place, held)
            for i in range(stop - (stop - start) % 4, stop):
                _pack_row(X[i, a:b], edges, np.uint64(i - start), held)
            for j in range(b - a):
                signs[p + j, start // WORD] = held[j]
                sizes[p + j, start // WORD] = held[j + WIDTH]
                suspect |= held[j + 2 * WIDTH]
    return suspect != NONE


@njit(cache=True, nogil=True)
def _pack_row(x, thresholds, place, held):
    for j in range(x.size):
        mid = ONE if x[j] < thresholds[j + WIDTH] else NONE
        low = ONE if x[j] < thresholds[j] else NONE
        high = ONE if x[j] < thresholds[j + 2 * WIDTH] else NONE
        held[j] |= mid << place
        held[j + WIDTH] |= (low ^ mid ^ high) << place
        held[j + 2 * WIDTH] |= NONE if x[j] - x[j] == 0.0 else ONE


@njit(cache=True, nogil=True)
def _pack_rows(x, y, z, w, thresholds, place, held):
    """Four rows at once, to load and store the words less often."""
    for j in range(x.size):
        c = thresholds[j + WIDTH]
        mid = (ONE if x[j] < c else NONE) | (TWO if y[j] < c else NONE)
        mid |= (FOUR if z[j] < c else NONE) | (EIGHT if w[j] < c else NONE)
        c = thresholds[j]
        low = (ONE if x[j] < c else NONE) | (TWO if y[j] < c else NONE)
        low |= (FOUR if z[j] < c else NONE) | (EIGHT if w[j] < c else NONE)
        c = thresholds[j + 2 * WIDTH]
        high = (ONE if x[j] < c else NONE) | (TWO if y[j] < c else NONE)
        high |= (FOUR if z[j] < c else NONE) | (EIGHT if w[j] < c else NONE)
        held[j] |= mid << place
        held[j + WIDTH] |= (low ^ mid ^ high) << place
        total = (x[j] + y[j]) + (z[j] + w[j])
        held[j + 2 * WIDTH] |= NONE if total - total == 0.0 else ONE


@njit(cache=True, nogil=True)
def fit_columns(X, rows, first, width, thresholds, fit):
    """Thresholds and levels of some columns of a C-ordered X from a few of its rows.

    `fit` is (4, width), written: x is about fit[0] + fit[1] s1, or fit[0] + fit[2] s1 + fit[3] s2.
    """
    last = first + width
    mean = np.zeros(width)
    spread = np.zeros(width)
    far = np.zeros(2 * WIDTH)
    for i in rows:
        _add(X[i, first:last], mean)
    mean /= rows.size
    for i in rows:
        _add_deviation(X[i, first:last], mean, spread)
    spread /= rows.size
    for i in rows:
        _add_far(X[i, first:last], mean, spread, far)
    for j in range(width):
        thresholds[j] = mean[j] - EDGE * spread[j]
        thresholds[j + WIDTH] = mean[j]
        thresholds[j + 2 * WIDTH] = mean[j] + EDGE * spread[j]
        count = far[j + WIDTH]
        outer = far[j] / count if count > 0 else spread[j]
        inner = (spread[j] * rows.size - far[j]) / (rows.size - count) if count < rows.size else outer
        fit[0, j] = mean[j]
        fit[1, j] = spread[j]
        fit[2, j] = 0.5 * (outer + inner)
        fit[3, j] = 0.5 * (outer - inner)


# The threshold of the best four-level quantiser of a normal distribution, in mean deviations.
EDGE = 1.23


@njit(cache=True, nogil=True)
def _add(x, total):
    for j in range(x.size):
        total[j] += x[j]


@njit(cache=True, nogil=True)
def _add_deviation(x, mean, total):
    for j in range(x.size):
        total[j] += abs(x[j] - mean[j])


@njit(cache=True, nogil=True)
def _add_far(x, mean, spread, far):
    """Sum and number of the deviations beyond the outer thresholds."""
    for j in range(x.size):
        u = abs(x[j] - mean[j])
        beyond = u >= EDGE * spread[j]
        far[j] += u if beyond else 0.0
        far[j + WIDTH] += 1.0 if beyond else 0.0
