"""Sparse codes of a block of signals over one dictionary.

The correlations of a residual, ``c = D y - G[:, S] w`` with ``G = D D^T`` (Rubinstein, Zibulevsky, Elad
2008, "Batch-OMP"), are kept in float32: they only *propose* atoms. Proposals closer together than their
rounding bound are settled by float64 products with the atoms themselves, and so is everything that is
kept: Cholesky factors, weights, residual norms. The codes are those of float64 arithmetic for little more
than the price of float32, and they do not depend on how BLAS orders its sums.
"""

from typing import Any

import numpy as np
from numba import njit

from skpursuit.kernels.batch_select import (
    CROWD,
    TILE,
    contains,
    correlations,
    dot,
    products,
    select,
    set_residual,
)
from skpursuit.kernels.batch_types import Factor, Work

COMPILED_WITH = "e6b65a2122b1"  # digest of these files: Numba notes changes of its own file only

PENDING = -1
DOUBT = 1e-4  # squared share of an atom left over by the others, below which it is computed from the atoms
SHARP = 1e-2  # squared share of an atom left over by the others, above which no digits are lost
REFINEMENTS = 24  # at most: each gains the digits that the factor has, while steps get shorter
STALL = 1e-6  # CoSaMP stops at a relative decrease of the squared residual below this


@njit(cache=True, nogil=True)
def _remainder(factor: Any, size: Any, dictionary: Any, vector: Any) -> float:
    """Turn an atom into what the atoms of the factor leave of it; returns its squared norm.

    A difference of squares tells nothing of an atom that nearly depends on others. Here the remainder itself
    is computed, and the new row of the factor, ``L^T c`` for the weights c of the combination, is corrected
    by what the remainder still has in common with the atoms.
    """
    lower, new = factor.lower, factor.lower[size]
    atom, weights, common = vector.copy(), np.zeros(size), np.zeros(size)
    for _ in range(3):
        for i in range(size):
            weights[i] = new[i]
        for i in range(size - 1, -1, -1):
            weights[i] /= lower[i, i]
            for p in range(i):
                weights[p] -= lower[i, p] * weights[i]
        vector[:] = atom
        for i in range(size):
            vector -= weights[i] * dictionary.atoms[factor.atoms[i]]
        products(dictionary.atoms, factor.atoms, size, vector, common)
        for i in range(size):
            common[i] = (common[i] - dot(lower[i], common, i)) / lower[i, i]
            new[i] += common[i]
    return dot(vector, vector, vector.shape[0])


@njit(cache=True, nogil=True)
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
        pivot, told = _remainder(factor, size, dictionary, vector), 0.0
    if not pivot > dependence * square:
        return False
    new[size] = np.sqrt(pivot)
    factor.half[size] = (dot(signal, vector, signal.shape[0]) - told) / new[size]
    factor.atoms[size] = atom
    return True


@njit(cache=True, nogil=True)
def _shrink(factor: Any, size: Any, penalty: float) -> Any:
    """The Cholesky factor of ``L L^T + penalty``, made anew: few atoms are cheaper than a second factor."""
    lower, out = factor.lower, np.empty((size, size))
    for i in range(size):
        for p in range(i + 1):
            entry = dot(lower[i], lower[p], p + 1) - dot(out[i], out[p], p)
            out[i, p] = np.sqrt(entry + penalty) if p == i else entry / out[p, p]
    return out


@njit(cache=True, nogil=True)
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
    for i in range(size - 1, -1, -1):
        weights[i] /= lower[i, i]
        for p in range(i):
            weights[p] -= lower[i, p] * weights[i]


@njit(cache=True, nogil=True)
def _refine(signal: Any, dictionary: Any, factor: Any, size: Any, residual: Any, penalty: float) -> None:
    """Fit what the weights leave of the signal again, where normal equations have lost digits."""
    weights, lower, sharp = factor.weights, factor.lower, True
    for i in range(size):
        sharp = sharp and lower[i, i] ** 2 > SHARP * dictionary.norms[factor.atoms[i]] ** 2
    step, before = np.zeros(size), np.inf
    if penalty > 0 and not sharp:
        lower = _shrink(factor, size, penalty)
    for _ in range(0 if sharp else REFINEMENTS):
        set_residual(signal, dictionary, factor, size, residual)
        products(dictionary.atoms, factor.atoms, size, residual, step)
        for i in range(size):
            step[i] -= penalty * weights[i]
            step[i] = (step[i] - dot(lower[i], step, i)) / lower[i, i]
        for i in range(size - 1, -1, -1):
            step[i] /= lower[i, i]
            for p in range(i):
                step[p] -= lower[i, p] * step[i]
        length = dot(step, step, size)
        if not length < 0.25 * before:
            break
        before = length
        for i in range(size):
            weights[i] += step[i]


