"""Where the tiles of X are: a grid of them, summed over row edges and joined over column edges.

An array in memory is one tile, so that nothing is slower there. Row edges lie at multiples of 512 rows, and
whatever decides something (norms, means, gathered columns) is added up per piece of 512 rows or less, never
per tile: an array and the pieces it was cut into give the same bits. The store also owns what is kept of X
itself, which every view of it can use.

`TileStore.map_tiles` is the one way to the tiles: it calls a function with each tile, or with the codes of
each tile, in tile order. Verbs below it are written once, for tiles in memory, on disk or in other processes.
An out-of-core store overrides `map_tiles`, and its grid holds blank tiles, which know the shape, dtype and
cost of the real ones but no entries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import accumulate, pairwise
from itertools import product as pairs
from math import sqrt
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from skpursuit.data.caches import Caches, ColumnCache
from skpursuit.data.operator_tile import MOST_FETCHED
from skpursuit.data.options import UNLIMITED, DesignOptions
from skpursuit.data.read_counter import FileReads, ReadCounter
from skpursuit.data.survey import OPERATOR_BATCH, Survey, SurveyBuilder, operator_survey
from skpursuit.data.tile import Cost, Sample, Tile
from skpursuit.numerics import tuning
from skpursuit.numerics.arrays import Floats, Indices
from skpursuit.numerics.error_bounds import product_error_bound
from skpursuit.numerics.float_range import EPS, LEAST_SIZE, MOST_SIZE, check_range
from skpursuit.numerics.sums import BLOCK_ROWS, fixed_order_dot, safe_norm

if TYPE_CHECKING:
    from skpursuit.data.codes.coded_tile import CodedTile


class TilePosition(NamedTuple):
    """A tile by its number in tile order, its row and column in the grid, and its rows and columns in X."""

    number: int
    i: int
    j: int
    rows: slice
    cols: slice


class ReadCosts(NamedTuple):
    """What it costs to bring X to the processor: seconds a byte, and bytes brought for a column or a row."""

    byte: float = 0.0
    column: int = 0
    row: int = 0


Verb = str | Callable[..., Any]  # a method of tiles by its name, or a function of a tile
Values = tuple[object, ...]  # arguments after the tile
Arguments = Callable[[TilePosition], Values | None]


def call(fn: Verb, thing: object, arguments: Values) -> Any:
    """A verb of a tile by its name, or a function of the tile."""
    return getattr(thing, fn)(*arguments) if isinstance(fn, str) else fn(thing, *arguments)


class Access:
    """Where X is, and what it costs to read it: what may be asked of a store outside of `data/`."""

    grid: list[list[Tile]]
    shape: tuple[int, int]
    caches: Caches
    n_tiles: int
    is_sparse: bool
    file_reads: tuple[FileReads, ...] = ()  # of X, and of codes on disk
    read_costs = ReadCosts()
    column_costs_full_pass = False  # whether one column costs a pass over X
    on_disk = False  # whether X is read from files, tile by tile
    in_memory = True  # whether tiles are at hand, so that layouts of them can be kept
    hint = ""  # what to try where X has another shape than the caller expects

    @property
    def has_fast_rows(self) -> bool:
        """Whether a row is read without the others, at the speed of memory."""
        return self.in_memory and all(tile.has_fast_rows for row in self.grid for tile in row)

    @property
    def file_bytes(self) -> int:
        """Bytes that were read from files so far: of X, and of codes on disk."""
        return sum(reads.bytes for reads in self.file_reads)

    @property
    def pass_seconds(self) -> float:
        """Seconds to bring all of X to the processor once, apart from work on it; 0 in memory."""
        return self.read_costs.byte * max(self.read_costs.column, self.read_costs.row)

    @property
    def has_made_codes(self) -> bool:
        """Whether codes of X are there already."""
        return self.caches.codes is not None

    def has_room_for_codes(self, nbytes: int) -> bool:
        """Whether there is a place for codes of this size, as far as can be told in advance."""
        return True

    def gather_ahead_width(self) -> int:
        """Columns to gather with one that is needed, where that costs little more; else 0."""
        tile = self.grid[0][0]
        short = self.shape[0] * 8 * tuning.GATHER_AHEAD_COLUMNS <= self.caches.columns.max_bytes // 8
        return tuning.GATHER_AHEAD_COLUMNS if tile.can_encode and tile.fast_axis == 1 and short else 0

    def costs_a_pass(self, cols: Indices) -> bool:
        """Whether reading these columns from disk costs as much as a product with all of X."""
        few = self.gather_ahead_width() if self.column_costs_full_pass else self.shape[1] // 4
        return self.on_disk and sum(j not in self.caches.columns.arrays for j in cols.tolist()) > few

    def gather_seconds(self, columns: int) -> float:
        """Seconds to bring so many columns of an X in memory into arrays of their own."""
        together = self.grid[0][0].fast_axis == 0  # the entries of a column are
        entry = 8 * tuning.COSTS.byte if together else tuning.COSTS.gather
        return columns * self.shape[0] * tuning.NANO * entry

    def sweep_seconds(self, visits: int) -> float:
        """Seconds to gather so many columns where one costs a pass, a panel of them at a time."""
        sweeps = -(-visits // max(1, self.gather_ahead_width())) if self.column_costs_full_pass else 0
        return sweeps * self.pass_seconds

    def store_codes_beside(self, path: str | PathLike[str]) -> None:
        """Have codes on disk found again by a run that goes on from this checkpoint."""


class TileStore(Access):
    """X as a grid of tiles, one list for each range of rows, and what is kept of it."""

    memory_budget = UNLIMITED  # of what is kept of an X that is not in memory
    most_column_bytes = UNLIMITED.columns  # of gathered columns, whatever the limit

    def __init__(self, grid: list[list[Tile]]) -> None:
        self.grid, self.first = grid, grid[0][0]
        self.n_tiles, self.is_sparse = len(grid) * len(grid[0]), self.first.is_sparse
        self.is_complex = self.first.is_complex
        self.is_one_tile = self.in_memory and self.n_tiles == 1
        self.in_memory_matrix = self.first.in_memory_matrix if self.is_one_tile else None
        self.row_edges = np.array([0, *accumulate(row[0].shape[0] for row in grid)])
        self.col_edges = np.array([0, *accumulate(tile.shape[1] for tile in grid[0])])
        self.shape = int(self.row_edges[-1]), int(self.col_edges[-1])
        self.dtype = np.result_type(*(tile.dtype for row in grid for tile in row))
        self.names: list[str] | None = None  # of the columns, where the source has them
        self.origin: tuple[object, DesignOptions] | None = None  # X and its options, if not in memory
        self.caches = self.new_caches()
        self.samples: list[tuple[Sample, np.ndarray]] = []  # and what was there
        self.surveying: SurveyBuilder | None = None  # while X is read for codes
        self._codes: dict[int, CodedTile] = {}  # by number of the tile
        if self.is_one_tile:  # whose verbs are those of the store
            tile = self.first
            for name in ("product", "take", "add_rows", "entries"):
                setattr(self, name, getattr(tile, name))
            if tile.has_entries:
                vars(self).update(cost=tile.cost)

    @cached_property
    def places(self) -> list[TilePosition]:
        """All tiles, in tile order."""
        ranges = [[slice(*pair) for pair in pairwise(e.tolist())] for e in (self.row_edges, self.col_edges)]
        corners = pairs(enumerate(ranges[0]), enumerate(ranges[1]))
        return [TilePosition(k, i, j, rows, cols) for k, ((i, rows), (j, cols)) in enumerate(corners)]

    def map_tiles(
        self, fn: Verb, args: Arguments = lambda at: (), fine: bool | None = None
    ) -> Iterator[tuple[TilePosition, Any]]:
        """Call a function with every tile in tile order; yields (place, result).

        `fn` is the name of a verb of tiles, or a function that can be sent to another process. `args(place)`
        are its arguments after the tile: small ones, such as the part of r that belongs to its rows, which do
        not depend on results; None: the tile is not needed. Where `fine` is given, the function gets codes of
        the tile. They are made once, with a second byte if it is True, and kept until `drop_codes`.
        """
        for place in self.places:
            arguments = args(place)
            if arguments is None:
                continue
            thing: Any = self.grid[place.i][place.j]
            if fine is not None:
                if place.number not in self._codes:
                    self._codes[place.number] = self._encode_tile(place, thing, fine)
                thing = self._codes[place.number]
            yield place, call(fn, thing, arguments)

    def _encode_tile(self, place: TilePosition, tile: Tile, fine: bool) -> CodedTile:
        """The codes of a tile, which is surveyed in the same reading if a survey is in the making."""
        if self.surveying is None:
            return tile.encode(fine)
        starts = np.arange(0.0, tile.shape[0], BLOCK_ROWS)
        totals = np.empty((len(starts), tile.shape[1]))
        coded, rows = tile.encode(fine, totals), np.minimum(BLOCK_ROWS, tile.shape[0] - starts)
        self.surveying.add(place, [(rows, totals, np.zeros_like(totals))])
        return coded

    def drop_codes(self) -> None:
        """Forget the codes of the tiles."""
        self.caches.codes = None
        self._codes.clear()

    def new_caches(self) -> Caches:
        """Empty caches for X or a view of it, within the limit."""
        room = self.memory_budget
        if self.in_memory:
            return Caches()
        columns = ColumnCache(min(self.most_column_bytes, room.columns))
        return Caches(columns, gram_columns=ColumnCache(room.product_bytes))

    def split(self, lines: Indices, edges: np.ndarray) -> Iterator[tuple[int, Indices, Indices]]:
        """Which of some rows or columns lie in which range: (range, places in `lines`, numbers within it)."""
        home = np.searchsorted(edges, lines, side="right") - 1
        for part in np.unique(home).tolist():
            places = np.flatnonzero(home == part)
            yield part, places, lines[places] - edges[part]

    def map_column_tiles(
        self,
        fn: Verb,
        cols: Indices,
        args: Callable[[TilePosition, Indices], Values | None] = lambda at, places: (),
        fine: bool | None = None,
    ) -> Iterator[tuple[TilePosition, Indices, Any]]:
        """As `map_tiles`, with the tiles of some columns; yields (place, places in cols, result).

        The function gets the numbers of the columns within the tile first, then `args(place, places)`.
        """
        asked = {j: (places, local) for j, places, local in self.split(cols, self.col_edges)}

        def given(at: TilePosition) -> Values | None:
            more = args(at, asked[at.j][0]) if at.j in asked else None
            return None if more is None else (asked[at.j][1], *more)

        for place, part in self.map_tiles(fn, given, fine):
            yield place, asked[place.j][0], part

    # -- verbs of tiles, summed and joined ------------------------------------------------------------

    @cached_property
    def rounding_unit(self) -> float:
        """Bound on the rounding of `product`, relative to ||x_j|| ||r||: that of the tiles and their sums."""
        if self.is_one_tile:
            return self.first.rounding_unit
        return max(tile.rounding_unit for row in self.grid for tile in row) + 2 * len(self.grid) * EPS

    def cost(self, rows: Indices | None = None, cols: Indices | None = None) -> Cost:
        """Entries and bytes touched when reading these rows and columns."""
        kept = self.caches.columns
        if not self.first.has_entries and rows is None and cols is not None and kept.contains_all(cols):
            return (count := self.shape[0] * len(cols)), count * self.dtype.itemsize
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
        some, r = dict(self._ranges(rows, self.row_edges)), np.ascontiguousarray(r)

        def args(place: TilePosition) -> Values | None:
            return (r[place.rows], some[place.i]) if place.i in some else None

        out = np.zeros((*r.shape[1:], self.shape[1])).T
        for place, part in self.map_tiles("product", args):
            out[place.cols] += part
        return out

    def take(self, cols: Indices) -> Floats:
        """Columns as the rows of a new float64 array."""
        out = np.empty((len(cols), self.shape[0]))
        for place, places, part in self.map_column_tiles("take", cols):
            out[places, place.rows] = part
        return out

    def add_rows(self, rows: Indices, weights: Floats, out: Floats, cols: Indices | None = None) -> None:
        """out[j] += sum over rows of weights[i] * X[rows[i], j], for all j or those in `cols`."""
        here = {i: (local, weights[places]) for i, places, local in self.split(rows, self.row_edges)}
        asked, every = (np.arange(self.shape[1]), True) if cols is None else (cols, False)

        def args(at: TilePosition, places: Indices) -> Values | None:
            return (*here[at.i], every) if at.i in here else None

        for _, places, part in self.map_column_tiles(added_rows, asked, args):
            out[places] += part

    def entries(self, rows: Indices, cols: Indices) -> Floats:
        """Single entries X[rows[i], cols[i]]."""
        corners = {
            (i, j): (here[there], local_rows[there], local_cols)
            for i, here, local_rows in self.split(rows, self.row_edges)
            for j, there, local_cols in self.split(cols[here], self.col_edges)
        }
        out = np.empty(len(rows))
        args = lambda at: corners[at.i, at.j][1:] if (at.i, at.j) in corners else None  # noqa: E731
        for place, part in self.map_tiles("entries", args):
            out[corners[place.i, place.j][0]] = part
        return out

    def ensure_layout(self, what: str, reads: ReadCounter) -> None:
        """Make the layouts that reading "rows" or "columns" needs, where X has none."""
        for tile in (tile for row in self.grid for tile in row if self.in_memory):
            reads.add_prepared(*tile.ensure_layout(what))

    # -- what is kept of X ----------------------------------------------------------------------------

    def lines(self, cols: Indices) -> list[Floats]:
        """Columns of X as one-dimensional arrays, gathered into the cache."""
        return self.caches.columns.lines(cols.tolist(), self.take)[0]

    def sums_in_place(self, cols: Indices) -> bool:
        """Whether sums of so many columns are made where X is, instead of bringing the columns here."""
        return not self.in_memory and len(cols) * self.shape[0] * 8 > self.caches.columns.max_bytes // 2

    def dots(self, cols: Indices, u: Floats, anchor_row: int | None = None) -> tuple[Floats, Floats | None]:
        """Products of columns with u in a fixed order: equal columns have equal bits.

        With an `anchor_row` of columns less their entry in that row; these entries are the second result.
        """
        if self.sums_in_place(cols):
            first = None if anchor_row is None else self.entries(np.full(len(cols), anchor_row), cols)

            def args(at: TilePosition, places: Indices) -> Values:
                return u[at.rows], None if first is None else first[places]

            out = np.zeros((len(cols), *u.shape[1:]))
            for _, places, parts in self.map_column_tiles(dot_pieces, cols, args):
                for part in parts:
                    out[places] += part
            return out, first
        if anchor_row is None:
            found = self.first.dots(cols, u) if self.is_one_tile else None
            if found is None and not self.first.has_entries and len(cols) > MOST_FETCHED:
                found = None if self.caches.columns.contains_all(cols) else self.product(u)[cols]
            # Through the cache: columns that were close to the top once are close again.
            return fixed_order_dot(self.lines(cols), u) if found is None else found, None
        out, first = np.empty((len(cols), *u.shape[1:])), np.empty(len(cols))
        step = max(1, tuning.GATHERED_ENTRIES // self.shape[0])
        for start in range(0, len(cols), step):
            some = slice(start, start + step)
            lines = self.lines(cols[some])
            first[some] = [line[anchor_row] for line in lines]
            out[some] = fixed_order_dot([line - x for line, x in zip(lines, first[some])], u)
        return out, first

    def combine_columns(self, cols: Indices, centre: Floats | None, coef: Floats) -> Floats:
        """Sums of columns, less their centres, times coefficients, in the order of `cols`."""
        # Made where the tiles are, if one holds all of these columns in its rows; else the pieces are brought
        # here, because sums of sums would have other bits.
        out, held = np.zeros((self.shape[0], *coef.shape[1:])), list[tuple[Indices, Floats]]()
        ranges = len(np.unique(np.searchsorted(self.col_edges, cols, side="right")))

        def args(at: TilePosition, places: Indices) -> Values:
            return None if centre is None else centre[places], coef[places]

        if ranges <= 1:
            for place, _, part in self.map_column_tiles(summed_columns, cols, args):
                out[place.rows] = part
            return out
        for place, places, part in self.map_column_tiles("take", cols):
            held.append((places, part))
            if len(held) == ranges:  # of the same rows, which come one after the other
                order, lines = (np.concatenate(parts) for parts in zip(*held))
                out[place.rows] = summed_columns(lines, np.argsort(order), centre, coef)
                held.clear()
        return out

    def check_random_access(self, what: str) -> None:
        """Refuse to read "rows" or "entries" at random where that is expensive."""

    def survey(self, reads: ReadCounter, weights: Floats | None = None, spreads: bool = True) -> Survey:
        """Statistics of the columns, with these weights of rows or without. Cached; X is checked for NaN."""
        # Means alone, without `spreads`, cost a third in memory; out of core one reading makes both.
        kept, known = self.caches, self.caches.survey
        if weights is not None:
            found = kept.weighted
            known = found[1] if found is not None and np.array_equal(found[0], weights) else None
        if known is not None and known.has_spreads >= spreads:
            return known
        reads.add_prepared(*self.cost())
        if not self.first.has_entries:
            known = operator_survey(self, reads, weights, spreads)
            if weights is None:
                kept.survey = known
            return known
        surveying = self.begin_survey(weights, spreads or not (self.in_memory and self.first.can_encode))
        self.end_survey(self.surveyed(surveying))
        return self.survey(reads, weights, spreads)

    def surveyed(self, surveying: SurveyBuilder) -> SurveyBuilder:
        """A survey with all tiles added."""
        for place, blocks in self.map_tiles("survey", surveying.arguments):
            surveying.add(place, blocks)
        return surveying

    def begin_survey(self, weights: Floats | None, spreads: bool = True) -> SurveyBuilder:
        """A survey with these weights; one that has spreads also without weights where that is not known."""
        known = self.caches.survey is not None and self.caches.survey.has_spreads
        plain: list[Floats | None] = [None] if weights is None or (spreads and not known) else []
        return SurveyBuilder(self, plain if weights is None else [*plain, weights], spreads)

    def end_survey(self, surveying: SurveyBuilder) -> None:
        """Keep what was found if all tiles were added, which codes from an earlier run spare."""
        if surveying.tiles < len(self.places):
            return
        for weights, found in zip(surveying.weights, surveying.surveys()):
            if found.has_spreads and weights is None:
                self.check_columns(found.sizes)
            elif not np.isfinite(found.means).all():
                self.survey(ReadCounter())  # names the first column that is not finite
            if weights is None:
                self.caches.survey = found
            else:
                self.caches.weighted = weights, found

    def row_norms(self, order: float, reads: ReadCounter) -> Floats:
        """Norms of the rows of X; order 2 or infinity. Kept."""
        if (1, order) in self.caches.norms:
            return self.caches.norms[1, order]
        out = np.zeros(self.shape[0])
        if self.first.has_entries:
            reads.add_prepared(*self.cost())
            for place, part in self.map_tiles("norm_parts", lambda at: (1, order)):
                some = out[place.rows]
                np.maximum(some, part, out=some) if order == np.inf else np.add(some, part, out=some)
            out = out if order == np.inf else np.sqrt(out)
        for start in range(0, 0 if self.first.has_entries else len(out), OPERATOR_BATCH):
            part = np.arange(start, min(start + OPERATOR_BATCH, len(out)))
            reads.add_prepared(*self.cost())
            unit = np.zeros((len(out), len(part)))  # an operator gives rows as products with unit vectors
            unit[part, np.arange(len(part))] = 1.0
            out[part] = np.linalg.norm(self.product(unit), order, axis=0)
        self.caches.norms[1, order] = out
        return out

    def norm_bounds(self, reads: ReadCounter) -> Floats:
        """Upper bounds of the column norms, from what is known or costs least."""
        # That is ||X||_F of rows in memory, which is close enough for float64. An operator has guesses.
        kept, tile = self.caches, self.first
        if kept.survey is not None and kept.survey.has_spreads and tile.has_entries:
            return kept.survey.sizes
        if kept.codes is not None:
            return kept.codes.norm_bounds
        if tile.has_entries and not (self.in_memory and tile.can_encode and self.dtype == np.float64):
            return self.survey(reads).sizes
        if kept.norm_bounds is None and not tile.has_entries:
            reads.add_prepared(*self.cost())
            kept.norm_bounds = tile.rough_sizes()  # type: ignore[attr-defined]
        elif kept.norm_bounds is None and tile.fast_axis == 0 and self.is_one_tile:
            reads.add_prepared(*self.cost())
            kept.norm_bounds = np.sqrt(tile.norm_parts(0))
        elif kept.norm_bounds is None:
            kept.norm_bounds = np.full(self.shape[1], safe_norm(self.row_norms(2, reads)))
        return kept.norm_bounds

    def product_error(self, r: Floats, reads: ReadCounter) -> Floats | None:
        """Bound on the rounding of `product`, one per column; None where it is a fixed-order product."""
        tile = self.first
        if tile.fixed_order:
            return None
        if not tile.has_entries:
            return np.multiply.outer(self.norm_bounds(reads), self.rounding_unit * np.linalg.norm(r, axis=0))
        if tile.is_sparse:  # in one tile always: stored entries of each column, and one more for the sum
            terms = (tile.stored("columns") + 2) * self.norm_bounds(reads)  # type: ignore[attr-defined]
            return product_error_bound(2 * float(np.finfo(self.dtype).eps), terms, r, self.dtype)
        return product_error_bound(self.rounding_unit, self.norm_bounds(reads), r, self.dtype)

    def check_finite(self, reads: ReadCounter, norm: float | None = None) -> None:
        """Refuse NaN, infinity and sizes of columns that `check_range` refuses, by sizes needed anyway."""
        # ||X||_F bounds the largest column norm; it does not tell of columns that are too small.
        if self.caches.finite or not self.first.has_entries:
            return
        sizes = np.atleast_1d(self.norm_bounds(reads) if norm is None else norm)
        least = LEAST_SIZE * sqrt(self.shape[1])
        self.caches.finite = bool(least <= sizes.min() and sizes.max() <= MOST_SIZE)
        if not self.caches.finite:
            self.check_columns(self.survey(reads).sizes)

    @np.errstate(invalid="ignore")  # casting a signalling NaN of float16
    def check_columns(self, sizes: Floats) -> None:
        """Refuse columns whose norms, or close bounds of them, are not finite or out of range."""
        bad = np.flatnonzero(~np.isfinite(sizes))
        if len(bad):
            j = int(bad[0])
            column = self.take(np.array([j]))[0]
            bad = np.flatnonzero(~np.isfinite(column))
            if len(bad):
                row, j = int(bad[0]) // (1 + self.is_complex), j // (1 + self.is_complex)
                name = "" if self.names is None else f" ({self.names[j]!r})"
                where = f"column {j}, row {row}{self.source_of(row, j)}{name}"
                raise ValueError(f"X contains NaN or infinity, first in {where}; impute or drop such entries")
            sizes = np.where(np.isfinite(sizes), sizes, np.abs(column).max())
        sizes = sizes[:: 1 + self.is_complex]
        check_range(sizes, lambda j: f"column {j if self.names is None else repr(self.names[j])} of X")
        self.caches.finite = True

    def source_of(self, row: int, column: int) -> str:
        """Where an entry comes from, for a message, where there is more to say than its row and column."""
        return ""

    # -- whether X is what it was ---------------------------------------------------------------------

    def start_change_detection(self) -> None:
        """Remember one entry of every row and of every column; an operator has none to look at."""
        if self.in_memory:
            found = [one for _, samples in self.map_tiles("samples") for one in samples]
            self.samples = [((array, at), np.array(array[at])) for array, at in found]

    def check_unchanged(self) -> None:
        """Raise ValueError if X was changed in place, as far as that is noticed."""
        if not all(np.array_equal(array[at], was, equal_nan=True) for (array, at), was in self.samples):
            raise ValueError(
                "X was changed in place after its design was made; make a new design of it: as_design(X)"
            )

    def fingerprint(self, reads: ReadCounter) -> bytes:
        """Means of the columns with fixed random weights of rows: the same bits however X is cut."""
        weights = np.random.default_rng(0).uniform(1.0, 2.0, self.shape[0])
        reads.add_prepared(*self.cost())
        if not self.first.has_entries:
            return self.product(weights).tobytes()
        return self.surveyed(SurveyBuilder(self, [weights], spreads=False)).surveys()[0].means.tobytes()


def added_rows(tile: Tile, cols: Indices, rows: Indices, weights: Floats, every: bool) -> Floats:
    """Sum over rows of weights[i] * X[rows[i], j] for some columns of a tile, or for `every` one."""
    out = np.zeros((*weights.shape[1:], len(cols))).T
    tile.add_rows(rows, weights, out, None if every else cols)
    return out


def dot_pieces(tile: Tile, cols: Indices, u: Floats, first: Floats | None) -> Floats:
    """Products of columns of a tile, less a number each, with u: those of each piece of rows."""
    step = max(1, tuning.COLUMN_COPY_ENTRIES // tile.shape[0])
    tile.ensure_layout("columns")
    parts = []
    for start in range(0, len(cols), step):
        lines = tile.take(cols[start : start + step])
        if first is not None:
            lines = lines - first[start : start + step, None]
        rows = [slice(i, i + BLOCK_ROWS) for i in range(0, lines.shape[1], BLOCK_ROWS)]
        parts.append([fixed_order_dot(list(lines[:, some]), u[some]) for some in rows])
    return np.concatenate(parts, axis=1)


def summed_columns(tile: Tile | Floats, cols: Indices, centre: Floats | None, coef: Floats) -> Floats:
    """Sum over columns of a tile, or lines, less centres, times coefficients of shape (k,) or (k, m)."""
    lines = tile[cols] if isinstance(tile, np.ndarray) else tile.take(cols)
    return np.einsum("kn,k...->n...", lines if centre is None else lines - centre[:, None], coef)
