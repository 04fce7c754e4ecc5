# mypy: disable-error-code="no-untyped-def"
"""Sparse codes of a block of signals over one dictionary, by recurrences in the space of atoms.

For chosen atoms j_0, j_1, ... the rows ``p_t = (G[j_t] - sum_{i<t} p_i[j_t] p_i) / l_tt`` hold the products
of all atoms with the orthonormalised chosen ones, with the Gram matrix G and its Cholesky factor l. Then ``c
-= alpha_t p_t`` are the products of all atoms with the residual, and ``den -= p_t^2`` the squared norms of
what the chosen atoms leave of every atom. All of this is float32, and only *proposes* atoms: a model of
rounding follows the variance of c, and scores that are too close together are settled by float64 products
with the atoms themselves. So are stops: a residual energy near the tolerance is computed from the residual.
Weights are refined through float64 residuals. The supports are those of float64 arithmetic for the cost of
float32.

A signal whose chosen atoms nearly depend on each other stays PENDING, for `coding.lockstep`. A ridge penalty
is the same as one more entry for every atom, orthogonal to all others: only squared norms feel it.
"""

import math
from functools import partial

import numpy as np
from numba import njit

from skpursuit.kernels.batch_types import AHEAD, CLOSED, GAIN, LANES, OMP, POSITIVE, SLOTS, TILE, VECTORS
from skpursuit.kernels.batch_vectors import advance, find_peaks, locate, orthogonalise, top_peak

DONE, FAILED, AGAIN = -1, -2, -3  # in place of an atom: coded; not to be followed; atoms were closed
UNIT = 2.0**-23  # rounding of float32
SURE = 5.0  # standard deviations of rounding that a gap must exceed
SHARP = 1e-2  # squared share of an atom left by the others, below which float32 is not trusted
LONG = 24  # from so many steps on it pays to orthogonalise rows ahead,
LATE = 1 << 14  # once P has so many numbers
ENOUGH = 1e-13  # squared relative length of a refinement after which codes are right to about 1e-13,
EXACT = 1e-20  # and after which residuals are right to rounding

# A first use waits for the compiler, so it is given little to do: no errors of division, no counts of
# references (nothing here allocates or returns an array), no way in from Python but for the entries. What is
# long and called in one place is inlined as source: a function is optimised again in each of its callers.
# Only the order of sums may change: NaN and infinity keep their meaning.
entry = partial(
    njit, cache=True, nogil=True, error_model="numpy", no_cfunc_wrapper=True, _nrt=False,
    fastmath={"reassoc", "contract"},
)  # fmt: skip
kernel = partial(entry, cache=False, no_cpython_wrapper=True)
inlined = partial(entry, cache=False, inline="always")


FORMATS = {8: (np.int64(2**63 - 1), 52, 1022, 1000), 4: (np.int32(2**31 - 1), 23, 126, 120)}  # by bytes


@entry()
def load_block(signals, bits, layout, coarse, exponents, energy):
    """Powers of two that bring the signals near 1, float32 copies of that size, and their energies.

    ``bits`` is the memory of the signals read as integers: without their sign, floats have the same order.
    ``layout`` is one of FORMATS. Returns the first row with NaN or infinity, or -1.
    """
    mask, shift, bias, bound = layout
    for s in range(signals.shape[0]):
        peak = mask & 0
        for p in range(signals.shape[1]):
            size = bits[s, p] & mask
            peak = size if size > peak else peak
        exponent = np.int64(peak >> shift) - bias
        if exponent == np.int64(mask >> shift) - bias:
            return s
        exponent = bound if exponent > bound else -bound if exponent < -bound else exponent
        unit, total = math.ldexp(1.0, -exponent), 0.0
        for p in range(signals.shape[1]):
            v = signals[s, p] * unit
            coarse[s, p] = v
            total += v * v
        exponents[s], energy[s] = exponent, total
    return -1


