# mypy: disable-error-code="no-untyped-def"
"""Vector loops of the batched coder (see `batch_pursuit`), spelled out for LLVM.

They use no instruction of a particular processor. Columns are atoms, in tiles of 8 vectors of 16 float32
numbers; the orthogonal rows P lie tile by tile, ``P[tile, step, column]``, so that a step reads contiguous
memory. All buffers begin at a cache line: vectors that straddle lines cost twice as much.
"""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from skpursuit.kernels.batch_types import AHEAD, GAIN, LANES, LEAST, OMP, TILE, VECTORS
from skpursuit.kernels.llvm import I32, I64, constant, emit_load, emit_store, reduce_lanes, splat, unpacked

PART = 4  # vectors of a tile that are done at a time for rows ahead

I16 = ir.IntType(16)
SINGLE, WHOLE = ir.VectorType(ir.FloatType(), LANES), ir.VectorType(I32, LANES)
FUSED = ("contract",)


def vector_loop(returned):
    """Make functions that emit code callable in kernels, with a tuple of their arguments and the mode."""

    def bind(emit):
        @intrinsic(prefer_literal=True)
        def loop(_context, given, mode):
            def codegen(context, builder, signature, args):
                values = unpacked(context, builder, signature.args[:1], args[:1])[0]
                found = emit(builder, mode.literal_value, *values)
                return context.get_dummy_value() if found is None else found

            return returned(given, mode), codegen

        return loop

    return bind


def _less(b, total, x, y):
    """``total - x * y`` in one instruction where there is one."""
    return b.fsub(total, b.fmul(x, y, flags=FUSED), flags=FUSED)


def _offsets(b, base, count=VECTORS):
    return [b.add(base, I64(LANES * u)) for u in range(count)]


def _larger(b, x, y):
    """The larger of two scores (number, divisor), which are compared crosswise where they have divisors."""
    left, right = (x[0], y[0]) if x[1] is None else (b.fmul(x[0], y[1]), b.fmul(y[0], x[1]))
    wins = b.fcmp_ordered(">", left, right)
    return tuple(p and b.select(wins, p, q) for p, q in zip(x, y))


def _subtract(b, sources, factors, rows, steps, count):
    """``source - sum_i factor[i] rows[i]`` over a range of steps, ``count`` vectors of it for each source."""
    sums = [[cgutils.alloca_once(b, SINGLE) for _ in range(count)] for _ in sources]
    for (source, begin), totals in zip(sources, sums):
        for total, at in zip(totals, _offsets(b, begin, count)):
            b.store(emit_load(b, source, at, SINGLE), total)
    with cgutils.for_range_slice(b, *steps, I64(1)) as (i, _):
        step = b.mul(i, I64(TILE))
        ones = [splat(b, b.load(b.gep(factor, [step]))) for factor in factors]
        for totals, at in zip(zip(*sums), _offsets(b, step, count)):
            v = emit_load(b, rows, at, SINGLE)
            for one, total in zip(ones, totals):
                b.store(_less(b, b.load(total), one, v), total)
    return [[b.load(total) for total in totals] for totals in sums]


def _score(b, mode, c, den, slack):
    """Score of an atom: |c| (OMP), c (POSITIVE), or c^2 + slack over den (GAIN)."""
    # That of GAIN is a bound from above, but for a factor near 1.
    if mode == GAIN:
        return b.fadd(b.fmul(c, c, flags=FUSED), slack, flags=FUSED), den
    bits = b.and_(b.bitcast(c, WHOLE), constant(WHOLE, 0x7FFFFFFF))
    return b.bitcast(bits, SINGLE) if mode == OMP else c, None


@vector_loop(types.void)
def advance(b, mode, source, P, c, den, peaks, sizes, numbers):
    """Append an orthogonal row to P: ``p_t = (source - sum_{first <= i < t} P_i[j] P_i) * inverse``.

    With it ``c -= alpha p_t`` and ``den -= p_t^2`` (GAIN, at least LEAST), and the largest score in each lane
    of a tile, its peak. ``sizes`` is (where the source row begins, distance of its tiles, first, t, room for
    steps in P, place of P_0[j], number of tiles), and ``numbers`` is (inverse, alpha, slack).
    """
    begin, apart, first, t, room, place, tiles = sizes
    source, own = b.gep(source, [begin]), b.gep(P, [place])
    inverse, alpha, slack = [splat(b, x) for x in numbers]
    with cgutils.for_range(b, tiles) as loop:
        base = b.mul(loop.index, I64(TILE))
        rows, columns = b.gep(P, [b.mul(base, room)]), _offsets(b, base)
        start, found = (source, b.mul(loop.index, apart)), []
        (sums,) = _subtract(b, [start], [own], rows, (first, t), VECTORS)
        for total, at, column in zip(sums, _offsets(b, b.mul(t, I64(TILE))), columns):
            p, rest = b.fmul(total, inverse), None
            emit_store(b, p, rows, at)
            left = _less(b, emit_load(b, c, column, SINGLE), alpha, p)
            emit_store(b, left, c, column)
            if mode == GAIN:
                less, least = _less(b, emit_load(b, den, column, SINGLE), p, p), constant(SINGLE, LEAST)
                rest = b.select(b.fcmp_ordered(">", less, least), less, least)
                emit_store(b, rest, den, column)
            found.append(_score(b, mode, left, rest, slack))
        while len(found) > 1:  # divisors are compared crosswise: a tile needs one division
            found = [_larger(b, x, y) for x, y in zip(found[::2], found[1::2])]
        value, divisor = found[0]
        peak = b.fdiv(value, divisor) if mode == GAIN else value
        emit_store(b, peak, peaks, b.mul(loop.index, I64(LANES)))


