"""The columns of a support and their orthonormal rows on the workers of a cluster, beside the tiles of X.

Rows of Q are as long as the columns of X, and k of them may be more than the driver has room for: 40 GB for
50 columns of 10^8 rows; other losses than the squared one need the columns themselves as well. Beyond the
memory limit of the driver they go to the workers. There they are cut into ranges, which the number of rows
alone fixes (`row_ranges`), and each range has a `Stack`, the result of a task like a tile. A column is added
in two trips, and one more for each pass of Gram-Schmidt that is repeated:

1. Each range gathers its part of the column and multiplies its rows with it. The driver adds products up.
2. Each range takes these coefficients times its rows from the column, and makes products of what is left, in
   case of another pass. The remainder comes to the driver: the next residual is made of it.

The stack grows where it is, by the same remainder; that task goes along with the next trip. So a few vectors
of n numbers move, and k numbers for each piece of 512 rows. Products are added up by such pieces everywhere
(`row_products`), and other sums by ranges (`Rows.sums`): the bits are those of rows on the driver. A step of
Newton is two trips: gradient and curvature, and the predictions of its direction.

A view may leave out rows of X, as a fold does. So a range takes parts of the tiles that its rows lie in, from
columns that these gather whole; which parts is kept on the workers, and so are weights of rows. When a worker
dies, the scheduler makes its stacks again from X by the tasks of all steps. A run that goes on from a
checkpoint, or whose rows have become too many for the driver, makes them from X by one task for each range.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from operator import attrgetter, methodcaller
from typing import Any, cast

import numpy as np

from skpursuit.data.design import Design
from skpursuit.data.view import View
from skpursuit.fit.gram_schmidt import Factor, added_pieces, piece_products, replayed
from skpursuit.numerics.arrays import Floats, Indices
from skpursuit.numerics.blas import one_thread
from skpursuit.numerics.stack import Rows, Stack, added, cut, row_ranges
from skpursuit.numerics.sums import row_norms, scaled_norm

Tasks = dict[str, Any]  # by their keys; or futures of them
Lines = Callable[..., Floats]  # columns in a range of rows, from the range and parts that tiles gave


def rows_away(design: Design, factor: Factor, numbers: dict[str, Any], support: Indices) -> dict[str, Any]:
    """The large parts of a factor with these numbers, made on the workers; none where they stay here.

    They go where X has workers and one more column would be beyond the memory limit of the driver.
    """
    kept = factor.columns is not None
    if not beyond_limit(design, (1 + kept) * (len(support) + 1)):
        return {}
    ranges = Ranges(design, factor.root)
    told = {name: numbers[name] for name in ("counts", "passes", "R")}
    away = {"Q": ranges.stacks("basis", support, partial(replayed_rows, told))}
    return away | {"columns": ranges.stacks("support_columns", support, whole_columns)} if kept else away


def beyond_limit(design: Design, rows: int) -> bool:
    """Whether X has workers, and so many rows as long as its columns are beyond the driver's memory limit."""
    return design.store.has_workers and 8 * design.shape[0] * rows > design.store.limit.limit


def moved_away(design: Design, factor: Factor, support: Indices) -> Factor:
    """The factor of these columns, with its large parts on the workers where that is wanted."""
    away = {} if factor.Q.is_away else rows_away(design, factor, factor.numbers(), support)
    return replace(factor, **away) if away else factor


def gathered(design: Design, cols: Indices) -> Rows:
    """Columns as rows, on the workers where they are beyond the memory limit of the driver."""
    if beyond_limit(design, len(cols)):
        return Ranges(design).stacks("support_columns", cols, whole_columns)
    return Stack(design.columns(cols))


