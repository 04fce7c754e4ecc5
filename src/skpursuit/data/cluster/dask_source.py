"""Dask arrays and data frames, recognised by the package of their class: others do not import Dask."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from skpursuit.data.dense_tile import check_shape, float_dtype
from skpursuit.data.options import DesignOptions
from skpursuit.data.read_counter import FileReads
from skpursuit.data.store import TileStore
from skpursuit.numerics.arrays import Compressed, Floats

if TYPE_CHECKING:
    import dask.array as da
    import dask.dataframe as dd
    import pandas as pd


def accepts(X: object) -> TypeGuard[da.Array | dd.DataFrame]:
    """Whether X is a collection of Dask."""
    return type(X).__module__.split(".")[0] == "dask"


def make_store(X: da.Array | dd.DataFrame, options: DesignOptions) -> TileStore:
    """X as tiles on the workers of the current client, or made in this process where there is none."""
    from skpursuit.data.cluster.dask_store import DaskStore

    names = None
    if is_frame(X):
        names = [str(name) for name in X.columns]
        chosen = options.selected_columns(len(names), names)
        X, names = frame_array(X.iloc[:, chosen.tolist()]), [names[j] for j in chosen.tolist()]
    elif not (options.columns is None is options.exclude):
        X = X[:, options.selected_columns(X.shape[1], None)]
    return DaskStore(as_dask_array(X), names, options.memory_budget)


def read_target_column(X: dd.DataFrame, name: str, reads: FileReads) -> np.ndarray:
    """One column of all rows of a data frame in its own type, brought to the driver; no file is read here."""
    from skpursuit.data.cluster.dask_client import compute_collection

    names = [str(other) for other in X.columns]
    chosen = DesignOptions(columns=[name], columns_are="y").selected_columns(len(names), names)
    values = compute_collection(X.iloc[:, chosen.tolist()]).iloc[:, 0]
    if values.isna().any():
        raise ValueError(f"column {name!r}, which is y, has missing values; drop those rows")
    return values.to_numpy(dtype=getattr(values.dtype, "numpy_dtype", None))


def as_dask_array(X: object) -> da.Array:
    """A two-dimensional Dask array of numbers, with known chunks that are not empty."""
    import dask.array as da

    if not isinstance(X, da.Array):
        raise TypeError(f"X is a {type(X).__name__} of Dask; it must be a Dask array or data frame")
    if X.ndim != 2:
        check_shape((1,) * X.ndim)
    float_dtype(X.dtype)
    unknown = np.isnan([size for sizes in X.chunks for size in sizes]).any()
    array = X.compute_chunk_sizes() if unknown else X
    check_shape(array.shape)
    filled = tuple(tuple(size for size in sizes if size) for sizes in array.chunks)
    return array if filled == array.chunks else array.rechunk(filled)


def is_frame(X: object) -> TypeGuard[dd.DataFrame]:
    """Whether X is a collection of Dask with named columns."""
    return accepts(X) and type(X).__module__.split(".")[1] == "dataframe" and getattr(X, "ndim", 0) == 2


def frame_array(frame: dd.DataFrame) -> da.Array:
    """The columns of a data frame as a Dask array of floats; those that are no numbers are named."""
    import dask.array as da
    from dask import delayed

    from skpursuit.data.cluster.dask_client import compute_collection

    bad = [str(name) for name, kind in frame.dtypes.items() if getattr(kind, "kind", "O") not in "biuf"]
    if bad:
        raise TypeError(
            f"columns of X that are not numeric: {', '.join(bad)}; encode them, or leave them out by "
            "X.drop(columns=...)"
        )
    parts, width = frame.to_delayed(), len(frame.columns)
    # Of these parts: a computation of the frame may join some.
    sizes = compute_collection(delayed(list)(list(map(delayed(len), parts))))
    floats = delayed(as_floats, pure=True)
    made = [da.from_delayed(floats(part), (size, width), np.float64) for part, size in zip(parts, sizes)]
    return da.concatenate(made)


def as_floats(part: pd.DataFrame) -> np.ndarray:
    """A partition of a data frame as an array; what is missing is NaN, which is refused later."""
    return np.ascontiguousarray(part.to_numpy(dtype=np.float64, na_value=np.nan))


def compute_if_dask(y: object) -> Any:
    """Targets or weights that a Dask collection holds, brought to the driver; others as they are."""
    if accepts(y):
        from skpursuit.data.cluster.dask_client import compute_collection

        return compute_collection(y)
    return y


def map_row_blocks(
    function: Callable[[object], Floats | Compressed], X: da.Array | dd.DataFrame, sample: object
) -> da.Array:
    """A function of some rows, lazily of all rows: a Dask array; `sample` are rows that tell its form."""
    import dask.array as da
    from dask import delayed

    form = function(sample)[:0]
    if is_frame(X):
        parts, sizes = X.to_delayed(), [np.nan] * X.npartitions
    else:
        X = X.rechunk({1: -1})
        parts, sizes = X.to_delayed()[:, 0], X.chunks[0]
    made = delayed(function, name="skpursuit_predict", pure=False)
    chunks = [da.from_delayed(made(part), (n, *form.shape[1:]), meta=form) for part, n in zip(parts, sizes)]
    return da.concatenate(chunks, allow_unknown_chunksizes=True)
