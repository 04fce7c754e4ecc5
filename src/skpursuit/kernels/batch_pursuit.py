"""Sparse codes of a block of signals over one dictionary.

The correlations of a residual, ``c = D y - G[:, S] w`` with ``G = D D^T`` (Rubinstein, Zibulevsky, Elad
2008, "Batch-OMP"), are kept in float32: they only *propose* atoms. Proposals closer together than their
rounding bound are settled by float64 products with the atoms themselves, and so is everything that is
kept: Cholesky factors, weights, residual norms. The codes are those of float64 arithmetic for little more
than the price of float32, and they do not depend on how BLAS orders its sums.
"""

from typing import Any

import numpy as np

from skpursuit.kernels.batch_select import (
    MAX_SHORTLIST_EXTRA,
    SCORE_TILE,
    atom_products,
    contains,
    correlations,
    dot_prefix,
    entry,
    inlined,
    kernel,
    select,
    set_residual,
)
from skpursuit.kernels.batch_types import PENDING, STALL, CholeskyFactor, Scratch

RECOMPUTE_PIVOT = (
    1e-4  # squared share of an atom left over by the others, below which it is computed from the atoms
)
ACCURATE_PIVOT = 1e-2  # squared share of an atom left over by the others, above which no digits are lost
MAX_CODE_REFINEMENTS = 24  # at most: each gains the digits that the factor has, while steps get shorter


@kernel()
def back_substitute(lower: Any, weights: Any, size: Any) -> None:
    """Solve ``L^T w = weights`` in place."""
    for i in range(size - 1, -1, -1):
        weights[i] /= lower[i, i]
        for p in range(i):
            weights[p] -= lower[i, p] * weights[i]


@kernel()
def _polish(target: Any, dictionary: Any, factor: Any, fit: Any, rounds: Any, penalty: float) -> None:
    """Fit what the weights leave of a target again, where normal equations have lost digits.

    ``fit`` is (Cholesky factor, weights, their number, room for the residual). It ends when steps no longer
    get shorter: each gains the digits that the factor has.
    """
    lower, weights, size, residual = fit
    step, before = factor.scratch[1], np.inf
    for _ in range(rounds):
        set_residual(target, dictionary.atoms, factor.atoms, weights, size, residual)
        atom_products(dictionary.atoms, factor.atoms, size, residual, step)
        for i in range(size):
            step[i] -= penalty * weights[i]
            step[i] = (step[i] - dot_prefix(lower[i], step, i)) / lower[i, i]
        back_substitute(lower, step, size)
        length = dot_prefix(step, step, size)
        if not length < 0.25 * before:
            break
        before = length
        for i in range(size):
            weights[i] += step[i]


@inlined()
def _remainder(factor: Any, size: Any, dictionary: Any, atom: Any) -> float:
    """Turn the vector of a new atom into what the atoms of the factor leave of it; returns its squared norm.

    A difference of squares tells nothing of an atom that nearly depends on others. Here the combination of
    the others is fitted again, the remainder itself is computed, and the new row of the factor is ``L^T w``
    for the weights of the combination.
    """
    lower, new, weights = factor.lower, factor.lower[size], factor.scratch[0]
    for i in range(size):
        weights[i] = new[i]
    back_substitute(lower, weights, size)
    fit = (lower, weights, size, factor.vector)
    _polish(dictionary.atoms[atom], dictionary, factor, fit, np.int64(3), 0.0)
    for i in range(size):
        new[i] = 0.0
        for p in range(i, size):
            new[i] += lower[p, i] * weights[p]
    return set_residual(dictionary.atoms[atom], dictionary.atoms, factor.atoms, weights, size, factor.vector)


@inlined()
def _append(factor: Any, size: Any, atom: Any, signal: Any, dictionary: Any, dependence: float) -> bool:
    """Grow the factor by one atom; False, and no change, if the atom depends on those it has."""
    lower, vector, source = factor.lower, factor.vector, dictionary.atoms[atom]
    for p in range(vector.shape[0]):
        vector[p] = source[p]
    new = lower[size]
    atom_products(dictionary.atoms, factor.atoms, size, vector, new)
    for i in range(size):
        new[i] = (new[i] - dot_prefix(lower[i], new, i)) / lower[i, i]
    square = dictionary.norms[atom] ** 2
    pivot = square - dot_prefix(new, new, size)
    told = dot_prefix(new, factor.forward, size)
    if pivot < RECOMPUTE_PIVOT * square:
        pivot, told = _remainder(factor, size, dictionary, atom), 0.0
    if not pivot > dependence * square:
        return False
    new[size] = np.sqrt(pivot)
    factor.forward[size] = (dot_prefix(signal, vector, signal.shape[0]) - told) / new[size]
    factor.atoms[size] = atom
    return True


