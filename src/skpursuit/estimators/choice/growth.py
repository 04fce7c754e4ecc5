"""A growing model of classes on the training rows of one fold, and Newton's steps that fit it.

A few damped steps are taken from the last model. Dense models of few columns take them together, all folds in
one batch, because their equations are small; many or sparse columns, and losses that couple their outputs,
go one by one, by conjugate gradients.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import issparse

from skpursuit.numerics.arrays import NO_COLUMNS, Floats, Indices
from skpursuit.problem.losses import Loss

NEWTON_STEPS = 3
ENOUGH = 1e-5  # decrease of the mean loss below which Newton stops
MOST_CG = 25
LEAST_CURVATURE = 1e-4
JITTER = 1e-10  # share of a column that keeps equal ones solvable


class Growth:
    """A model of one problem on the training rows of one fold; predictions z (n, m) are of all rows."""

    def __init__(self, loss: Loss, y: Any, outputs: int, weights: Floats, fit_intercept: bool) -> None:
        self.loss, self.y, self.weights = loss, y, weights[:, None]
        self.total, self.fit_intercept = float(weights.sum()), fit_intercept
        self.columns = NO_COLUMNS
        self.coef, self.intercept = np.zeros((0, outputs)), np.zeros(outputs)
        self.z = np.zeros((len(weights), outputs))
        if fit_intercept:
            self.fit(np.empty((0, len(weights))), np.empty(0), 0.0, steps=20)

    def residual(self) -> Floats:
        """Slopes of the losses of the training rows, (n, m)."""
        return self.weights * self.loss.residual(self.y, self.z)

    def losses(self) -> Floats:
        """Loss of each row, summed over outputs."""
        return self.loss.value(self.y, self.z).reshape(len(self.z), -1).sum(axis=1)

    def add(self, new: Indices) -> None:
        """Columns join the support, with coefficients of zero."""
        self.columns = np.concatenate([self.columns, new])
        self.coef = np.vstack([self.coef, np.zeros((len(new), self.coef.shape[1]))])

    def _objective(self, z: Floats, coef: Floats, ridge: float) -> float:
        losses = self.loss.value(self.y, z).reshape(len(z), -1).sum(axis=1)
        return float(self.weights[:, 0] @ losses) / self.total + 0.5 * ridge * float((coef**2).sum())

    def fit(self, rows: Any, means: Floats, ridge: float, steps: int = NEWTON_STEPS) -> None:
        """Some damped Newton steps on the support; `rows` (k, n) less `means` are its columns."""
        value = self._objective(self.z, self.coef, ridge)
        newton = _Newton(self, rows, means, ridge)
        for _ in range(steps):
            slope, slope_b = newton.slopes()
            move, move_b = newton.direction(slope, slope_b)
            decrease = -float((slope * move).sum() + slope_b @ move_b)
            if decrease < 0.1 * ENOUGH:
                return
            shift, step = newton.times(move) + move_b, 1.0
            while True:
                trial = self._objective(self.z + step * shift, self.coef + step * move, ridge)
                if trial <= value - 1e-4 * step * decrease or step < 1e-3:
                    break
                step /= 2
            if not trial < value:
                return
            self.z, self.coef = self.z + step * shift, self.coef + step * move
            self.intercept = self.intercept + step * move_b
            if value - trial < ENOUGH:
                return
            value = trial


class _Newton:
    """Newton's equations of a model on its support, solved by conjugate gradients."""

    def __init__(self, model: Growth, rows: Any, means: Floats, ridge: float) -> None:
        self.model, self.rows, self.means, self.ridge = model, rows, means[:, None], ridge
        self.squares: Any = None

    def times(self, coef: Floats) -> Floats:
        """Centred columns times coefficients, (n, m)."""
        return np.asarray(self.rows.T @ coef) - (self.means * coef).sum(axis=0)

    def back(self, r: Floats) -> Floats:
        """Products of the centred columns with r, (k, m)."""
        return np.asarray(self.rows @ r) - self.means * r.sum(axis=0)

    def slopes(self) -> tuple[Floats, Floats]:
        model = self.model
        r = model.residual() / model.total
        return self.back(r) + self.ridge * model.coef, r.sum(axis=0) * model.fit_intercept

    def direction(self, slope: Floats, slope_b: Floats) -> tuple[Floats, Floats]:
        """Conjugate gradients, each coefficient in units of its own curvature."""
        model = self.model
        curvature = np.maximum(model.loss.curvature(model.y, model.z), LEAST_CURVATURE)
        curvature *= model.weights / model.total
        if self.squares is None:
            self.squares = self.rows.power(2) if issparse(self.rows) else self.rows**2
        diagonal = np.asarray(self.squares @ curvature) + self.ridge
        diagonal_b = curvature.sum(axis=0)
        move, move_b = np.zeros_like(slope), np.zeros_like(slope_b)
        left, left_b = -slope, -slope_b
        scaled, scaled_b = left / diagonal, left_b / diagonal_b
        ahead, ahead_b = scaled, scaled_b
        size = first = float((left * scaled).sum() + left_b @ scaled_b)
        for _ in range(MOST_CG):
            if size <= 1e-2 * first or size == 0:
                break
            bent = self._bent(curvature, self.times(ahead) + ahead_b)
            turn, turn_b = self.back(bent) + self.ridge * ahead, bent.sum(axis=0) * self.model.fit_intercept
            bend = float((ahead * turn).sum() + ahead_b @ turn_b)
            if bend <= 0:  # one constant for all classes changes no probability
                break
            length = size / bend
            move, move_b = move + length * ahead, move_b + length * ahead_b
            left, left_b = left - length * turn, left_b - length * turn_b
            scaled, scaled_b = left / diagonal, left_b / diagonal_b
            last, size = size, float((left * scaled).sum() + left_b @ scaled_b)
            ahead, ahead_b = scaled + (size / last) * ahead, scaled_b + (size / last) * ahead_b
        return move, move_b

    def _bent(self, curvature: Floats, shift: Floats) -> Floats:
        """Second derivatives of the losses times a change of the predictions."""
        model = self.model
        if not model.loss.couples_targets:
            return curvature * shift
        p = model.loss.probabilities(model.z)
        return (model.weights / model.total) * p * (shift - (p * shift).sum(axis=1, keepdims=True))


