"""Tables from files: CSV, TSV, Parquet, npz, svmlight and ARFF, to a matrix with named columns.

>>> table = read_table("houses.csv", EncodingOptions(target="price"))  # doctest: +SKIP
>>> later = apply_encoding("new.csv", table.encoding)  # doctest: +SKIP
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from .arff import read_arff
from .arrays import read_npz, read_parquet, read_svmlight
from .columns import Categorical, Columns
from .delimited import read_delimited
from .encoding import Encoding, EncodingOptions, Table, learn
from .errors import TableError, show
from .options import ReadOptions
from .spelling import spell

__all__ = [
    "Categorical",
    "Columns",
    "Encoding",
    "EncodingOptions",
    "ReadOptions",
    "Table",
    "TableError",
    "apply_encoding",
    "read_columns",
    "read_table",
]


#: Readers by the name of the format.
FORMATS: dict[str, Callable[[Path, ReadOptions], Columns]] = {
    "csv": read_delimited,
    "tsv": partial(read_delimited, delimiter="\t"),
    "parquet": read_parquet,
    "npz": read_npz,
    "svmlight": read_svmlight,
    "arff": read_arff,
}
_EXTENSIONS = {"tab": "tsv", "pq": "parquet", "svm": "svmlight", "libsvm": "svmlight", "svml": "svmlight"}


def read_columns(path: str | os.PathLike[str], options: ReadOptions | None = None) -> Columns:
    """Read the columns of a file as they are, without choosing a target or encoding anything."""
    options = options or ReadOptions()
    path = Path(path)
    extension = path.suffix.lower().lstrip(".")
    name = options.format or _EXTENSIONS.get(extension, extension)
    if name not in FORMATS:
        problem = f"{show(name)} is not a known table format"
        raise TableError(path, problem, f"use one of {', '.join(FORMATS)} (--format)")
    columns = _with_categories(FORMATS[name](path, options), options.categorical)
    # Only now, because whole numbers beyond 2^53 may be categories, and float64 does not tell them apart.
    return replace(columns, matrix=columns.matrix.astype(np.float64, copy=False))


def read_table(
    path: str | os.PathLike[str], encoding: EncodingOptions | None = None, read: ReadOptions | None = None
) -> Table:
    """Read a file, learn its encoding and return matrix and target.

    Parameters
    ----------
    path : path
        The file.
    encoding : EncodingOptions
        The target, and whether to impute.
    read : ReadOptions
        Format, character encoding, header, columns to drop.

    Returns
    -------
    Table

    Raises
    ------
    TableError
        With one line that names the file, the problem and the remedy.
    """
    return learn(read_columns(path, read), encoding or EncodingOptions())


def apply_encoding(
    path: str | os.PathLike[str], encoding: Encoding, read: ReadOptions | None = None
) -> Table:
    """Read a new file and encode it as the training file was; ``y`` is None."""
    used = (*encoding.numeric, *encoding.categories)
    read = replace(read or ReadOptions(), categorical=tuple(encoding.categories), only=frozenset(used))
    return encoding.apply(read_columns(path, read))


def _with_categories(columns: Columns, names: Collection[str]) -> Columns:
    """Turn numeric columns into categories spelled as text files would spell them."""
    absent = [name for name in names if name not in columns.all_names] if columns.open_ended else []
    wanted = [name for name in columns.names if name in names]
    if not wanted and not absent:
        return columns
    place = {name: j for j, name in enumerate(columns.names)}
    turned = {name: Categorical(np.zeros(columns.n_rows, dtype=np.int64), ("0",)) for name in absent}
    for name in wanted:
        column = columns.matrix[:, [place[name]]]
        values = np.asarray(column if isinstance(column, np.ndarray) else column.toarray()).ravel()
        turned[name] = Categorical.from_strings(map(spell, values.tolist()))
    rest = [j for j, name in enumerate(columns.names) if name not in names]
    return replace(
        columns,
        names=tuple(columns.names[j] for j in rest),
        matrix=columns.matrix[:, rest],
        categorical={**columns.categorical, **turned},
    )
