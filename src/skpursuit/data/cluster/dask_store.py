"""X in the chunks of a Dask array: tiles, and what is kept of them, stay on the workers.

A tile is one task. It joins some chunks of the array, cut so that row edges lie at multiples of 512; which
chunks, the array alone decides, so that any number of workers gives the same bits. What is kept of a tile
(its codes) is one more task, made of the tile. All are ordinary tasks: when a worker dies, the scheduler
makes what was on it again, from the chunks, by the same functions and so to the same bits.

A verb of the store is one trip (`dask_client.py`): one task for each tile that is needed, with its part of
the residual in it, and small results. The driver holds vectors of n or d numbers and a bounded cache of
columns. Where X fits in the memory of the workers, tiles are kept there; otherwise they are made of their
chunks whenever they are asked for, and only codes are kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import count, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

import dask.array as da
import numpy as np
from dask.typing import Key
from scipy.sparse import issparse

from skpursuit.data.cluster.dask_client import Cluster, Graph
from skpursuit.data.dense_tile import DenseTile, checked_array, is_by_columns
from skpursuit.data.options import MemoryBudget
from skpursuit.data.store import Arguments, ReadCosts, TilePosition, TileStore, Values, Verb, call
from skpursuit.data.tile import Tile
from skpursuit.numerics.arrays import Floats
from skpursuit.numerics.sums import BLOCK_ROWS

if TYPE_CHECKING:
    from skpursuit.data.codes.coded_tile import CodedTile

TILE_BYTES = 2**25, 2**28  # the least and the most that chunks are joined to
TILES = 128  # about as many tiles a large X is joined to
MAX_JOINED_COLUMNS = 4096  # columns up to which chunks beside each other are joined
# Seconds of a trip, of each of its tasks, and of a byte sent.
ROUND_TRIP_SECONDS, TASK_SECONDS, SEND_SECONDS_PER_BYTE = 0.02, 0.0025, 1 / 225e6


class ChunkSlice(NamedTuple):
    """What a tile takes of a chunk along one axis: its number, its size, and which part of it."""

    chunk: int
    size: int
    part: slice


class DaskStore(TileStore):
    """Tiles on the workers of a Dask cluster, or made by Dask in this process.

    X has two dimensions and known chunks, `names` are of its columns, and `limit` is that of the driver.
    """

    in_memory = False
    most_column_bytes = 2**25  # that the driver keeps

    def __init__(self, X: da.Array, names: list[str] | None, limit: MemoryBudget) -> None:
        self.memory_budget, self.cluster = limit, Cluster()
        self.name = uuid4().hex[:12]  # keys are used once: a scheduler may remember the results of old ones
        self._numbers = count()
        edges = tile_edges(X.chunks, X.dtype.itemsize)
        self.graph, self.tiles = self._tasks(X, edges)
        self._encoded: Graph | None = None  # one task for each tile
        super().__init__(self._blank_grid(edges))
        self.names = names
        whole = self.cost()[1]
        self._trip_seconds = ROUND_TRIP_SECONDS + TASK_SECONDS * len(self.places)
        seconds = self._trip_seconds + SEND_SECONDS_PER_BYTE * 8 * self.shape[0]
        self.read_costs = ReadCosts(seconds / max(1, whole), whole, whole)
        if whole <= self.cluster.persistable_bytes():
            self.graph = self.cluster.persist(self.graph, self.tiles)

    def _tasks(self, X: da.Array, edges: tuple[list[int], list[int]]) -> tuple[Graph, list[Key]]:
        """What tiles are made of, with one task for each tile; and the keys of those, in tile order."""
        given, tasks = X.__dask_graph__(), dict[Key, object]()
        for rows in chunk_slices(X.chunks[0], edges[0]):
            for cols in chunk_slices(X.chunks[1], edges[1]):
                parts = [(X.name, above.chunk, beside.chunk) for above in rows for beside in cols]
                tasks[f"skpursuit_tile-{self.name}-{len(tasks)}"] = partial(join_chunks, rows, cols), *parts
        # Optimising drops chunks that are on the workers already: those are as they were given.
        chunks = {**given, **X.__dask_optimize__(given, X.__dask_keys__())}
        return {**chunks, **tasks}, list(tasks)

    def _blank_grid(self, edges: tuple[list[int], list[int]]) -> list[list[Tile]]:
        """Tiles without entries, of the dtype and order of the first one; those of the same shape are one."""
        tasks = self.named("describe", [(lambda block: (block.dtype, is_by_columns(block)), self.tiles[0])])
        dtype, by_columns = next(self.cluster.results({**self.graph, **tasks}, list(tasks)))
        heights, widths = np.diff(edges[0]).tolist(), np.diff(edges[1]).tolist()
        blanks = {
            shape: DenseTile(np.empty(shape, dtype, "F" if by_columns else "C"), by_columns)
            for shape in {(n, d) for n in heights for d in widths}
        }
        return [[blanks[n, d] for d in widths] for n in heights]

    # -- trips ----------------------------------------------------------------------------------------

    def map_tiles(
        self, fn: Verb, args: Arguments = lambda at: (), fine: bool | None = None
    ) -> Iterator[tuple[TilePosition, Any]]:
        if fine is not None and self._encoded is None:
            tasks = self.named("codes", [(partial(encoded, fine), tile) for tile in self.tiles])
            self._encoded = self.cluster.persist({**self.graph, **tasks}, list(tasks))
        graph = self.graph if fine is None or self._encoded is None else self._encoded
        things = self.tiles if fine is None else list(graph)
        asked = [(place, given) for place in self.places if (given := args(place)) is not None]
        made = [(partial(done, fn, given), things[at.number]) for at, given in asked]
        tasks = self.named(fn if isinstance(fn, str) else fn.__name__, made)
        yield from zip((at for at, _ in asked), self.cluster.results({**graph, **tasks}, list(tasks)))

    def named(self, what: str, tasks: Sequence[object]) -> Graph:
        """Tasks by new keys, which are used once."""
        name = f"skpursuit_{what}-{self.name}-{next(self._numbers)}"
        return {f"{name}-{k}": task for k, task in enumerate(tasks)}

    def check_random_access(self, what: str) -> None:
        raise ValueError(
            f"this selector looks at {what} of X many times a step; X is on a Dask cluster, where each look "
            f"is a trip of about {1000 * self._trip_seconds:.0f} ms, and one exact product of all columns a "
            'single trip; use selector "certified", "gram", "exact" or "auto"'
        )

    def drop_codes(self) -> None:
        super().drop_codes()
        self._encoded = None


# -- what workers do; as `partial`, because Dask looks for keys in the arguments of a task -----------------


def join_chunks(rows: list[ChunkSlice], cols: list[ChunkSlice], *chunks: np.ndarray) -> Floats:
    """The array of a tile from parts of chunks; nothing is copied where one chunk is all of it."""
    given = iter(chunks)
    parts = [
        [checked_chunk(next(given), above, beside)[above.part][:, beside.part] for beside in cols]
        for above in rows
    ]
    if len(parts) == 1 and len(parts[0]) == 1:
        return parts[0][0]
    return np.concatenate([np.concatenate(line, axis=1) if len(line) > 1 else line[0] for line in parts])


def encoded(fine: bool, block: Floats) -> CodedTile:
    """The codes of a tile."""
    return DenseTile(block).encode(fine)


def done(fn: Verb, arguments: Values, block: Floats | CodedTile) -> Any:
    """What a trip does with a tile, or with what is kept of it."""
    return call(fn, DenseTile(block) if isinstance(block, np.ndarray) else block, arguments)


def checked_chunk(chunk: np.ndarray, above: ChunkSlice, beside: ChunkSlice) -> Floats:
    """A chunk as an array of floats, or an error that tells which it is."""
    where = f"chunk ({above.chunk}, {beside.chunk}) of X"
    if np.shape(chunk) != (above.size, beside.size):
        raise ValueError(
            f"{where} has the shape {np.shape(chunk)}, its array says {above.size, beside.size}; "
            "give the function that makes chunks the right shapes"
        )
    if issparse(chunk):
        raise TypeError(f"{where} is sparse; sparse X is fitted from memory: give X.compute()")
    try:
        return checked_array(chunk)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{where} is refused: {error}") from None


# -- how chunks become tiles ------------------------------------------------------------------------------


def tile_edges(chunks: tuple[tuple[int, ...], tuple[int, ...]], itemsize: int) -> tuple[list[int], list[int]]:
    """Edges of the tiles: those of chunks, with small chunks joined and row edges at multiples of 512."""
    n, d = (sum(parts) for parts in chunks)
    col_edges = merge_edges(chunks[1], MAX_JOINED_COLUMNS, 1)
    width = d / (len(col_edges) - 1)
    least = min(max(TILE_BYTES[0], n * d * itemsize // TILES), TILE_BYTES[1])
    return merge_edges(chunks[0], int(least / (width * itemsize)), BLOCK_ROWS), col_edges


def merge_edges(parts: tuple[int, ...], least: int, multiple: int) -> list[int]:
    """Edges that are at least so far apart, each the last multiple before the end of a part."""
    ends = np.cumsum(parts)
    edges = [0]
    for end in (ends[:-1] // multiple * multiple).tolist():
        if end - edges[-1] >= max(1, least):
            edges.append(end)
    total = int(ends[-1])
    if len(edges) > 1 and total - edges[-1] < least // 2:
        edges.pop()
    return [*edges, total]


def chunk_slices(parts: tuple[int, ...], edges: list[int]) -> list[list[ChunkSlice]]:
    """For each range between edges the chunks it takes something of."""
    ends = np.cumsum(parts)
    starts = ends - parts
    out = []
    for first, last in pairwise(edges):
        inside = np.flatnonzero((starts < last) & (ends > first)).tolist()
        bounds = [(max(0, first - starts[k]), min(last, ends[k]) - starts[k]) for k in inside]
        out.append([ChunkSlice(k, parts[k], slice(int(a), int(b))) for k, (a, b) in zip(inside, bounds)])
    return out
