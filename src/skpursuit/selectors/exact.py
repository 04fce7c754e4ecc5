"""Exact selection: all of X^T r, by BLAS or by the sparse product."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skpursuit.data.base import Design
from skpursuit.selectors.base import Query, Selection, Selector, rank


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
        r = query.r
        used = r if r.ndim == 1 else r.any(axis=1)
        few = 2 * np.count_nonzero(used) < len(r)  # a batch, a fold: the other rows add nothing
        batch = np.flatnonzero(used) if few else None
        error = design.correlate_error(r)  # before the product, which empties the caches
        return rank(design, query, design.correlate(r, rows=batch), error)
