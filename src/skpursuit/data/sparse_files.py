"""Sparse X in files: CSR in three `.npy` files, or a folder of `.npz` pieces by rows.

A folder with `data.npy`, `indices.npy` and `indptr.npy` is one CSR matrix; `shape.npy` tells its columns
where the last ones are empty. A folder of `.npz` files of `scipy.sparse.save_npz` is a matrix cut
by rows. A tile is a range of rows of the first, or one piece of the second.
"""

from __future__ import annotations

import math
import os
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from zipfile import BadZipFile, ZipFile

import numpy as np
from scipy import sparse

from skpursuit._files import FileError
from skpursuit.data.array_source import float_dtype
from skpursuit.data.file_source import is_folder_of, pieces
from skpursuit.data.file_store import FileStore
from skpursuit.data.memory import free_memory
from skpursuit.data.options import Options
from skpursuit.data.reads import FileReads
from skpursuit.data.recipes import (
    FileArray,
    Recipe,
    Stamp,
    Stopped,
    check_same,
    naming,
    never,
    npy_array,
    npy_header,
    stamp_of,
)
from skpursuit.data.sparse import SparseTile
from skpursuit.data.sparse_input import assembled
from skpursuit.data.sparse_source import tiles as sparse_tiles
from skpursuit.data.store import TileStore
from skpursuit.data.tile import Cost, Tile
from skpursuit.numerics.arrays import Indices
from skpursuit.numerics.sums import PIECE

VECTORS = 100  # bytes for each column that a fit takes beside X, about

CSR = ("data", "indices", "indptr")
CSR_FORMAT = (b"csr", "csr")
THREE = tuple(f"{name}.npy" for name in CSR)
LINE = 64  # bytes: arrays begin at a multiple of this
#: What a damaged archive, and one with a password, leads to.
UNREADABLE = (OSError, ValueError, KeyError, EOFError, BadZipFile, TypeError, RuntimeError, zlib.error)
PART = 2**22  # bytes of a piece that are read at a time, so that a reader that is told to stop does so soon


def takes(X: Any) -> bool:
    """Whether X is a folder of a CSR matrix in `.npy` files, or of `.npz` pieces, or a list of those."""
    if isinstance(X, (list, tuple)):
        return len(X) > 0 and all(isinstance(part, (str, os.PathLike)) and takes(part) for part in X)
    if not isinstance(X, (str, os.PathLike)):
        return False
    return str(X).endswith(".npz") or is_folder_of(X, ".npz") or is_three_files(X)


def is_three_files(X: Any) -> bool:
    """Whether a folder has the three arrays of a CSR matrix."""
    return isinstance(X, (str, os.PathLike)) and os.path.isdir(X) and set(THREE) <= set(os.listdir(X))


class BlankSparse(SparseTile):
    """A sparse tile that is not here: it knows its shape and how many entries it stores."""

    def __init__(self, shape: tuple[int, int], dtype: np.dtype[Any], stored: int) -> None:
        super().__init__(sparse.csr_array(shape, dtype=dtype))
        self.count = stored

    def stored(self, what: str) -> Indices:
        """As many as there may be: a bound of the rounding is made of them."""
        lines, length = self.shape if what == "rows" else self.shape[::-1]
        return np.full(lines, length)

    def cost(self, rows: Indices | None = None, cols: Indices | None = None) -> Cost:
        return self.count, self.count * (self.dtype.itemsize + 4)


