"""What a design keeps of X, and of a view of it: pure functions of them, which serve every later question.

There are two owners. The store of X keeps what every view can use: gathered columns, norms, codes. A design
keeps the same kinds of things for its view, and columns of X^T X, which are made in blocks, and all of them
once many were asked for. Nothing here is ever saved, and everything can be made again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING

import numpy as np

from skpursuit.numerics.arrays import Floats, Indices
from skpursuit.numerics.tuning import GATHERED_ENTRIES, GRAM_BATCH, GRAM_BLOCK, GRAM_SHARE

if TYPE_CHECKING:
    from skpursuit.data.codes.coded_matrix import CodedMatrix
    from skpursuit.data.design import Design
    from skpursuit.data.survey import Survey

COLUMN_CACHE_BYTES = 256 * 2**20
GRAM_CACHE_BYTES = 2**30


@dataclass
class ColumnCache:
    """Columns by index, bounded in bytes: least recently used ones go, in the blocks they were made in."""

    max_bytes: int = COLUMN_CACHE_BYTES
    arrays: dict[int, tuple[int, Floats]] = field(default_factory=dict)
    blocks: OrderedDict[int, tuple[list[int], int]] = field(default_factory=OrderedDict)
    nbytes: int = 0
    numbers: Iterator[int] = field(default_factory=count)  # of blocks; threads may share a cache

    def get(self, j: int) -> Floats | None:
        """Return column j if it is held."""
        found = self.arrays.get(j)
        if found is None:
            return None
        with suppress(KeyError):  # another thread has just dropped it
            self.blocks.move_to_end(found[0])
        return found[1]

    def contains_all(self, cols: Indices) -> bool:
        """Whether all these columns are held."""
        return all(j in self.arrays for j in cols.tolist())

    def lines(
        self, cols: list[int], gather: Callable[[Indices], Floats]
    ) -> tuple[list[Floats], Floats | None]:
        """Columns as one-dimensional arrays, those that are not held gathered; and the array of these."""
        found = {j: self.get(j) for j in cols}
        fresh = [j for j, line in found.items() if line is None]
        gathered = None
        if fresh:
            gathered = gather(np.array(fresh, dtype=np.intp))
            self.put(fresh, gathered)
            found.update(zip(fresh, gathered))
        return [found[j] for j in cols], gathered  # type: ignore[misc]

    def put(self, cols: list[int], rows: Floats) -> None:
        """Hold columns, the rows of an array that is not copied; forget old ones at the bound."""
        number = next(self.numbers)
        self.arrays.update((j, (number, row)) for j, row in zip(cols, rows))
        self.blocks[number] = (cols, rows.nbytes)  # last: another thread may forget it at once
        self.nbytes += rows.nbytes
        with suppress(KeyError):
            while self.nbytes > self.max_bytes and len(self.blocks) > 1:
                self._forget(*self.blocks.popitem(last=False))

    def _forget(self, block: int, what: tuple[list[int], int]) -> None:
        self.nbytes -= what[1]
        for j in what[0]:
            if self.arrays.get(j, (0,))[0] == block:
                self.arrays.pop(j, None)


@dataclass
class Caches:
    """Caches of one owner: the store of X, or a design for its view."""

    columns: ColumnCache = field(default_factory=ColumnCache)  # gathered ones
    norms: dict[tuple[int, float], Floats] = field(default_factory=dict)  # by axis and order
    norm_bounds: Floats | None = None  # upper bounds of the column norms that cost less than a survey
    survey: Survey | None = None  # statistics of the columns
    weighted: tuple[Floats, Survey] | None = None  # and with the row weights that were asked for last
    codes: CodedMatrix | None = None  # X in one byte an entry or two
    gram: Floats | None = None  # X^T X
    gram_columns: ColumnCache = field(default_factory=lambda: ColumnCache(GRAM_CACHE_BYTES))
    finite: bool = False  # whether X was found to be finite


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
