"""The atoms that correlate most with a residual: float32 proposes, float64 settles; see `batch`.

A pursuit looks for the largest of all scores at every step, and then for the next ones, each of which it
closes. So the largest of every 64 scores (a tile) is kept: to find the top costs d / 64 comparisons and one
tile, and to close an atom one tile more. Proposals are taken from the top until the next is certainly smaller
than the m-th, by a margin that bounds the rounding of float32. If just m are left, they are the answer.
Otherwise the few are ranked by float64 products; where float32 cannot tell at all (a crowd), all atoms are.
"""

from functools import partial
from typing import Any

import numpy as np
from numba import njit

SCORE_TILE = 64
UNSIGNED = np.int32(0x7FFFFFFF)
MAX_SHORTLIST_EXTRA = 32  # a shortlist this much longer than what is wanted means that float32 cannot tell

# Only the order of sums may change: NaN and infinity keep their meaning.
_SUM = {"reassoc", "contract"}

# A first use waits for the compiler, so it is given little to do: no errors of division, no counts of
# references (nothing here allocates or returns an array), no way in from Python but for the entries. What is
# called in one place is inlined as source: a function is optimised alone, and again in each of its callers.
# `max` and `min` would be functions too, one for each type.
entry = partial(njit, cache=True, nogil=True, error_model="numpy", no_cfunc_wrapper=True, _nrt=False)
kernel = partial(entry, cache=False, no_cpython_wrapper=True)
inlined = partial(entry, cache=False, inline="always")


@kernel()
def _peak(bits: Any, tile: Any) -> Any:
    """Largest |score| of one tile. Floats without their sign order as integers do, whose maxima vectorise."""
    part, best = bits[tile * SCORE_TILE : tile * SCORE_TILE + SCORE_TILE], np.int32(0)
    for i in range(SCORE_TILE):
        score = part[i] & UNSIGNED
        best = score if score > best else best
    return best


@kernel()
def _largest(work: Any) -> Any:
    """Lowest index of the largest |score|."""
    top, tile = np.int32(0), 0
    for i in range(work.peaks.shape[0]):
        top = work.peaks[i] if work.peaks[i] > top else top
    while work.peaks[tile] < top:
        tile += 1
    j = tile * SCORE_TILE
    while work.bits[j] & UNSIGNED < top:
        j += 1
    return j


