# mypy: disable-error-code="no-untyped-def"
"""Vector loops that turn entries into codes, spelled out as in `vectors`."""

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from skpursuit.kernels.vectors import GROUP, load

WIDTH = 512  # columns encoded at a time: long enough reads of a row, short enough to stay in the cache


@intrinsic
def transpose(_context, tile, column, stride, out, at, step):
    """Write a square of 16 by 16 bytes transposed; rows are `stride` apart in `tile`, `step` in `out`."""

    def codegen(context, builder, signature, args):
        source = context.make_array(signature.args[0])(context, builder, args[0]).data
        target = context.make_array(signature.args[3])(context, builder, args[3]).data
        i32, i64 = ir.IntType(32), ir.IntType(64)
        lane = ir.VectorType(ir.IntType(8), 16)
        order = [k // 2 + 16 * (k % 2) for k in range(32)]
        low = ir.Constant(ir.VectorType(i32, 16), order[:16])
        high = ir.Constant(ir.VectorType(i32, 16), order[16:])
        offsets = [builder.add(args[1], builder.mul(args[2], i64(k))) for k in range(16)]
        rows = [load(builder, source, at, lane) for at in offsets]
        for _ in range(4):
            rows = [
                builder.shuffle_vector(rows[k], rows[k + 8], half) for k in range(8) for half in (low, high)
            ]
        for k, row in enumerate(rows):
            at = builder.gep(target, [builder.add(args[4], builder.mul(args[5], i64(k)))])
            builder.store(row, builder.bitcast(at, lane.as_pointer()), align=1)
        return context.get_dummy_value()

    return types.void(tile, types.intp, types.intp, out, types.intp, types.intp), codegen


@intrinsic
def encode_codes(_context, x, at, frame, work, dither, lead, column, codes, place, steps, to):
    """Encode GROUP entries of a row by one byte each: codes of the columns from `column` on.

    With u = x[at:] - frame[column:] and t = u * work[column:], a code is round(t + dither[lead:]); the square
    of t - code is added to work[WIDTH + column:]. Where `to` is not negative, round(128 t) is stored in
    steps[to:].
    """

    def codegen(context, builder, signature, args):
        single, integer = (ir.VectorType(t, GROUP) for t in (ir.FloatType(), ir.IntType(32)))
        fast, shift = ("contract",), ir.Constant(single, [1.5 * 2**23] * GROUP)
        arrays = [isinstance(given, types.Array) for given in signature.args]
        x, at, frame, work, dither, lead, column, codes, place, steps, to = (
            context.make_array(given)(context, builder, value).data if array else value
            for given, value, array in zip(signature.args, args, arrays)
        )

        def store(v, base, at, bits):
            """Adding 1.5 * 2**23 rounded a float32, and left the integer in its low bits."""
            low = builder.trunc(builder.bitcast(v, integer), ir.VectorType(ir.IntType(bits), GROUP))
            builder.store(low, builder.bitcast(builder.gep(base, [at]), low.type.as_pointer()), align=1)

        own = ir.VectorType(x.type.pointee, GROUP)
        u = builder.fsub(load(builder, x, at, own), load(builder, frame, column, own))
        u = u if own == single else builder.fptrunc(u, single)
        t = builder.fmul(u, load(builder, work, column, single))
        with builder.if_then(builder.icmp_signed(">=", to, ir.IntType(64)(0))):
            step = builder.fmul(t, ir.Constant(single, [128.0] * GROUP), flags=fast)
            store(builder.fadd(step, shift, flags=fast), steps, to, 16)
        code = builder.fadd(builder.fadd(t, load(builder, dither, lead, single)), shift)
        store(code, codes, place, 8)
        left = builder.fsub(t, builder.fsub(code, shift))
        behind = builder.add(column, ir.IntType(64)(WIDTH))
        square = builder.fmul(left, left, flags=fast)
        total = builder.fadd(load(builder, work, behind, single), square, flags=fast)
        builder.store(total, builder.bitcast(builder.gep(work, [behind]), single.as_pointer()), align=1)
        return context.get_dummy_value()

    i = types.intp
    return types.void(x, i, frame, work, dither, i, i, codes, i, steps, i), codegen
