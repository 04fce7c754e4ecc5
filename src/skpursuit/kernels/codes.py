# mypy: disable-error-code="no-untyped-def"
"""Kernels that turn columns into panels of one-byte codes, and multiply these with vectors of bytes.

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

To multiply panels, a vector is cut to signed bytes times a unit for each block of rows (`quantize_vectors`),
so that its sum of products with codes over a block is exact in 32-bit integers. One cut leaves a few
thousandths of the vector. Where more digits are needed, what it leaves is cut again; along a path of vectors
that change little, each cut is of the way from what is represented so far to the next vector, so that only
the error of the last cut remains.

There are three forms of the inner loop, all exact. "vnni" is one instruction of AVX-512 for four products;
"avx2" adds products of eight rows in 16 bits before it widens them, for which the cut leaves room; "plain" is
for every other processor. `DEFAULT_ISA` names the fastest that this one has; the environment variable
SKPURSUIT_PRODUCTS takes another.
"""

import os
from typing import NamedTuple

import llvmlite.binding as llvm
import numpy as np
from numba import config, njit
from numpy.typing import NDArray

from skpursuit.kernels.llvm import (
    PANEL_COLUMNS,
    QUAD_BYTES,
    QUAD_ROWS,
    VECTORS_PER_CALL,
    encode_column_quad,
    encode_row_quad,
    min_max,
    multiply_panel,
    prefetch,
)

BLOCK_ROWS = 512  # rows in a block
PREFETCH_ROWS = 16  # rows of a block that are asked for before they are looked at
LOW_SCALE = 2.0**-80  # smallest scale of a column that is not constant: its error is still a normal float32
# The type of a number tells the kernel its form: Numba compiles, and caches, one for each.
ISA_TAGS: dict[str, np.signedinteger] = {
    "vnni": np.int32(VECTORS_PER_CALL["int32"]),
    "avx2": np.int16(VECTORS_PER_CALL["int16"]),
    "plain": np.int8(VECTORS_PER_CALL["int8"]),
}
REQUIRED_CPU_FEATURES = {"vnni": ("avx512vnni", "avx512bw", "avx512vl"), "avx2": ("avx2",), "plain": ()}
SHORT_SUM_ROWS = 2 * QUAD_ROWS  # rows whose products are added in 16 bits, in two sums
ROUND = 1.5 * 2**52  # adding and subtracting it rounds to the nearest integer


def available_isas() -> list[str]:
    """The forms that this processor has, as far as Numba is told to use it; the fastest first."""
    features = getattr(config, "CPU_FEATURES", None)
    if features is None and getattr(config, "CPU_NAME", None) != "generic":
        features = ",".join(f"+{name}" for name, there in llvm.get_host_cpu_features().items() if there)
    names = {name[1:] for name in (features or "").split(",") if name.startswith("+")}
    return [form for form, needed in REQUIRED_CPU_FEATURES.items() if names.issuperset(needed)]


def select_isa() -> str:
    """The form that SKPURSUIT_PRODUCTS asks for, or else the fastest."""
    asked, forms = os.environ.get("SKPURSUIT_PRODUCTS", ""), available_isas()
    if asked and asked not in forms:
        raise ValueError(f"SKPURSUIT_PRODUCTS={asked}: this processor has {', '.join(forms)}")
    return asked or forms[0]


DEFAULT_ISA = select_isa()


class VectorBytes(NamedTuple):
    """Vectors cut to bytes, times a unit for each block of rows; m is a multiple of those taken at a time."""

    digits: NDArray[np.int8]  # (m, padded rows)
    offsets: NDArray[np.int32]  # (blocks, m), -128 times the sum of the bytes, for codes have 128 added
    units: NDArray[np.float32]  # (blocks, m)


