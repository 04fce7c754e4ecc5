"""From columns to a matrix: one-hot categories and filled gaps, remembered for new files."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

import numpy as np
from scipy.sparse import csr_array, hstack

from .columns import Categorical, Columns, Matrix, check_names
from .errors import TableError, listing, show
from .missing import check_finite, column_means, fill_missing
from .options import unknown_column
from .spelling import value_of, values_of

logger = logging.getLogger(__name__)

#: More cells than this are held as a sparse matrix (a dense one would need more than 1 GiB).
DENSE_CELLS = 2**27

_GAP_NOW = "fill it in, drop the column (--drop), or impute (--impute)"
_GAP_LATER = "fill it in, or fit the model again with --impute"


@dataclass(frozen=True)
class Table:
    """A table ready for a solver.

    Attributes
    ----------
    X : ndarray or csr_array of float64
        One row per row of the file, one column per feature.
    y : ndarray or None
        The target: numbers, or strings where the column held categories.
    features : tuple of str
        Names of the columns of X; an indicator is called ``column=category``.
    encoding : Encoding
        What was done, to be done again to new files.
    unseen : dict of str to int
        Rows per categorical column whose category the encoding does not know: all its indicators are 0.
    """

    X: Matrix
    y: np.ndarray | None
    features: tuple[str, ...]
    encoding: Encoding
    unseen: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Encoding:
    """How columns become features: a plain value, stored with a model.

    Attributes
    ----------
    target : str or None
        Name of the target column; it is never a feature.
    numeric : tuple of str
        Columns that are features as they are.
    categories : dict of str to tuple of str
        Columns that become one indicator per category.
    fill : dict or None
        What a missing value is replaced by, per column: the mean, or the most frequent category. None: error.
    """

    target: str | None
    numeric: tuple[str, ...]
    categories: dict[str, tuple[str, ...]]
    fill: dict[str, float | str] | None = None

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features, numeric ones first."""
        indicators = [f"{name}={label}" for name, labels in self.categories.items() for label in labels]
        return (*self.numeric, *indicators)

    def apply(self, columns: Columns) -> Table:
        """Encode columns, found by name in any order; columns the encoding does not know are ignored."""
        return self._apply(columns, _GAP_LATER)

    def _apply(self, columns: Columns, gap_remedy: str) -> Table:
        self._check_present(columns)
        columns = self._with_numbers(columns)
        numbers = _pick(columns, self.numeric)
        numbers = fill_missing(columns.path, numbers, self.numeric, self.fill)
        check_finite(columns.path, numbers, self.numeric, gap_remedy)
        coded = {name: self._codes(columns, name, gap_remedy) for name in self.categories}
        unseen = {name: count for name, (_, count) in coded.items() if count}
        for name, count in unseen.items():
            logger.warning("%s: %d rows of column %r hold unknown categories", columns.path, count, name)
        indicators = [_indicators(codes, len(self.categories[name])) for name, (codes, _) in coded.items()]
        return Table(_join(numbers, indicators), None, self.features, self, unseen)

    def restrict(self, features: Iterable[str]) -> Encoding:
        """Return the part that some features need, so that a sparse model asks for its own columns only."""
        wanted = set(features)
        used = {
            name: labels
            for name, labels in self.categories.items()
            if any(f"{name}={label}" in wanted for label in labels)
        }
        numeric = tuple(name for name in self.numeric if name in wanted)
        fill = None if self.fill is None else {name: self.fill[name] for name in (*numeric, *used)}
        return replace(self, numeric=numeric, categories=used, fill=fill)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        categories = {name: list(labels) for name, labels in self.categories.items()}
        return {
            "target": self.target,
            "numeric": list(self.numeric),
            "categories": categories,
            "fill": self.fill,
        }

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> Encoding:
        """Undo `to_dict`; KeyError, TypeError or ValueError if parts are missing or wrong."""
        target, numeric, fill = stored["target"], _strings(stored["numeric"]), stored["fill"]
        categories = {str(name): _strings(labels) for name, labels in stored["categories"].items()}
        if not isinstance(target, str | None) or not isinstance(fill, dict | None):
            raise TypeError("a target is a name, fillings are by name")
        if fill is not None:
            known = all(fill[name] in labels for name, labels in categories.items())
            if not (known and np.isfinite([fill[name] for name in numeric]).all()):
                raise ValueError("missing values can only be filled by numbers and known categories")
        return cls(target, numeric, categories, fill)

    def _check_present(self, columns: Columns) -> None:
        known = set(columns.all_names)
        wanted = [*self.categories] if columns.open_ended else [*self.numeric, *self.categories]
        absent = [name for name in wanted if name not in known]
        if absent:
            problem = f"columns that the model needs are missing: {listing(absent)}"
            raise TableError(columns.path, problem, "add them (any order; other columns are ignored)")

    def _with_numbers(self, columns: Columns) -> Columns:
        """Return the columns; where numbers are expected, categories that all spell one become such."""
        texts = [name for name in self.numeric if name in columns.categorical]
        if not texts:
            return columns
        numbers = [_numbers_of(columns.path, name, columns.categorical[name]) for name in texts]
        return replace(
            columns,
            names=(*columns.names, *texts),
            matrix=_join(columns.matrix, [csr_array(values[:, None]) for values in numbers]),
            categorical={name: c for name, c in columns.categorical.items() if name not in texts},
        )

    def _codes(self, columns: Columns, name: str, gap_remedy: str) -> tuple[np.ndarray, int]:
        """Return the codes of a column among the known categories (-1: unknown), and how many are unknown."""
        column, known = columns.categorical[name], self.categories[name]
        missing = column.codes < 0
        if missing.any() and self.fill is None:
            row = int(np.argmax(missing)) + 1
            problem = f"column {show(name)}, row {row}: the value is missing"
            raise TableError(columns.path, problem, gap_remedy)
        default = -1 if self.fill is None else known.index(str(self.fill[name]))
        codes = np.array([*_places(column.labels, known), default])[column.codes]
        if np.all(codes < 0) and len(np.unique(column.codes)) > 1:  # not just a new one
            problem = f"column {show(name)} holds none of the categories of the model ({listing(known, 3)})"
            raise TableError(columns.path, problem, "spell them as the file did that the model was fitted to")
        return codes, int(np.sum(codes < 0))


