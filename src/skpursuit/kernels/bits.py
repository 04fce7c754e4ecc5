# mypy: disable-error-code="no-untyped-def"
"""Kernels on one or two bits an entry: a heuristic estimate of X^T r by exclusive-or and population count.

Each column has a centre c and a distance e. The first bit of an entry says x < c, the second that just one of
x < c and |x - c| < e holds: with signs s = 1 - 2 bit the four cells are s1 + weight * s2 in increasing order.
The residual is rounded to a sign and two magnitude bits. 64 rows make a word, four words a vector.
"""

import math

import numpy as np
from numba import njit

from skpursuit.kernels.counts import LANES, MAGNITUDES, RUN, count
from skpursuit.kernels.vectors import prefetch

COMPILED_WITH = "259e30f02d69"  # digest of these files: Numba notes changes of its own file only

WORD = 64
ALIGN = WORD * LANES  # rows are padded to a multiple of this
WIDTH = 512  # columns that thresholds are made for at a time
PANEL = 10240  # columns packed at a time: long reads of a row, and what is held of them stays in the cache
LINE = 8  # words that come together from memory
MOST = 2**MAGNITUDES - 1  # the largest level of a residual
TRIED = 512  # rows at most on which steps are tried
FREE = {"reassoc", "contract", "nsz"}  # sums in any order; NaN and infinity are still seen
ONE, NONE = np.uint64(1), np.uint64(0)


@njit(cache=True, nogil=True)
def guess_all(lo, hi, signs, fit, residual, step, levels, total, out):
    """Guess entries lo to hi of X^T r from the first bits.

    Parameters
    ----------
    signs : (columns, words) uint64
    fit : (4, columns), see `fit_columns`
    residual, step, levels, total : from `quantize`
    out : (columns,) float64, written
    """
    length = signs.shape[1]
    x, r = signs.reshape(signs.size), residual.reshape(residual.size)
    for j in range(lo, hi):
        if j + 1 < hi:
            _fetch(x, (j + 1) * length, length)
        differ = np.int64(0)
        for w in range(0, length, RUN):
            differ += count(x, j * length + w, r, w, length, min(RUN, length - w))
        out[j] = total * fit[0, j] + step * fit[1, j] * (levels - 2 * differ)


@njit(cache=True, nogil=True)
def guess_some(lo, hi, cols, signs, sizes, fit, residual, step, levels, total, out):
    """As `guess_all` for the columns cols[lo:hi], from both bits."""
    length = signs.shape[1]
    x, y, r = signs.reshape(signs.size), sizes.reshape(sizes.size), residual.reshape(residual.size)
    for a in range(lo, hi):
        if a + 1 < hi:
            _fetch(x, cols[a + 1] * length, length)
            _fetch(y, cols[a + 1] * length, length)
        start = cols[a] * length
        one = two = np.int64(0)
        for w in range(0, length, RUN):
            size = min(RUN, length - w)
            one += count(x, start + w, r, w, length, size)
            two += count(y, start + w, r, w, length, size)
        sums = fit[2, cols[a]] * (levels - 2 * one) + fit[3, cols[a]] * (levels - 2 * two)
        out[a] = total * fit[0, cols[a]] + step * sums


@njit(cache=True, nogil=True)
def _fetch(words, start, length):
    """Ask for a column while the one before it is counted."""
    for w in range(start, start + length, LINE):
        prefetch(words, w)


@njit(cache=True, nogil=True)
def quantize(r, residual):
    """`pack_residual` with the `best_step`; return the step, the sum of the levels and sum(r)."""
    total = 0.0
    top = 0.0
    for i in range(r.size):
        total += r[i]
        top = max(top, abs(r[i]))
    scale = math.ldexp(1.0, min(-math.frexp(top)[1], 1000))  # what is squared neither over- nor underflows
    step = best_step(r, scale) / scale
    return step, pack_residual(r, step, residual), total


@njit(cache=True, nogil=True)
def pack_residual(r, step, residual):
    """Sign and magnitude bits of r in units of `step`, clipped; return the sum of the levels."""
    levels = np.zeros(WORD, np.uint64)
    total = 0
    for w in range(residual.shape[1]):
        part = r[w * WORD : (w + 1) * WORD]
        sign = NONE
        for i in range(part.size):
            levels[i] = np.uint64(np.int64(min(abs(part[i]) / step + 0.5, MOST)))
            total += np.int64(levels[i])
            sign |= (ONE if part[i] < 0.0 else NONE) << np.uint64(i)
        residual[0, w] = sign
        for p in range(1, 1 + MAGNITUDES):
            bits = NONE
            for i in range(part.size):
                bits |= ((levels[i] >> np.uint64(p - 1)) & ONE) << np.uint64(i)
            residual[p, w] = bits
    return total


