# mypy: disable-error-code="no-untyped-def"
"""Kernels that multiply panels of codes (see `panels`) with vectors of bytes.

A vector is cut to signed bytes times a unit for each block of rows (`cut_vectors`), so that its sum of
products with codes over a block is exact in 32-bit integers. One cut leaves a few thousandths of the vector.
Where more digits are needed, what it leaves is cut again; along a path of vectors that change little, each
cut is of the way from what is represented so far to the next vector, so that only the error of the last cut
remains.

There are three forms of the inner loop, all exact. "vnni" is one instruction of AVX-512 for four products;
"avx2" adds products of eight rows in 16 bits before it widens them, for which the cut leaves room; "plain" is
for every other processor. `BEST` names the fastest that this one has; the environment variable
SKPURSUIT_PRODUCTS takes another.
"""

import os
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from numba import config, njit

from skpursuit.kernels.panel_vectors import PANEL, QUAD, SLOT, VECTORS, multiply_panel
from skpursuit.kernels.panels import ROWS

COMPILED_WITH = "099d0fc8699d"  # digest of these files: Numba notes changes of its own file only

# The type of a number tells the kernel its form: Numba compiles, and caches, one for each.
FORMS: dict[str, Any] = {
    "vnni": np.int32(VECTORS["int32"]),
    "avx2": np.int16(VECTORS["int16"]),
    "plain": np.int8(VECTORS["int8"]),
}
NEEDED = {"vnni": ("avx512vnni", "avx512bw", "avx512vl"), "avx2": ("avx2",), "plain": ()}
LANES = 2 * QUAD  # rows whose products are added in 16 bits, in two sums
STRIP = 256  # columns whose sums stay in the first cache
ROUND = 1.5 * 2**52  # adding and subtracting it rounds to the nearest integer


def available() -> list[str]:
    """The forms that this processor has, as far as Numba is told to use it; the fastest first."""
    features = getattr(config, "CPU_FEATURES", None)
    if features is None and getattr(config, "CPU_NAME", None) != "generic":
        features = ",".join(f"+{name}" for name, there in llvm.get_host_cpu_features().items() if there)
    names = {name[1:] for name in (features or "").split(",") if name.startswith("+")}
    return [form for form, needed in NEEDED.items() if names.issuperset(needed)]


def chosen() -> str:
    """The form that SKPURSUIT_PRODUCTS asks for, or else the fastest."""
    asked, forms = os.environ.get("SKPURSUIT_PRODUCTS", ""), available()
    if asked and asked not in forms:
        raise ValueError(f"SKPURSUIT_PRODUCTS={asked}: this processor has {', '.join(forms)}")
    return asked or forms[0]


BEST = chosen()