@dataclass(frozen=True)
class EncodingOptions:
    """Choices made when an encoding is learned.

    Attributes
    ----------
    target : str or None
        The target column; None takes the ``y`` stored beside the matrix.
    impute : bool
        Fill missing values instead of refusing them.
    max_categories : int
        A column with more categories is taken for an identifier and refused.
    """

    target: str | None = None
    impute: bool = False
    max_categories: int = 1000


def learn(columns: Columns, options: EncodingOptions) -> Table:
    """Learn an encoding from columns, apply it to them, and take the target out."""
    y, target = take_target(columns, options.target)
    numeric = tuple(name for name in columns.names if name != target)
    kept = {name: column for name, column in columns.categorical.items() if name != target}
    for name, column in kept.items():
        _check_categories(columns.path, name, column, options.max_categories)
    if not numeric and not kept:
        raise TableError(columns.path, "no column is left beside the target", "give a table with features")
    fill: dict[str, float | str] | None = None
    if options.impute:
        fill = dict(column_means(columns.path, _pick(columns, numeric), numeric))
        fill.update({name: _most_frequent(column) for name, column in kept.items()})
    encoding = Encoding(target, numeric, {name: column.labels for name, column in kept.items()}, fill)
    check_names(columns.path, encoding.features)
    return replace(encoding._apply(columns, _GAP_NOW), y=y)


def take_target(columns: Columns, name: str | None) -> tuple[np.ndarray, str]:
    """Return the target's values and its name."""
    if columns.target is not None and name in (None, "y") and "y" not in columns.names:
        values, name = columns.target, "y"
    elif name is None:
        remedy = f"name it (--target): {listing(columns.all_names)}"
        raise TableError(columns.path, "it is not said which column is the target", remedy)
    else:
        if name not in columns.all_names:
            raise unknown_column(columns.path, name, columns.all_names)
        values = _target_column(columns, name)
    bad = ~np.isfinite(values) if values.dtype.kind in "fc" else np.asarray(values == "")
    if bad.any():
        problem = f"target {show(name)}, row {int(np.argmax(bad)) + 1}: the value is missing or infinite"
        raise TableError(columns.path, problem, "remove such rows (a target is never imputed)")
    return values, name


