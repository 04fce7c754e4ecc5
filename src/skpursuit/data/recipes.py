"""How tiles are loaded from files: small values that say which bytes they are, and the reading of these.

A `FileArray` is a dense array in a file, as the header of a `.npy` file or a memory map describes it. A
`DenseRecipe` is a tile made of parts of such arrays. Recipes can be sent to other processes. Files are read
by `preadv` into buffers that are used again (`CountedFile`), and never mapped: a mapped file that is cut
short kills the process, its pages count as memory of the process, and nobody counts what is read of it. A
file is opened for each tile, and its size and time of change are compared with what they were, so that a file
that changed in between is noticed.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from skpursuit._files import FileError
from skpursuit.data.array_source import check_shape, float_dtype
from skpursuit.data.dense import DenseTile
from skpursuit.data.reads import CountedFile, FileReads
from skpursuit.data.tile import Tile
from skpursuit.numerics.arrays import Floats, Indices

SAMPLE = 64  # entries of a tile that are part of the identity of X
CHUNK = 8 * 2**20  # bytes of one call, so that a reader that is told to stop does so within some milliseconds


class Stopped(Exception):
    """The reader was told to stop."""


class Stamp(NamedTuple):
    """What tells that a file is the same one: its size, the time of its last change, and its inode."""

    size: int
    mtime_ns: int
    inode: int

    @staticmethod
    def of(status: os.stat_result) -> Stamp:
        """The stamp of a file by what the system says of it."""
        return Stamp(status.st_size, status.st_mtime_ns, status.st_ino)


def stamp_of(path: str) -> Stamp:
    """The stamp of a file, or an error that names it."""
    with naming(path):
        return Stamp.of(os.stat(path))


@contextmanager
def naming(path: str) -> Iterator[None]:
    """Turn errors of the system into one sentence that names the file."""
    try:
        yield
    except FileNotFoundError:
        raise FileError(path, "there is no such file", "check the path") from None
    except PermissionError:
        raise FileError(path, "it may not be read", "change its permissions") from None
    except OSError as error:
        raise FileError(path, f"it cannot be read ({error.strerror})", "check the disk") from None


@contextmanager
def opened(path: str, stamp: Stamp, reads: FileReads) -> Iterator[CountedFile]:
    """A file that must be, and stay, the one it was."""
    with naming(path):
        file = CountedFile(path, reads)
    with file:
        check_same(path, stamp, os.fstat(file.fileno()))
        yield file
        check_same(path, stamp, os.fstat(file.fileno()))


def check_same(path: str, stamp: Stamp, now: os.stat_result) -> None:
    """Refuse a file that was changed."""
    if Stamp.of(now) != stamp:
        what = "it was cut short" if now.st_size < stamp.size else "it was changed"
        raise FileError(path, f"{what} while it was in use", "make a new design of it: as_design(path)")


def read_into(file: CountedFile, path: str, offset: int, out: np.ndarray, stop: Callable[[], bool]) -> None:
    """Fill contiguous memory from a place in a file."""
    view = out.reshape(-1).view(np.uint8).data
    done = 0
    with naming(path):
        while done < len(view):
            if stop():
                raise Stopped
            count = file.read_at(view[done : done + CHUNK], offset + done)
            if count == 0:
                raise FileError(path, f"it ends at byte {offset + done}: it was cut short", "write it again")
            done += count


def never() -> bool:
    """For reads that nobody stops."""
    return False


@dataclass(frozen=True)
class FileArray:
    """A dense array in a file.

    Parameters
    ----------
    path : str
    offset : int
        Where its first byte is.
    shape : (int, int)
    by_columns : bool
        Whether the entries of a column lie next to each other (F order).
    dtype : dtype of the numbers in the file
    stamp : Stamp
    reads : FileReads
        Counts what is read of it.
    """

    path: str
    offset: int
    shape: tuple[int, int]
    by_columns: bool
    dtype: np.dtype[Any]
    stamp: Stamp
    reads: FileReads = field(compare=False)

    def __post_init__(self) -> None:
        end = self.offset + self.shape[0] * self.shape[1] * self.dtype.itemsize
        if self.stamp.size < end:
            problem = f"it has {self.stamp.size} bytes and should have {end}: it was cut short"
            raise FileError(self.path, problem, "write it again")

    def read(self, rows: slice, cols: slice, out: np.ndarray, stop: Callable[[], bool] = never) -> None:
        """Copy a rectangle into an array of any layout and float dtype."""
        if self.by_columns:
            self._lines(cols, rows, out.T, stop)
        else:
            self._lines(rows, cols, out, stop)

    def _lines(self, lines: slice, within: slice, out: np.ndarray, stop: Callable[[], bool]) -> None:
        """Copy parts of lines, which are contiguous in the file; those that follow each other in one go."""
        length, size = self.shape[0 if self.by_columns else 1], self.dtype.itemsize
        width = within.stop - within.start
        whole = width == length
        direct = out.dtype == self.dtype and out.strides[1] == size
        together = max(1, CHUNK // (width * size)) if whole else 1
        if whole and direct and out.flags.c_contiguous:
            together = len(out)
        with opened(self.path, self.stamp, self.reads) as file:
            for start in range(0, len(out), together):
                target = out[start : start + together]
                filled = direct and (len(target) == 1 or target.flags.c_contiguous)
                room = target if filled else np.empty(target.shape, self.dtype)
                at = self.offset + ((lines.start + start) * length + within.start) * size
                read_into(file, self.path, at, room, stop)
                if not filled:
                    target[...] = room


class Part(NamedTuple):
    """A rectangle of a file, and the row and column of a tile where it begins."""

    array: FileArray
    rows: slice
    cols: slice
    at: tuple[int, int]


class Recipe(ABC):
    """How one tile is loaded."""

    shape: tuple[int, int]
    dtype: np.dtype[Any]
    file_bytes: int  # that loading reads
    by_columns: bool  # whether a column is read alone, without the others

    @property
    def nbytes(self) -> int:
        """Bytes of memory that loading fills."""
        return self.shape[0] * self.shape[1] * self.dtype.itemsize

    @abstractmethod
    def load(self, buffer: np.ndarray, stop: Callable[[], bool] = never) -> Tile:
        """The tile, in a buffer of at least `nbytes` bytes where it needs one."""

    @abstractmethod
    def blank(self) -> Tile:
        """A tile of the same shape, dtype and order, whose entries were never written."""

    def take(self, cols: Indices) -> Floats:
        """Columns as the rows of an array, where a column is read alone."""
        raise NotImplementedError

    @abstractmethod
    def files(self) -> list[tuple[str, Stamp]]:
        """The files that it reads."""

    @abstractmethod
    def file_of(self, row: int, column: int) -> str:
        """The file that has an entry of the tile."""

    @abstractmethod
    def sample(self) -> bytes:
        """Some of its bytes, for the identity of X."""


@dataclass(frozen=True)
class DenseRecipe(Recipe):
    """A dense tile made of parts of files."""

    shape: tuple[int, int]
    dtype: np.dtype[Any]
    by_columns: bool
    parts: tuple[Part, ...]

    @property
    def file_bytes(self) -> int:  # type: ignore[override]
        """Bytes that are read."""
        return sum(
            (p.rows.stop - p.rows.start) * (p.cols.stop - p.cols.start) * p.array.dtype.itemsize
            for p in self.parts
        )

    def load(self, buffer: np.ndarray, stop: Callable[[], bool] = never) -> Tile:
        order = "F" if self.by_columns else "C"
        X = np.ndarray(self.shape, self.dtype, buffer.data, order=order)  # type: ignore[arg-type]
        self.fill(X, stop)
        return DenseTile(X, self.by_columns)

    def fill(self, X: Floats, stop: Callable[[], bool] = never) -> None:
        """Read all parts into an array."""
        for array, rows, cols, (i, j) in self.parts:
            height, width = rows.stop - rows.start, cols.stop - cols.start
            array.read(rows, cols, X[i : i + height, j : j + width], stop)

    def take(self, cols: Indices) -> Floats:
        out = np.empty((len(cols), self.shape[0]), self.dtype)
        for array, rows, within, (i, j) in self.parts:
            height = rows.stop - rows.start
            for line, col in zip(out, cols.tolist()):
                if j <= col < j + within.stop - within.start:
                    first = within.start + col - j
                    array.read(rows, slice(first, first + 1), line[i : i + height, None])
        return out.astype(np.float64, copy=False)

    def blank(self) -> Tile:
        order = "F" if self.by_columns else "C"
        return DenseTile(np.empty(self.shape, self.dtype, order=order), self.by_columns)  # type: ignore[call-overload]

    def file_of(self, row: int, column: int) -> str:
        for array, rows, cols, (i, j) in self.parts:
            if i <= row < i + rows.stop - rows.start and j <= column < j + cols.stop - cols.start:
                return array.path
        raise IndexError((row, column))

    def sample(self) -> bytes:
        array, rows, cols, _ = self.parts[0]
        some = slice(cols.start, min(cols.stop, cols.start + SAMPLE))
        out = np.empty((1, some.stop - some.start), self.dtype)
        array.read(slice(rows.start, rows.start + 1), some, out)
        return out.tobytes()

    def files(self) -> list[tuple[str, Stamp]]:
        return [(part.array.path, part.array.stamp) for part in self.parts]


def npy_header(file: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, whether in F order, and dtype of the array that an open `.npy` file begins with."""
    from numpy.lib import format as npy

    try:
        version = npy.read_magic(file)
        return (npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0)(file)
    except OSError:
        raise
    except Exception as error:  # numpy parses the header as Python, and raises whatever the bytes lead to
        raise ValueError(f"its header cannot be read: {error}") from None


