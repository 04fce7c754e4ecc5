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

from skpursuit.kernels.batch_types import AHEAD, CLOSED, GAIN, LANES, LEAST, OMP, POSITIVE, TILE
from skpursuit.kernels.batch_vectors import advance, find_peaks, locate, orthogonalise

DONE, FAILED = -1, -2  # in place of an atom: the signal is coded; it is not to be followed
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
            v = np.float64(signals[s, p])
            total += v * v
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
            v = vector[p]
            ta += a[p] * v
            tb += b[p] * v
            tc += c[p] * v
            te += e[p] * v
        out[i], out[i + 1], out[i + 2], out[i + 3] = ta, tb, tc, te


@kernel()
def set_residual(target, atoms, work, size):
    """Residual of a target (vector, factor) in float64; returns its squared norm. Further weights are 0."""
    (y, unit), r, w, support = target, work.residual, work.weights, work.support
    for p in range(y.shape[0]):
        r[p] = y[p] * unit
    for i in range(0, size, 4):
        a, b, c, e = atoms[support[i]], atoms[support[i + 1]], atoms[support[i + 2]], atoms[support[i + 3]]
        wa, wb, wc, we = w[i], w[i + 1], w[i + 2], w[i + 3]
        for p in range(y.shape[0]):
            r[p] -= (wa * a[p] + wb * b[p]) + (wc * c[p] + we * e[p])
    total = 0.0
    for p in range(y.shape[0]):
        total += r[p] * r[p]
    return total


@kernel()
def back_substitute(work, vector, size):
    """Solve ``L^T w = vector`` in place."""
    for i in range(size - 1, -1, -1):
        v = vector[i] * work.inverse[i]
        vector[i] = v
        for p in range(i):
            vector[p] -= work.lower[i, p] * v


@kernel()
def refine(target, atoms, work, size, enough):
    """Weights by the float32 factor, refined on what they leave of a target; False if that is slow to end."""
    w, step, before = work.weights, work.step, np.inf
    for i in range(size):
        w[i] = work.half[i]
    for i in range(size, size + 3):
        w[i] = 0.0
    back_substitute(work, w, size)
    while True:
        set_residual(target, atoms, work, size)
        products(atoms, work.support, size, work.residual, step)
        for i in range(size):
            v = step[i]
            for p in range(i):
                v -= work.lower[i, p] * step[p]
            step[i] = v * work.inverse[i]
        back_substitute(work, step, size)
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


@inlined()
def _decide(target, dictionary, limits, work, c, now, mode):
    """Stop, or settle which atom is next, by the float64 residual: (atom, energy of the residual).

    ``now`` is (number of chosen atoms, squared tolerance, norm of the signal, atom with the best score or its
    complement where others may be as good, doubts of c and den). Atoms that may be the best are ranked
    in float64; equal to rounding means the lowest index.
    """
    (size, tol, norm, j, sigma, bias), atoms = now, dictionary.atoms
    picks, exact, den, found = work.picks, work.exact, work.den, 0
    if not refine(target, atoms, work, size, EXACT):
        return FAILED, 0.0
    left, margin = set_residual(target, atoms, work, size), norm
    for i in range(size):
        margin += abs(work.weights[i]) * dictionary.norms[work.support[i]]
        c[work.support[i]] = 0
    if left <= tol or left <= (limits.floor * margin) ** 2:
        return DONE, left
    at = j if j >= 0 else ~j
    best = c[at] if mode == POSITIVE else abs(c[at])
    if j >= 0 and best >= 8 * sigma:
        return j, left
    if mode != POSITIVE and best < 8 * sigma:  # c is mostly rounding
        return FAILED, left
    low = (best - sigma) ** 2 / (den[at] + 2 * bias) if mode == GAIN else best - 2 * sigma
    for i in range(atoms.shape[0]):
        score = c[i] if mode == POSITIVE else abs(c[i])
        if c[i] != 0 and ((score + sigma) ** 2 >= low * den[i] if mode == GAIN else score >= low):
            picks[found] = i
            found += 1
    products(atoms, picks, found, work.residual, exact)
    top, noise = 0.0, 0.0
    for i in range(found):
        i_norm, rest = dictionary.norms[picks[i]], 1.0
        exact[i] = exact[i] if mode == POSITIVE else abs(exact[i])
        above = exact[i] > limits.floor * margin * i_norm
        if mode == GAIN:
            refine((atoms[picks[i]], 1.0), atoms, work, size, NEAR)
            rest = np.sqrt(set_residual((atoms[picks[i]], 1.0), atoms, work, size))
        exact[i] = exact[i] / rest if above and rest * rest > limits.dependence * i_norm**2 else -1.0
        if exact[i] > top:
            top, noise = exact[i], limits.fine * margin * np.sqrt(limits.scale) / rest
    for i in range(found):
        if exact[i] > 0 and exact[i] >= top - noise:
            return picks[i] if abs(c[picks[i]]) >= 8 * sigma else FAILED, left
    return DONE if mode != GAIN else FAILED, left