@kernel()
def products(atoms, chosen, size, vector, out):
    """Products of a float64 vector with the chosen atoms, four at a time."""
    for i in range(0, size - 3, 4):
        a, b, c, e = atoms[chosen[i]], atoms[chosen[i + 1]], atoms[chosen[i + 2]], atoms[chosen[i + 3]]
        ta, tb, tc, te = 0.0, 0.0, 0.0, 0.0
        for p in range(vector.shape[0]):
            v = vector[p]
            ta += a[p] * v
            tb += b[p] * v
            tc += c[p] * v
            te += e[p] * v
        out[i], out[i + 1], out[i + 2], out[i + 3] = ta, tb, tc, te
    for i in range(size - size % 4, size):
        a, ta = atoms[chosen[i]], 0.0
        for p in range(vector.shape[0]):
            ta += a[p] * vector[p]
        out[i] = ta


@kernel()
def set_residual(target, atoms, fit, size):
    """Residual of a target (vector, factor) in float64; returns its squared norm."""
    (y, unit), r, w, support = target, fit.residual, fit.weights, fit.support
    for p in range(y.shape[0]):
        r[p] = y[p] * unit
    for i in range(0, size - 3, 4):
        a, b, c, e = atoms[support[i]], atoms[support[i + 1]], atoms[support[i + 2]], atoms[support[i + 3]]
        wa, wb, wc, we = w[i], w[i + 1], w[i + 2], w[i + 3]
        for p in range(y.shape[0]):
            r[p] -= (wa * a[p] + wb * b[p]) + (wc * c[p] + we * e[p])
    for i in range(size - size % 4, size):
        a, wa = atoms[support[i]], w[i]
        for p in range(y.shape[0]):
            r[p] -= wa * a[p]
    total = 0.0
    for p in range(y.shape[0]):
        total += r[p] * r[p]
    return total


@kernel()
def back_substitute(fit, vector, size):
    """Solve ``L^T w = vector`` in place."""
    for i in range(size - 1, -1, -1):
        v = vector[i] * fit.inverse[i]
        vector[i] = v
        for p in range(i):
            vector[p] -= fit.lower[i, p] * v


@kernel()
def refine(target, atoms, fit, size, penalty, enough):
    """Fit what the weights leave of a target, again and again; False if that does not converge fast."""
    w, step, before = fit.weights, fit.step, np.inf
    while True:
        set_residual(target, atoms, fit, size)
        products(atoms, fit.support, size, fit.residual, step)
        for i in range(size):
            v = step[i] - penalty * w[i]
            for p in range(i):
                v -= fit.lower[i, p] * step[p]
            step[i] = v * fit.inverse[i]
        back_substitute(fit, step, size)
        change, length = 0.0, 0.0
        for i in range(size):
            w[i] += step[i]
            change += step[i] * step[i]
            length += w[i] * w[i]
        if change <= enough * length:
            return True
        if not change < 1e-3 * before:
            return False
        before = change


@kernel()
def remainder(fit, size, square):
    """Squared norm of what the chosen atoms leave of one whose products with them are in ``fit.step``.

    It is that without a penalty, which would hide that an atom depends on others.
    """
    for i in range(size):
        v = fit.step[i]
        for p in range(i):
            v -= fit.plain[i, p] * fit.plain[size, p]
        fit.plain[size, i] = v * fit.plain[i, i]
        square -= fit.plain[size, i] ** 2
    fit.plain[size, size] = 1 / np.sqrt(square)
    return square


@kernel()
def _solve(fit, size):
    """Weights as float32 has them."""
    for i in range(size):
        fit.weights[i] = fit.half[i]
    back_substitute(fit, fit.weights, size)


