"""Files that already hold matrices: npz, svmlight and Parquet."""

from __future__ import annotations

import zipfile
from codecs import BOM_UTF8
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.datasets import load_svmlight_file

from .columns import Categorical, Columns
from .errors import TableError, listing, show
from .options import ReadOptions
from .spelling import is_plain, spell
from .text import check_readable, open_lines

_CSR = ("data", "indices", "indptr", "shape")
_NPZ_REMEDY = "store X and y, or the CSR parts data, indices, indptr, shape and y (numpy.savez)"


def read_npz(path: Path, options: ReadOptions) -> Columns:
    """Read X (dense) or data, indices, indptr, shape (CSR), with y and feature_names where they are there."""
    arrays = _load_npz(path)
    sparse = "indptr" in arrays
    matrix = _csr(path, arrays) if sparse else _dense(path, arrays)
    n, d = matrix.shape
    y = arrays.get("y")
    if y is not None:
        if y.shape != (n,):
            problem = f"y has the shape {y.shape} where X has {n} rows"
            raise TableError(path, problem, "store one target per row")
        y = _readable(path, "y", y)
    if sparse and "feature_names" not in arrays:
        return _chosen(_used_columns(path, matrix, y), options)
    names = _readable(path, "feature_names", arrays.get("feature_names", np.arange(d)))
    if names.shape != (d,):
        problem = f"feature_names has the shape {names.shape} where X has {d} columns"
        raise TableError(path, problem, "store one name per column")
    columns = Columns(str(path), tuple(map(str, names)), matrix, target=y)
    return _chosen(columns, options)


def _readable(path: Path, name: str, values: np.ndarray) -> np.ndarray:
    """Return an array of numbers as it is and one of texts as such; refuse any other, dates for one."""
    if values.dtype.kind not in "biufUS":
        problem = f"{name} holds {values.dtype}, which is neither numbers nor texts"
        raise TableError(path, problem, "store it as numbers or texts")
    try:
        return np.strings.decode(values, "utf-8") if values.dtype.kind == "S" else values
    except UnicodeDecodeError:
        raise TableError(path, f"{name} holds bytes that are not UTF-8", "store it as texts") from None


def _load_npz(path: Path) -> dict[str, np.ndarray]:
    check_readable(path)
    try:
        # Opened here, because numpy leaves the file open when it is not a whole archive.
        with open(path, "rb") as file:
            stored = np.load(file, allow_pickle=False)
            if isinstance(stored, np.ndarray):
                raise TableError(path, "this is a single array, not an npz file", _NPZ_REMEDY)
            return {name: stored[name] for name in stored.files}
    except TableError:
        raise
    except Exception as error:  # zipfile, zlib and numpy raise whatever the bytes lead to
        if "allow_pickle" in str(error) and zipfile.is_zipfile(path):
            raise TableError(path, "it holds Python objects, which are not loaded", _NPZ_REMEDY) from None
        remedy = "the file is damaged or cut off: get or write it again"
        raise TableError(path, "this cannot be read as npz", remedy) from None


def _dense(path: Path, arrays: dict[str, np.ndarray]) -> np.ndarray:
    X = arrays.get("X")
    if X is None:
        raise TableError(path, f"there is no X among the arrays ({listing(tuple(arrays))})", _NPZ_REMEDY)
    if X.ndim != 2 or X.dtype.kind not in "biuf":
        raise TableError(path, f"X is {X.ndim}-dimensional {X.dtype}, not a table of numbers", _NPZ_REMEDY)
    return X


def _csr(path: Path, arrays: dict[str, np.ndarray]) -> csr_array:
    missing = [name for name in _CSR if name not in arrays]
    if missing:
        raise TableError(path, f"parts of the sparse matrix are missing: {listing(missing)}", _NPZ_REMEDY)
    if arrays.get("format", np.array(b"csr")).tolist() not in (b"csr", "csr"):
        raise TableError(path, "the sparse matrix is not in CSR form", "store X.tocsr()")
    try:
        data, indices, indptr, shape = (arrays[name] for name in _CSR)
        data = data if data.dtype.kind in "iu" else data.astype(np.float64)
        matrix = csr_array((data, indices, indptr), shape=tuple(map(int, shape)))
        # scipy's constructor accepts column 999 of 10; code below may then read out of bounds.
        matrix.check_format(full_check=True)
        matrix.sum_duplicates()
    except (ValueError, TypeError, IndexError, OverflowError, MemoryError):
        remedy = "the file is damaged: write it again from a valid matrix"
        raise TableError(path, "the parts do not make up a sparse matrix", remedy) from None
    return matrix


