"""Choosing the number of coefficients: what both cross-validated pursuit estimators share.

A scorer judges a fitted model of each size on the test rows. One that scikit-learn knows by name looks at
nothing but predictions. Those of all sizes come from one gathering of the columns that occur, so they are
handed to it. Any other scorer may look at X and at the model, so it gets the test rows of X as they were
given to `fit`, and a copy of the estimator with the coefficients of that size, which predicts what it is
asked to.
"""

from __future__ import annotations

import copy
import inspect
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import is_classifier
from sklearn.metrics import check_scoring
from sklearn.utils.parallel import Parallel, delayed

from skpursuit.data import Design
from skpursuit.estimators.base import Problems, PursuitBase, Samples, some_rows
from skpursuit.estimators.checks import check_parameters, check_path_solver
from skpursuit.estimators.folds import SplitterRoutingMixin, fold_weights
from skpursuit.estimators.linear_fit import LinearFit
from skpursuit.estimators.path import CoefficientPath, information, mean_loss
from skpursuit.loop.run import seed_of
from skpursuit.numerics.arrays import Floats, Indices
from skpursuit.numerics.blas import one_thread
from skpursuit.numerics.threads import limited
from skpursuit.problem import sparsity


@dataclass(frozen=True)
class PathData:
    """Training data, one target per problem; X is as it was given to `fit`, labels as a scorer wants them."""

    X: Any
    samples: Samples
    labels: Any
    problems: Problems
    most: int

    def given_rows(self, rows: Indices) -> Any:
        """Rows of X as it was given, by their places among the samples."""
        return some_rows(self.X, np.flatnonzero(self.samples.kept)[rows])

    def paths(self, base: Design, weights: Floats | None) -> list[CoefficientPath]:
        """One path for each problem."""
        config, targets, _ = self.problems
        return [CoefficientPath.of(config, base, y, weights, self.most) for y in targets]


