"""Sparse matrices of scipy, checked before compiled code may follow their indices.

The fields of a SciPy matrix can be assigned, and its conversions trust them: a COO matrix with one row number
out of range writes to memory that is not its own. So SciPy's own checks run first, on a matrix that shares
the caller's arrays but is not the caller's. CSR and CSC are kept as they are, other formats become CSR.
"""

from __future__ import annotations

from copy import copy

from scipy import sparse

from skpursuit.data.array_source import check_shape, float_dtype
from skpursuit.data.sparse_tile import SparseTile
from skpursuit.data.tile import Tile
from skpursuit.numerics.arrays import Compressed, Indices


def accepts(X: object) -> bool:
    """Whether X is a sparse array or matrix of scipy."""
    return hasattr(X, "format") and hasattr(X, "tocsr")


def make_tiles(X: sparse.sparray | sparse.spmatrix) -> list[list[Tile]]:
    """One tile: X in CSR or CSC form, its indices checked."""
    return [[SparseTile(checked_sparse(X))]]


def checked_sparse(X: sparse.sparray | sparse.spmatrix) -> Compressed:
    """X as a CSR or CSC array of floats, with valid indices in order and none twice."""
    check_shape(X.shape)
    dtype = getattr(X, "dtype", None)  # which a format may have from values that it lacks
    wanted = None if dtype is None else float_dtype(dtype)
    matrix = validated_compressed(X)
    matrix.data = matrix.data.astype(wanted or float_dtype(matrix.dtype), copy=False)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return matrix


def validated_compressed(X: sparse.sparray | sparse.spmatrix) -> Compressed:
    """A CSR or CSC array with valid indices; ValueError where X has others."""
    try:
        matrix = _checked(copy(X) if X.format in ("csr", "csc", "bsr") else _rebuilt(X))
        return matrix if matrix.format in ("csr", "csc") else _checked(matrix.tocsr())
    except (ValueError, TypeError, AttributeError, IndexError, ArithmeticError) as error:
        told = f"X is a corrupt {X.format} matrix: {error}"
        raise ValueError(f"{told}; rebuild it from valid indices") from None


def _rebuilt(X: sparse.sparray | sparse.spmatrix) -> sparse.csr_array:
    """A matrix of another format as CSR, through the constructors that check its fields."""
    if X.format == "lil" and [len(row) for row in X.rows] != [len(row) for row in X.data]:
        raise ValueError("its rows do not have as many values as column numbers")
    if X.format == "lil":
        return X.tocsr()
    coo = sparse.dia_array((X.data, X.offsets), shape=X.shape).tocoo() if X.format == "dia" else X.tocoo()
    _check_integers(row=coo.row, column=coo.col)
    data = coo.data.astype(coo.dtype.newbyteorder("="), copy=False)
    return sparse.coo_array((data, (coo.row, coo.col)), shape=X.shape).tocsr()


def _checked(X: sparse.sparray | sparse.spmatrix) -> sparse.sparray | sparse.spmatrix:
    _check_integers(indices=X.indices, indptr=X.indptr)
    if (X.indptr[1:] < X.indptr[:-1]).any():
        raise ValueError("indptr must not decrease")
    X.check_format(full_check=True)
    return X if X.format == "bsr" else (sparse.csr_array if X.format == "csr" else sparse.csc_array)(X)


def _check_integers(**numbers: Indices) -> None:
    for name, values in numbers.items():
        if values.dtype.kind not in "iu":
            raise ValueError(f"{name} numbers have dtype {values.dtype}")
