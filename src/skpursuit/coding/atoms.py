"""Atoms from statistics of codes: the dictionary update of online dictionary learning.

Mairal, Bach, Ponce, Sapiro 2010, algorithm 2: with ``A = sum w w^T`` and ``B = sum w y^T`` over the codes
``w`` of the signals ``y`` seen so far, one pass of block coordinate descent over the atoms.
"""

from __future__ import annotations

import numpy as np

from skpursuit.numerics.threads import share

ATOMS, FEATURES = 64, 256


def update(atoms: np.ndarray, A: np.ndarray, B: np.ndarray, n_threads: int | None = None) -> None:
    """Move every used atom to its best place given the others, and to unit norm, in place.

    Parameters
    ----------
    atoms : ndarray of shape (d, n)
        Unit norm.
    A : ndarray of shape (d, d)
        Products of codes, summed over signals. Atoms with a zero on the diagonal stay as they are.
    B : ndarray of shape (d, n)
        Products of codes and signals, summed over signals.
    n_threads : int, optional
        Default: as many as BLAS would use. The blocks are fixed, so the number changes no bit.
    """
    used = np.flatnonzero(np.diag(A) > 0)
    for at in range(0, len(used), ATOMS):
        chosen = used[at : at + ATOMS]
        _move(atoms, A[np.ix_(chosen, chosen)], _gradient(atoms, A[chosen], B[chosen], n_threads), chosen)


def _gradient(atoms: np.ndarray, A: np.ndarray, B: np.ndarray, n_threads: int | None) -> np.ndarray:
    out = np.empty_like(B)

    def fill(at: int) -> None:
        piece = slice(at, at + FEATURES)
        out[:, piece] = B[:, piece] - A @ atoms[:, piece]

    share(fill, [(at,) for at in range(0, atoms.shape[1], FEATURES)], A.size * atoms.shape[1], n_threads)
    return out


def _move(atoms: np.ndarray, A: np.ndarray, gradient: np.ndarray, chosen: np.ndarray) -> None:
    """One after the other; each move is taken out of the gradients of the atoms still to come."""
    for i, j in enumerate(chosen):
        moved = atoms[j] + gradient[i] / A[i, i]
        norm = np.linalg.norm(moved)
        if not 0 < norm < np.inf:
            continue
        moved /= norm
        gradient[i + 1 :] -= A[i + 1 :, i, None] * (moved - atoms[j])
        atoms[j] = moved


def from_signals(signals: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """Unit-norm atoms: random signals that are not zero, then random directions if there are too few."""
    peak = np.abs(signals).max(axis=1)
    usable = rng.permutation(np.flatnonzero(peak > 0))[:count]
    atoms = rng.standard_normal((count, signals.shape[1])).astype(signals.dtype)
    atoms[: len(usable)] = signals[usable] / peak[usable, None]
    return atoms / np.linalg.norm(atoms, axis=1, keepdims=True)