def fit_together(models: Sequence[Growth], rows: Floats, ridge: float) -> None:
    """The steps of `Growth.fit` for models of as many columns, with Newton's equations solved directly.

    The loss must not couple outputs: each is a fit of its own, P in all. `rows` (d, n) are all columns.
    """
    first, outputs = models[0], models[0].coef.shape[1]
    block = np.repeat(rows[np.array([model.columns for model in models])], outputs, axis=0)  # (P, k, n)
    y, z = np.hstack([model.y for model in models]), np.hstack([model.z for model in models])
    weights = np.repeat(np.hstack([model.weights / model.total for model in models]), outputs, axis=1)
    coef = np.vstack([model.coef.T for model in models])
    intercept = np.concatenate([model.intercept for model in models])

    def objectives(z: Floats, coef: Floats) -> Floats:
        return (weights * first.loss.value(y, z)).sum(axis=0) + 0.5 * ridge * np.vecdot(coef, coef)

    values = objectives(z, coef)
    for _ in range(NEWTON_STEPS):
        r = weights * first.loss.residual(y, z)
        slope = np.matmul(block, r.T[:, :, None])[:, :, 0] + ridge * coef
        slope_b = r.sum(axis=0) * first.fit_intercept
        bend = weights * np.maximum(first.loss.curvature(y, z), LEAST_CURVATURE)
        move, move_b = _moves(block, bend.T, ridge, slope, slope_b, first.fit_intercept)
        decrease = -(np.vecdot(slope, move) + slope_b * move_b)
        shift, step = np.matmul(move[:, None], block)[:, 0].T + move_b, np.ones(len(block))
        while True:
            trials = objectives(z + step * shift, coef + step[:, None] * move)
            far = (trials > values - 1e-4 * step * decrease) & (step >= 1e-3)
            if not far.any():
                break
            step[far] /= 2
        step[~(trials < values)] = 0.0
        z, coef, intercept = z + step * shift, coef + step[:, None] * move, intercept + step * move_b
        gained, values = values - trials, np.where(step, trials, values)
        if not (gained >= ENOUGH).any():
            break
    for p, model in enumerate(models):
        part = slice(p * outputs, (p + 1) * outputs)
        model.z, model.coef, model.intercept = z[:, part], coef[part].T, intercept[part]


def _moves(
    block: Floats, bend: Floats, ridge: float, slope: Floats, slope_b: Floats, fit_intercept: bool
) -> tuple[Floats, Floats]:
    """Solutions of Newton's equations of all models, the intercept eliminated."""
    weighted, totals = block * bend[:, None], bend.sum(axis=1)
    matrices, cross = weighted @ block.transpose(0, 2, 1), weighted.sum(axis=2) * fit_intercept
    matrices -= cross[:, :, None] * (cross / totals[:, None])[:, None]
    places = np.arange(slope.shape[1])
    matrices[:, places, places] += ridge + JITTER * matrices[:, places, places]
    right = cross * (slope_b / totals)[:, None] - slope
    move = np.linalg.solve(matrices, right[:, :, None])[:, :, 0]
    return move, (slope_b + np.vecdot(cross, move)) / totals * (-1.0 if fit_intercept else 0.0)