@njit(cache=True, nogil=True)
def _emit(codes: Any, signal: Any, factor: Any, size: Any) -> None:
    """Write one code with its atoms in increasing order."""
    indices, values = codes.indices[signal], codes.values[signal]
    for i in range(size):
        p = i
        while p > 0 and indices[p - 1] > factor.atoms[i]:
            indices[p] = indices[p - 1]
            values[p] = values[p - 1]
            p -= 1
        indices[p] = factor.atoms[i]
        values[p] = factor.weights[i]
    codes.counts[signal] = size


@njit(cache=True, nogil=True)
def _new_factor(n: Any, size: Any) -> Any:
    return Factor(
        np.zeros((size, size)), np.zeros(size), np.zeros(size), np.zeros(size, np.int64), np.zeros(n)
    )


@njit(cache=True, nogil=True)
def _scratch(n: Any, d: Any, size: Any) -> Any:
    tiles = (d + TILE - 1) // TILE
    room = d + CROWD
    scores = np.zeros(tiles * TILE, np.float32)
    work = Work(
        scores,
        scores.view(np.int32),
        np.zeros(tiles, np.int32),
        np.zeros(n),
        np.zeros(room, np.int64),
        np.zeros(room),
        np.zeros(d, np.int64),
    )
    return work, _new_factor(n, size)


@njit(cache=True, nogil=True)
def _omp(block: Any, i: Any, dictionary: Any, limits: Any, codes: Any, work: Any, factor: Any) -> Any:
    """Code signal ``i``; returns an atom whose Gram row is missing, or -1."""
    signal, start, energy = block.signals[i], block.start[i], block.energy[i]
    size, n_closed = np.int64(0), np.int64(0)  # typed, for a literal 0 would compile every callee twice
    left, norm = energy, np.sqrt(energy)
    correlations(start, dictionary, factor, size, work)
    while size < limits.k and left > block.tol[i]:
        if select(np.int64(1), signal, dictionary, factor, work, limits, (size, n_closed, norm)) == 0:
            break
        j = work.picks[0]
        work.closed[n_closed] = j
        n_closed += 1
        if _append(factor, size, j, signal, dictionary, limits.dependence):
            if size + 1 < limits.k and dictionary.slot[j] < 0:
                return j
            left -= factor.half[size] ** 2
            size += 1
            _solve(factor, size, limits.penalty)
            if left < 1e-9 * energy or limits.penalty > 0:
                left = set_residual(signal, dictionary, factor, size, work.residual)
        if size < limits.k:
            correlations(start, dictionary, factor, size, work)
    _refine(signal, dictionary, factor, size, work.residual, limits.penalty)
    _emit(codes, i, factor, size)
    return -1


@njit(cache=True, nogil=True)
def omp_block(block: Any, dictionary: Any, limits: Any, codes: Any, wanted: Any) -> None:
    """Orthogonal matching pursuit of every pending signal; missing Gram rows are marked in ``wanted``."""
    work, factor = _scratch(block.signals.shape[1], block.start.shape[1], limits.k)
    for i in range(block.signals.shape[0]):
        if codes.counts[i] == PENDING:
            missing = _omp(block, i, dictionary, limits, codes, work, factor)
            if missing >= 0:
                wanted[missing] = True


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def _refit(signal: Any, dictionary: Any, limits: Any, factor: Any, size: Any, residual: Any) -> Any:
    """Least squares on the first ``size`` atoms of a factor; it is built anew, in place."""
    fitted = np.int64(0)
    for i in range(size):
        fitted += _append(factor, fitted, factor.atoms[i], signal, dictionary, limits.dependence)
    _solve(factor, fitted, limits.penalty)
    _refine(signal, dictionary, factor, fitted, residual, limits.penalty)
    return fitted


@njit(cache=True, nogil=True)
def _missing(dictionary: Any, factor: Any, size: Any, wanted: Any) -> bool:
    missing = False
    for i in range(size):
        if dictionary.slot[factor.atoms[i]] < 0:
            wanted[factor.atoms[i]] = True
            missing = True
    return missing


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def cosamp_block(block: Any, dictionary: Any, limits: Any, codes: Any, wanted: Any) -> None:
    """CoSaMP of every pending signal; missing Gram rows are marked in ``wanted``."""
    n, d = block.signals.shape[1], block.start.shape[1]
    work, factor = _scratch(n, d, min(3 * limits.k, n, d))
    room = (work, factor, _new_factor(n, limits.k), _new_factor(n, limits.k))
    for i in range(block.signals.shape[0]):
        if codes.counts[i] == PENDING:
            _cosamp(block, i, dictionary, limits, codes, wanted, room)
