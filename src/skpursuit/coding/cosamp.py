"""CoSaMP of a block of signals (Needell, Tropp 2009): one product of all residuals an iteration, in NumPy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from skpursuit.coding.lockstep import LockStep

if TYPE_CHECKING:
    from skpursuit.coding.batch_coder import BatchCoder

STALL = 1e-6  # end at a relative decrease of the squared residual below this
DEPENDENT = 1e-4  # share of an atom left by the others, up to which it is left out


class CoSaMP(LockStep):
    """CoSaMP with the products, the ranking and the factors of `LockStep`."""

    def __init__(self, coder: BatchCoder, signals: np.ndarray, most: np.ndarray, tol: np.ndarray) -> None:
        super().__init__(coder, signals, 3 * most, tol)  # a support and twice as many atoms are merged
        self.most = most

    def run(self) -> None:
        left, floor, most = self.lengths**2, self.limits.floor, self.most
        value, live = left.copy(), np.arange(len(left))
        for _ in range(self.coder.config.max_iter or self.coder.k):
            live = live[(left[live] > self.tol[live]) & (left[live] > (floor * self.lengths[live]) ** 2)]
            better = []
            for row, new in zip(live, self.best_atoms(live, 2 * most.max())):
                own, new = self.support[row, : self.sizes[row]].copy(), new[new >= 0][: 2 * most[row]]
                merged = np.append(own, new[~np.isin(new, own)])[: min(3 * most[row], *self.atoms.shape)]
                self._set_independent(row, merged)
                atoms, weights = self.support[row, : self.sizes[row]], self._fitted(row)
                order = np.lexsort((atoms, -np.abs(weights)))
                weak = np.abs(weights) * self.norms[atoms] <= floor * self.lengths[row]
                order = order[~weak[order]][: most[row]]
                atoms, weights = atoms[order], weights[order]
                self.set_support(row, atoms)
                if self.coder.config.refit:
                    weights = self._fitted(row)
                residual = self.signals[row] - weights @ self.atoms[atoms]
                energy = residual @ residual
                penalised = energy + self.penalty * (weights @ weights)
                if penalised < value[row] * (1 - STALL):
                    better.append(row)
                    left[row], value[row], self.residual[row] = energy, penalised, residual
                    self.weights[row, : len(atoms)] = weights
                else:
                    self.support[row, : len(own)], self.sizes[row] = own, len(own)
            live = np.array(better, np.int64)

    def _set_independent(self, row: int, chosen: np.ndarray) -> None:
        """Make these atoms the support, without those that nearly depend on others before them."""
        sharp = np.zeros(1, bool)
        while not sharp.all():
            self.set_support(row, chosen)
            sharp = np.abs(np.diag(self.upper[row]))[: len(chosen)] > DEPENDENT * self.norms[chosen]
            chosen = np.delete(chosen, np.argmin(sharp)) if len(chosen) else chosen
