"""A scipy sparse matrix from outside, checked before compiled code may follow its indices.

The fields of a scipy matrix can be assigned, and its conversions trust them: a COO matrix with one row number
out of range writes to memory that is not its own. So every format is checked here by its own fields, with
NumPy, before the conversion to CSR; CSR and CSC are kept as they are. The caller's matrix is not written to.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any

import numpy as np
from scipy import sparse


def compressed(X: Any) -> Any:
    """A CSR or CSC array with valid indices; ValueError where X has others."""
    read = _READERS.get(X.format, lambda X: _compressed_fields(X.tocsr()))
    try:
        return read(X)
    except (ValueError, TypeError, AttributeError, IndexError, OverflowError) as error:
        raise ValueError(
            f"X is a corrupt {X.format} matrix: {error}; rebuild it from valid indices"
        ) from None


def _compressed_fields(X: Any) -> Any:
    """CSR or CSC: lines between pointers that do not decrease, numbers within the width of a line."""
    lines, width = X.shape if X.format == "csr" else X.shape[::-1]
    data = _line("data", X.data)
    pointers = _pointers(X, lines, len(data))
    used = int(pointers[-1])  # what lies behind the last pointer belongs to no line
    numbers = _numbers("indices", X.indices[:used], width)
    if len(X.indices) != len(data):
        raise ValueError(f"it has {len(data)} values and {len(X.indices)} indices")
    index = sparse.get_index_dtype((numbers, pointers), maxval=max(X.shape))
    numbers, pointers = (line.astype(index, copy=False) for line in (numbers, pointers))
    return assembled(X.format, X.shape, data[:used], numbers, pointers)


def assembled(form: str, shape: tuple[int, int], data: Any, indices: Any, indptr: Any) -> Any:
    """A "csr" or "csc" array of valid parts; the constructors of scipy copy those of a larger array."""
    data, indices, indptr = (
        part.astype(part.dtype.newbyteorder("="), copy=False) for part in (data, indices, indptr)
    )
    made = (sparse.csr_array if form == "csr" else sparse.csc_array)(shape, dtype=data.dtype)
    made.data, made.indices, made.indptr = data, indices, indptr
    return made


def _block_fields(X: Any) -> Any:
    """BSR: as CSR, in blocks that tile the matrix."""
    data = np.asarray(X.data)
    if data.ndim != 3 or 0 in data.shape[1:] or any(n % b for n, b in zip(X.shape, data.shape[1:])):
        raise ValueError(f"blocks of shape {data.shape[1:]} do not tile it")
    rows, columns = (n // b for n, b in zip(X.shape, data.shape[1:]))
    if len(_numbers("indices", X.indices, columns)) != len(data):
        raise ValueError(f"it has {len(data)} blocks and {len(X.indices)} indices")
    _pointers(X, rows, len(data))
    return X.tocsr()


def _coordinate_fields(X: Any) -> Any:
    """COO: as many row and column numbers as values."""
    data = _line("data", X.data)
    for name, numbers, size in zip(("row", "column"), (X.row, X.col), X.shape):
        if len(_numbers(f"{name} numbers", numbers, size)) != len(data):
            raise ValueError(f"it has {len(data)} values and {len(numbers)} {name} numbers")
    return X.tocsr()


def _diagonal_fields(X: Any) -> Any:
    """DIA: one row of values for each of several different diagonals."""
    offsets, data = np.asarray(X.offsets), np.asarray(X.data)
    if data.ndim != 2 or offsets.shape != data.shape[:1] or offsets.dtype.kind not in "iu":
        raise ValueError(f"it has values of shape {data.shape} and offsets of shape {offsets.shape}")
    if len(np.unique(offsets)) < len(offsets):
        raise ValueError("an offset occurs twice")
    inside = (offsets > -X.shape[0]) & (offsets < X.shape[1])  # the others lie outside the matrix
    kept = sparse.dia_array((data[inside], offsets[inside].astype(np.int64)), shape=X.shape)
    return kept.tocsr()


def _list_fields(X: Any) -> Any:
    """LIL: a list of columns and one of values, of equal length, for each row."""
    rows, values = list(X.rows), list(X.data)
    counts = [len(row) for row in rows]
    if len(rows) != X.shape[0] or counts != [len(row) for row in values]:
        raise ValueError("its rows do not have as many values as column numbers")
    numbers = _numbers("column numbers", np.array(list(chain(*rows)) or np.empty(0, int)), X.shape[1])
    data = np.array(list(chain(*values)), dtype=X.dtype)
    pointers = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
    return sparse.csr_array((_line("data", data), numbers, pointers), shape=X.shape)


def _pointers(X: Any, lines: int, most: int) -> np.ndarray:
    """Index pointers of so many lines, from 0 to at most `most`, none below the one before."""
    pointers = _whole("indptr", X.indptr)
    if len(pointers) != lines + 1:
        raise ValueError(f"indptr has {len(pointers)} entries instead of {lines + 1}")
    if pointers[0] != 0 or pointers[-1] > most or (pointers[1:] < pointers[:-1]).any():
        raise ValueError(f"indptr must rise from 0 to at most {most}")
    return pointers


def _numbers(name: str, values: Any, size: int) -> np.ndarray:
    """Whole numbers of at least 0 and below `size`."""
    numbers = _whole(name, values)
    if numbers.size and not 0 <= numbers.min() <= numbers.max() < size:
        raise ValueError(f"{name} must be between 0 and {size - 1}")
    return numbers


def _whole(name: str, values: Any) -> np.ndarray:
    numbers = _line(name, values)
    if numbers.dtype.kind not in "iu":
        raise ValueError(f"{name} have dtype {numbers.dtype}")
    return numbers


def _line(name: str, values: Any) -> np.ndarray:
    line = np.asarray(values)
    if line.ndim != 1:
        raise ValueError(f"{name} have {line.ndim} dimensions")
    return line


_READERS: dict[str, Callable[[Any], Any]] = {
    "csr": _compressed_fields,
    "csc": _compressed_fields,
    "bsr": _block_fields,
    "coo": _coordinate_fields,
    "dia": _diagonal_fields,
    "lil": _list_fields,
    "dok": lambda X: _coordinate_fields(X.tocoo()),
}
