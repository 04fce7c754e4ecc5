"""Data access: the only code that touches X."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from skpursuit.data.affine import AffineDesign
from skpursuit.data.base import Design, Floats
from skpursuit.data.dense import DenseDesign
from skpursuit.data.intercept import InterceptDesign
from skpursuit.data.operator import OperatorDesign
from skpursuit.data.rows import RowsDesign, rows_that_count
from skpursuit.data.sparse import SparseDesign
from skpursuit.parameters import as_array, check_flag

__all__ = ["AffineDesign", "Design", "InterceptDesign", "RowsDesign", "as_design", "rows_that_count"]


def as_design(X: Any, check: bool = True) -> Design:
    """Turn a data matrix into a design that can be used again.

    Parameters
    ----------
    X : array-like, scipy sparse array or matrix, scipy LinearOperator, or Design
        n rows (samples) and d columns (features, atoms). Dense float32 and float64 arrays in any memory
        order, read-only and memory-mapped ones included, are used as they are; integers are converted once.
        A LinearOperator is asked for products alone. Of equal columns the lowest index is chosen, as with
        arrays, where its products with unit vectors give them with equal bits.
    check : bool
        Whether to read X once now and refuse NaN and infinity. `minimize` leaves it to the first pass
        over X that is made anyway, and calls `check_finite` then.

    Returns
    -------
    Design
        Keeps norms, gathered columns and twins: pass it instead of X to reuse them for another y.

    Raises
    ------
    TypeError
        For complex numbers, text, or an unknown kind of X.
    ValueError
        For a shape that is not two-dimensional, empty data, NaN or infinity, corrupt sparse indices; and for
        a design whose X was changed in place after it was made.

    Notes
    -----
    A design keeps what it derived from X, so X must not be written to while the design is in use. When a
    design is used again, one entry of every row and one of every column are compared with what they were: a
    row, a column or a matrix that was written anew is noticed, most changes of single entries and those of
    the functions of a LinearOperator are not.

    Examples
    --------
    >>> import numpy as np
    >>> from skpursuit import as_design
    >>> as_design(np.eye(3)).shape
    (3, 3)
    """
    check_flag("check", check)
    design = make_design(X, check)
    if design is not X:
        design.watch()
    return design


def make_design(X: Any, check: bool = True) -> Design:
    """As `as_design`, for a design that lives for one call: X is not watched.

    This is the only place that looks at the type of X.
    """
    if isinstance(X, Design):
        X.check_unchanged()
        return X
    if hasattr(X, "format") and hasattr(X, "tocsr"):
        design: Design = SparseDesign(_checked_sparse(X))
    elif hasattr(X, "matvec"):
        return OperatorDesign(_checked_operator(X))
    else:
        design = DenseDesign(_checked_dense(X))
    if check:
        check_finite(design)
    return design


def _checked_shape(shape: tuple[int, ...]) -> None:
    if len(shape) != 2:
        raise ValueError(
            f"X must be two-dimensional, got {len(shape)} dimension(s); use X.reshape(-1, 1) for one column"
        )
    if min(shape) == 0:
        raise ValueError(f"X is empty: shape {tuple(shape)}; it needs at least one row and one column")


def _float_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype X is kept in: float32 and float64 as they are, other real numbers as float64."""
    if dtype.kind == "c":
        raise TypeError("X is complex; complex data is not supported")
    if dtype.kind not in "fiub":
        raise TypeError(f"X has dtype {dtype}; it needs numbers: encode text or object columns first")
    if dtype.kind == "f" and dtype.itemsize in (4, 8):
        return dtype.newbyteorder("=")
    return np.dtype(np.float32) if dtype == np.float16 else np.dtype(np.float64)


def _checked_dense(X: Any) -> Floats:
    if isinstance(X, np.memmap) and X.filename is not None:
        _check_mapped_file(X)
    X = as_array("X", X)
    wanted = _float_dtype(X.dtype)
    _checked_shape(X.shape)
    return X.astype(wanted, copy=False)


def _check_mapped_file(X: np.memmap[Any, Any]) -> None:
    """A memory-mapped file that has been cut short would kill the process on first touch."""
    base: Any = X
    while isinstance(base.base, np.memmap):
        base = base.base
    needed = base.offset + base.nbytes
    if os.path.exists(str(X.filename)) and os.path.getsize(str(X.filename)) < needed:
        raise ValueError(
            f"X is mapped from {X.filename}, which is shorter than {needed} bytes; write it again"
        )


def _checked_sparse(X: Any) -> Any:
    from skpursuit.data.sparse_input import compressed

    _checked_shape(X.shape)
    dtype = getattr(X, "dtype", None)  # which a format may have from values that it lacks
    wanted = None if dtype is None else _float_dtype(dtype)
    matrix = compressed(X)
    matrix.data = matrix.data.astype(wanted or _float_dtype(matrix.dtype), copy=False)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return matrix


def _checked_operator(X: Any) -> Any:
    from scipy.sparse.linalg import aslinearoperator

    if not hasattr(X, "rmatvec"):
        raise TypeError("X, a linear operator, has no rmatvec, the product with X^T; give it one")
    dtype = getattr(X, "dtype", None)
    if dtype is not None and np.dtype(dtype).kind == "c":
        _float_dtype(np.dtype(dtype))
    _checked_shape(getattr(X, "shape", ()))
    return aslinearoperator(X)


def check_finite(design: Design) -> None:
    """Refuse NaN and infinity. Norms that are needed anyway tell."""
    if isinstance(design, (AffineDesign, InterceptDesign, RowsDesign)):
        return check_finite(design.inner)
    if isinstance(design, OperatorDesign) or design.cache.get("finite"):
        return
    axis = 0 if ("norms", 0, 2) in design.cache else design.fast_axis
    if not np.isfinite(design.norms(axis)).all():
        norms = design.norms(0)
        j = int(np.flatnonzero(~np.isfinite(norms))[0])
        if np.isfinite(design._gather(np.array([j]))).all():
            raise ValueError(
                f"column {j} of X is too large: its norm overflows; divide it by its largest entry"
            )
        raise ValueError(f"X contains NaN or infinity, first in column {j}; impute or drop those entries")
    design.cache["finite"] = True
