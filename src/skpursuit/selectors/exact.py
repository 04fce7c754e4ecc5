"""Exact selection: all of X^T r, by BLAS or by the sparse product."""

from __future__ import annotations

from dataclasses import dataclass

from skpursuit.data.design import Design
from skpursuit.numerics.tuning import CACHE, NANO, PRICES, SPARSE_SHARE
from skpursuit.selectors.base import Selector
from skpursuit.selectors.query import Expect, Query, Selection
from skpursuit.selectors.settle import exact_answer


@dataclass(frozen=True)
class Exact(Selector):
    """Compute X^T r and take its top entries, ties to the lowest index.

    The baseline of every speed figure.

    Examples
    --------
    >>> import numpy as np
    >>> from skpursuit import Exact, as_design
    >>> from skpursuit.selectors import Query
    >>> Exact().select(as_design(np.eye(3)), Query(np.array([1.0, -5.0, 2.0]))).indices
    array([1])
    """

    def find(self, design: Design, query: Query) -> Selection:
        return exact_answer(design, query)

    def price(self, design: Design, expect: Expect) -> float:
        before = design.pass_seconds + design.store.sweep_seconds(expect.visits)  # norms, columns
        return before + expect.steps * product_seconds(design, expect.targets)


def product_seconds(design: Design, residuals: int = 1) -> float:
    """Predicted seconds of X^T r for so many residuals at once."""
    entries, nbytes = design.cost()
    if design.has_codes:
        one = nbytes * (PRICES.byte if nbytes > CACHE else PRICES.cached_byte) * NANO + 5e-6
        times = PRICES.several + PRICES.each * residuals
    else:
        one = entries * PRICES.stored * NANO + 2e-5
        times = SPARSE_SHARE * residuals
    return (one if residuals == 1 else one * times) + design.pass_seconds