@njit(cache=True, nogil=True)
def multiply(lo, hi, form, codes, scale, words, offsets, units, out):
    """Products of the codes of the columns from lo to hi (multiples of PANEL) with several vectors.

    A block of a panel meets all vectors while it is in the first cache, and the next one is asked for
    meanwhile. The sum over a block is exact, those over blocks are float32.

    Parameters
    ----------
    form : one of FORMS
    codes : (panels, quads of rows, PANEL, QUAD) uint8
    scale : (blocks, columns) float32
    words : (m, quads) int32, four bytes of a vector each; m is a multiple of `form`
    offsets : (blocks, m) int32, -128 times the sum of the bytes: codes are stored with 128 added
    units : (blocks, m) float32
    out : (m, columns) float32, written
    """
    quads, width = codes.shape[1], scale.shape[1]
    m, group = words.shape[0], np.int64(form)
    flat, whole = codes.reshape(codes.size), words.reshape(words.size)
    begin, step, scales = offsets.reshape(offsets.size), units.reshape(units.size), scale.reshape(scale.size)
    sums = np.empty(PANEL * m, np.float32)
    for j in range(lo, hi, PANEL):
        for i in range(sums.size):
            sums[i] = 0.0
        for b in range(scale.shape[0]):
            first = b * (ROWS // QUAD)
            count = min(ROWS // QUAD, quads - first)
            here = (j // PANEL * quads + first) * SLOT
            share = SLOT * group // m  # bytes of the next block that are asked for with a quad of this one
            for k in range(0, m, group):
                multiply_panel(
                    form, flat, here, whole, k * quads + first, quads, count,
                    begin, step, b * m + k, scales, b * width + j, sums, PANEL * k,
                    count * (SLOT + k // group * share), share,
                )  # fmt: skip
        for k in range(m):
            for c in range(PANEL):
                out[k, j + c] = sums[PANEL * k + c]


@njit(cache=True, nogil=True)
def cut_vectors(grouped, fresh, R, before, cuts, whole, offsets, units, sums):
    """Cut the rows of R to bytes, each from where the cuts before it have come to, or from zero if `fresh`.

    `grouped` leaves room for 16-bit sums of codes (up to 255) times bytes: in each eight rows, those of rows
    0, 1, 4, 5 and of 2, 3, 6, 7. The unit is the larger of the sums of positives and of negatives there, over
    126; rounding adds at most 4 / 2 to the sum of bytes, and 255 * 128 < 2**15. Else the unit is the largest
    entry over 127.

    Parameters
    ----------
    R : (m, n) float64, below one
    before : (padded rows,) what is represented so far; it moves along
    cuts : int, how often what is left of each vector is cut
    whole : (>= m * cuts, padded rows) int8, written
    offsets, units : (blocks, >= m * cuts), written; see `multiply`
    sums : (m, 5, blocks), written: the sum of a vector, its 1-norm, and squared 2-norms: of what is not
        represented, of all its cuts, and of itself
    """
    v = np.empty(ROWS)
    for b in range(units.shape[0]):
        first = b * ROWS
        count = min(ROWS, R.shape[1] - first)
        full = min(ROWS, before.size - first)
        for i in range(count, full):
            v[i] = 0.0
        for t in range(R.shape[0]):
            total = 0.0
            one = 0.0
            square = 0.0
            for i in range(count):
                entry = R[t, first + i]
                total += entry
                one += abs(entry)
                square += entry * entry
                if fresh:
                    before[first + i] = 0.0
                v[i] = entry - before[first + i]
            made = 0.0
            for k in range(t * cuts, (t + 1) * cuts):
                top = _group_top(v, full) / 126.0 if grouped else _top(v, full) / 127.0
                unit = 0.0
                inverse = 0.0
                if top > 2.0**-100:
                    unit = np.float64(np.float32(top * (1.0 + 2.0**-22)))
                    inverse = 1.0 / unit
                units[b, k] = unit
                whole_sum = 0.0
                squares = 0.0
                for i in range(full):
                    q = (v[i] * inverse + ROUND) - ROUND
                    whole[k, first + i] = np.int8(q)
                    whole_sum += q
                    squares += q * q
                    v[i] -= unit * q
                    before[first + i] += unit * q
                offsets[b, k] = np.int32(-128.0 * whole_sum)
                made += unit * np.sqrt(squares)
            left = 0.0
            for i in range(full):
                left += v[i] * v[i]
            sums[t, 0, b] = total
            sums[t, 1, b] = one
            sums[t, 2, b] = left
            sums[t, 3, b] = made * made
            sums[t, 4, b] = square


@njit(cache=True, nogil=True, inline="always")
def _top(v, count):
    """The largest |entry|."""
    top = 0.0
    for i in range(count):
        top = max(top, abs(v[i]))
    return top


@njit(cache=True, nogil=True, inline="always")
def _group_top(v, count):
    """The largest sum of positive, or of negative, entries whose products are added in 16 bits."""
    top = 0.0
    for i in range(0, count, LANES):
        for a in range(0, QUAD, 2):
            size = 0.0
            net = 0.0
            for p in (a, a + 1, a + QUAD, a + QUAD + 1):
                size += abs(v[i + p])
                net += v[i + p]
            top = max(top, 0.5 * (size + abs(net)))
    return top


@njit(cache=True, nogil=True)
def add_up(lo, hi, running, products, first, cuts, before, centre, totals, unit, out):
    """For the columns from lo to hi, sums of products with what the centres add to them, in float64.

    out[t] is `unit` times before + the products of vector t + totals[t] @ centre; with `running` those of all
    vectors up to t. The products of `first` vectors come before those of vector 0. A `before` of no entries
    is zero.
    """
    whole, rest = np.empty(STRIP), np.empty(STRIP)
    even = centre.shape[0] // 4 * 4
    for a in range(lo, hi, STRIP):
        # Lines that begin at a: LLVM makes vectors of loops over them, but not of loops from a on.
        z = min(a + STRIP, hi)
        sums, more = whole[: z - a], rest[: z - a]
        for j in range(sums.size):
            sums[j] = before[a + j] / unit if before.size else 0.0
        for k in range(first * cuts):
            _add_line(products[k, a:z], sums)
        for t in range(out.shape[0]):
            if not running:
                for j in range(sums.size):
                    sums[j] = 0.0
            for k in range((first + t) * cuts, (first + t + 1) * cuts):
                _add_line(products[k, a:z], sums)
            for j in range(sums.size):
                more[j] = sums[j]
            for b in range(0, even, 4):
                p, q, r, s = totals[t, b], totals[t, b + 1], totals[t, b + 2], totals[t, b + 3]
                c, d, e, f = centre[b, a:z], centre[b + 1, a:z], centre[b + 2, a:z], centre[b + 3, a:z]
                for j in range(sums.size):
                    more[j] += (c[j] * p + d[j] * q) + (e[j] * r + f[j] * s)
            for b in range(even, centre.shape[0]):
                p, c = totals[t, b], centre[b, a:z]
                for j in range(sums.size):
                    more[j] += c[j] * p
            to = out[t, a:z]
            for j in range(sums.size):
                to[j] = unit * more[j]


@njit(cache=True, nogil=True, inline="always")
def _add_line(line, sums):
    for j in range(sums.size):
        sums[j] += np.float64(line[j])


@njit(cache=True, nogil=True)
def decode(lo, hi, codes, scale, centre, cols, out):
    """The columns cols[lo:hi] as their codes have them, the rows of a float32 array."""
    n, flat = out.shape[1], codes.reshape(codes.size)
    for a in range(lo, hi):
        j = cols[a]
        first = (j // PANEL * codes.shape[1] * PANEL + j % PANEL) * QUAD
        for b in range(scale.shape[0]):
            s = scale[b, j]
            c = np.float32(centre[b, j]) - np.float32(128.0) * s
            start = b * ROWS
            lines = flat[first + start * PANEL : first + start * PANEL + ROWS * PANEL]
            to = out[a, start : min(start + ROWS, n)]
            for i in range(to.size):
                to[i] = c + s * np.float32(lines[i // QUAD * SLOT + i % QUAD])
