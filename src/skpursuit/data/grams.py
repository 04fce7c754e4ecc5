"""Columns of X^T X: made in blocks, kept with the design, and all of them once many were asked for."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from skpursuit.data.design import Design
from skpursuit.numerics.arrays import Floats, Indices
from skpursuit.numerics.tuning import GATHERED_ENTRIES, GRAM_BLOCK, GRAM_SHARE, GRAM_WIDTH


def gram_matrix(design: Design) -> Floats:
    """X^T X, in one symmetric product where X is small, else in blocks of columns. Kept."""
    n, d = design.shape
    if design.kept.gram is None and n * d <= GATHERED_ENTRIES:
        columns = design.columns(np.arange(d), keep=False)
        design.kept.gram = columns @ columns.T
    if design.kept.gram is None:
        matrix = np.empty((d, d))
        for start in range(0, d, GRAM_BLOCK):
            cols = np.arange(start, min(start + GRAM_BLOCK, d))
            matrix[:, cols] = design.product(np.ascontiguousarray(design.columns(cols, keep=False).T))
        design.kept.gram = matrix
    return design.kept.gram


def gram_column(design: Design, j: int, guesses: Callable[[int], Indices]) -> Floats:
    """X^T x_j. Kept; when it has to be made, so are those of the columns guessed to be asked for next.

    All in one product of `GRAM_WIDTH` columns, fewer of them being filled up with zeros, so that the bits
    of a column do not depend on the others.
    """
    n, d = design.shape
    design.reads.stored_bytes += 8 * d
    if design.kept.gram is not None:
        return design.kept.gram[j]
    cache = design.kept.gram_columns
    held = cache.get(j)
    if held is not None:
        return held
    if len(cache.held) + 1 >= d // GRAM_SHARE and d**2 * 8 <= cache.limit:  # all of it pays
        return gram_matrix(design)[j]
    new = dict.fromkeys([j, *(i for i in guesses(GRAM_WIDTH).tolist() if i not in cache.held)])
    block = np.array(list(new)[:GRAM_WIDTH], dtype=np.intp)
    columns = np.zeros((GRAM_WIDTH, n))
    columns[: len(block)] = design.columns(block, likely=guesses if design.columns_are_dear else None)
    products = np.ascontiguousarray(design.product(columns.T).T[: len(block)])
    cache.put(block.tolist(), products)
    return products[0]
