"""Sparse X in CSR or CSC form.

The product with a sparse X costs its stored entries, adds them in stored order, and so gives equal columns
equal bits: in float64 it is its own fixed-order product, and there is nothing for codes to save. Verbs that
need the other layout (rows of CSC, columns of CSR) make it once with `ensure_layout`.

The fields of a SciPy matrix can be assigned, and its conversions trust them: a COO matrix with one row number
out of range writes to memory that is not its own. So SciPy's own checks run first, on a matrix that shares
the caller's arrays but is not the caller's. CSR and CSC are kept as they are, other formats become CSR.
"""

from copy import copy
from typing import TypeAlias

import numpy as np
from scipy import sparse

from skpursuit.data.dense_tile import MEAN_UNIT, check_shape, float_dtype
from skpursuit.data.survey import Blocks
from skpursuit.data.tile import Cost, Sample, Tile, scattered_indices
from skpursuit.numerics.arrays import Compressed, Floats, Indices
from skpursuit.numerics.sums import cast_residual

LAYOUT_FORMATS = {"rows": "csr", "entries": "csr", "columns": "csc"}
SciPyMatrix: TypeAlias = "sparse.sparray | sparse.spmatrix"


def accepts(X: object) -> bool:
    """Whether X is a sparse array or matrix of SciPy."""
    return hasattr(X, "format") and hasattr(X, "tocsr")


def make_tiles(X: SciPyMatrix) -> list[list[Tile]]:
    """One tile: X as a CSR or CSC array of floats, with valid indices in order and none twice."""
    check_shape(X.shape)
    dtype = getattr(X, "dtype", None)  # which a format may have from values that it lacks
    wanted = None if dtype is None else float_dtype(dtype)
    matrix = validated_compressed(X)
    matrix.data = matrix.data.astype(wanted or float_dtype(matrix.dtype), copy=False)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return [[SparseTile(matrix)]]


def validated_compressed(X: SciPyMatrix) -> Compressed:
    """A CSR or CSC array with valid indices; ValueError where X has others."""
    try:
        matrix = copy(X) if X.format in ("csr", "csc") else rebuilt(X)
        check_integers(matrix.indices, matrix.indptr)
        if (matrix.indptr[1:] < matrix.indptr[:-1]).any():
            raise ValueError("indptr must not decrease")
        matrix.check_format(full_check=True)
        return (sparse.csr_array if matrix.format == "csr" else sparse.csc_array)(matrix)
    except (ValueError, TypeError, AttributeError, IndexError, ArithmeticError) as error:
        told = f"X is a corrupt {X.format} matrix: {error}"
        raise ValueError(f"{told}; rebuild it from valid indices") from None


def rebuilt(X: SciPyMatrix) -> sparse.csr_array:
    """A matrix of another format as CSR, through the constructors that check its fields."""
    if X.format == "lil":
        if [len(row) for row in X.rows] != [len(row) for row in X.data]:
            raise ValueError("its rows do not have as many values as column numbers")
        return X.tocsr()
    coo = sparse.dia_array((X.data, X.offsets), shape=X.shape).tocoo() if X.format == "dia" else X.tocoo()
    check_integers(coo.row, coo.col)
    data = coo.data.astype(coo.dtype.newbyteorder("="), copy=False)
    return sparse.coo_array((data, (coo.row, coo.col)), shape=X.shape).tocsr()


def check_integers(*numbers: Indices) -> None:
    """Refuse row and column numbers that are no integers."""
    if wrong := [values.dtype for values in numbers if values.dtype.kind not in "iu"]:
        raise ValueError(f"its row or column numbers have dtype {wrong[0]}")