class PathCVMixin(SplitterRoutingMixin, PursuitBase):
    """Fits the path on each fold, or only on all data, and keeps the best number of coefficients."""

    criterion: str
    scoring: Any
    n_jobs: int | None
    max_nonzero_coefs: int | None
    random_state: Any

    @one_thread()
    def fit(self, X: Any, y: Any, sample_weight: Any = None, **fit_params: Any) -> Self:
        """Choose the number of coefficients and fit it on all samples.

        Parameters
        ----------
        X : array-like or sparse array of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets, or the class labels of a classifier.
        sample_weight : array-like of shape (n_samples,), optional
        **fit_params : dict
            For the splitter; needs scikit-learn's metadata routing.
        """
        check_parameters(self, solver=check_path_solver)
        samples = self._read(X, y, sample_weight)
        problems = self._problems(samples.y, random_state=seed_of(self.random_state))
        n, d = samples.base.shape
        if self.max_nonzero_coefs is None:
            most = sparsity.for_pursuit_cv(n, d)
        else:
            most = sparsity.clipped("max_nonzero_coefs", self.max_nonzero_coefs, d)
        data = PathData(X, samples, self._labels(samples.y), problems, most)
        splits = []
        if self.criterion == "cv":
            splits = self._splits(data.labels, samples.kept, fit_params, is_classifier(self))
        self._choose(data, splits)
        return self

    def _choose(self, data: PathData, splits: list[Any]) -> None:
        """Score every size, take the best, and keep its model of all the data."""
        scorer = None if self.scoring is None else check_scoring(self, scoring=self.scoring)
        with limited(self.n_jobs):
            paths = data.paths(data.samples.base, data.samples.weights)
            if splits:
                scores = Parallel(n_jobs=self.n_jobs, require="sharedmem")(
                    delayed(self._fold_scores)(data, split, scorer) for split in splits
                )
            else:
                scores = [self._information(data, paths)]
        length = min(min(len(s) for s in scores), max(len(path) for path in paths))
        self.scores_ = np.array([s[:length] for s in scores])
        self.n_nonzero_coefs_ = best_size(self.scores_)
        self._keep([path.at(self.n_nonzero_coefs_) for path in paths], data.samples.base, data.problems.joint)
        self._keep_path(paths, length, data.problems.joint)

    def _keep_path(self, paths: list[CoefficientPath], length: int, joint: bool) -> None:
        used = [fit.columns for path in paths for fit in path.fits[:length]]
        self.path_features_ = np.unique(np.concatenate(used)).astype(np.intp)
        tables = []
        for path in paths:
            shape = path.fits[0].coef.shape[1:]
            table = np.zeros((length, *shape, len(self.path_features_)))
            for k in range(length):
                fit = path.at(k + 1)
                table[k][..., np.searchsorted(self.path_features_, fit.columns)] = fit.coef.T
            tables.append(table)
        self.coef_path_ = tables[0] if joint else np.stack(tables, axis=1)

    def _fold_scores(self, data: PathData, split: tuple[Indices, Indices], scorer: Any) -> list[float]:
        """Scores on the test part of the models with 1, 2, ... coefficients."""
        train, test = split
        base = data.samples.base.for_run(private=True)
        paths = data.paths(base, fold_weights(train, base.shape[0], data.samples.weights))
        length = max(len(path) for path in paths)
        weights = None if data.samples.weights is None else data.samples.weights[test]
        if scorer is None:
            loss, tables = data.problems.config.loss, [path.predict(base, test, length) for path in paths]
            parts = [(y[test], table) for y, table in zip(data.problems.targets, tables)]
            return [-sum(mean_loss(loss, y, z[k], weights) for y, z in parts) for k in range(length)]
        models = (self._fitted([path.at(k + 1) for path in paths], data) for k in range(length))
        X = None
        if isinstance(self.scoring, str):
            tables = [path.predict(base, test, length) for path in paths]
            models = (_predicting(model, list(z)) for model, *z in zip(models, *tables))
        else:
            X = data.given_rows(test)
        given = {"sample_weight": weights} if weights is not None and _takes_weights(scorer) else {}
        return [float(scorer(model, X, data.labels[test], **given)) for model in models]

    def _fitted(self, fits: list[LinearFit], data: PathData) -> Any:
        """A copy of this estimator with these coefficients."""
        model: Any = copy.copy(self)
        model._keep(fits, data.samples.base, data.problems.joint)
        model.n_nonzero_coefs_ = max(len(fit.columns) for fit in fits)
        return model

    def _information(self, data: PathData, paths: list[CoefficientPath]) -> list[float]:
        """Minus the information criterion of the models with 1, 2, ... coefficients."""
        base, weights, loss = data.samples.base, data.samples.weights, data.problems.config.loss
        n, d = base.shape
        totals = np.zeros(max(len(path) for path in paths))
        for path, y in zip(paths, data.problems.targets):
            for k, z in enumerate(path.predict(base, np.arange(n), len(totals))):
                sizes = len(path.at(k + 1).columns), d
                totals[k] -= information(self.criterion, loss, (y, weights), z, sizes)
        return totals.tolist()


def best_size(scores: Floats) -> int:
    """The number of coefficients with the best mean score over the folds; NaN and infinity are no scores."""
    with np.errstate(invalid="ignore"):
        mean = scores.mean(axis=0)
    finite = np.isfinite(mean)
    if not finite.any():
        raise ValueError(
            "no number of coefficients has a finite score; use another scoring, or divide y by its largest "
            "entry"
        )
    return int(np.argmax(np.where(finite, mean, -np.inf))) + 1


def _predicting(model: Any, z: list[Floats]) -> Any:
    """The model with its predictions X w + b, one array for each problem, known beforehand."""
    table = np.stack(z, axis=1).reshape(len(z[0]), *model.coef_.shape[:-1])
    model._linear = lambda X: table
    return model


def _takes_weights(scorer: Any) -> bool:
    """Whether a scorer, or the metric it is made of, has a parameter `sample_weight`."""
    try:
        taken = inspect.signature(getattr(scorer, "_score_func", scorer)).parameters.values()
    except ValueError:  # a function that does not tell
        return False
    return any(p.name == "sample_weight" or p.kind is p.VAR_KEYWORD for p in taken)
