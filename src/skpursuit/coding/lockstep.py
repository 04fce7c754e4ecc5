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

if TYPE_CHECKING:
    from skpursuit.coding.batch_coder import BatchCoder

SINGLE = float(np.finfo(np.float32).eps)
GATHERED = 1 << 21  # float64 numbers of candidates that are held at a time


class LockStep:
    """Codes of signals in rows (float64, of ordinary size).

    Parameters
    ----------
    coder : BatchCoder
        Its dictionary, limits and parameters.
    signals : ndarray of shape (m, n), float64
    most, tol : ndarray of shape (m,)
        Most non-zeros, and squared residual at which to stop, of each signal.
    """

    def __init__(self, coder: BatchCoder, signals: np.ndarray, most: np.ndarray, tol: np.ndarray) -> None:
        (m, n), k = signals.shape, int(most.max())
        self.atoms, self.coarse, _, _, self.norms = coder.dictionary
        self.coder, self.limits, self.mode = coder, coder.limits, coder.mode
        self.signals, self.most, self.tol = signals, most, tol
        self.residual, self.lengths = signals.copy(), np.linalg.norm(signals, axis=1)
        self.basis, self.upper, self.half = np.zeros((m, k, n)), np.zeros((m, k, k)), np.zeros((m, k))
        self.support, self.sizes = np.zeros((m, k), np.int64), np.zeros(m, np.int64)
        self.weights = np.zeros((m, k))  # with POSITIVE those of the last step, and in the end those of all
        self.closed = np.zeros((2, 0), np.int64)  # rows and atoms that were taken, or depend on those
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
        """Weights of the support by (penalised) least squares."""
        size = self.sizes[row]
        return self.solve(self.upper[row, :size, :size], self.half[row, :size])

    def solve(self, upper: np.ndarray, half: np.ndarray) -> np.ndarray:
        """Coefficients by a triangle and products of the target with its basis, with the penalty."""
        size, penalty = len(half), self.limits.penalty
        if penalty == 0 or size == 0:
            return solve_triangular(upper, half, check_finite=False) if size else half
        more = np.vstack([upper, penalty**0.5 * np.eye(size)])
        return np.linalg.lstsq(more, np.append(half, np.zeros(size)), rcond=None)[0]

    def best_atoms(self, live: np.ndarray, count: int) -> np.ndarray:
        """The ``count`` best atoms of each signal, -1 where no more rise above rounding.

        Float32 leaves few candidates, and float64 decides; equal to rounding means the lowest index.
        """
        limits, residual, d = self.limits, self.residual[live], len(self.atoms)
        picks, norms = np.full((len(live), count), -1), np.sqrt(np.einsum("ij,ij->i", residual, residual))
        if self.mode == GAIN:  # the next atom may differ little from those chosen, so this is float64
            squares, den = self.norms[:d] ** 2, self.den[live]
            usable = den > limits.dependence * squares
            scores = np.abs(residual @ self.atoms.T) / np.sqrt(np.where(usable & (squares > 0), den, np.inf))
            sigma = limits.fine * np.ones((len(live), 1)) + 1e-9 * scores.max(axis=1, keepdims=True)
        else:
            scores = residual.astype(np.float32) @ self.coarse[:d].T
            np.abs(scores, out=scores, where=self.mode != POSITIVE)
            sigma = (2 * SINGLE * (residual.shape[1] * limits.scale) ** 0.5 * norms)[:, None]
        places = np.full(len(self.signals), -1)
        places[live] = np.arange(len(live))
        hidden = self.closed[:, places[self.closed[0]] >= 0]
        scores[places[hidden[0]], hidden[1]] = -np.inf
        place = max(0, d - count)
        least = scores.max(axis=1) if count == 1 else np.partition(scores, place, axis=1)[:, place]
        least = np.maximum(least[:, None] - 2 * sigma, -CLOSED).astype(scores.dtype)
        rows, atoms = np.nonzero(scores >= least)
        exact, rest = scores[rows, atoms].astype(np.float64), np.ones(len(rows))
        if self.mode == GAIN:
            rest = np.sqrt(self.den[live[rows], atoms].clip(1e-300))
            exact *= rest
        else:
            for at in range(0, len(rows), piece := 1 + GATHERED // residual.shape[1]):
                part = slice(at, at + piece)
                vectors = self.atoms[atoms[part]].astype(np.float64)
                exact[part] = np.einsum("ij,ij->i", vectors, residual[rows[part]])
            exact = exact if self.mode == POSITIVE else np.abs(exact)
        weak = exact <= 64 * limits.floor * self.lengths[live[rows]] * self.norms[atoms]
        unclear = weak | (np.bincount(rows)[rows] > count)
        margin = self.lengths[live]
        for i in np.unique(rows[unclear]):
            row = live[i]
            support = self.support[row, : self.sizes[row]]
            margin[i] += np.abs(self._fitted(row)) @ self.norms[support]
        exact = np.where(exact > limits.floor * margin[rows] * self.norms[atoms], exact / rest, -1.0)
        noise = limits.fine * margin[rows] * limits.scale**0.5 / rest
        begins = np.diff(rows, prepend=-1) > 0
        starts, group, every = np.flatnonzero(begins), np.cumsum(begins) - 1, np.arange(len(rows))
        for step in range(count if len(rows) else 0):
            top = np.maximum.reduceat(exact, starts)[group]
            good = (exact > 0) & (exact >= top - noise)
            first = np.minimum.reduceat(np.where(good, every, len(rows)), starts)
            first = first[first < len(rows)]
            picks[rows[first], step] = atoms[first]
            exact[first] = -1.0
        return picks

    def _append(self, live: np.ndarray, picks: np.ndarray) -> None:
        """Orthogonalise the chosen atoms and take them out of the residuals, if they are independent."""
        most = self.sizes[live].max(initial=0)
        self.closed = np.hstack([self.closed, [live, picks]])
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
        for row in live if self.limits.penalty > 0 else ():
            size = self.sizes[row]
            shares = self.upper[row, :size, :size] @ self._fitted(row)
            self.residual[row] = self.signals[row] - shares @ self.basis[row, :size]
        if self.mode == GAIN:
            self.den[live] -= (new @ self.atoms.T) ** 2

    def _keep_positive(self, row: int) -> None:
        """Non-negative least squares on the support (Lawson and Hanson); atoms of weight zero leave it."""
        gone: list[int] = []
        for _ in range(3 * self.support.shape[1]):
            size, before = self.sizes[row], self.weights[row, : self.sizes[row]]
            fitted = self._fitted(row)
            if (fitted > 0).all():
                self.weights[row, :size], self.weights[row, size:] = fitted, 0
                back = self.atoms[gone].astype(np.float64) @ self.residual[row]
                length = self.lengths[row] + fitted @ self.norms[self.support[row, :size]]
                if not (back > self.limits.floor * length * self.norms[gone]).any() or size == self.most[row]:
                    return
                self._append(np.array([row]), np.array([gone.pop(int(back.argmax()))]))
            else:
                down, reach = fitted <= 0, np.full(size, np.inf)
                part = np.divide(before, before - fitted, out=np.zeros(size), where=before > fitted)
                reach[down] = part[down]
                move = reach.min()
                gone += self.support[row, :size][reach <= move].tolist()
                self.weights[row, :size] += move * (fitted - before)
                self._drop(row, reach > move)

    def _drop(self, row: int, stay: np.ndarray) -> None:
        """Take atoms out of the support: their columns leave the triangle, which a QR makes one again."""
        size, first, kept = len(stay), int(np.argmin(stay)), np.flatnonzero(stay)
        new, basis, upper = len(kept), self.basis[row], self.upper[row]
        turn, corner = np.linalg.qr(upper[first:size, kept[first:]])
        left = self.support[row, :size][~stay]
        self.closed = self.closed[:, (self.closed[0] != row) | ~np.isin(self.closed[1], left)]
        upper[:first, first:new] = upper[:first, kept[first:]]
        upper[first:] = 0
        upper[first:new, first:new] = corner
        basis[first:new], basis[new:] = turn.T @ basis[first:size], 0
        self.half[row, first:new] = turn.T @ self.half[row, first:size]
        self.support[row, :new], self.weights[row, :new] = self.support[row, kept], self.weights[row, kept]
        self.weights[row, new:], self.sizes[row] = 0, new
        fitted = upper[:new, :new] @ self._fitted(row)
        self.residual[row] = self.signals[row] - fitted @ basis[:new]