@vector_loop(types.intp)
def locate(b, mode, c, den, peaks, slack, tiles, margins):
    """Index of the largest score; its complement if another one is within ``margins`` of it.

    ``margins`` is (absolute, relative). Both questions are answered by counting scores above one bound, first
    among the peaks and then in one tile, without branches.
    """
    slack, most = splat(b, slack), cgutils.alloca_once_value(b, constant(SINGLE, 0.0))
    count, where = cgutils.alloca_once_value(b, I64(0)), cgutils.alloca_once_value(b, I64(0))
    with cgutils.for_range(b, tiles) as loop:
        peak = emit_load(b, peaks, b.mul(loop.index, I64(LANES)), SINGLE), None
        b.store(_larger(b, peak, (b.load(most), None))[0], most)
    top = reduce_lanes(b, b.load(most), lambda x, y: _larger(b, (x, None), (y, None))[0])
    low = b.fsub(b.fsub(top, margins[0]), b.fmul(top, margins[1]))
    above, low = b.fcmp_ordered(">", low, ir.FloatType()(0.0)), splat(b, low)
    with cgutils.for_range(b, tiles) as loop:
        hit = b.fcmp_ordered(">=", emit_load(b, peaks, b.mul(loop.index, I64(LANES)), SINGLE), low)
        bits = b.bitcast(hit, I16)
        b.store(b.add(b.load(count), b.zext(b.ctpop(bits), I64)), count)
        b.store(b.select(b.icmp_unsigned("!=", bits, I16(0)), loop.index, b.load(where)), where)
    base, words = b.mul(b.load(where), I64(TILE)), [I64(0), I64(0)]
    for u, place in enumerate(_offsets(b, base)):
        given = [emit_load(b, x, place, SINGLE) for x in (c, den)]
        value, divisor = _score(b, mode, *given, slack)
        hit = b.fcmp_ordered(">=", value, b.fmul(low, divisor) if mode == GAIN else low)
        bits = b.shl(b.zext(b.bitcast(hit, I16), I64), I64(LANES * (u % 4)))
        words[u // 4] = b.or_(words[u // 4], bits)
    empty = b.icmp_unsigned("==", words[0], I64(0))
    word, offset = b.select(empty, words[1], words[0]), b.select(empty, I64(64), I64(0))
    sole = b.icmp_signed("==", b.add(b.load(count), b.add(*map(b.ctpop, words))), I64(2))
    j = b.add(b.add(base, offset), b.cttz(word, ir.IntType(1)(0)))
    return b.select(b.and_(sole, above), j, b.xor(j, I64(-1)))


@vector_loop(types.void)
def orthogonalise(b, mode, gram, picks, P, sizes):
    """``gram[picks[r]] - sum_{i < t} P_i[picks[r]] P_i`` to the last AHEAD steps of P, reading P once.

    ``sizes`` is (columns of the Gram matrix, room for steps in P, t, number of tiles).
    """
    (width, room, t, tiles), sources, own = sizes, [], []
    for r in range(AHEAD):
        j = b.load(b.gep(picks, [I64(r)]))
        tile, lane = b.udiv(j, I64(TILE)), b.urem(j, I64(TILE))
        sources.append(b.gep(gram, [b.mul(j, width)]))
        own.append(b.gep(P, [b.add(b.mul(tile, b.mul(room, I64(TILE))), lane)]))
    with cgutils.for_range(b, tiles) as loop:
        base = b.mul(loop.index, I64(TILE))
        out = b.mul(b.sub(room, I64(AHEAD)), I64(TILE))
        for part in range(0, TILE, PART * LANES):
            panel, begin = b.gep(P, [b.add(b.mul(base, room), I64(part))]), b.add(base, I64(part))
            sums = _subtract(b, [(one, begin) for one in sources], own, panel, (I64(0), t), PART)
            for r, totals in enumerate(sums):
                for total, at in zip(totals, _offsets(b, b.add(out, I64(r * TILE)), PART)):
                    emit_store(b, total, panel, at)
