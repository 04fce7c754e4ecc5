"""What a table file holds before anything is made of it: named columns, and how they are asked for."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow
from scipy.sparse import csr_array

from .errors import TableError, listing, show
from .spelling import Texts

Matrix: TypeAlias = np.ndarray | csr_array
Told: TypeAlias = Callable[[str], None]


@dataclass(frozen=True)
class ReadOptions:
    """How a file is read.

    Attributes
    ----------
    format : str or None
        A format's name; None goes by the file's extension.
    text_encoding : str or None
        How the bytes of a text format spell characters; None recognises it.
    header : bool
        Whether the first line of a CSV, TSV or Excel file holds the column names.
    sheet : str or None
        The sheet of a workbook; None is the first.
    skip_bad_rows : bool
        Leave out rows with too many or too few fields, instead of refusing the file.
    transpose : bool
        Whether the file's rows are columns, named by its first column.
    only : frozenset of str or None
        If given, columns beyond these need not be read.
    told : callable
        Hears what people should know, one sentence at a time.
    progress : callable or None
        Hears how many bytes were read.
    """

    format: str | None = None
    text_encoding: str | None = None
    header: bool = True
    sheet: str | None = None
    skip_bad_rows: bool = False
    transpose: bool = False
    only: frozenset[str] | None = None
    told: Told = lambda sentence: None
    progress: Callable[[int], None] | None = None


@dataclass(frozen=True)
class Columns:
    """The columns of one file.

    Attributes
    ----------
    path : str
        Where they come from, for messages.
    raw : dict of str to pyarrow array
        Columns as the file has them: texts, numbers, truth values or times.
    names : tuple of str
        Names of the columns of ``matrix``, for formats that hold one.
    matrix : ndarray or csr_array
        Columns that are numbers; NaN where a value is missing.
    target : ndarray or None
        Labels or values stored beside the matrix (npz, svmlight); known as ``y``.
    open_ended : bool
        The format does not write trailing or empty columns (svmlight): what is absent is zero.
    """

    path: str
    raw: dict[str, Any] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    matrix: Matrix | None = None
    target: np.ndarray | None = None
    open_ended: bool = False

    def __post_init__(self) -> None:
        if self.n_rows == 0:
            raise no_rows(self.path)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(next(iter(self.raw.values()))) if self.matrix is None else int(self.matrix.shape[0])

    @property
    def all_names(self) -> tuple[str, ...]:
        """Names of all columns, ``y`` last where it is stored beside them."""
        return (*self.names, *self.raw, *(() if self.target is None else ("y",)))

    @cached_property
    def texts(self) -> dict[str, Texts]:
        """The columns of texts, each read once however often it is looked at."""
        return {name: Texts(raw) for name, raw in self.raw.items() if pyarrow.types.is_string(raw.type)}

    def numbers(self, name: str) -> np.ndarray:
        """Return a column of the matrix."""
        assert self.matrix is not None
        column = self.matrix[:, [self.names.index(name)]]
        return np.asarray(column.toarray() if isinstance(column, csr_array) else column, dtype=float).ravel()


def no_rows(path: Path | str) -> TableError:
    """Return the error for a table without rows."""
    return TableError(path, "there are no rows in the table", "give a file with data below the header")


def different(names: Iterable[object]) -> list[str]:
    """Return names as texts, the second of a name with a suffix: price, price (2)."""
    found: dict[str, None] = {}
    for j, given in enumerate(names, start=1):
        name = first = " ".join(str("" if given is None else given).split()) or f"column {j}"
        for i in itertools.count(2):
            if name not in found:
                break
            name = f"{first} ({i})"
        found[name] = None
    return list(found)


def unknown_column(path: Path | str, name: str, names: Sequence[str], option: str) -> TableError:
    """Return the error for a name that no column has, with the nearest one that some has."""
    near = difflib.get_close_matches(name.casefold(), [other.casefold() for other in names], 1, 0.5)
    found = [other for other in names if near and other.casefold() == near[0]]
    words = f"did you mean {show(found[0])}" if found else f"the columns are {listing(tuple(names))}"
    fix, instead_of = ((option, found[0]), option) if found else ((), "")
    return TableError(path, f"there is no column {show(name)}", words, fix, instead_of)