def read_svmlight(path: Path, options: ReadOptions) -> Columns:
    """Read svmlight/libsvm text; columns are called by the numbers they have in the file."""
    # The checks of every text file (encoding, NUL bytes, endless lines), and 1_2 is no number.
    for number, text in enumerate(open_lines(path, options.text_encoding), start=1):
        if "_" in text and not _is_svmlight(text):
            raise _bad_line(path, number, text)
    try:
        with open(path, "rb") as file:
            file.seek(len(BOM_UTF8) if file.read(len(BOM_UTF8)) == BOM_UTF8 else 0)
            X, y = load_svmlight_file(file, dtype=np.float64, zero_based=True)
    except (ValueError, OverflowError, MemoryError):
        raise _first_bad_line(path, options.text_encoding) from None
    return _chosen(_used_columns(path, X, y), options)


def _used_columns(path: Path, X: Any, y: np.ndarray | None) -> Columns:
    """Leave out columns that no row mentions: numbers may be hashes, far beyond how many there are."""
    used, indices = np.unique(X.indices, return_inverse=True)
    matrix = csr_array((X.data, indices, X.indptr), shape=(X.shape[0], used.size))
    return Columns(str(path), tuple(map(str, used.tolist())), matrix, target=y, open_ended=True)


def _chosen(columns: Columns, options: ReadOptions) -> Columns:
    wanted = options.choose(Path(columns.path), columns.names)
    if len(wanted) == len(columns.names):
        return columns
    return replace(columns, names=tuple(columns.names[j] for j in wanted), matrix=columns.matrix[:, wanted])


def _first_bad_line(path: Path, text_encoding: str) -> TableError:
    for number, text in enumerate(open_lines(path, text_encoding), start=1):
        if not _is_svmlight(text):
            return _bad_line(path, number, text)
    return TableError(path, "this cannot be read as svmlight", "save it as plain text in UTF-8")


def _bad_line(path: Path, number: int, text: str) -> TableError:
    problem = f"line {number} is not LABEL INDEX:VALUE ...: {show(text.strip())}"
    return TableError(path, problem, "correct that line, or get the whole file again")


def _is_svmlight(text: str) -> bool:
    fields = [field for field in text.partition("#")[0].split() if not field.startswith("qid:")]
    try:
        float(fields[0]) if fields else None
        pairs = [field.split(":") for field in fields[1:]]
        indices = [int(index) for index, value in pairs if float(value) is not None]
    except ValueError:
        return False
    ordered = indices == sorted(set(indices)) and all(0 <= j < 2**31 for j in indices)
    return ordered and is_plain(" ".join(fields))


def read_parquet(path: Path, options: ReadOptions) -> Columns:
    """Read a Parquet file: numbers and booleans as numbers, strings and dictionaries as categories."""
    check_readable(path)
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        remedy = "pip install 'skpursuit[parquet]', or export the table as CSV"
        raise TableError(path, "reading Parquet needs pyarrow, which is not installed", remedy) from None
    try:
        table = pyarrow.parquet.ParquetFile(path).read()
        table.validate(full=True)
    except (pyarrow.ArrowException, OSError, MemoryError) as error:
        if "UTF8" in str(error):
            raise TableError(path, "it holds text that is not UTF-8", "write it again as text") from None
        remedy = "the file is damaged, cut off or something else: get or write it again"
        raise TableError(path, "this cannot be read as Parquet", remedy) from None
    wanted = [j for j in options.choose(path, table.column_names) if not _is_index(table.column_names[j])]
    columns = {
        table.column_names[j]: _parquet_column(path, table.column_names[j], table.column(j), options)
        for j in wanted
    }
    numeric = {name: values for name, values in columns.items() if isinstance(values, np.ndarray)}
    categorical = {name: values for name, values in columns.items() if isinstance(values, Categorical)}
    matrix = np.column_stack(list(numeric.values())) if numeric else np.empty((table.num_rows, 0))
    return Columns(str(path), tuple(numeric), matrix, categorical)


def _is_index(name: str) -> bool:
    """Whether a column is the row index that pandas writes."""
    return name.startswith("__index_level_")


def _parquet_column(path: Path, name: str, column: Any, options: ReadOptions) -> np.ndarray | Categorical:
    import pyarrow
    from pyarrow import types

    kind = column.type
    if types.is_dictionary(kind):
        kind = kind.value_type
    if types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        if name in options.categorical:
            return Categorical.from_strings("" if v is None else spell(v) for v in column.to_pylist())
        return np.asarray(column.cast(kind).cast(pyarrow.float64(), safe=False).to_numpy(), dtype=np.float64)
    if types.is_string(kind) or types.is_large_string(kind) or types.is_null(kind):
        return Categorical.from_strings("" if v is None else v for v in column.to_pylist())
    problem = f"column {show(name)} holds {kind}, which is neither a number nor a category"
    raise TableError(
        path, problem, options.remedy("turn it into numbers or text", f"drop it (--drop {name})")
    )
