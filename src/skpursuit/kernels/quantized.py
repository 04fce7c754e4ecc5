"""Kernels on int8 codes: encode columns, multiply the codes by a residual, bound the error.

A column is cut into blocks of ``ROWS`` rows. In each block ``x_i = c + s (q_i + l_i / 128) + error`` with a
centre ``c``, a scale ``s``, a code ``q_i`` in [-127, 127] and a second byte ``l_i`` in [-127, 127]. Codes are
stored column by column, so that one column is one contiguous read. The residual is cut into 16-bit integers
per block: the sum over a block is then exact in 32-bit integers (127 * 32767 * 512 < 2**31), whatever the order.
"""

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

ROWS = 256  # rows in a block; at most 512 or the 32-bit sums overflow
LANES = 64  # rows are padded to a multiple of this many zero codes
WIDTH = 512  # columns encoded at a time: long enough reads of a row, short enough to stay in the cache
FINE = np.float32(128.0)  # steps of the second byte in one step of the code
STEP = np.float32(1.0 / 128.0)
ROUND = np.float32(1.5 * 2**23)  # adding and subtracting it rounds to the nearest integer
ROUND64 = 1.5 * 2**52
LOW_SCALE = 2.0**-80  # smallest scale: its rounding allowance is still a normal float32
TABLE = 7  # numbers per block that `estimate_columns` needs of the residual


@intrinsic
def _dot(_context, codes, start, residual, first, count):  # type: ignore[no-untyped-def]
    """Sum of codes[start + i] * residual[first + i] over i < count, a multiple of 64.

    LLVM turns the plain loop into 128-bit multiply-adds; spelled out in vectors of 16 it uses 256 bits.
    """

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        left = context.make_array(signature.args[0])(context, builder, args[0])
        right = context.make_array(signature.args[2])(context, builder, args[2])
        q = builder.gep(left.data, [args[1]])
        r = builder.gep(right.data, [args[3]])
        i32, i64 = ir.IntType(32), ir.IntType(64)
        wide, half = ir.VectorType(i32, 16), ir.VectorType(i32, 8)
        lanes = [cgutils.alloca_once(builder, half) for _ in range(4)]
        for lane in lanes:
            builder.store(ir.Constant(half, [0] * 8), lane)
        even = ir.Constant(half, list(range(0, 16, 2)))
        odd = ir.Constant(half, list(range(1, 16, 2)))
        with cgutils.for_range_slice(builder, i64(0), args[4], i64(64)) as (at, _):
            for k, lane in enumerate(lanes):
                i = builder.add(at, i64(16 * k))
                a = _load(builder, q, i, ir.VectorType(ir.IntType(signature.args[0].dtype.bitwidth), 16))
                b = _load(builder, r, i, ir.VectorType(ir.IntType(signature.args[2].dtype.bitwidth), 16))
                p = builder.mul(builder.sext(a, wide), builder.sext(b, wide))
                pair = builder.add(builder.shuffle_vector(p, p, even), builder.shuffle_vector(p, p, odd))
                builder.store(builder.add(builder.load(lane), pair), lane)
        total = builder.load(lanes[0])
        for lane in lanes[1:]:
            total = builder.add(total, builder.load(lane))
        return _sum_lanes(builder, total, 8)

    return types.int32(codes, types.intp, residual, types.intp, types.intp), codegen


def _load(builder, base, offset, vector):  # type: ignore[no-untyped-def]
    """Unaligned load of a vector at base + offset elements."""
    at = builder.bitcast(builder.gep(base, [offset]), vector.as_pointer())
    return builder.load(at, align=1)


def _sum_lanes(builder, total, width):  # type: ignore[no-untyped-def]
    """Sum of the lanes of an integer vector."""
    i32 = ir.IntType(32)
    while width > 1:
        width //= 2
        low = ir.Constant(ir.VectorType(i32, width), list(range(width)))
        high = ir.Constant(ir.VectorType(i32, width), list(range(width, 2 * width)))
        total = builder.add(
            builder.shuffle_vector(total, total, low), builder.shuffle_vector(total, total, high)
        )
    return builder.extract_element(total, i32(0))


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
                total = _dot(flat, j * rows + first, whole, k * rows + first, min(ROWS, rows - first))
                s = np.float64(scale[j, b])
                c = centre[j, b]
                t = table[k, b]
                g += s * t[0] * total + c * t[1]
                bound += min(error[j, b] * t[2], s * t[3]) + s * t[4] + abs(c) * t[5]
                spread += s * s * t[6]
            out[k, 0, j] = g
            out[k, 1, j] = bound
            out[k, 2, j] = spread


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _fine_dot(codes, fine, r, first, last):
    total = 0.0
    for i in range(first, last):
        total += (FINE * codes[i] + fine[i]) * r[i]
    return total


