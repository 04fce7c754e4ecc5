"""What a table file holds before it is encoded: numbers, categories, perhaps a target beside them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from scipy.sparse import csr_array

from .errors import TableError, listing
from .spelling import MISSING

Matrix: TypeAlias = np.ndarray | csr_array


@dataclass(frozen=True)
class Categorical:
    """A column of categories: ``labels[codes[i]]``, where the code -1 is a missing value."""

    codes: np.ndarray
    labels: tuple[str, ...]

    @classmethod
    def from_strings(cls, values: Iterable[str]) -> Categorical:
        """Code a stream of strings; labels are sorted, surrounding blanks do not count."""
        seen: dict[str, int] = {}
        codes = np.fromiter((_code(value.strip(), seen) for value in values), dtype=np.int64)
        return cls(codes, tuple(seen)).sorted()

    def sorted(self) -> Categorical:
        """Return the same column with its labels in order and those never used left out."""
        used = sorted({self.labels[code] for code in np.unique(self.codes) if code >= 0})
        place = {label: i for i, label in enumerate(used)}
        recode = np.array([place.get(label, -1) for label in self.labels] + [-1], dtype=np.int64)
        return Categorical(recode[self.codes], tuple(used))

    def values(self) -> np.ndarray:
        """Return the labels, row by row (missing values as empty strings)."""
        return np.array([*self.labels, ""], dtype=np.str_)[self.codes]


def _code(value: str, seen: dict[str, int]) -> int:
    return -1 if value in MISSING else seen.setdefault(value, len(seen))


@dataclass(frozen=True)
class Columns:
    """The columns of one file.

    Attributes
    ----------
    path : str
        Where they come from, for messages.
    names : tuple of str
        Names of the numeric columns, those of ``matrix``.
    matrix : ndarray or csr_array
        The numeric columns; NaN where a value is missing.
    categorical : dict of str to Categorical
        The other columns, by name.
    target : ndarray or None
        Labels or values stored beside the matrix (npz, svmlight); known as ``y``.
    open_ended : bool
        The format does not write trailing or empty columns (svmlight): what is absent is zero.
    """

    path: str
    names: tuple[str, ...]
    matrix: Matrix
    categorical: dict[str, Categorical] = field(default_factory=dict)
    target: np.ndarray | None = None
    open_ended: bool = False

    def __post_init__(self) -> None:
        check_names(self.path, [*self.names, *self.categorical])
        if self.matrix.shape[0] == 0:
            raise TableError(self.path, "the table has no rows", "give a file with data below the header")

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.matrix.shape[0])

    @property
    def all_names(self) -> tuple[str, ...]:
        """Names of all columns, the numeric ones first, ``y`` last where it is stored beside them."""
        beside = () if self.target is None else ("y",)
        return (*self.names, *self.categorical, *beside)


def check_names(path: str, names: Sequence[str]) -> None:
    """Refuse names that occur twice: a column could not be told from its double."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise TableError(path, f"column names occur more than once: {listing(twice)}", "rename the columns")
