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
    CROWD,
    TILE,
    contains,
    correlations,
    dot,
    kernel,
    products,
    select,
    set_residual,
)
from skpursuit.kernels.batch_types import Factor, Work

COMPILED_WITH = "d98597ec8018"  # digest of these files: Numba notes changes of its own file only

PENDING = -1
DOUBT = 1e-4  # squared share of an atom left over by the others, below which it is computed from the atoms
SHARP = 1e-2  # squared share of an atom left over by the others, above which no digits are lost
REFINEMENTS = 24  # at most: each gains the digits that the factor has, while steps get shorter
STALL = 1e-6  # CoSaMP stops at a relative decrease of the squared residual below this


@kernel()
def back_substitute(lower: Any, weights: Any, size: Any) -> None:
    """Solve ``L^T w = weights`` in place."""
    for i in range(size - 1, -1, -1):
        weights[i] /= lower[i, i]
        for p in range(i):
            weights[p] -= lower[i, p] * weights[i]


@kernel()
def _remainder(factor: Any, size: Any, dictionary: Any, atom: Any) -> float:
    """Turn the vector of a new atom into what the atoms of the factor leave of it; returns its squared norm.

    A difference of squares tells nothing of an atom that nearly depends on others. Here the remainder itself
    is computed, and the new row of the factor, ``L^T c`` for the weights c of the combination, is corrected
    by what the remainder still has in common with the atoms.
    """
    lower, new, vector = factor.lower, factor.lower[size], factor.vector
    weights, common, source = factor.spare[0], factor.spare[1], dictionary.atoms[atom]
    for _ in range(3):
        for i in range(size):
            weights[i] = new[i]
        back_substitute(lower, weights, size)
        for p in range(vector.shape[0]):
            vector[p] = source[p]
        for i in range(size):
            other = dictionary.atoms[factor.atoms[i]]
            for p in range(vector.shape[0]):
                vector[p] -= weights[i] * np.float64(other[p])
        products(dictionary.atoms, factor.atoms, size, vector, common)
        for i in range(size):
            common[i] = (common[i] - dot(lower[i], common, i)) / lower[i, i]
            new[i] += common[i]
    return dot(vector, vector, vector.shape[0])


@kernel()
def _append(factor: Any, size: Any, atom: Any, signal: Any, dictionary: Any, dependence: float) -> bool:
    """Grow the factor by one atom; False, and no change, if the atom depends on those it has."""
    lower, vector, source = factor.lower, factor.vector, dictionary.atoms[atom]
    for p in range(vector.shape[0]):
        vector[p] = source[p]
    new = lower[size]
    products(dictionary.atoms, factor.atoms, size, vector, new)
    for i in range(size):
        new[i] = (new[i] - dot(lower[i], new, i)) / lower[i, i]
    square = dictionary.norms[atom] ** 2
    pivot = square - dot(new, new, size)
    told = dot(new, factor.half, size)
    if pivot < DOUBT * square:
        pivot, told = _remainder(factor, size, dictionary, atom), 0.0
    if not pivot > dependence * square:
        return False
    new[size] = np.sqrt(pivot)
    factor.half[size] = (dot(signal, vector, signal.shape[0]) - told) / new[size]
    factor.atoms[size] = atom
    return True


@kernel()
def _shrink(factor: Any, size: Any, penalty: float) -> Any:
    """The Cholesky factor of ``L L^T + penalty``, made anew: few atoms are cheaper than a second factor."""
    lower, out = factor.lower, factor.shrunk
    for i in range(size):
        for p in range(i + 1):
            entry = dot(lower[i], lower[p], p + 1) - dot(out[i], out[p], p)
            out[i, p] = np.sqrt(entry + penalty) if p == i else entry / out[p, p]
    return out


@kernel()
def _solve(factor: Any, size: Any, penalty: float) -> None:
    weights, lower = factor.weights, factor.lower
    for i in range(size):
        weights[i] = factor.half[i]
    if penalty > 0:
        for i in range(size - 1, -1, -1):
            weights[i] = dot(lower[i], weights, i + 1)
        lower = _shrink(factor, size, penalty)
        for i in range(size):
            weights[i] = (weights[i] - dot(lower[i], weights, i)) / lower[i, i]
    back_substitute(lower, weights, size)


