"""Gaps in numeric columns: found, named, or filled."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from .columns import Matrix
from .errors import TableError, show


def check_finite(path: str, matrix: Matrix, names: tuple[str, ...], gap_remedy: str) -> None:
    """Refuse missing and infinite numbers, naming the first column that has one and its first row."""
    bad_rows, bad_columns, values = _entries(matrix, ~np.isfinite(_stored(matrix)))
    if bad_rows.size == 0:
        return
    first = np.lexsort((bad_rows, bad_columns))[0]
    where = f"column {show(names[bad_columns[first]])}, row {bad_rows[first] + 1}"
    if np.isnan(values[first]):
        raise TableError(path, f"{where}: the value is missing", gap_remedy)
    raise TableError(path, f"{where}: the value is infinite", "replace it by a finite number")


def column_means(path: str, matrix: Matrix, names: tuple[str, ...]) -> dict[str, float]:
    """Return the mean of each column over its known values (zeros of a sparse matrix are known)."""
    known = _replace(matrix, 0.0)
    counts = np.full(matrix.shape[1], float(matrix.shape[0]))
    np.subtract.at(counts, _entries(matrix, np.isnan(_stored(matrix)))[1], 1.0)
    if np.any(counts == 0):
        name = names[int(np.argmin(counts))]
        raise TableError(path, f"column {show(name)} is empty", f"drop it (--drop {name})")
    means = np.asarray(known.sum(axis=0)).ravel() / counts
    return dict(zip(names, means.tolist()))


def fill_missing(path: str, matrix: Matrix, names: tuple[str, ...], fill: dict | None) -> Matrix:
    """Return the matrix with its NaN replaced by the remembered values, the same object if there are none."""
    rows, columns, _ = _entries(matrix, np.isnan(_stored(matrix)))
    if fill is None or rows.size == 0:
        return matrix
    means = np.array([fill[name] for name in names], dtype=np.float64)
    return _replace(matrix, means[columns])


def _stored(matrix: Matrix) -> np.ndarray:
    return matrix.data if isinstance(matrix, csr_array) else matrix


def _entries(matrix: Matrix, mask: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return rows, columns and values of the stored entries that a mask marks, row by row."""
    if not isinstance(matrix, csr_array):
        rows, columns = np.nonzero(mask)
        return rows, columns, matrix[rows, columns]
    at = np.flatnonzero(mask)
    rows = np.searchsorted(matrix.indptr, at, side="right") - 1
    return rows, matrix.indices[at], matrix.data[at]


def _replace(matrix: Matrix, values: np.ndarray | float) -> Matrix:
    """Return a copy whose NaN are replaced, in the order of `_entries`."""
    copy = matrix.copy()
    stored = _stored(copy)
    stored[np.isnan(stored)] = values
    return copy
