"""Where X comes from: the only place that looks at its type.

A source is a module that says which X it takes and makes tiles of it. `SOURCES` lists them in the order in
which they are asked; the last one takes whatever NumPy makes an array of. A new source is one file with the
two functions, and one line here.
"""

from __future__ import annotations

from typing import Any, TypeGuard

from skpursuit.data import array_source, dask_source, operator_source, sparse_source, stacked_source
from skpursuit.data.design import Design
from skpursuit.data.store import TileStore
from skpursuit.parameters import check_flag

# Each has `takes(X)`, whether it knows this kind of X, and `tiles(X)`, X checked and as a grid of tiles.
SOURCES: list[Any] = [dask_source, sparse_source, operator_source, stacked_source, array_source]


def as_design(X: Any, check: bool = True) -> Design:
    """Turn a data matrix into a design that can be used again.

    Parameters
    ----------
    X : array-like, scipy sparse array or matrix, scipy LinearOperator, list of arrays, or Design
        n rows (samples) and d columns (features, atoms). Dense float32 and float64 arrays in any memory
        order, read-only and memory-mapped ones included, are used as they are; integers are converted once.
        Of a list of two-dimensional arrays each has some of the rows; of a list of such lists each has some
        of the columns of its rows, as in ``numpy.block``. A LinearOperator is asked for products alone. Of
        equal columns the lowest index is chosen, as with arrays, where its products with unit vectors give
        them with equal bits.
    check : bool
        Whether to read X once now and refuse NaN and infinity. `minimize` leaves it to the first pass
        over X that is made anyway, and calls `check_finite` then.

    Returns
    -------
    Design
        Keeps norms, gathered columns and codes: pass it instead of X to reuse them for another y.

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
        design.store.watch()
    return design


def is_design(X: Any) -> TypeGuard[Design]:
    """Whether X is a design already."""
    return isinstance(X, Design)


def make_design(X: Any, check: bool = True) -> Design:
    """As `as_design`, for a design that lives for one call: X is not watched."""
    if is_design(X):
        X.store.check_unchanged()
        return X
    source = next(source for source in SOURCES if source.takes(X))
    design = Design(source.store(X) if source is dask_source else TileStore(source.tiles(X)))
    if check:
        check_finite(design)
    return design


def check_finite(design: Design) -> None:
    """Refuse NaN and infinity. Norms that are needed anyway tell."""
    design.store.check_finite(design.reads)
