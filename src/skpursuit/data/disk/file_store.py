"""X in files: tiles are loaded one after the other, the next one while the last one is worked on.

Two buffers and one thread that reads are all that is in memory of X itself. Whatever is kept of it (codes,
columns, products) has its share of one memory limit. A `TileReader` is a tile made of parts of arrays in
files (`DiskArray`). Files are read into buffers that are used again (`CountedFile`), and never mapped: a
mapped file that is cut short kills the process, its pages count as memory of the process, and nobody counts
what is read of it. A file is opened for each tile, and its size and time of change are compared with what
they were, so that a file that changed in between is noticed.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from skpursuit._atomic_files import FileError
from skpursuit.data.dense_tile import DenseTile
from skpursuit.data.disk.code_storage import HEADER, CodeStorage, LazyArrays
from skpursuit.data.options import DesignOptions, available_memory
from skpursuit.data.read_counter import FileReads, ReadCounter
from skpursuit.data.store import Arguments, ReadCosts, TilePosition, TileStore, Verb, call
from skpursuit.numerics.arrays import Floats, Indices
from skpursuit.numerics.threads import wait_interruptibly
from skpursuit.numerics.tuning import CACHED_FILE_BYTE, FILE_BYTE
from skpursuit.progress import current_monitor

if TYPE_CHECKING:
    from skpursuit.data.codes.coded_tile import CodedTile

# Bytes of one call, so that a reader that is told to stop does so within some milliseconds.
READ_CHUNK_BYTES = 8 * 2**20
Cancelled = Callable[[], bool]  # asked between two calls; True ends the reading


class ReadCancelled(Exception):
    """The reader was told to stop."""


class Stamp(NamedTuple):
    """What tells that a file is the same one: its size, the time of its last change, and its inode."""

    size: int
    mtime_ns: int
    inode: int


def stamp_of(file: str | int) -> Stamp:
    """The stamp of a file by its path or descriptor, or an error that names it."""
    with file_errors(str(file)):
        status = os.stat(file)
    return Stamp(status.st_size, status.st_mtime_ns, status.st_ino)


@contextmanager
def file_errors(path: str) -> Iterator[None]:
    """Turn errors of the system into one sentence that names the file."""
    try:
        yield
    except FileNotFoundError:
        raise FileError(path, "there is no such file", "check the path") from None
    except PermissionError:
        raise FileError(path, "it may not be read", "change its permissions") from None
    except OSError as error:
        raise FileError(path, f"it cannot be read ({error.strerror})", "check the disk") from None


def check_file_unchanged(path: str, stamp: Stamp, now: Stamp) -> None:
    """Refuse a file that was changed."""
    if now != stamp:
        what = "it was cut short" if now.size < stamp.size else "it was changed"
        raise FileError(path, f"{what} while it was in use", "make a new design of it: as_design(path)")


@dataclass(frozen=True)
class DiskArray(ABC):
    """A dense array in a file of some format."""

    path: str
    stamp: Stamp
    shape: tuple[int, int]
    dtype: np.dtype
    reads: FileReads = field(compare=False)
    is_f_order: bool  # whether the entries of a column lie next to each other (F order)
    reads_columns = True  # whether a column of an array in F order is read without the others

    @property
    @abstractmethod
    def entry_bytes(self) -> float:
        """Bytes of the file for each entry."""

    @abstractmethod
    def read(self, rows: slice, cols: slice, out: np.ndarray, cancelled: Cancelled = lambda: False) -> None:
        """Copy a rectangle into an array of any layout and float dtype; `cancelled` may end it."""


class FileRegion(NamedTuple):
    """A rectangle of a file, and the row and column of a tile where it begins."""

    array: DiskArray
    rows: slice
    cols: slice
    at: tuple[int, int]


@dataclass(frozen=True)
class TileReader:
    """How one tile is loaded: from parts of files."""

    shape: tuple[int, int]
    dtype: np.dtype
    reads_single_columns: bool  # whether the tile has F order
    parts: tuple[FileRegion, ...]

    @property
    def nbytes(self) -> int:
        """Bytes of memory that loading fills."""
        return self.shape[0] * self.shape[1] * self.dtype.itemsize

    @property
    def file_bytes(self) -> int:
        """Bytes that loading reads, about."""
        sizes = [(p.rows.stop - p.rows.start) * (p.cols.stop - p.cols.start) for p in self.parts]
        return int(sum(size * part.array.entry_bytes for size, part in zip(sizes, self.parts)))

    def tile(self, buffer: memoryview | None = None) -> DenseTile:
        """A tile in a buffer of at least `nbytes` bytes; without one its entries are never written."""
        order: Any = "F" if self.reads_single_columns else "C"
        return DenseTile(np.ndarray(self.shape, self.dtype, buffer, order=order), self.reads_single_columns)

    def load(self, buffer: np.ndarray, cancelled: Cancelled) -> DenseTile:
        """The tile, in a buffer."""
        tile = self.tile(buffer.data)
        self.fill(tile.X, cancelled)
        return tile

    def fill(self, X: Floats, cancelled: Cancelled = lambda: False) -> None:
        """Read the tile into an array."""
        for array, rows, cols, (i, j) in self.parts:
            height, width = rows.stop - rows.start, cols.stop - cols.start
            array.read(rows, cols, X[i : i + height, j : j + width], cancelled)

    def take(self, cols: Indices) -> Floats:
        """Columns as the rows of an array."""
        out = np.empty((len(cols), self.shape[0]), self.dtype)
        for array, rows, within, (i, j) in self.parts:
            height = rows.stop - rows.start
            for line, col in zip(out, cols.tolist()):
                if j <= col < j + within.stop - within.start:
                    first = within.start + col - j
                    array.read(rows, slice(first, first + 1), line[i : i + height, None])
        return out


class FileStore(TileStore):
    """X by the readers of its tiles, one list for each range of rows.

    `options` have the memory limit, the count of bytes read, and where codes go that do not fit in the limit.
    """

    in_memory, on_disk = False, True

    def __init__(
        self, recipes: list[list[TileReader]], options: DesignOptions, names: list[str] | None = None
    ) -> None:
        self.memory_budget, self.options, codes = options.memory_budget, options, options.codes
        self.recipes = [recipe for row in recipes for recipe in row]
        blanks = {recipe.shape: recipe.tile() for recipe in self.recipes}
        super().__init__([[blanks[recipe.shape] for recipe in row] for row in recipes])
        self.names, self.file_reads = names, (options.reads, FileReads())
        self.codes_folder = None if codes is None or codes == "auto" else Path(codes)
        self._stored: CodeStorage | None = None
        self._buffers: list[np.ndarray] = []
        (n, d), first = self.shape, self.recipes[0]
        whole = sum(recipe.file_bytes for recipe in self.recipes)
        self.reads_single_columns = first.reads_single_columns and first.parts[0].array.reads_columns
        self.column_costs_full_pass = not self.reads_single_columns
        line = (whole // d, whole) if self.reads_single_columns else (whole, whole // n)
        # A file that fits stays in the system's memory: after the first reading, which all selectors need.
        self.read_costs = ReadCosts(CACHED_FILE_BYTE if 2 * whole < available_memory() else FILE_BYTE, *line)

    def has_room_for_codes(self, nbytes: int) -> bool:
        in_memory = self.memory_budget.allocated + nbytes <= self.memory_budget.total_bytes
        if in_memory or self.options.codes is None:
            return in_memory
        if self.codes_folder is not None and any(self.codes_folder.glob(f"*/{HEADER}")):
            return True  # there are codes of an earlier fit
        folder = (self.codes_folder or Path(tempfile.gettempdir())).absolute()
        disk = next(path for path in (folder, *folder.parents) if path.exists())
        return shutil.disk_usage(disk).free > nbytes

    # -- passes over the files --------------------------------------------------------------------------

    def map_tiles(
        self, fn: Verb, args: Arguments = lambda at: (), fine: bool | None = None
    ) -> Iterator[tuple[TilePosition, Any]]:
        todo = [(place, given) for place in self.places if (given := args(place)) is not None]
        if fine is None:
            for (place, given), tile in zip(todo, self._loaded([place for place, _ in todo])):
                yield place, call(fn, tile, given)
            return
        if self._stored is None:
            inodes = repr([stamp.inode for stamp in self.files().values()]).encode()
            edges = self.row_edges.tobytes() + self.col_edges.tobytes()
            identity = hashlib.sha256(self.fingerprint(ReadCounter()) + inodes + edges).hexdigest()
            header = {"identity": identity, "tiles": len(self.places), "fine": fine}
            self._stored = CodeStorage(header, self.codes_folder, self.options, self.file_reads[1])
            self._stored.load_existing()
        stored = self._stored
        if not stored.coded_tiles:
            made = ((place, args(place), tile) for place, tile in self._made(stored, fine))
            yield from ((place, call(fn, tile, given)) for place, given, tile in made if given is not None)
            return
        for place, given in todo:
            yield place, call(fn, kept := stored.coded_tiles[place.number], given)
            if isinstance(kept, LazyArrays):
                kept.release()

    def _made(self, stored: CodeStorage, fine: bool) -> Iterator[tuple[TilePosition, CodedTile]]:
        """The codes of the tiles, made while these are loaded; they are kept when the caller has used them.

        What goes to disk is written by another thread, while the next tile is worked on.
        """
        kept: list[Future[None]] = []
        try:
            with ThreadPoolExecutor(1, thread_name_prefix="skpursuit-writer") as writer:
                for place, tile in zip(self.places, self._loaded(self.places)):
                    made = tile.encode(fine)
                    if self.surveying is not None:
                        self.surveying.add(place, tile.survey(*self.surveying.arguments(place)))
                    yield place, made
                    for last in kept:
                        wait_interruptibly(last)
                    share = tile.shape[0] * tile.shape[1] / (self.shape[0] * self.shape[1])
                    kept = [writer.submit(stored.put, place.number, made, share)]
                wait_interruptibly(kept[0])
            stored.commit()
        except BaseException:  # an error, an interrupt or a caller that has enough: nothing is left behind
            self.drop_codes()
            raise

    def drop_codes(self) -> None:
        super().drop_codes()
        if self._stored is not None:
            self._stored.discard()
        self._stored = None

    def store_codes_beside(self, path: str | os.PathLike[str]) -> None:
        """Have the codes found again by a run that goes on from this checkpoint."""
        if self.options.codes == "auto" and self._stored is None:
            self.codes_folder = Path(f"{path}.codes")

    def _loaded(self, places: list[TilePosition]) -> Iterator[DenseTile]:
        """The tiles at these places, each as long as it is in hand: its buffer is used again."""
        recipes, stopped = [self.recipes[place.number] for place in places], False
        done, total = 0, sum(recipe.file_bytes for recipe in recipes)
        largest = max(recipe.nbytes for recipe in self.recipes)
        buffers = [self._buffers.pop() if self._buffers else np.empty(largest, np.uint8) for _ in range(2)]
        with ThreadPoolExecutor(1, thread_name_prefix="skpursuit-reader") as reader:

            def begun(some: list[TileReader], buffer: np.ndarray) -> list[Future[DenseTile]]:
                return [reader.submit(recipe.load, buffer, lambda: stopped) for recipe in some]

            try:
                ahead = begun(recipes[:1], buffers[0])
                for k, recipe in enumerate(recipes, 1):
                    tile = wait_interruptibly(ahead[0])
                    done += recipe.file_bytes
                    current_monitor().set_message("read {:.1f} of {:.1f} GB", done / 1e9, total / 1e9)
                    ahead = begun(recipes[k : k + 1], buffers[k % 2])
                    yield tile
            finally:  # an interrupt, an error, or a caller that has enough
                stopped = True
                self._buffers.extend(buffers)

    def take(self, cols: Indices) -> Floats:
        if not self.reads_single_columns:
            return super().take(cols)
        out = np.empty((len(cols), self.shape[0]))
        for j, places, local in self.split(cols, self.col_edges):
            below = slice(j, None, len(self.grid[0]))
            for place, recipe in zip(self.places[below], self.recipes[below]):
                out[places, place.rows] = recipe.take(local)
        return out

    def source_of(self, row: int, column: int) -> str:
        for place, recipe in zip(self.places, self.recipes):
            for array, rows, cols, (i, j) in recipe.parts:
                down, along = row - place.rows.start - i, column - place.cols.start - j
                if 0 <= down < rows.stop - rows.start and 0 <= along < cols.stop - cols.start:
                    return f", in {array.path}"
        return ""

    def gather_ahead_width(self) -> int:
        """Columns that one pass over files by rows gathers: the cache has room for two such panels."""
        return 0 if self.reads_single_columns else self.memory_budget.columns * 3 // 8 // (8 * self.shape[0])

    def combine_columns(self, cols: Indices, centre: Floats | None, coef: Floats) -> Floats:
        if not self.reads_single_columns:
            return super().combine_columns(cols, centre, coef)
        out = np.zeros((self.shape[0], *coef.shape[1:]))
        for at in range(len(cols)):  # each is read alone
            line = self.take(cols[at : at + 1])[0]
            out += np.multiply.outer(line if centre is None else line - centre[at], coef[at])
        return out

    def check_random_access(self, what: str) -> None:
        n, d = self.shape
        row, whole = max(1, self.read_costs.row), n * d * self.dtype.itemsize
        raise ValueError(
            f"this selector reads {what} of X at random; X is on disk, where one costs {row:,} bytes, "
            f'and a thousand of them for each step would take long; use selector "certified", "gram" or '
            f'"auto", or a memory_limit of {2 * whole:,} bytes, with which X is read into memory'
        )

    # -- whether X is what it was -----------------------------------------------------------------------

    def files(self) -> dict[str, Stamp]:
        """The files, and what they were when the design was made."""
        parts = (part.array for recipe in self.recipes for part in recipe.parts)
        return {array.path: array.stamp for array in parts}

    def check_unchanged(self) -> None:
        for path, stamp in self.files().items():
            check_file_unchanged(path, stamp, stamp_of(path))

    def fingerprint(self, reads: ReadCounter) -> bytes:
        """Names, sizes and times of the files, and what was said of columns."""
        # The limit and the tiles that follow from it are left out: a run may go on with another one.
        files = [(os.path.basename(path), stamp.size, stamp.mtime_ns) for path, stamp in self.files().items()]
        return repr((files, self.options.columns, self.options.exclude, self.options.axis)).encode()
