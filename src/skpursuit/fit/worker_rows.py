"""The orthonormal rows of a support on the workers of a Dask cluster, beside the tiles of X.

Rows of Q are as long as the columns of X, and k of them may be more than the driver has room for: 40 GB for
50 columns of 10^8 rows. Beyond its memory limit they go to the workers. There they are cut between tiles of X
into ranges, which X alone fixes, and each range has a `Stack`, the result of a task like a tile. A column is
added in two trips, and one more for each pass of Gram-Schmidt that is repeated:

1. Each range gathers its part of the column and multiplies its rows with it. The driver adds products up.
2. Each range takes these coefficients times its rows from the column, and makes products of what is left, in
   case of another pass. The remainder comes to the driver: the next residual is made of it.

The stack grows where it is, by the same remainder; that task goes along with the next trip. So a few vectors
of n numbers move, and k numbers for each piece of 512 rows. Products are added up by such pieces everywhere
(`row_products`): the bits are those of rows on the driver. When a worker dies, the scheduler makes its stacks
again from X by the tasks of all steps. A run that goes on from a checkpoint, or whose rows have become too
many for the driver, makes them from X by one task for each range (`WorkerRows.replayed`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, cast

import numpy as np

from skpursuit.data.design import Design
from skpursuit.data.view import View
from skpursuit.fit.gram_schmidt import Factor, added_pieces, piece_products, replayed
from skpursuit.numerics.arrays import Floats, Indices
from skpursuit.numerics.blas import one_thread
from skpursuit.numerics.stack import Stack, in_file
from skpursuit.numerics.sums import scaled_norm

RANGE = 2**17  # rows up to which tiles share a range: a task for each tile would cost more than it saves

Tasks = dict[str, Any]  # by their keys; or futures of them
Lines = Callable[..., Floats]  # columns in a range of rows, from parts that tiles gave


def rows_away(design: Design, factor: Factor, numbers: dict[str, Any], support: Indices) -> WorkerRows | None:
    """The rows of Q of a factor with these numbers, made on the workers; None where they stay here.

    They go where X has workers and another row would be beyond the memory limit of the driver. They stay
    where the columns have to be on the driver too, and where the view leaves out rows, so that pieces of 512
    do not lie between its tiles.
    """
    serves = design.store.has_workers and design.view.rows is None and factor.columns is None
    if not serves or 8 * design.shape[0] * (len(support) + 1) <= design.store.limit.limit:
        return None
    return WorkerRows.replayed(design, numbers, support)


def moved_away(design: Design, factor: Factor, support: Indices) -> Factor:
    """The factor of these columns, with its rows on the workers where that is wanted."""
    away = None if factor.Q.is_away else rows_away(design, factor, factor.numbers(), support)
    return factor if away is None else replace(factor, Q=away)


class Ranges:
    """Ranges of rows between the edges of tiles, and how columns of a design are gathered in them."""

    def __init__(self, design: Design) -> None:
        from skpursuit.data.dask_store import joined_edges

        self.design, self.store = design, cast(Any, design.store)  # a `DaskStore`
        heights = np.diff(self.store.row_edges).tolist()
        self.slices = [slice(*pair) for pair in pairwise(joined_edges(tuple(heights), RANGE, 1))]
        root = design.view.root
        parts = [] if root is None else [(partial(np.asarray, root[rows]),) for rows in self.slices]
        roots = self.store.named("row_weights", parts)
        self.roots: Tasks = self.store.cluster.keep(roots, list(roots)) if roots else {}

    def gather(self, cols: Indices) -> tuple[Tasks, list[tuple[Lines, list[Any]]]]:
        """Tasks that gather columns of X, and for each range what makes lines of the keys of its parts."""
        design, store = self.design, self.store
        design.reads.prepare(*design.cost(cols=cols))
        real = np.flatnonzero(cols < store.shape[1])
        tasks, places = store.take_tasks(cols[real])
        split = [real[some] for _, some, _ in store.split(cols[real], store.col_edges)]
        order = np.concatenate([real[:0], *split])
        view = design.view
        centre, scale = (None if part is None else part[cols[order]] for part in (view.centre, view.scale))
        ranges: list[tuple[Lines, list[Any]]] = []
        for rows in self.slices:
            inside = range(rows.start, rows.stop)
            keys = [(at.j, at.i, key) for key, at in zip(tasks, places) if at.rows.start in inside]
            weights = list(self.roots)[len(ranges) :][:1]
            of = partial(lines_of, (len(cols), len(inside)), order, len(split), centre, scale)
            ranges.append((of, [weights, *(key for *_, key in sorted(keys))]))
        return {**self.roots, **tasks}, ranges


class WorkerRows:
    """Orthonormal rows on workers: a value, used as a `Stack` is.

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

    @classmethod
    def replayed(cls, design: Design, numbers: dict[str, Any], support: Indices) -> WorkerRows:
        """The rows that a factor with these numbers made of these columns."""
        ranges = Ranges(design)
        tasks, parts = ranges.gather(support)
        told = {name: numbers[name] for name in ("counts", "passes", "R")}
        made = ranges.store.named("basis", [(partial(replayed_rows, told, of), *keys) for of, keys in parts])
        return cls(ranges, {**tasks, **made}, list(made))

    def begin(self, tasks: Tasks, keys: list[str], kept: list[str]) -> tuple[list[Any], Tasks]:
        """One trip, which makes the stacks too: results of some tasks, and futures of those to keep."""
        store = self.ranges.store
        made = store.cluster.keep({**store.graph, **self.graph, **tasks}, [*self.keys, *kept, *keys])
        self.graph = {key: made[key] for key in self.keys}
        return list(store.cluster.bring([made[key] for key in keys])), {key: made[key] for key in kept}

    def _each(self, what: str, fn: Callable[..., Any]) -> Tasks:
        return self.ranges.store.named(what, [(fn, key) for key in self.keys])

    def split(self, j: int) -> WorkerSplit:
        """A column by its number, to be split into its coefficients on the rows and a remainder."""
        return WorkerSplit(self, j)

    def first(self, size: int) -> WorkerRows:
        """The first rows alone."""
        made = self._each("basis", partial(first_rows, size))
        return WorkerRows(self.ranges, {**self.graph, **made}, list(made))

    def combined(self, weights: Floats) -> Floats:
        """The sum of rows times weights of shape (k,) or (k, m), of shape (n,) or (n, m)."""
        tasks = self._each("predictions", partial(combined_rows, weights))
        return np.concatenate(self.begin(tasks, list(tasks), [])[0])

    @cached_property
    def rows(self) -> Floats:
        """All rows in a file on the driver, for the rare look at all columns that may depend on them."""
        tasks = self._each("gather_basis", all_rows)
        parts = self.begin(tasks, list(tasks), [])[0]
        out = in_file((len(parts[0]), self.ranges.slices[-1].stop), parts[0].dtype)
        return np.concatenate(parts, axis=1, out=out)


