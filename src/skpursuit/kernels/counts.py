# mypy: disable-error-code="no-untyped-def"
"""Population counts in vectors, weighted by the bits of a residual; see `vectors`."""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from skpursuit.kernels.vectors import load

LANES = 4  # words in a vector
MAGNITUDES = 2  # bits of a residual beside its sign
RUN = 31 * LANES  # words that are taken before byte-wide counters would overflow


@intrinsic
def count(_context, words, start, residual, first, length, size):
    """Weighted ones of (words[start + i] ^ residual[first + i]) & residual[first + p * length + i].

    Summed over i < size <= RUN, a multiple of LANES, and p = 1 and 2 with weights 1 and 2.
    A loop over 64-bit counts widens every vector; counting bytes widens once.
    """

    def codegen(context, builder, signature, args):
        x = context.make_array(signature.args[0])(context, builder, args[0]).data
        r = context.make_array(signature.args[2])(context, builder, args[2]).data
        i64, lane = ir.IntType(64), ir.VectorType(ir.IntType(8), 8 * LANES)
        sums = [cgutils.alloca_once(builder, lane) for _ in range(MAGNITUDES)]
        for total in sums:
            builder.store(ir.Constant(lane, [0] * 8 * LANES), total)
        with cgutils.for_range_slice(builder, i64(0), args[5], i64(LANES)) as (i, _):
            place = builder.add(args[3], i)
            sign = load(builder, r, place, lane)
            differ = builder.xor(load(builder, x, builder.add(args[1], i), lane), sign)
            for total in sums:
                place = builder.add(place, args[4])
                hit = _ones(builder, builder.and_(differ, load(builder, r, place, lane)))
                builder.store(builder.add(builder.load(total), hit), total)
        return _weighted(builder, [builder.load(total) for total in reversed(sums)])

    at = types.intp
    return types.int64(words, at, residual, at, at, at), codegen


def _ones(builder, bits):
    """The ones of each byte of a vector."""
    ones = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(bits.type, [bits.type]), f"llvm.ctpop.v{8 * LANES}i8"
    )
    return builder.call(ones, [bits])


def _weighted(builder, counts):
    """Sum over all bytes of (twos, ones), each a vector of counts, with those weights."""
    i16 = ir.IntType(16)
    wide = ir.VectorType(i16, 8 * LANES)
    add = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(i16, [wide]), f"llvm.vector.reduce.add.v{8 * LANES}i16"
    )
    result = builder.zext(counts[0], wide)
    for below in counts[1:]:
        result = builder.add(builder.add(result, result), builder.zext(below, wide))
    return builder.zext(builder.call(add, [result]), ir.IntType(64))