class Ranges:
    """Ranges of the rows of a view, and how columns are gathered in them.

    Parameters
    ----------
    design : Design
    root : ndarray of shape (n,), optional
        What columns are multiplied by before they are split (`Factor.root`).
    """

    def __init__(self, design: Design, root: Floats | None = None) -> None:
        from skpursuit.data.dask_store import cuts

        self.design, self.store = design, cast(Any, design.store)  # a `DaskStore`
        view, edges = design.view, self.store.row_edges
        self.slices = row_ranges(design.shape[0])
        inside = edges if view.rows is None else np.searchsorted(view.rows, edges)  # of the view, not of X
        self.cuts = cuts(tuple(np.diff(inside).tolist()), [0, *(rows.stop for rows in self.slices)])
        made = []
        for rows, of_tiles in zip(self.slices, self.cuts):
            parts: list[Any] = [tile.part for tile in of_tiles]
            if view.rows is not None:
                parts = [(view.rows[inside[i] : inside[i + 1]] - edges[i])[part] for i, _, part in of_tiles]
            made.append((partial(Range, parts, *cut((view.root, root), rows)),))
        tasks = self.store.named("row_ranges", made)
        self.kept: Tasks = self.store.cluster.keep(tasks, list(tasks))

    def gather(self, cols: Indices) -> tuple[Tasks, list[tuple[Lines, list[Any]]]]:
        """Tasks that gather columns of X, and for each range what makes lines of the results of some keys."""
        design, store = self.design, self.store
        design.reads.prepare(*design.cost(cols=cols))
        real = np.flatnonzero(cols < store.shape[1])
        tasks, places = store.take_tasks(cols[real])
        split = [real[some] for _, some, _ in store.split(cols[real], store.col_edges)]
        order = np.concatenate([real[:0], *split])
        view = design.view
        centre, scale = (None if part is None else part[cols[order]] for part in (view.centre, view.scale))
        by_rows: dict[int, list[str]] = {}
        for key, at in zip(tasks, places):  # ranges of columns ascend within each range of rows
            by_rows.setdefault(at.i, []).append(key)
        ranges: list[tuple[Lines, list[Any]]] = []
        for rows, of_tiles, kept in zip(self.slices, self.cuts, self.kept):
            of = partial(lines_of, (len(cols), rows.stop - rows.start), order, centre, scale)
            ranges.append((of, [kept, *(by_rows.get(tile.chunk, []) for tile in of_tiles)]))
        return {**self.kept, **tasks}, ranges

    def stacks(self, what: str, cols: Indices, fn: Callable[..., Stack]) -> WorkerRows:
        """Rows that are made of columns in each range."""
        tasks, ranges = self.gather(cols)
        made = self.store.named(what, [(partial(fn, of), *keys) for of, keys in ranges])
        return WorkerRows(self, {**tasks, **made}, list(made))


class WorkerRows(Rows):
    """Rows on workers: a value, used as a `Stack` is.

    Parameters
    ----------
    ranges : Ranges
    graph : dict
        Tasks that make the stacks of all ranges, and futures of what these need.
    keys : list of str
        The keys of the stacks.
    """

    is_away = True

    def __init__(self, ranges: Ranges, graph: Tasks, keys: list[str]) -> None:
        self.ranges, self.graph, self.keys = ranges, graph, keys

    def begin(self, tasks: Tasks, keys: list[str], kept: list[str]) -> tuple[list[Any], Tasks]:
        """One trip, which makes the stacks too: results of some tasks, and futures of those to keep."""
        store = self.ranges.store
        made = store.cluster.keep({**store.graph, **self.graph, **tasks}, [*self.keys, *kept, *keys])
        self.graph = {key: made[key] for key in self.keys}
        return list(store.cluster.bring([made[key] for key in keys])), {key: made[key] for key in kept}

    def _results(self, what: str, *fns: Any) -> list[Any]:
        """One trip: a function of the stack of each range, or of all of them."""
        pairs = zip(fns * len(self.keys) if len(fns) == 1 else fns, self.keys)
        tasks = self.ranges.store.named(what, [(partial(call, fn), key) for fn, key in pairs])
        return self.begin(tasks, list(tasks), [])[0]

    def _made(self, fn: Any, *tasks: Tasks) -> WorkerRows:
        """Rows that are made of these, and of the results of tasks for each range if there are any."""
        made = self.ranges.store.named("basis", [(fn, *keys) for keys in zip(self.keys, *tasks)])
        return WorkerRows(self.ranges, {**self.graph, **dict(*tasks), **made}, list(made))

    def split(self, j: int, brings_column: bool) -> WorkerSplit:
        """A column by its number, to be split into its coefficients on the rows and a remainder."""
        return WorkerSplit(self, j, brings_column)

    def take(self, which: Any) -> WorkerRows:
        return self._made(methodcaller("take", which))

    def scaled(self, factors: Floats) -> WorkerRows:
        return self._made(methodcaller("scaled", factors))

    def combined(self, weights: Floats) -> Floats:
        return np.concatenate(self._results("predictions", methodcaller("combined", weights)))

    def sums(self, fn: Callable[..., tuple[Floats, ...]], *by_number: Any) -> tuple[Floats, ...]:
        fns = [methodcaller("sums", fn, *cut(by_number, rows)) for rows in self.ranges.slices]
        return added(self._results("support_products", *fns))

    def grown(self, at: int, size: float, tasks: Tasks) -> WorkerRows:
        """The rows with one more, that at a place in the results of tasks, divided by its size."""
        return self._made(partial(grown_stack, at, size), tasks)

    @cached_property
    def sizes(self) -> Floats:
        return row_norms(np.stack(self._results("norms", attrgetter("sizes")), axis=1))

    @property
    def rows(self) -> Floats:
        return np.concatenate(self._results("gather_basis", attrgetter("rows")), axis=1)