def _target_column(columns: Columns, name: str) -> np.ndarray:
    if name in columns.categorical:
        return columns.categorical[name].values()
    column = columns.matrix[:, [columns.names.index(name)]]
    return np.asarray(column.toarray() if isinstance(column, csr_array) else column).ravel()


def _check_categories(path: str, name: str, column: Categorical, limit: int) -> None:
    if not column.labels:
        raise TableError(path, f"column {show(name)} is empty", f"drop it (--drop {name})")
    if len(column.labels) > limit:
        problem = f"column {show(name)} has {len(column.labels)} different texts, as an identifier has"
        raise TableError(
            path, problem, f"drop it (--drop {name}), or turn it into numbers or fewer categories"
        )


def _strings(values: Any) -> tuple[str, ...]:
    if not (isinstance(values, list) and all(isinstance(value, str) for value in values)):
        raise ValueError(f"a list of strings is needed, not {show(values)}")
    return tuple(values)


def _places(labels: Sequence[str], known: Sequence[str]) -> list[int]:
    """Return where labels are among the known ones, -1 if nowhere.

    Formats differ in how they write a number or a truth value (1 and 1.0, true and 1): where all known labels
    spell values, and no two of them the same, a label that is not among them goes by its value.
    """
    place = {label: i for i, label in enumerate(known)}
    values: dict[Decimal | None, int] = {value: i for i, value in enumerate(values_of(known) or ())}
    return [place[label] if label in place else values.get(value_of(label), -1) for label in labels]


def _numbers_of(path: str, name: str, column: Categorical) -> np.ndarray:
    """Return a column of categories as the numbers that its labels spell."""
    values = [value_of(label) for label in column.labels]
    texts = np.array([*(value is None for value in values), False])[column.codes]
    if texts.any():
        row = int(np.argmax(texts))
        text = column.labels[column.codes[row]]
        problem = f"column {show(name)}, row {row + 1}: {show(text)} where the model expects numbers"
        raise TableError(path, problem, "correct the column")
    return np.array([*values, np.nan], dtype=np.float64)[column.codes]


def _most_frequent(column: Categorical) -> str:
    counts = np.bincount(column.codes[column.codes >= 0], minlength=len(column.labels))
    return column.labels[int(np.argmax(counts))]


def _pick(columns: Columns, names: tuple[str, ...]) -> Matrix:
    """Return some numeric columns by name; those that an open-ended format left out are zero."""
    if names == columns.names:
        return columns.matrix
    place = {name: j for j, name in enumerate(columns.names)}
    if not isinstance(columns.matrix, csr_array):
        return columns.matrix[:, [place[name] for name in names]]
    found = [(place[name], new) for new, name in enumerate(names) if name in place]
    rows, new = (np.array([pair[i] for pair in found], dtype=np.int64) for i in (0, 1))
    shape = (len(columns.names), len(names))
    return csr_array(columns.matrix @ csr_array((np.ones(len(found)), (rows, new)), shape=shape))


def _indicators(codes: np.ndarray, n_labels: int) -> csr_array:
    rows = np.flatnonzero(codes >= 0)
    return csr_array((np.ones(rows.size), (rows, codes[rows])), shape=(codes.size, n_labels))


def _join(numbers: Matrix, indicators: list[csr_array]) -> Matrix:
    if not indicators:
        return numbers
    width = numbers.shape[1] + sum(part.shape[1] for part in indicators)
    if isinstance(numbers, csr_array) or numbers.shape[0] * width > DENSE_CELLS:
        return csr_array(hstack([csr_array(numbers), *indicators], format="csr"))
    return np.hstack([numbers, *(part.toarray() for part in indicators)])
