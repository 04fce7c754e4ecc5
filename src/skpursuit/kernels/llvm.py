# mypy: disable-error-code="no-untyped-def"
"""Parts of vector loops that are spelled out for LLVM: loads, prefetches and sums of lanes.

They use no instruction of a particular processor: LLVM lowers the vectors to what the machine has.
"""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


@intrinsic
def prefetch(_context, x, at):
    """Ask for the cache line of x[at], to be read soon."""

    def codegen(context, builder, signature, args):
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        emit_prefetch(builder, builder.gep(data, [args[1]]))
        return context.get_dummy_value()

    return types.void(x, types.intp), codegen


def emit_prefetch(builder, place):
    """Ask for the cache line of an address."""
    byte, i32 = ir.IntType(8).as_pointer(), ir.IntType(32)
    shape = ir.FunctionType(ir.VoidType(), [byte, i32, i32, i32])
    ask = cgutils.get_or_insert_function(builder.module, shape, "llvm.prefetch.p0")
    builder.call(ask, [builder.bitcast(place, byte), i32(0), i32(2), i32(1)])


def emit_load(builder, base, offset, vector):
    """Unaligned load of a vector at base + offset elements."""
    at = builder.bitcast(builder.gep(base, [offset]), vector.as_pointer())
    return builder.load(at, align=1)


def reduce_lanes(builder, v, combine):
    """The lanes of a vector made one, half with half."""
    while v.type.count > 1:
        half = v.type.count // 2
        kind = ir.VectorType(ir.IntType(32), half)
        parts = [ir.Constant(kind, list(range(k, k + half))) for k in (0, half)]
        v = combine(*(builder.shuffle_vector(v, v, part) for part in parts))
    return builder.extract_element(v, ir.IntType(32)(0))
