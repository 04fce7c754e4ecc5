"""Pursuit of a block of signals, all of them one step at a time, in NumPy.

Each step takes one float32 product of all residuals with the dictionary, so that no Gram matrix is needed:
this is the faster way for few signals over many atoms. The chosen atoms are orthogonalised in float64
(classical Gram-Schmidt, twice), which also follows atoms that nearly depend on each other, as the kernel in
`kernels/batch.py` does not. Products closer together than their rounding are settled by float64 products, by
the same rules as there.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import nnls

from skpursuit.kernels.batch_types import CLOSED, GAIN, POSITIVE, Limits

SINGLE = float(np.finfo(np.float32).eps)


class LockStep:
    """Codes of signals in rows (float64, of ordinary size) over atoms in rows.

    Parameters
    ----------
    atoms : ndarray of shape (d, n)
    coarse : ndarray of shape (d, n), float32
        The same atoms.
    norms : ndarray of shape (d,), float64
    limits : Limits
    mode : OMP, POSITIVE or GAIN
    signals : ndarray of shape (m, n), float64
    """

    def __init__(
        self,
        atoms: np.ndarray,
        coarse: np.ndarray,
        norms: np.ndarray,
        limits: Limits,
        mode: int,
        signals: np.ndarray,
    ) -> None:
        (m, n), k = signals.shape, limits.k
        self.atoms, self.coarse, self.norms, self.limits, self.mode = atoms, coarse, norms, limits, mode
        self.signals, self.lengths = signals, np.linalg.norm(signals, axis=1)
        self.rounding = 2 * SINGLE * n**0.5 * limits.scale**0.5  # of float32 products with unit vectors
        # A ridge is one more entry of every chosen atom, orthogonal to all others.
        long = n + k * (limits.penalty > 0)
        self.residual = np.zeros((m, long))
        self.residual[:, :n] = signals
        self.basis, self.upper, self.half = np.zeros((m, k, long)), np.zeros((m, k, k)), np.zeros((m, k))
        self.support, self.sizes = np.zeros((m, k), np.int64), np.zeros(m, np.int64)
        self.closed: dict[int, list[int]] = {}  # atoms that depend on those chosen, by row

    def run(self, tol: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Supports and weights, the first ``sizes`` of each row; ``tol`` bounds the squared residuals."""
        n, k, live = self.signals.shape[1], self.limits.k, np.arange(len(self.signals))
        if self.mode == GAIN:
            self.scores = self.signals.astype(np.float32) @ self.coarse.T
            self.den = np.tile(
                np.where(self.norms > 0, self.norms**2 + self.limits.penalty, CLOSED).astype(np.float32),
                (len(live), 1),
            )
        for _ in range(3 * k if self.mode == POSITIVE else len(self.atoms)):
            left = np.einsum("ij,ij->i", self.residual[live, :n], self.residual[live, :n])
            live = live[(self.sizes[live] < k) & (left > tol[live])]
            if not len(live):
                break
            picks = self._choose(live)
            live, picks = live[picks >= 0], picks[picks >= 0]
            self._append(live, picks)
            if self.mode == POSITIVE:
                for row in live:
                    self._keep_positive(row)
        weights = np.zeros((len(self.signals), k))
        for row, size in enumerate(self.sizes):
            weights[row, :size] = self._weights(row)
        return self.support, weights

    def _weights(self, row: int) -> np.ndarray:
        size = self.sizes[row]
        return solve_triangular(self.upper[row, :size, :size], self.half[row, :size], check_finite=False)

    def _choose(self, live: np.ndarray) -> np.ndarray:
        """The next atom of each signal, or -1 where none rises above rounding."""
        every, n = np.arange(len(live)), self.signals.shape[1]
        sigma = self.rounding * self.lengths[live]
        if self.mode == GAIN:
            sigma = (sigma * (1 + np.sqrt(self.sizes[live])))[:, None]
            spread = (2 * self.rounding * self.limits.scale**0.5 * np.sqrt(self.sizes[live]))[:, None]
            c, den = np.abs(self.scores[live]), self.den[live]
            scores = (c + sigma) ** 2 / np.maximum(den - spread, 1e-30)
            best = scores.argmax(axis=1)
            low = np.maximum(c[every, best] - sigma[:, 0], 0) ** 2 / (den[every, best] + spread[:, 0])
            top = c[every, best]
        else:
            residual = self.residual[live, :n]
            sigma = self.rounding * np.sqrt(np.einsum("ij,ij->i", residual, residual))
            scores = residual.astype(np.float32) @ self.coarse.T
            if self.mode != POSITIVE:
                np.abs(scores, out=scores)
            for i in np.flatnonzero([row in self.closed for row in live]) if self.closed else ():
                scores[i, self.closed[live[i]]] = -1
            best = scores.argmax(axis=1)
            top = scores[every, best]
            low = top - 2 * sigma
        weak = top <= 64 * self.limits.floor * self.lengths[live] * self.norms[best]
        highest = scores[every, best]
        scores[every, best] = -np.inf
        doubtful = weak | (low <= 0) | (scores.max(axis=1) >= low)
        scores[every, best] = highest
        for i in np.flatnonzero(doubtful):
            best[i] = self._settle(live[i], np.flatnonzero(scores[i] >= low[i]))
        return best

    def _settle(self, row: int, candidates: np.ndarray) -> int:
        """Best candidate by float64 products; equal to rounding means the lowest index."""
        limits, n, size = self.limits, self.signals.shape[1], self.sizes[row]
        support = self.support[row, :size]
        candidates = np.setdiff1d(candidates, [*support, *self.closed.get(row, [])])
        vectors = self.atoms[candidates].astype(np.float64)
        exact = vectors @ self.residual[row, :n]
        if self.mode != POSITIVE:
            exact = np.abs(exact)
        margin = self.lengths[row] + np.abs(self._weights(row)) @ self.norms[support]
        den, above = np.ones(len(candidates)), exact > limits.floor * margin * self.norms[candidates]
        if self.mode == GAIN:
            rest, basis = np.pad(vectors, ((0, 0), (0, self.basis.shape[2] - n))), self.basis[row, :size]
            for _ in range(2):
                rest -= (rest @ basis.T) @ basis
            den = np.einsum("ij,ij->i", rest, rest) + limits.penalty
            above &= den > limits.dependence * self.norms[candidates] ** 2
            self.den[row, candidates[~above]] = CLOSED
            den = np.sqrt(np.where(above, den, 1.0))
        if not above.any():
            again = self.mode == GAIN and len(candidates) > 0
            return self._settle(row, np.flatnonzero(self.den[row] < CLOSED / 2)) if again else -1
        scores = np.where(above, exact / den, -np.inf)
        noise = limits.fine * margin * limits.scale**0.5 / den
        return int(candidates[np.argmax(scores >= scores.max() - noise)])

    def _append(self, live: np.ndarray, picks: np.ndarray) -> None:
        """Orthogonalise the chosen atoms and take them out of the residuals, if they are independent."""
        n, sizes, most = self.signals.shape[1], self.sizes[live], self.sizes[live].max(initial=0)
        new = np.zeros((len(live), 1, self.basis.shape[2]))
        new[:, 0, :n] = self.atoms[picks]
        if self.limits.penalty > 0:
            new[np.arange(len(live)), 0, n + sizes] = self.limits.penalty**0.5
        everyone = len(live) == len(self.basis)
        basis = self.basis[:, :most] if everyone else self.basis[live, :most]
        parts = np.zeros((len(live), 1, most))
        square = self.norms[picks] ** 2 + self.limits.penalty
        for _ in range(2):
            part = new @ basis.transpose(0, 2, 1)
            new -= part @ basis
            parts += part
            norms = np.linalg.norm(new[:, 0], axis=1)
            if (norms**2 > 0.25 * square).all():  # no digits were lost
                break
        taken = norms**2 > self.limits.dependence * square
        for i in np.flatnonzero(sizes) if self.limits.penalty > 0 else ():  # it hides dependence
            chosen, atom = self.atoms[self.support[live[i], : sizes[i]]].T, self.atoms[picks[i]].astype(float)
            rest = atom - chosen @ np.linalg.lstsq(chosen, atom, rcond=None)[0]
            taken[i] = rest @ rest > self.limits.dependence * self.norms[picks[i]] ** 2
        for row, pick in zip(live[~taken], picks[~taken]):
            self.closed.setdefault(row, []).append(pick)
        if self.mode == GAIN:
            self.den[live, picks] = CLOSED
        live, sizes, norms, new, parts = (
            live[taken],
            sizes[taken],
            norms[taken],
            new[taken, 0],
            parts[taken, 0],
        )
        new /= norms[:, None]
        alpha = np.einsum("ij,ij->i", new, self.residual[live])
        self.residual[live] -= alpha[:, None] * new
        self.basis[live, sizes], self.half[live, sizes], self.support[live, sizes] = new, alpha, picks[taken]
        self.upper[live, :most, sizes], self.upper[live, sizes, sizes] = parts, norms
        self.sizes[live] += 1
        if self.mode == GAIN:
            products = new[:, :n].astype(np.float32) @ self.coarse.T
            self.scores[live] -= alpha[:, None].astype(np.float32) * products
            self.den[live] -= products**2

    def _keep_positive(self, row: int) -> None:
        """Non-negative least squares on the support; atoms of weight zero leave it."""
        size, n, limits = self.sizes[row], self.signals.shape[1], self.limits
        if (self._weights(row) > 0).all():
            return
        support = self.support[row, :size]
        matrix = np.vstack([self.atoms[support].T, limits.penalty**0.5 * np.eye(size)])
        stay = nnls(matrix, np.append(self.signals[row], np.zeros(size)))[0] > 0
        self.sizes[row] = 0
        self.residual[row, :n], self.residual[row, n:] = self.signals[row], 0
        self.basis[row], self.upper[row] = 0, 0
        for atom in support[stay].copy():
            self._append(np.array([row]), np.array([atom]))
