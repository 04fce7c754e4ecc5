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

from skpursuit.kernels.batch_types import Factor, Work

COMPILED_WITH = "534563782e3a"  # digest of these files: Numba notes changes of its own file only

TILE = 64
UNSIGNED = np.int32(0x7FFFFFFF)
PENDING = -1
STALL = 1e-6  # CoSaMP stops at a relative decrease of the squared residual below this
CROWD = 32  # a shortlist this much longer than what is wanted means that float32 cannot tell

# Only the order of sums may change: NaN and infinity keep their meaning.
_SUM = {"reassoc", "contract"}


@njit(cache=True, nogil=True)
def _peak(bits: Any, tile: Any) -> Any:
    """Largest |score| of one tile. Floats without their sign order as integers do, whose maxima vectorise."""
    part, best = bits[tile * TILE : tile * TILE + TILE], np.int32(0)
    for i in range(TILE):
        best = max(best, part[i] & UNSIGNED)
    return best


@njit(cache=True, nogil=True)
def _set_peaks(work: Any) -> None:
    for tile in range(work.peaks.shape[0]):
        work.peaks[tile] = _peak(work.bits, tile)


@njit(cache=True, nogil=True)
def _largest(work: Any) -> Any:
    """Lowest index of the largest |score|."""
    top, tile = np.int32(0), 0
    for i in range(work.peaks.shape[0]):
        top = max(top, work.peaks[i])
    while work.peaks[tile] < top:
        tile += 1
    j = tile * TILE
    while work.bits[j] & UNSIGNED < top:
        j += 1
    return j


