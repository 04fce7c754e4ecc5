"""Folds as row weights, and the paired test between two models on held-out rows.

Every model is judged on the same rows, so two models are compared by the differences of their losses row by
row. Their mean, divided by its standard error, is t. It ignores that models of different folds share their
training rows, so t is too large as a test of significance; the thresholds on it were chosen by experiment. Of
many rows a sample tells the standard error well enough; the mean is always that of all rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from skpursuit.estimators.folds import fold_weights
from skpursuit.numerics.arrays import Floats, Indices

SAMPLED = 20_000  # rows of which the spread of differences is found


@dataclass(frozen=True)
class Folds:
    """Weights of the n rows in training and in test, one line for each fold."""

    train: Floats
    test: Floats
    weights: Floats

    @classmethod
    def of(cls, splits: Sequence[tuple[Indices, Indices]], n: int, weights: Floats | None) -> Folds:
        """From positions of training and test rows."""
        every = np.ones(n) if weights is None else np.asarray(weights, dtype=np.float64)
        parts = [[fold_weights(rows, n, weights) for rows in side] for side in zip(*splits)]
        return cls(np.array(parts[0]), np.array(parts[1]), every)

    def whole(self) -> Folds:
        """One fold that trains on all rows and tests none: the last fit."""
        return Folds(self.weights[None], np.zeros((1, len(self.weights))), self.weights)

    @property
    def shape(self) -> tuple[int, int]:
        """Folds and rows."""
        return self.train.shape[0], self.train.shape[1]

    @cached_property
    def are_complements(self) -> bool:
        """Whether every fold trains on all that it does not test."""
        return bool(np.array_equal(self.train + self.test, np.broadcast_to(self.weights, self.train.shape)))

    @cached_property
    def judged(self) -> Floats:
        """How much each row counts in a mean over the tests."""
        return self.test.sum(axis=0)

    @cached_property
    def rows(self) -> float:
        """The number of rows that the weights stand for, as if each were one observation."""
        return effective_rows(self.weights)

    @cached_property
    def judged_rows(self) -> float:
        """The same of the rows that some fold tests."""
        return effective_rows(self.weights[self.judged > 0])

    @property
    def sample(self) -> slice:
        """The rows whose losses are computed one by one: all, or every so many of them."""
        return slice(None, None, max(1, len(self.weights) // SAMPLED))

    def per_row(self, losses: Floats) -> Floats:
        """Mean loss of each sampled row over the tests it is in, from weighted losses (rows, F)."""
        judged = self.judged[self.sample]
        return losses.sum(axis=1) / np.where(judged > 0, judged, 1.0)

    def paired_t(self, mean: float, worse: Floats, better: Floats) -> float:
        """Mean of the differences of two models' losses over its standard error, from losses of rows."""
        weights = self.judged[self.sample]
        difference = worse - better
        centre = difference @ weights / weights.sum()
        error = np.sqrt((difference - centre) ** 2 @ weights / weights.sum() / self.judged_rows)
        if error == 0:
            return float(np.sign(mean)) * np.inf if mean else 0.0
        return mean / float(error)


def effective_rows(weights: Floats) -> float:
    """Whole numbers are counts of equal rows; other weights tell how much a row counts (Kish's formula)."""
    total = float(weights.sum())
    if np.array_equal(weights, np.rint(weights)):
        return total
    return total**2 / float(weights @ weights)
