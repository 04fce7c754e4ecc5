"""Choosing the number of coefficients: what both cross-validated estimators share.

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
from typing import Any

import numpy as np
from sklearn.metrics import check_scoring
from sklearn.utils.parallel import Parallel, delayed

from skpursuit.data import Design
from skpursuit.data.base import Floats, Indices
from skpursuit.estimators.fitted import FittedMixin
from skpursuit.estimators.folds import SplitterRoutingMixin, alone, fold_weights, predictions
from skpursuit.estimators.linear import Samples, clipped, some_rows
from skpursuit.estimators.path import Path, find_path, information, mean_loss
from skpursuit.estimators.recipe import Fit, Recipe
from skpursuit.numerics.threads import limited


@dataclass(frozen=True)
class Study:
    """The data and problems on which numbers of coefficients compete; X is as it was given to `fit`."""

    X: Any
    samples: Samples
    labels: Any
    problems: list[Any]
    recipe: Recipe
    most: int
    joint: bool

    @property
    def base(self) -> Design:
        """The design of the samples."""
        return self.samples.base

    @property
    def weights(self) -> Floats | None:
        """Their weights."""
        return self.samples.weights

    def given_rows(self, rows: Indices) -> Any:
        """Rows of X as it was given, by their places among the samples."""
        return some_rows(self.X, np.flatnonzero(self.samples.kept)[rows])

    def paths(self, base: Design, weights: Floats | None) -> list[Path]:
        """One path for each problem."""
        return [find_path(self.recipe, base, y, weights, self.most) for y in self.problems]


class PathCVMixin(SplitterRoutingMixin, FittedMixin):
    """Fits the path on each fold, or only on all data, and keeps the best number of coefficients."""

    criterion: str
    scoring: Any
    n_jobs: int | None
    max_nonzero_coefs: int | None
    warm_start = False

    def _most(self, base: Design) -> int:
        """The largest number of coefficients tried."""
        n, d = base.shape
        if self.max_nonzero_coefs is not None:
            return clipped("max_nonzero_coefs", self.max_nonzero_coefs, d)
        return min(d, max(10, d // 10), max(1, n // 2))

    def _choose(self, study: Study, splits: list[Any]) -> None:
        """Score every size, take the best, and keep its model of all the data."""
        scorer = None if self.scoring is None else check_scoring(self, scoring=self.scoring)
        with limited(self.n_jobs):
            paths = study.paths(study.base, study.weights)
            if splits:
                scores = Parallel(n_jobs=self.n_jobs, require="sharedmem")(
                    delayed(self._fold_scores)(study, split, scorer) for split in splits
                )
            else:
                scores = [self._information(study, paths)]
        length = min(min(len(s) for s in scores), max(len(path.models) for path in paths))
        self.scores_ = np.array([s[:length] for s in scores])
        self.n_nonzero_coefs_ = best_size(self.scores_)
        self._keep([path.fit(self.n_nonzero_coefs_) for path in paths], study.base, study.joint)
        self._keep_path(paths, length, study.joint)

    def _keep_path(self, paths: list[Path], length: int, joint: bool) -> None:
        used = [columns for path in paths for columns, _, _ in path.models[:length]]
        self.path_features_ = np.unique(np.concatenate(used)).astype(np.intp)
        tables = []
        for path in paths:
            shape = path.models[0][1].shape[1:]
            table = np.zeros((length, *shape, len(self.path_features_)))
            for k in range(length):
                fit = path.fit(k + 1)
                table[k][..., np.searchsorted(self.path_features_, fit.columns)] = fit.coef.T
            tables.append(table)
        self.coef_path_ = tables[0] if joint else np.stack(tables, axis=1)

    def _fold_scores(self, study: Study, split: tuple[Indices, Indices], scorer: Any) -> list[float]:
        """Scores on the test part of the models with 1, 2, ... coefficients."""
        train, test = split
        base = alone(study.base)
        paths = study.paths(base, fold_weights(train, base.shape[0], study.weights))
        length = max(len(path.models) for path in paths)
        weights = None if study.weights is None else study.weights[test]
        if scorer is None:
            loss, tables = study.recipe.loss, [_predicted(path, base, test, length) for path in paths]
            parts = [(y[test], table) for y, table in zip(study.problems, tables)]
            return [-sum(mean_loss(loss, y, z[k], weights) for y, z in parts) for k in range(length)]
        models = (self._fitted([path.fit(k + 1) for path in paths], study) for k in range(length))
        X = None
        if isinstance(self.scoring, str):
            tables = [_predicted(path, base, test, length) for path in paths]
            models = (_predicting(model, list(z)) for model, *z in zip(models, *tables))
        else:
            X = study.given_rows(test)
        given = {"sample_weight": weights} if weights is not None and _takes_weights(scorer) else {}
        return [float(scorer(model, X, study.labels[test], **given)) for model in models]

    def _fitted(self, fits: list[Fit], study: Study) -> Any:
        """A copy of this estimator with these coefficients."""
        model: Any = copy.copy(self)
        model._keep(fits, study.base, study.joint)
        model.n_nonzero_coefs_ = max(len(fit.columns) for fit in fits)
        return model

    def _information(self, study: Study, paths: list[Path]) -> list[float]:
        length = max(len(path.models) for path in paths)
        totals = np.zeros(length)
        d = study.base.shape[1]
        for path, y in zip(paths, study.problems):
            every = np.arange(study.base.shape[0])
            for k, z in enumerate(_predicted(path, study.base, every, length)):
                used = len(path.fit(k + 1).columns)
                totals[k] -= information(self.criterion, study.recipe.loss, (y, study.weights), z, (used, d))
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


def _predicted(path: Path, base: Design, rows: Any, length: int) -> list[Floats]:
    """Predictions by the models with 1, 2, ... coefficients; a path that ended early repeats its last."""
    found = predictions(base, path.models, rows)
    return found + [found[-1]] * (length - len(found))


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
