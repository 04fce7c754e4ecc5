"""Columns of X^T X: made in blocks, kept with the design, and all of them once many were asked for."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from skpursuit.data.design import Design
from skpursuit.numerics.arrays import Floats, Indices
from skpursuit.numerics.tuning import GATHERED_ENTRIES, GRAM_BATCH, GRAM_BLOCK, GRAM_SHARE


def gram_matrix(design: Design) -> Floats:
    """X^T X, in one symmetric product where X is small, else in blocks of columns. Kept."""
    n, d = design.shape
    if design.caches.gram is None and n * d <= GATHERED_ENTRIES:
        columns = design.columns(np.arange(d), cache=False)
        design.caches.gram = columns @ columns.T
    if design.caches.gram is None:
        matrix = np.empty((d, d))
        for start in range(0, d, GRAM_BLOCK):
            cols = np.arange(start, min(start + GRAM_BLOCK, d))
            matrix[:, cols] = design.product(np.ascontiguousarray(design.columns(cols, cache=False).T))
        design.caches.gram = matrix
    return design.caches.gram


def gram_column(design: Design, j: int, prefetch_candidates: Callable[[int], Indices]) -> Floats:
    """X^T x_j. Kept; when it has to be made, so are those of the columns guessed to be asked for next.

    All in one product of `GRAM_BATCH` columns, fewer of them being filled up with zeros, so that the bits
    of a column do not depend on the others.
    """
    n, d = design.shape
    design.reads.stored_bytes += 8 * d
    if design.caches.gram is not None:
        return design.caches.gram[j]
    cache = design.caches.gram_columns
    held = cache.get(j)
    if held is not None:
        return held
    if len(cache.arrays) + 1 >= d // GRAM_SHARE and d**2 * 8 <= cache.max_bytes:  # all of it pays
        return gram_matrix(design)[j]
    new = dict.fromkeys([j, *(i for i in prefetch_candidates(GRAM_BATCH).tolist() if i not in cache.arrays)])
    block = np.array(list(new)[:GRAM_BATCH], dtype=np.intp)
    columns = np.zeros((GRAM_BATCH, n))
    columns[: len(block)] = design.columns(
        block, prefetch_candidates=prefetch_candidates if design.column_costs_full_pass else None
    )
    products = np.ascontiguousarray(design.product(columns.T).T[: len(block)])
    cache.put(block.tolist(), products)
    return products[0]