class WorkerSplit:
    """A column of X, from which its projection on rows on workers is taken; used as a `Split` is."""

    def __init__(self, rows: WorkerRows, j: int) -> None:
        self.rows, self.named = rows, rows.ranges.store.named
        tasks, ranges = rows.ranges.gather(np.array([j]))
        columns = self.named("gather_columns", [(partial(whole_column, of), *keys) for of, keys in ranges])
        made = self.named("project_column", [(projected, *keys) for keys in zip(rows.keys, columns)])
        found, self.begun = rows.begin({**tasks, **columns, **made}, list(made), list(columns))
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
        rows = self.rows
        made = self.named(
            "basis", [(partial(grown_stack, size), *keys) for keys in zip(rows.keys, self.begun)]
        )
        return WorkerRows(rows.ranges, {**rows.graph, **self.begun, **made}, list(made))


# -- what workers do --------------------------------------------------------------------------------------


def lines_of(
    shape: tuple[int, int],
    order: Indices,
    widths: int,
    centre: Floats | None,
    scale: Floats | None,
    root: list[Floats],
    *parts: Floats,
) -> Floats:
    """Columns of a view in a range of rows, from parts of X by ranges of columns; others are ones."""
    out = np.ones(shape)
    if widths:
        view, count = View(None, centre, scale, root[0] if root else None), len(parts) // widths
        wide = [np.concatenate(parts[k : k + count], axis=1) for k in range(0, len(parts), count)]
        out[order] = view.columns(np.concatenate(wide), np.arange(len(order)))
    return out


def whole_column(lines: Lines, *parts: Floats) -> tuple[Floats]:
    """A column, of which nothing was taken yet."""
    return (lines(*parts)[0],)


def projected(stack: Stack, column: tuple[Floats]) -> tuple[float, Floats]:
    """The norm of a column, and its products with the rows of a stack by pieces."""
    with one_thread():
        return scaled_norm(column[0]), piece_products(stack.rows, column[0])


def remainder(part: Floats, stack: Stack, before: tuple[Floats, ...]) -> tuple[Floats, Floats]:
    """What is left of a column without the rows times coefficients, and its products with the rows."""
    with one_thread():
        v = before[0] - part @ stack.rows
        return v, piece_products(stack.rows, v)


def grown_stack(size: float, stack: Stack, last: tuple[Floats, ...]) -> Stack:
    """A stack with the remainder of a column, divided by its norm, behind it."""
    return stack.extend((last[0] / size)[None])


def replayed_rows(numbers: dict[str, Any], lines: Lines, *parts: Floats) -> Stack:
    """The stack that a factor with these numbers made of columns."""
    columns = lines(*parts)
    with one_thread():
        return replayed(Stack(np.empty((0, columns.shape[1]))), numbers, columns)


def first_rows(size: int, stack: Stack) -> Stack:
    """The first rows alone."""
    return stack.first(size)


def combined_rows(weights: Floats, stack: Stack) -> Floats:
    """A sum of the rows."""
    with one_thread():
        return stack.combined(weights)


def all_rows(stack: Stack) -> Floats:
    """All rows."""
    return stack.rows
