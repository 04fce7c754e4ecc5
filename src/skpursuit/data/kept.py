"""What a design keeps: the counts of what was read, and columns that may be asked for again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from skpursuit.numerics.arrays import Floats, Indices

__all__ = ["ColumnCache", "Floats", "Indices", "ProductCache", "Reads"]

COLUMN_CACHE_BYTES = 256 * 2**20


@dataclass
class Reads:
    """How much was read: of X or what stands for it (codes, copies), and of stored products of columns.

    `entries` and `bytes` are what selection read to answer questions. `prepared_entries` and `prepared_bytes`
    are what was read once for all questions: for norms, codes, layouts, gathered columns, fingerprints. Both
    contain the indices of sparse X and the scales of codes; each call of an operator counts as all of X.
    `stored_bytes` are those of columns of X^T X and of products of codes with columns, each time they are
    read. Vectors (r, norms, bounds: a few numbers for each row or column) are not counted.
    """

    entries: int = 0
    bytes: int = 0
    prepared_entries: int = 0
    prepared_bytes: int = 0
    stored_bytes: int = 0

    def add(self, entries: int, nbytes: int) -> None:
        """Count a read made to answer a question."""
        self.entries += int(entries)
        self.bytes += int(nbytes)

    def prepare(self, entries: int, nbytes: int) -> None:
        """Count a read whose result is kept for every later question."""
        self.prepared_entries += int(entries)
        self.prepared_bytes += int(nbytes)


@dataclass
class ColumnCache:
    """Columns by index, bounded in bytes. They come and go in the blocks they were made in, oldest first."""

    limit: int = COLUMN_CACHE_BYTES
    held: dict[int, tuple[int, Floats]] = field(default_factory=dict)
    blocks: OrderedDict[int, tuple[list[int], int]] = field(default_factory=OrderedDict)
    nbytes: int = 0
    numbers: Iterator[int] = field(default_factory=count)  # of blocks; threads may share a cache

    def get(self, j: int) -> Floats | None:
        """Return column j if it is held."""
        found = self.held.get(j)
        if found is None:
            return None
        try:
            self.blocks.move_to_end(found[0])
        except KeyError:  # another thread has just dropped it
            pass
        return found[1]

    def put(self, cols: list[int], rows: Floats) -> None:
        """Hold columns, the rows of an array that is not copied; forget old ones at the bound."""
        number = next(self.numbers)
        self.held.update((j, (number, row)) for j, row in zip(cols, rows))
        self.blocks[number] = (cols, rows.nbytes)  # last: another thread may forget it at once
        self.nbytes += rows.nbytes
        with suppress(KeyError):
            while self.nbytes > self.limit and len(self.blocks) > 1:
                self._forget(*self.blocks.popitem(last=False))

    def _forget(self, block: int, what: tuple[list[int], int]) -> None:
        self.nbytes -= what[1]
        for j in what[0]:
            if self.held.get(j, (0,))[0] == block:
                self.held.pop(j, None)


class ProductCache:
    """Products of the codes of X with columns, which serve as long as the codes are the same."""

    def __init__(self) -> None:
        self._held: tuple[Any, ColumnCache] = None, ColumnCache()

    def made_of(self, codes: Any, limit: int) -> ColumnCache:
        """The products of these codes, bounded in bytes; those of other codes are forgotten."""
        if codes is not self._held[0]:
            self._held = codes, ColumnCache(limit)
        return self._held[1]
