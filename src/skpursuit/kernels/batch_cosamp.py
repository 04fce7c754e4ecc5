# mypy: disable-error-code="no-untyped-def"
"""One iteration of CoSaMP for every signal of a block (Needell, Tropp 2009).

The caller makes the products of all residuals with the dictionary, in float32, before each iteration. They
propose atoms; what they cannot tell apart, and all fits, are float64, as in `batch`.
"""

import math

import numpy as np

from skpursuit.kernels.batch_pursuit import (
    EXACT,
    SHARP,
    UNIT,
    entry,
    kernel,
    products,
    refine,
    remainder,
    set_residual,
)
from skpursuit.kernels.batch_types import LANES, OMP, STALL, TILE, VECTORS
from skpursuit.kernels.batch_vectors import find_peaks, top_peak

DEPENDENT = 1e-8  # squared share of an atom left by the others, up to which it is left out


@kernel()
def _shortlist(c, work, wanted, margin, d):
    """Put all atoms that may be among the ``wanted`` largest |c| into ``work.picks``, using up c."""
    found, value, tiles = 0, np.inf, c.shape[0] // TILE
    find_peaks(c, work.den, work.peaks, (np.float32(0), np.float32(0)), tiles, OMP)
    while found < d:
        q = top_peak(work.peaks, tiles)
        score, base = np.float64(work.peaks[q]), (q // LANES) * TILE + q % LANES
        if found >= wanted and score < value - 2 * margin:
            break
        value = score if found < wanted else value
        best, top, second = base, np.float32(-1), np.float32(0)
        for u in range(VECTORS):
            v = abs(c[base + u * LANES])
            if v > top:
                best, top, second = base + u * LANES, v, top
            elif v > second:
                second = v
        c[best], work.peaks[q] = 0, second if second > 0 else np.float32(0)
        if best < d:
            work.picks[found] = best
            found += 1
        elif top <= 0:  # nothing but zeros is left: all atoms are candidates
            found = d
    if found == d or not value > 2 * margin:
        for j in range(d):
            work.picks[j] = j
        found = d
    return found


@kernel()
def _rank(dictionary, limits, work, fit, found, margin):
    """Bring the 2 k largest exact products of a shortlist to the front; how many rise above rounding."""
    picks, exact = work.picks, work.exact
    products(dictionary.atoms, picks, found, fit.residual, exact)
    noise = limits.fine * margin * np.sqrt(limits.scale)
    for i in range(found):
        exact[i] = (
            abs(exact[i]) if abs(exact[i]) > limits.floor * margin * dictionary.norms[picks[i]] else -1.0
        )
    for rank in range(min(2 * limits.k, found)):
        top, best = 0.0, -1
        for i in range(rank, found):
            top = exact[i] if exact[i] > top else top
        for i in range(rank, found):
            if top > 0 and exact[i] >= top - noise and (best < 0 or picks[i] < picks[best]):
                best = i
        if best < 0:
            return rank
        picks[rank], picks[best] = picks[best], picks[rank]
        exact[rank], exact[best] = exact[best], exact[rank]
    return min(2 * limits.k, found)


@kernel()
def _fit(target, dictionary, limits, fit, size):
    """Weights of the support by least squares; atoms that nearly depend on others are left out."""
    lower, vector, enough, count = fit.lower, fit.residual, 2.0, 0
    for t in range(size):
        atom = fit.support[t]
        for p in range(vector.shape[0]):
            vector[p] = dictionary.atoms[atom, p]
        products(dictionary.atoms, fit.support, count, vector, fit.step)
        square = pivot = dictionary.norms[atom] ** 2 + limits.penalty
        for i in range(count):
            v = fit.step[i]
            for p in range(i):
                v -= lower[i, p] * lower[count, p]
            lower[count, i] = v * fit.inverse[i]
            pivot -= lower[count, i] ** 2
        enough = enough if pivot > SHARP * square else EXACT
        bare = remainder(fit, count, square - limits.penalty) if limits.penalty > 0 else pivot
        if bare > DEPENDENT * (square - limits.penalty):
            fit.inverse[count], fit.weights[count], fit.support[count] = 1 / np.sqrt(pivot), 0.0, atom
            count += 1
    refine(target, dictionary.atoms, fit, count, limits.penalty, enough)
    return count


@kernel()
def _prune(fit, size, norms, floor, k):
    """Move the k largest weights to the front; ties go to the lowest index, and rounding is not kept."""
    weights, support = fit.weights, fit.support
    for rank in range(k):
        best, top = -1, 0.0
        for i in range(rank, size):
            weight = abs(weights[i])
            wins = weight > top or (weight == top and support[i] < support[best])
            if wins and weight * norms[support[i]] > floor:
                best, top = i, weight
        if best < 0:
            return rank
        weights[rank], weights[best] = weights[best], weights[rank]
        support[rank], support[best] = support[best], support[rank]
    return k


@entry()
def cosamp_step(block, live, dictionary, limits, work, fit, state, refit):
    """Improve the codes of the live signals once, or mark them as done in ``live`` (-1).

    ``block.start`` has a row for each live signal. ``state`` is (atoms, weights, counts, energies of the
    residuals, penalised energies, float32 residuals).
    """
    atoms, weights, counts, lefts, bests, residuals = state
    n, d, k = block.signals.shape[1], dictionary.atoms.shape[0], limits.k
    for row in range(live.shape[0]):
        s, c = live[row], block.start[row]
        live[row] = -1
        unit, energy, size, left = math.ldexp(1.0, -block.exponents[s]), block.energy[s], counts[s], lefts[s]
        if left <= limits.tol * unit * unit or left <= limits.floor**2 * energy:
            continue
        target, norm, margin = (block.signals[s], unit), np.sqrt(energy), np.sqrt(energy)
        for p in range(size):
            fit.support[p], fit.weights[p] = atoms[s, p], weights[s, p]
            margin += abs(weights[s, p]) * dictionary.norms[atoms[s, p]]
        found = _shortlist(c, work, 2 * k, 2 * UNIT * np.sqrt(n * left * limits.scale), d)
        if found != 2 * k:
            set_residual(target, dictionary.atoms, fit, size)
            found = _rank(dictionary, limits, work, fit, found, margin)
        now = size
        for p in range(found):
            new = now < fit.half.shape[0]
            for i in range(size):
                new = new and fit.support[i] != work.picks[p]
            if new:
                fit.support[now] = work.picks[p]
                now += 1
        now = _prune(
            fit, _fit(target, dictionary, limits, fit, now), dictionary.norms, limits.floor * norm, k
        )
        if refit:
            now = _fit(target, dictionary, limits, fit, now)
        left = value = set_residual(target, dictionary.atoms, fit, now)
        for p in range(now):
            value += limits.penalty * fit.weights[p] ** 2
        if value < bests[s] * (1 - STALL):
            live[row], counts[s], lefts[s], bests[s] = s, now, left, value
            for p in range(now):
                atoms[s, p], weights[s, p] = fit.support[p], fit.weights[p]
            for p in range(n):
                residuals[s, p] = fit.residual[p]
