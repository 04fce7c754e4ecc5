"""Parquet files and folders of them, by pyarrow: row groups of numeric columns, with their names.

A tile is some rows of all columns that count. Row groups end where the writer chose, tiles at multiples of
512 rows, so a tile may need parts of two groups; the last group that was read stays in memory for the next
tile. Nulls become NaN, which the finite check refuses. Layouts that are slow, or whose row groups are larger
than a tile may be, are named in a warning with the remedy.
"""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from skpursuit._files import FileError
from skpursuit.data.dense import DenseTile
from skpursuit.data.file_source import edges, is_folder_of, pieces, store_of, tile_shape
from skpursuit.data.options import Options
from skpursuit.data.reads import CountedFile, FileReads
from skpursuit.data.recipes import CHUNK, Recipe, Stamp, Stopped, check_same, naming, never, stamp_of
from skpursuit.data.store import TileStore
from skpursuit.data.tile import Tile
from skpursuit.numerics.arrays import Floats
from skpursuit.numerics.sums import PIECE

ENDINGS = ".parquet", ".pq"
SMALL_GROUP = 2048  # rows of a group below which the footer and the calls cost more than the numbers


def takes(X: Any) -> bool:
    """Whether X is the path of a Parquet file, or of a folder of them, or a list of such paths."""
    if isinstance(X, (list, tuple)):
        return len(X) > 0 and all(takes(part) for part in X)
    if not isinstance(X, (str, os.PathLike)):
        return False
    return str(X).endswith(ENDINGS) or is_folder_of(X, *ENDINGS)


class Group(NamedTuple):
    """A row group of a file, and the row of X where it begins."""

    path: str
    stamp: Stamp
    number: int
    start: int
    rows: int
    nbytes: int  # on disk, of the columns that count


