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

A signal that float32 cannot follow, mostly because its atoms nearly depend on each other, stays PENDING, for
`coding.lockstep`.
"""

import math
from functools import partial

import numpy as np
from numba import njit

from skpursuit.kernels.batch_types import AHEAD, CLOSED, GAIN, LANES, OMP, POSITIVE, TILE
from skpursuit.kernels.batch_vectors import advance, locate, orthogonalise

DONE, FAILED, BEGIN = -1, -2, -3  # in place of an atom: the signal is coded, is not to be followed, begins
UNIT = 2.0**-23  # rounding of float32
SURE = 5.0  # standard deviations of rounding that a gap must exceed
SHARP = 1e-2  # squared share of an atom left by the others, below which float32 is not trusted
LONG = 24  # from so many steps on it pays to orthogonalise rows ahead,
LATE = 1 << 14  # once P has so many numbers
EXACT = 1e-20  # squared relative length of a refinement after which residuals are right to rounding,
NEAR = 1e-10  # and after which norms of residuals are

# A first use waits for the compiler, so it is given little to do: no errors of division, no counts of
# references (nothing here allocates or returns an array), no way in from Python but for the entries. What is
# long and called in one place is inlined as source: a function is optimised again in each of its callers.
# Only the order of sums may change: NaN and infinity keep their meaning.
entry = partial(
    njit, cache=True, nogil=True, error_model="numpy", no_cfunc_wrapper=True, _nrt=False,
    fastmath={"reassoc", "contract"},
)  # fmt: skip
kernel = partial(entry, cache=False, no_cpython_wrapper=True, forceinline=True)
inlined = partial(entry, cache=False, inline="always")


@entry()
def load_block(signals, coarse, units, energies, least, most):
    """Powers of two that bring the signals near 1, float32 copies of that size, and their energies.

    Returns the first row whose squared norm is neither 0 nor between ``least`` and ``most``, or -1.
    """
    for s in range(signals.shape[0]):
        total = 0.0
        for p in range(signals.shape[1]):
            total += np.float64(signals[s, p]) ** 2
        if total != 0 and not least <= total <= most:
            return s
        units[s] = unit = math.ldexp(1.0, -math.frexp(np.sqrt(total))[1])
        for p in range(signals.shape[1]):
            coarse[s, p] = signals[s, p] * unit
        energies[s] = total * unit * unit
    return -1


@kernel()
def products(atoms, chosen, size, vector, out):
    """Products of a float64 vector with the chosen atoms, and up to three more, for they go by four."""
    for i in range(0, size, 4):
        a, b, c, e = atoms[chosen[i]], atoms[chosen[i + 1]], atoms[chosen[i + 2]], atoms[chosen[i + 3]]
        ta, tb, tc, te = 0.0, 0.0, 0.0, 0.0
        for p in range(vector.shape[0]):
            ta += a[p] * vector[p]
            tb += b[p] * vector[p]
            tc += c[p] * vector[p]
            te += e[p] * vector[p]
        out[i], out[i + 1], out[i + 2], out[i + 3] = ta, tb, tc, te


@kernel()
def set_residual(target, atoms, work, size):
    """Residual of a target (vector, factor) in float64; returns its squared norm. Further weights are 0."""
    (y, unit), r, w, support, total = target, work.residual, work.weights, work.support, 0.0
    for p in range(y.shape[0]):
        r[p] = y[p] * unit
    for i in range(0, size, 4):
        a, b, c, e = atoms[support[i]], atoms[support[i + 1]], atoms[support[i + 2]], atoms[support[i + 3]]
        wa, wb, wc, we = w[i], w[i + 1], w[i + 2], w[i + 3]
        for p in range(y.shape[0]):
            r[p] -= (wa * a[p] + wb * b[p]) + (wc * c[p] + we * e[p])
    for p in range(y.shape[0]):
        total += r[p] * r[p]
    return total


@kernel()
def back_substitute(work, vector, size):
    """Solve ``L^T w = vector`` in place."""
    for i in range(size - 1, -1, -1):
        vector[i] = v = vector[i] * work.inverse[i]
        for p in range(i):
            vector[p] -= work.lower[i, p] * v


@inlined()
def refine(target, atoms, work, size, enough):
    """Weights by the float32 factor, refined on what they leave of a target; False if that is slow to end."""
    w, step, change, length = work.weights, work.step, np.inf, 1.0
    for i in range(size):
        w[i] = work.half[i]
    w[size : size + 3] = 0
    back_substitute(work, w, size)
    while change > enough * length:
        before, change, length = change, 0.0, 0.0
        set_residual(target, atoms, work, size)
        products(atoms, work.support, size, work.residual, step)
        for i in range(size):
            for p in range(i):
                step[i] -= work.lower[i, p] * step[p]
            step[i] *= work.inverse[i]
        back_substitute(work, step, size)
        for i in range(size):
            w[i] += step[i]
            change += step[i] * step[i]
            length += w[i] * w[i]
        if change > enough * length and not change < 1e-3 * before:
            return False
    return True


@inlined()
def _decide(target, dictionary, limits, work, now, mode):
    """Stop, or settle which atom is next, by the float64 residual: (atom, energy of the residual).

    ``now`` is (number of chosen atoms, their limit, squared tolerance, norm of the signal, atom with the best
    score or its complement where others may be as good, doubt of c). Atoms that may be the best are ranked in
    float64; equal to rounding means the lowest index. The weights of a signal that is coded are refined.
    """
    (size, k, tol, norm, j, sigma), atoms, norms = now, dictionary.atoms, dictionary.norms
    c, den = work.c, work.den
    picks, exact, found, top, noise = work.picks, work.exact, 0, 0.0, 0.0
    if not refine(target, atoms, work, size, limits.enough if size == k else EXACT):
        return FAILED, 0.0
    if size == k:
        return DONE, 0.0
    left, margin = set_residual(target, atoms, work, size), norm
    for i in range(size):
        margin += abs(work.weights[i]) * norms[work.support[i]]
        c[work.support[i]] = 0
    if left <= tol or left <= (limits.floor * margin) ** 2:
        return DONE, left
    at = j if j >= 0 else ~j
    best = c[at] if mode == POSITIVE else abs(c[at])
    if best < 8 * sigma and mode != POSITIVE:  # c is mostly rounding
        return FAILED, left
    if j >= 0 and best >= 8 * sigma:
        return j, left
    low = (best - sigma) ** 2 / (den[at] + 2 * limits.bias) if mode == GAIN else best - 2 * sigma
    for i in range(atoms.shape[0]):
        score = c[i] if mode == POSITIVE else abs(c[i])
        if c[i] != 0 and ((score + sigma) ** 2 >= low * den[i] if mode == GAIN else score >= low):
            picks[found] = i
            found += 1
    products(atoms, picks, found, work.residual, exact)
    for i in range(found):
        rest = 1.0
        if mode == GAIN:
            refine((atoms[picks[i]], 1.0), atoms, work, size, NEAR)
            rest = np.sqrt(set_residual((atoms[picks[i]], 1.0), atoms, work, size))
        value = exact[i] if mode == POSITIVE else abs(exact[i])
        usable = value > limits.floor * margin * norms[picks[i]]
        exact[i] = value / rest if usable and rest**2 > limits.dependence * norms[picks[i]] ** 2 else -1.0
        if exact[i] > top:
            top, noise = exact[i], limits.fine * margin * np.sqrt(limits.scale) / rest
    for i in range(found):
        if exact[i] > 0 and exact[i] >= top - noise:
            return picks[i] if abs(c[picks[i]]) >= 8 * sigma else FAILED, left
    return DONE if mode != GAIN else FAILED, left


def _bind(mode):
    """The kernel of one mode."""

    @entry()
    def code_block(signals, ready, dictionary, limits, work, ordered):
        """Code every signal of a block; those that float32 cannot follow stay PENDING.

        ``ready`` are products with all atoms (float32, in whole tiles), powers of two that signals
        are multiplied by, and the squared norms that they have then.
        """
        (start, units, energies), support, weights, gram = ready, work.support, work.weights, dictionary.gram
        c, den, peaks, rows, rounds, queue = work.c, work.den, work.peaks, work.rows, work.rounds, work.queue
        width, stride, zero, tiny = start.shape[1], gram.shape[1], np.float32(0), np.float32(1e-6)
        tiles, scale, bias = width // TILE, math.ldexp(1.0, -limits.exponent), limits.bias
        room, last = rows.shape[0] // tiles, dictionary.atoms.shape[0] - 1
        for s in range(start.shape[0]):
            energy, unit = energies[s], units[s]
            k, tol, norm = signals.most[s] * (energy > 0), signals.tol[s] * unit * unit, np.sqrt(energy)
            target, weak = (signals.rows[s], unit), 64 * limits.floor * norm
            turn, waiting, gone, state, since = 0, 0, 0, BEGIN, np.int64(0)
            while True:
                if state == BEGIN:  # also with the atoms that stay in a POSITIVE support, in the queue
                    for p in range(width):
                        c[p] = start[s, p]
                        if mode == GAIN:  # a bound from below: the true one is at most 2 bias larger
                            den[p] = dictionary.squares[p]
                    size, queued, left, doubt, step, state = np.int64(0), 0, energy, 0.0, norm / 4, DONE
                    variance = limits.rounding * UNIT**2 * energy * limits.scale
                    sigma = SURE * np.sqrt(variance)
                    slack = np.float32(sigma * step)
                    work.owner[:] = -1
                    sizes = (size, np.int64(TILE), size, size, room, size, tiles)  # no row: for peaks
                    advance((gram, rows, c, den, peaks, sizes, (zero, zero, slack)), mode)
                if queued < waiting:
                    j = queue[queued]
                    queued += 1
                else:
                    gone, turn, j = 0, turn + 1, np.int64(-1)
                    if size < k and mode == GAIN:
                        # (|c| + sigma)^2 is at most (1 + sigma / step) (c^2 + slack)
                        near = 24 * sigma / step + 8 * bias / limits.scale
                        j = locate((c, den, peaks, slack, tiles, (zero, np.float32(near))), mode)
                        at = j if j >= 0 else ~j
                        low = max(abs(c[at]) - sigma, 0.0) ** 2 * den[at]
                        high = (c[at] ** 2 + slack) * (1 + sigma / step) * (den[at] + 2 * bias)
                        if j < 0 or low < (1 - near + 5e-6) * high:
                            near = 2 * (1 - low / high) + 5e-6
                            j = locate((c, den, peaks, slack, tiles, (zero, np.float32(near))), mode)
                    elif size < k:
                        j = locate((c, den, peaks, slack, tiles, (np.float32(2 * sigma), zero)), mode)
                    j = ~j if j >= 0 and abs(c[j]) <= weak * dictionary.norms[j] else j
                    if j < 0 or left <= tol + doubt:
                        now = (size, k, tol, norm, j, sigma)
                        j, left = _decide(target, dictionary, limits, work, now, mode)
                        doubt = 0.0
                    if j < 0 or turn > 3 * k:
                        state = j if j < 0 else FAILED
                        break
                if mode == GAIN:  # early: a vector is loaded late where a part of it was just stored
                    den[j] = CLOSED
                panel, lane, square = j // TILE * room, j % TILE, dictionary.norms[j] ** 2
                noise, pivot = 2 * limits.rounding * (UNIT * limits.scale) ** 2, square
                for i in range(size):
                    v = np.float64(rows[panel + i, lane])
                    work.lower[size, i] = v
                    pivot -= v * v
                    noise += v * v * rounds[i]
                noise *= 2 / pivot
                spread = 4 * SURE**2 * limits.scale * (noise + size * UNIT**2 * limits.scale)
                if not pivot > SHARP * square or (mode == GAIN and spread > bias**2):
                    state = FAILED
                    break
                one = np.float32(1 / np.sqrt(pivot))
                alpha = c[j] * one
                rounds[size], work.inverse[size], work.half[size], support[size] = noise, one, alpha, j
                step = np.float64(abs(alpha))
                variance += step * step * (noise + UNIT**2 * limits.scale)
                sigma = SURE * np.sqrt(variance)
                left, doubt = left - step * step, doubt + 2 * step * sigma * (1 + one)
                found = -1
                if room - AHEAD >= LONG:
                    for q in range(AHEAD):
                        found = q if work.owner[q] == j else found
                    if found < 0 and width * size >= LATE and size + 2 < k and queued == waiting:
                        since = size
                        for q in range(AHEAD):  # the atom, and those that may follow it
                            at = j
                            if q > 0:
                                at = locate((c, den, peaks, slack, tiles, (zero, tiny)), mode)
                                at = min(max(at, ~at), last)
                            work.picks[q], work.exact[q], c[at] = at, c[at], 0
                            work.owner[q], peaks[at // TILE * LANES + at % LANES] = at, 0
                        for q in range(AHEAD - 1, -1, -1):
                            c[work.picks[q]] = work.exact[q]
                        orthogonalise((gram, work.picks, rows, (stride, room, size, tiles)), mode)
                        found = 0
                source, begin, apart, first = gram, j * stride, np.int64(TILE), np.int64(0)
                if found >= 0:
                    begin, first = (room - AHEAD + found) * TILE, since
                    source, apart, work.owner[found] = rows, room * TILE, -1
                slack = np.float32(sigma * step)  # not before, for peaks were made with the last one
                sizes = (begin, apart, first, size, room, panel * TILE + lane, tiles)
                advance((source, rows, c, den, peaks, sizes, (one, alpha, slack)), mode)
                c[j] = 0
                size += 1
                if mode == POSITIVE and queued == waiting:
                    waiting = queued = 0
                    for i in range(size):
                        weights[i] = work.half[i]
                    back_substitute(work, weights, size)
                    for i in range(size):
                        if weights[i] > 0:
                            queue[waiting] = support[i]
                            waiting += 1
                        elif gone < work.gone.shape[0]:
                            work.gone[gone] = support[i]
                            gone += 1
                    if waiting < size:
                        state = BEGIN
                        continue
                    waiting = 0
                    for i in range(gone):  # one that left wants to come back: to the slow path
                        state = FAILED if c[work.gone[i]] > 2 * sigma else state
                    if state == FAILED:
                        break
            if state == DONE:
                indices, values, signals.counts[s] = signals.indices[s], signals.values[s], size
                for i in range(size):  # by order of selection or, sorted by insertion, of index
                    p = i
                    while ordered and p > 0 and indices[p - 1] > support[i]:
                        indices[p], values[p] = indices[p - 1], values[p - 1]
                        p -= 1
                    indices[p], values[p] = support[i], weights[i] * (scale / unit)

    return code_block


KERNELS = {mode: _bind(mode) for mode in (OMP, POSITIVE, GAIN)}
