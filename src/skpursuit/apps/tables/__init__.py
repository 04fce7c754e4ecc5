"""Reading table files into a matrix with named columns.

`read_columns` returns the columns as they are in the file (`delimited`, `readers`), `infer_kinds` infers what
each holds, and `TableEncoding` turns them into numbers, in the same way for every later file.

>>> table = read_table("houses.csv", EncodingOptions(target="price"))  # doctest: +SKIP
>>> later = table.encoding.apply(read_columns("new.csv"))  # doctest: +SKIP
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from skpursuit.data.disk.npy_source import is_folder_of
from skpursuit.data.disk.parquet_source import ENDINGS

from .columns import RawColumn, RawTable, ReadOptions
from .delimited import read_delimited
from .encoding import EncodedTable, TableEncoding, fit_encoding
from .errors import TableError, TableProblem, attach_path
from .infer_kinds import EncodingOptions
from .readers import read_excel, read_parquet, stream_parquet
from .text_files import check_readable, uncompressed_name

__all__ = [
    "EncodedTable", "EncodingOptions", "RawColumn", "RawTable", "ReadOptions", "TableEncoding", "TableError",
    "fit_encoding", "read_columns", "read_table", "stream_columns",
]  # fmt: skip

#: Readers by the name of the format.
READERS: dict[str, Callable[[Path, ReadOptions], RawTable]] = {
    "csv": read_delimited,
    "tsv": partial(read_delimited, delimiter="\t"),
    "parquet": read_parquet,
    "xlsx": read_excel,
}
_EXTENSIONS = {
    "tab": "tsv", "txt": "csv", "dat": "csv", "data": "csv",
    "pq": "parquet", "xlsm": "xlsx", "xlsb": "xlsx", "xls": "xlsx", "ods": "xlsx",
}  # fmt: skip


def _format_of(path: Path, options: ReadOptions) -> str:
    if is_folder_of(path, *ENDINGS):
        return "parquet"
    check_readable(path)
    extension = uncompressed_name(path).suffix.lower().lstrip(".")
    name = options.format or _EXTENSIONS.get(extension, extension)
    if name not in READERS:
        problem = "unknown format" if name else "no extension"
        raise TableProblem(problem, format=name, known=", ".join(READERS))
    return name


def read_columns(path: str | os.PathLike[str], options: ReadOptions | None = None) -> RawTable:
    """Read the columns of a file as they are, without choosing a target or encoding anything."""
    options, path = options or ReadOptions(), Path(path)
    with attach_path(path):
        read = READERS[_format_of(path, options)]
        if not options.transpose:
            return read(path, options)
        columns = read(path, replace(options, only=None))
        if len(columns.raw) < 2 or not next(iter(columns.raw.values())).is_text:
            raise TableProblem("no transpose")
        return columns.transposed()


def stream_columns(path: str | os.PathLike[str], options: ReadOptions | None = None) -> Iterator[RawTable]:
    """Read a Parquet file, or a folder of them, in pieces of rows; any other file in one piece."""
    options, path = options or ReadOptions(), Path(path)
    with attach_path(path):
        if _format_of(path, options) == "parquet" and not options.transpose:
            yield from stream_parquet(path, options)
            return
    yield read_columns(path, options)


def read_table(
    path: str | os.PathLike[str], encoding: EncodingOptions | None = None, read: ReadOptions | None = None
) -> EncodedTable:
    """Read a file, learn its encoding and return matrix and target.

    TableError has one line for each problem that names the file, the problem and the remedy.
    """
    return fit_encoding(read_columns(path, read), encoding or EncodingOptions())
