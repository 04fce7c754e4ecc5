"""The contest of classifiers: greedy models with a ridge and boosted ones, on all folds in lock-step.

At each size the columns with the largest gradient join the support, one at a time up to 10 and then more, and
a few damped Newton steps from the last model fit all coefficients. Newton's equations are solved directly for
few dense columns and by conjugate gradients else. Ridges are searched from 0.1 towards smaller ones while the
held-out loss falls. A fit on all rows takes the same number of Newton steps at the same sizes: a model that
is fitted more closely than those that were judged predicts worse. Boosting moves one coefficient at a time,
by a fifth of the step that a bound on the curvature allows: it shrinks as an l1 penalty does, and wins where
a signal is weak or has many columns and few rows.

Two classes are one problem. One-vs-rest is one problem for each class; these share size and ridge but not
their columns, unless `shared_support` makes them one problem of several outputs. Multinomial classes are one
problem.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from skpursuit.estimators.choice.contest import Candidate, expect_paths, follow, search_ridges
from skpursuit.estimators.choice.families import MOST_COLUMNS, best_columns
from skpursuit.estimators.choice.squared_folds import ScaledData
from skpursuit.estimators.folds import Folds
from skpursuit.estimators.linear_fit import LinearFit
from skpursuit.numerics.arrays import NO_COLUMNS, Floats, Indices
from skpursuit.problem.losses import Loss

RIDGE, SMALLER, LARGER = 0.1, (0.01, 1e-3, 1e-4), (1.0,)
SINGLE, GROWTH = 10, 1.4
NEWTON_STEPS = 3
ENOUGH = 1e-5  # decrease of the mean loss below which Newton stops
MOST_DIRECT = 120  # dense columns up to which Newton's equations are solved directly
MOST_CG = 25
LEAST_CURVATURE = 1e-4
STEP, MOST_STEPS = 0.2, 250
BOOST_RECORDS = np.unique(np.geomspace(1, MOST_STEPS, 25).astype(int)).tolist()
MOST_BOOSTED = 5e6  # entries of X times folds


Fitted = tuple[Indices, Floats, Floats]  # columns, their coefficients and the intercept, of scaled columns


@dataclass(frozen=True)
class Grown:
    """Models of all folds and problems at one size, and their losses on the rows held out."""

    fits: list[list[Fitted]]
    fold_losses: Floats
    row_losses: Floats


def class_sizes(most: int) -> list[int]:
    """1, 2, ..., 10, then larger by a factor."""
    sizes = list(range(1, min(SINGLE, most) + 1))
    while sizes[-1] < most:
        sizes.append(min(most, int(sizes[-1] * GROWTH)))
    return sizes


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
        losses = self.loss.value(self.y, self.z)
        return losses if losses.ndim == 1 else losses.sum(axis=1)

    def add(self, new: Indices) -> None:
        """Columns join the support, with coefficients of zero."""
        self.columns = np.concatenate([self.columns, new])
        self.coef = np.vstack([self.coef, np.zeros((len(new), self.coef.shape[1]))])

    def _objective(self, z: Floats, coef: Floats, ridge: float) -> float:
        losses = self.loss.value(self.y, z)
        losses = losses if losses.ndim == 1 else losses.sum(axis=1)
        return float(self.weights[:, 0] @ losses) / self.total + 0.5 * ridge * float((coef**2).sum())

    def fit(self, rows: Any, means: Floats, ridge: float, steps: int = NEWTON_STEPS) -> None:
        """Some damped Newton steps on the support; `rows` (k, n) has its columns, less `means`."""
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
    """Newton's equations of a model on its support."""

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
        model = self.model
        curvature = np.maximum(model.loss.curvature(model.y, model.z), LEAST_CURVATURE)
        curvature *= model.weights / model.total
        few = not issparse(self.rows) and len(slope) <= MOST_DIRECT
        if few and not model.loss.couples_targets:
            return self._solve(curvature, slope, slope_b)
        return self._iterate(curvature, slope, slope_b)

    def _solve(self, curvature: Floats, slope: Floats, slope_b: Floats) -> tuple[Floats, Floats]:
        """Exactly, output by output, with the intercept eliminated."""
        move, move_b = np.zeros_like(slope), np.zeros_like(slope_b)
        for t, bend in enumerate(curvature.T):
            weighted, total = self.rows * bend, bend.sum()
            matrix, right = weighted @ self.rows.T, -slope[:, t]
            cross = weighted.sum(axis=1)
            if self.model.fit_intercept:
                matrix -= np.outer(cross, cross / total)
                right = right + cross * (slope_b[t] / total)
            matrix.flat[:: len(matrix) + 1] += self.ridge
            move[:, t] = np.linalg.solve(matrix, right)
            if self.model.fit_intercept:
                move_b[t] = -(slope_b[t] + cross @ move[:, t]) / total
        return move, move_b

    def _iterate(self, curvature: Floats, slope: Floats, slope_b: Floats) -> tuple[Floats, Floats]:
        """By conjugate gradients, each coefficient in units of its own curvature."""
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


