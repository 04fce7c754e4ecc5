# mypy: disable-error-code="no-untyped-def"
"""Kernels that turn columns into panels of one-byte codes.

A column is cut into blocks of ``ROWS`` rows. In each block ``x_i = c + s q_i + error`` with a centre ``c``, a
scale ``s`` and a code ``q_i`` in [-127, 127], which is stored as the byte ``q_i + 128``. Bytes lie as [panel
of 16 columns][row / 4][16 columns][4 rows]: one cache line holds four rows of a panel, which is what
instructions that multiply bytes take, and what four rows of a C-ordered matrix, or four columns of an
F-ordered one, give without being transposed.

Scales come from the extremes of the block (`encode_blocks`, `encode_by_columns`), or are predicted from a
sample of rows (`sample_span`, `predict`), which spares a second look at X (`encode_stream`): entries beyond
the prediction are cut off. What the codes lose is measured after that, so its bound is a proof either way.
With u = x - c and t = u / s in float32, each step of which rounds by 2**-24 at most, the loss t - q is off by
at most 4 * 2**-24 |t| <= 2**-22 (127 + |t - q|); the sum of its squares in float32 by 2**-15 of itself. So

    ||x - c - s q|| <= s ((1 + 2**-14) ||t - q|| + 2**-14 sqrt(rows))

The squares of the codes are summed too; these sums are integers below 2**24, exact in float32.

A second byte, where it is asked for, has t - q in 256ths, cut to [-127, 127] too; what it leaves is exact, so
the bound above holds with it in place of t - q, apart from the rounding of t, now relative to a smaller loss.
"""

import numpy as np
from numba import njit

from skpursuit.kernels.panel_vectors import PANEL, QUAD, SLOT, encode_lines, encode_rows, extremes
from skpursuit.kernels.vectors import prefetch

COMPILED_WITH = "78306ff1dbea"  # digest of these files: Numba notes changes of its own file only

ROWS = 512  # rows in a block
WIDTH = 512  # columns of a block whose extremes are found before it is encoded, while it is in the cache
SAMPLED = 32  # every so many rows are in the sample: 16 of a block
BELL = 2.1  # standard deviations from which half the range of a sample is that of a bell-shaped one
SPREAD = 4.3  # standard deviations up to which entries have codes, then
STEADY = 0.4  # least mean share of a column's range that the samples of a block span, if it does not drift
AHEAD = 16  # rows of a block that are asked for before they are looked at
LOW_SCALE = 2.0**-80  # smallest scale of a column that is not constant: its error is still a normal float32
PEAKS = 2.0**-20, 2.0**60  # columns whose largest entry is not in between are encoded in other units

inlined = njit(cache=True, nogil=True, inline="always")  # compiled once, within its caller


@njit(cache=True, nogil=True)
def sample_span(lo, hi, flat, stride, n, span, block, moments):
    """Extremes of the columns from lo to hi in a sample of rows, and sums over it.

    `moments` has sums of entries less that of the first row, of their squares, and over blocks of the ranges
    within the block.
    """
    # Lines that begin at lo: LLVM makes vectors of loops over them, but not of loops from lo on.
    wide, first = hi - lo, flat[lo:hi]
    low, high, least, most = span[0, lo:hi], span[1, lo:hi], block[0, lo:hi], block[1, lo:hi]
    sums, squares, ranges = moments[0, lo:hi], moments[1, lo:hi], moments[2, lo:hi]
    for j in range(wide):
        low[j] = first[j]
        high[j] = first[j]
        sums[j] = 0.0
        squares[j] = 0.0
        ranges[j] = 0.0
    for start in range(0, n, ROWS):
        stop = min(start + ROWS, n)
        for j in range(wide):
            least[j] = flat[start * stride + lo + j]
            most[j] = least[j]
        for i in range(start, stop, 2 * SAMPLED):
            at, other = i * stride + lo, min(i + SAMPLED, stop - 1) * stride + lo
            a, b = flat[at : at + wide], flat[other : other + wide]
            for j in range(wide):
                x, y = a[j], b[j]
                smaller = x if x < y else y
                larger = x if x > y else y
                least[j] = smaller if smaller < least[j] else least[j]
                most[j] = larger if larger > most[j] else most[j]
                u = np.float64(x - first[j])
                v = np.float64(y - first[j])
                sums[j] += u + v
                squares[j] += u * u + v * v
        for j in range(wide):
            ranges[j] += np.float64(most[j]) - np.float64(least[j])
            low[j] = least[j] if least[j] < low[j] else low[j]
            high[j] = most[j] if most[j] > high[j] else high[j]


