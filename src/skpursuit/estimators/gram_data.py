"""The normal equations of X and y from one pass over the rows: of all of them, and of training parts.

Rows are taken in blocks that stay in the cache. Every column is taken less one of its own entries, its
*anchor*, so that the means, which a formula takes out afterwards, are small and cost no digits, and a
constant column is exactly zero. Sums over a training part are those over all rows less those over the test
rows, so that all folds of a cross-validation cost two passes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from skpursuit.data import Design, check_finite
from skpursuit.estimators.standardized import centred_targets
from skpursuit.numerics.arrays import Floats, Indices
from skpursuit.numerics.tuning import MOMENT_BLOCK, MOMENT_ROWS

SAMPLE = 64  # rows that an anchor is chosen from


class NormalEquations(NamedTuple):
    """X^T X and X^T Y of columns and targets less their means, and these means.

    `noise_floor` is the norm below which a centred column is only rounding of its mean, one per column.
    """

    gram: Floats
    xty: Floats
    noise_floor: Floats
    centre: Floats
    offset: Floats


class Moments:
    """Sums over rows of products of the columns of X, the targets and a column of ones.

    Parameters
    ----------
    base : Design
        Of a dense array in memory (`base.whole`).
    y : ndarray of shape (n,) or (n, m)
    weights : ndarray of shape (n,), optional
    fit_intercept : bool
    """

    def __init__(self, base: Design, y: Any, weights: Floats | None, fit_intercept: bool) -> None:
        check_finite(base)
        self.base, self.X, self.weights, self.fit_intercept = (
            base,
            base.in_memory_matrix,
            weights,
            fit_intercept,
        )
        y, (n, d) = np.asarray(y, dtype=np.float64), base.shape
        offset = np.average(y, axis=0, weights=weights) if fit_intercept else np.zeros(y.shape[1:])
        self.y, self.offset = centred_targets(y, offset).reshape(n, -1), np.atleast_1d(offset)
        self.anchor = np.zeros(d)
        if fit_intercept:  # the entry of a sample that is closest to its mean
            sample = self.X[:: -(-n // SAMPLE)].astype(np.float64)
            self.anchor = sample[np.abs(sample - sample.mean(axis=0)).argmin(axis=0), np.arange(d)]
        self.whole = self._sums(None)

    def _sums(self, rows: Indices | None) -> Floats:
        """Products of columns less their anchors, targets and ones, of all rows or some."""
        n, d = self.base.shape
        count, width = n if rows is None else len(rows), d + self.y.shape[1] + 1
        self.base.reads.add_prepared(*self.base.cost(rows))
        step = max(MOMENT_ROWS, MOMENT_BLOCK // width)
        by_columns = self.X.strides[0] < self.X.strides[1]
        buffer = np.empty((width, step)).T if by_columns else np.empty((step, width))
        sums: Any = 0.0
        for start in range(0, count, step):
            some = slice(start, min(start + step, count)) if rows is None else rows[start : start + step]
            X = self.X[some]
            block = buffer[: len(X)]
            np.subtract(X, self.anchor, out=block[:, :d])
            block[:, d:-1], block[:, -1] = self.y[some], 1.0
            if self.weights is not None:
                block *= np.sqrt(self.weights[some])[:, None]
            sums += block.T @ block
        return sums

    def equations(self, sums: Floats | None = None) -> NormalEquations:
        """Of all rows, or from the sums over some."""
        sums, d = self.whole if sums is None else sums, len(self.anchor)
        means = sums[-1, :-1] / sums[-1, -1] if self.fit_intercept else np.zeros(len(sums) - 1)
        products = np.multiply.outer(sums[-1, :d], means)
        np.subtract(sums[:d, :-1], products, out=products)  # fresh memory is slow
        centre = self.anchor + means[:d]
        floor = self.base.with_view(self.base.view.compose(centre=centre)).noise_floor(np.arange(d))
        floor *= np.sqrt(sums[-1, -1] / self.base.shape[0])
        return NormalEquations(products[:, :d], products[:, d:], floor, centre, self.offset + means[d:])

    def of_training(self, train: Indices, test: Indices) -> NormalEquations:
        """Of a training part: all but the test rows where it is their complement and not too small."""
        n = len(self.y)
        rest = self.whole - self._sums(test) if len(train) + len(test) == n else self.whole
        complement = np.bincount(train, minlength=n) + np.bincount(test, minlength=n)
        if (complement != 1).any() or rest[-1, -1] <= 0.25 * self.whole[-1, -1]:
            rest = self._sums(train)
        return self.equations(rest)
