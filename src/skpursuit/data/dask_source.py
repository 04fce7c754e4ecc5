"""Dask arrays and data frames, recognised by the package of their class: others do not import Dask."""

from __future__ import annotations

from typing import Any

import numpy as np

from skpursuit.data.array_source import check_shape, float_dtype
from skpursuit.data.store import TileStore


def takes(X: Any) -> bool:
    """Whether X is a collection of Dask."""
    return type(X).__module__.split(".")[0] == "dask"


def store(X: Any) -> TileStore:
    """X as tiles on the workers of the current client, or made in this process where there is none."""
    from skpursuit.data.dask_store import DaskStore

    return DaskStore(as_dask_array(X))


def as_dask_array(X: Any) -> Any:
    """A two-dimensional Dask array with known chunks, of a Dask array or data frame."""
    import dask.array as da

    if takes_frame(X):
        X = frame_array(X)
    if not isinstance(X, da.Array):
        raise TypeError(f"X is a Dask {type(X).__name__}; it must be a Dask array or data frame")
    if X.ndim != 2:
        check_shape((1,) * X.ndim)
    float_dtype(X.dtype)
    if np.isnan([size for sizes in X.chunks for size in sizes]).any():
        X = X.compute_chunk_sizes()
    check_shape(X.shape)
    empty_chunks = any(0 in sizes for sizes in X.chunks)
    return X.rechunk(tuple(tuple(s for s in sizes if s) for sizes in X.chunks)) if empty_chunks else X


def takes_frame(X: Any) -> bool:
    """Whether X is a collection of Dask with named columns."""
    return takes(X) and type(X).__module__.split(".")[1] == "dataframe"


def frame_array(frame: Any) -> Any:
    """The columns of a data frame as a Dask array of floats; those that are no numbers are named."""
    bad = [str(name) for name, kind in frame.dtypes.items() if not is_number(kind)]
    if bad:
        raise TypeError(
            f"columns of X that are not numeric: {', '.join(bad)}; encode them, or leave them out by "
            "X.drop(columns=...)"
        )
    sizes = frame.map_partitions(len).compute().tolist()
    parts = frame.to_delayed()
    import dask.array as da
    from dask import delayed

    width = len(frame.columns)
    made = [
        da.from_delayed(delayed(as_floats, pure=True)(part), (size, width), np.dtype(np.float64))
        for part, size in zip(parts, sizes)
        if size
    ]
    return da.concatenate(made) if made else da.empty((0, width))


def is_number(kind: Any) -> bool:
    """Whether a column of this dtype of pandas holds numbers or truth values."""
    return getattr(kind, "kind", "O") in "biuf"


def as_floats(part: Any) -> np.ndarray:
    """A partition of a data frame as an array; what is missing is NaN, which is refused later."""
    return np.ascontiguousarray(part.to_numpy(dtype=np.float64, na_value=np.nan))


def collected(y: Any) -> Any:
    """Targets or weights that a Dask collection holds, brought to the driver; others as they are."""
    return y.compute() if takes(y) else y
