"""Cross-validation on one design.

A fold is a set of row weights, so that norms, codes and layouts of X are made once and serve all folds.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn.model_selection import PredefinedSplit, check_cv
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing

from skpursuit.numerics.arrays import Floats, Indices


class SplitterRoutingMixin:
    """Metadata for the splitter (`groups`, say) may be given to `fit` when scikit-learn's routing is on."""

    cv: Any
    keeps_path = True  # `PathDisplay` can draw what `fit` leaves

    def get_metadata_routing(self) -> MetadataRouter:
        """Say that `fit` hands metadata to the splitter."""
        mapping = MethodMapping().add(caller="fit", callee="split")
        return MetadataRouter(owner=self).add_self_request(self).add(splitter=self.cv, method_mapping=mapping)

    def _splits(
        self,
        y: Any,
        kept: NDArray[np.bool_],
        params: dict[str, Any],
        classifier: bool = False,
        splitter: Any = None,
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
        routed: dict[str, Any] = {}
        if params:
            if not sklearn.get_config()["enable_metadata_routing"]:
                raise ValueError(
                    f"fit got {sorted(params)}, which needs sklearn.set_config(enable_metadata_routing=True)"
                )
            routed = process_routing(self, "fit", **params).splitter.split
        routed = {name: _shown(value, shown) for name, value in routed.items()}
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


def _shown(value: Any, rows: NDArray[np.bool_]) -> Any:
    """The entries of these rows, where the value has one for each row of X."""
    values = np.asarray(value)
    return values[rows] if values.ndim and len(values) == len(rows) else value


def _positions(part: Any, kept: NDArray[np.bool_]) -> Indices:
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


def fold_weights(train: Indices, n: int, weights: Floats | None) -> Floats:
    """Weights of the rows in a training part: zero off it, multiples where an index is repeated."""
    counts = np.bincount(train, minlength=n).astype(float)
    return counts if weights is None else counts * weights