def npy_array(path: str, reads: FileReads, takes_lines: bool = False) -> FileArray:
    """The array of a `.npy` file by its header. One of one dimension may be y, and is refused unless told."""
    stamp = stamp_of(path)
    with naming(path), CountedFile(path, reads) as file:
        try:
            shape, by_columns, dtype = npy_header(file)
        except ValueError as error:
            raise FileError(path, f"it is no .npy file ({error})", "write it by numpy.save") from None
        offset = file.tell()
    if dtype.hasobject:
        raise FileError(path, "it holds Python objects", "save numbers: numpy.save(path, X.astype(float))")
    try:
        float_dtype(dtype)
        shape = (*shape, 1) if takes_lines and len(shape) == 1 else shape
        check_shape(shape)
        n, d = shape
    except (TypeError, ValueError) as error:
        raise FileError(path, str(error), "save a matrix of numbers") from None
    return FileArray(path, offset, (n, d), by_columns and min(n, d) > 1, dtype, stamp, reads)


def mapped_array(X: np.memmap[Any, Any], reads: FileReads) -> FileArray | None:
    """The file behind a memory map; None where X is a part of it with gaps, or a private copy."""
    base: Any = X
    while isinstance(base.base, np.memmap):
        base = base.base
    path = X.filename
    if path is None or X.ndim != 2 or base.mode == "c" or not Path(str(path)).is_file():
        return None
    by_columns = X.flags.f_contiguous and not X.flags.c_contiguous
    if not (X.flags.c_contiguous or by_columns) or X.dtype.kind not in "fiub" or min(X.shape) == 0:
        return None
    offset = base.offset + X.ctypes.data - base.ctypes.data
    n, d = X.shape
    return FileArray(str(path), offset, (n, d), by_columns, X.dtype, stamp_of(str(path)), reads)
