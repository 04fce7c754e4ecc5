# mypy: disable-error-code="no-untyped-def"
"""Vector loops spelled out for LLVM, where its own choice for the plain loop is two or more times slower.

They use no instruction of a particular processor: LLVM lowers the vectors to what the machine has.
"""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

GROUP = 16  # columns that are encoded together
ROW_GROUP = 8  # rows that `add_steps` adds at a time
LINE_STEPS, AHEAD = 32, 512  # steps in a cache line, and how far ahead lines are asked for


@intrinsic
def dot(_context, codes, start, residual, first, count):
    """Sum of codes[start + i] * residual[first + i] over i < count, a multiple of 64.

    LLVM turns the plain loop into 128-bit multiply-adds; spelled out in vectors of 16 it uses 256 bits.
    """

    def codegen(context, builder, signature, args):
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
                a = load(builder, q, i, ir.VectorType(ir.IntType(signature.args[0].dtype.bitwidth), 16))
                b = load(builder, r, i, ir.VectorType(ir.IntType(signature.args[2].dtype.bitwidth), 16))
                p = builder.mul(builder.sext(a, wide), builder.sext(b, wide))
                pair = builder.add(builder.shuffle_vector(p, p, even), builder.shuffle_vector(p, p, odd))
                builder.store(builder.add(builder.load(lane), pair), lane)
        total = builder.load(lanes[0])
        for lane in lanes[1:]:
            total = builder.add(total, builder.load(lane))
        return _sum_lanes(builder, total, 8)

    return types.int32(codes, types.intp, residual, types.intp, types.intp), codegen


@intrinsic
def add_steps(_context, steps, at, weights, first, sums, count, fresh):
    """Add weights[first + p] * steps[at[p]:] over p < ROW_GROUP to sums, or set them when `fresh`.

    `count` entries are taken, a multiple of 8. Rows are asked for ahead of their use.
    """

    def codegen(context, builder, signature, args):
        arrays = [context.make_array(signature.args[i])(context, builder, args[i]).data for i in (0, 1, 2, 4)]
        steps, at, weights, sums = arrays
        i64, single = ir.IntType(64), ir.VectorType(ir.FloatType(), 8)
        whole, short = ir.VectorType(ir.IntType(32), 8), ir.VectorType(ir.IntType(16), 8)
        rows, factors = [], []
        for p in range(ROW_GROUP):
            rows.append(builder.gep(steps, [builder.load(builder.gep(at, [i64(p)]))]))
            weight = builder.load(builder.gep(weights, [builder.add(args[3], i64(p))]))
            lane = builder.insert_element(ir.Constant(single, ir.Undefined), weight, i64(0))
            factors.append(builder.shuffle_vector(lane, lane, ir.Constant(whole, [0] * 8)))
        zero, fast = ir.Constant(single, [0.0] * 8), ("contract",)

        def add(j):
            place = builder.bitcast(builder.gep(sums, [j]), single.as_pointer())
            totals = [builder.select(args[6], zero, builder.load(place, align=1)), zero]
            for p, (row, factor) in enumerate(zip(rows, factors)):
                entries = builder.sitofp(builder.sext(load(builder, row, j, short), whole), single)
                product = builder.fmul(factor, entries, flags=fast)
                totals[p % 2] = builder.fadd(totals[p % 2], product, flags=fast)
            builder.store(builder.fadd(*totals), place, align=1)

        bulk = builder.and_(args[5], i64(-LINE_STEPS))
        with cgutils.for_range_slice(builder, i64(0), bulk, i64(LINE_STEPS)) as (line, _):
            for row in rows:
                fetch(builder, builder.gep(row, [builder.add(line, i64(AHEAD))]))
            for k in range(0, LINE_STEPS, 8):
                add(builder.add(line, i64(k)))
        with cgutils.for_range_slice(builder, bulk, args[5], i64(8)) as (j, _):
            add(j)
        return context.get_dummy_value()

    given = (steps, at, weights, types.intp, sums, types.intp, types.boolean)
    return types.void(*given), codegen


@intrinsic
def put_sums(_context, sums, scale, centre, start, unit, total, source, out, to, count):
    """Set out[to + j] = source + unit * (scale[start + j] * sums[j] + total * centre[start + j]).

    The source is out[source + j]. Slices of arrays would take four times as long to compile.
    """

    def codegen(context, builder, signature, args):
        arrays = [context.make_array(signature.args[i])(context, builder, args[i]).data for i in (0, 1, 2, 7)]
        sums, scale, centre, out = arrays
        i64, double = ir.IntType(64), ir.DoubleType()

        def entry(base, at, j):
            value = builder.load(builder.gep(base, [builder.add(at, j)]))
            return value if value.type == double else builder.fpext(value, double)

        with cgutils.for_range_slice(builder, i64(0), args[9], i64(1)) as (j, _):
            product = builder.fmul(entry(scale, args[3], j), entry(sums, i64(0), j))
            shift = builder.fmul(entry(centre, args[3], j), args[5])
            more = builder.fmul(args[4], builder.fadd(product, shift))
            place = builder.gep(out, [builder.add(args[8], j)])
            builder.store(builder.fadd(entry(out, args[6], j), more), place)
        return context.get_dummy_value()

    at, number = types.intp, types.float64
    return types.void(sums, scale, centre, at, number, number, at, out, at, at), codegen


@intrinsic
def prefetch(_context, x, at):
    """Ask for the cache line of x[at], to be read soon."""

    def codegen(context, builder, signature, args):
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        fetch(builder, builder.gep(data, [args[1]]))
        return context.get_dummy_value()

    return types.void(x, types.intp), codegen


def fetch(builder, place):
    """Ask for the cache line of an address."""
    byte, i32 = ir.IntType(8).as_pointer(), ir.IntType(32)
    shape = ir.FunctionType(ir.VoidType(), [byte, i32, i32, i32])
    ask = cgutils.get_or_insert_function(builder.module, shape, "llvm.prefetch.p0")
    builder.call(ask, [builder.bitcast(place, byte), i32(0), i32(2), i32(1)])


def load(builder, base, offset, vector):
    """Unaligned load of a vector at base + offset elements."""
    at = builder.bitcast(builder.gep(base, [offset]), vector.as_pointer())
    return builder.load(at, align=1)


def _sum_lanes(builder, total, width):
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
