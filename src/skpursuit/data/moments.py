"""Sums of products of the columns of X, of targets and of ones: all that small least squares need.

One pass over the rows, in blocks that stay in the cache. Every column is taken less one of its own entries,
its *anchor*, so that the means, which a formula takes out afterwards, are small and cost no digits, and a
constant column is exactly zero. Moments of disjoint rows add up: those of a training part are those of all
rows less those of the test rows, so that all folds of a cross-validation cost two passes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt
from typing import Any

import numpy as np

from skpursuit.data.design import Design
from skpursuit.numerics.arrays import Floats, Indices
from skpursuit.numerics.tuning import MOMENT_BLOCK, MOMENT_ROWS

SAMPLE = 64  # rows that an anchor is chosen from


@dataclass(frozen=True)
class NormalEquations:
    """X^T X and X^T Y of columns and targets less their means, and these means.

    `noise_floor` is the norm below which a centred column is only rounding of its mean, one per column.
    """

    gram: Floats
    xty: Floats
    noise_floor: Floats
    centre: Floats
    offset: Floats


@dataclass(frozen=True)
class Moments:
    """Weighted sums over rows.

    Attributes
    ----------
    products : ndarray of shape (d + m + 1, d + m + 1)
        Of d columns less their anchors, m targets and a column of ones.
    anchor : ndarray of shape (d,)
    offset : ndarray of shape (m,)
        What was taken off the targets before.
    mean_unit : float
        Rounding of means, relative to them.
    """

    products: Floats
    anchor: Floats
    offset: Floats
    mean_unit: float

    def less(self, other: Moments) -> Moments:
        """The moments without those of some of the rows."""
        return replace(self, products=self.products - other.products)

    @property
    def weight(self) -> float:
        """Sum of the weights."""
        return float(self.products[-1, -1])

    def normal_equations(self, centred: bool) -> NormalEquations:
        """Of the columns less their means, or as they are, for moments with anchors of zero."""
        d, sums, total = len(self.anchor), self.products[-1, :-1], self.weight
        means = sums / total if centred else np.zeros_like(sums)
        products = np.multiply.outer(sums[:d], means)
        np.subtract(self.products[:d, :-1], products, out=products)  # fresh memory is slow
        centre, offset = self.anchor + means[:d], self.offset + means[d:]
        floor = self.mean_unit * sqrt(total) * np.abs(centre)
        return NormalEquations(products[:, :d], products[:, d:], floor, centre, offset)


def has_moments(design: Design) -> bool:
    """Whether X lies in memory as numbers that a view does not move."""
    store, view = design.store, design.view
    return store.is_one_tile and store.first.can_encode and view.is_unmoved and not view.constant


def anchors(design: Design) -> Floats:
    """For every column the entry, of a sample of rows, that is closest to the mean of the sample."""
    n = design.shape[0]
    sample = _block(design, np.arange(0, n, -(-n // SAMPLE))).astype(np.float64)
    rest = np.abs(sample - sample.mean(axis=0))
    return sample[rest.argmin(axis=0), np.arange(rest.shape[1])]


def moments(
    design: Design,
    targets: Floats,
    weights: Floats | None,
    anchor: Floats,
    offset: Floats,
    rows: Indices | None = None,
) -> Moments:
    """The moments of all rows or some, of a design that `has_moments`.

    Parameters
    ----------
    design : Design
    targets : ndarray of shape (n, m)
        Less `offset`.
    weights : ndarray of shape (n,), optional
    anchor : ndarray of shape (d,)
        From `anchors`, or zeros.
    offset : ndarray of shape (m,)
    rows : ndarray of int, optional
    """
    (n, d), m = design.shape, targets.shape[1]
    count, width = n if rows is None else len(rows), d + m + 1
    design.reads.prepare(*design.cost(rows))
    step = max(MOMENT_ROWS, MOMENT_BLOCK // width)
    by_columns = design.store.first.fast_axis == 0
    buffer = np.empty((width, step)).T if by_columns else np.empty((step, width))
    products: Any = 0.0
    for start in range(0, count, step):
        some = slice(start, min(start + step, count)) if rows is None else rows[start : start + step]
        X = _block(design, some)
        block = buffer[: len(X)]
        np.subtract(X, anchor, out=block[:, :d])
        block[:, d:-1], block[:, -1] = targets[some], 1.0
        if weights is not None:
            block *= np.sqrt(weights[some])[:, None]
        products += block.T @ block
    return Moments(products, anchor, offset, design.store.first.mean_unit)


def _block(design: Design, rows: slice | Indices) -> Floats:
    """Some rows of X, for a design that `has_moments`."""
    kept = design.view.rows
    return design.store.first.X[rows if kept is None else kept[rows]]  # type: ignore[attr-defined]
