"""The columns of a support and their orthonormal rows on the workers of a cluster, beside the tiles of X.

Rows of Q are as long as the columns of X, and k of them may be more than the driver has room for: 40 GB for
50 columns of 10^8 rows; other losses than the squared one need the columns themselves as well. Beyond the
memory limit of the driver they go to the workers. There they are cut into ranges, which the number of rows
alone fixes (`row_ranges`), and each range has a `Stack`, the result of a task like a tile. A column is added
in one trip, and another for each pass of Gram-Schmidt that is repeated: each range gathers its part of the
column and multiplies its rows with it, one task adds these products up, and each range takes the sums times
its rows from the column. What is left comes to the driver, where the next residual is made of it. The stack
grows where it is, by a task that goes along with the next trip.

Other losses are fitted by looks at all ranges and decisions between them (`fit/descent.py`), which are tasks
as well: a fit is a chain of tasks, and one trip unless it takes more looks than expected. So a few vectors of
n numbers move. Products are added up by pieces of 512 rows everywhere (`row_products`), other sums
by ranges: the bits are those of rows on the driver.

A view may leave out rows of X, as a fold does. So a range takes parts of the tiles that its rows lie in, from
columns that these gather whole; which parts is kept on the workers, and so are weights of rows. When a worker
dies, the scheduler makes its stacks again from X by the tasks of all steps. A run that goes on from a
checkpoint, or whose rows have become too many for the driver, makes them from X by one task for each range.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from operator import attrgetter, methodcaller
from typing import Any, cast

import numpy as np

from skpursuit.data.design import Design
from skpursuit.data.view import View
from skpursuit.fit.descent import Descent
from skpursuit.fit.gram_schmidt import Factor, added_pieces, piece_products, replayed
from skpursuit.numerics.arrays import Floats, Indices
from skpursuit.numerics.blas import one_thread
from skpursuit.numerics.stack import Rows, Stack, added, cut, row_ranges
from skpursuit.numerics.sums import row_norms, scaled_norm
from skpursuit.problem.sample_losses import SampleLosses

LOOKS_NEAR, LOOKS_TO_ALL_DIGITS = 4, 12  # of a descent in one trip, at least, by where it ends
MOST_LOOKS = 32
Tasks = dict[str, Any]  # by their keys; or futures of them
Steps = tuple[int, list[Descent]]  # where descents are, after so many looks
Ending = Callable[[list[Descent]], list[Descent]]  # what is done to all ends of descents together
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
    if "columns" in away:
        away["columns"].sizes = factor.columns.sizes
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
        self.samples: dict[int, tuple[list[SampleLosses], Tasks]] = {}  # those on the workers, by identity
        self.looks = 0  # that the next fit may take, by the last one

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

    def begin(
        self, tasks: Tasks, keys: list[str], kept: list[str], on_the_way: Iterable[str] = ()
    ) -> tuple[list[Any], Tasks]:
        """One trip, which makes the stacks too: results of some tasks, and futures of those to keep.

        Tasks on the way are watched: as long as they end the trip is not stuck.
        """
        store, watched = self.ranges.store, [*self.keys, *on_the_way]
        made = store.cluster.keep({**store.graph, **self.graph, **tasks}, [*watched, *kept, *keys])
        self.graph = {key: made[key] for key in self.keys}
        found = store.cluster.bring([made[key] for key in keys], [made[key] for key in watched])
        return list(found), {key: made[key] for key in kept}

    def _results(self, what: str, *fns: Any) -> list[Any]:
        """One trip: a function of the stack of each range, or of all of them."""
        pairs = zip(fns * len(self.keys) if len(fns) == 1 else fns, self.keys)
        tasks = self.ranges.store.named(what, [(partial(call, fn), key) for fn, key in pairs])
        return self.begin(tasks, list(tasks), [])[0]

    def made(self, fn: Any, *tasks: Tasks) -> WorkerRows:
        """Rows that are made of these, and of the results of tasks for each range if there are any."""
        made = self.ranges.store.named("basis", [(fn, *keys) for keys in zip(self.keys, *tasks)])
        return WorkerRows(self.ranges, {**self.graph, **dict(*tasks), **made}, list(made))

    def split(self, j: int, brings_column: bool) -> WorkerSplit:
        """A column by its number, to be split into its coefficients on the rows and a remainder."""
        return WorkerSplit(self, j, brings_column)

    def take(self, which: Any) -> WorkerRows:
        some = self.made(methodcaller("take", which))
        if "sizes" in vars(self):
            some.sizes = self.sizes[which]
        return some

    def scaled(self, factors: Floats) -> WorkerRows:
        return self.made(methodcaller("scaled", factors))

    def combinations(self, weights: list[Floats]) -> list[Floats]:
        found = self._results("predictions", methodcaller("combinations", weights))
        return [np.concatenate(lines) for lines in zip(*found)]

    def sums(self, fn: Callable[..., tuple[Floats, ...]], *by_number: Any) -> tuple[Floats, ...]:
        """Sums over n; with the first ones come the norms, which a fit will ask for."""
        measured = "sizes" in vars(self)
        fns = [partial(summed, measured, fn, cut(by_number, rows)) for rows in self.ranges.slices]
        sums, sizes = zip(*self._results("support_products", *fns))
        if not measured:
            self.sizes = row_norms(np.stack(sizes, axis=1))
        return added(list(sums))

    def descend(
        self, descents: list[Descent], samples: list[SampleLosses], starts: list[Any], ending: Ending
    ) -> tuple[list[Descent], list[Floats]]:
        """Looks and decisions take turns in a chain of tasks, as long as the last fit and half as long again.

        A chain that was too short is followed by another.
        """
        named, pairs = self.ranges.store.named, list(zip(self.ranges.slices, self.keys))
        if id(samples) in self.ranges.samples:
            targets = self.ranges.samples[id(samples)][1]
        else:
            parts = [(partial(beside, [some.part(rows) for some in samples]), key) for rows, key in pairs]
            targets = named("targets", parts)
        begun = named(
            "predictions", [(partial(beside, cut(tuple(starts), rows)), key) for rows, key in pairs]
        )
        looks = LOOKS_TO_ALL_DIGITS if descents[0].to_all_digits else LOOKS_NEAR
        looks, taken = min(MOST_LOOKS, max(looks, self.ranges.looks)), 0
        while not all(descent.done for descent in descents):
            tasks, wanted = self._chain(descents, list(zip(begun, self.keys, targets)), looks, ending)
            found, kept = self.begin({**begun, **targets, **tasks}, wanted, [*begun, *targets], tasks)
            (used, descents), *ends = found
            begun, targets = ({key: kept[key] for key in keys} for keys in (begun, targets))
            taken, looks = taken + used, min(MOST_LOOKS, 2 * looks)
        self.ranges.samples[id(samples)], self.ranges.looks = (samples, targets), taken * 3 // 2
        return descents, [np.concatenate(lines) for lines in zip(*ends)]

    def _chain(
        self, descents: list[Descent], ranges: list[tuple[str, ...]], looks: int, ending: Ending
    ) -> tuple[Tasks, list[str]]:
        """Tasks of some looks; the keys of the descents that follow them, and of predictions by ranges."""
        named = self.ranges.store.named
        steps = named("newton_step", [(partial(tuple, (0, descents)),)])
        tasks = dict(steps)
        for _ in range(looks):
            sums = named("newton_sums", [(looked, *steps, *keys) for keys in ranges])
            steps = named("newton_step", [(decided, *steps, list(sums))])
            tasks |= {**sums, **steps}
        last = named("newton_step", [(partial(concluded, ending), *steps)])
        ends = named("predictions", [(ended, *last, *keys[:2]) for keys in ranges])
        return {**tasks, **last, **ends}, [*last, *ends]

    @cached_property
    def sizes(self) -> Floats:
        return row_norms(np.stack(self._results("norms", attrgetter("sizes")), axis=1))

    @property
    def rows(self) -> Floats:
        return np.concatenate(self._results("gather_basis", attrgetter("rows")), axis=1)


class WorkerSplit:
    """A column of X, from which its projection on rows on workers is taken; used as a `Split` is.

    A pass of Gram-Schmidt is one trip: a task adds the products of all ranges up, and each range goes on with
    the sums. The first one gathers the column as well. What is kept of a range is made of its column and of
    numbers that came to the driver, so that no range depends on others when it has to be made again.
    """

    def __init__(self, rows: WorkerRows, j: int, brings_column: bool) -> None:
        self.rows, self.parts = rows, list[Floats]()
        self.graph, ranges = rows.ranges.gather(np.array([j]))
        made = [(partial(whole_column, of), *keys) for of, keys in ranges]
        columns = rows.ranges.store.named("gather_columns", made)
        self.graph, self.keys = {**self.graph, **columns}, list(columns)
        self.size, column = self._pass(brings_column)
        self.column: Any = np.concatenate(column) if brings_column else None

    def _pass(self, brings_column: bool = False) -> tuple[float, list[Floats]]:
        """Products of what is left with the rows, and what they leave; its norm, and the column if wanted."""
        named, pairs = self.rows.ranges.store.named, list(zip(self.rows.keys, self.keys))
        made = named("project_column", [(partial(projected, self.parts), *keys) for keys in pairs])
        sums = named("add_products", [(added_products, list(made))])
        left = named("orthogonalise", [(partial(remainder, self.parts), *keys, *sums) for keys in pairs])
        wanted = [*sums, *left, *(self.keys if brings_column else [])]
        tasks = {**self.graph, **made, **sums, **left}
        found, self.graph = self.rows.begin(tasks, wanted, self.keys, [*made, *left])
        (size, self.products), self.left = found[0], np.concatenate(found[1 : 1 + len(left)])
        return size, [column for _, column in found[1 + len(left) :]]

    def coefficients(self) -> Floats:
        """Products of v with the rows."""
        if self.parts:
            self._pass()
        return self.products

    def subtract(self, part: Floats) -> Floats:
        """What is left of v without the rows times these coefficients, with which it came."""
        self.parts = [*self.parts, part]
        return self.left

    def grown(self, size: float) -> WorkerRows:
        """The rows with what is left, divided by its norm, behind them."""
        return self.rows.made(partial(with_remainder, self.parts, size), self.graph)

    def kept(self, columns: WorkerRows) -> WorkerRows:
        """Columns with this one behind them."""
        after, after.last = columns.made(with_column, self.graph), self.column
        if "sizes" in vars(columns):
            after.sizes = np.append(columns.sizes, scaled_norm(self.column))
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


def taken(parts: list[Floats], stack: Stack, column: tuple[Floats, Floats]) -> Floats:
    """What is left of a column after passes with these coefficients."""
    v = column[0]
    for part in parts:
        v = v - part @ stack.rows
    return v


def projected(parts: list[Floats], stack: Stack, column: tuple[Floats, Floats]) -> tuple[float, Floats]:
    """The norm of what is left of a column, and its products with the rows of a stack by pieces."""
    with one_thread():
        v = taken(parts, stack, column)
        return scaled_norm(v), piece_products(stack.rows, v)


def added_products(found: list[tuple[float, Floats]]) -> tuple[float, Floats]:
    """The norm of a vector, which is compared and nothing else, and its products with all rows."""
    sizes, products = zip(*found)
    return scaled_norm(np.array(sizes)), added_pieces(np.concatenate(products))


def remainder(
    parts: list[Floats], stack: Stack, column: tuple[Floats, Floats], sums: tuple[float, Floats]
) -> Floats:
    """What is left of a column after one more pass."""
    with one_thread():
        return taken([*parts, sums[1]], stack, column)


def with_remainder(parts: list[Floats], size: float, stack: Stack, column: tuple[Floats, Floats]) -> Stack:
    """A stack with one more row: what is left of a column, divided by its size."""
    with one_thread():
        return stack.extend((taken(parts, stack, column) / size)[None])


def with_column(stack: Stack, column: tuple[Floats, Floats]) -> Stack:
    """A stack with a column as it is."""
    return stack.extend(column[1][None])


def call(fn: Callable[[Stack], Any], stack: Stack) -> Any:
    """What a function makes of a stack."""
    with one_thread():
        return fn(stack)


def summed(measured: bool, fn: Any, by_number: list[Any], stack: Stack) -> tuple[Any, Any]:
    """Sums over the numbers of a stack, and the norms of its rows if they have not been measured."""
    return stack.sums(fn, *by_number), None if measured else stack.sizes


def beside(what: Any, stack: Stack) -> Any:
    """What was sent, on the worker that has a stack."""
    return what


def looked(steps: Steps, starts: list[Any], stack: Stack, samples: list[SampleLosses]) -> list[Any]:
    """The sums of a range that descents ask for; one that is done asks for none."""
    with one_thread():
        parts = zip(steps[1], starts, samples)
        return [None if one.done else one.look(z, stack.rows, some) for one, z, some in parts]


def decided(steps: Steps, told: list[Any]) -> Steps:
    """The descents after a look at all ranges."""
    looks, descents = steps
    if all(descent.done for descent in descents):
        return steps
    with one_thread():
        pairs = zip(descents, zip(*told))
        return looks + 1, [was if was.done else was.after(list(sums)) for was, sums in pairs]


def concluded(ending: Ending, steps: Steps) -> Steps:
    """The descents, with what is done at their ends once all have ended."""
    looks, descents = steps
    return (looks, ending(descents)) if all(descent.done for descent in descents) else steps


def ended(steps: Steps, starts: list[Any], stack: Stack) -> list[Floats] | None:
    """The predictions of a range, once all descents are done."""
    if not all(descent.done for descent in steps[1]):
        return None
    with one_thread():
        return [descent.end(z, stack.rows) for descent, z in zip(steps[1], starts)]