class ClassArena:
    """Judges classifiers on the folds by their loss.

    Parameters
    ----------
    data : ScaledData
    loss : Loss
    targets : list
        Labels -1 and +1, (n,) or (n, m), or class numbers of a loss that couples its outputs.
    folds : Folds
    most : int, optional
        The largest number of columns.
    """

    loss_unit = 1.0

    def __init__(
        self, data: ScaledData, loss: Loss, targets: list[Any], folds: Folds, most: int | None
    ) -> None:
        self.data, self.loss, self.folds = data, loss, folds
        shapes = [loss.outputs(y) for y in targets]
        self.vectors = [shape == () for shape in shapes]
        self.outputs = [int(np.prod(shape)) for shape in shapes]
        self.targets = [y[:, None] if vector else y for y, vector in zip(targets, self.vectors)]
        scaled = data.scaled()
        self.rows = csr_array(scaled.T) if issparse(scaled) else np.ascontiguousarray(scaled.T)
        d = self.rows.shape[0]
        self.most = min(d, MOST_COLUMNS) if most is None else min(d, most)
        self.limited = most is None and self.most < d
        small = not issparse(self.rows) and self.rows.size * folds.shape[0] <= MOST_BOOSTED
        self.boosts = small and max(self.outputs) == 1
        self.entries_read = 0

    # -- judging ------------------------------------------------------------------------------------------

    def fold_losses(self, model: Grown) -> Floats:
        """Sum of the losses of the test rows of each fold."""
        return model.fold_losses

    def row_losses(self, model: Grown) -> Floats:
        """Loss of each sampled row by the models that did not see it."""
        return model.row_losses

    def features(self, model: Grown) -> float:
        """Number of columns of a model, on average over the folds."""
        return float(np.mean([max(len(columns) for columns, _, _ in fits) for fits in model.fits]))

    def null(self) -> Grown:
        """The best constants."""
        return self._judged(self._start(self.folds), self.folds)

    def fits(self, model: Grown) -> list[list[LinearFit]]:
        """For each fold the models of all problems, in terms of X as it was given."""
        found = []
        for fits in model.fits:
            each = []
            for (columns, coef, intercept), vector in zip(fits, self.vectors):
                coef = coef / self.data.scale[columns, None]
                intercept = intercept - self.data.centre[columns] @ coef
                each.append(
                    LinearFit(columns, *((coef[:, 0], intercept[0]) if vector else (coef, intercept)))
                )
            found.append(each)
        return found

    # -- competing ----------------------------------------------------------------------------------------

    def paths(self, ridges: Any) -> Iterator[list[Candidate]]:
        """The boosted path, and those of some ridges; `ridges` is "auto" or a list of those to try."""
        many = 4 if isinstance(ridges, str) else len(ridges)
        expect_paths(*(["boost"] if self.boosts else []), *["greedy"] * many)
        if self.boosts:
            yield follow(self, "boost", 0.0, self._boosted(self.folds), patience=len(BOOST_RECORDS))
        if isinstance(ridges, str):
            yield from search_ridges(self._path, RIDGE, SMALLER, LARGER)
        else:
            for ridge in ridges:
                yield self._path(ridge)

    def _path(self, ridge: float) -> list[Candidate]:
        return follow(self, "greedy", ridge, self._models(self.folds, ridge))

    def refit(self, path: list[Candidate]) -> list[list[LinearFit]]:
        """The models of a path, fitted on all rows by the same schedule."""
        whole = self.folds.whole()
        boosted = path[0].family == "boost"
        models = self._boosted(whole) if boosted else self._models(whole, path[0].ridge)
        return [self.fits(model)[0] for (_, model), _ in zip(models, path)]

    def _start(self, folds: Folds) -> list[list[Growth]]:
        intercept = self.data.fit_intercept
        return [
            [Growth(self.loss, y, m, train, intercept) for y, m in zip(self.targets, self.outputs)]
            for train in folds.train
        ]

    def _models(self, folds: Folds, ridge: float) -> Iterator[tuple[int, Grown]]:
        models = self._start(folds)
        for size in class_sizes(self.most):
            self._add(models, size)
            for growth, train in zip(models, folds.train):
                for model in growth:
                    rows = self.rows[model.columns]
                    centred = issparse(rows) and self.data.fit_intercept
                    means = (
                        np.asarray(rows @ train) / model.total if centred else np.zeros(len(model.columns))
                    )
                    model.fit(rows, means, ridge)
            yield size, self._judged(models, folds)

    def _boosted(self, folds: Folds) -> Iterator[tuple[int, Grown]]:
        """Small steps along the columns with the largest gradients, in units of a bound of the curvature."""
        models = self._start(folds)
        every = [model for growth in models for model in growth]
        y, z = (np.hstack([part(model) for model in every]) for part in (lambda m: m.y, lambda m: m.z))
        weights = np.hstack([model.weights for model in every])
        unit = (self.loss.smoothness or 1.0) * weights.sum(axis=0)
        intercepts = np.array([model.intercept[0] for model in every])
        coef, each = np.zeros((len(self.rows), len(every))), np.arange(len(every))
        for step in range(1, MOST_STEPS + 1):
            slopes = self.rows @ (weights * self.loss.residual(y, z))
            self.entries_read += self.rows.size
            best = np.abs(slopes).argmax(axis=0)
            change = -STEP * slopes[best, each] / unit
            coef[best, each] += change
            z += self.rows[best].T * change
            if self.data.fit_intercept:
                shift = -(weights * self.loss.residual(y, z)).sum(axis=0) / unit
                z += shift
                intercepts += shift
            if step in BOOST_RECORDS:
                for p, model in enumerate(every):
                    model.columns = np.flatnonzero(coef[:, p])
                    model.coef, model.z = coef[model.columns, p : p + 1], z[:, p : p + 1]
                    model.intercept = intercepts[p : p + 1].copy()
                yield step, self._judged(models, folds)

    def _slopes(self, every: list[Growth]) -> list[Floats]:
        """Gradients (d, m) of all models, by one product."""
        self.entries_read += self.rows.size
        slopes = np.asarray(self.rows @ np.hstack([model.residual() for model in every]))
        return np.split(slopes, np.cumsum([model.coef.shape[1] for model in every])[:-1], axis=1)

    def _add(self, models: list[list[Growth]], size: int) -> None:
        """Let the columns with the largest gradients join, of all folds and problems by one product."""
        every = [model for growth in models for model in growth]
        for model, part in zip(every, self._slopes(every)):
            score = np.abs(part[:, 0]) if part.shape[1] == 1 else np.sqrt((part**2).sum(axis=1))
            score[model.columns] = -1.0
            model.add(best_columns(score, size - len(model.columns)))

    def _judged(self, models: list[list[Growth]], folds: Folds) -> Grown:
        losses = np.array([sum(model.losses() for model in growth) for growth in models])
        weighted = (losses * folds.test).T
        fits: list[list[Fitted]] = []
        for growth, train in zip(models, folds.train):
            each: list[Fitted] = []
            for model in growth:
                means: Any = 0.0
                if issparse(self.rows) and self.data.fit_intercept:
                    means = np.asarray(self.rows[model.columns] @ train) / model.total @ model.coef
                each.append((model.columns, model.coef, model.intercept - means))
            fits.append(each)
        return Grown(fits, weighted.sum(axis=0), folds.per_row(weighted[folds.sample]))
