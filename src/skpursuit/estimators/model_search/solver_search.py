"""The search over solvers by name: each runs on every fold, for each ridge, and all its sizes compete.

This is the plain way, for every solver and loss. The runs of all folds go on side by side, some sizes at a
time, and end together once the loss has clearly turned.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count, islice

import numpy as np
from sklearn.utils.parallel import Parallel, delayed

from skpursuit.data import Design
from skpursuit.estimators import linear_fit
from skpursuit.estimators.cross_validation import Folds
from skpursuit.estimators.linear_fit import FitConfig, LinearFit, path_fits, predict_rows
from skpursuit.estimators.model_search.search import (
    PATH_PATIENCE,
    Candidate,
    CandidateSearch,
    HeldOutLoss,
    early_stopped_path,
)
from skpursuit.estimators.model_search.squared_search import SquaredSearch, greedy_path
from skpursuit.numerics.arrays import NO_COLUMNS, Floats
from skpursuit.progress import current_monitor

Models = Iterator[tuple[int, HeldOutLoss[list[list[LinearFit]]]]]
OMP_JITTER = 1e-10  # share of a column that keeps dependent ones solvable
MOST_BYTES = 2**31  # of columns of all folds at once


@dataclass(eq=False)
class SolverSearch(CandidateSearch[list[list[LinearFit]]]):
    """Evaluates models of `fit_linear` on the folds by the loss they were fitted with."""

    base: Design
    configs: Sequence[FitConfig]  # one for each solver that competes
    targets: list[Floats]  # one for each problem
    folds: Folds
    max_size: int
    limit: int  # columns to which a search that is `widened` goes at last
    n_jobs: int | None  # folds that are fitted at once
    grams: SquaredSearch | None  # Gram matrices of the folds, for models of "omp" without reading X again
    ends_early: bool  # once the loss has clearly turned

    def __post_init__(self) -> None:
        self.tests = [np.flatnonzero(test) for test in self.folds.test]

    def _fold(self, config: FitConfig, f: int, group: int) -> Iterator[list[tuple[list[LinearFit], Floats]]]:
        """The models of one fold, so many sizes at a time, with the losses of its test rows."""
        base, train = self.base.for_run(private=True), self.folds.train[f]
        path = path_fits(config, base, self.targets, train, self.max_size)
        sizes = ([fit._replace(finish=None) for fit in fits] for fits in path)  # it would hold on to states
        while models := list(islice(sizes, group)):
            yield list(zip(models, self._losses_of(base, models, f)))

    def _losses_of(self, base: Design, models: list[list[LinearFit]], f: int) -> Floats:
        """Losses (models, rows) of some models on the test rows of a fold."""
        rows = self.tests[f]
        losses = np.zeros((len(models), len(rows)))
        for fits, y in zip(zip(*models), self.targets):
            for line, z in zip(losses, predict_rows(base, list(fits), rows)):
                line += self.configs[0].loss.value(y[rows], z).reshape(len(rows), -1).sum(axis=1)
        return losses

    def _evaluate(self, folds: Iterable[tuple[list[LinearFit], Floats]]) -> HeldOutLoss:
        """Models of all folds, with the losses of their test rows."""
        fits, losses = zip(*folds)
        sums, total = [], np.zeros(self.folds.shape[1])
        for rows, test, found in zip(self.tests, self.folds.test, losses):
            weighted = test[rows] * found
            total[rows] += weighted
            sums.append(weighted.sum())
        of_rows = self.folds.mean_row_losses(total[self.folds.sampled_rows, None])
        return HeldOutLoss(list(fits), np.array(sums), lambda: of_rows)

    def candidate_paths(self, ridges: str | list[float]) -> Iterator[list[Candidate]]:
        """The path of every solver and ridge; "auto" is the ridge that the solver has by default."""
        configs = self.configs
        if not isinstance(ridges, str):
            configs = [replace(config, ridge=ridge) for config in configs for ridge in ridges]
        current_monitor().set_total(len(configs) * self.max_size)
        for config in configs:
            models, grams = self._models(config), self.grams
            if grams is not None and config.name == "omp":
                how = config.ridge or 0.0, list(range(1, self.max_size + 1)), False, OMP_JITTER
                found = ((size, one, grams.evaluate(one)) for size, one in greedy_path(grams.squared, *how))
                models = ((k, HeldOutLoss(grams.fold_fits(one), *loss[1:])) for k, one, loss in found)
            patience = PATH_PATIENCE if self.ends_early else self.max_size
            yield early_stopped_path(self, config.name, config.ridge or 0.0, models, patience, config=config)

    def widened(self) -> SolverSearch | None:
        more = min(2 * self.max_size, self.limit)
        return replace(self, max_size=more) if more > self.max_size else None

    def _models(self, config: FitConfig) -> Models:
        """Models of all folds, size by size; where their factors need much memory, fold after fold."""
        n_folds, n = self.folds.shape
        nested = config.passes_all_sizes  # else each size is a run of its own
        small = not nested or (self.base.in_memory and 8 * n_folds * n * self.max_size <= MOST_BYTES)
        group = (PATH_PATIENCE if nested else 1) if small else self.max_size + 1
        watch, sizes = current_monitor(), count(1)
        folds = [self._fold(config, f, group) for f in range(n_folds)]

        def more(f: int) -> list[tuple[list[LinearFit], Floats]]:
            with watch.time_share(1.0 if small else 1 / (n_folds - f)):
                return next(folds[f], [])

        run = Parallel(n_jobs=self.n_jobs, require="sharedmem")
        while True:
            parts = run(delayed(more)(f) for f in range(n_folds))
            for found in zip(*parts):
                yield next(sizes), self._evaluate(found)
            if min(len(part) for part in parts) < group:
                return

    def null_model(self) -> HeldOutLoss:
        models = [[self._constant(y, train) for y in self.targets] for train in self.folds.train]
        return self._evaluate(
            (fits, self._losses_of(self.base, [fits], f)[0]) for f, fits in enumerate(models)
        )

    def _constant(self, y: Floats, weights: Floats) -> LinearFit:
        """The best constant of a problem on some rows; zero without an intercept."""
        loss, shape, rows = self.configs[0].loss, self.configs[0].loss.prediction_shape(y), weights > 0
        constant: Floats | float = np.zeros(shape)
        if self.configs[0].fit_intercept and loss.couples_targets:
            shares = np.bincount(y.astype(np.intp), weights, minlength=shape[0]) / weights.sum()
            constant = np.log(np.maximum(shares, 1e-12))
        elif self.configs[0].fit_intercept:
            constant = linear_fit.optimal_intercept(loss, y[rows], weights[rows])
        return LinearFit(NO_COLUMNS, np.empty((0, *shape)), constant)

    def fold_fits(self, model: list[list[LinearFit]]) -> list[list[LinearFit]]:
        return model

    def refit(self, path: list[Candidate]) -> list[list[LinearFit]]:
        weights = None if (self.folds.weights == 1).all() else self.folds.weights
        return linear_fit.fitted_path(path[0].config, self.base, self.targets, weights, len(path))