@inlined()
def _settle(dictionary, limits, work, fit, c, size, bounds, mode):
    """Best atom by float64 products with the residual of `_look`; equal to rounding means the lowest index.

    ``bounds`` is (least score of an atom that may be the best, norm that rounding is relative to, (doubt,
    spread) of the scores).
    """
    (low, margin, slack), picks, exact, found = bounds, work.picks, work.exact, 0
    for i in range(size):
        c[fit.support[i]] = 0
    for j in range(dictionary.atoms.shape[0]):
        score = c[j] if mode == POSITIVE else abs(c[j])
        if mode == GAIN:
            below = work.den[j] - slack[1]
            score = (score + slack[0]) ** 2 / (below if below > 1e-30 else np.float32(1e-30))
            score = score if work.den[j] < 0.5 * CLOSED else np.float32(-np.inf)
        if c[j] != 0 and score >= low:
            picks[found] = j
            found += 1
    products(dictionary.atoms, picks, found, fit.residual, exact)
    noise, top, closed = limits.fine * margin * np.sqrt(limits.scale), 0.0, DONE
    for i in range(found):
        j, den, norm = picks[i], 1.0, dictionary.norms[picks[i]]
        exact[i] = exact[i] if mode == POSITIVE else abs(exact[i])
        above = exact[i] > limits.floor * margin * norm
        if mode == GAIN:
            for p in range(size):
                fit.weights[p] = 0.0
            refine((dictionary.atoms[j], 1.0), dictionary.atoms, fit, size, limits.penalty, EXACT)
            den = limits.penalty + set_residual((dictionary.atoms[j], 1.0), dictionary.atoms, fit, size)
            for p in range(size):
                den += limits.penalty * fit.weights[p] ** 2
            if not (above and den > limits.dependence * norm**2):
                work.den[j], closed, above = CLOSED, AGAIN, False
            den = np.sqrt(den)
        exact[i] = exact[i] / den if above else -np.inf
        work.noise[i] = noise / den
        top = exact[i] if exact[i] > top else top
    best = closed
    for i in range(found):
        if exact[i] > 0 and exact[i] >= top - work.noise[i] and (best < 0 or picks[i] < best):
            best = picks[i]
    return best


