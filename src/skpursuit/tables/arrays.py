"""Files that already hold matrices: npz and svmlight."""

from __future__ import annotations

import zipfile
from codecs import BOM_UTF8
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.datasets import load_svmlight_file

from .columns import Column, Columns, ReadOptions, different
from .errors import Refused, listing, show
from .source import TextFile, examine
from .spelling import is_plain

_CSR = ("data", "indices", "indptr", "shape")
_NPZ_REMEDY = "store X and y, or the CSR parts data, indices, indptr, shape and y (numpy.savez)"


def read_npz(path: Path, options: ReadOptions) -> Columns:
    """Read X (dense) or data, indices, indptr, shape (CSR), with y and feature_names where they are there."""
    arrays = _load_npz(path)
    sparse = "indptr" in arrays
    matrix = _csr(arrays) if sparse else _dense(arrays)
    n, d = matrix.shape
    target = {}
    if "y" in arrays:
        if arrays["y"].shape != (n,):
            problem = f"y has the shape {arrays['y'].shape} where X has {n} rows"
            raise Refused(problem, "store one target per row")
        target = {"y": Column.of(_readable("y", arrays["y"]))}
    if sparse and "feature_names" not in arrays:
        return _used_columns(path, matrix, target)
    names = _readable("feature_names", arrays.get("feature_names", np.arange(d)))
    if names.shape != (d,):
        problem = f"feature_names has the shape {names.shape} where X has {d} columns"
        raise Refused(problem, "store one name per column")
    unlike = tuple(different([*target, *names])[len(target) :])
    if sparse:
        return Columns(str(path), target, unlike, matrix, bool(target))
    columns = {name: Column.of(values.astype(np.float64)) for name, values in zip(unlike, matrix.T)}
    return Columns(str(path), {**columns, **target}, has_target=bool(target))


def _readable(name: str, values: np.ndarray) -> np.ndarray:
    """Return an array of numbers as it is and one of texts as such; refuse any other, dates for one."""
    if values.dtype.kind not in "biufUS":
        problem = f"{name} holds {values.dtype}, which is neither numbers nor texts"
        raise Refused(problem, "store it as numbers or texts")
    try:
        return np.strings.decode(values, "utf-8") if values.dtype.kind == "S" else values
    except UnicodeDecodeError:
        raise Refused(f"{name} holds bytes that are not UTF-8", "store it as texts") from None


def _load_npz(path: Path) -> dict[str, np.ndarray]:
    try:
        # Opened here, because numpy leaves the file open when it is not a whole archive.
        with open(path, "rb") as file:
            stored = np.load(file, allow_pickle=False)
            if not isinstance(stored, np.ndarray):
                return {name: stored[name] for name in stored.files}
    except Exception as error:  # zipfile, zlib and numpy raise whatever the bytes lead to
        if "allow_pickle" in str(error) and zipfile.is_zipfile(path):
            raise Refused("it holds Python objects, which are not loaded", _NPZ_REMEDY) from None
        remedy = "the file is damaged or cut off: get or write it again"
        raise Refused("this cannot be read as npz", remedy) from None
    raise Refused("this is a single array, not an npz file", _NPZ_REMEDY)


def _dense(arrays: dict[str, np.ndarray]) -> np.ndarray:
    X = arrays.get("X")
    if X is None:
        raise Refused(f"there is no X among the arrays ({listing(tuple(arrays))})", _NPZ_REMEDY)
    if X.ndim != 2 or X.dtype.kind not in "biuf":
        raise Refused(f"X is {X.ndim}-dimensional {X.dtype}, not a table of numbers", _NPZ_REMEDY)
    return X


def _csr(arrays: dict[str, np.ndarray]) -> csr_array:
    missing = [name for name in _CSR if name not in arrays]
    if missing:
        raise Refused(f"parts of the sparse matrix are missing: {listing(missing)}", _NPZ_REMEDY)
    if arrays.get("format", np.array(b"csr")).tolist() not in (b"csr", "csr"):
        raise Refused("the sparse matrix is not in CSR form", "store X.tocsr()")
    try:
        data, indices, indptr, shape = (arrays[name] for name in _CSR)
        matrix = csr_array((data.astype(np.float64), indices, indptr), shape=tuple(map(int, shape)))
        # scipy's constructor accepts column 999 of 10; code below may then read out of bounds.
        matrix.check_format(full_check=True)
        matrix.sum_duplicates()
    except (ValueError, TypeError, IndexError, OverflowError, MemoryError):
        remedy = "the file is damaged: write it again from a valid matrix"
        raise Refused("the parts do not make up a sparse matrix", remedy) from None
    return matrix


def _used_columns(path: Path, X: Any, target: dict[str, Column]) -> Columns:
    """Leave out columns that no row mentions: numbers may be hashes, far beyond how many there are."""
    used, indices = np.unique(X.indices, return_inverse=True)
    matrix = csr_array((X.data.astype(np.float64), indices, X.indptr), shape=(X.shape[0], used.size))
    names = tuple(map(str, used.tolist()))
    return Columns(str(path), target, names, matrix, bool(target), open_ended=True)


def read_svmlight(path: Path, options: ReadOptions) -> Columns:
    """Read svmlight/libsvm text; columns are called by the numbers they have in the file."""
    file = examine(path, options.text_encoding)
    _check_lines(file, lambda text: "_" in text)  # which Python would read into a number
    try:
        with open(path, "rb") as stream:
            stream.seek(len(BOM_UTF8) if stream.read(len(BOM_UTF8)) == BOM_UTF8 else 0)
            X, y = load_svmlight_file(stream, dtype=np.float64, zero_based=True)
    except (ValueError, OverflowError, MemoryError):
        _check_lines(file, lambda text: True)
        raise Refused("this cannot be read as svmlight", "save it as plain text in UTF-8") from None
    return _used_columns(path, X, {"y": Column.of(y)})


def _check_lines(file: TextFile, suspicious: Callable[[str], bool]) -> None:
    for number, text in enumerate(file.lines(), start=1):
        if suspicious(text) and not _is_svmlight(text):
            problem = f"line {number} is not LABEL INDEX:VALUE ...: {show(text.strip())}"
            raise Refused(problem, "correct that line, or get the whole file again")


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
