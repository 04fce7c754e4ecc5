"""Rows that only grow, in memory or, where they would take too much of it, in a file.

The columns of a support and their orthonormal rows are k x n numbers, the only thing on the driver that is
larger than a vector: 4 GB for 50 columns of 10^7 rows. An X on disk or on a cluster comes with a memory
limit. A stack that outgrows its part of it moves to an unnamed temporary file, which is mapped: products read
it at the speed of memory as long as the system has pages to spare, and at that of the disk otherwise.
"""

from __future__ import annotations

import mmap
import os
import tempfile

import numpy as np

from skpursuit.numerics.tuning import INITIAL_BUFFER_ENTRIES


class RowBuffer:
    """Rows that only grow, shared by those who hold them: pushing is cheap and earlier stacks keep theirs.

    A second extension of the same stack copies, so that each stack remains a value. Above `limit` bytes the
    rows are in a file.
    """

    def __init__(self, rows: np.ndarray, buffer: np.ndarray | None = None, limit: float = np.inf) -> None:
        self.rows, self.limit = rows, limit
        self._buffer, self._extended = buffer, False

    def __reduce__(self) -> tuple[object, ...]:
        return RowBuffer, (self.rows, None, self.limit)  # without the room for more

    def extend(self, rows: np.ndarray) -> RowBuffer:
        """A stack with more rows."""
        size, total = len(self.rows), len(self.rows) + len(rows)
        buffer = self._buffer
        if buffer is None or self._extended or total > len(buffer):
            # Room costs nothing until it is written to, copies do.
            room = max(8, min(64, INITIAL_BUFFER_ENTRIES // max(1, rows[:1].size)), 2 * size, total)
            most = int(min(room, self.limit // max(1, rows[:1].nbytes)))  # rows that may be in memory
            make, room = (np.empty, most) if total <= most else (empty_in_temp_file, room)
            buffer = make((room, *self.rows.shape[1:]), self.rows.dtype)
            buffer[:size] = self.rows
        self._extended = True
        buffer[size:total] = rows
        return RowBuffer(buffer[:total], buffer, self.limit)

    def first(self, size: int) -> RowBuffer:
        """The first rows alone."""
        return RowBuffer(self.rows[:size], limit=self.limit)

    def combine(self, weights: np.ndarray) -> np.ndarray:
        """The sum of rows times weights of shape (k,) or (k, m), of shape (n,) or (n, m)."""
        return (weights.T @ self.rows).T


def empty_in_temp_file(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
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