@inlined()
def _solve(factor: Any, size: Any, penalty: float) -> None:
    """Set the weights; a penalty makes ``shrunk`` anew, which is cheap for few atoms."""
    weights, lower = factor.weights, factor.lower
    for i in range(size):
        weights[i] = factor.forward[i]
    if penalty > 0:
        for i in range(size - 1, -1, -1):
            weights[i] = dot_prefix(lower[i], weights, i + 1)
        out = factor.ridge_lower
        for i in range(size):
            for p in range(i + 1):
                entry = dot_prefix(lower[i], lower[p], p + 1) - dot_prefix(out[i], out[p], p)
                out[i, p] = np.sqrt(entry + penalty) if p == i else entry / out[p, p]
            weights[i] = (weights[i] - dot_prefix(out[i], weights, i)) / out[i, i]
        lower = out
    back_substitute(lower, weights, size)


@inlined()
def _refine(signal: Any, dictionary: Any, factor: Any, size: Any, residual: Any, penalty: float) -> None:
    """Give the weights of `_solve` the digits that normal equations have lost, if they have."""
    lower, sharp = factor.lower, True
    for i in range(size):
        sharp = sharp and lower[i, i] ** 2 > ACCURATE_PIVOT * dictionary.norms[factor.atoms[i]] ** 2
    if not sharp:
        lower = factor.ridge_lower if penalty > 0 else lower
        fit = (lower, factor.weights, size, residual)
        _polish(signal, dictionary, factor, fit, np.int64(MAX_CODE_REFINEMENTS), penalty)


def _factor(n: int, size: int) -> CholeskyFactor:
    """An empty factor. Made here: compiling what allocates takes longer than all of it."""
    one, square = np.zeros(size), np.zeros((size, size))
    return CholeskyFactor(
        square, one, one.copy(), np.zeros(size, np.int64), np.zeros(n), np.zeros((2, size)), square.copy()
    )


