"""Sparse matrices of scipy."""

from __future__ import annotations

from typing import Any

from skpursuit.data.array_source import check_shape, float_dtype
from skpursuit.data.sparse_tile import SparseTile
from skpursuit.data.sparse_validation import validated_compressed
from skpursuit.data.tile import Tile


def accepts(X: Any) -> bool:
    """Whether X is a sparse array or matrix of scipy."""
    return hasattr(X, "format") and hasattr(X, "tocsr")


def make_tiles(X: Any) -> list[list[Tile]]:
    """One tile: X in CSR or CSC form, its indices checked."""
    return [[SparseTile(checked_sparse(X))]]


def checked_sparse(X: Any) -> Any:
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