@kernel()
def _look_ahead(c, work, j, size, slot):
    """Put atom j and AHEAD - 1 that may follow it into ``work.picks``; their peaks are lost."""
    work.picks[0] = j
    work.peaks[(j // TILE) * LANES + j % LANES] = 0
    for row in range(AHEAD):
        if row > 0:
            q = top_peak(work.peaks, work.peaks.shape[0] // LANES)
            work.peaks[q] = 0
            best, top = 0, np.float32(-1)
            for u in range(VECTORS):
                at = (q // LANES) * TILE + q % LANES + u * LANES
                best, top = (at, abs(c[at])) if abs(c[at]) > top else (best, top)
            work.picks[row] = best
        work.owner[slot + row], work.since[slot + row] = work.picks[row], size


@kernel()
def _retreat(c, work, fit, first, size):
    """Undo the steps from ``first`` on."""
    room = fit.half.shape[0]
    for tile in range(c.shape[0] // TILE):
        part = c[tile * TILE : tile * TILE + TILE]
        for i in range(first, size):
            row, alpha = work.rows[(tile * room + i) * TILE :], np.float32(fit.half[i])
            for j in range(TILE):
                part[j] += alpha * row[j]


@kernel()
def _leave(work, fit, size):
    """Move feasible weights towards those of least squares until one is zero; the first that is, or ``size``.

    This is the inner step of Lawson and Hanson. Atoms that leave get the weight -1.
    """
    _solve(fit, size)
    move, first = 1.0, size
    for i in range(size):
        if fit.weights[i] <= 0:
            most = work.feasible[i] / (work.feasible[i] - fit.weights[i]) if work.feasible[i] > 0 else 0.0
            move = most if most < move else move
    for i in range(size - 1, -1, -1):
        before = work.feasible[i]
        work.feasible[i] = before + move * (fit.weights[i] - before)
        if fit.weights[i] <= 0 and work.feasible[i] <= 1e-12 * before:
            work.feasible[i], first = -1.0, i
    return first


@kernel()
def _write(codes, s, fit, size, shift, mode):
    """Sort a code by insertion and give it the units of its signal; a weight that rounds below 0 is 0."""
    low, high = math.ldexp(1.0, shift // 2), math.ldexp(1.0, shift - shift // 2)
    indices, values, count = codes.indices[s], codes.values[s], 0
    for i in range(size):
        if mode == POSITIVE and fit.weights[i] <= 0:
            continue
        j, v, p = fit.support[i], fit.weights[i] * low * high, count
        while p > 0 and indices[p - 1] > j:
            indices[p], values[p] = indices[p - 1], values[p - 1]
            p -= 1
        indices[p], values[p] = j, v
        count += 1
    codes.counts[s] = count


@inlined()
def _decide(target, dictionary, limits, work, fit, c, now, mode):
    """Stop, or choose the next atom, by the float64 residual: (atom, energy of the residual, variance of c).

    ``now`` is (number of chosen atoms, squared tolerance, norm of the signal, variance of c, spread).
    """
    size, tol, norm, variance, spread = now
    _solve(fit, size)
    if not refine(target, dictionary.atoms, fit, size, limits.penalty, EXACT):
        return FAILED, 0.0, variance
    left, margin = set_residual(target, dictionary.atoms, fit, size), norm
    for i in range(size):
        margin += abs(fit.weights[i]) * dictionary.norms[fit.support[i]]
    if left <= tol or left <= (limits.floor * margin) ** 2:
        return DONE, left, variance
    d, tiles, zero, fresh = dictionary.atoms.shape[0], c.shape[0] // TILE, np.float32(0), False
    while True:
        sigma = SURE * np.sqrt(variance)
        slack = (np.float32(sigma), np.float32(spread))
        find_peaks(c, work.den, work.peaks, slack, tiles, mode)
        j = locate(c, work.den, work.peaks, slack, tiles, (zero, np.float32(1e-6)), mode)
        j = j if j >= 0 else ~j
        if fresh or abs(c[j]) >= 8 * sigma:
            low = (c[j] if mode == POSITIVE else abs(c[j])) - 2 * sigma  # the best atom has at least this
            if mode == GAIN:
                low = (low + sigma) * abs(low + sigma) / (work.den[j] + spread)
            bounds = (np.float32(low), margin, slack)
            j = _settle(dictionary, limits, work, fit, c, size, bounds, mode)
            if mode != GAIN or j != AGAIN:
                return j, left, variance
            _solve(fit, size)
            refine(target, dictionary.atoms, fit, size, limits.penalty, EXACT)
            set_residual(target, dictionary.atoms, fit, size)
        else:  # c is mostly rounding: take the products of all atoms with the residual itself
            for p in range(d):
                work.picks[p] = p
            products(dictionary.atoms, work.picks, d, fit.residual, work.exact)
            for p in range(d):
                c[p] = work.exact[p]
            variance, fresh = limits.rounding * UNIT**2 * left * limits.scale, True


def _bind(mode):
    """The kernel of one mode."""

    @entry()
    def code_block(block, dictionary, limits, work, fit, codes):
        """Code every signal of a block; those that float32 cannot follow stay PENDING."""
        k, tiles, width = limits.k, block.start.shape[1] // TILE, block.start.shape[1]
        den, peaks, rounds, zero, small = work.den, work.peaks, work.rounds, np.float32(0), np.float32(1e-4)
        for s in range(block.signals.shape[0]):
            c, energy, unit = block.start[s], block.energy[s], math.ldexp(1.0, -block.exponents[s])
            target, tol, norm = (block.signals[s], unit), limits.tol * unit * unit, np.sqrt(energy)
            size, slot, turn, queued, waiting, gone = np.int64(0), np.int64(0), 0, 0, 0, 0
            left, doubt, worst, spread, state = energy, 0.0, 0.0, 0.0, DONE
            variance = limits.rounding * UNIT**2 * energy * limits.scale
            sigma, weak = SURE * np.sqrt(variance), 64 * limits.floor * norm
            slack = (np.float32(sigma), zero)
            if mode == GAIN:
                for j in range(width):
                    den[j] = dictionary.squares[j]
            work.owner[:] = -1
            find_peaks(c, den, peaks, slack, tiles, mode)
            while True:
                if queued < waiting:  # an atom that comes back after one before it has left
                    j = work.queue[queued]
                    queued += 1
                else:
                    if size == k:
                        break
                    gone, turn, near, j = 0, turn + 1, left <= tol + doubt, DONE
                    if not near:
                        if mode == GAIN:
                            j = locate(c, den, peaks, slack, tiles, (zero, small), mode)
                            if j >= 0:
                                most, least = abs(c[j]) + sigma, abs(c[j]) - sigma
                                most, least = (
                                    most * most * (den[j] + spread),
                                    least * least * (den[j] - spread),
                                )
                                if not (abs(c[j]) > sigma and least > (1 - 1e-4) * most):
                                    share = np.float32(1.01 - least / most if abs(c[j]) > sigma else 1.01)
                                    j = locate(c, den, peaks, slack, tiles, (zero, share), mode)
                        else:
                            j = locate(c, den, peaks, slack, tiles, (np.float32(2 * sigma), zero), mode)
                        near = j < 0 or abs(c[j]) <= weak * dictionary.norms[j]
                    if near or (limits.penalty > 0 and tol > 0):
                        now = (size, tol, norm, variance, spread)
                        j, left, variance = _decide(target, dictionary, limits, work, fit, c, now, mode)
                        doubt, sigma = 0.0, SURE * np.sqrt(variance)
                        slack = (np.float32(sigma), np.float32(spread))
                        if j < 0 or turn > 3 * k:
                            state = j if j < 0 else FAILED
                            break
                place = (j // TILE) * TILE * k + j % TILE
                square = dictionary.norms[j] ** 2 + limits.penalty
                noise, pivot = 2 * limits.rounding * (UNIT * limits.scale) ** 2, square
                for i in range(size):
                    v = np.float64(work.rows[place + i * TILE])
                    fit.lower[size, i] = v
                    pivot -= v * v
                    noise += v * v * rounds[i]
                bare = square
                if limits.penalty > 0:
                    for i in range(size):
                        fit.step[i] = dictionary.gram[fit.support[i] * width + j]
                    bare = remainder(fit, size, square - limits.penalty)
                if not (pivot > SHARP * square and bare > SHARP * (square - limits.penalty)):
                    state = FAILED
                    break
                one = np.float32(1 / np.sqrt(pivot))
                alpha = c[j] * one
                noise *= 2 / pivot
                rounds[size], fit.inverse[size], fit.half[size], fit.support[size] = noise, one, alpha, j
                step = np.float64(abs(alpha))
                variance += step * step * (noise + UNIT**2 * limits.scale)
                sigma = SURE * np.sqrt(variance)
                left, doubt = left - step * step, doubt + 2 * step * sigma * (1 + one)
                if mode == GAIN:
                    den[j], worst = CLOSED, noise if noise > worst else worst
                    spread = 2 * SURE * np.sqrt(limits.scale * (worst + size * UNIT**2 * limits.scale))
                slack = (np.float32(sigma), np.float32(spread))
                found = -1
                if k >= LONG:
                    for q in range(SLOTS):
                        found = q if work.owner[q] == j else found
                    if found < 0 and width * size >= LATE and size + 2 < k and queued == waiting:
                        _look_ahead(c, work, j, size, slot)
                        sizes = (width, k, size, slot, np.int64(SLOTS), tiles)
                        orthogonalise(dictionary.gram, work.picks, work.rows, work.ahead, sizes)
                        found, slot = slot, (slot + AHEAD) % SLOTS
                source, begin, apart, first = dictionary.gram, j * width, np.int64(TILE), np.int64(0)
                if found >= 0:
                    source, begin, apart, first = work.ahead, found * TILE, SLOTS * TILE, work.since[found]
                    work.owner[found] = -1
                sizes = (begin, apart, first, size, k, place, tiles)
                advance(source, work.rows, c, den, peaks, sizes, (one, alpha, slack[0], slack[1]), mode)
                c[j] = 0
                size += 1
                if mode == POSITIVE:
                    if waiting == 0:  # a new atom
                        work.feasible[size - 1] = 0.0
                    while queued == waiting:
                        first = _leave(work, fit, size)
                        if first == size:
                            break
                        _retreat(c, work, fit, first, size)
                        work.owner[:] = -1
                        queued, waiting = 0, 0
                        for i in range(first, size):
                            left += fit.half[i] ** 2
                            if work.feasible[i] < 0:
                                work.picks[gone] = fit.support[i]
                                gone += 1
                            else:
                                work.queue[waiting], work.feasible[first + waiting] = (
                                    fit.support[i],
                                    work.feasible[i],
                                )
                                waiting += 1
                        size = first
                        find_peaks(c, den, peaks, slack, tiles, mode)
                    if queued == waiting:
                        queued, waiting = 0, 0
                        for i in range(gone):  # one that left wants to come back: left to nnls
                            state = FAILED if c[work.picks[i]] > 2 * sigma else state
                        if state == FAILED:
                            break
            if state == DONE:
                _solve(fit, size)
                if refine(target, dictionary.atoms, fit, size, limits.penalty, ENOUGH):
                    _write(codes, s, fit, size, block.exponents[s] - limits.exponent, mode)

    return code_block


KERNELS = {mode: _bind(mode) for mode in (OMP, POSITIVE, GAIN)}
