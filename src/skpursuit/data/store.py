"""Where the tiles of X are: a grid of them, summed over row edges and joined over column edges.

An array in memory is one tile, so that nothing is slower there. Row edges lie at multiples of 512 rows, and
whatever decides something (norms, means, gathered columns) is added up per piece of 512 rows or less, never
per tile: an array and the pieces it was cut into give the same bits. The store also owns what is kept of X
itself, which every view of it can use.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from math import sqrt
from typing import Any

import numpy as np

from skpursuit.data.kept import Kept
from skpursuit.data.reads import Reads
from skpursuit.data.tile import Cost, Tile
from skpursuit.numerics.arrays import Floats, Indices
from skpursuit.numerics.estimate import product_bound
from skpursuit.numerics.sums import EPS, SMALLEST_SQUARE, line_norms, scaled_norm
from skpursuit.numerics.tuning import SWEEP

WIDTH = 64  # lines of an operator that are asked for in one call


class TileStore:
    """X as a grid of tiles, one list for each range of rows, and what is kept of it."""

    def __init__(self, grid: list[list[Tile]]) -> None:
        self.grid = grid
        self.first = grid[0][0]
        self.is_one_tile = len(grid) == 1 and len(grid[0]) == 1
        self.row_edges = np.cumsum([0, *(row[0].shape[0] for row in grid)])
        self.col_edges = np.cumsum([0, *(tile.shape[1] for tile in grid[0])])
        self.shape = int(self.row_edges[-1]), int(self.col_edges[-1])
        self.dtype = np.result_type(*(tile.dtype for row in grid for tile in row))
        self.kept = Kept()
        self.witnesses: list[Any] = []

    def parts(self) -> Iterator[tuple[Tile, slice, slice]]:
        """Every tile with its rows and columns, row by row."""
        for i, row in enumerate(self.grid):
            for j, tile in enumerate(row):
                yield tile, slice(*self.row_edges[i : i + 2]), slice(*self.col_edges[j : j + 2])

    def split(self, lines: Indices, edges: np.ndarray) -> Iterator[tuple[int, Indices, Indices]]:
        """Which of some rows or columns lie in which range: (range, places in `lines`, numbers within it)."""
        home = np.searchsorted(edges, lines, side="right") - 1
        for part in np.unique(home).tolist():
            places = np.flatnonzero(home == part)
            yield part, places, lines[places] - edges[part]

    # -- verbs of tiles, summed and joined ------------------------------------------------------------

    @cached_property
    def unit(self) -> float:
        """Bound on the rounding of `product`, relative to ||x_j|| ||r||: that of the tiles and their sums."""
        if self.is_one_tile:
            return self.first.unit
        return max(tile.unit for tile, _, _ in self.parts()) + 2 * len(self.grid) * EPS

    def cost(self, rows: Indices | None = None, cols: Indices | None = None) -> Cost:
        """Entries and bytes touched when reading these rows and columns."""
        if not self.first.has_entries and rows is None and cols is not None and self.kept.columns.holds(cols):
            count = self.shape[0] * len(cols)
            return count, count * self.dtype.itemsize
        if self.is_one_tile:
            return self.first.cost(rows, cols)
        costs = [
            self.grid[i][j].cost(some_rows, some_cols)
            for i, some_rows in self._ranges(rows, self.row_edges)
            for j, some_cols in self._ranges(cols, self.col_edges)
        ]
        entries, nbytes = (sum(parts) for parts in zip(*costs)) if costs else (0, 0)
        return entries, nbytes

    def _ranges(self, lines: Indices | None, edges: np.ndarray) -> list[tuple[int, Indices | None]]:
        """(range, numbers within it) of some rows or columns; None stands for all of them."""
        if lines is None:
            return [(part, None) for part in range(len(edges) - 1)]
        return [(part, local) for part, _, local in self.split(lines, edges)]

    def product(self, r: Floats, rows: Indices | None = None) -> Floats:
        """X^T r as float64, in any order of summation."""
        if self.is_one_tile:
            return self.first.product(r, rows)
        out = np.zeros((*r.shape[1:], self.shape[1])).T
        for i, some in self._ranges(rows, self.row_edges):
            part = np.ascontiguousarray(r[self.row_edges[i] : self.row_edges[i + 1]])
            for j, tile in enumerate(self.grid[i]):
                out[self.col_edges[j] : self.col_edges[j + 1]] += tile.product(part, some)
        return out

    def take(self, cols: Indices) -> Floats:
        """Columns as the rows of a new float64 array."""
        if self.is_one_tile:
            return self.first.take(cols)
        out = np.empty((len(cols), self.shape[0]))
        for j, places, local in self.split(cols, self.col_edges):
            for i, row in enumerate(self.grid):
                out[places, self.row_edges[i] : self.row_edges[i + 1]] = row[j].take(local)
        return out

    def add_rows(self, rows: Indices, weights: Floats, out: Floats, cols: Indices | None = None) -> None:
        """out[j] += sum over rows of weights[i] * X[rows[i], j], for all j or those in `cols`."""
        if self.is_one_tile:
            self.first.add_rows(rows, weights, out, cols)
            return
        asked = np.arange(self.shape[1]) if cols is None else cols
        for j, there, local_cols in self.split(asked, self.col_edges):
            for i, here, local_rows in self.split(rows, self.row_edges):
                part = np.zeros((*out.shape[1:], len(there))).T
                whole = cols is None
                self.grid[i][j].add_rows(local_rows, weights[here], part, None if whole else local_cols)
                out[there] += part

    def entries(self, rows: Indices, cols: Indices) -> Floats:
        """Single entries X[rows[i], cols[i]]."""
        if self.is_one_tile:
            return self.first.entries(rows, cols)
        out = np.empty(len(rows))
        for i, here, local_rows in self.split(rows, self.row_edges):
            for j, there, local_cols in self.split(cols[here], self.col_edges):
                out[here[there]] = self.grid[i][j].entries(local_rows[there], local_cols)
        return out

    def sums(self, weights: Floats) -> Floats:
        """sum_i weights[i] X[i, j] for each column, with more digits than a product has."""
        if not self.first.has_entries:
            return self.product(weights)
        total = np.zeros(self.shape[1], dtype=np.longdouble)
        for tile, here, there in self.parts():
            tile.add_sums(weights[here], total[there])
        return total.astype(np.float64)

    def prepare(self, what: str, reads: Reads) -> None:
        """Make the layouts that reading "rows" or "columns" needs, where X has none."""
        if self.is_one_tile:
            reads.prepare(*self.first.prepare(what))
            return
        for tile, _, _ in self.parts():
            reads.prepare(*tile.prepare(what))

    def layout_bytes(self, what: str) -> int:
        """Bytes of the layouts that `prepare` keeps beside X."""
        return sum(tile.layout_bytes(what) for tile, _, _ in self.parts())

    # -- what is kept of X ----------------------------------------------------------------------------

    def lines(self, cols: Indices) -> tuple[list[Floats], list[int]]:
        """Columns of X as one-dimensional arrays, gathered into the cache; and those that were not in it."""
        cache, wanted = self.kept.columns, cols.tolist()
        found = {j: cache.get(j) for j in wanted}
        fresh = [j for j, line in found.items() if line is None]
        if fresh:
            gathered = self.take(np.array(fresh, dtype=np.intp))
            cache.put(fresh, gathered)
            found.update(zip(fresh, gathered))
        return [found[j] for j in wanted], fresh  # type: ignore[misc]

    def sweep_pays(self) -> bool:
        """Whether gathering one column costs as much as several, and these would stay in the cache."""
        tile = self.first
        short = self.shape[0] * 8 * SWEEP <= self.kept.columns.limit // 8
        return tile.can_encode and tile.fast_axis == 1 and short

    def norms(self, axis: int, order: float, reads: Reads) -> Floats:
        """Norms of the columns (axis 0) or of the rows (axis 1) of X; order 2 or infinity. Kept."""
        key = (axis, order)
        if key not in self.kept.norms:
            if self.first.has_entries:
                reads.prepare(*self.cost())
                made = self._largest(axis) if order == np.inf else self._euclidean_norms(axis)
            else:
                made = self._norms_by_products(axis, order, reads)
            self.kept.norms[key] = made
        return self.kept.norms[key]

    def _largest(self, axis: int) -> Floats:
        """The largest |entry| of each column or row."""
        out = np.zeros(self.shape[1 - axis])
        for tile, here, there in self.parts():
            lines = there if axis == 0 else here
            out[lines] = np.maximum(out[lines], tile.largest(axis))
        return out

    def _squares(self, axis: int, unit: Floats | None = None) -> Floats:
        out = np.zeros(self.shape[1 - axis])
        for tile, here, there in self.parts():
            lines = there if axis == 0 else here
            tile.add_squares(axis, out[lines], None if unit is None else unit[lines])
        return out

    def _euclidean_norms(self, axis: int) -> Floats:
        """Roots of sums of squares that neither overflow nor underflow."""
        if not self.first.can_encode:  # sparse: the largest entries cost little
            top = self._largest(axis)
            unit = np.where((top > 0) & np.isfinite(top), top, 1.0)
            return unit * np.sqrt(self._squares(axis, unit))
        return self.safe_roots(self._squares(axis), axis)

    def safe_roots(self, squares: Floats, axis: int) -> Floats:
        """Square roots of sums of squares; lines whose squares left the float range are added up again."""
        norms = np.sqrt(squares)
        bad = np.flatnonzero(~((squares > SMALLEST_SQUARE) & (squares < np.inf)) & ~np.isnan(squares))
        for j in bad.tolist():
            line = self.take(np.array([j]))[0] if axis == 0 else self._row(j)
            top = float(np.abs(line).max(initial=0.0))
            if top > 0:
                norms[j] = top * float(np.linalg.norm(line / top)) if np.isfinite(top) else np.inf
        return norms

    def _row(self, i: int) -> Floats:
        cols = np.arange(self.shape[1])
        return self.entries(np.full(len(cols), i), cols)

    def _norms_by_products(self, axis: int, order: float, reads: Reads) -> Floats:
        """Norms of the lines of an operator, which gives them as products with unit vectors."""
        out = np.zeros(self.shape[1 - axis])
        for start in range(0, len(out), WIDTH):
            part = np.arange(start, min(start + WIDTH, len(out)))
            reads.prepare(*self.cost(cols=part if axis == 0 else None))
            if axis == 0 and self.kept.columns.holds(part):
                lines = np.stack(self.lines(part)[0])
            elif axis == 0:
                lines = self.take(part)
            else:
                unit = np.zeros((self.shape[0], len(part)))
                unit[part, np.arange(len(part))] = 1.0
                lines = np.ascontiguousarray(self.product(unit).T)
            out[part] = line_norms(lines, order)
        return out

    def sizes(self, reads: Reads, coarse: bool = False) -> Floats:
        """Upper bounds of the column norms, no dearer than one pass over X.

        Where column norms would cost a pass of their own, ||X||_F alone, which is close enough for float64,
        or also for float32 where `coarse` is asked for.
        """
        by_rows = self.first.can_encode and (coarse or self.dtype != np.float32)
        if not by_rows or (0, 2) in self.kept.norms:
            return self.norms(0, 2, reads)
        if self.kept.sizes is None:
            self.kept.sizes = np.full(self.shape[1], scaled_norm(self.norms(1, 2, reads)))
        return self.kept.sizes

    def product_error(self, r: Floats, reads: Reads) -> Floats | None:
        """Bound on the rounding of `product`, one per column; None where it is a fixed-order product."""
        tile = self.first
        if tile.fixed_order and self.is_one_tile:
            return None
        if not tile.has_entries:
            return np.multiply.outer(self.rough_sizes(reads), self.unit * np.linalg.norm(r, axis=0))
        if not tile.can_encode:
            terms = (tile.stored("columns") + 2) * self.norms(0, 2, reads)  # type: ignore[attr-defined]
            return product_bound(2 * float(np.finfo(self.dtype).eps), terms, r, self.dtype)
        return product_bound(self.unit, self.sizes(reads), r, self.dtype)

    def rough_sizes(self, reads: Reads) -> Floats:
        """The column norms of an operator where they are known, else guesses that are not too small."""
        if (0, 2) in self.kept.norms:
            return self.norms(0, 2, reads)
        if self.kept.sizes is None:
            reads.prepare(*self.cost())
            self.kept.sizes = self.first.rough_sizes()  # type: ignore[attr-defined]
        return self.kept.sizes

    def size_range(self, reads: Reads) -> tuple[float, float]:
        """Bounds of the largest column norm, from norms or codes that are there, or norms that cost least."""
        n, d = self.shape
        if not self.first.has_entries:
            largest = float(self.rough_sizes(reads).max())
            return largest / self.first.doubt, largest  # type: ignore[attr-defined]
        if not self.first.can_encode:
            largest = float(self.norms(0, 2, reads).max())
            return largest, largest
        if self.dtype == np.float32:  # whatever the numbers are
            return 2.0**-149, 2.0**128 * sqrt(n)
        coded = [*self.kept.codes.values(), *([self.kept.bits] if self.kept.bits is not None else [])]
        made = [axis for axis in (0, 1) if (axis, 2) in self.kept.norms]
        if coded and not made:
            peak = coded[0].peak
            return peak, peak * 2.0**80 * sqrt(n)
        axis = made[0] if made else self.first.fast_axis
        largest = float(self.norms(axis, 2, reads).max())
        return (largest, largest) if axis == 0 else (largest / sqrt(d), largest * sqrt(n))

    def check_finite(self, reads: Reads) -> None:
        """Refuse NaN and infinity. Norms that are needed anyway tell."""
        if self.kept.finite or not self.first.has_entries:
            return
        axis = 0 if (0, 2) in self.kept.norms or not self.first.can_encode else self.first.fast_axis
        if not np.isfinite(self.norms(axis, 2, reads)).all():
            norms = self.norms(0, 2, reads)
            j = int(np.flatnonzero(~np.isfinite(norms))[0])
            if np.isfinite(self.take(np.array([j]))).all():
                raise ValueError(
                    f"column {j} of X is too large: its norm overflows; divide it by its largest entry"
                )
            raise ValueError(f"X contains NaN or infinity, first in column {j}; impute or drop those entries")
        self.kept.finite = True

    # -- whether X is what it was ---------------------------------------------------------------------

    def watch(self) -> None:
        """Remember one entry of every row and of every column; an operator has none to look at."""
        found = [(tile.witness(), here.start, there.start) for tile, here, there in self.parts()]
        self.witnesses = [some for some in found if some[0] is not None]

    def check_unchanged(self) -> None:
        """Raise ValueError if X was changed in place since `watch` (see `witness.py` for what is noticed)."""
        for witness, row, column in self.witnesses:
            witness.compare(row, column)

    def digest(self, digest: Any, reads: Reads) -> None:
        """Feed all of X to a digest."""
        for tile, *beside in self.grid:
            reads.prepare(*tile.digest(digest, beside))
