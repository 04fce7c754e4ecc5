"""Where X comes from: the only place that looks at its type.

A source is a module that says which X it accepts and makes tiles of it. `OUT_OF_CORE_SOURCES` lists the
sources of X on disk or on a cluster. They are tried first, and make a store from X and the options of
`as_design`. `IN_MEMORY_SOURCES` lists the others, in the order in which they are tried; the last one accepts
whatever NumPy makes an array of. A new source is one file with the two functions, and one line here.
"""

from collections.abc import Callable, Collection, Iterable
from os import PathLike
from typing import Any, Protocol, TypeGuard

import numpy as np

from skpursuit.data import dense_tile, operator_tile, sparse_tile, stacked_source
from skpursuit.data.cluster import dask_source
from skpursuit.data.design import Design
from skpursuit.data.disk import npy_source as file_source
from skpursuit.data.disk import parquet_source
from skpursuit.data.options import MEMORY_LIMIT, DesignOptions
from skpursuit.data.store import TileStore
from skpursuit.data.tile import Tile
from skpursuit.parameters import check_flag


class InMemorySource(Protocol):
    """A module that knows some kinds of X, and makes a grid of tiles of checked X."""

    def accepts(self, X: object, /) -> bool: ...
    def make_tiles(self, X: Any, /) -> list[list[Tile]]: ...


class OutOfCoreSource(Protocol):
    """A module that knows some kinds of X, and makes a store of it."""

    def accepts(self, X: object, /) -> bool: ...
    def make_store(self, X: Any, options: DesignOptions, /) -> TileStore: ...


IN_MEMORY_SOURCES: list[InMemorySource] = [sparse_tile, operator_tile, stacked_source, dense_tile]
OUT_OF_CORE_SOURCES: list[OutOfCoreSource] = [dask_source, parquet_source, file_source]
REAL_ONLY = "X is complex; only minimize and orthogonal_mp take complex X and y"
# Which X have named columns, and what reads one of these in its own type.
NAMED_COLUMN_READERS: list[tuple[Callable[[object], bool], Callable[..., np.ndarray]]] = [
    (dask_source.is_frame, dask_source.read_target_column),
    (parquet_source.accepts, parquet_source.read_target_column),
]


