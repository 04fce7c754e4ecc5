"""Cross-validation on one design: a fold is a set of row weights, so norms and twins of X serve them all."""

from __future__ import annotations

from typing import Any

import numpy as np
import sklearn
from sklearn.model_selection import check_cv
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing

from skpursuit.design import Design
from skpursuit.design.base import ColumnCache, Floats, Indices

Model = tuple[Indices, Floats, Any]  # columns, their coefficients, intercept


class SplitterRoutingMixin:
    """Metadata for the splitter (`groups`, say) may be given to `fit` when scikit-learn's routing is on."""

    cv: Any

    def get_metadata_routing(self) -> MetadataRouter:
        """Say that `fit` hands metadata to the splitter."""
        mapping = MethodMapping().add(caller="fit", callee="split")
        return MetadataRouter(owner=self).add_self_request(self).add(splitter=self.cv, method_mapping=mapping)

    def _splits(self, base: Design, y: Any, params: dict[str, Any], classifier: bool = False) -> list[Any]:
        splitter = check_cv(self.cv, y, classifier=classifier)
        routed: dict[str, Any] = {}
        if params:
            if not sklearn.get_config()["enable_metadata_routing"]:
                raise ValueError(
                    f"fit got {sorted(params)}, which needs sklearn.set_config(enable_metadata_routing=True)"
                )
            routed = process_routing(self, "fit", **params).splitter.split
        try:
            splits = list(splitter.split(np.zeros((base.shape[0], 1)), y, **routed))
        except TypeError as error:
            raise TypeError(f"cv must give pairs of training and test rows: {error}") from error
        except ValueError as error:
            raise ValueError(f"cv cannot split the samples: {error}") from error
        if not splits:
            raise ValueError("cv gives no split; it needs at least one pair of training and test rows")
        return splits


def fold_weights(train: Any, n: int, weights: Floats | None) -> Floats:
    """Weights of the rows in a training part: zero off it, multiples where an index is repeated."""
    train = np.asarray(train)
    counts = (
        train.astype(np.float64) if train.dtype == bool else np.bincount(train, minlength=n).astype(float)
    )
    return counts if weights is None else counts * weights


def alone(base: Design) -> Design:
    """The same design with a counter and gathered columns of its own, for one thread."""
    other = base.counted()
    other.column_cache, other.gram_cache = ColumnCache(), ColumnCache()
    return other


def predictions(base: Design, models: list[Model], rows: Any) -> list[Floats]:
    """X w + b of each model on some rows; X is read once for all of them."""
    used = np.unique(np.concatenate([columns for columns, _, _ in models])).astype(np.intp)
    if len(used) == 0:
        size = len(np.arange(base.shape[0])[rows])
        return [np.zeros((size, *coef.shape[1:])) + intercept for _, coef, intercept in models]
    gathered = base.columns(used)[:, rows].T
    return [
        gathered[:, np.searchsorted(used, columns)] @ coef + intercept for columns, coef, intercept in models
    ]
