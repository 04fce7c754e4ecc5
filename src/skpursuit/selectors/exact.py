"""Exact selection: all of X^T r, by BLAS or by the sparse product."""

from __future__ import annotations

from dataclasses import dataclass

from skpursuit.data.design import Design
from skpursuit.numerics.tuning import CACHE, COSTS, NANO, SPARSE_SHARE
from skpursuit.selectors.base import Selector
from skpursuit.selectors.query import Query, Selection, Workload
from skpursuit.selectors.top_k import exact_selection


@dataclass(frozen=True)
class Exact(Selector):
    """Compute X^T r and take its top entries, ties to the lowest index.

    The baseline of every speed figure.

    Examples
    --------
    >>> import numpy as np
    >>> from skpursuit import Exact, as_design
    >>> from skpursuit.selectors import Query
    >>> Exact().select(as_design(np.eye(3)), Query(np.array([1.0, -5.0, 2.0]))).columns
    array([1])
    """

    def find(self, design: Design, query: Query) -> Selection:
        return exact_selection(design, query)

    def predict_seconds(self, design: Design, expect: Workload) -> float:
        before = design.pass_seconds + design.access.sweep_seconds(expect.n_columns)  # norms, columns
        return before + expect.n_queries * product_seconds(design, expect.n_targets)


def product_seconds(design: Design, residuals: int = 1) -> float:
    """Predicted seconds of X^T r for so many residuals at once."""
    entries, nbytes = design.cost()
    if design.has_codes:
        one = nbytes * (COSTS.byte if nbytes > CACHE else COSTS.cached_byte) * NANO + 5e-6
        times = COSTS.multi_residual + COSTS.per_residual * residuals
    else:
        one = entries * COSTS.sparse_entry * NANO + 2e-5
        times = SPARSE_SHARE * residuals
    return (one if residuals == 1 else one * times) + design.pass_seconds
