"""What a design keeps of X, and of a view of it: pure functions of them, which serve every later question.

There are two owners. The store of X keeps what every view can use: gathered columns, norms, codes. A design
keeps the same kinds of things for its view. Nothing here is ever saved, and everything can be made again.
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

if TYPE_CHECKING:
    from skpursuit.data.codes.coded_matrix import CodedMatrix
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
        try:
            self.blocks.move_to_end(found[0])
        except KeyError:  # another thread has just dropped it
            pass
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
    """Caches of one owner: the store of X, or a design for its view.

    Attributes
    ----------
    columns : gathered columns
    norms : by axis and order
    norm_bounds : upper bounds of the column norms that cost less than a survey
    survey, weighted : statistics of the columns; and those with the row weights that were asked for last
    codes : X in one byte an entry or two
    gram, gram_columns : X^T X, and single columns of it
    finite : whether X was found to be finite
    """

    columns: ColumnCache = field(default_factory=ColumnCache)
    norms: dict[tuple[int, float], Floats] = field(default_factory=dict)
    norm_bounds: Floats | None = None
    survey: Survey | None = None
    weighted: tuple[Floats, Survey] | None = None
    codes: CodedMatrix | None = None
    gram: Floats | None = None
    gram_columns: ColumnCache = field(default_factory=lambda: ColumnCache(GRAM_CACHE_BYTES))
    finite: bool = False