@njit(cache=True, nogil=True)
def _close(work: Any, j: Any) -> None:
    """Consider atom ``j`` no longer."""
    stands = work.bits[j] & UNSIGNED < work.peaks[j // TILE]
    work.scores[j] = 0
    if not stands:
        work.peaks[j // TILE] = _peak(work.bits, j // TILE)


@njit(cache=True, nogil=True, fastmath=_SUM)
def _dot(a: Any, b: Any, size: Any) -> Any:
    total = 0.0
    for i in range(size):
        total += np.float64(a[i]) * np.float64(b[i])
    return total


@njit(cache=True, nogil=True, fastmath=_SUM)
def _products(atoms: Any, chosen: Any, size: Any, vector: Any, out: Any) -> None:
    """Products of a float64 vector with the chosen atoms, four at a time."""
    for i in range(0, size - 3, 4):
        a, b, c, e = atoms[chosen[i]], atoms[chosen[i + 1]], atoms[chosen[i + 2]], atoms[chosen[i + 3]]
        ta, tb, tc, te = 0.0, 0.0, 0.0, 0.0
        for p in range(vector.shape[0]):
            v = vector[p]
            ta += np.float64(a[p]) * v
            tb += np.float64(b[p]) * v
            tc += np.float64(c[p]) * v
            te += np.float64(e[p]) * v
        out[i], out[i + 1], out[i + 2], out[i + 3] = ta, tb, tc, te
    for i in range(size - size % 4, size):
        out[i] = _dot(atoms[chosen[i]], vector, vector.shape[0])


@njit(cache=True, nogil=True, fastmath=_SUM)
def _set_residual(signal: Any, dictionary: Any, factor: Any, size: Any, out: Any) -> Any:
    """``out = y - D_S^T w`` in float64; returns its squared norm."""
    for p in range(signal.shape[0]):
        out[p] = signal[p]
    for i in range(size):
        atom, weight = dictionary.atoms[factor.atoms[i]], factor.weights[i]
        for p in range(signal.shape[0]):
            out[p] -= weight * np.float64(atom[p])
    return _dot(out, out, out.shape[0])


@njit(cache=True, nogil=True)
def _term(dictionary: Any, factor: Any, i: Any) -> Any:
    """Weight and Gram row of the ``i``-th atom."""
    return np.float32(factor.weights[i]), dictionary.gram[dictionary.slot[factor.atoms[i]]]


@njit(cache=True, nogil=True, fastmath=_SUM)
def _correlations(start: Any, dictionary: Any, factor: Any, size: Any, work: Any) -> None:
    """``scores = start - sum_i weights_i G[atom_i]`` in float32, four Gram rows a pass, and their peaks."""
    out, d, i = work.scores, start.shape[0], size % 4
    if size % 2:
        wa, a = _term(dictionary, factor, 0)
        for j in range(d):
            out[j] = start[j] - wa * a[j]
    else:
        for j in range(d):
            out[j] = start[j]
    if i >= 2:
        wa, a = _term(dictionary, factor, i - 2)
        wb, b = _term(dictionary, factor, i - 1)
        for j in range(d):
            out[j] -= wa * a[j] + wb * b[j]
    while i < size:
        wa, a = _term(dictionary, factor, i)
        wb, b = _term(dictionary, factor, i + 1)
        wc, c = _term(dictionary, factor, i + 2)
        we, e = _term(dictionary, factor, i + 3)
        for j in range(d):
            out[j] -= (wa * a[j] + wb * b[j]) + (wc * c[j] + we * e[j])
        i += 4
    _set_peaks(work)


@njit(cache=True, nogil=True, fastmath=_SUM)
def _direct(dictionary: Any, residual: Any, out: Any) -> None:
    """Float32 correlations from the residual itself, for a residual too small to be had as a difference."""
    vector = residual.astype(np.float32)
    for j in range(dictionary.coarse.shape[0]):
        atom, total = dictionary.coarse[j], np.float32(0)
        for p in range(vector.shape[0]):
            total += vector[p] * atom[p]
        out[j] = total


@njit(cache=True, nogil=True)
def _shortlist(m: Any, margin: float, work: Any, n_closed: Any) -> Any:
    """Atoms that may be among the ``m`` largest scores, each known to ``margin``; -1 if there is a crowd."""
    for i in range(n_closed):
        _close(work, work.closed[i])
    found, value = np.int64(0), np.inf
    while True:
        j = _largest(work)
        score = np.float64(abs(work.scores[j]))
        if score <= 2 * margin and (found < m or score >= value - 2 * margin):
            return -1
        if found >= m and score < value - 2 * margin:
            return found
        if found >= m + CROWD:
            return -1
        if found < m:
            value = score
        work.picks[found] = j
        found += 1
        _close(work, j)


@njit(cache=True, nogil=True)
def _contains(atoms: Any, size: Any, atom: Any) -> bool:
    for i in range(size):  # noqa: SIM110 (a generator costs compile time)
        if atoms[i] == atom:
            return True
    return False


@njit(cache=True, nogil=True)
def _everything(work: Any, d: Any, n_closed: Any) -> Any:
    found = np.int64(0)
    for j in range(d):
        if not _contains(work.closed, n_closed, j):
            work.picks[found] = j
            found += 1
    return found


@njit(cache=True, nogil=True)
def _settle(m: Any, found: Any, dictionary: Any, work: Any, noise: float, floor: float) -> Any:
    """Rank a shortlist by float64 products; equal to rounding (``noise``) means equal: the lowest index wins.

    What does not rise above ``floor`` says nothing about the signal and is left out.
    """
    picks, exact = work.picks, work.exact
    _products(dictionary.atoms, picks, found, work.residual, exact)
    for i in range(found):
        exact[i] = abs(exact[i])
    for rank in range(min(m, found)):
        top = exact[rank]
        for i in range(rank + 1, found):
            top = max(top, exact[i])
        best = -1
        for i in range(rank, found):
            if exact[i] >= top - noise and (best < 0 or picks[i] < picks[best]):
                best = i
        if exact[best] <= floor * dictionary.norms[picks[best]]:
            return rank
        picks[rank], picks[best] = picks[best], picks[rank]
        exact[rank], exact[best] = exact[best], exact[rank]
    return min(m, found)


@njit(cache=True, nogil=True)
def _select(m: Any, signal: Any, dictionary: Any, factor: Any, work: Any, limits: Any, n: Any) -> Any:
    """Put the ``m`` atoms of largest |correlation| into ``work.picks``; how many rise above rounding.

    ``n`` is (number of weights, number of closed atoms, norm of the signal).
    """
    size, n_closed, norm = n
    margin = norm
    for i in range(size):
        margin += abs(factor.weights[i]) * dictionary.norms[factor.atoms[i]]
    found = _shortlist(m, limits.coarse * margin, work, n_closed)
    if found == m:
        return m
    left = _set_residual(signal, dictionary, factor, size, work.residual)
    if found < 0:
        _direct(dictionary, work.residual, work.scores)
        _set_peaks(work)
        found = _shortlist(m, limits.coarse * np.sqrt(left), work, n_closed)
    if found < 0:
        found = _everything(work, dictionary.norms.shape[0], n_closed)
    return _settle(m, found, dictionary, work, limits.fine * margin, limits.floor * margin)


@njit(cache=True, nogil=True)
def _append(factor: Any, size: Any, atom: Any, signal: Any, dictionary: Any, dependence: float) -> bool:
    """Grow the factor by one atom; False, and no change, if the atom depends on those it has."""
    lower, vector, source = factor.lower, factor.vector, dictionary.atoms[atom]
    for p in range(vector.shape[0]):
        vector[p] = source[p]
    new = lower[size]
    _products(dictionary.atoms, factor.atoms, size, vector, new)
    for i in range(size):
        new[i] = (new[i] - _dot(lower[i], new, i)) / lower[i, i]
    square = dictionary.norms[atom] ** 2
    pivot = square - _dot(new, new, size)
    if not pivot > dependence * square:
        return False
    new[size] = np.sqrt(pivot)
    product = _dot(signal, vector, signal.shape[0])
    factor.half[size] = (product - _dot(new, factor.half, size)) / new[size]
    factor.atoms[size] = atom
    return True


@njit(cache=True, nogil=True)
def _solve(factor: Any, size: Any) -> None:
    weights, lower = factor.weights, factor.lower
    for i in range(size):
        weights[i] = factor.half[i]
    for i in range(size - 1, -1, -1):
        weights[i] /= lower[i, i]
        for p in range(i):
            weights[p] -= lower[i, p] * weights[i]


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
    _correlations(start, dictionary, factor, size, work)
    while size < limits.k and left > block.tol[i]:
        if _select(np.int64(1), signal, dictionary, factor, work, limits, (size, n_closed, norm)) == 0:
            break
        j = work.picks[0]
        work.closed[n_closed] = j
        n_closed += 1
        if _append(factor, size, j, signal, dictionary, limits.dependence):
            if size + 1 < limits.k and dictionary.slot[j] < 0:
                return j
            left -= factor.half[size] ** 2
            size += 1
            _solve(factor, size)
            if left < 1e-9 * energy:
                left = _set_residual(signal, dictionary, factor, size, work.residual)
        if size < limits.k:
            _correlations(start, dictionary, factor, size, work)
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
        if merged < factor.half.shape[0] and not _contains(kept.atoms, size, work.picks[i]):
            merged += _append(factor, merged, work.picks[i], signal, dictionary, limits.dependence)
    _solve(factor, merged)
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
def _refit(signal: Any, dictionary: Any, limits: Any, factor: Any, size: Any) -> Any:
    """Least squares on the first ``size`` atoms of a factor; it is built anew, in place."""
    fitted = np.int64(0)
    for i in range(size):
        fitted += _append(factor, fitted, factor.atoms[i], signal, dictionary, limits.dependence)
    _solve(factor, fitted)
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
    size, left = none, energy
    for _ in range(limits.max_iter):
        if left <= block.tol[i] or left <= limits.floor**2 * energy:
            break
        if _missing(dictionary, kept, size, wanted):
            return
        _correlations(block.start[i], dictionary, kept, size, work)
        found = _select(2 * limits.k, signal, dictionary, kept, work, limits, (size, none, np.sqrt(energy)))
        merged = _merge(signal, dictionary, limits, room, size, found)
        now = _prune(factor, merged, dictionary.norms, limits.floor * np.sqrt(energy), pruned)
        if limits.refit:
            now = _refit(signal, dictionary, limits, pruned, now)
        new = _set_residual(signal, dictionary, pruned, now, work.residual)
        if not new < left * (1 - STALL):
            break
        size, left = now, new
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