class WorkerSplit:
    """A column of X, from which its projection on rows on workers is taken; used as a `Split` is."""

    def __init__(self, rows: WorkerRows, j: int, brings_column: bool) -> None:
        self.rows, self.named = rows, rows.ranges.store.named
        tasks, ranges = rows.ranges.gather(np.array([j]))
        columns = self.named("gather_columns", [(partial(whole_column, of), *keys) for of, keys in ranges])
        made = self.named("project_column", [(projected, *keys) for keys in zip(rows.keys, columns)])
        wanted = [*made, *(columns if brings_column else [])]
        found, self.columns = rows.begin({**tasks, **columns, **made}, wanted, list(columns))
        self.begun, self.column = self.columns, [column for _, column in found[len(made) :]]
        found = found[: len(made)]
        self.size = scaled_norm(np.array([size for size, _ in found]))  # it is compared, and nothing else
        self._add_up(found)

    def _add_up(self, found: list[Any]) -> None:
        self._products = added_pieces(np.concatenate([products for _, products in found]))

    def coefficients(self) -> Floats:
        """Products of v with the rows, which came with it."""
        return self._products

    def subtract(self, part: Floats) -> Floats:
        """What is left of v without the rows times coefficients."""
        pairs = zip(self.rows.keys, self.begun)
        made = self.named("orthogonalise", [(partial(remainder, part), *keys) for keys in pairs])
        found, self.begun = self.rows.begin({**self.begun, **made}, list(made), list(made))
        self._add_up(found)
        return np.concatenate([v for v, _ in found])

    def grown(self, size: float) -> WorkerRows:
        """The rows with what is left, divided by its norm, behind them."""
        return self.rows.grown(0, size, self.begun)

    def kept(self, columns: WorkerRows) -> WorkerRows:
        """Columns with this one behind them."""
        after, column = columns.grown(1, 1.0, self.columns), np.concatenate(self.column)
        after.last = column
        if "sizes" in vars(columns):
            after.sizes = np.append(columns.sizes, scaled_norm(column))
        return after


# -- what workers do --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Range:
    """Some rows of a view: which ones of each tile they are, and their factors in the view and in a fit."""

    parts: list[Any]
    view_root: Floats | None
    root: Floats | None

    def weighted(self, lines: Floats) -> Floats:
        """Columns as they are split."""
        return lines if self.root is None else lines * self.root


def lines_of(
    shape: tuple[int, int],
    order: Indices,
    centre: Floats | None,
    scale: Floats | None,
    rows: Range,
    *tiles: list[Floats],
) -> Floats:
    """Columns of a view in a range of rows, from tiles and their ranges of columns; others are ones."""
    out = np.ones(shape)
    if len(order):
        pairs = zip(tiles, rows.parts)
        lines = [np.concatenate([beside[:, part] for beside in tile]) for tile, part in pairs]
        view = View(None, centre, scale, rows.view_root)
        out[order] = view.columns(np.concatenate(lines, axis=1), np.arange(len(order)))
    return out


def whole_columns(lines: Lines, rows: Range, *tiles: list[Floats]) -> Stack:
    """Columns as they are."""
    return Stack(lines(rows, *tiles))


def replayed_rows(numbers: dict[str, Any], lines: Lines, rows: Range, *tiles: list[Floats]) -> Stack:
    """The stack that a factor with these numbers made of columns."""
    columns = rows.weighted(lines(rows, *tiles))
    with one_thread():
        return replayed(Stack(np.empty((0, columns.shape[1]))), numbers, columns)


def whole_column(lines: Lines, rows: Range, *tiles: list[Floats]) -> tuple[Floats, Floats]:
    """A column as it is split, of which nothing was taken yet, and as it is."""
    column = lines(rows, *tiles)
    return rows.weighted(column)[0], column[0]


def projected(stack: Stack, column: tuple[Floats, Floats]) -> tuple[float, Floats]:
    """The norm of a column, and its products with the rows of a stack by pieces."""
    with one_thread():
        return scaled_norm(column[0]), piece_products(stack.rows, column[0])


def remainder(part: Floats, stack: Stack, before: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    """What is left of a column without the rows times coefficients, and its products with the rows."""
    with one_thread():
        v = before[0] - part @ stack.rows
        return v, piece_products(stack.rows, v)


def grown_stack(at: int, size: float, stack: Stack, told: tuple[Floats, Floats]) -> Stack:
    """A stack with one more row, divided by its size."""
    return stack.extend((told[at] / size)[None])


def call(fn: Callable[[Stack], Any], stack: Stack) -> Any:
    """What a function makes of a stack."""
    with one_thread():
        return fn(stack)
