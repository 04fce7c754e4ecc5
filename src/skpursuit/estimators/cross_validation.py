"""Cross-validation on one design, and the paired test between two models on held-out rows.

A fold is a set of row weights, so that norms, codes and layouts of X are made once and serve all folds.

Two models are compared by the differences of their losses row by row: their mean, divided by its standard
error, is t. It ignores that models of different folds share their training rows, so the thresholds on it were
chosen by experiment. Of many rows a sample tells the standard error; the mean is always that of all rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral

import numpy as np
import sklearn
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import BaseCrossValidator, PredefinedSplit, check_cv
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing

from skpursuit.numerics.arrays import Floats, Indices

MAX_SAMPLED_ROWS = 20_000  # rows of which the spread of differences is found


class SplitterRoutingMixin:
    """Metadata for the splitter (`groups`, say) may be given to `fit` when scikit-learn's routing is on."""

    cv: object
    path_scores = "mean loss"  # what `PathDisplay` shows of `scores_`, with the other sign

    def get_metadata_routing(self) -> MetadataRouter:
        """Say that `fit` hands metadata to the splitter."""
        mapping = MethodMapping().add(caller="fit", callee="split")
        return MetadataRouter(owner=self).add_self_request(self).add(splitter=self.cv, method_mapping=mapping)

    def _splits(
        self,
        y: np.ndarray,
        kept: NDArray[np.bool_],
        params: dict[str, object],
        classifier: bool = False,
        splitter: BaseCrossValidator | None = None,
    ) -> list[tuple[Indices, Indices]]:
        """Training and test parts as positions in y, the targets of the rows of X that are `kept`.

        The splitter is shown these rows alone, as if there were no others. A `PredefinedSplit` or an iterable
        names rows of X itself: rows that are not kept are taken out of its parts. `splitter` stands for a
        number of folds.
        """
        splitter = check_cv(self.cv, y, classifier=classifier) if splitter is None else splitter
        counted = self.cv is None or isinstance(self.cv, Integral)
        named = isinstance(splitter, PredefinedSplit) or not (counted or splitter is self.cv)
        shown = np.ones_like(kept) if named else kept
        routed: dict[str, ArrayLike] = {}
        if params:
            if not sklearn.get_config()["enable_metadata_routing"]:
                raise ValueError(
                    f"fit got {sorted(params)}, which needs sklearn.set_config(enable_metadata_routing=True)"
                )
            routed = process_routing(self, "fit", **params).splitter.split
        for name, value in routed.items():
            if np.shape(value)[:1] == shown.shape:  # one entry for each row of X
                routed[name] = np.asarray(value)[shown]
        targets = None if named else y
        try:
            splits = list(splitter.split(np.zeros((np.count_nonzero(shown), 1)), targets, **routed))
        except TypeError as error:
            raise TypeError(f"cv must give pairs of training and test rows: {error}") from error
        except ValueError as error:
            raise ValueError(f"cv cannot split the samples: {error}") from error
        if not splits:
            raise ValueError("cv gives no split; it needs at least one pair of training and test rows")
        return [(_positions(train, kept[shown]), _positions(test, kept[shown])) for train, test in splits]


def _positions(part: ArrayLike, kept: NDArray[np.bool_]) -> Indices:
    """Positions among the kept rows of the rows in a part, which are given by number or by a mask."""
    part = np.asarray(part)
    part = np.flatnonzero(part) if part.dtype == bool else part
    if part.size and not -len(kept) <= part.min() <= part.max() < len(kept):
        raise ValueError(
            f"cv names row {part.max()} of {len(kept)} rows; a splitter is given those with a weight above "
            "zero, and a list of splits names rows of X"
        )
    found = (np.cumsum(kept) - 1)[part[kept[part]]] if part.size else part
    if len(found) == 0:
        raise ValueError("a training or test part of cv has no sample with a weight above zero; use others")
    return found


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
        # zero off a part, multiples where an index is repeated
        parts = [[np.bincount(rows, minlength=n) * every for rows in side] for side in zip(*splits)]
        return cls(np.array(parts[0]), np.array(parts[1]), every)

    @classmethod
    def of_all_rows(cls, weights: Floats) -> Folds:
        """One fold that trains on all rows and tests none."""
        return cls(weights[None], np.zeros((1, len(weights))), weights)

    @property
    def shape(self) -> tuple[int, int]:
        """Folds and rows."""
        return self.train.shape[0], self.train.shape[1]

    @cached_property
    def test_weight(self) -> Floats:
        """How much each row counts in a mean over the tests."""
        return self.test.sum(axis=0)

    @cached_property
    def n_effective(self) -> float:
        """The number of rows that the weights stand for, as if each were one observation."""
        return effective_rows(self.weights)

    @property
    def sampled_rows(self) -> slice:
        """The rows whose losses are computed one by one: all, or every so many of them."""
        return slice(None, None, max(1, len(self.weights) // MAX_SAMPLED_ROWS))

    def mean_row_losses(self, losses: Floats) -> Floats:
        """Mean loss of each sampled row over the tests it is in, from weighted losses (rows, F)."""
        weight = self.test_weight[self.sampled_rows]
        return losses.sum(axis=1) / np.where(weight > 0, weight, 1.0)


def paired_t(mean: float, differences: Floats, weights: Floats, n: float) -> float:
    """A mean of differences over its standard error, from weighted differences of n observations."""
    unit = np.ldexp(1.0, -np.frexp(np.abs(differences).max(initial=0.0))[1])  # of squares within range
    mean, differences = mean * unit, differences * unit
    centre = differences @ weights / weights.sum()
    error = np.sqrt((differences - centre) ** 2 @ weights / weights.sum() / n)
    return mean / float(error) if error else float(np.sign(mean)) * np.inf


def effective_rows(weights: Floats) -> float:
    """Whole numbers are counts of equal rows; other weights tell how much a row counts (Kish's formula)."""
    total = float(weights.sum())
    if np.array_equal(weights, np.rint(weights)):
        return total
    return total**2 / float(weights @ weights)