def _work(n: int, d: int) -> Scratch:
    tiles, room = -(-d // SCORE_TILE), d + MAX_SHORTLIST_EXTRA
    scores = np.zeros(tiles * SCORE_TILE, np.float32)
    peaks, closed = np.zeros(tiles, np.int32), np.zeros(d, np.int64)
    return Scratch(
        scores, scores.view(np.int32), peaks, np.zeros(n), np.zeros(room, np.int64), np.zeros(room), closed
    )


def omp_block(block: Any, dictionary: Any, limits: Any, codes: Any, wanted: Any) -> None:
    """Orthogonal matching pursuit of every pending signal; missing Gram rows are marked in ``wanted``."""
    n, d = block.signals.shape[1], block.start.shape[1]
    _omp_block(block, dictionary, limits, codes, wanted, _work(n, d), _factor(n, limits.k))


@entry()
def _omp_block(
    block: Any, dictionary: Any, limits: Any, codes: Any, wanted: Any, work: Any, factor: Any
) -> None:
    """One function, though long: what is called by something that is called is optimised once more."""
    atoms, weights = factor.atoms, factor.weights
    for i in range(block.signals.shape[0]):
        if codes.counts[i] != PENDING:
            continue
        signal, start, energy = block.signals[i], block.start[i], block.energy[i]
        size, n_closed = np.int64(0), np.int64(0)  # typed, for a literal 0 would compile every callee twice
        left, norm, missing = energy, np.sqrt(energy), False
        while size < limits.k and left > block.tol[i]:
            correlations(start, dictionary, atoms, weights, size, work)
            code = (atoms, weights, size)
            if select(np.int64(1), signal, dictionary, code, work, limits, (n_closed, norm)) == 0:
                break
            j = work.picks[0]
            work.excluded[n_closed] = j
            n_closed += 1
            if not _append(factor, size, j, signal, dictionary, limits.dependence):
                continue
            missing = size + 1 < limits.k and dictionary.slot[j] < 0
            if missing:
                wanted[j] = True
                break
            left -= factor.forward[size] ** 2
            size += 1
            _solve(factor, size, limits.penalty)
            if left < 1e-9 * energy or limits.penalty > 0:
                left = set_residual(signal, dictionary.atoms, atoms, weights, size, work.residual)
        if not missing:
            _refine(signal, dictionary, factor, size, work.residual, limits.penalty)
            for p in range(size):
                codes.indices[i, p], codes.values[i, p] = atoms[p], weights[p]
            codes.counts[i] = size


@inlined()
def _prune(factor: Any, size: Any, norms: Any, floor: float, k: Any) -> Any:
    """Move the k largest weights to the front; ties go to the lowest index, and rounding is not kept."""
    weights, atoms = factor.weights, factor.atoms
    for rank in range(k):
        best, top = -1, 0.0
        for i in range(rank, size):
            weight = abs(weights[i])
            wins = weight > top or (weight == top and atoms[i] < atoms[best])
            if wins and weight * norms[atoms[i]] > floor:
                best, top = i, weight
        if best < 0:
            return rank
        weights[rank], weights[best] = weights[best], weights[rank]
        atoms[rank], atoms[best] = atoms[best], atoms[rank]
    return k


def cosamp_block(block: Any, dictionary: Any, limits: Any, codes: Any, wanted: Any) -> None:
    """CoSaMP of every pending signal; missing Gram rows are marked in ``wanted``."""
    n, d, k = block.signals.shape[1], block.start.shape[1], limits.k
    kept, factor = (np.zeros(k, np.int64), np.zeros(k)), _factor(n, min(3 * k, n, d))
    _cosamp_block(block, dictionary, limits, codes, wanted, _work(n, d), factor, kept)


@entry()
def _cosamp_block(
    block: Any, dictionary: Any, limits: Any, codes: Any, wanted: Any, work: Any, factor: Any, kept: Any
) -> None:
    """One function with one fit, which is made again if the pruned weights are to be refitted."""
    atoms, weights = kept
    for i in range(block.signals.shape[0]):
        if codes.counts[i] != PENDING:
            continue
        signal, energy, missing = block.signals[i], block.energy[i], False
        size, none, left, best = np.int64(0), np.int64(0), energy, energy
        floor = limits.floor * np.sqrt(energy)
        for _ in range(limits.max_iter):
            if left <= block.tol[i] or left <= limits.floor**2 * energy:
                break
            for p in range(size):
                if dictionary.slot[atoms[p]] < 0:
                    wanted[atoms[p]] = missing = True
                work.excluded[p] = atoms[p]
            if missing:
                break
            correlations(block.start[i], dictionary, atoms, weights, size, work)
            code = (atoms, weights, size)
            found = select(2 * limits.k, signal, dictionary, code, work, limits, (none, np.sqrt(energy)))
            now = size
            for p in range(found):
                if not contains(atoms, size, work.picks[p]):
                    work.excluded[now] = work.picks[p]
                    now += 1
            for again in range(1 + limits.refit):
                count, now = now, none
                for p in range(count):  # atoms that depend on earlier ones are left out
                    if now < factor.forward.shape[0]:
                        now += _append(factor, now, work.excluded[p], signal, dictionary, limits.dependence)
                _solve(factor, now, limits.penalty)
                _refine(signal, dictionary, factor, now, work.residual, limits.penalty)
                if again == 0:
                    now = _prune(factor, now, dictionary.norms, floor, limits.k)
                    for p in range(now):
                        work.excluded[p] = factor.atoms[p]
            new = set_residual(signal, dictionary.atoms, factor.atoms, factor.weights, now, work.residual)
            value = new + limits.penalty * dot_prefix(factor.weights, factor.weights, now)
            if not value < best * (1 - STALL):
                break
            size, left, best = now, new, value
            for p in range(size):
                atoms[p], weights[p] = factor.atoms[p], factor.weights[p]
        if not missing:
            for p in range(size):
                codes.indices[i, p], codes.values[i, p] = atoms[p], weights[p]
            codes.counts[i] = size