@kernel()
def _refine(signal: Any, dictionary: Any, factor: Any, size: Any, residual: Any, penalty: float) -> None:
    """Fit what the weights leave of the signal again, where normal equations have lost digits."""
    weights, lower, sharp = factor.weights, factor.lower, True
    for i in range(size):
        sharp = sharp and lower[i, i] ** 2 > SHARP * dictionary.norms[factor.atoms[i]] ** 2
    step, before = factor.spare[0], np.inf
    if penalty > 0 and not sharp:
        lower = _shrink(factor, size, penalty)
    for _ in range(0 if sharp else REFINEMENTS):
        set_residual(signal, dictionary, factor, size, residual)
        products(dictionary.atoms, factor.atoms, size, residual, step)
        for i in range(size):
            step[i] -= penalty * weights[i]
            step[i] = (step[i] - dot(lower[i], step, i)) / lower[i, i]
        back_substitute(lower, step, size)
        length = dot(step, step, size)
        if not length < 0.25 * before:
            break
        before = length
        for i in range(size):
            weights[i] += step[i]


@kernel()
def _emit(codes: Any, signal: Any, factor: Any, size: Any) -> None:
    """Write one code, its atoms as they were chosen."""
    for i in range(size):
        codes.indices[signal, i] = factor.atoms[i]
        codes.values[signal, i] = factor.weights[i]
    codes.counts[signal] = size


def _factor(n: int, size: int) -> Factor:
    """An empty factor. Made here: compiling what allocates takes longer than all of it."""
    one, square = np.zeros(size), np.zeros((size, size))
    return Factor(
        square, one, one.copy(), np.zeros(size, np.int64), np.zeros(n), np.zeros((2, size)), square.copy()
    )


