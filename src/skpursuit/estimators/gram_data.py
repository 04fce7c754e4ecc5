"""Least squares from one pass over X: the normal equations of all rows, and of all but the test rows."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from skpursuit.data import Design
from skpursuit.data.moments import Moments, NormalEquations, anchors, moments
from skpursuit.estimators.gram_omp import FactorPath, gram_omp
from skpursuit.estimators.omp_functions import gram_paths, lost_digits, omp_limits, refined
from skpursuit.estimators.standardized import centred_targets, standardize
from skpursuit.numerics.arrays import Floats


class GramData:
    """X and y as sums of products, for orthogonal matching pursuit.

    Parameters
    ----------
    base : Design
        One that `has_moments`.
    y : ndarray of shape (n,) or (n, m)
    weights : ndarray of shape (n,), optional
    fit_intercept : bool
    """

    def __init__(self, base: Design, y: Any, weights: Floats | None, fit_intercept: bool) -> None:
        self.base, self.given, self.weights, self.fit_intercept = base, y, weights, fit_intercept
        y = np.asarray(y, dtype=np.float64)
        mean = y.mean(axis=0) if weights is None else np.average(y, axis=0, weights=weights)
        offset = mean if fit_intercept else np.zeros(y.shape[1:])
        self.y = centred_targets(y, offset).reshape(len(y), -1)
        self.anchor = anchors(base) if fit_intercept else np.zeros(base.shape[1])
        self.offset = np.atleast_1d(offset)
        self.whole = self._moments(None)

    def _moments(self, rows: Any) -> Moments:
        return moments(self.base, self.y, self.weights, self.anchor, self.offset, rows)

    @cached_property
    def equations(self) -> NormalEquations:
        """The normal equations of all rows."""
        return self.whole.normal_equations(self.fit_intercept)

    def paths(self, k: int | None, tol: float | None) -> tuple[list[FactorPath], Floats, Any]:
        """The path of each target on all rows, and the means of X and y."""
        d = self.base.shape[1]
        y = self.y if self.weights is None else self.y * np.sqrt(self.weights)[:, None]
        energies = np.sum(y * y, axis=0)
        limits = [omp_limits(d if k is None else k, tol, energy) for energy in energies.tolist()]
        paths = gram_paths(self.equations, limits, energies)
        paths = [
            self._refined(path, t) if lost_digits(path, self.base) else path for t, path in enumerate(paths)
        ]
        offset = self.equations.offset
        return paths, self.equations.centre, offset if self.given.ndim == 2 else offset[0]

    def _refined(self, path: FactorPath, target: int) -> FactorPath:
        """The path with its digits back."""
        data = standardize(
            self.base, self.given, weights=self.weights, fit_intercept=self.fit_intercept
        ).weighted()
        return refined(path, data.design, data.y.reshape(len(data.y), -1)[:, target])

    def is_complement(self, train: Any, test: Any) -> bool:
        """Whether train is the complement of test and has over a quarter of the weight."""
        n = len(self.y)
        parts = np.concatenate([np.asarray(train), np.asarray(test)])
        whole = parts.dtype != bool and len(parts) == n and np.array_equal(np.sort(parts), np.arange(n))
        trained = len(train) if self.weights is None else self.weights[train].sum()
        return bool(whole and trained > 0.25 * self.whole.weight)

    def path_without(self, test: Any, most: int) -> tuple[FactorPath, Floats, Any]:
        """The path without the test rows, and the means of X and y on the others."""
        equations = self.whole.less(self._moments(np.asarray(test))).normal_equations(self.fit_intercept)
        path = gram_omp(equations.gram, equations.xty[:, 0], most, noise_floor=equations.noise_floor)
        return path, equations.centre, equations.offset[0]
