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
"""

import numpy as np
from numba import njit

from skpursuit.kernels.panel_vectors import PANEL, QUAD, SLOT, encode_lines, encode_rows, extremes
from skpursuit.kernels.vectors import prefetch

COMPILED_WITH = "17a83818bf43"  # digest of these files: Numba notes changes of its own file only

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
    first = flat[:stride]
    for j in range(lo, hi):
        span[0, j] = first[j]
        span[1, j] = first[j]
        moments[0, j] = 0.0
        moments[1, j] = 0.0
        moments[2, j] = 0.0
    for start in range(0, n, ROWS):
        stop = min(start + ROWS, n)
        for j in range(lo, hi):
            block[0, j] = flat[start * stride + j]
            block[1, j] = flat[start * stride + j]
        for i in range(start, stop, 2 * SAMPLED):
            other = min(i + SAMPLED, stop - 1)
            a, b = flat[i * stride : i * stride + hi], flat[other * stride : other * stride + hi]
            for j in range(lo, hi):
                m = block[0, j]
                m = a[j] if a[j] < m else m
                block[0, j] = b[j] if b[j] < m else m
                m = block[1, j]
                m = a[j] if a[j] > m else m
                block[1, j] = b[j] if b[j] > m else m
                u = np.float64(a[j] - first[j])
                v = np.float64(b[j] - first[j])
                moments[0, j] += u + v
                moments[1, j] += u * u + v * v
        for j in range(lo, hi):
            moments[2, j] += np.float64(block[1, j]) - np.float64(block[0, j])
            span[0, j] = block[0, j] if block[0, j] < span[0, j] else span[0, j]
            span[1, j] = block[1, j] if block[1, j] > span[1, j] else span[1, j]


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
    lo, hi, flat, stride, n, first, last, frame, factor, codes, tail, work, scale, error, squares, doubt
):
    """Encode the columns from lo to hi (multiples of PANEL) in predicted frames, four whole rows at a time.

    Blocks from `first` to `last` are encoded. `doubt[block, panel]` is set where a column loses more than
    twice what its scale would lose by rounding, a twelfth of a square each.
    """
    out = codes.reshape(codes.size)
    last_rows = tail.reshape(tail.size)
    wide, step = hi - lo, codes.shape[1] * SLOT
    for b in range(first, last):
        stop = min(n, (b + 1) * ROWS)
        for j in range(lo, hi):
            work[0, j] = 0.0
            work[1, j] = 0.0
        for i in range(b * ROWS, stop, QUAD):
            place = lo // PANEL * step + i // QUAD * SLOT
            if i + QUAD <= n:
                encode_rows(flat, i * stride + lo, stride, wide, frame, factor, work, lo, out, place, step)
            else:
                _fill_tail(flat, stride, n, i, lo, hi, 0, frame, tail)
                encode_rows(last_rows, lo, tail.shape[1], wide, frame, factor, work, lo, out, place, step)
        rows = stop - b * ROWS
        for j in range(lo, hi):
            if not work[0, j] <= rows / 3.0:
                doubt[b, j // PANEL] = True
        _finish(b, lo, hi, rows, work, scale, error, squares)


@njit(cache=True, nogil=True)
def encode_blocks(
    lo, hi, listed, flat, stride, n, shift, codes, tail, frame, factor, work, span,
    scale, centre, error, squares, peak,
):  # fmt: skip
    """Encode the blocks of a list that begin at columns from lo to hi, each with its own extremes.

    The list has rows of (block, first column, number of columns), in whole panels. Column j of the codes is
    column j - shift of the matrix, whose rows are `stride` apart.
    """
    out = codes.reshape(codes.size)
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
                encode_rows(flat, at, stride, wide, frame, factor, work, first, out, place, step)
            else:
                _fill_tail(flat, stride, n, i, first, first + wide, shift, frame, tail)
                encode_rows(
                    last_rows, first, tail.shape[1], wide, frame, factor, work, first, out, place, step
                )
        _finish(b, first, first + wide, stop - start, work, scale, error, squares)


@njit(cache=True, nogil=True)
def encode_by_columns(
    lo, hi, flat, stride, n, d, codes, copy, frame, factor, work, span, scale, centre, error, squares, peak
):
    """Encode the columns from lo to hi (multiples of PANEL) of a matrix whose columns lie together.

    Four columns of a block stay in the first cache from the time their extremes are found until they are
    encoded. `copy` has room for four columns of a block, for what is no whole number of vectors.
    """
    out = codes.reshape(codes.size)
    quads = codes.shape[1]
    for p in range(lo, hi, PANEL):
        for b in range(scale.shape[0]):
            start = b * ROWS
            rows = min(ROWS, n - start)
            full = -(-rows // PANEL) * PANEL
            place = (p // PANEL * quads + start // QUAD) * SLOT
            for j in range(p, p + PANEL, QUAD):
                whole = rows == full and j + QUAD <= d
                if not whole:
                    for k in range(QUAD):
                        at = min(j + k, d - 1) * stride + start
                        for i in range(full):
                            copy[k * ROWS + i] = flat[at + min(i, rows - 1)]
                for k in range(QUAD):
                    if whole:
                        extremes(flat, (j + k) * stride + start, full, span, j + k)
                    else:
                        extremes(copy, k * ROWS, full, span, j + k)
                _frame(b, j, j + QUAD, span, frame, factor, work, scale, centre, peak)
                if whole:
                    encode_lines(
                        flat, j * stride + start, stride, full, frame, factor, work, j, out,
                        place + (j - p) * QUAD,
                        QUAD * stride if j + QUAD < p + PANEL else ROWS - (PANEL - QUAD) * stride,
                    )  # fmt: skip
                else:
                    for k in range(QUAD):
                        for i in range(rows, full):
                            copy[k * ROWS + i] = frame[j + k]
                    encode_lines(copy, 0, ROWS, full, frame, factor, work, j, out, place + (j - p) * QUAD, 0)
            _finish(b, p, p + PANEL, rows, work, scale, error, squares)


@inlined
def _fill_tail(flat, stride, n, start, lo, hi, shift, frame, tail):
    """The last rows, filled up to four with the centres of the columns, which have the code 0."""
    for k in range(QUAD):
        for j in range(lo, hi):
            tail[k, j] = flat[(start + k) * stride + j - shift] if start + k < n else frame[j]


@inlined
def _span_rows(flat, stride, first, to, width, start, stop, span):
    """Smallest and largest entry of each column; four rows at a time spare the running ones."""
    for j in range(width):
        span[0, to + j] = flat[start * stride + first + j]
        span[1, to + j] = flat[start * stride + first + j]
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
            m = span[0, to + j]
            m = a[j] if a[j] < m else m
            m = b[j] if b[j] < m else m
            m = c[j] if c[j] < m else m
            span[0, to + j] = d[j] if d[j] < m else m
            m = span[1, to + j]
            m = a[j] if a[j] > m else m
            m = b[j] if b[j] > m else m
            m = c[j] if c[j] > m else m
            span[1, to + j] = d[j] if d[j] > m else m


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
        work[0, j] = 0.0
        work[1, j] = 0.0
        scale[b, j] = s
        centre[b, j] = c
        peak[j] = max(peak[j], max(abs(low), abs(high)))


@inlined
def _finish(b, lo, hi, rows, work, scale, error, squares):
    """Bound what the codes lose in a block, and note the squares of what they stand for."""
    for j in range(lo, hi):
        s = np.float64(scale[b, j])
        loss = np.sqrt(np.float64(work[0, j])) * (1.0 + 2.0**-14) + 2.0**-14 * np.sqrt(np.float64(rows))
        error[b, j] = loss * s * (1.0 + 2.0**-22)
        squares[b, j] = s * s * np.float64(work[1, j])