def _work(n: int, d: int) -> Work:
    tiles, room = -(-d // TILE), d + CROWD
    scores = np.zeros(tiles * TILE, np.float32)
    peaks, closed = np.zeros(tiles, np.int32), np.zeros(d, np.int64)
    return Work(
        scores, scores.view(np.int32), peaks, np.zeros(n), np.zeros(room, np.int64), np.zeros(room), closed
    )


def omp_block(block: Any, dictionary: Any, limits: Any, codes: Any, wanted: Any) -> None:
    """Orthogonal matching pursuit of every pending signal; missing Gram rows are marked in ``wanted``."""
    n, d = block.signals.shape[1], block.start.shape[1]
    _omp_block(block, dictionary, limits, codes, wanted, _work(n, d), _factor(n, limits.k))


@kernel()
def _omp_block(
    block: Any, dictionary: Any, limits: Any, codes: Any, wanted: Any, work: Any, factor: Any
) -> None:
    """One function, though long: what is called by something that is called is optimised once more."""
    for i in range(block.signals.shape[0]):
        if codes.counts[i] != PENDING:
            continue
        signal, start, energy = block.signals[i], block.start[i], block.energy[i]
        size, n_closed = np.int64(0), np.int64(0)  # typed, for a literal 0 would compile every callee twice
        left, norm, missing = energy, np.sqrt(energy), False
        while size < limits.k and left > block.tol[i]:
            correlations(start, dictionary, factor, size, work)
            if select(np.int64(1), signal, dictionary, factor, work, limits, (size, n_closed, norm)) == 0:
                break
            j = work.picks[0]
            work.closed[n_closed] = j
            n_closed += 1
            if not _append(factor, size, j, signal, dictionary, limits.dependence):
                continue
            missing = size + 1 < limits.k and dictionary.slot[j] < 0
            if missing:
                wanted[j] = True
                break
            left -= factor.half[size] ** 2
            size += 1
            _solve(factor, size, limits.penalty)
            if left < 1e-9 * energy or limits.penalty > 0:
                left = set_residual(signal, dictionary, factor, size, work.residual)
        if not missing:
            _refine(signal, dictionary, factor, size, work.residual, limits.penalty)
            _emit(codes, i, factor, size)


@kernel()
def _merge(signal: Any, dictionary: Any, limits: Any, room: Any, size: Any, found: Any) -> Any:
    """Least squares on the kept atoms and the picked ones; those that depend on earlier ones are left out."""
    work, factor, kept, _ = room
    merged = np.int64(0)
    for i in range(size):
        merged += _append(factor, merged, kept.atoms[i], signal, dictionary, limits.dependence)
    for i in range(found):
        if merged < factor.half.shape[0] and not contains(kept.atoms, size, work.picks[i]):
            merged += _append(factor, merged, work.picks[i], signal, dictionary, limits.dependence)
    _solve(factor, merged, limits.penalty)
    _refine(signal, dictionary, factor, merged, work.residual, limits.penalty)
    return merged


@kernel()
def _prune(factor: Any, merged: Any, norms: Any, floor: float, pruned: Any) -> Any:
    """Move the largest weights to ``pruned``; ties go to the lowest index, and rounding is not kept."""
    size = np.int64(0)
    while size < pruned.atoms.shape[0]:
        best = -1
        for i in range(merged):
            weight = abs(factor.weights[i])
            if weight * norms[factor.atoms[i]] > floor and (
                best < 0
                or weight > abs(factor.weights[best])
                or (weight == abs(factor.weights[best]) and factor.atoms[i] < factor.atoms[best])
            ):
                best = i
        if best < 0:
            break
        pruned.atoms[size] = factor.atoms[best]
        pruned.weights[size] = factor.weights[best]
        factor.weights[best] = 0
        size += 1
    return size


@kernel()
def _refit(signal: Any, dictionary: Any, limits: Any, factor: Any, size: Any, residual: Any) -> Any:
    """Least squares on the first ``size`` atoms of a factor; it is built anew, in place."""
    fitted = np.int64(0)
    for i in range(size):
        fitted += _append(factor, fitted, factor.atoms[i], signal, dictionary, limits.dependence)
    _solve(factor, fitted, limits.penalty)
    _refine(signal, dictionary, factor, fitted, residual, limits.penalty)
    return fitted


@kernel()
def _missing(dictionary: Any, factor: Any, size: Any, wanted: Any) -> bool:
    missing = False
    for i in range(size):
        if dictionary.slot[factor.atoms[i]] < 0:
            wanted[factor.atoms[i]] = True
            missing = True
    return missing


@kernel()
def _cosamp(block: Any, i: Any, dictionary: Any, limits: Any, codes: Any, wanted: Any, room: Any) -> None:
    """Code signal ``i``; it stays pending if Gram rows are missing."""
    work, factor, kept, pruned = room
    signal, energy = block.signals[i], block.energy[i]
    none = np.int64(0)
    size, left, best = none, energy, energy
    for _ in range(limits.max_iter):
        if left <= block.tol[i] or left <= limits.floor**2 * energy:
            break
        if _missing(dictionary, kept, size, wanted):
            return
        correlations(block.start[i], dictionary, kept, size, work)
        found = select(2 * limits.k, signal, dictionary, kept, work, limits, (size, none, np.sqrt(energy)))
        merged = _merge(signal, dictionary, limits, room, size, found)
        now = _prune(factor, merged, dictionary.norms, limits.floor * np.sqrt(energy), pruned)
        if limits.refit:
            now = _refit(signal, dictionary, limits, pruned, now, work.residual)
        new = set_residual(signal, dictionary, pruned, now, work.residual)
        value = new + limits.penalty * dot(pruned.weights, pruned.weights, now)
        if not value < best * (1 - STALL):
            break
        size, left, best = now, new, value
        for j in range(size):
            kept.atoms[j], kept.weights[j] = pruned.atoms[j], pruned.weights[j]
    _emit(codes, i, kept, size)


def cosamp_block(block: Any, dictionary: Any, limits: Any, codes: Any, wanted: Any) -> None:
    """CoSaMP of every pending signal; missing Gram rows are marked in ``wanted``."""
    n, d = block.signals.shape[1], block.start.shape[1]
    factors = [_factor(n, size) for size in (min(3 * limits.k, n, d), limits.k, limits.k)]
    _cosamp_block(block, dictionary, limits, codes, wanted, (_work(n, d), *factors))


@kernel()
def _cosamp_block(block: Any, dictionary: Any, limits: Any, codes: Any, wanted: Any, room: Any) -> None:
    for i in range(block.signals.shape[0]):
        if codes.counts[i] == PENDING:
            _cosamp(block, i, dictionary, limits, codes, wanted, room)
