"""Dense X in files: `.npy`, folders of `.npy` pieces, memory maps over plain files, and lists of these.

Pieces of a folder follow each other in the order of their names, numbers in them by value: below each other,
or side by side where the caller says `axis=1`. X is then cut into tiles that fit in the memory limit: whole
rows of a C-ordered file, whole columns of an F-ordered one, so that a tile is one stretch of the file. What
fits in memory as a whole is read once, and is an array like any other. A `RawFileArray` is a dense array in a
file, as the header of a `.npy` file or a memory map describes it; parts of it are read by `preadv`.
"""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np
from numpy.lib import format as npy

from skpursuit._atomic_files import FileError
from skpursuit.data.dense_tile import check_shape, float_dtype
from skpursuit.data.disk import file_store as store
from skpursuit.data.disk.file_store import Cancelled, DiskArray, FileRegion, FileStore, TileReader
from skpursuit.data.options import UNLIMITED, DesignOptions
from skpursuit.data.read_counter import CountedFile, FileReads
from skpursuit.data.store import TileStore
from skpursuit.numerics.arrays import Indices
from skpursuit.numerics.sums import BLOCK_ROWS

KNOWN = "a .npy or .parquet file, or a folder of such pieces (not of more folders)"
DATA_SUFFIXES = (".npy", ".parquet", ".pq")
BY_COLUMNS = "where pieces have columns of X, give as_design(folder, axis=1)"
WHOLE_ROWS = 4  # times as large a tile may be whose rows are then not read in parts, each by a call
FilePath = str | os.PathLike[str]
MIN_TILE_COLUMNS = 16  # a tile of long columns has at least these, if it can, and a multiple of them


def accepts(X: object) -> bool:
    """Whether X is a path, a memory map over a plain file, or a list of these."""
    if isinstance(X, (list, tuple)):
        return len(X) > 0 and all(not isinstance(part, (list, tuple)) and accepts(part) for part in X)
    if isinstance(X, np.memmap):
        return mapped_array(X, FileReads()) is not None
    return isinstance(X, (str, os.PathLike))


def is_folder_of(X: FilePath, *endings: str) -> bool:
    """Whether X is a folder that has files with such an ending."""
    return os.path.isdir(X) and len(_names(X, endings)) > 0


def _names(folder: FilePath, endings: tuple[str, ...]) -> list[str]:
    """The files of a folder with such an ending that are not hidden."""
    with store.file_errors(os.fspath(folder)):
        return [name for name in os.listdir(folder) if name.endswith(endings) and not name.startswith(".")]


def list_data_files(folder: FilePath | list[FilePath], *endings: str) -> list[str]:
    """The path, or the files of a folder with such an ending by their names, numbers in them by value.

    Those of a list one after the other.
    """
    if isinstance(folder, (list, tuple)):
        return [path for part in folder for path in list_data_files(part, *endings)]
    if not os.path.isdir(folder):
        return [os.fspath(folder)]

    def natural(name: str) -> list[tuple[int, int, str] | tuple[int, int]]:
        return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.split(r"(\d+)", name)]

    names = sorted(_names(folder, endings), key=natural)
    if not names:
        raise FileError(folder, f"there is no {endings[0]} file in it", "folders below it are not looked at")
    if others := sorted(set(_names(folder, DATA_SUFFIXES)) - set(names)):
        problem = f"it has files of two kinds, {names[0]} and {others[0]}"
        raise FileError(folder, problem, "give X a folder of its own, or its files as a list")
    return [os.path.join(folder, name) for name in names]


