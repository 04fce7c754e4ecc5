"""X in several arrays: a list of them by rows, or a list of lists by rows and columns, as in `numpy.block`.

Row edges of the tiles lie at multiples of 512, wherever the arrays end: the rows around an end that is not
such a multiple are copied together into a small tile of their own. All other rows stay where they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from skpursuit.data.array_source import checked_array
from skpursuit.data.dense import DenseTile
from skpursuit.data.tile import Tile
from skpursuit.numerics.arrays import Floats
from skpursuit.numerics.sums import PIECE


def takes(X: Any) -> bool:
    """Whether X is a list of two-dimensional arrays, or of lists of them."""
    if not isinstance(X, (list, tuple)) or len(X) == 0:
        return False
    rows = [row if isinstance(row, (list, tuple)) else [row] for row in X]
    return all(len(row) > 0 and all(getattr(part, "ndim", 0) == 2 for part in row) for row in rows)


def tiles(X: Any) -> list[list[Tile]]:
    """Arrays side by side and below each other, cut again where their edges are no multiples of 512."""
    grid = [[checked_array(part) for part in (row if isinstance(row, (list, tuple)) else [row])] for row in X]
    widths = [part.shape[1] for part in grid[0]]
    for i, row in enumerate(grid):
        if [part.shape[1] for part in row] != widths or len({len(part) for part in row}) != 1:
            raise ValueError(
                f"X is a list of arrays that do not fit together: those of part {i} have shapes "
                f"{[part.shape for part in row]}; parts need the same columns, arrays in a part the same rows"
            )
    dtype = np.result_type(*(part.dtype for row in grid for part in row))
    columns = [recut([row[j].astype(dtype, copy=False) for row in grid]) for j in range(len(widths))]
    return [[DenseTile(part) for part in row] for row in zip(*columns)]


def recut(parts: list[Floats]) -> list[Floats]:
    """The same rows in arrays that end at multiples of 512: slices, and copies around other edges."""
    out: list[Floats] = []
    waiting: list[Floats] = []  # less than a piece of rows that end no array of `out` yet
    for part in parts:
        held = sum(len(rows) for rows in waiting)
        head = min(len(part), -held % PIECE)
        if head:
            waiting.append(part[:head])
        if waiting and (held + head) % PIECE == 0:
            out.append(np.concatenate(waiting))
            waiting = []
        body = head + (len(part) - head) // PIECE * PIECE
        if body > head:
            out.append(part[head:body])
        if body < len(part):
            waiting.append(part[body:])
    if waiting:
        out.append(waiting[0] if len(waiting) == 1 else np.concatenate(waiting))
    return out