@njit(cache=True, nogil=True)
def refine_columns(codes, fine, scale, centre, cols, r, table, out):
    """Estimate and bound of x_j . r for some columns from both bytes; `r` is (m, rows) float64.

    `table` is (m, blocks, TABLE) from `cut_residual`; `out` is (m, 2, columns).
    """
    rows = r.shape[1]
    for a in range(cols.size):
        j = cols[a]
        for k in range(r.shape[0]):
            g = 0.0
            bound = 0.0
            for b in range(scale.shape[1]):
                first = b * ROWS
                total = _fine_dot(codes[j], fine[j], r[k], first, min(first + ROWS, rows))
                s = np.float64(scale[j, b])
                c = centre[j, b]
                g += s / FINE * total + c * table[k, b, 1]
                bound += s * table[k, b, 4] + abs(c) * table[k, b, 5]
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
            v = (r[i] * inverse + ROUND64) - ROUND64
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


@intrinsic
def _transpose(_context, tile, column, stride, out, at, step):  # type: ignore[no-untyped-def]
    """Write 16 rows by 16 columns of bytes of `tile`, from `column` on, transposed: rows of `out` `step` apart."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        source = context.make_array(signature.args[0])(context, builder, args[0]).data
        target = context.make_array(signature.args[3])(context, builder, args[3]).data
        i32, i64 = ir.IntType(32), ir.IntType(64)
        lane = ir.VectorType(ir.IntType(8), 16)
        order = [k // 2 + 16 * (k % 2) for k in range(32)]
        low = ir.Constant(ir.VectorType(i32, 16), order[:16])
        high = ir.Constant(ir.VectorType(i32, 16), order[16:])
        offsets = [builder.add(args[1], builder.mul(args[2], i64(k))) for k in range(16)]
        rows = [_load(builder, source, at, lane) for at in offsets]
        for _ in range(4):
            rows = [
                builder.shuffle_vector(rows[k], rows[k + 8], half) for k in range(8) for half in (low, high)
            ]
        for k, row in enumerate(rows):
            at = builder.gep(target, [builder.add(args[4], builder.mul(args[5], i64(k)))])
            builder.store(row, builder.bitcast(at, lane.as_pointer()), align=1)
        return context.get_dummy_value()

    return types.void(tile, types.intp, types.intp, out, types.intp, types.intp), codegen


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
    for b in range(params.shape[2]):
        start = b * ROWS
        stop = min(start + ROWS, n)
        _span(X, first, width, start, stop, span)
        _frame(span, centre, inverse, params[:, :, b])
        for i in range(start, min(start + ROWS, rows), 16):
            for k in range(16):
                if i + k < stop:
                    _subtract(X[i + k, first : first + width], centre, line)
                    _encode_row(line, dither[min(i + k, dither.shape[0] - 1)], inverse, strip[2 * WIDTH * k :])
                else:
                    strip[2 * WIDTH * k : 2 * WIDTH * (k + 1)] = 0
            for j in range(0, width, 16):
                _transpose(strip, j, 2 * WIDTH, code_bytes, j * rows + i, rows)
                _transpose(strip, j + WIDTH, 2 * WIDTH, fine_bytes, j * rows + i, rows)
        for j in range(width):
            at = j * rows + start
            squares = _dot(fine_bytes, at, fine_bytes, at, min(ROWS, rows - start))
            # What the second byte leaves is at most 1/256 of the scale, plus the float32 rounding of the steps.
            lost = np.sqrt(np.float64(squares)) + 0.505 * np.sqrt(np.float64(stop - start))
            params[2, j, b] = lost * params[0, j, b] * (1.0 + 2.0**-40) / FINE


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
def _subtract(x, centre, out):
    for j in range(x.size):
        out[j] = np.float32(x[j] - centre[j])


@njit(cache=True, nogil=True, fastmath={"contract"})
def _encode_row(x, dither, inverse, out):
    for j in range(WIDTH):
        v = (x[j] * inverse[j] + ROUND) - ROUND
        q = ((v + dither[j]) * STEP + ROUND) - ROUND
        out[j] = np.int8(np.int32(q))
        out[j + WIDTH] = np.int8(np.int32(v - FINE * q))

