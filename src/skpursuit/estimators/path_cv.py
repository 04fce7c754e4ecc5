"""Choosing the number of coefficients: what both cross-validated estimators share."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import get_scorer
from sklearn.utils.parallel import Parallel, delayed

from skpursuit.design import Design
from skpursuit.design.base import Floats
from skpursuit.estimators.fitted import FittedMixin
from skpursuit.estimators.folds import SplitterRoutingMixin, alone, fold_weights, predictions
from skpursuit.estimators.linear import clipped
from skpursuit.estimators.path import Path, find_path, information, mean_loss
from skpursuit.estimators.recipe import Recipe
from skpursuit.kernels.threads import limited


@dataclass(frozen=True)
class Study:
    """The data and problems on which numbers of coefficients compete."""

    base: Design
    labels: Any
    problems: list[Any]
    weights: Floats | None
    recipe: Recipe
    most: int
    joint: bool

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
        with limited(self.n_jobs):
            paths = study.paths(study.base, study.weights)
            if splits:
                scores = Parallel(n_jobs=self.n_jobs, require="sharedmem")(
                    delayed(self._fold_scores)(study, split) for split in splits
                )
            else:
                scores = [self._information(study, paths)]
        length = min(min(len(s) for s in scores), max(len(path.models) for path in paths))
        self.scores_ = np.array([s[:length] for s in scores])
        self.n_nonzero_coefs_ = int(np.argmax(self.scores_.mean(axis=0))) + 1
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

    def _fold_scores(self, study: Study, split: Any) -> list[float]:
        """Scores on the test part of the models with 1, 2, ... coefficients."""
        train, test = split
        base = alone(study.base)
        paths = study.paths(base, fold_weights(train, base.shape[0], study.weights))
        length = max(len(path.models) for path in paths)
        tables = [_predicted(path, base, test, length) for path in paths]
        weights = None if study.weights is None else study.weights[test]
        if weights is not None and not weights.any():
            raise ValueError("every sample of a test part has weight zero; use other folds")
        return [self._score(study, [table[k] for table in tables], test, weights) for k in range(length)]

    def _score(self, study: Study, z: list[Floats], rows: Any, weights: Floats | None) -> float:
        if self.scoring is None:
            loss = study.recipe.loss
            return -sum(mean_loss(loss, y[rows], part, weights) for y, part in zip(study.problems, z))
        model: Any = copy.copy(self)
        table = z[0] if study.joint else np.stack(z, axis=1)
        model._linear = lambda X: (
            table if not hasattr(self, "classes_") or table.ndim == 2 else table[:, None]
        )
        scorer = get_scorer(self.scoring) if isinstance(self.scoring, str) else self.scoring
        given = {} if weights is None else {"sample_weight": weights}
        return float(scorer(model, np.zeros((len(table), 1)), study.labels[rows], **given))

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


def _predicted(path: Path, base: Design, rows: Any, length: int) -> list[Floats]:
    """Predictions by the models with 1, 2, ... coefficients; a path that ended early repeats its last."""
    found = predictions(base, path.models, rows)
    return found + [found[-1]] * (length - len(found))
