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
    entry,
    inlined,
    kernel,
    products,
    select,
    set_residual,
)
from skpursuit.kernels.batch_types import PENDING, Factor, Work

COMPILED_WITH = "e07ae8a5d856"  # digest of these files: Numba notes changes of its own file only

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
def _polish(target: Any, dictionary: Any, factor: Any, fit: Any, rounds: Any, penalty: float) -> None:
    """Fit what the weights leave of a target again, where normal equations have lost digits.

    ``fit`` is (Cholesky factor, weights, their number, room for the residual). It ends when steps no longer
    get shorter: each gains the digits that the factor has.
    """
    lower, weights, size, residual = fit
    step, before = factor.spare[1], np.inf
    for _ in range(rounds):
        set_residual(target, dictionary.atoms, factor.atoms, weights, size, residual)
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


@inlined()
def _remainder(factor: Any, size: Any, dictionary: Any, atom: Any) -> float:
    """Turn the vector of a new atom into what the atoms of the factor leave of it; returns its squared norm.

    A difference of squares tells nothing of an atom that nearly depends on others. Here the combination of
    the others is fitted again, the remainder itself is computed, and the new row of the factor is ``L^T w``
    for the weights of the combination.
    """
    lower, new, weights = factor.lower, factor.lower[size], factor.spare[0]
    for i in range(size):
        weights[i] = new[i]
    back_substitute(lower, weights, size)
    _polish(
        dictionary.atoms[atom], dictionary, factor, (lower, weights, size, factor.vector), np.int64(3), 0.0
    )
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
def _shrink(factor: Any, size: Any, penalty: float) -> None:
    """Make ``shrunk``, the Cholesky factor of ``L L^T + penalty``; anew, which is cheap for few atoms."""
    lower, out = factor.lower, factor.shrunk
    for i in range(size):
        for p in range(i + 1):
            entry = dot(lower[i], lower[p], p + 1) - dot(out[i], out[p], p)
            out[i, p] = np.sqrt(entry + penalty) if p == i else entry / out[p, p]


@inlined()
def _solve(factor: Any, size: Any, penalty: float) -> None:
    weights, lower = factor.weights, factor.lower
    for i in range(size):
        weights[i] = factor.half[i]
    if penalty > 0:
        for i in range(size - 1, -1, -1):
            weights[i] = dot(lower[i], weights, i + 1)
        _shrink(factor, size, penalty)
        lower = factor.shrunk
        for i in range(size):
            weights[i] = (weights[i] - dot(lower[i], weights, i)) / lower[i, i]
    back_substitute(lower, weights, size)


@inlined()
def _refine(signal: Any, dictionary: Any, factor: Any, size: Any, residual: Any, penalty: float) -> None:
    """Give the weights the digits that normal equations have lost, if they have."""
    lower, sharp = factor.lower, True
    for i in range(size):
        sharp = sharp and lower[i, i] ** 2 > SHARP * dictionary.norms[factor.atoms[i]] ** 2
    if not sharp:
        if penalty > 0:
            _shrink(factor, size, penalty)
            lower = factor.shrunk
        _polish(
            signal,
            dictionary,
            factor,
            (lower, factor.weights, size, residual),
            np.int64(REFINEMENTS),
            penalty,
        )


@inlined()
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


@entry()
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
                left = set_residual(
                    signal, dictionary.atoms, factor.atoms, factor.weights, size, work.residual
                )
        if not missing:
            _refine(signal, dictionary, factor, size, work.residual, limits.penalty)
            _emit(codes, i, factor, size)


@kernel()
def _fit(signal: Any, dictionary: Any, limits: Any, factor: Any, chosen: Any, residual: Any) -> Any:
    """Least squares on the chosen atoms (an array and a number) but those that depend on earlier ones."""
    atoms, count = chosen
    size = np.int64(0)
    for i in range(count):
        if size < factor.half.shape[0]:
            size += _append(factor, size, atoms[i], signal, dictionary, limits.dependence)
    _solve(factor, size, limits.penalty)
    _refine(signal, dictionary, factor, size, residual, limits.penalty)
    return size


@inlined()
def _join(kept: Any, size: Any, work: Any, found: Any) -> Any:
    """Put the kept atoms, and the picked ones that are not kept, into ``work.closed``; how many there are."""
    count = np.int64(0)
    for i in range(size):
        work.closed[count] = kept.atoms[i]
        count += 1
    for i in range(found):
        if not contains(kept.atoms, size, work.picks[i]):
            work.closed[count] = work.picks[i]
            count += 1
    return count


@inlined()
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


@inlined()
def _missing(dictionary: Any, factor: Any, size: Any, wanted: Any) -> bool:
    missing = False
    for i in range(size):
        if dictionary.slot[factor.atoms[i]] < 0:
            wanted[factor.atoms[i]] = True
            missing = True
    return missing


@inlined()
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
        joined = _join(kept, size, work, found)
        merged = _fit(signal, dictionary, limits, factor, (work.closed, joined), work.residual)
        now = _prune(factor, merged, dictionary.norms, limits.floor * np.sqrt(energy), pruned)
        if limits.refit:
            now = _fit(signal, dictionary, limits, pruned, (pruned.atoms, now), work.residual)
        new = set_residual(signal, dictionary.atoms, pruned.atoms, pruned.weights, now, work.residual)
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


@entry()
def _cosamp_block(block: Any, dictionary: Any, limits: Any, codes: Any, wanted: Any, room: Any) -> None:
    for i in range(block.signals.shape[0]):
        if codes.counts[i] == PENDING:
            _cosamp(block, i, dictionary, limits, codes, wanted, room)