@njit(cache=True, nogil=True)
def multiply(lo, hi, form, panels, codes, scale, vectors, out):
    """Products of the codes of some panels with several vectors, those at lo to hi of the columns of `out`.

    A block of a panel meets all vectors while it is in the first cache, and the next one is asked for
    meanwhile. The sum over a block is exact, those over blocks are float32.

    `lo` and `hi` are multiples of `PANEL_COLUMNS`, `form` is one of `ISA_TAGS`, and `panels` has one for each
    `PANEL_COLUMNS` columns of `out` (m, columns), float32. `codes` are (panels, quads of rows, PANEL_COLUMNS,
    QUAD_ROWS) uint8, `scale` (blocks, columns) float32, and `vectors` are `VectorBytes` of m vectors, a
    multiple of `form`, four digits in an int32.
    """
    words, quads, width = vectors.digits, codes.shape[1], scale.shape[1]
    m, group = words.shape[0], np.int64(form)
    sums = np.empty(PANEL_COLUMNS * m, np.float32)
    for at in range(lo, hi, PANEL_COLUMNS):
        j = panels[at // PANEL_COLUMNS] * PANEL_COLUMNS
        for i in range(sums.size):
            sums[i] = 0.0
        for b in range(scale.shape[0]):
            first = b * (BLOCK_ROWS // QUAD_ROWS)
            count = min(BLOCK_ROWS // QUAD_ROWS, quads - first)
            here = (j // PANEL_COLUMNS * quads + first) * QUAD_BYTES
            # Bytes of the next block that are asked for with a quad of this one.
            share = QUAD_BYTES * group // m
            for k in range(0, m, group):
                multiply_panel(
                    form,
                    (codes, here, count * (QUAD_BYTES + k // group * share), share),
                    (words, k * quads + first, quads, count),
                    (vectors.offsets, vectors.units, b * m + k),
                    (scale, b * width + j),
                    (sums, PANEL_COLUMNS * k),
                )
        for k in range(m):
            for c in range(PANEL_COLUMNS):
                out[k, at + c] = sums[PANEL_COLUMNS * k + c]


@njit(cache=True, nogil=True)
def quantize_vectors(grouped, fresh, R, before, cuts, vectors, sums):
    """Cut the rows of R to bytes, each from where the cuts before it have come to, or from zero if `fresh`.

    `grouped` leaves room for 16-bit sums of codes (up to 255) times bytes: in each eight rows, those of rows
    0, 1, 4, 5 and of 2, 3, 6, 7. The unit is the larger of the sums of positives and of negatives there, over
    126; rounding adds at most 4 / 2 to the sum of bytes, and 255 * 128 < 2**15. Else the unit is the largest
    entry over 127.

    R is (m, n), float64 and below one. `before` (padded rows,) is what is represented so far; it moves along.
    What is left of each vector is cut `cuts` times. Written are `vectors`, at least m * cuts of them, and
    `sums` (m, 5, blocks): the sum of a vector, its 1-norm, and squared 2-norms: of what is not represented,
    of all its cuts, and of itself.
    """
    v = np.empty(BLOCK_ROWS)
    whole, offsets, units = vectors
    for b in range(units.shape[0]):
        first = b * BLOCK_ROWS
        count = min(BLOCK_ROWS, R.shape[1] - first)
        full = min(BLOCK_ROWS, before.size - first)
        for i in range(count, full):
            v[i] = 0.0
        for t in range(R.shape[0]):
            if fresh:
                for i in range(full):
                    before[first + i] = 0.0
            total, one, square, made, left = 0.0, 0.0, 0.0, 0.0, 0.0
            for i in range(count):
                entry = R[t, first + i]
                total += entry
                one += abs(entry)
                square += entry * entry
                v[i] = entry - before[first + i]
            for k in range(t * cuts, (t + 1) * cuts):
                top = 0.0
                for i in range(0, full if grouped else 0, SHORT_SUM_ROWS):
                    for a in range(i, i + QUAD_ROWS, 2):
                        p, q, r, s = v[a], v[a + 1], v[a + QUAD_ROWS], v[a + QUAD_ROWS + 1]
                        size = (abs(p) + abs(q)) + (abs(r) + abs(s))
                        top = max(top, 0.5 * (size + abs((p + q) + (r + s))))
                for i in range(0 if grouped else full):
                    top = max(top, abs(v[i]))
                top /= 126.0 if grouped else 127.0
                unit, inverse = 0.0, 0.0
                if top > 2.0**-100:
                    unit = np.float64(np.float32(top * (1.0 + 2.0**-22)))
                    inverse = 1.0 / unit
                whole_sum, squares = 0.0, 0.0
                for i in range(full):
                    q = (v[i] * inverse + ROUND) - ROUND
                    whole[k, first + i] = np.int8(q)
                    whole_sum += q
                    squares += q * q
                    v[i] -= unit * q
                    before[first + i] += unit * q
                units[b, k] = unit
                offsets[b, k] = np.int32(-128.0 * whole_sum)
                made += unit * np.sqrt(squares)
            for i in range(full):
                left += v[i] * v[i]
            sums[t, 0, b] = total
            sums[t, 1, b] = one
            sums[t, 2, b] = left
            sums[t, 3, b] = made * made
            sums[t, 4, b] = square


class EncoderArrays(NamedTuple):
    """What is written: codes, and of each block and column, (..., blocks, columns), how and at what loss."""

    scale: NDArray[np.float32]
    centre: NDArray[np.float64]
    factor: NDArray[np.float32]
    peak: NDArray[np.float64]
    sums: NDArray[np.float32]  # squares of what one byte loses, of its codes, of what both lose; added to
    codes: NDArray[np.uint8]
    fine: NDArray[np.uint8] | NDArray[np.bool_]
    totals: NDArray[np.float64]  # sums of the columns of a block, row by row, where it is not empty


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