@njit(cache=True, nogil=True)
def predict(lo, hi, flat, span, moments, sampled, frame, factor, scale, centre, peak, doubt):
    """Frames for all blocks of the columns from lo to hi from a sample of rows.

    Where the sample looks bell-shaped codes reach to SPREAD standard deviations from its mean, else a little
    beyond its extremes. Scales are such that these extremes, and values that cut the range between them into
    2, 3, 4, 6 or 12 equal parts, have codes without error. `doubt` is set for panels with a column that
    drifts, or whose entries are very large or small.
    """
    blocks = scale.shape[0]
    for j in range(lo, hi):
        low = np.float64(span[0, j])
        high = np.float64(span[1, j])
        mean = moments[0, j] / sampled
        deviation = np.sqrt(max(moments[1, j] / sampled - mean * mean, 0.0))
        mean += np.float64(flat[j])
        c = 0.5 * (low + high)
        reach = 1.1 * (high - c)
        if high - low > 2.0 * BELL * deviation:
            c = mean
            reach = max(SPREAD * deviation, 1.05 * max(high - c, c - low))
        s = LOW_SCALE
        if high > low:
            steps = max(np.floor((high - low) / reach * (127.0 / 12.0)), 1.0) * 12.0
            s = max(np.float64(np.float32((high - low) / steps)), LOW_SCALE)
            c = low + np.rint((c - low) / s) * s
        frame[j] = c
        c = np.float64(frame[j])
        factor[j] = 1.0 / s
        for b in range(blocks):
            scale[b, j] = s
            centre[b, j] = c
        peak[j] = max(abs(low), abs(high))
        usual = (PEAKS[0] < peak[j] < PEAKS[1] / 16.0) or peak[j] == 0.0
        if not usual or not moments[2, j] >= STEADY * blocks * (high - low):
            for b in range(blocks):
                doubt[b, j // PANEL] = True


@njit(cache=True, nogil=True)
def encode_stream(
    lo, hi, flat, stride, n, first, last, frame, factor, codes, fine, tail, work,
    scale, error, squares, doubt,
):  # fmt: skip
    """Encode the columns from lo to hi (multiples of PANEL) in predicted frames, four whole rows at a time.

    Blocks from `first` to `last` are encoded. `doubt[block, panel]` is set where a column loses more than
    twice what its scale would lose by rounding, a twelfth of a square each.
    """
    out, more = codes.reshape(codes.size), fine.reshape(fine.size)
    last_rows = tail.reshape(tail.size)
    wide, step = hi - lo, codes.shape[1] * SLOT
    for b in range(first, last):
        stop = min(n, (b + 1) * ROWS)
        for j in range(lo, hi):
            for p in range(work.shape[0]):
                work[p, j] = 0.0
        for i in range(b * ROWS, stop, QUAD):
            place = lo // PANEL * step + i // QUAD * SLOT
            if i + QUAD <= n:
                encode_rows(
                    flat, i * stride + lo, stride, wide, frame, factor, work, lo, out, more, place, step
                )
            else:
                _fill_tail(flat, stride, n, i, lo, hi, 0, frame, tail)
                encode_rows(
                    last_rows, lo, tail.shape[1], wide, frame, factor, work, lo, out, more, place, step
                )
        rows = stop - b * ROWS
        for j in range(lo, hi):
            if not work[0, j] <= rows / 3.0:
                doubt[b, j // PANEL] = True
        _finish(b, lo, hi, rows, work, scale, error, squares)


@njit(cache=True, nogil=True)
def encode_blocks(
    lo, hi, listed, flat, stride, n, shift, codes, fine, tail, frame, factor, work, span,
    scale, centre, error, squares, peak,
):  # fmt: skip
    """Encode the blocks of a list that begin at columns from lo to hi, each with its own extremes.

    The list has rows of (block, first column, number of columns), in whole panels. Column j of the codes is
    column j - shift of the matrix, whose rows are `stride` apart.
    """
    out, more = codes.reshape(codes.size), fine.reshape(fine.size)
    last_rows = tail.reshape(tail.size)
    step = codes.shape[1] * SLOT
    for item in range(listed.shape[0]):
        b, first, wide = listed[item, 0], listed[item, 1], listed[item, 2]
        if first < lo or first >= hi:
            continue
        start, stop = b * ROWS, min(n, (b + 1) * ROWS)
        _span_rows(flat, stride, first - shift, first, wide, start, stop, span)
        _frame(b, first, first + wide, span, frame, factor, work, scale, centre, peak)
        for i in range(start, stop, QUAD):
            place = first // PANEL * step + i // QUAD * SLOT
            if i + QUAD <= n:
                at = i * stride + first - shift
                encode_rows(flat, at, stride, wide, frame, factor, work, first, out, more, place, step)
            else:
                _fill_tail(flat, stride, n, i, first, first + wide, shift, frame, tail)
                encode_rows(
                    last_rows, first, tail.shape[1], wide, frame, factor, work, first, out, more, place, step
                )
        _finish(b, first, first + wide, stop - start, work, scale, error, squares)


@njit(cache=True, nogil=True)
def encode_by_columns(
    lo, hi, flat, stride, n, d, codes, fine, copy, frame, factor, work, span,
    scale, centre, error, squares, peak,
):  # fmt: skip
    """Encode the columns from lo to hi (multiples of PANEL) of a matrix whose columns lie together.

    Four columns of a block stay in the first cache from the time their extremes are found until they are
    encoded. `copy` has room for four columns of a block, for what is no whole number of vectors.
    """
    out, more = codes.reshape(codes.size), fine.reshape(fine.size)
    for j in range(lo, hi, QUAD):
        first = (j // PANEL * codes.shape[1] * PANEL + j % PANEL) * QUAD
        for b in range(scale.shape[0]):
            start = b * ROWS
            rows = min(ROWS, n - start)
            full = -(-rows // PANEL) * PANEL
            place = first + start * PANEL
            if rows == full and j + QUAD <= d:
                for k in range(QUAD):
                    extremes(flat, (j + k) * stride + start, full, span, j + k)
                _frame(b, j, j + QUAD, span, frame, factor, work, scale, centre, peak)
                at, ahead = j * stride + start, ROWS if b + 1 < scale.shape[0] else QUAD * stride - start
                encode_lines(flat, at, stride, full, frame, factor, work, j, out, more, place, ahead)
            else:
                for k in range(QUAD):
                    at = min(j + k, d - 1) * stride + start
                    for i in range(full):
                        copy[k * ROWS + i] = flat[at + min(i, rows - 1)]
                    extremes(copy, k * ROWS, full, span, j + k)
                _frame(b, j, j + QUAD, span, frame, factor, work, scale, centre, peak)
                for k in range(QUAD):
                    for i in range(rows, full):
                        copy[k * ROWS + i] = frame[j + k]
                encode_lines(copy, 0, ROWS, full, frame, factor, work, j, out, more, place, 0)
            _finish(b, j, j + QUAD, rows, work, scale, error, squares)


@inlined
def _fill_tail(flat, stride, n, start, lo, hi, shift, frame, tail):
    """The last rows, filled up to four with the centres of the columns, which have the code 0."""
    for k in range(QUAD):
        for j in range(lo, hi):
            tail[k, j] = flat[(start + k) * stride + j - shift] if start + k < n else frame[j]


@inlined
def _span_rows(flat, stride, first, to, width, start, stop, span):
    """Smallest and largest entry of each column; four rows at a time spare the running ones."""
    low, high = span[0, to : to + width], span[1, to : to + width]
    for j in range(width):
        low[j] = flat[start * stride + first + j]
        high[j] = low[j]
    for i in range(start, stop, 4):
        # Repeating the last row at the end changes no extremum.
        p = i * stride + first
        q = min(i + 1, stop - 1) * stride + first
        r = min(i + 2, stop - 1) * stride + first
        t = min(i + 3, stop - 1) * stride + first
        for k in range(AHEAD, AHEAD + 4):  # no processor guesses such steps where few columns are looked at
            prefetch(flat, (i + k) * stride + first)
            prefetch(flat, (i + k) * stride + first + width - 1)
        a, b, c, d = flat[p : p + width], flat[q : q + width], flat[r : r + width], flat[t : t + width]
        for j in range(width):
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


@inlined
def _frame(b, lo, hi, span, frame, factor, work, scale, centre, peak):
    """From the extremes, the centre and scale of each column. A constant column has scale zero."""
    for j in range(lo, hi):
        low = np.float64(span[0, j])
        high = np.float64(span[1, j])
        frame[j] = 0.5 * (low + high)
        c = np.float64(frame[j])
        half = max(high - c, c - low)
        s = 0.0
        if half > 0.0:
            s = max(np.float64(np.float32(half / 127.0 * (1.0 + 2.0**-20))), LOW_SCALE)
        factor[j] = 1.0 / s if s > 0.0 else 0.0
        for p in range(work.shape[0]):
            work[p, j] = 0.0
        scale[b, j] = s
        centre[b, j] = c
        peak[j] = max(peak[j], max(abs(low), abs(high)))


@inlined
def _finish(b, lo, hi, rows, work, scale, error, squares):
    """Bound what the codes lose in a block, and note the squares of what they stand for."""
    for j in range(lo, hi):
        s = np.float64(scale[b, j])
        slack = 2.0**-14 * np.sqrt(np.float64(rows))
        for p in range(error.shape[0]):
            loss = np.sqrt(np.float64(work[2 * p, j])) * (1.0 + 2.0**-14) + slack
            error[p, b, j] = loss * s * (1.0 + 2.0**-22)
            slack += 2.0**-20 * np.sqrt(np.float64(work[0, j]))
        squares[b, j] = s * s * np.float64(work[1, j])