class GroupReader:
    """Reads row groups, and keeps the last one: the next tile may begin in it."""

    def __init__(self, names: tuple[str, ...], dtype: np.dtype[Any], reads: FileReads) -> None:
        self.names, self.dtype, self.reads = names, dtype, reads
        self.last: tuple[Any, Floats] | None = None

    def read(self, group: Group, stop: Callable[[], bool] = never) -> Floats:
        """The group as an F-ordered array, some columns at a time, between which `stop` is asked."""
        key = group.path, group.number
        if self.last is not None and self.last[0] == key:
            return self.last[1]
        self.last = None
        out = np.empty((group.rows, len(self.names)), self.dtype, order="F")
        with naming(group.path):
            check_same(group.path, group.stamp, os.stat(group.path))
        try:
            step = max(1, CHUNK // max(1, group.rows * self.dtype.itemsize))
            with counted(group.path, self.reads) as opened, checked(opened) as file:
                for first in range(0, len(self.names), step):
                    if stop():
                        raise Stopped
                    some = list(self.names[first : first + step])
                    table = file.read_row_group(group.number, columns=some, use_threads=False)
                    for j, name in enumerate(some, first):
                        out[:, j] = table.column(name).to_numpy()
        except (OSError, ValueError, TypeError) as error:
            problem = f"row group {group.number} cannot be read ({str(error).splitlines()[0]})"
            raise FileError(group.path, problem, "write the file again") from None
        self.last = key, out
        return out


@dataclass(frozen=True)
class ParquetRecipe(Recipe):
    """Some rows of the columns that count, from one or several row groups."""

    shape: tuple[int, int]
    dtype: np.dtype[Any]
    start: int
    groups: tuple[Group, ...]
    reader: GroupReader
    by_columns = False

    @property
    def file_bytes(self) -> int:  # type: ignore[override]
        """Bytes of the row groups that begin in the tile."""
        return sum(group.nbytes for group in self.groups if group.start >= self.start)

    def load(self, buffer: np.ndarray, stop: Callable[[], bool] = never) -> Tile:
        X = np.ndarray(self.shape, self.dtype, buffer.data, order="F")
        self.fill(X, stop)
        return DenseTile(X, True)

    def fill(self, X: Floats, stop: Callable[[], bool] = never) -> None:
        """Copy the rows of the groups into an array."""
        for group in self.groups:
            lo = max(group.start, self.start)
            hi = min(group.start + group.rows, self.start + self.shape[0])
            found = self.reader.read(group, stop)
            X[lo - self.start : hi - self.start] = found[lo - group.start : hi - group.start]

    def blank(self) -> Tile:
        return DenseTile(np.empty(self.shape, self.dtype, order="F"), True)

    def file_of(self, row: int, column: int) -> str:
        at = self.start + row
        group = next(group for group in self.groups if group.start <= at < group.start + group.rows)
        return f"{group.path} ({self.reader.names[column]!r})"

    def sample(self) -> bytes:
        return repr([(group.number, group.rows, group.nbytes) for group in self.groups]).encode()

    def files(self) -> list[tuple[str, Stamp]]:
        return [(group.path, group.stamp) for group in self.groups]


def store(X: Any, options: Options) -> TileStore:
    """X in one array where that fits in the limit, else tile by tile."""
    paths = pieces(X, *ENDINGS)
    names, dtype = columns_of(paths, options)
    groups = groups_of(paths, names, options.reads)
    n, d = sum(group.rows for group in groups), len(names)
    if n == 0:
        raise FileError(paths[0], "it has no rows", "write some")
    reader = GroupReader(names, dtype, options.reads)
    if not options.limit.holds(n * d * dtype.itemsize):
        check_layout(groups, d * dtype.itemsize, options.limit.tile)
    largest = max(group.rows for group in groups) * d * dtype.itemsize
    options.limit.ask(largest + 2 * CHUNK, force=True)  # as an array, and some columns of it by pyarrow
    tall = tile_shape(n, d, options.limit.tile // dtype.itemsize, False)[0]
    ends = [(group.start + group.rows) // PIECE * PIECE for group in groups[:-1]]

    def recipe(lo: int, hi: int) -> Recipe:
        inside = tuple(group for group in groups if group.start < hi and group.start + group.rows > lo)
        return ParquetRecipe((hi - lo, d), dtype, lo, inside, reader)

    recipes = [[recipe(lo, hi)] for lo, hi in pairwise(edges([*sorted(set(ends) - {0}), n], tall))]
    return store_of(recipes, options, list(names))


def column(X: Any, name: str, reads: FileReads) -> np.ndarray:
    """One column of all rows in its own type: text as objects, whole numbers and truth values as such."""
    paths, parts = pieces(X, *ENDINGS), []
    columns_of(paths, Options(columns=[name], columns_are="y", reads=reads), any_type=True)
    for path in paths:
        try:
            with counted(path, reads) as opened, checked(opened) as file:
                part = file.read(columns=[name]).column(name)
        except (OSError, ValueError) as error:
            raise FileError(path, f"column {name!r} cannot be read ({error})", "write it again") from None
        if part.is_null(nan_is_null=True).to_numpy().any():
            raise FileError(path, f"column {name!r}, which is y, has nulls", "drop those rows")
        parts.append(part.to_numpy())
        if (parts[-1].dtype == object) != (parts[0].dtype == object):
            raise FileError(path, f"column {name!r} has another type than in {paths[0]}", "write them alike")
    return np.concatenate(parts)


def parquet() -> Any:
    """The module pyarrow.parquet, or an error that says how to get it."""
    try:
        import pyarrow.parquet
    except ImportError:
        raise ImportError("Parquet files need pyarrow: pip install 'skpursuit[parquet]'") from None
    return pyarrow.parquet


def checked(opened: Any) -> Any:
    """A Parquet file whose pages are compared with their checksums, where it has some."""
    return parquet().ParquetFile(opened, page_checksum_verification=True)


def columns_of(
    paths: list[str], options: Options, any_type: bool = False
) -> tuple[tuple[str, ...], np.dtype[Any]]:
    """Names and common dtype of the columns that count, which all files have, in any order, as numbers."""
    schemas = {path: schema_of(path, options.reads) for path in paths}
    every, indexes = schemas[paths[0]].names, row_indexes(schemas[paths[0]])
    listed = [name for name in every if name not in indexes]
    names, single = [listed[j] for j in options.chosen(len(listed), listed)], True
    for path, schema in schemas.items():
        if differing := sorted(set(schema.names) ^ set(every)):
            problem = f"its columns are not those of {paths[0]} (only one of the two has {differing[0]!r})"
            raise FileError(path, problem, "write them alike")
        times = Counter(schema.names)
        if repeated := [name for name in names if times[name] > 1]:
            raise FileError(path, f"it has several columns {repeated[0]!r}", "give each a name of its own")
        types = {name: schema.field(name).type for name in names}
        if other := [name for name in names if not (any_type or is_numeric(types[name]))]:
            shown = ", ".join(map(repr, other[:5])) + (f" and {len(other) - 5} more" * (len(other) > 5))
            raise ValueError(
                f"{path}: columns {shown} are not numeric; leave them out: "
                f"as_design(path, exclude={other[:5]!r}), or encode them"
            )
        single &= all(str(kind) in ("float", "halffloat") for kind in types.values())
    return tuple(names), np.dtype(np.float32 if single else np.float64)


def counted(path: str, reads: FileReads) -> CountedFile:
    """An open file, or an error that names it."""
    with naming(path):
        return CountedFile(path, reads)


def schema_of(path: str, reads: FileReads) -> Any:
    """The columns of a file."""
    with counted(path, reads) as file:
        try:
            return parquet().read_schema(file)
        except (OSError, ValueError) as error:
            told = str(error).splitlines()[0]
            raise FileError(path, f"it is no Parquet file ({told})", "write it again") from None


def row_indexes(schema: Any) -> set[str]:
    """Columns that hold the row index of the data frame which a file was written of, and no feature."""
    told = (schema.pandas_metadata or {}).get("index_columns", [])
    return {name for name in schema.names if name.startswith("__index_level_") or name in told}


def is_numeric(kind: Any) -> bool:
    """Whether a type of Arrow is a number or a truth value."""
    import pyarrow.types as types

    return types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)


def groups_of(paths: list[str], names: tuple[str, ...], reads: FileReads) -> list[Group]:
    """The row groups of all files, one below the other."""
    groups, start, wanted = [], 0, set(names)
    for path in paths:
        with counted(path, reads) as file:
            meta, stamp = parquet().read_metadata(file), stamp_of(path)
        for k in range(meta.num_row_groups):
            group = meta.row_group(k)
            chunks = [group.column(j) for j in range(group.num_columns)]
            size = sum(c.total_compressed_size for c in chunks if c.path_in_schema in wanted)
            groups.append(Group(path, stamp, k, start, group.num_rows, size))
            start += group.num_rows
    return groups


def check_layout(groups: list[Group], row_bytes: int, tile: int) -> None:
    """Warn of row groups that are slow to read, or larger than the limit plans for."""
    largest, path = max((group.rows, group.path) for group in groups)
    fitting = max(PIECE, 4 * tile // row_bytes // PIECE * PIECE)
    size = min(16384, fitting)
    remedy = f"write the file again with row_group_size={size}, or convert it to .npy if several fits follow"
    if largest > fitting:
        words = f"{path}: a row group of {largest} rows takes {largest * row_bytes:,} bytes of memory_limit"
        warnings.warn(f"{words}; {remedy}", stacklevel=5)
    elif len(groups) > 8 and largest < min(SMALL_GROUP, fitting):
        warnings.warn(f"{path}: row groups of {largest} rows are slow to read; {remedy}", stacklevel=5)
