# mypy: disable-error-code="no-untyped-def"
"""Vector loops that are spelled out for LLVM: parts that all of them share, and those of panels of codes.

LLVM's own choice for the plain loops of panels (see `codes`) is two or more times slower. It lowers these
vectors to what the machine has: only `multiply_panel` knows particular instructions, where it is asked.
"""

from functools import partial

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

I64, I32 = ir.IntType(64), ir.IntType(32)
PANEL_COLUMNS = 16  # columns whose codes lie together
QUAD_ROWS = 4  # rows whose codes of one column lie together
QUAD_BYTES = PANEL_COLUMNS * QUAD_ROWS  # bytes of a quad of rows in a panel: a cache line
# Adding it to a float32 rounds, and leaves the integer plus 128 in its low byte.
ROUND_SHIFT = 1.5 * 2**23 + 128
MAX_CODE = 127.0  # codes are within -127 ... 127
SECOND_BYTE_SCALE = 256.0  # of a second byte, in a unit of the first: a power of two, so that nothing rounds
PREFETCH_BYTES = 512  # bytes of a row that are asked for ahead

F32_VECTOR, I32_VECTOR = ir.VectorType(ir.FloatType(), PANEL_COLUMNS), ir.VectorType(I32, PANEL_COLUMNS)
F64_VECTOR = ir.VectorType(ir.DoubleType(), PANEL_COLUMNS)
FAST = ("contract",)


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


def _like(builder, v, kind):
    """Numbers in float64 in the precision of another vector."""
    return v if v.type == kind else builder.fptrunc(v, kind)


def _rounded(builder, t):
    """Numbers cut to codes: (float32 whose low byte is the code plus 128, code)."""
    # Comparisons are written so that LLVM takes min and max instructions for them.
    high, low = constant(F32_VECTOR, MAX_CODE), constant(F32_VECTOR, -MAX_CODE)
    inside = builder.select(builder.fcmp_ordered("<", t, high), t, high)
    inside = builder.select(builder.fcmp_ordered(">", inside, low), inside, low)
    shifted = builder.fadd(inside, constant(F32_VECTOR, ROUND_SHIFT))
    return shifted, builder.fsub(shifted, constant(F32_VECTOR, ROUND_SHIFT))


def _encoded(builder, entries, centre, factor, fine):
    """Entries as codes: the shifted bytes, and (what the first byte leaves, its code, what both leave)."""
    # The second byte has what the first leaves, in units of 1 / FINE; both differences are exact.
    t = builder.fmul(_like(builder, builder.fsub(entries, centre), F32_VECTOR), factor)
    shifted, code = _rounded(builder, t)
    left = builder.fsub(t, code)
    if not fine:
        return [shifted], [left, code]
    second, rest = _rounded(builder, builder.fmul(left, constant(F32_VECTOR, SECOND_BYTE_SCALE)))
    rest = builder.fsub(left, builder.fmul(rest, constant(F32_VECTOR, 1.0 / SECOND_BYTE_SCALE)))
    return [shifted, second], [left, code, rest]


def _planes(codes, fine, kind):
    """The arrays that bytes go to: the second one only where it is one of bytes."""
    return [codes, fine] if kind.types[kind.fields.index("fine")].dtype == types.uint8 else [codes]


def _line_entries(x):
    """Entries of a cache line."""
    return 64 // (4 if x.type.pointee == ir.FloatType() else 8)


def _add_square(builder, total, v):
    return builder.fadd(total, builder.fmul(v, v, flags=FAST), flags=FAST)