class SparseTile(Tile):
    """A checked scipy CSR or CSC matrix; the other layout is made by `ensure_layout`, and cached."""

    is_sparse = True
    mean_rounding_unit = MEAN_UNIT

    def __init__(self, matrix: Compressed) -> None:
        self.shape, self.dtype = matrix.shape, matrix.dtype
        self.matrix = self.in_memory_matrix = matrix
        self.transposed = matrix.T
        self.fixed_order = matrix.dtype == np.float64
        self.layouts = {matrix.format: matrix}

    @property
    def rounding_unit(self) -> float:
        return (self.shape[0] + 8) * float(np.finfo(self.dtype).eps)

    def ensure_layout(self, what: str) -> Cost:
        form = LAYOUT_FORMATS[what]
        if form in self.layouts:
            return 0, 0
        self.layouts[form] = self.matrix.asformat(form)
        return self.cost()

    def layout(self, what: str) -> Compressed:
        """X in the layout whose lines are its "rows" or its "columns"."""
        self.ensure_layout(what)
        return self.layouts[LAYOUT_FORMATS[what]]

    def stored(self, what: str) -> Indices:
        """Stored entries in each of the "rows" or "columns"."""
        if LAYOUT_FORMATS[what] in self.layouts:
            return np.diff(self.layouts[LAYOUT_FORMATS[what]].indptr)
        return np.bincount(self.matrix.indices, minlength=self.shape[what == "columns"])

    def cost(self, rows: Indices | None = None, cols: Indices | None = None) -> Cost:
        """Stored entries touched: whole rows when rows are asked for, else whole columns."""
        if rows is not None:
            entries = int(self.stored("rows")[rows].sum())
        elif cols is not None:
            entries = int(self.stored("columns")[cols].sum())
        else:
            entries = self.matrix.nnz
        return entries, entries * (self.dtype.itemsize + self.matrix.indices.itemsize)

    def product(self, r: Floats, rows: Indices | None = None) -> Floats:
        if rows is not None:
            return self.product_of_rows(rows, r[rows])
        r, exponent = cast_residual(r, self.dtype)
        return np.ldexp(np.asarray(self.transposed @ r, dtype=np.float64), exponent)

    def product_of_rows(self, rows: Indices, weights: Floats) -> Floats:
        """The sum of some rows times weights, of each column in the order of the rows."""
        return np.asarray(self.layout("rows")[rows].T @ weights, dtype=np.float64)

    def dots(self, cols: Indices, r: Floats) -> Floats:
        """<x_j, r> of some columns from their stored entries, in a fixed order."""
        part = self.layout("columns")[:, cols].astype(np.float64, copy=False)
        return np.asarray(part.T @ np.asarray(r, dtype=np.float64))

    def take(self, cols: Indices) -> Floats:
        # No new layout for one look at a tile.
        matrix = self.layouts.get(LAYOUT_FORMATS["columns"], self.matrix)
        return np.ascontiguousarray(matrix[:, cols].toarray().T, dtype=np.float64)

    def add_rows(self, rows: Indices, weights: Floats, out: Floats, cols: Indices | None = None) -> None:
        total = self.product_of_rows(rows, weights)
        out += total if cols is None else total[cols]

    def entries(self, rows: Indices, cols: Indices) -> Floats:
        if len(rows) == 0:  # which SciPy refuses
            return np.empty(0)
        return np.asarray(self.layout("rows")[rows, cols], dtype=np.float64).ravel()

    def norm_parts(self, axis: int, order: float = 2) -> Floats:
        lines, top = self._line_of_entry(axis), np.zeros(self.shape[1 - axis])
        if order == 2:
            squares = self.matrix.data.astype(np.float64, copy=False) ** 2
            return np.asarray(np.bincount(lines, squares, minlength=len(top)), dtype=np.float64)
        np.maximum.at(top, lines, np.abs(self.matrix.data))
        return top

    def _line_of_entry(self, axis: int) -> Indices:
        """Column (axis 0) or row number of each stored entry, in stored order."""
        if self.matrix.format == ("csc" if axis == 0 else "csr"):
            return np.repeat(np.arange(len(self.matrix.indptr) - 1), np.diff(self.matrix.indptr))
        return self.matrix.indices

    def survey(self, weights: list[Floats | None], spreads: bool) -> list[Blocks]:
        """All rows as one block; entries that are not stored are counted."""
        cols, d = self._line_of_entry(0), self.shape[1]
        values = self.matrix.data.astype(np.float64, copy=False)
        found: list[Blocks] = []
        for given in weights:
            w = np.ones(self.shape[0]) if given is None else given
            each, total = w[self._line_of_entry(1)], float(w.sum())
            full = np.bincount(cols, each > 0, d) == np.count_nonzero(w > 0)
            absent = np.where(full, 0.0, total - np.bincount(cols, each, d))  # without the rounding of sums
            with np.errstate(all="ignore"):
                mean = np.bincount(cols, each * values, d) / (total or 1.0)
                rest = values - mean[cols]
                left = np.bincount(cols, each * rest, d) - absent * mean  # digits that the sums have lost
                squares = np.bincount(cols, each * rest * rest, d) + absent * mean * mean
            found.append((np.array([total]), (total * mean + left)[None], squares[None]))
        return found

    def samples(self) -> list[Sample]:
        """One stored entry of every line and of every index, and where lines end."""
        matrix, counts, last = self.matrix, np.diff(self.matrix.indptr), np.full(max(self.shape), -1)
        last[matrix.indices] = np.arange(len(matrix.indices))
        filled = np.flatnonzero(counts)
        some = matrix.indptr[filled] + scattered_indices(len(filled), 2**31) % counts[filled]
        at = np.append(some, last[last >= 0])
        return [(matrix.data, at), (matrix.indices, at), (matrix.indptr, slice(None))]
