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


def _encoder(context, builder, signature, args):
    """What `encode_codes` and `encode_group` share: pointers by argument, and steps in building a group."""
    single, integer = (ir.VectorType(t, GROUP) for t in (ir.FloatType(), ir.IntType(32)))
    fast = ("contract",)
    arrays = [isinstance(given, types.Array) for given in signature.args]
    data = [
        context.make_array(given)(context, builder, value).data if array else value
        for given, value, array in zip(signature.args, args, arrays)
    ]

    def constant(value):
        return ir.Constant(single, [value] * GROUP)

    def rounded(v, factor):
        """Adding 1.5 * 2**23 rounds a float32, and leaves the integer in its low bits."""
        return builder.fadd(builder.fmul(v, factor, flags=fast), constant(1.5 * 2**23), flags=fast)

    def unshifted(v):
        return builder.fsub(v, constant(1.5 * 2**23))

    def store(v, base, at, bits):
        low = builder.trunc(builder.bitcast(v, integer), ir.VectorType(ir.IntType(bits), GROUP))
        builder.store(low, builder.bitcast(builder.gep(base, [at]), low.type.as_pointer()), align=1)

    def deviations(x, at, frame, column):
        own = ir.VectorType(x.type.pointee, GROUP)
        u = builder.fsub(load(builder, x, at, own), load(builder, frame, column, own))
        return u if own == single else builder.fptrunc(u, single)

    def add_squares(v, work, column):
        at = builder.add(column, ir.IntType(64)(WIDTH))
        total = builder.fadd(load(builder, work, at, single), builder.fmul(v, v, flags=fast), flags=fast)
        builder.store(total, builder.bitcast(builder.gep(work, [at]), single.as_pointer()), align=1)

    return data, constant, rounded, unshifted, store, deviations, add_squares


@intrinsic
def encode_codes(_context, x, at, frame, work, column, codes, place, steps, to):
    """Encode GROUP entries of a row by one byte each: codes of the columns from `column` on.

    With u = x[at:] - frame[column:] and t = u * work[column:], a code is round(t); the square of t - code is
    added to work[WIDTH + column:]. Where `to` is not negative, round(128 t) is stored in steps[to:].
    """

    def codegen(context, builder, signature, args):
        data, constant, rounded, unshifted, store, deviations, add_squares = _encoder(
            context, builder, signature, args
        )
        x, at, frame, work, column, codes, place, steps, to = data
        factor = load(builder, work, column, ir.VectorType(ir.FloatType(), GROUP))
        t = builder.fmul(deviations(x, at, frame, column), factor)
        with builder.if_then(builder.icmp_signed(">=", to, ir.IntType(64)(0))):
            store(rounded(t, constant(128.0)), steps, to, 16)
        code = rounded(t, constant(1.0))
        store(code, codes, place, 8)
        add_squares(builder.fsub(t, unshifted(code)), work, column)
        return context.get_dummy_value()

    at_type = types.intp
    return types.void(x, at_type, frame, work, at_type, codes, at_type, steps, at_type), codegen


@intrinsic
def encode_group(_context, x, at, frame, work, dither, lead, column, codes, rest, place, steps, to):
    """Encode GROUP entries of a row by two bytes each: codes of the columns from `column` on, and the rest.

    With u = x[at:] - frame[column:] and k = round(u * work[column:]), a code is round((k + dither) / 128) and
    the rest k - 128 code; its square is added to work[WIDTH + column:]. Where `to` is not negative, k is
    stored in steps[to:].
    """

    def codegen(context, builder, signature, args):
        data, constant, rounded, unshifted, store, deviations, add_squares = _encoder(
            context, builder, signature, args
        )
        x, at, frame, work, dither, lead, column, codes, rest, place, steps, to = data
        single, fast = ir.VectorType(ir.FloatType(), GROUP), ("contract",)
        k = rounded(deviations(x, at, frame, column), load(builder, work, column, single))
        with builder.if_then(builder.icmp_signed(">=", to, ir.IntType(64)(0))):
            store(k, steps, to, 16)
        k = unshifted(k)
        code = rounded(builder.fadd(k, load(builder, dither, lead, single)), constant(1.0 / 128.0))
        store(code, codes, place, 8)
        left = builder.fsub(k, builder.fmul(unshifted(code), constant(128.0), flags=fast), flags=fast)
        store(builder.fadd(left, constant(1.5 * 2**23)), rest, place, 8)
        add_squares(left, work, column)
        return context.get_dummy_value()

    at_type = types.intp
    given = (x, at_type, frame, work, dither, at_type, at_type, codes, rest, at_type, steps, at_type)
    return types.void(*given), codegen