@intrinsic
def encode_row_quad(_context, rows, count, out, columns, places):
    """Encode four rows of `count` columns, a multiple of `PANEL_COLUMNS`.

    `rows` is (x, at, stride, left): they begin at x[at] and are `stride` apart. Where fewer than four are
    `left` the last of them is repeated. With t = (x - centre) * factor a code is t, cut to -127 ... 127 and
    rounded, plus 128. With `places` = (place, step) bytes of the first panel go to codes[place:], those of
    the next `step` further, and second bytes to the same places of `fine`, if that is an array of bytes. With
    `columns` = (column, apart, totals) squares of t - code are added to sums[column:], those of the codes
    `apart` further, those of what both bytes leave again `apart` further; frames and factors begin at
    `column` too, and so do sums of the rows, one after the other, where there are any `totals`.
    """

    def codegen(context, builder, signature, args):
        given, count, data, columns, (place, step) = unpacked(context, builder, signature.args, args)
        (x, at, stride, left), (_, frame, factor, _, work, codes, fine, totals) = given, data
        column, apart, n_totals = columns
        planes = _planes(codes, fine, out)
        own = ir.VectorType(x.type.pointee, PANEL_COLUMNS)
        last = builder.sub(left, I64(1))
        rows = []
        for k in range(QUAD_ROWS):
            row = builder.select(builder.icmp_signed("<", I64(k), last), I64(k), last)
            rows.append(builder.gep(x, [builder.add(at, builder.mul(stride, row))]))
        line = _line_entries(x)
        with cgutils.for_range_slice(builder, I64(0), count, I64(PANEL_COLUMNS)) as (j, _):
            col = builder.add(column, j)
            places = [builder.add(col, builder.mul(apart, I64(p))) for p in range(1 + len(planes))]
            c = _like(builder, emit_load(builder, frame, col, F64_VECTOR), own)
            f = emit_load(builder, factor, col, F32_VECTOR)
            sums = [emit_load(builder, work, to, F32_VECTOR) for to in places]
            words, entries = [None] * len(planes), [emit_load(builder, row, j, own) for row in rows]
            for k, row in enumerate(rows):
                for ahead in range(0, PANEL_COLUMNS, line):
                    emit_prefetch(
                        builder, builder.gep(row, [builder.add(j, I64(PREFETCH_BYTES // line * 8 + ahead))])
                    )
                shifted, terms = _encoded(builder, entries[k], c, f, len(planes) > 1)
                sums = [_add_square(builder, total, term) for total, term in zip(sums, terms)]
                for p, one in enumerate(shifted):
                    bits = builder.shl(builder.bitcast(one, I32_VECTOR), constant(I32_VECTOR, 8 * k))
                    words[p] = bits if words[p] is None else builder.add(words[p], bits)
            for to, total in zip(places, sums):
                emit_store(builder, total, work, to)
            with builder.if_then(builder.icmp_signed(">", n_totals, I64(0))):
                total = emit_load(builder, totals, col, F64_VECTOR)
                for k, row in enumerate(entries):
                    wide = row if own == F64_VECTOR else builder.fpext(row, F64_VECTOR)
                    there = builder.icmp_signed("<", I64(k), left)
                    total = builder.select(there, builder.fadd(total, wide), total)
                emit_store(builder, total, totals, col)
            panel = builder.mul(builder.udiv(j, I64(PANEL_COLUMNS)), step)
            for plane, word in zip(planes, words):
                # 1.5 * 2**23 is 0x4B400000: of its copies only these bits are left in the sum.
                word = builder.sub(word, constant(I32_VECTOR, (0x4B400000 + 0x40000000) & 0xFFFFFFFF))
                emit_store(builder, word, plane, builder.add(place, panel))
        return context.get_dummy_value()

    return types.void(rows, types.intp, out, columns, places), codegen


@intrinsic
def encode_column_quad(_context, lines, count, out, columns, places):
    """Encode `count` rows, a multiple of 16, of four columns: `lines` is (x, at, stride), as for rows.

    As `encode_row_quad`; each column's rows lie together. With `places` = (place, ahead) bytes go to
    codes[place:], quads of rows `QUAD_BYTES` apart. Sums of squares are set, not added to. What comes next,
    `ahead` entries further, is asked for.
    """

    def codegen(context, builder, signature, args):
        given, count, data, (column, apart), (place, ahead) = unpacked(context, builder, signature.args, args)
        (x, at, stride), (_, frame, factor, _, work, codes, fine, _) = given, data
        planes, bytes_ = _planes(codes, fine, out), ir.VectorType(ir.IntType(8), PANEL_COLUMNS)
        own = ir.VectorType(x.type.pointee, PANEL_COLUMNS)
        lines = [builder.gep(x, [builder.add(at, builder.mul(stride, I64(k)))]) for k in range(QUAD_ROWS)]
        columns = [builder.add(column, I64(k)) for k in range(QUAD_ROWS)]
        frames = [
            _like(builder, splat(builder, builder.load(builder.gep(frame, [col]))), own) for col in columns
        ]
        factors = [splat(builder, builder.load(builder.gep(factor, [col]))) for col in columns]
        sums = [
            [cgutils.alloca_once(builder, F32_VECTOR) for _ in range(QUAD_ROWS)]
            for _ in range(1 + len(planes))
        ]
        for four in sums:
            for held in four:
                builder.store(constant(F32_VECTOR, 0.0), held)
        quarter = ir.VectorType(I32, 4)
        with cgutils.for_range_slice(builder, I64(0), count, I64(PANEL_COLUMNS)) as (i, _):
            words = [[] for _ in planes]
            for k, line in enumerate(lines):
                for part in range(0, PANEL_COLUMNS, _line_entries(x)):
                    emit_prefetch(builder, builder.gep(line, [builder.add(builder.add(i, ahead), I64(part))]))
                entries = emit_load(builder, line, i, own)
                shifted, terms = _encoded(builder, entries, frames[k], factors[k], len(planes) > 1)
                for held, v in zip(sums, terms):
                    builder.store(_add_square(builder, builder.load(held[k]), v), held[k])
                for plane, one in zip(words, shifted):
                    low = builder.trunc(builder.bitcast(one, I32_VECTOR), bytes_)
                    plane.append(builder.bitcast(low, quarter))
            first = builder.add(place, builder.mul(i, I64(PANEL_COLUMNS)))
            for plane, four in zip(planes, words):
                for k, quad in enumerate(_transposed(builder, four, quarter)):
                    emit_store(builder, quad, plane, builder.add(first, I64(k * QUAD_BYTES)))
        for part, four in enumerate(sums):
            for k, held in enumerate(four):
                to = builder.add(columns[k], builder.mul(apart, I64(part)))
                total = reduce_lanes(builder, builder.load(held), builder.fadd)
                builder.store(total, builder.gep(work, [to]))
        return context.get_dummy_value()

    return types.void(lines, types.intp, out, columns, places), codegen


def _transposed(builder, four, quarter):
    """Four vectors of four words, each the bytes of a column, as those of four quads of rows."""

    def mixed(a, b, order):
        return builder.shuffle_vector(a, b, ir.Constant(quarter, order))

    pairs = [mixed(four[a], four[a + 1], order) for a in (0, 2) for order in ([0, 4, 1, 5], [2, 6, 3, 7])]
    return [mixed(pairs[a], pairs[a + 2], order) for a in (0, 1) for order in ([0, 1, 4, 5], [2, 3, 6, 7])]


@intrinsic
def min_max(_context, x, at, count, span, column):
    """Smallest and largest of `count` entries, a multiple of 16, from x[at], to span[:, column]."""

    def codegen(context, builder, signature, args):
        x, at, count, span, column = unpacked(context, builder, signature.args, args)
        own = ir.VectorType(x.type.pointee, PANEL_COLUMNS)
        line = builder.gep(x, [at])
        first = emit_load(builder, line, I64(0), own)
        low, high = cgutils.alloca_once(builder, own), cgutils.alloca_once(builder, own)
        builder.store(first, low)
        builder.store(first, high)

        def pick(sign, a, b):
            return builder.select(builder.fcmp_ordered(sign, a, b), a, b)

        with cgutils.for_range_slice(builder, I64(PANEL_COLUMNS), count, I64(PANEL_COLUMNS)) as (i, _):
            v = emit_load(builder, line, i, own)
            builder.store(pick("<", v, builder.load(low)), low)
            builder.store(pick(">", v, builder.load(high)), high)
        shape = context.make_array(signature.args[3])(context, builder, args[3]).shape
        width = builder.extract_value(shape, 1)
        for sign, held, to in (("<", low, column), (">", high, builder.add(column, width))):
            v = reduce_lanes(builder, builder.load(held), partial(pick, sign))
            builder.store(v, builder.gep(span, [to]))
        return context.get_dummy_value()

    n = types.intp
    return types.void(x, n, n, span, n), codegen


# How products of codes and bytes are added, by the type of the number that asks for it: a kernel is compiled
# for the form that is used, and cached apart from the others.
VECTORS_PER_CALL = {"int32": 4, "int16": 3, "int8": 4}  # vectors taken at a time: sums stay in registers


def _called(builder, name, result, *given):
    """Call an instruction of the processor."""
    shape = ir.FunctionType(result, [value.type for value in given])
    return builder.call(cgutils.get_or_insert_function(builder.module, shape, name), given)


def _vnni(builder, codes, words, totals):
    """Add four products of bytes to each 32-bit sum by one instruction of AVX-512."""
    wide = ir.VectorType(ir.IntType(8), QUAD_BYTES)
    for at, word in zip(codes, words):
        left, right = emit_load(builder, at, I64(0), wide), builder.bitcast(splat(builder, word), wide)
        totals = [_called(builder, "llvm.x86.avx512.vpdpbusd.512", I32_VECTOR, totals[0], left, right)]
    return totals


def _avx2(builder, codes, words, totals):
    """Add products of two quads in 16 bits, which the cut leaves room for, and then to 32-bit sums."""
    half, short = ir.VectorType(ir.IntType(8), QUAD_BYTES // 2), ir.VectorType(ir.IntType(16), PANEL_COLUMNS)
    right = [builder.bitcast(splat(builder, word, PANEL_COLUMNS // 2), half) for word in words]
    out = []
    for part, total in enumerate(totals):
        left = [emit_load(builder, at, I64(part * QUAD_BYTES // 2), half) for at in codes]
        pairs = [_called(builder, "llvm.x86.avx2.pmadd.ub.sw", short, *both) for both in zip(left, right)]
        both = builder.add(*pairs)
        more = _called(builder, "llvm.x86.avx2.pmadd.wd", total.type, both, constant(short, 1))
        out.append(builder.add(total, more))
    return out


def _portable(builder, codes, words, totals):
    """The same in 32-bit integers that every processor has."""
    for at, word in zip(codes, words):
        left = emit_load(builder, at, I64(0), I32_VECTOR)
        for k in range(QUAD_ROWS):
            code = builder.and_(builder.lshr(left, constant(I32_VECTOR, 8 * k)), constant(I32_VECTOR, 255))
            factor = builder.ashr(builder.shl(word, I32(24 - 8 * k)), I32(24))
            totals = [builder.add(totals[0], builder.mul(code, splat(builder, factor)))]
    return totals


# With these: how many vectors a panel is, and quads taken at a time.
INNER_LOOPS = {"int32": (_vnni, 1, 4), "int16": (_avx2, 2, 2), "int8": (_portable, 1, 2)}


@intrinsic
def multiply_panel(_context, form, codes, words, vectors, scales, sums):
    """Add products of the codes of a panel with VECTORS_PER_CALL[form] vectors, over `quads` quads of rows.

    `form` is one of `ISA_TAGS`. With `codes` = (codes, start, ahead, step) codes begin at codes[start];
    meanwhile codes[start + ahead:] are asked for, `step` bytes per quad. With `words` = (words, first,
    stride, quads) a vector is `quads` words of four bytes, which begin at words[first] and are `stride`
    apart. With `vectors` = (offsets, units, unit) sums begin with offsets[unit + vector] and are exact in
    32-bit integers. With `scales` = (scales, column) and `sums` = (sums, place) they are added, times
    scales[column:] * units[unit + vector], to sums[place + PANEL_COLUMNS * vector:], in float32.
    """

    def codegen(context, builder, signature, args):
        _, *given = unpacked(context, builder, signature.args, args)
        (codes, start, ahead, step), (words, first, stride, quads), *given = given
        (offsets, units, unit), (scales, column), (sums, place) = given
        add, parts, together = INNER_LOOPS[form.name]
        kind = ir.VectorType(I32, PANEL_COLUMNS // parts)
        vectors = range(VECTORS_PER_CALL[form.name])
        lines = [builder.gep(words, [builder.add(first, builder.mul(stride, I64(k)))]) for k in vectors]
        held = [[cgutils.alloca_once(builder, kind) for _ in range(parts)] for _ in vectors]
        for k, places in enumerate(held):
            offset = builder.load(builder.gep(offsets, [builder.add(unit, I64(k))]))
            for at in places:
                builder.store(splat(builder, offset, kind.count), at)
        base = builder.gep(codes, [start])
        with cgutils.for_range_slice(builder, I64(0), quads, I64(together)) as (i, _):
            some = [builder.add(i, I64(a)) for a in range(together)]
            here = [builder.gep(base, [builder.mul(q, I64(QUAD_BYTES))]) for q in some]
            for q in some:
                emit_prefetch(builder, builder.gep(base, [builder.add(ahead, builder.mul(q, step))]))
            for line, places in zip(lines, held):
                given = [builder.load(builder.gep(line, [q])) for q in some]
                for at, total in zip(places, add(builder, here, given, [builder.load(at) for at in places])):
                    builder.store(total, at)
        single = ir.VectorType(ir.FloatType(), kind.count)
        for k, places in enumerate(held):
            size = splat(builder, builder.load(builder.gep(units, [builder.add(unit, I64(k))])), kind.count)
            for part, at in enumerate(places):
                lane = I64(part * kind.count)
                factor = builder.fmul(emit_load(builder, scales, builder.add(column, lane), single), size)
                new = builder.fmul(builder.sitofp(builder.load(at), single), factor, flags=FAST)
                to = builder.add(builder.add(place, I64(k * PANEL_COLUMNS)), lane)
                emit_store(
                    builder, builder.fadd(emit_load(builder, sums, to, single), new, flags=FAST), sums, to
                )
        return context.get_dummy_value()

    return types.void(form, codes, words, vectors, scales, sums), codegen
