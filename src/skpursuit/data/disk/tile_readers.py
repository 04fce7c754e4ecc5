"""How tiles are loaded from files: small values that say which bytes they are, and the reading of these.

A `RawFileArray` is a dense array in a file, as the header of a `.npy` file or a memory map describes it. A
`TileReader` is a tile made of parts of such arrays. Files are read by `preadv` into buffers that are used
again (`CountedFile`), and never mapped: a mapped file that is cut short kills the process, its pages count as
memory of the process, and nobody counts what is read of it. A file is opened for each tile, and its size and
time of change are compared with what they were, so that a file that changed in between is noticed.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.lib import format as npy

from skpursuit._atomic_files import FileError
from skpursuit.data.dense_tile import DenseTile, check_shape, float_dtype
from skpursuit.data.read_counter import CountedFile, FileReads
from skpursuit.numerics.arrays import Floats, Indices

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
        together = max(1, READ_CHUNK_BYTES // (width * size)) if width == length else 1
        with file_errors(self.path), CountedFile(self.path, self.reads) as file:
            check_file_unchanged(self.path, self.stamp, stamp_of(file.fileno()))
            for start in range(0, len(out), together):
                target = out[start : start + together]
                direct = target.dtype == self.dtype and target.flags.c_contiguous
                room = target if direct else np.empty(target.shape, self.dtype)
                at = self.offset + ((lines.start + start) * length + within.start) * size
                self._fill(file, at, room.reshape(-1).view(np.uint8).data, cancelled)
                if not direct:
                    target[...] = room
            check_file_unchanged(self.path, self.stamp, stamp_of(file.fileno()))

    def _fill(self, file: CountedFile, at: int, out: memoryview, cancelled: Cancelled) -> None:
        """Fill memory from a place in the file."""
        done = 0
        while done < len(out):
            if cancelled():
                raise ReadCancelled
            count = file.read_at(out[done : done + READ_CHUNK_BYTES], at + done)
            if count == 0:
                raise FileError(self.path, f"it ends at byte {at + done}: it was cut short", "write it again")
            done += count


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


def npy_array(path: str, reads: FileReads) -> RawFileArray:
    """The array of a `.npy` file by its header."""
    stamp = stamp_of(path)
    with file_errors(path), CountedFile(path, reads) as file:
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
    return RawFileArray(path, stamp_of(path), X.shape, X.dtype, reads, f_order and not c_order, offset)
