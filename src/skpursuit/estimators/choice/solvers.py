"""The contest of solvers by name: each runs on every fold, for each ridge, and all its sizes compete.

This is the plain way, for every solver and loss: a fit for each fold, whose path gives a model of each size,
and a score of each on the rows that were held out. The families of `solver="auto"` have ways of their own
(`squared.py`, `classes.py`); `contest.py` chooses among the candidates of either.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.parallel import Parallel, delayed

from skpursuit.data import Design
from skpursuit.data.progress import Watch, current
from skpursuit.estimators.choice.contest import Candidate
from skpursuit.estimators.choice.families import greedy
from skpursuit.estimators.choice.squared import SquaredArena
from skpursuit.estimators.folds import Folds
from skpursuit.estimators.linear_fit import FitConfig, LinearFit, predictions
from skpursuit.estimators.path import CoefficientPath
from skpursuit.estimators.shifted_loss import best_constant
from skpursuit.numerics.arrays import NO_COLUMNS, Floats
from skpursuit.problem.losses import Loss
from skpursuit.problem.units import exponent_of

TINY = 1e-10  # share of a column that keeps dependent ones solvable

Model = list[list[LinearFit]]  # for each fold the models of all problems


class SolverArena:
    """Judges models of `fit_linear` on the folds by the loss they were fitted with.

    Parameters
    ----------
    base : Design
    configs : sequence of FitConfig
        One for each solver that competes.
    targets : list
        Those of each problem.
    folds : Folds
    most : int
        The largest number of columns.
    limited : bool
        Whether that is a limit of ours.
    n_jobs : int, optional
        Folds fitted at once.
    grams : SquaredArena, optional
        Gram matrices of the folds, which give the models of "omp" without further reading of X.
    """

    entries_read = 0  # the results of the runs tell

    def __init__(
        self,
        base: Design,
        configs: Sequence[FitConfig],
        targets: list[Any],
        folds: Folds,
        most: int,
        limited: bool,
        n_jobs: int | None,
        grams: SquaredArena | None = None,
    ) -> None:
        self.base, self.configs, self.targets, self.folds = base, configs, targets, folds
        self.most, self.limited, self.n_jobs = most, limited, n_jobs
        loss = configs[0].loss
        self.exponent = exponent_of(loss, np.concatenate([np.ravel(y) for y in targets]))
        self.loss: Loss = (loss.scaled(self.exponent) if self.exponent else None) or loss
        self.grams = None if self.exponent else grams
        self.tests = [np.flatnonzero(test) for test in folds.test]

    def _paths_of(self, config: FitConfig, base: Design, weights: Floats | None) -> list[CoefficientPath]:
        return [CoefficientPath.of(config, base, y, weights, self.most) for y in self.targets]

    def _one_fold(self, config: FitConfig, f: int, watch: Watch) -> tuple[list[list[LinearFit]], list[float]]:
        """Models of all sizes, and the sums of their losses on the test rows."""
        base = self.base.for_run(private=True)
        with watch.part(1 / (len(self.tests) - f)):
            paths = self._paths_of(config, base, self.folds.train[f])
        rows, length = self.tests[f], max(len(path) for path in paths)
        weights, losses = self.folds.test[f, rows], np.zeros((length, len(rows)))
        for path, y in zip(paths, self.targets):
            for k, z in enumerate(path.predict(base, rows, length)):
                losses[k] += self._losses(y[rows], z)
        models = [[path.at(k + 1) for path in paths] for k in range(length)]
        watch.count()
        return models, (losses @ weights).tolist()

    @property
    def loss_unit(self) -> float:
        """What losses are to be multiplied by: those of y beyond the ordinary are in units of their own."""
        with np.errstate(over="ignore", under="ignore"):
            return float(np.ldexp(1.0, 2 * self.exponent))

    def _losses(self, y: Any, z: Floats) -> Floats:
        if self.exponent:
            y, z = np.ldexp(y, -self.exponent), np.ldexp(z, -self.exponent)
        losses = self.loss.value(y, z)
        return losses if losses.ndim == 1 else losses.sum(axis=1)

    def paths(self, ridges: Any) -> Iterator[list[Candidate]]:
        """The path of every solver and ridge; "auto" is the ridge that the solver has by default."""
        many = 1 if isinstance(ridges, str) else len(ridges)
        current().expect(len(self.configs) * many * len(self.tests))
        for config in self.configs:
            for ridge in [config.ridge] if isinstance(ridges, str) else ridges:
                yield self._path(replace(config, ridge=ridge))

    def _path(self, config: FitConfig) -> list[Candidate]:
        if self.grams is not None and isinstance(config.solver, str) and config.solver == "omp":
            return self._path_of_grams(config, self.grams)
        watch = current()
        found = Parallel(n_jobs=self.n_jobs, require="sharedmem")(
            delayed(self._one_fold)(config, f, watch) for f in range(len(self.tests))
        )
        length = min(len(models) for models, _ in found)
        name = config.solver if isinstance(config.solver, str) else type(config.solver).__name__
        path = []
        for k in range(length):
            losses = np.array([losses[k] for _, losses in found])
            model = [models[k] for models, _ in found]
            path.append(Candidate(self, name, config.ridge or 0.0, k + 1, model, losses, config=config))
        return path

    def _path_of_grams(self, config: FitConfig, grams: SquaredArena) -> list[Candidate]:
        ridge, sizes = config.ridge or 0.0, list(range(1, self.most + 1))
        path = []
        for size, support, coef in greedy(grams.squared, ridge, sizes, normalised=False, jitter=TINY):
            model = support, coef
            losses = grams.fold_losses(model) * grams.loss_unit
            path.append(Candidate(self, "omp", ridge, size, grams.fits(model), losses, config=config))
        return path

    def fold_losses(self, model: Model) -> Floats:
        """Sum of the losses of the test rows of each fold."""
        return self._weighted(model).sum(axis=0)

    def row_losses(self, model: Model) -> Floats:
        """Loss of each sampled row by the models that did not see it."""
        return self.folds.per_row(self._weighted(model)[self.folds.sample])

    def _weighted(self, model: Model) -> Floats:
        """Losses (n, F) of the rows that a fold tests, times their weights there."""
        found = np.zeros(self.folds.test.T.shape)
        for f, (fits, rows) in enumerate(zip(model, self.tests)):
            for fit, y in zip(fits, self.targets):
                found[rows, f] += self._losses(y[rows], predictions(self.base, [fit], rows)[0])
        return found * self.folds.test.T

    def features(self, model: Model) -> float:
        """Number of columns of a model, on average over the folds."""
        return float(np.mean([max(len(fit.columns) for fit in fits) for fits in model]))

    def null(self) -> Model:
        """The best constants, one for each fold and problem; zeros without an intercept."""
        return [[self._constant(y, train) for y in self.targets] for train in self.folds.train]

    def _constant(self, y: Any, weights: Floats) -> LinearFit:
        loss, shape = self.configs[0].loss, self.configs[0].loss.outputs(y)
        if not self.configs[0].fit_intercept:
            return LinearFit(NO_COLUMNS, np.empty((0, *shape)), np.zeros(shape))
        if loss.couples_targets:
            shares = np.bincount(y.astype(np.intp), weights, minlength=shape[0]) / weights.sum()
            return LinearFit(NO_COLUMNS, np.empty((0, *shape)), np.log(np.maximum(shares, 1e-12)))
        rows = weights > 0
        return LinearFit(NO_COLUMNS, np.empty((0, *shape)), best_constant(loss, y[rows], weights[rows]))

    def fits(self, model: Model) -> list[list[LinearFit]]:
        """The models, which are in terms of X and y as they were given."""
        return model

    def refit(self, path: list[Candidate]) -> list[list[LinearFit]]:
        """The models of a path fitted on all rows."""
        weights = None if (self.folds.weights == 1).all() else self.folds.weights
        paths = self._paths_of(path[0].config, self.base, weights)
        length = min(len(path), max(len(one) for one in paths))
        return [[one.at(k + 1) for one in paths] for k in range(length)]
