"""Atoms from statistics of codes: the dictionary update of online dictionary learning.

Mairal, Bach, Ponce, Sapiro 2010, algorithm 2: with ``A = sum w w^T`` and ``B = sum w y^T`` over the codes
``w`` of the signals ``y`` seen so far, one pass of block coordinate descent over the atoms (`update_atoms`).
`SufficientStatistics` holds the sums, and replaces atoms that no signal uses by signals that are coded badly.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from skpursuit.coding.batch_coder import BatchCoder, CoderConfig
from skpursuit.numerics.threads import run_tasks

ATOM_BLOCK, FEATURE_BLOCK = 64, 256
FORGETTING = 16.0  # after t batches the i-th counts (i / t) to this power: mostly the last t / 16 do
IDLE_LIMIT = 8  # replace an atom unused for 8 mean uses per atom


class SufficientStatistics:
    """Sums over the codes of all batches so far, old ones counting less, and how long each atom was unused.

    Products of signals are kept away from overflow by a power of two chosen for the first ones.
    """

    def __init__(self, signals: np.ndarray, d: int) -> None:
        dtype, n = signals.dtype, signals.shape[1]
        most = 120 if dtype == np.float32 else 1000
        self.scale = dtype.type(2.0 ** -int(np.clip(np.frexp(np.abs(signals).max())[1], -most, most)))
        self.A, self.B = np.zeros((d, d), dtype), np.zeros((d, n), dtype)
        self.idle = np.zeros(d, np.int64)
        self.steps = self.replaced = 0

    def step(self, atoms: np.ndarray, batch: np.ndarray, config: CoderConfig) -> np.ndarray:
        """Code a batch and move the atoms, in place; returns the squared residuals and signals, summed."""
        codes = BatchCoder(atoms, atoms.dtype, config, len(batch)).transform(batch)
        signals, codes = batch * self.scale, codes * self.scale
        residual = signals - codes @ atoms
        self.steps += 1
        keep = atoms.dtype.type((1 - 1 / self.steps) ** FORGETTING)
        self.A *= keep
        self.B *= keep
        self.A += (codes.T @ codes).toarray()
        self.B += codes.T @ signals
        update_atoms(atoms, self.A, self.B, config.n_jobs)
        self._replace(atoms, codes, signals, residual)
        return np.array([np.vdot(residual, residual), np.vdot(signals, signals)], dtype=np.float64)

    def _replace(
        self, atoms: np.ndarray, codes: csr_array, signals: np.ndarray, residual: np.ndarray
    ) -> None:
        """Give the places of idle atoms to the signals that are coded worst."""
        self.idle += len(signals)
        self.idle[codes.indices] = 0
        per_signal = max(1.0, codes.nnz / len(signals))
        idle = np.flatnonzero(self.idle > IDLE_LIMIT * len(self.idle) / per_signal)
        left = np.einsum("ij,ij->i", residual, residual)
        worst = np.argsort(-left, kind="stable")[: min(len(idle), np.count_nonzero(left))]
        idle = idle[: len(worst)]
        atoms[idle] = signals[worst] / np.linalg.norm(signals[worst], axis=1, keepdims=True)
        self.A[idle] = self.A[:, idle] = self.B[idle] = 0
        self.idle[idle] = 0
        self.replaced += len(idle)


def update_atoms(atoms: np.ndarray, A: np.ndarray, B: np.ndarray, n_threads: int | None = None) -> None:
    """Move every used atom to its best place given the others, and to unit norm, in place.

    ``A`` are products of codes, ``B`` of codes and signals, summed over signals; an atom with a zero on the
    diagonal of A stays as it is. The blocks are fixed, so the number of threads changes no bit.
    """

    def subtract(gradient: np.ndarray, products: np.ndarray, at: int) -> None:
        piece = slice(at, at + FEATURE_BLOCK)
        gradient[:, piece] -= products @ atoms[:, piece]

    used, n = np.flatnonzero(np.diag(A) > 0), B.shape[1]
    for at in range(0, len(used), ATOM_BLOCK):
        chosen = used[at : at + ATOM_BLOCK]
        gradient, products = B[chosen], A[chosen]
        pieces = [(gradient, products, begin) for begin in range(0, n, FEATURE_BLOCK)]
        run_tasks(subtract, pieces, products.size * n, n_threads)
        for i, j in enumerate(chosen):
            moved = atoms[j] + gradient[i] / A[j, j]
            norm = np.linalg.norm(moved)
            if not 0 < norm < np.inf:
                continue
            moved /= norm
            # each move is taken out of the gradients of the atoms still to come
            gradient[i + 1 :] -= A[chosen[i + 1 :], j, None] * (moved - atoms[j])
            atoms[j] = moved
