"""Norms of the columns and rows of X, in bits that do not depend on how X is cut, and within the float range.

Squares are added up per piece of 512 rows, one after the other, wherever the tiles are. Lines whose squares
leave the range of floats are added up again in units of their largest entries, all of them in one more pass.
A sparse tile has units of its own from the start, and an operator gives its lines as products.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from skpursuit.data.reads import Reads
from skpursuit.data.tile import Tile
from skpursuit.numerics.arrays import Floats, Indices
from skpursuit.numerics.sums import PIECE, SMALLEST_SQUARE, line_norms, piece_squares
from skpursuit.numerics.tuning import PANEL_ENTRIES

if TYPE_CHECKING:
    from skpursuit.data.store import Place, TileStore

WIDTH = 64  # lines of an operator that are asked for in one call


def make_norms(store: TileStore, axis: int, order: float, reads: Reads) -> Floats:
    """Norms of the columns (axis 0) or of the rows (axis 1) of X; order 2 or infinity."""
    if not store.first.has_entries:
        return norms_by_products(store, axis, order, reads)
    reads.prepare(*store.cost())
    if order == np.inf:
        return largest(store, axis)
    if not store.first.can_encode:
        return norms_of_sparse_tiles(store, axis)
    squares = np.zeros(store.shape[1 - axis])
    for place, parts in store.run("squares", lambda at: (axis,)):
        add_in_order(parts, squares[place.cols if axis == 0 else place.rows])
    return safe_roots(store, squares, axis)


def moved_norms(store: TileStore, centre: Floats | None, root: Floats | None) -> Floats:
    """Norms of columns less their centres, rows times `root`, from one pass where the tiles are."""
    unit = 1.0 if root is None else float(np.abs(root).max())
    root = root if root is None or unit == 0.0 else root / unit
    cols = np.arange(store.shape[1])
    return unit * safe_roots(store, squares_of_moved(store, cols, centre, root), 0, centre, root)


def squares_of_moved(
    store: TileStore, cols: Indices, centre: Floats | None, root: Floats | None, unit: Floats | None = None
) -> Floats:
    """Sums of squares of columns less their centres, in units of their own, rows times `root`."""

    def args(at: Place, places: Indices) -> tuple[Any, ...]:
        return (
            None if centre is None else centre[cols[places]],
            None if unit is None else unit[places],
            None if root is None else root[at.rows],
        )

    squares = np.zeros(len(cols))
    for _, places, parts in store.run_columns(moved_squares, cols, args):
        some = squares[places]
        add_in_order(parts, some)
        squares[places] = some
    return squares


def largest(store: TileStore, axis: int) -> Floats:
    """The largest |entry| of each column or row."""
    out = np.zeros(store.shape[1 - axis])
    for place, part in store.run("largest", lambda at: (axis,)):
        lines = place.cols if axis == 0 else place.rows
        out[lines] = np.maximum(out[lines], part)
    return out


def norms_of_sparse_tiles(store: TileStore, axis: int) -> Floats:
    """Norms of sparse tiles in one pass: each tile has units of its own, which are then joined."""
    top, squares = np.zeros((2, store.shape[1 - axis]))
    for place, (unit, part) in store.run(scaled_squares, lambda at: (axis,)):
        lines = place.cols if axis == 0 else place.rows
        larger = np.maximum(top[lines], unit)
        safe = np.where(larger > 0, larger, 1.0)
        with np.errstate(invalid="ignore"):
            squares[lines] = squares[lines] * (top[lines] / safe) ** 2 + part * (unit / safe) ** 2
        top[lines] = larger
    return np.where(np.isfinite(top), top * np.sqrt(squares), top)


def safe_roots(
    store: TileStore, squares: Floats, axis: int, centre: Floats | None = None, root: Floats | None = None
) -> Floats:
    """Roots of sums of squares, those of `squares_of_moved` or of rows.

    Lines whose squares left the float range are added up again in units of their largest entries, all of
    them together.
    """
    norms = np.sqrt(squares)
    bad = np.flatnonzero(~((squares > SMALLEST_SQUARE) & (squares < np.inf)) & ~np.isnan(squares))
    if not len(bad):
        return norms
    top = largest(store, axis)[bad]
    top = norms[bad] = top if centre is None else np.maximum(top, np.abs(centre[bad]))
    odd = (top > 0) & (top < np.inf)
    bad, top = bad[odd], top[odd]
    cols = np.arange(store.shape[1])
    with np.errstate(over="ignore"):
        if axis == 0 and len(bad):
            norms[bad] = top * np.sqrt(squares_of_moved(store, bad, centre, root, unit=top))
        elif axis == 1:
            rows = (store.entries(np.full(len(cols), i), cols) for i in bad.tolist())
            norms[bad] = [unit * np.linalg.norm(row / unit) for row, unit in zip(rows, top)]
    return norms


def norms_by_products(store: TileStore, axis: int, order: float, reads: Reads) -> Floats:
    """Norms of the lines of an operator, which gives them as products with unit vectors."""
    out = np.zeros(store.shape[1 - axis])
    for start in range(0, len(out), WIDTH):
        part = np.arange(start, min(start + WIDTH, len(out)))
        reads.prepare(*store.cost(cols=part if axis == 0 else None))
        if axis == 0 and store.kept.columns.holds(part):
            lines = np.stack(store.lines(part))
        elif axis == 0:
            lines = store.take(part)
        else:
            unit = np.zeros((store.shape[0], len(part)))
            unit[part, np.arange(len(part))] = 1.0
            lines = np.ascontiguousarray(store.product(unit).T)
        out[part] = line_norms(lines, order)
    return out


def scaled_squares(tile: Tile, axis: int) -> tuple[Floats, Floats]:
    """The largest |entry| of each line of a tile, and its sum of squares in units of that."""
    top = tile.largest(axis)
    unit = np.where((top > 0) & np.isfinite(top), top, 1.0)
    return top, tile.squares(axis, unit)[0]


def moved_squares(
    tile: Tile, cols: Indices, centre: Floats | None, unit: Floats | None, root: Floats | None
) -> Floats:
    """Sums of squares as `squares_of_moved` wants them: those of each piece of rows."""
    n = tile.shape[0]
    out, step = np.empty((-(-n // PIECE), len(cols))), max(1, PANEL_ENTRIES // n)
    tile.prepare("columns")
    for start in range(0, len(cols), step):
        some = slice(start, start + step)
        lines = tile.take(cols[some])
        lines = lines if centre is None else lines - centre[some, None]
        lines = lines if unit is None else lines / unit[some, None]
        out[:, some] = piece_squares(lines if root is None else lines * root)
    return out


def add_in_order(parts: Floats, out: np.ndarray) -> None:
    """Add partial sums, one row for each piece of a tile, one after the other."""
    with np.errstate(over="ignore", invalid="ignore"):
        for part in parts:
            out += part
