"""The contest of classifiers: greedy models with a ridge and boosted ones, on all folds in lock-step.

At each size the columns with the largest gradient join the support, one at a time up to 10 and then more, and
a few damped Newton steps from the last model fit all coefficients. Newton's equations are solved directly for
few dense columns and by conjugate gradients else. Ridges are searched from 0.1 towards smaller ones while the
held-out loss falls. A fit on all rows takes the same number of Newton steps at the same sizes: a model that
is fitted more closely than those that were judged predicts worse. Boosting moves one coefficient at a time,
by a fifth of the step that a bound on the curvature allows: it shrinks as an l1 penalty does, and wins where
a signal is weak or has many columns and few rows. It goes on among the likely columns for longer and longer
before it looks at all of them again, which hardly changes its way.

Two classes are one problem. One-vs-rest is one problem for each class; these share size and ridge but not
their columns, unless "ovr_shared" makes them one problem of several outputs. Multinomial classes are one
problem.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from skpursuit.estimators.choice.contest import Arena, Candidate, Judged, expect_paths, follow, search_ridges
from skpursuit.estimators.choice.families import MOST_COLUMNS, best_columns, growing_sizes
from skpursuit.estimators.choice.growth import Growth, fit_together
from skpursuit.estimators.choice.squared_folds import ScaledData
from skpursuit.estimators.folds import Folds
from skpursuit.estimators.linear_fit import LinearFit, mean_fit
from skpursuit.numerics.arrays import Floats, Indices
from skpursuit.problem.losses import Loss

RIDGE, SMALLER, LARGER = 0.1, (0.01, 1e-3, 1e-4), (1.0,)
SINGLE, GROWTH = 10, 1.4
MOST_DIRECT = 125  # dense columns up to which Newton's equations are solved directly
TOGETHER = 1e6  # entries of columns of the models that are fitted in one batch
STEP, MOST_STEPS = 0.2, 1000
LIKELY = 64  # columns of each model with the largest gradients, among which boosting goes on for a while
AGAIN = 8  # all columns are looked at again after this share of the steps so far
BOOST_RECORDS = np.unique(np.geomspace(1, MOST_STEPS, 35).astype(int)).tolist()
BOOST_TURNED = 2.0  # standard errors by which their loss must have risen: it may fall a second time
MOST_BOOSTED = 2e7  # entries of X times folds
ARRIVED = 0.025  # share of the largest step: boosting ends once all steps are as small


Fitted = tuple[Indices, Floats, Floats]  # columns, their coefficients and the intercept, of scaled columns


class ClassArena(Arena):
    """Judges classifiers on the folds by their loss, with at most `most` columns.

    Targets are labels -1 and +1, (n,) or (n, m), or class numbers of a loss that couples its outputs.
    """

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
        self.most = min(d, MOST_COLUMNS, int(2 * folds.rows)) if most is None else min(d, most)
        self.limited = most is None and self.most < d
        small = not issparse(self.rows) and self.rows.size * folds.shape[0] <= MOST_BOOSTED
        self.boosts = small and max(self.outputs) == 1

    def null(self) -> Judged:
        """The best constants."""
        return self._judged(self._start(self.folds), self.folds)

    def fits(self, model: list[list[Fitted]]) -> list[list[LinearFit]]:
        """For each fold the models of all problems, in terms of X as it was given."""
        found = []
        for fits in model:
            each = []
            for (columns, coef, intercept), vector in zip(fits, self.vectors):
                coef = coef / self.data.scale[columns, None]
                intercept = intercept - self.data.centre[columns] @ coef
                each.append(
                    LinearFit(columns, *((coef[:, 0], intercept[0]) if vector else (coef, intercept)))
                )
            found.append(each)
        return found

    def paths(self, ridges: Any) -> Iterator[list[Candidate]]:
        """The boosted path, and those of some ridges; `ridges` is "auto" or a list of those to try."""
        many = 4 if isinstance(ridges, str) else len(ridges)
        expect_paths(*(["boost"] if self.boosts else []), *["greedy"] * many)
        if self.boosts:
            yield follow(self, "boost", 0.0, self._boosted(self.folds), turned=BOOST_TURNED)
        if isinstance(ridges, str):
            yield from search_ridges(self._path, RIDGE, SMALLER, LARGER)
        else:
            for ridge in ridges:
                yield self._path(ridge)

    def _path(self, ridge: float) -> list[Candidate]:
        return follow(self, "greedy", ridge, self._models(self.folds, ridge))

    def means(self, models: Iterable[list[list[Fitted]]], other: list[list[Fitted]]) -> Iterator[Judged]:
        """The means of each model with the other one."""
        found = self._start(self.folds)
        for model in models:
            for growth, *pairs in zip(found, model, other):
                for one, *fits in zip(growth, *pairs):
                    one.columns, one.coef, one.intercept = mean_fit([LinearFit(*fit) for fit in fits])[:3]
                    one.z = self.rows[one.columns].T @ one.coef + one.intercept
            yield self._judged(found, self.folds)

    def refit(self, path: list[Candidate]) -> list[list[LinearFit]]:
        """The models of a path, fitted on all rows by the same schedule."""
        whole = self.folds.whole()
        boosted = path[0].family == "boost"
        models = self._boosted(whole, ends=False) if boosted else self._models(whole, path[0].ridge)
        return [self.fits(judged.model)[0] for _, (_, judged) in zip(path, models)]

    def _start(self, folds: Folds) -> list[list[Growth]]:
        intercept = self.data.fit_intercept
        return [
            [Growth(self.loss, y, m, train, intercept) for y, m in zip(self.targets, self.outputs)]
            for train in folds.train
        ]

    def _models(self, folds: Folds, ridge: float) -> Iterator[tuple[int, Judged]]:
        models = self._start(folds)
        for size in growing_sizes(self.most, SINGLE, GROWTH):
            self._add(models, size)
            for growth in zip(*models):
                self._fit(growth, folds, ridge)
            yield size, self._judged(models, folds)

    def _fit(self, growth: Sequence[Growth], folds: Folds, ridge: float) -> None:
        """Fit the models of a problem, one for each fold."""
        size, n = len(growth[0].columns), len(growth[0].z)
        if not issparse(self.rows) and size <= MOST_DIRECT and not self.loss.couples_targets:
            batch = max(1, int(TOGETHER / (size * n * growth[0].coef.shape[1])))
            for start in range(0, len(growth), batch):
                fit_together(growth[start : start + batch], self.rows, ridge)
            return
        for model, train in zip(growth, folds.train):
            rows, means = self.rows[model.columns], np.zeros(size)
            if issparse(rows) and self.data.fit_intercept:
                means = np.asarray(rows @ train) / model.total
            model.fit(rows, means, ridge)

    def _boosted(self, folds: Folds, ends: bool = True) -> Iterator[tuple[int, Judged]]:
        """Steps, in units of a bound of the curvature, along the largest gradients; it `ends` on arrival."""
        models = self._start(folds)
        every = [model for growth in models for model in growth]
        y, z = (np.hstack([part(model) for model in every]) for part in (lambda m: m.y, lambda m: m.z))
        weights = np.hstack([model.weights for model in every])
        unit = (self.loss.smoothness or 1.0) * weights.sum(axis=0)
        intercepts = np.array([model.intercept[0] for model in every])
        coef, each = np.zeros((len(self.rows), len(every))), np.arange(len(every))
        again, steepest = 1, 0.0
        for step in range(1, MOST_STEPS + 1):
            r = weights * self.loss.residual(y, z)
            if step == again:
                likely, again = self._likely(r), step + 1 + step // AGAIN
                rows = self.rows[likely]
            slopes = rows @ r
            best = np.abs(slopes).argmax(axis=0)
            change = -STEP * slopes[best, each] / unit
            coef[likely[best], each] += change
            z += rows[best].T * change
            if self.data.fit_intercept:
                shift = -(weights * self.loss.residual(y, z)).sum(axis=0) / unit
                z += shift
                intercepts += shift
            steepest = max(steepest, np.abs(change).max())
            if step in BOOST_RECORDS:
                for p, model in enumerate(every):
                    model.columns = np.flatnonzero(coef[:, p])
                    model.coef, model.z = coef[model.columns, p : p + 1], z[:, p : p + 1]
                    model.intercept = intercepts[p : p + 1].copy()
                yield step, self._judged(models, folds)
                if ends and np.abs(change).max() <= ARRIVED * steepest:
                    return

    def _likely(self, r: Floats) -> Indices:
        """The columns with the largest gradients, some for each model."""
        sizes, few = np.abs(self.rows @ r), min(LIKELY, len(self.rows))
        self.entries_read += self.rows.size
        return np.flatnonzero((sizes >= np.partition(sizes, -few, axis=0)[-few]).any(axis=1))

    def _add(self, models: list[list[Growth]], size: int) -> None:
        """Let the columns with the largest gradients join, of all folds and problems by one product."""
        every = [model for growth in models for model in growth]
        self.entries_read += self.rows.size
        slopes = np.asarray(self.rows @ np.hstack([model.residual() for model in every]))
        edges = np.cumsum([model.coef.shape[1] for model in every])[:-1]
        for model, part in zip(every, np.split(slopes, edges, axis=1)):
            score = np.abs(part[:, 0]) if part.shape[1] == 1 else np.sqrt((part**2).sum(axis=1))
            score[model.columns] = -1.0
            model.add(best_columns(score, size - len(model.columns)))

    def _judged(self, models: list[list[Growth]], folds: Folds) -> Judged:
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
        rows = folds.per_row(weighted[folds.sample])
        return Judged(fits, weighted.sum(axis=0), lambda: rows)