@dataclass(frozen=True)
class RawFileArray(DiskArray):
    """A dense array whose bytes are in a file as they are in memory, from an offset on."""

    offset: int

    def __post_init__(self) -> None:
        end = self.offset + self.shape[0] * self.shape[1] * self.dtype.itemsize
        if self.stamp.size < end:
            problem = f"it has {self.stamp.size} bytes and should have {end}: it was cut short"
            raise FileError(self.path, problem, "write it again")

    @property
    def entry_bytes(self) -> float:
        return self.dtype.itemsize

    def read(self, rows: slice, cols: slice, out: np.ndarray, cancelled: Cancelled = lambda: False) -> None:
        lines, within, out = (cols, rows, out.T) if self.is_f_order else (rows, cols, out)
        length, size = self.shape[0 if self.is_f_order else 1], self.dtype.itemsize
        width = within.stop - within.start
        # Whole lines are read in one go.
        together = max(1, store.READ_CHUNK_BYTES // (width * size)) if width == length else 1
        with store.file_errors(self.path), CountedFile(self.path, self.reads) as file:
            store.check_file_unchanged(self.path, self.stamp, store.stamp_of(file.fileno()))
            for start in range(0, len(out), together):
                target = out[start : start + together]
                direct = target.dtype == self.dtype and target.flags.c_contiguous
                room = target if direct else np.empty(target.shape, self.dtype)
                at = self.offset + ((lines.start + start) * length + within.start) * size
                self._fill(file, at, room.reshape(-1).view(np.uint8).data, cancelled)
                if not direct:
                    target[...] = room
            store.check_file_unchanged(self.path, self.stamp, store.stamp_of(file.fileno()))

    def _fill(self, file: CountedFile, at: int, out: memoryview, cancelled: Cancelled) -> None:
        """Fill memory from a place in the file."""
        done = 0
        while done < len(out):
            if cancelled():
                raise store.ReadCancelled
            count = file.read_at(out[done : done + store.READ_CHUNK_BYTES], at + done)
            if count == 0:
                raise FileError(self.path, f"it ends at byte {at + done}: it was cut short", "write it again")
            done += count


def npy_array(path: str, reads: FileReads) -> RawFileArray:
    """The array of a `.npy` file by its header."""
    stamp = store.stamp_of(path)
    with store.file_errors(path), CountedFile(path, reads) as file:
        try:
            read = npy.read_array_header_1_0 if npy.read_magic(file) == (1, 0) else npy.read_array_header_2_0
            shape, by_columns, dtype = read(file)
        except OSError:
            raise
        except Exception as error:  # numpy parses the header as Python, and raises whatever the bytes lead to
            raise FileError(path, f"it is no .npy file ({error})", "write it by numpy.save") from None
        offset = file.tell()
    try:
        float_dtype(dtype)
        check_shape(shape)
        n, d = shape
    except (TypeError, ValueError) as error:
        raise FileError(path, str(error), "save a matrix of numbers") from None
    return RawFileArray(path, stamp, (n, d), dtype, reads, by_columns and min(n, d) > 1, offset)


def mapped_array(X: np.memmap, reads: FileReads) -> RawFileArray | None:
    """The file behind a memory map; None where X is a part of it with gaps, or a private copy."""
    base = X
    while isinstance(base.base, np.memmap):
        base = base.base
    path, c_order, f_order = str(X.filename), X.flags.c_contiguous, X.flags.f_contiguous
    if X.ndim != 2 or min(X.shape) == 0 or base.mode == "c" or not os.path.isfile(path):
        return None
    if not (c_order or f_order) or X.dtype.kind not in "fiub":
        return None
    offset = base.offset + X.ctypes.data - base.ctypes.data
    return RawFileArray(path, store.stamp_of(path), X.shape, X.dtype, reads, f_order and not c_order, offset)


def make_store(X: FilePath | np.memmap | list[FilePath | np.memmap], options: DesignOptions) -> TileStore:
    """X in one array where that fits in the limit, else tile by tile."""
    arrays, across = open_arrays(X, options.reads), 1 - options.axis
    for array in arrays:
        if array.shape[across] != arrays[0].shape[across]:
            problem = f"its shape {array.shape} does not go with {arrays[0].path} of shape {arrays[0].shape}"
            by_rows = f"pieces by rows need the same number of columns; {BY_COLUMNS}"
            remedy = "pieces need the same number of rows where axis is 1" if options.axis else by_rows
            raise FileError(array.path, problem, remedy)
    widths = [array.shape[1] for array in arrays]
    chosen = options.selected_columns(sum(widths) if options.axis else widths[0], None)
    made = load_or_stream(arrays, chosen, options)
    made.hint = "" if options.axis or len(arrays) == 1 else BY_COLUMNS
    return made


def open_arrays(X: FilePath | np.memmap | list[FilePath | np.memmap], reads: FileReads) -> list[RawFileArray]:
    """The arrays in files that X is made of, in their order."""
    if isinstance(X, (list, tuple)):
        return [array for part in X for array in open_arrays(part, reads)]
    if isinstance(X, np.memmap):
        mapped = mapped_array(X, reads)
        assert mapped is not None
        return [mapped]
    if not os.path.exists(X):
        raise FileError(X, "X is no array but a path, and there is no such file", "check the path")
    if str(X).endswith(".npz") or is_folder_of(X, ".npz"):
        remedy = "load the matrix, by scipy.sparse.load_npz for one, and pass that"
        raise FileError(X, "an .npz file is no X on disk: sparse X is fitted from memory", remedy)
    if not (str(X).endswith(".npy") or is_folder_of(X, ".npy")):
        raise FileError(X, "this kind of file or folder is not known", f"give {KNOWN}")
    return [npy_array(path, reads) for path in list_data_files(X, ".npy")]


def recipes_of(
    arrays: Sequence[DiskArray], chosen: Indices, tile_bytes: int, axis: int = 0
) -> list[list[TileReader]]:
    """Recipes of tiles of about so many bytes, of arrays along an axis and the columns that count."""
    starts = list(accumulate((array.shape[axis] for array in arrays), initial=0))
    n = arrays[0].shape[0] if axis else starts[-1]
    dtype = np.result_type(*(float_dtype(array.dtype) for array in arrays))
    wide_ones = [array.is_f_order for array in arrays if array.shape[1] > 1]
    by_columns = len(wide_ones) > 0 and all(wide_ones)
    runs = np.split(chosen, np.flatnonzero(np.diff(chosen) != 1) + 1)  # of neighbouring columns

    def parts(rows: tuple[int, int], cols: tuple[int, int]) -> Iterator[FileRegion]:
        """The rectangles of files that make up some rows and some of the columns that count."""
        place = 0
        for run in runs:
            lo, hi = max(cols[0], place), min(cols[1], place + len(run))
            first = int(run[0]) + lo - place
            place += len(run)
            begin, end = (first, first + hi - lo) if axis else rows
            for array, start, stop in zip(arrays, starts, starts[1:]):
                a, b = max(begin, start), min(end, stop)
                if a < b and lo < hi:
                    inside, at = slice(a - start, b - start), lo - cols[0]
                    if axis:
                        yield FileRegion(array, slice(*rows), inside, (0, at + a - begin))
                    else:
                        yield FileRegion(array, inside, slice(first, first + hi - lo), (a - begin, at))

    alone = by_columns and arrays[0].reads_columns
    tall, wide = tile_shape(n, len(chosen), tile_bytes // dtype.itemsize, alone)
    inner = starts[1:-1] if axis == 0 and by_columns else []
    row_ranges = list(pairwise(split_edges([*(end // BLOCK_ROWS * BLOCK_ROWS for end in inner), n], tall)))
    wide = wide if arrays[0].reads_columns else len(chosen)
    col_ranges = list(pairwise(split_edges([len(chosen)], wide)))
    return [
        [TileReader((b - a, d - c), dtype, by_columns, tuple(parts((a, b), (c, d)))) for c, d in col_ranges]
        for a, b in row_ranges
    ]


def tile_shape(n: int, d: int, entries: int, by_columns: bool) -> tuple[int, int]:
    """Rows (a multiple of 512) and columns of a tile of about so many entries, whole lines of the file."""
    if by_columns:
        tall = n
        if n * min(d, MIN_TILE_COLUMNS) > entries:
            tall = max(BLOCK_ROWS, entries // MIN_TILE_COLUMNS // BLOCK_ROWS * BLOCK_ROWS)
        wide = max(1, entries // tall)
        return tall, wide - wide % MIN_TILE_COLUMNS if wide > MIN_TILE_COLUMNS else wide  # whole panels
    wide = d if d * BLOCK_ROWS <= WHOLE_ROWS * entries else max(1, entries // BLOCK_ROWS)
    return max(BLOCK_ROWS, entries // wide // BLOCK_ROWS * BLOCK_ROWS), wide


def split_edges(ends: list[int], most: int) -> list[int]:
    """Edges from 0 to the last end, at most so far apart, at the ends where that leaves no small ranges."""
    out = [0]
    for end, following in pairwise([*ends, ends[-1] + most + 1]):
        while end - out[-1] > most:
            out.append(out[-1] + most)
        if out[-1] < end and (following - out[-1] > most or end == ends[-1]):
            out.append(end)
    return out


def load_or_stream(
    arrays: Sequence[DiskArray], chosen: Indices, options: DesignOptions, names: list[str] | None = None
) -> TileStore:
    """Some columns of arrays in files as a store; one array in memory where they fit in the limit."""
    budget = options.memory_budget
    [[whole]] = recipes_of(arrays, chosen, UNLIMITED.total_bytes, options.axis)
    if 2 * whole.nbytes <= budget.total_bytes:  # with its codes and all that is kept of it
        tile = whole.tile()
        whole.fill(tile.X)
        made = TileStore([[tile]])
        made.names, made.file_reads = names, (options.reads,)
        return made
    recipes = recipes_of(arrays, chosen, budget.tile, options.axis)
    largest = max(recipe.nbytes for row in recipes for recipe in row)
    budget.try_allocate(3 * max(0, largest - budget.tile), force=True)
    return FileStore(recipes, options, names)
