"""Rows that only grow."""

from __future__ import annotations

import numpy as np

from skpursuit.numerics.tuning import STACK_ROOM


class Stack:
    """Rows that only grow, shared by those who hold them: pushing is cheap and earlier stacks keep theirs.

    A second extension of the same stack copies, so that each stack remains a value.
    """

    def __init__(self, rows: np.ndarray, buffer: np.ndarray | None = None) -> None:
        self.rows = rows
        self._buffer = buffer
        self._extended = False

    def extend(self, rows: np.ndarray) -> Stack:
        """A stack with more rows."""
        size, total = len(self.rows), len(self.rows) + len(rows)
        buffer = self._buffer
        if buffer is None or self._extended or total > len(buffer):
            # Room costs nothing until it is written to, copies do.
            room = min(64, STACK_ROOM // max(1, rows[:1].size))
            buffer = np.empty((max(8, room, 2 * size, total), *self.rows.shape[1:]), self.rows.dtype)
            buffer[:size] = self.rows
        self._extended = True
        buffer[size:total] = rows
        return Stack(buffer[:total], buffer)
