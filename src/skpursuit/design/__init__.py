"""Data access: the only code that touches X."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from skpursuit.design.affine import AffineDesign
from skpursuit.design.base import Design, Floats
from skpursuit.design.dense import DenseDesign
from skpursuit.design.intercept import InterceptDesign
from skpursuit.design.operator import OperatorDesign
from skpursuit.design.sparse import SparseDesign

__all__ = ["AffineDesign", "Design", "InterceptDesign", "as_design"]


def as_design(X: Any, check: bool = True) -> Design:
    """Turn a data matrix into a design: the only place that looks at the type of X.

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
        For a shape that is not two-dimensional, empty data, NaN or infinity, and corrupt sparse indices.

    Examples
    --------
    >>> import numpy as np
    >>> from skpursuit import as_design
    >>> as_design(np.eye(3)).shape
    (3, 3)
    """
    if isinstance(X, Design):
        return X
    if hasattr(X, "format") and hasattr(X, "tocsr"):
        design: Design = SparseDesign(_checked_sparse(X))
    elif hasattr(X, "rmatvec") and hasattr(X, "matvec"):
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
        raise TypeError("X is complex; split it into real and imaginary parts: np.hstack([X.real, X.imag])")
    if dtype.kind not in "fiub":
        raise TypeError(f"X has dtype {dtype}; it needs numbers: encode text or object columns first")
    if dtype.kind == "f" and dtype.itemsize in (4, 8):
        return dtype.newbyteorder("=")
    return np.dtype(np.float32) if dtype == np.float16 else np.dtype(np.float64)


def _checked_dense(X: Any) -> Floats:
    if isinstance(X, np.memmap) and X.filename is not None:
        _check_mapped_file(X)
    if np.ma.is_masked(X):
        raise TypeError("X is a masked array with missing entries; fill them in: X.filled(...)")
    try:
        X = np.asarray(X)
    except ValueError as error:
        raise ValueError(f"X is not a table of numbers: {error}; give rows of one length") from None
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
    from scipy import sparse

    wanted = _float_dtype(X.dtype)
    _checked_shape(X.shape)
    matrix = X if X.format in ("csr", "csc") else X.tocsr()
    try:
        matrix.check_format(full_check=True)
    except ValueError as error:
        raise ValueError(
            f"X is a corrupt {matrix.format} matrix: {error}; rebuild it from valid indices"
        ) from None
    kind = sparse.csr_array if matrix.format == "csr" else sparse.csc_array
    matrix = kind((matrix.data.astype(wanted, copy=False), matrix.indices, matrix.indptr), shape=matrix.shape)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return matrix


def _checked_operator(X: Any) -> Any:
    from scipy.sparse.linalg import aslinearoperator

    if X.dtype is not None and np.dtype(X.dtype).kind == "c":
        _float_dtype(np.dtype(X.dtype))
    _checked_shape(X.shape)
    return aslinearoperator(X)


def check_finite(design: Design) -> None:
    """Refuse NaN and infinity. Norms that are needed anyway tell."""
    if isinstance(design, (AffineDesign, InterceptDesign)):
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
