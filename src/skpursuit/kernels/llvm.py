# mypy: disable-error-code="no-untyped-def"
"""Parts of vector loops that are spelled out for LLVM: loads, prefetches and sums of lanes.

They use no instruction of a particular processor: LLVM lowers the vectors to what the machine has.
"""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

I64, I32 = ir.IntType(64), ir.IntType(32)


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
    byte = ir.IntType(8).as_pointer()
    shape = ir.FunctionType(ir.VoidType(), [byte, I32, I32, I32])
    ask = cgutils.get_or_insert_function(builder.module, shape, "llvm.prefetch.p0")
    builder.call(ask, [builder.bitcast(place, byte), I32(0), I32(2), I32(1)])


def unpacked(context, builder, kinds, values):
    """Pointers to the data of arrays among arguments, members of tuples as lists, and the rest as it is."""
    out = []
    for kind, value in zip(kinds, values):
        if isinstance(kind, types.BaseTuple):
            out.append(unpacked(context, builder, kind.types, cgutils.unpack_tuple(builder, value)))
        else:
            array = isinstance(kind, types.Array)
            out.append(context.make_array(kind)(context, builder, value).data if array else value)
    return out


def constant(vector, value):
    """A vector of one number that is known now."""
    return ir.Constant(vector, [value] * vector.count)


def splat(builder, one, width=16):
    """A vector of one number."""
    lane = builder.insert_element(ir.Constant(ir.VectorType(one.type, width), ir.Undefined), one, I32(0))
    return builder.shuffle_vector(lane, lane, constant(ir.VectorType(I32, width), 0))


def emit_store(builder, value, base, at):
    """Unaligned store of a vector at base + at elements."""
    builder.store(value, builder.bitcast(builder.gep(base, [at]), value.type.as_pointer()), align=1)


def emit_load(builder, base, offset, vector):
    """Unaligned load of a vector at base + offset elements."""
    return builder.load(builder.bitcast(builder.gep(base, [offset]), vector.as_pointer()), align=1)


def reduce_lanes(builder, v, combine):
    """The lanes of a vector made one, half with half."""
    while v.type.count > 1:
        half = v.type.count // 2
        kind = ir.VectorType(I32, half)
        parts = [ir.Constant(kind, list(range(k, k + half))) for k in (0, half)]
        v = combine(*(builder.shuffle_vector(v, v, part) for part in parts))
    return builder.extract_element(v, I32(0))
