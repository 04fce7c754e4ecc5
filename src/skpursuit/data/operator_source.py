"""Linear operators of scipy, or anything with their products."""

from __future__ import annotations

import numpy as np

from skpursuit.data.array_source import check_shape, float_dtype
from skpursuit.data.operator_tile import OperatorTile
from skpursuit.data.tile import Tile


def accepts(X: object) -> bool:
    """Whether X gives products."""
    return hasattr(X, "matvec")


def make_tiles(X: object) -> list[list[Tile]]:
    """One tile, which cannot be cut."""
    from scipy.sparse.linalg import aslinearoperator

    if not hasattr(X, "rmatvec"):
        raise TypeError("X, a linear operator, has no rmatvec, the product with X^T; give it one")
    dtype = getattr(X, "dtype", None)
    if dtype is not None and np.dtype(dtype).kind == "c":
        float_dtype(np.dtype(dtype))
    check_shape(getattr(X, "shape", ()))
    return [[OperatorTile(aslinearoperator(X))]]
