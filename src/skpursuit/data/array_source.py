"""Arrays in memory or mapped from a file, and whatever NumPy makes an array of."""

from __future__ import annotations

import os

import numpy as np

from skpursuit.data.dense_tile import DenseTile
from skpursuit.data.tile import Tile
from skpursuit.numerics.arrays import Floats, FloatType
from skpursuit.parameters import as_array


def accepts(X: object) -> bool:
    """Whatever no other source takes."""
    return True


def make_tiles(X: object) -> list[list[Tile]]:
    """One tile: the array as it is, or converted to floats once."""
    return [[DenseTile(checked_array(X))]]


def checked_array(X: object) -> Floats:
    """X as a two-dimensional array of float32 or float64."""
    if isinstance(X, np.memmap) and X.filename is not None:
        check_mapped_file(X)
    X = as_array("X", X)
    wanted = float_dtype(X.dtype)
    check_shape(X.shape)
    return X.astype(wanted, copy=False)


def check_mapped_file(X: np.memmap) -> None:
    """A memory-mapped file that has been cut short would kill the process on first touch."""
    base = X
    while isinstance(base.base, np.memmap):
        base = base.base
    needed = base.offset + base.nbytes
    if os.path.exists(str(X.filename)) and os.path.getsize(str(X.filename)) < needed:
        raise ValueError(f"X is mapped from {X.filename}, which has less than {needed} bytes; write it again")


def check_shape(shape: tuple[int, ...]) -> None:
    """Refuse what is not two-dimensional, and what is empty."""
    if len(shape) != 2:
        raise ValueError(
            f"X must be two-dimensional, got {len(shape)} dimension(s); use X.reshape(-1, 1) for one column"
        )
    if min(shape) < 1:
        raise ValueError(f"X is empty: shape {tuple(shape)}; it needs at least one row and one column")


def float_dtype(dtype: np.dtype) -> FloatType:
    """The dtype X is kept in: float32 and float64 as they are, other real numbers as float64."""
    if dtype.kind == "c":
        raise TypeError("X is complex; complex data is not supported")
    if dtype.kind not in "fiub":
        raise TypeError(f"X has dtype {dtype}; it needs numbers: encode text or object columns first")
    if dtype.kind == "f" and dtype.itemsize in (4, 8):
        return dtype.newbyteorder("=")
    return np.dtype(np.float32) if dtype == np.float16 else np.dtype(np.float64)
