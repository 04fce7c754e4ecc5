"""CoSaMP of a block of signals (Needell, Tropp 2009): one product of all residuals an iteration, in NumPy."""

from __future__ import annotations

import numpy as np

from skpursuit.coding.lockstep import LockStep

STALL = 1e-6  # end at a relative decrease of the squared residual below this
DEPENDENT = 1e-4  # share of an atom left by the others, up to which it is left out


class CoSaMP(LockStep):
    """CoSaMP with the products, and the ranking, of `LockStep`."""

    def run(self) -> None:
        left, floor = self.lengths**2, self.limits.floor
        value, live = left.copy(), np.arange(len(left))
        for _ in range(self.coder.config.max_iter or self.coder.k):
            live = live[(left[live] > self.tol[live]) & (left[live] > (floor * self.lengths[live]) ** 2)]
            if not len(live):
                return
            picks = self.best_atoms(live, 2 * self.support.shape[1])
            better = []
            for row, new in zip(live, picks):
                most, own = self.most[row], self.support[row, : self.sizes[row]]
                new = new[new >= 0][: 2 * most]
                merged = np.append(own, new[~np.isin(new, own)])[: min(3 * most, *self.atoms.shape)]
                atoms, weights = self._least_squares(row, merged)
                weak = np.abs(weights) * self.norms[atoms] <= floor * self.lengths[row]
                order = np.lexsort((atoms, -np.abs(weights)))
                order = order[~weak[order]][:most]
                atoms, weights = atoms[order], weights[order]
                if self.coder.config.refit:
                    atoms, weights = self._least_squares(row, atoms)
                residual = self.signals[row] - weights @ self.atoms[atoms]
                energy = residual @ residual
                penalised = energy + self.penalty * (weights @ weights)
                if penalised < value[row] * (1 - STALL):
                    better.append(row)
                    self.sizes[row], left[row], value[row] = len(atoms), energy, penalised
                    self.support[row, : len(atoms)], self.weights[row, : len(atoms)] = atoms, weights
                    self.residual[row] = residual
            live = np.array(better, np.int64)

    def _fitted(self, row: int) -> np.ndarray:
        return self.weights[row, : self.sizes[row]]

    def _least_squares(self, row: int, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Chosen atoms without those that nearly depend on others before them, and their weights."""
        while True:
            system = np.column_stack([self.atoms[chosen].T, self.signals[row]])
            upper, half = np.split(np.linalg.qr(system, mode="r")[: len(chosen)], [len(chosen)], axis=1)
            sharp = np.abs(np.diag(upper)) > DEPENDENT * self.norms[chosen]
            if sharp.all():
                return chosen, self.solve(upper, half[:, 0])
            chosen = np.delete(chosen, np.argmin(sharp))
