"""Dense X in files: `.npy`, folders of `.npy` pieces, memory maps over plain files, and lists of these.

Pieces of a folder are put together in the order of their names, numbers in them by value: below each other
where they have the same columns, else side by side. X is then cut into tiles that fit in the memory limit:
whole rows of a C-ordered file, whole columns of an F-ordered one, so that a tile is one stretch of the file.
What fits in memory as a whole is read once, and is an array like any other.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from skpursuit._files import FileError
from skpursuit.data.array_source import check_shape, float_dtype
from skpursuit.data.dense import DenseTile
from skpursuit.data.file_store import FileStore
from skpursuit.data.options import Options
from skpursuit.data.reads import FileReads
from skpursuit.data.recipes import DenseRecipe, FileArray, Part, mapped_array, naming, npy_array
from skpursuit.data.store import TileStore
from skpursuit.numerics.sums import PIECE

KNOWN = "a .npy, .npz or .parquet file, or a folder of such pieces"
PIECES = (".npy", ".npz", ".parquet", ".pq")
WHOLE_ROWS = 4  # times as large a tile may be whose rows are then not read in parts, each by a call
FEW = 16  # columns that a tile of long columns has at least, if it can, and a multiple of which it has


def takes(X: Any) -> bool:
    """Whether X is a path, a memory map over a plain file, or a list of these."""
    if isinstance(X, (list, tuple)):
        return len(X) > 0 and all(not isinstance(part, (list, tuple)) and takes(part) for part in X)
    if isinstance(X, np.memmap):
        return mapped_array(X, FileReads()) is not None
    return isinstance(X, (str, os.PathLike))


def is_folder_of(X: Any, *endings: str) -> bool:
    """Whether X is a folder that has files with such an ending."""
    return os.path.isdir(X) and len(_names(X, endings)) > 0


def _names(folder: Any, endings: tuple[str, ...]) -> list[str]:
    """The files of a folder with such an ending that are not hidden."""
    with naming(os.fspath(folder)):
        return [name for name in os.listdir(folder) if name.endswith(endings) and not name.startswith(".")]


def store(X: Any, options: Options) -> TileStore:
    """X in one array where that fits in the limit, else tile by tile."""
    arrays = arrays_of(X, options.reads)
    return store_of(Stack(arrays, axis_of(arrays, options), options).recipes(options.limit.tile), options)


def arrays_of(X: Any, reads: FileReads) -> list[FileArray]:
    """The arrays in files that X is made of, in their order."""
    if isinstance(X, (list, tuple)):
        return [array for part in X for array in arrays_of(part, reads)]
    if isinstance(X, np.memmap):
        mapped = mapped_array(X, reads)
        assert mapped is not None
        return [mapped]
    if not os.path.exists(X):
        raise FileError(X, "X is no array but a path, and there is no such file", "check the path")
    if is_folder_of(X, ".npy"):
        return [npy_array(path, reads) for path in pieces(X, ".npy")]
    if not str(X).endswith(".npy"):
        raise FileError(X, "this kind of file or folder is not known", f"give {KNOWN} (not of more folders)")
    return [npy_array(os.fspath(X), reads)]


def axis_of(arrays: list[FileArray], options: Options) -> int:
    """The axis along which arrays follow each other; of equal shapes 0, unless X would not be as expected."""
    first = arrays[0]
    wider, taller = ([a for a in arrays if a.shape[axis] != first.shape[axis]] for axis in (1, 0))
    if options.axis is not None:
        odd = (wider, taller)[options.axis]
    elif wider and taller:
        odd = min(wider, taller, key=len)  # most pieces are cut along one axis
    else:  # a single piece in the middle with another width is no way to cut columns
        odd = wider if len(wider) == 1 and wider[0] is not arrays[-1] and len(arrays) > 3 else []
    if odd:
        problem = f"its shape {odd[0].shape} does not go with {first.path} of shape {first.shape}"
        same = ("columns, or of rows", "columns where axis is 0", "rows where axis is 1")
        remedy = f"pieces need the same number of {same[0 if options.axis is None else 1 + options.axis]}"
        raise FileError(odd[0].path, problem, remedy)
    if options.axis is not None:
        return options.axis
    if wider or taller or len(arrays) == 1:
        return int(len(wider) > 0)
    rows, columns = options.shape
    return int(rows == first.shape[0] or columns == len(arrays) * first.shape[1])


def pieces(folder: Any, *endings: str) -> list[str]:
    """The path, or the files of a folder with such an ending by their names, numbers in them by value.

    Those of a list one after the other.
    """
    if isinstance(folder, (list, tuple)):
        return [path for part in folder for path in pieces(part, *endings)]
    if not os.path.isdir(folder):
        return [os.fspath(folder)]

    def natural(name: str) -> list[Any]:
        return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.split(r"(\d+)", name)]

    names = sorted(_names(folder, endings), key=natural)
    if not names:
        raise FileError(folder, f"there is no {endings[0]} file in it", "folders below it are not looked at")
    others = sorted(set(_names(folder, PIECES)) - set(names))
    if others:
        told = f"{folder}: X is its {endings[0]} files, and {others[0]} is not read"
        warnings.warn(
            f"{told}; give X a folder of its own, or its files as a list", UserWarning, stacklevel=2
        )
    numbers = [int(found[-1]) for name in names if (found := re.findall(r"\d+", name))]
    gaps = sorted(set(range(min(numbers), max(numbers) + 1)) - set(numbers)) if numbers else []
    if gaps and len(numbers) == len(names) >= 2 * len(gaps) and len(set(numbers)) == len(names):
        problem = f"piece {gaps[0]} between {names[0]} and {names[-1]} is missing"
        raise FileError(folder, problem, "add it, or give the files as a list if there is none")
    return [str(Path(folder) / name) for name in names]


class Stack:
    """Arrays that follow each other along an axis, and the columns of them that count."""

    def __init__(self, arrays: list[FileArray], axis: int, options: Options) -> None:
        self.arrays, self.axis = arrays, axis
        self.starts = np.cumsum([0, *(array.shape[axis] for array in arrays)]).tolist()
        self.dtype = np.result_type(*(float_dtype(array.dtype) for array in arrays))
        self.by_columns = all(array.by_columns for array in arrays if array.shape[1] > 1)
        self.by_columns &= any(array.by_columns for array in arrays)
        whole = [self.starts[-1] if axis == k else arrays[0].shape[k] for k in range(2)]
        chosen = options.chosen(whole[1], None)
        self.runs = np.split(chosen, np.flatnonzero(np.diff(chosen) != 1) + 1)  # of neighbouring columns
        self.shape = whole[0], len(chosen)
        check_shape(self.shape)

    def recipes(self, tile_bytes: int) -> list[list[DenseRecipe]]:
        """The recipes of tiles of about so many bytes."""
        n, d = self.shape
        tall, wide = tile_shape(n, d, tile_bytes // self.dtype.itemsize, self.by_columns)
        inner = self.starts[1:-1] if self.axis == 0 and self.by_columns else []
        row_edges = edges([*(end // PIECE * PIECE for end in inner), n], tall)

        def recipe(rows: tuple[int, int], cols: tuple[int, int]) -> DenseRecipe:
            shape = rows[1] - rows[0], cols[1] - cols[0]
            return DenseRecipe(shape, self.dtype, self.by_columns, tuple(self.parts(rows, cols)))

        return [[recipe(rows, cols) for cols in pairwise(edges([d], wide))] for rows in pairwise(row_edges)]

    def parts(self, rows: tuple[int, int], cols: tuple[int, int]) -> Iterator[Part]:
        """The rectangles of files that make up some rows and some of the columns that count."""
        place = 0
        for run in self.runs:
            lo, hi = max(cols[0], place), min(cols[1], place + len(run))
            if lo < hi:
                first = int(run[0]) + lo - place
                yield from self._rectangle(rows, (first, first + hi - lo), lo - cols[0])
            place += len(run)

    def _rectangle(self, rows: tuple[int, int], cols: tuple[int, int], place: int) -> Iterator[Part]:
        """Parts of the arrays that a rectangle lies in; it begins at column `place` of the tile."""
        along = cols if self.axis else rows
        for array, start, stop in zip(self.arrays, self.starts, self.starts[1:]):
            lo, hi = max(along[0], start), min(along[1], stop)
            if lo < hi:
                inside, at = slice(lo - start, hi - start), lo - along[0]
                if self.axis == 0:
                    yield Part(array, inside, slice(*cols), (at, place))
                else:
                    yield Part(array, slice(*rows), inside, (0, place + at))


def tile_shape(n: int, d: int, entries: int, by_columns: bool) -> tuple[int, int]:
    """Rows (a multiple of 512) and columns of a tile of about so many entries, whole lines of the file."""
    if by_columns:
        tall = n if n * min(d, FEW) <= entries else max(PIECE, entries // FEW // PIECE * PIECE)
        wide = max(1, entries // tall)
        return tall, wide - wide % FEW if wide > FEW else wide  # whole panels of codes
    wide = d if d * PIECE <= WHOLE_ROWS * entries else max(1, entries // PIECE)
    return max(PIECE, entries // wide // PIECE * PIECE), wide


def edges(ends: list[int], most: int) -> list[int]:
    """Edges from 0 to the last end, at most so far apart, at the ends where that leaves no small ranges."""
    out = [0]
    for end, following in pairwise([*ends, ends[-1] + most + 1]):
        while end - out[-1] > most:
            out.append(out[-1] + most)
        if out[-1] < end and (following - out[-1] > most or end == ends[-1]):
            out.append(end)
    return out


def store_of(recipes: list[list[Any]], options: Options, names: list[str] | None = None) -> TileStore:
    """Recipes of dense tiles as a store; one array in memory where all of X fits in the limit."""
    sizes = [recipe.nbytes for row in recipes for recipe in row]
    if not options.limit.holds(sum(sizes)):
        options.limit.ask(3 * max(0, max(sizes) - options.limit.tile), force=True)
        return FileStore(recipes, options, names)
    n, d = sum(row[0].shape[0] for row in recipes), sum(recipe.shape[1] for recipe in recipes[0])
    first = recipes[0][0].blank()
    X = np.empty((n, d), first.dtype, order="C" if first.fast_axis else "F")
    row = 0
    for line in recipes:
        column = 0
        for recipe in line:
            height, width = recipe.shape
            recipe.fill(X[row : row + height, column : column + width])
            column += width
        row += line[0].shape[0]
    made = TileStore([[DenseTile(X, first.fast_axis == 0)]])
    made.names, made.file_reads = names, (options.reads,)
    return made