@njit(cache=True, nogil=True, fastmath=FREE)
def best_step(r, scale):
    """Step with the least squared error on some rows of scale * r, of a few tried: larger for heavy tails."""
    every = max(1, r.size // TRIED)
    some = np.abs(r[::every]) * scale
    unit = some.sum() / max(1, some.size) * 3.0 / MOST
    best = 1.0
    least = np.inf
    for factor in (0.4, 0.5, 0.65, 0.8, 1.0, 1.3, 1.8):
        step = unit * factor
        if step == 0.0:
            break
        inverse = 1.0 / step
        error = 0.0
        for i in range(some.size):
            error += (some[i] - step * min(np.floor(some[i] * inverse + 0.5), MOST)) ** 2
        if error < least:
            least = error
            best = step
    return best


@njit(cache=True, nogil=True)
def pack_columns(X, first, edges, signs, sizes, totals):
    """Pack the columns of a C-ordered X from `first` on; each entry is read once, in order.

    Parameters
    ----------
    X : (n, d) array, C order
    first : int
    edges : (2, width) array of X's type, c and e of each column
    signs, sizes : (width, words) uint64, the first and the second bits, written
    totals : (width,) array of X's type, the sums of |x - c| are added: not finite where X is not
    """
    held = np.zeros((2, PANEL), np.uint64)
    for start in range(0, X.shape[0], WORD):
        stop = min(start + WORD, X.shape[0])
        for p in range(0, edges.shape[1], PANEL):
            q = min(p + PANEL, edges.shape[1])
            a, b = first + p, first + q
            centre, near, total = edges[0, p:q], edges[1, p:q], totals[p:q]
            held[:] = 0
            for i in range(start, stop - 7, 8):
                x0, x1, x2, x3 = X[i, a:b], X[i + 1, a:b], X[i + 2, a:b], X[i + 3, a:b]
                x4, x5, x6, x7 = X[i + 4, a:b], X[i + 5, a:b], X[i + 6, a:b], X[i + 7, a:b]
                place = np.uint64(i - start)
                _pack_rows(x0, x1, x2, x3, x4, x5, x6, x7, centre, near, place, held[0], held[1], total)
            for i in range(stop - (stop - start) % 8, stop):
                _pack_row(X[i, a:b], centre, near, np.uint64(i - start), held[0], held[1], total)
            for j in range(q - p):
                signs[p + j, start // WORD] = held[0, j]
                sizes[p + j, start // WORD] = held[0, j] ^ held[1, j]


@njit(cache=True, nogil=True)
def _pack_row(x, centre, near, place, below, close, total):
    for j in range(x.size):
        u = x[j] - centre[j]
        below[j] |= (ONE if u < 0.0 else NONE) << place
        close[j] |= (ONE if abs(u) < near[j] else NONE) << place
        total[j] += abs(u)


@njit(cache=True, nogil=True, fastmath=FREE)
def _pack_rows(x0, x1, x2, x3, x4, x5, x6, x7, centre, near, place, below, close, total):
    """Eight rows at once, to load and store what is held less often."""
    for j in range(x0.size):
        c, e = centre[j], near[j]
        u0, u1, u2, u3 = x0[j] - c, x1[j] - c, x2[j] - c, x3[j] - c
        u4, u5, u6, u7 = x4[j] - c, x5[j] - c, x6[j] - c, x7[j] - c
        low = _bit(u0 < 0.0, 1) | _bit(u1 < 0.0, 2) | _bit(u2 < 0.0, 4) | _bit(u3 < 0.0, 8)
        high = _bit(u4 < 0.0, 16) | _bit(u5 < 0.0, 32) | _bit(u6 < 0.0, 64) | _bit(u7 < 0.0, 128)
        below[j] |= (low | high) << place
        u0, u1, u2, u3 = abs(u0), abs(u1), abs(u2), abs(u3)
        u4, u5, u6, u7 = abs(u4), abs(u5), abs(u6), abs(u7)
        low = _bit(u0 < e, 1) | _bit(u1 < e, 2) | _bit(u2 < e, 4) | _bit(u3 < e, 8)
        high = _bit(u4 < e, 16) | _bit(u5 < e, 32) | _bit(u6 < e, 64) | _bit(u7 < e, 128)
        close[j] |= (low | high) << place
        total[j] += ((u0 + u1) + (u2 + u3)) + ((u4 + u5) + (u6 + u7))


@njit(inline="always")
def _bit(true, value):
    return np.uint64(value) if true else NONE


@njit(cache=True, nogil=True)
def fit_columns(X, rows, first, edges, fit):
    """Thresholds and levels of some columns of a C-ordered X from a few of its rows.

    `edges` (2, width) and `fit` (4, width) are written: c and e of `pack_columns`, and x is about
    fit[0] + fit[1] s1, or fit[0] + fit[2] s1 + fit[3] s2.
    """
    width = edges.shape[1]
    last = first + width
    mean = np.zeros(width)
    spread = np.zeros(width)
    far = np.zeros((2, width))
    for i in rows:
        _add(X[i, first:last], mean)
    mean /= rows.size
    for i in rows:
        _add_deviation(X[i, first:last], mean, spread)
    spread /= rows.size
    for i in rows:
        _add_far(X[i, first:last], mean, spread, far[0], far[1])
    for j in range(width):
        edges[0, j] = mean[j]
        edges[1, j] = EDGE * spread[j]
        count = far[1, j]
        outer = far[0, j] / count if count > 0 else spread[j]
        inner = (spread[j] * rows.size - far[0, j]) / (rows.size - count) if count < rows.size else outer
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
def _add_far(x, mean, spread, total, count):
    """Sum and number of the deviations beyond the outer thresholds."""
    for j in range(x.size):
        u = abs(x[j] - mean[j])
        beyond = u >= EDGE * spread[j]
        total[j] += u if beyond else 0.0
        count[j] += 1.0 if beyond else 0.0