def as_design(
    X: object,
    check: bool = True,
    *,
    memory_limit: int | str = MEMORY_LIMIT,
    columns: Iterable[object] | None = None,
    exclude: Iterable[object] | None = None,
    codes: str | PathLike[str] | None = "auto",
    axis: int = 0,
) -> Design:
    """Turn a data matrix into a design that can be used again.

    Parameters
    ----------
    X : array-like, scipy sparse array or matrix, LinearOperator, list, path, Dask collection, or Design
        n rows (samples) and d columns (features, atoms). Dense float32 and float64 arrays in any memory
        order, read-only and memory-mapped ones included, are used as they are; integers are converted once.
        Of a list of two-dimensional arrays each has some of the rows; of a list of such lists each has some
        of the columns of its rows, as in ``numpy.block``. A LinearOperator is asked for products alone. Of
        equal columns the lowest index is chosen, as with arrays, where its products with unit vectors give
        them with equal bits. Complex X, an array or a LinearOperator, is seen as real numbers: its parts are
        rows of their own, and of its columns x there are two, x and i x. Data on disk is given by its path: a
        `.npy` or Parquet file, or a folder of such pieces. A list of files of one kind is taken as a folder
        of them. A `numpy.memmap` over a plain file is read as the file is. Sparse X is fitted from memory.
        Chunks of a Dask array or data frame stay on the workers of the current client; without a client
        Dask's threads make them whenever they are asked for.
    check : bool
        Whether to read X once now and refuse NaN and infinity. `minimize` leaves it to the first pass
        over X that is made anyway, and calls `check_finite` then; so does X on disk.
    memory_limit : int or str
        Bytes, or text such as "2GB", for all that is kept of an X on disk: tiles, codes, columns, products.
        An X that fits twice is read into memory as a whole. X in memory is not limited.
    columns, exclude : list of str or int, optional
        The columns of an X on disk that count, and those that do not, by name or number. They keep the order
        that they have there.
    codes : "auto", str, Path or None
        Where codes of an X on disk go that the limit has no room for: to a folder of that name, where the
        next design of the same files finds them; to a temporary folder ("auto"; beside the checkpoint, if a
        run has one); None: nothing is written, and selectors that need codes which do not fit raise.
    axis : int
        0 where `.npy` pieces have some of the rows, 1 where they have some of the columns; they follow each
        other in the order of their names.

    Returns
    -------
    Design
        Keeps norms, gathered columns and codes: pass it instead of X to reuse them for another y.

    Raises
    ------
    TypeError
        For text, an unknown kind of X, or complex numbers in other X than arrays and linear operators.
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
    design = make_design(X, check, DesignOptions(memory_limit, columns, exclude, codes, axis), is_real=False)
    if design is not X:
        design.store.start_change_detection()
    return design


def is_design(X: object) -> TypeGuard[Design]:
    """Whether X is a design already."""
    return isinstance(X, Design)


def make_design(
    X: object,
    check: bool = True,
    options: DesignOptions | None = None,
    names: list[str] | None = None,
    is_real: bool = True,
) -> Design:
    """As `as_design`, for a design that lives for one call: X is not watched.

    `names` are of the columns of an array, which messages then name. Complex X is refused where it `is_real`.
    """
    if is_design(X):
        X.store.check_unchanged()
        if X.is_complex and is_real:
            raise TypeError(REAL_ONLY)
        return X
    plain = type(X) is np.ndarray  # nobody else takes these
    kinds = [] if plain else OUT_OF_CORE_SOURCES
    out_of_core = next((source for source in kinds if source.accepts(X)), None)
    if out_of_core is not None:
        options = options or DesignOptions()
        if options.axis and out_of_core is not file_source:
            raise ValueError("axis is for folders of .npy pieces; other data has rows below each other")
        design = Design(out_of_core.make_store(X, options))
        design.store.origin = X, options
        check = check and design.store.in_memory
    else:
        if options is not None and (options.columns is not None or options.exclude is not None):
            raise ValueError("columns and exclude are for X on disk; of an array give X[:, columns]")
        if options is not None and options.axis:
            raise ValueError("axis is for pieces of X on disk; give arrays as numpy.block takes them")
        source = dense_tile if plain else next(source for source in IN_MEMORY_SOURCES if source.accepts(X))
        store = TileStore(source.make_tiles(X))
        columns: Any = getattr(X, "columns", None) if names is None else names  # of a data frame
        named = isinstance(columns, Collection) and all(isinstance(one, str) for one in columns)
        store.names = list(columns) if named else None
        design = Design(store)
    if design.is_complex and is_real:
        raise TypeError(REAL_ONLY)
    if check:
        check_finite(design)
    return design


def is_out_of_core(X: object) -> bool:
    """Whether X is a design already, or data that is not an array or a matrix in memory."""
    known = is_design(X) or type(X) is np.ndarray
    return is_design(X) if known else any(source.accepts(X) for source in OUT_OF_CORE_SOURCES)


def split_target(X: object, y: object, check: bool = True, is_real: bool = True) -> tuple[Design, object]:
    """A design of X, and y; where y is the name of a column of X, X without that column, and its values."""
    if not isinstance(y, str):
        design, target = make_design(X, check, is_real=is_real), dask_source.compute_if_dask(y)
        if design.store.hint and np.ndim(target) and len(target) != design.shape[0]:
            raise ValueError(f"y has {len(target)} rows and X has {design.shape[0]}; {design.store.hint}")
        return design, target
    source, options = X, DesignOptions(exclude=[y])
    if is_design(X):
        if y in (X.store.names or []):
            raise ValueError(f"y is {y!r}, a column of X; leave it out: as_design(..., exclude=[{y!r}])")
        source, options = X.store.origin or (None, options)
    column = next((read for takes, read in NAMED_COLUMN_READERS if takes(source)), None)
    if column is None:
        if is_out_of_core(X):
            make_design(X, check=False)  # a path that leads nowhere is told first
        raise TypeError(f"y is {y!r}, but X is no table on disk; give y as an array")
    values = column(source, y, options.reads)
    if values.dtype.kind in "mM":
        raise TypeError(f"column {y!r}, which is y, has dates or times; make numbers of them")
    values = values.astype(np.float64) if values.dtype.kind == "f" else values
    return make_design(X, check, options), values


def check_finite(design: Design, norm: float | None = None) -> None:
    """Refuse NaN, infinity and columns whose squares leave the range of floats.

    `norm` is the Frobenius norm of X, where the caller knows it.
    """
    design.store.check_finite(design.reads, norm)
