# mypy: disable-error-code="no-untyped-def"
"""Vector loops spelled out for LLVM, where its own choice for the plain loop is two or more times slower.

They use no instruction of a particular processor: LLVM lowers the vectors to what the machine has.
"""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

GROUP = 16  # columns that are encoded together


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
        return folded(builder, total, builder.add)

    return types.int32(codes, types.intp, residual, types.intp, types.intp), codegen


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


def folded(builder, v, combine):
    """The lanes of a vector made one, half with half."""
    while v.type.count > 1:
        half = v.type.count // 2
        kind = ir.VectorType(ir.IntType(32), half)
        parts = [ir.Constant(kind, list(range(k, k + half))) for k in (0, half)]
        v = combine(*(builder.shuffle_vector(v, v, part) for part in parts))
    return builder.extract_element(v, ir.IntType(32)(0))
