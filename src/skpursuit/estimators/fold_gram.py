"""Gram matrices of all folds for the price of two: that of the whole, less that of each test part."""

from __future__ import annotations

from typing import Any

import numpy as np

from skpursuit.data import Design
from skpursuit.data.base import Floats
from skpursuit.estimators.gram_omp import FactorPath, gram_omp
from skpursuit.estimators.linear import make_frame
from skpursuit.problem.losses import Squared


class FoldGrams:
    """X^T X and X^T y of training parts, each the complement of its test part.

    Everything is centred at the means of the whole data, so that the means of a training part, which are
    taken out afterwards, are small and cost no digits.
    """

    def __init__(self, base: Design, y: Floats, weights: Floats | None, fit_intercept: bool) -> None:
        frame = make_frame(base, y, Squared(), weights, fit_intercept)
        self.fit_intercept = fit_intercept
        self.centre, self.offset, self.y = frame.centre, frame.offset, frame.y
        self.root = np.ones(len(y)) if weights is None else np.sqrt(weights)
        self.columns = frame.design._gather(np.arange(base.shape[1]))
        self.gram = self.columns @ self.columns.T
        self.lost = frame.design.lost(np.arange(base.shape[1]))
        self.products = self.columns @ np.column_stack([self.y, self.root])

    def serves(self, train: Any, test: Any) -> bool:
        """Whether the training part is all rows but the test part, and not a small rest of them."""
        n = len(self.y)
        parts = np.concatenate([np.asarray(train), np.asarray(test)])
        whole = parts.dtype != bool and len(parts) == n and np.array_equal(np.sort(parts), np.arange(n))
        weight = self.root @ self.root
        return bool(whole and self.root[train] @ self.root[train] > 0.25 * weight)

    def path(self, test: Any, most: int) -> tuple[FactorPath, Floats, Any]:
        """The path without the test rows, and the means of X and y on the others."""
        columns, y, root = self.columns[:, test], self.y[test], self.root[test]
        gram = self.gram - columns @ columns.T
        xty, sums = (self.products - columns @ np.column_stack([y, root])).T
        if not self.fit_intercept:
            return gram_omp(gram, xty, most, lost=self.lost), self.centre, self.offset
        weight = self.root @ self.root - root @ root
        mean, y_mean = sums / weight, (self.y @ self.root - y @ root) / weight
        gram -= np.outer(sums, mean)
        path = gram_omp(gram, xty - sums * y_mean, most, lost=self.lost)
        return path, self.centre + mean, self.offset + y_mean
