"""Rows that only grow, in memory or, where they would take too much of it, in a file or on a cluster.

The columns of a support and their orthonormal rows are k x n numbers, the only thing on the driver that is
larger than a vector: 4 GB for 50 columns of 10^7 rows. An X on disk or on a cluster comes with a memory
limit. A stack that outgrows its part of it moves to an unnamed temporary file, which is mapped: products read
it at the speed of memory as long as the system has pages to spare, and at that of the disk otherwise. Rows
on the workers of a cluster (`fit/worker_rows.py`) are used in the same way: sums over n are made by ranges of
n that depend on nothing else, so that both have the same bits.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np

from skpursuit.numerics.sums import row_norms
from skpursuit.numerics.tuning import STACK_ROOM

RANGE = 2**18  # numbers of each row that are multiplied at a time, or by a task on a cluster


class Rows:
    """Rows of n numbers, a value: all that a fit on gathered columns asks of them, wherever they are."""

    is_away: bool  # whether they are on workers
    rows: Any  # all of them in memory, of shape (k, n)
    last: Any  # the row that was added last
    sizes: Any  # their norms
    take: Any  # (which): some of the rows
    scaled: Any  # (factors): the rows times factors
    combinations: Any  # (list of weights): for each of shape (k,) or (k, m) the sum of rows times weights
    sums: Any  # (fn, *by_number): sums of fn(rows, *by_number), a tuple of arrays, over ranges of n
    # (descents, samples, starts, ending): what `ending` makes of the ends of `Descent`s (`fit/descent.py`),
    # and predictions there
    descend: Any

    def first(self, size: int) -> Any:
        """The first rows alone."""
        return self.take(slice(size))

    def combined(self, weights: np.ndarray) -> np.ndarray:
        """The sum of rows times weights of shape (k,) or (k, m), of shape (n,) or (n, m)."""
        return self.combinations([weights])[0]

    def correlated(self, v: np.ndarray) -> np.ndarray:
        """Products of the rows with v of shape (n,) or (n, m)."""
        return self.sums(products, v)[0]


class Stack(Rows):
    """Rows that only grow, shared by those who hold them: pushing is cheap and earlier stacks keep theirs.

    A second extension of the same stack copies, so that each stack remains a value. Above `limit` bytes the
    rows are in a file.
    """

    is_away = False

    def __init__(self, rows: np.ndarray, buffer: np.ndarray | None = None, limit: float = np.inf) -> None:
        self.rows, self.limit = rows, limit
        self._buffer, self._extended = buffer, False

    def __reduce__(self) -> tuple[Any, ...]:
        return Stack, (self.rows, None, self.limit)  # without the room for more

    def __sizeof__(self) -> int:  # Dask asks how much it keeps
        return self.rows.nbytes

    def extend(self, rows: np.ndarray) -> Stack:
        """A stack with more rows."""
        size, total = len(self.rows), len(self.rows) + len(rows)
        buffer = self._buffer
        if buffer is None or self._extended or total > len(buffer):
            # Room costs nothing until it is written to, copies do.
            room = max(8, min(64, STACK_ROOM // max(1, rows[:1].size)), 2 * size, total)
            most = int(min(room, self.limit // max(1, rows[:1].nbytes)))  # rows that may be in memory
            make, room = (np.empty, most) if total <= most else (in_file, room)
            buffer = make((room, *self.rows.shape[1:]), self.rows.dtype)
            buffer[:size] = self.rows
        self._extended = True
        buffer[size:total] = rows
        return Stack(buffer[:total], buffer, self.limit)

    @property
    def last(self) -> np.ndarray:
        return self.rows[-1]

    @property
    def sizes(self) -> np.ndarray:
        return row_norms(self.rows)

    def take(self, which: Any) -> Stack:
        return Stack(self.rows[which], limit=self.limit)

    def scaled(self, factors: np.ndarray) -> Stack:
        return Stack(self.rows * factors[:, None], limit=self.limit)

    def combinations(self, weights: list[np.ndarray]) -> list[np.ndarray]:
        return [(some.T @ self.rows).T for some in weights]

    def sums(self, fn: Callable[..., tuple[np.ndarray, ...]], *by_number: Any) -> tuple[np.ndarray, ...]:
        ranges = row_ranges(self.rows.shape[1])
        return added([fn(self.rows[:, part], *cut(by_number, part)) for part in ranges])

    def descend(
        self, descents: list[Any], samples: list[Any], starts: list[Any], ending: Any
    ) -> tuple[list[Any], list[Any]]:
        ends = ending([self._descended(*one) for one in zip(descents, samples, starts)])
        ranges = row_ranges(self.rows.shape[1])
        parts = [[(*cut((z,), part), self.rows[:, part]) for part in ranges] for z in starts]
        return ends, [np.concatenate([end.end(*one) for one in some]) for end, some in zip(ends, parts)]

    def _descended(self, descent: Any, samples: Any, z: Any) -> Any:
        ranges = row_ranges(self.rows.shape[1])
        parts = [(*cut((z,), part), self.rows[:, part], samples.part(part)) for part in ranges]
        while not descent.done:
            descent = descent.after([descent.look(*part) for part in parts])
        return descent


def row_ranges(n: int) -> list[slice]:
    """Ranges of n numbers, whose edges are multiples of `RANGE`."""
    return [slice(start, min(start + RANGE, n)) for start in range(0, n, RANGE)]


def cut(by_number: tuple[Any, ...], part: slice) -> list[Any]:
    """Parts of arrays; None stays None."""
    return [None if values is None else values[part] for values in by_number]


def added(parts: list[tuple[np.ndarray, ...]]) -> tuple[np.ndarray, ...]:
    """Sums of the first arrays, of the second ones and so on, one after the other."""
    return parts[0] if len(parts) == 1 else tuple(np.add.reduce(some) for some in zip(*parts))


def products(rows: np.ndarray, v: np.ndarray) -> tuple[np.ndarray]:
    """Products of rows with v, as a summand of `Rows.sums`."""
    return (rows @ v,)


def in_file(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """An array in a file without a name, which is gone when the array is."""
    nbytes = int(np.prod(shape)) * dtype.itemsize
    with tempfile.TemporaryFile() as file:
        try:
            if hasattr(os, "posix_fallocate"):  # a full disk would otherwise end the process at a write
                os.posix_fallocate(file.fileno(), 0, nbytes)
            else:
                file.truncate(nbytes)
        except OSError as error:
            raise OSError(
                error.errno,
                f"{tempfile.gettempdir()} has no room for {nbytes:,} bytes of the columns of the support; "
                "set TMPDIR to a folder that has, or raise memory_limit",
            ) from None
        return np.ndarray(shape, dtype, mmap.mmap(file.fileno(), nbytes))