@kernel()
def _retreat(c, work, size):
    """Undo the steps from the first atom on whose weight is not positive; the others are to come back.

    Returns (number of steps left, energy given back, number of atoms to come back, in ``work.queue``).
    """
    room, first, energy, waiting = work.lower.shape[0], 0, 0.0, 0
    while work.weights[first] > 0:
        first += 1
    for tile in range(c.shape[0] // TILE):
        part = c[tile * TILE : tile * TILE + TILE]
        for i in range(first, size):
            row, alpha = work.rows[(tile * room + i) * TILE :], np.float32(work.half[i])
            for p in range(TILE):
                part[p] += alpha * row[p]
    for i in range(first, size):
        energy += work.half[i] ** 2
        if work.weights[i] > 0:
            work.queue[waiting] = work.support[i]
            waiting += 1
    return first, energy, waiting


def _bind(mode):
    """The kernel of one mode."""

    @entry()
    def code_block(signals, ready, dictionary, limits, work, ordered):
        """Code every signal of a block; those that float32 cannot follow stay PENDING.

        ``ready`` are products with all atoms (float32, in whole tiles, used up), powers of two that signals
        are multiplied by, and the squared norms that they have then.
        """
        (start, units, energies), support, weights = ready, work.support, work.weights
        width, stride, room = start.shape[1], dictionary.gram.shape[1], work.lower.shape[0]
        zero, tiny, tiles, last = (
            np.float32(0),
            np.float32(1e-6),
            width // TILE,
            dictionary.atoms.shape[0] - 1,
        )
        den, peaks, rounds, scale = work.den, work.peaks, work.rounds, math.ldexp(1.0, -limits.exponent)
        for s in range(signals.rows.shape[0]):
            c, energy, unit = start[s], energies[s], units[s]
            k, tol, norm = signals.most[s] * (energy > 0), signals.tol[s] * unit * unit, np.sqrt(energy)
            target, weak = (signals.rows[s], unit), 64 * limits.floor * norm
            size, turn, queued, waiting, gone = np.int64(0), 0, 0, 0, 0
            left, doubt, step, state = energy, 0.0, norm / 4, DONE
            variance = limits.rounding * UNIT**2 * energy * limits.scale
            sigma, worst, bias = SURE * np.sqrt(variance), 0.0, limits.bias
            slack = np.float32(sigma * step)
            if mode == GAIN:  # den is a bound from below: the true one is at most 2 bias larger
                for p in range(width):
                    den[p] = dictionary.squares[p]
            work.owner[:] = -1
            find_peaks((c, den, peaks, slack, tiles), mode)
            while True:
                if queued < waiting:  # an atom that comes back after one before it has left
                    j = work.queue[queued]
                    queued += 1
                elif size == k:
                    break
                else:
                    gone, turn = 0, turn + 1
                    if mode == GAIN:  # (|c| + sigma)^2 is at most (1 + sigma / step) (c^2 + slack)
                        near = 24 * sigma / step + 8 * bias / limits.scale
                        j = locate((c, den, peaks, slack, tiles, (zero, np.float32(near))), mode)
                        at = j if j >= 0 else ~j
                        low = max(abs(c[at]) - sigma, 0.0) ** 2 * den[at]
                        high = (c[at] ** 2 + slack) * (1 + sigma / step) * (den[at] + 2 * bias)
                        if j < 0 or low < (1 - near + 5e-6) * high:
                            near = 2 * (1 - low / high) + 5e-6
                            j = locate((c, den, peaks, slack, tiles, (zero, np.float32(near))), mode)
                    else:
                        j = locate((c, den, peaks, slack, tiles, (np.float32(2 * sigma), zero)), mode)
                    j = ~j if j >= 0 and abs(c[j]) <= weak * dictionary.norms[j] else j
                    if j < 0 or left <= tol + doubt:
                        now = (size, tol, norm, j, sigma, bias)
                        j, left = _decide(target, dictionary, limits, work, c, now, mode)
                        doubt = 0.0
                    if j < 0 or turn > 3 * k:
                        state = j if j < 0 else FAILED
                        break
                place, square = (j // TILE) * TILE * room + j % TILE, dictionary.norms[j] ** 2
                noise, pivot = 2 * limits.rounding * (UNIT * limits.scale) ** 2, square
                for i in range(size):
                    v = np.float64(work.rows[place + i * TILE])
                    work.lower[size, i] = v
                    pivot -= v * v
                    noise += v * v * rounds[i]
                if not pivot > SHARP * square:
                    state = FAILED
                    break
                one = np.float32(1 / np.sqrt(pivot))
                alpha = c[j] * one
                noise *= 2 / pivot
                rounds[size], work.inverse[size], work.half[size], support[size] = noise, one, alpha, j
                step = np.float64(abs(alpha))
                variance += step * step * (noise + UNIT**2 * limits.scale)
                sigma = SURE * np.sqrt(variance)
                left, doubt = left - step * step, doubt + 2 * step * sigma * (1 + one)
                if mode == GAIN:
                    den[j], worst = CLOSED, noise if noise > worst else worst
                    spread = 4 * SURE**2 * limits.scale * (worst + size * UNIT**2 * limits.scale)
                    if spread > bias**2:
                        more = np.float32(2 * np.sqrt(spread) - bias)
                        for p in range(width):
                            den[p] = max(den[p] - more, LEAST)
                        bias += more
                found = -1
                if room >= LONG:
                    for q in range(AHEAD):
                        found = q if work.owner[q] == j else found
                    if found < 0 and width * size >= LATE and size + 2 < k and queued == waiting:
                        for q in range(AHEAD):  # the atom, and those that may follow it
                            at = j
                            if q > 0:
                                at = locate((c, den, peaks, slack, tiles, (zero, tiny)), mode)
                                at = min(max(at, ~at), last)
                            work.picks[q], work.exact[q], c[at] = at, c[at], 0
                            work.owner[q], work.since[q] = at, size
                            peaks[(at // TILE) * LANES + at % LANES] = 0
                        for q in range(AHEAD - 1, -1, -1):
                            c[work.picks[q]] = work.exact[q]
                        sizes = (stride, room, size, tiles)
                        orthogonalise((dictionary.gram, work.picks, work.rows, work.ahead, sizes), mode)
                        found = 0
                source, begin, apart, first = dictionary.gram, j * stride, np.int64(TILE), np.int64(0)
                if found >= 0:
                    source, begin, apart, first = work.ahead, found * TILE, AHEAD * TILE, work.since[found]
                    work.owner[found] = -1
                slack, sizes = np.float32(sigma * step), (begin, apart, first, size, room, place, tiles)
                advance((source, work.rows, c, den, peaks, sizes, (one, alpha, slack)), mode)
                c[j] = 0
                size += 1
                while mode == POSITIVE and queued == waiting:
                    least = 1.0
                    for i in range(size):
                        weights[i] = work.half[i]
                    back_substitute(work, weights, size)
                    for i in range(size):
                        least = min(least, weights[i])
                    if least > 0:
                        for i in range(gone):  # one that left wants to come back: to the slow path
                            state = FAILED if c[work.gone[i]] > 2 * sigma else state
                        break
                    for i in range(size):
                        if weights[i] <= 0 and gone < work.gone.shape[0]:
                            work.gone[gone] = support[i]
                            gone += 1
                    size, back, waiting = _retreat(c, work, size)
                    left, queued = left + back, 0
                    work.owner[:] = -1
                    find_peaks((c, den, peaks, slack, tiles), mode)
                if state == FAILED:
                    break
            if state == DONE and refine(target, dictionary.atoms, work, size, limits.enough):
                indices, values, signals.counts[s] = signals.indices[s], signals.values[s], size
                for i in range(size):  # by order of selection or, sorted by insertion, of index
                    p = i
                    while ordered and p > 0 and indices[p - 1] > support[i]:
                        indices[p], values[p] = indices[p - 1], values[p - 1]
                        p -= 1
                    indices[p], values[p] = support[i], weights[i] * (scale / unit)

    return code_block


KERNELS = {mode: _bind(mode) for mode in (OMP, POSITIVE, GAIN)}
