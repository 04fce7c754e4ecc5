"""Pursuit of a block of signals, all of them one step at a time, in NumPy.

Each step takes one float32 product of all residuals with the dictionary, so that no Gram matrix is needed:
this is the faster way for few signals over many atoms. The chosen atoms are orthogonalised in float64
(classical Gram-Schmidt, twice), which also follows atoms that nearly depend on each other, as the kernel in
`kernels/batch_pursuit.py` does not. Products that their rounding may confuse are ranked by float64 products.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import solve_triangular

from skpursuit.kernels.batch_types import CLOSED, GAIN, POSITIVE
from skpursuit.numerics.float_range import FLOAT64_MAX, TINY_POSITIVE

if TYPE_CHECKING:
    from skpursuit.coding.batch_coder import BatchCoder

SINGLE = float(np.finfo(np.float32).eps)
STALL = 1e-6  # CoSaMP ends at a relative decrease of the squared residual below this
DEPENDENT = 1e-4  # share of an atom left by the others, up to which CoSaMP leaves it out


class LockStep:
    """Codes of signals in rows (float64, of ordinary size), with the dictionary and limits of a coder.

    Of each signal, ``most`` bounds the non-zeros, and ``tol`` is the squared residual at which to stop.
    """

    def __init__(self, coder: BatchCoder, signals: np.ndarray, most: np.ndarray, tol: np.ndarray) -> None:
        (m, n), k = signals.shape, int(most.max())
        self.atoms, self.coarse, _, _, self.norms = coder.dictionary
        self.coder, self.limits, self.mode = coder, coder.limits, coder.mode
        self.penalty = min(float(np.ldexp(n * coder.config.ridge, -2 * self.limits.exponent)), FLOAT64_MAX)
        self.signals, self.most, self.tol = signals, most, tol
        self.residual, self.lengths = signals.copy(), np.linalg.norm(signals, axis=1)
        self.basis, self.upper, self.half = np.zeros((m, k, n)), np.zeros((m, k, k)), np.zeros((m, k))
        self.support, self.sizes = np.zeros((m, k), np.int64), np.zeros(m, np.int64)
        self.weights = np.zeros((m, k))  # with POSITIVE those of the last step, and in the end those of all
        self.closed = np.zeros((m, len(self.atoms)), bool)  # atoms that were taken, or depend on those
        self.scores = np.empty((m, len(self.atoms)), np.float32)  # new memory for each step takes longer
        if self.mode == GAIN:
            self.den = np.tile(self.norms[: len(self.atoms)] ** 2, (m, 1))

    def run(self) -> None:
        """Fill ``support`` and ``weights``, the first ``sizes`` of each row."""
        live = np.arange(len(self.signals))
        for _ in range(3 * self.support.shape[1] if self.mode == POSITIVE else len(self.atoms)):
            left = np.einsum("ij,ij->i", self.residual[live], self.residual[live])
            live = live[(self.sizes[live] < self.most[live]) & (left > self.tol[live])]
            picks = self.best_atoms(live, self.coder.config.atoms_per_step)
            live, picks = live[picks[:, 0] >= 0], picks[picks[:, 0] >= 0]
            if not len(live):
                break
            for pick in picks.T:
                room = (pick >= 0) & (self.sizes[live] < self.most[live])
                self._append(live[room], pick[room])
            for row in live if self.mode == POSITIVE else ():
                self._keep_positive(row)
        for row, size in enumerate(self.sizes):
            self.weights[row, :size] = self._fitted(row)

    def _fitted(self, row: int) -> np.ndarray:
        """Weights of the support."""
        size = self.sizes[row]
        return self.solve(self.upper[row, :size, :size], self.half[row, :size])

    def solve(self, upper: np.ndarray, half: np.ndarray) -> np.ndarray:
        """(Penalised) least squares by a triangle and the products of a signal with its basis."""
        size = len(half)
        if self.penalty == 0 or size == 0:
            return solve_triangular(upper, half, check_finite=False) if size else half
        more = np.vstack([upper, self.penalty**0.5 * np.eye(size)])
        return np.linalg.lstsq(more, np.append(half, np.zeros(size)), rcond=None)[0]

    def best_atoms(self, live: np.ndarray, count: int) -> np.ndarray:
        """The ``count`` best atoms of each signal, -1 where no more rise above rounding."""
        # Float32 leaves few candidates, and float64 decides; equal to rounding means the lowest index.
        limits, residual, every, d = self.limits, self.residual[live], np.arange(len(live)), len(self.atoms)
        picks, rest = np.full((len(live), count), -1), np.ones(1)
        if self.mode == GAIN:  # the next atom may differ little from those chosen, so this is float64
            den = self.den[live]
            usable = (den > limits.dependence * self.norms[:d] ** 2) & (self.norms[:d] > 0)
            scores = np.abs(residual @ self.atoms.T) / np.sqrt(np.where(usable, den, np.inf))
            sigma = limits.fine + 1e-9 * scores.max(axis=1)
        else:
            scores, sizes = self.scores[: len(live)], np.einsum("ij,ij->i", residual, residual)
            np.matmul(residual.astype(np.float32), self.coarse[:d].T, out=scores)
            np.abs(scores, out=scores, where=self.mode != POSITIVE)
            sigma = 2 * SINGLE * np.sqrt(residual.shape[1] * limits.scale * sizes)
        scores.reshape(-1)[np.flatnonzero(self.closed[live])] = -np.inf
        picks[:, 0] = best = scores.argmax(axis=1)
        least = scores[every, best].astype(np.float64)
        scores[every, best] = -np.inf
        weak = self.norms[best] * 64 * limits.floor * self.lengths[live]
        if self.mode == GAIN:
            weak /= np.sqrt(den[every, best].clip(TINY_POSITIVE))
        clear = (count == 1) & (scores.max(axis=1) < least - 2 * sigma) & (least - sigma > weak)
        scores[every, best] = least
        if count > 1:
            place = max(0, d - count)
            least = np.partition(scores, place, axis=1)[:, place].astype(np.float64)
        for i in np.flatnonzero(~clear):
            row, atoms = live[i], np.flatnonzero(scores[i] >= max(least[i] - 2 * sigma[i], -CLOSED))
            own = self.support[row, : self.sizes[row]]
            margin = self.lengths[row] + np.abs(self._fitted(row)) @ self.norms[own]
            exact = self.atoms[atoms].astype(np.float64) @ residual[i]
            exact = exact if self.mode == POSITIVE else np.abs(exact)
            if self.mode == GAIN:
                rest = np.sqrt(self.den[row, atoms].clip(TINY_POSITIVE))
            exact = np.where(exact > limits.floor * margin * self.norms[atoms], exact / rest, -1.0)
            reach = exact + limits.fine * margin * limits.scale**0.5 / rest
            picks[i] = -1
            for step in range(min(count, int(np.sum(exact > 0)))):
                first = int(np.argmax((exact > 0) & (reach >= exact.max())))
                picks[i, step], exact[first] = atoms[first], -1.0
        return picks

    def _append(self, live: np.ndarray, picks: np.ndarray) -> None:
        """Orthogonalise the chosen atoms and take them out of the residuals, if they are independent."""
        most = self.sizes[live].max(initial=0)
        self.closed[live, picks] = True
        new, parts = self.atoms[picks].astype(np.float64)[:, None], np.zeros((len(live), 1, most))
        basis = self.basis[:, :most] if len(live) == len(self.basis) else self.basis[live, :most]
        for _ in range(2):
            part = new @ basis.transpose(0, 2, 1)
            new -= part @ basis
            parts += part
            norms = np.linalg.norm(new[:, 0], axis=1)
            if (norms > 0.5 * self.norms[picks]).all():  # no digits were lost
                break
        taken = norms**2 > self.limits.dependence * self.norms[picks] ** 2
        live, picks, norms, parts = live[taken], picks[taken], norms[taken], parts[taken, 0]
        new, sizes = new[taken, 0] / norms[:, None], self.sizes[live]
        alpha = np.einsum("ij,ij->i", new, self.signals[live])
        self.basis[live, sizes], self.half[live, sizes], self.support[live, sizes] = new, alpha, picks
        self.upper[live, :most, sizes], self.upper[live, sizes, sizes] = parts, norms
        self.sizes[live] += 1
        self.residual[live] -= np.einsum("ij,ij->i", new, self.residual[live])[:, None] * new
        for row in live if self.penalty > 0 else ():
            self._set_residual(row)
        if self.mode == GAIN:
            self.den[live] -= (new @ self.atoms.T) ** 2

    def _keep_positive(self, row: int) -> None:
        """Non-negative least squares on the support (Lawson and Hanson); atoms of weight zero leave it."""
        gone: list[int] = []
        for _ in range(3 * self.support.shape[1]):
            size, before = self.sizes[row], self.weights[row, : self.sizes[row]].copy()
            fitted, support = self._fitted(row), self.support[row, :size]
            if (fitted > 0).all():
                self.weights[row, :size] = fitted
                back = self.atoms[gone].astype(np.float64) @ self.residual[row]
                length = self.lengths[row] + fitted @ self.norms[support]
                if not (back > self.limits.floor * length * self.norms[gone]).any() or size == self.most[row]:
                    return
                self._append(np.array([row]), np.array([gone.pop(int(back.argmax()))]))
            else:
                part = np.divide(before, before - fitted, out=np.zeros(size), where=before > fitted)
                reach = np.where(fitted <= 0, part, np.inf)
                stay = reach > reach.min()
                gone += support[~stay].tolist()
                self.closed[row, support[~stay]] = False
                self._set_support(row, support[stay])
                self._set_residual(row)
                moved = before + reach.min() * (fitted - before)
                self.weights[row] = np.append(moved[stay], np.zeros(self.weights.shape[1] - sum(stay)))

    def _set_support(self, row: int, chosen: np.ndarray) -> None:
        """Make these atoms the support."""
        basis, upper = np.linalg.qr(self.atoms[chosen].T.astype(np.float64))
        size = self.sizes[row] = len(chosen)
        self.support[row, :size], self.upper[row, :size, :size] = chosen, upper
        self.basis[row, :size], self.basis[row, size:] = basis.T, 0
        self.half[row, :size] = basis.T @ self.signals[row]

    def _set_residual(self, row: int) -> None:
        size = self.sizes[row]
        shares = self.upper[row, :size, :size] @ self._fitted(row)
        self.residual[row] = self.signals[row] - shares @ self.basis[row, :size]


class CoSaMP(LockStep):
    """CoSaMP (Needell, Tropp 2009), with the products and the ranking of `LockStep`."""

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