@dataclass(frozen=True)
class SparseRecipe(Recipe):
    """What sparse recipes share: rows of all columns, `stored` entries of them."""

    shape: tuple[int, int]
    dtype: np.dtype[Any]
    stored: int
    by_columns = False

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays, or more: memory that is not written to costs nothing."""
        return self.stored * (self.dtype.itemsize + 8) + 8 * (self.shape[0] + 1) + 3 * LINE

    def blank(self) -> Tile:
        return BlankSparse(self.shape, self.dtype, self.stored)

    def checked(self, matrix: Any, path: str) -> Tile:
        """A tile of a matrix, with errors that name the file."""
        try:
            tile = sparse_tiles(matrix)[0][0]
        except (ValueError, TypeError) as error:
            raise FileError(path, str(error), "write it again") from None
        if tile.shape != self.shape:
            raise FileError(path, f"it has the shape {tile.shape} instead of {self.shape}", "write it again")
        return tile


@dataclass(frozen=True)
class RowsRecipe(SparseRecipe):
    """A range of rows of a CSR matrix in three files."""

    arrays: tuple[FileArray, FileArray, FileArray]
    rows: tuple[int, int]
    entries: tuple[int, int]

    @property
    def file_bytes(self) -> int:  # type: ignore[override]
        """Bytes of values, indices and pointers."""
        sizes = [array.dtype.itemsize for array in self.arrays]
        return self.stored * (sizes[0] + sizes[1]) + (self.shape[0] + 1) * sizes[2]

    def load(self, buffer: np.ndarray, stop: Callable[[], bool] = never) -> Tile:
        empty, ends = parts_of(buffer), (self.entries, self.entries, (self.rows[0], self.rows[1] + 1))
        data, indices, pointers = (
            read_line(array, *within, stop, empty) for array, within in zip(self.arrays, ends)
        )
        pointers -= self.entries[0]
        return self.checked(assembled("csr", self.shape, data, indices, pointers), self.arrays[1].path)

    def file_of(self, row: int, column: int) -> str:
        return self.arrays[0].path

    def sample(self) -> bytes:
        return repr((self.rows, self.entries)).encode()

    def files(self) -> list[tuple[str, Stamp]]:
        return [(array.path, array.stamp) for array in self.arrays]


@dataclass(frozen=True)
class PieceRecipe(SparseRecipe):
    """A matrix in an `.npz` file."""

    path: str
    stamp: Stamp
    reads: FileReads

    @property
    def file_bytes(self) -> int:  # type: ignore[override]
        """Bytes of the file."""
        return self.stamp.size

    def load(self, buffer: np.ndarray, stop: Callable[[], bool] = never) -> Tile:
        with naming(self.path):
            check_same(self.path, self.stamp, os.stat(self.path))
        self.reads.add(self.stamp.size)
        return self.checked(loaded(self.path, stop, parts_of(buffer)), self.path)

    def file_of(self, row: int, column: int) -> str:
        return self.path

    def sample(self) -> bytes:
        return repr((self.shape, self.stored)).encode()

    def files(self) -> list[tuple[str, Stamp]]:
        return [(self.path, self.stamp)]


def parts_of(buffer: np.ndarray) -> Callable[..., np.ndarray]:
    """A function like `numpy.empty` whose arrays are parts of a buffer, one behind the other."""
    used = 0

    def empty(count: int, dtype: np.dtype[Any]) -> np.ndarray:
        nonlocal used
        start, nbytes = used, count * dtype.itemsize
        used += -(-nbytes // LINE) * LINE
        return buffer[start : start + nbytes].view(dtype) if used <= len(buffer) else np.empty(count, dtype)

    return empty


def read_line(array: FileArray, lo: int, hi: int, stop: Callable[[], bool], empty: Any = np.empty) -> Any:
    """A stretch of an array of one column."""
    out = empty(hi - lo, array.dtype.newbyteorder("="))
    if hi > lo:
        array.read(slice(lo, hi), slice(0, 1), out[:, None], stop)
    return out


def loaded(path: str, stop: Callable[[], bool], empty: Any) -> Any:
    """The matrix of an `.npz` file; a CSR matrix is read in small parts, between which `stop` is asked."""
    try:
        with ZipFile(path) as archive:
            if member(archive, "format").item() not in CSR_FORMAT:
                return sparse.load_npz(path)
            n, d = member(archive, "shape").tolist()
            return assembled("csr", (n, d), *(member(archive, name, stop, empty) for name in CSR))
    except UNREADABLE as error:
        raise FileError(
            path, f"it is no sparse matrix ({error})", "write it by scipy.sparse.save_npz"
        ) from None


def member(
    archive: ZipFile, name: str, stop: Callable[[], bool] = never, empty: Any = np.empty
) -> np.ndarray:
    """An array of one dimension, or a number, of an `.npz` file."""
    with archive.open(f"{name}.npy") as file:
        shape, _, dtype = npy_header(file)
        if dtype.hasobject or len(shape) > 1:
            raise ValueError(f"{name} has the dtype {dtype} and the shape {shape}")
        nbytes = math.prod(shape) * dtype.itemsize
        if not 0 <= nbytes <= archive.getinfo(f"{name}.npy").file_size:
            raise EOFError(f"{name} is shorter than its header tells")
        out = empty(math.prod(shape), dtype)
        view, done = out.view(np.uint8).data, 0
        while done < len(view):
            if stop():
                raise Stopped
            count = file.readinto(view[done : done + PART])  # type: ignore[attr-defined]
            if not count:
                raise EOFError(f"{name} was cut short")
            done += count
        if file.read(1):  # with the end, the checksum is compared
            raise ValueError(f"{name} is longer than its header tells")
    return out.reshape(shape)


def store(X: Any, options: Options) -> TileStore:
    """X in one matrix where that fits in the limit, else tile by tile."""
    if options.chooses:
        raise ValueError("columns and exclude are not for sparse X on disk; write the columns that count")
    recipes: list[Any] = three_files(X, options) if is_three_files(X) else npz_pieces(X, options.reads)
    stored = sum(recipe.stored for recipe in recipes)
    size = recipes[0].dtype.itemsize + 4
    if not options.limit.holds(2 * stored * size):  # columns of it need a second layout
        largest = 3 * size * max(recipe.stored for recipe in recipes)  # in hand, ahead, and its second layout
        options.limit.ask(max(0, largest - 3 * options.limit.tile), force=True)
        return FileStore([[recipe] for recipe in recipes], options)
    parts = [recipe.load(np.empty(0, np.uint8)).matrix for recipe in recipes]
    matrix = sparse.vstack(parts, format="csr") if len(parts) > 1 else parts[0]
    return TileStore(sparse_tiles(matrix))


def three_files(folder: Any, options: Options) -> list[RowsRecipe]:
    """Recipes of a CSR matrix in three files."""
    paths = [os.path.join(folder, name) for name in THREE]
    data, indices, indptr = (npy_array(path, options.reads, takes_lines=True) for path in paths)
    pointers = np.asarray(read_line(indptr, 0, indptr.shape[0], never))
    if pointers.dtype.kind not in "iu" or indices.dtype.kind not in "iu":
        raise FileError(folder, "indices and pointers must be whole numbers", "write the matrix again")
    count = int(pointers[-1])
    if pointers[0] != 0 or (np.diff(pointers) < 0).any() or indices.shape[0] < count or data.shape[0] < count:
        problem = f"indptr.npy does not rise from 0 to at most {min(indices.shape[0], data.shape[0])}"
        raise FileError(folder, problem, "write the matrix again")
    n, d = len(pointers) - 1, columns_in(folder, indices)
    size, tile_bytes = data.dtype.itemsize + indices.dtype.itemsize, options.limit.tile
    targets = np.arange(1, max(1, count * size // tile_bytes) + 1) * (tile_bytes // size)
    inner = np.searchsorted(pointers, targets) // PIECE * PIECE
    edges = np.unique([0, *inner[inner < n], n]).tolist()
    dtype = float_dtype(data.dtype)
    return [
        RowsRecipe((hi - lo, d), dtype, int(pointers[hi] - pointers[lo]), (data, indices, indptr), (lo, hi),
                   (int(pointers[lo]), int(pointers[hi])))
        for lo, hi in pairwise(edges)
    ]  # fmt: skip


def columns_in(folder: Any, indices: FileArray) -> int:
    """The number of columns: that of `shape.npy`, or up to the largest index."""
    path = os.path.join(folder, "shape.npy")
    if os.path.exists(path):
        try:
            return int(np.load(path)[1])
        except (ValueError, TypeError, IndexError, EOFError):
            raise FileError(path, "it does not hold a shape (n, d)", "write it again") from None
    most, step = 0, 2**20
    for lo in range(0, indices.shape[0], step):
        most = max(most, int(read_line(indices, lo, min(lo + step, indices.shape[0]), never).max()))
    return most + 1


def npz_pieces(X: Any, reads: FileReads) -> list[PieceRecipe]:
    """Recipes of `.npz` pieces, by the headers in them."""
    paths = pieces(X, ".npz")
    recipes: list[PieceRecipe] = []
    for path in paths:
        stamp = stamp_of(path)
        try:
            with naming(path), ZipFile(path) as archive:
                n, d = member(archive, "shape").tolist()
                with archive.open("data.npy") as file:
                    shape, _, dtype = npy_header(file)
                if min(n, d) < 1 or VECTORS * d > free_memory():
                    raise ValueError(f"its shape is {(n, d)}")
                if member(archive, "format").item() in CSR_FORMAT and len(member(archive, "indptr")) != n + 1:
                    raise ValueError(f"its pointers are not those of {n} rows")
        except FileError:
            raise
        except UNREADABLE as error:
            raise FileError(
                path, f"it is no sparse matrix ({error})", "write it by scipy.sparse.save_npz"
            ) from None
        if recipes and d != recipes[0].shape[1]:
            problem = f"it has {d} columns, and {recipes[0].path} has {recipes[0].shape[1]}"
            raise FileError(path, problem, "pieces need the same columns")
        recipes.append(PieceRecipe((n, d), float_dtype(dtype), int(np.prod(shape)), path, stamp, reads))
    return recipes
