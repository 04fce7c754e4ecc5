"""X in several arrays: a list of them by rows, or a list of lists by rows and columns, as in `numpy.block`.

Row edges of the tiles lie at multiples of 512, wherever the arrays end: the rows around an end that is not
such a multiple are copied together into a small tile of their own. All other rows stay where they are. Arrays
of a single column take the memory order of the wider ones, because sums over rows follow that order: X and
the arrays it was cut into then give the same bits.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from skpursuit.data import operator_tile, sparse_tile
from skpursuit.data.dense_tile import DenseTile, checked_array, is_by_columns
from skpursuit.data.tile import Tile
from skpursuit.numerics.arrays import Floats
from skpursuit.numerics.sums import BLOCK_ROWS


def accepts(X: object) -> bool:
    """Whether X is a list of arrays of two dimensions, or of lists of them."""
    if not isinstance(X, (list, tuple)):
        return False
    return any(getattr(part, "ndim", 0) >= 2 for row in X for part in as_list(row)[:1])


def make_tiles(X: Sequence[object]) -> list[list[Tile]]:
    """Arrays side by side and below each other, cut again where their edges are no multiples of 512."""
    grid = [[checked_part(part, i, j) for j, part in enumerate(as_list(row))] for i, row in enumerate(X)]
    widths = [part.shape[1] for part in grid[0]]
    for i, row in enumerate(grid):
        if [part.shape[1] for part in row] != widths or len({len(part) for part in row}) != 1:
            raise ValueError(
                f"X is a list of arrays that do not fit together: part {i} has the shapes "
                f"{[part.shape for part in row]}, part 0 {[part.shape for part in grid[0]]}; parts need the "
                "same columns, arrays in a part the same rows"
            )
    dtype = np.result_type(*(part.dtype for row in grid for part in row))
    wider = next((part for row in grid for part in row if part.shape[1] > 1), grid[0][0])
    columns = [recut([row[j].astype(dtype, copy=False) for row in grid]) for j in range(len(widths))]
    return [[concatenated_tile(parts, is_by_columns(wider)) for parts in row] for row in zip(*columns)]


def as_list(row: object) -> Sequence[object]:
    """The arrays of a part, which may be a single one."""
    return row if isinstance(row, (list, tuple)) else [row]


def checked_part(part: object, i: int, j: int) -> Floats:
    """An array of a list, or an error that tells which it is."""
    if sparse_tile.accepts(part) or operator_tile.accepts(part):
        raise TypeError(
            f"array {j} of part {i} of a list of arrays is a {type(part).__name__}; lists take dense arrays "
            "alone: join sparse ones by scipy.sparse.block_array"
        )
    try:
        return checked_array(part)
    except (TypeError, ValueError) as error:
        raise type(error)(f"array {j} of part {i} of a list of arrays is refused: {error}") from None


def recut(parts: list[Floats]) -> list[list[Floats]]:
    """Slices of the same rows, in groups that end at multiples of 512 rows or where X ends."""
    ends = np.cumsum([len(part) for part in parts])
    inner, n = ends[:-1], ends[-1]
    edges = np.unique(
        [0, *(inner // BLOCK_ROWS * BLOCK_ROWS), *np.minimum(-(-inner // BLOCK_ROWS) * BLOCK_ROWS, n), n]
    )
    groups = []
    for first, last in pairwise(edges.tolist()):
        starts = zip(parts, (ends - [len(part) for part in parts]).tolist())
        slices = [part[max(0, first - start) : max(0, last - start)] for part, start in starts]
        groups.append([some for some in slices if len(some)])
    return groups


def concatenated_tile(parts: list[Floats], by_columns: bool) -> Tile:
    """A tile of arrays below each other, which are copied together if they are several."""
    only = parts[0] if len(parts) == 1 else np.concatenate(parts)
    if len(parts) > 1 and not any(map(is_by_columns, parts)):  # NumPy makes strided columns contiguous
        only = np.ascontiguousarray(only)
    if only.shape[1] > 1:
        by_columns = is_by_columns(only)
    return DenseTile(only, by_columns, parts)
