"""Parquet files and folders of them, by pyarrow: row groups of numeric columns, with their names.

A tile is some rows of all columns that count. Row groups end where the writer chose, tiles at multiples of
512 rows, so a tile may need parts of two groups; the last group that was read stays in memory for the next
tile. Nulls become NaN, which the finite check refuses. Row groups that are larger than a tile may be are
named in a warning with the remedy.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from skpursuit._atomic_files import FileError
from skpursuit.data.disk import file_store as store
from skpursuit.data.disk.file_store import Cancelled, DiskArray, Stamp
from skpursuit.data.disk.npy_source import FilePath, is_folder_of, list_data_files, load_or_stream
from skpursuit.data.options import DesignOptions
from skpursuit.data.read_counter import CountedFile, FileReads
from skpursuit.data.store import TileStore
from skpursuit.numerics.arrays import Floats, FloatType
from skpursuit.numerics.sums import BLOCK_ROWS
from skpursuit.parameters import warn_user

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

ENDINGS = ".parquet", ".pq"


def accepts(X: object) -> bool:
    """Whether X is the path of a Parquet file, or of a folder of them, or a list of such paths."""
    if isinstance(X, (list, tuple)):
        return len(X) > 0 and all(accepts(part) for part in X)
    return isinstance(X, (str, os.PathLike)) and (str(X).endswith(ENDINGS) or is_folder_of(X, *ENDINGS))


@contextmanager
def opened(path: str, reads: FileReads) -> Iterator[ParquetFile]:
    """A Parquet file whose pages are compared with their checksums, where it has some; errors name it."""
    try:
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise ImportError("Parquet files need pyarrow: pip install 'skpursuit[parquet]'") from None
    with store.file_errors(path):
        raw = CountedFile(path, reads)
    try:
        with raw, ParquetFile(raw, page_checksum_verification=True) as file:
            yield file
    except (OSError, ValueError, TypeError) as error:
        problem = f"it cannot be read as Parquet ({str(error).splitlines()[0]})"
        raise FileError(path, problem, "write it again") from None


# A file, its schema, and the number of rows of each row group. More is not asked of a footer: pyarrow ends
# the process where it looks at the columns of some damaged ones.
Footer: TypeAlias = "tuple[str, Stamp, pa.Schema, list[int]]"


def footers(paths: list[str], reads: FileReads) -> list[Footer]:
    """What the ends of some files say of them."""
    found = []
    for path in paths:
        with opened(path, reads) as file:
            rows = [file.metadata.row_group(k).num_rows for k in range(file.num_row_groups)]
            found.append((path, store.stamp_of(path), file.schema_arrow, rows))
    return found


def common_columns(
    files: list[Footer], options: DesignOptions, any_type: bool = False
) -> tuple[tuple[str, ...], FloatType]:
    """Names and common dtype of the columns that count, which all files have, in any order, as numbers."""
    (first_path, _, first, _), single = files[0], True
    indexes = row_indexes(first)
    listed = [name for name in first.names if name not in indexes]
    names = [listed[j] for j in options.selected_columns(len(listed), listed)]
    for path, _, schema, _ in files:
        if differing := sorted(set(schema.names) ^ set(first.names)):
            problem = f"its columns are not those of {first_path} (only one of the two has {differing[0]!r})"
            raise FileError(path, problem, "write them alike")
        times = Counter(schema.names)
        if repeated := [name for name in names if times[name] > 1]:
            raise FileError(path, f"it has several columns {repeated[0]!r}", "give each a name of its own")
        types = {name: str(schema.field(name).type) for name in names}
        if other := [name for name in names if not (any_type or is_numeric(types[name]))]:
            shown = ", ".join(map(repr, other[:5])) + (f" and {len(other) - 5} more" * (len(other) > 5))
            remedy = f"leave them out: as_design(path, exclude={other[:5]!r}), or encode them"
            raise FileError(path, f"columns {shown} are not numeric", remedy)
        single &= all(kind in ("float", "halffloat") for kind in types.values())
    return tuple(names), np.dtype(np.float32 if single else np.float64)


def row_indexes(schema: pa.Schema) -> set[str]:
    """Columns that hold the row index of the data frame which a file was written of, and no feature."""
    listed = (schema.pandas_metadata or {}).get("index_columns", [])
    return {name for name in schema.names if name.startswith("__index_level_") or name in listed}


def is_numeric(kind: object) -> bool:
    """Whether a type of Arrow is a number or a truth value."""
    return re.fullmatch(r"u?int\d+|halffloat|float|double|bool", str(kind)) is not None


def read_target_column(X: FilePath | list[FilePath], name: str, reads: FileReads) -> np.ndarray:
    """One column of all rows in its own type: text as objects, whole numbers and truth values as such."""
    paths, parts = list_data_files(X, *ENDINGS), []
    common_columns(footers(paths, reads), DesignOptions(columns=[name], columns_are="y"), any_type=True)
    for path in paths:
        with opened(path, reads) as file:
            part = file.read(columns=[name]).column(name)
        if part.is_null(nan_is_null=True).to_numpy().any():
            raise FileError(path, f"column {name!r}, which is y, has nulls", "drop those rows")
        parts.append(part.to_numpy())
        if (parts[-1].dtype == object) != (parts[0].dtype == object):
            raise FileError(path, f"column {name!r} has another type than in {paths[0]}", "write them alike")
    return np.concatenate(parts)


@dataclass(frozen=True)
class RowGroup(DiskArray):
    """The columns of a row group that count."""

    number: int
    entry: float  # bytes on disk of one, about
    names: tuple[str, ...]
    last: dict[tuple[str, int], Floats]  # the group that was read last, by its path and number
    reads_columns = False

    @property
    def entry_bytes(self) -> float:
        return self.entry

    def read(self, rows: slice, cols: slice, out: np.ndarray, cancelled: Cancelled = lambda: False) -> None:
        key = self.path, self.number
        if key not in self.last:
            self.last.clear()
            X = np.empty(self.shape, self.dtype, order="F")
            store.check_file_unchanged(self.path, self.stamp, store.stamp_of(self.path))
            step = max(1, store.READ_CHUNK_BYTES // (self.shape[0] * self.dtype.itemsize))
            with opened(self.path, self.reads) as file:
                for first in range(0, len(self.names), step):
                    if cancelled():
                        raise store.ReadCancelled
                    some = list(self.names[first : first + step])
                    table = file.read_row_group(self.number, columns=some, use_threads=False)
                    for j, name in enumerate(some, first):
                        X[:, j] = table.column(name).to_numpy()
            self.last[key] = X
        out[...] = self.last[key][rows, cols]


def make_store(X: FilePath | list[FilePath], options: DesignOptions) -> TileStore:
    """X in one array where that fits in the limit, else tile by tile."""
    limit, reads = options.memory_budget, options.reads
    files = footers(list_data_files(X, *ENDINGS), reads)
    names, dtype = common_columns(files, options)
    groups, last = list[RowGroup](), dict[tuple[str, int], Floats]()
    for path, stamp, schema, parts in files:
        size = stamp.size / max(1, sum(parts) * len(schema.names))
        for k, rows in enumerate(parts):
            given = path, stamp, (rows, len(names)), dtype, reads, True, k, size, names, last
            groups += [RowGroup(*given)] if rows else []
    if not groups:
        raise FileError(files[0][0], "it has no rows", "write some")
    row_bytes, largest = len(names) * dtype.itemsize, max(group.shape[0] for group in groups)
    fitting = max(BLOCK_ROWS, 4 * limit.tile // row_bytes // BLOCK_ROWS * BLOCK_ROWS)
    if largest > fitting and 2 * row_bytes * sum(group.shape[0] for group in groups) > limit.total_bytes:
        problem = f"a row group of {largest} rows takes {largest * row_bytes:,} bytes of memory_limit"
        remedy = f"write it again with row_group_size={min(16384, fitting)}"
        warn_user(f"{files[0][0]}: {problem}; {remedy}")
    # As an array, and some columns of it by pyarrow.
    limit.try_allocate(largest * row_bytes + 2 * store.READ_CHUNK_BYTES, force=True)
    return load_or_stream(groups, np.arange(len(names)), options, list(names))