@kernel()
def _close(work: Any, j: Any) -> None:
    """Consider atom ``j`` no longer."""
    stands = work.bits[j] & UNSIGNED < work.peaks[j // SCORE_TILE]
    work.scores[j] = 0
    if not stands:
        work.peaks[j // SCORE_TILE] = _peak(work.bits, j // SCORE_TILE)


@kernel(fastmath=_SUM)
def dot_prefix(a: Any, b: Any, size: Any) -> Any:
    """Sum of products of the first entries."""
    total = 0.0
    for i in range(size):
        total += np.float64(a[i]) * np.float64(b[i])
    return total


@kernel(fastmath=_SUM)
def atom_products(atoms: Any, chosen: Any, size: Any, vector: Any, out: Any) -> None:
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
        out[i] = dot_prefix(atoms[chosen[i]], vector, vector.shape[0])


@kernel(fastmath=_SUM)
def set_residual(signal: Any, atoms: Any, chosen: Any, weights: Any, size: Any, out: Any) -> Any:
    """``out = y - D_S^T w`` in float64; returns its squared norm."""
    for p in range(signal.shape[0]):
        out[p] = signal[p]
    for i in range(size):
        atom, weight = atoms[chosen[i]], weights[i]
        for p in range(signal.shape[0]):
            out[p] -= weight * np.float64(atom[p])
    return dot_prefix(out, out, out.shape[0])


@kernel(fastmath=_SUM)
def correlations(start: Any, dictionary: Any, atoms: Any, weights: Any, size: Any, work: Any) -> None:
    """``scores = start - sum_i weights_i G[atom_i]`` in float32, four Gram rows a pass, and their peaks."""
    out, d, i = work.scores, start.shape[0], size % 4
    gram, slot = dictionary.gram, dictionary.slot
    for j in range(d):
        out[j] = start[j]
    for p in range(i):
        wa, a = np.float32(weights[p]), gram[slot[atoms[p]]]
        for j in range(d):
            out[j] -= wa * a[j]
    while i < size:
        wa, a = np.float32(weights[i]), gram[slot[atoms[i]]]
        wb, b = np.float32(weights[i + 1]), gram[slot[atoms[i + 1]]]
        wc, c = np.float32(weights[i + 2]), gram[slot[atoms[i + 2]]]
        we, e = np.float32(weights[i + 3]), gram[slot[atoms[i + 3]]]
        for j in range(d):
            out[j] -= (wa * a[j] + wb * b[j]) + (wc * c[j] + we * e[j])
        i += 4
    for tile in range(work.peaks.shape[0]):
        work.peaks[tile] = _peak(work.bits, tile)


@inlined()
def _shortlist(m: Any, margin: float, work: Any, n_closed: Any) -> Any:
    """Atoms that may be among the ``m`` largest scores, each known to ``margin``; -1 if there is a crowd."""
    for i in range(n_closed):
        _close(work, work.excluded[i])
    found, value = np.int64(0), np.inf
    while True:
        j = _largest(work)
        score = np.float64(abs(work.scores[j]))
        if not score > 2 * margin and (found < m or score >= value - 2 * margin):
            return -1
        if found >= m and score < value - 2 * margin:
            return found
        if found >= m + MAX_SHORTLIST_EXTRA:
            return -1
        if found < m:
            value = score
        work.picks[found] = j
        found += 1
        _close(work, j)


@kernel()
def contains(atoms: Any, size: Any, atom: Any) -> bool:
    """Whether the first atoms hold this one."""
    for i in range(size):  # noqa: SIM110 (a generator costs compile time)
        if atoms[i] == atom:
            return True
    return False


@inlined()
def _settle(m: Any, found: Any, dictionary: Any, work: Any, noise: float, floor: float) -> Any:
    """Rank a shortlist by float64 products; equal to rounding (``noise``) means equal: the lowest index wins.

    What does not rise above ``floor`` says nothing about the signal and is left out.
    """
    picks, exact = work.picks, work.exact
    atom_products(dictionary.atoms, picks, found, work.residual, exact)
    for i in range(found):
        exact[i] = abs(exact[i])
    wanted = m if m < found else found
    for rank in range(wanted):
        top = exact[rank]
        for i in range(rank + 1, found):
            top = exact[i] if exact[i] > top else top
        best = -1
        for i in range(rank, found):
            if exact[i] >= top - noise and (best < 0 or picks[i] < picks[best]):
                best = i
        if best < 0 or exact[best] <= floor * dictionary.norms[picks[best]]:  # below 0: only NaN is left
            return rank
        picks[rank], picks[best] = picks[best], picks[rank]
        exact[rank], exact[best] = exact[best], exact[rank]
    return wanted


@inlined()
def select(m: Any, signal: Any, dictionary: Any, code: Any, work: Any, limits: Any, n: Any) -> Any:
    """Put the ``m`` atoms of largest |correlation| into ``work.picks``; how many rise above rounding.

    ``code`` is (atoms, weights, their number), ``n`` is (number of closed atoms, norm of the signal).
    """
    (atoms, weights, size), (n_closed, norm) = code, n
    margin = norm
    for i in range(size):
        margin += abs(weights[i]) * dictionary.norms[atoms[i]]
    found = _shortlist(m, limits.coarse * margin, work, n_closed)
    if found != m:
        if found < 0:
            found = np.int64(0)
            for j in range(dictionary.norms.shape[0]):
                if not contains(work.excluded, n_closed, j):
                    work.picks[found] = j
                    found += 1
        set_residual(signal, dictionary.atoms, atoms, weights, size, work.residual)
        found = _settle(m, found, dictionary, work, limits.fine * margin, limits.floor * margin)
    return found
