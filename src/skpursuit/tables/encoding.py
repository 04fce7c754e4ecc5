"""From columns to a matrix of features, the same way for new files as for the one it was learned from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow
from scipy.sparse import csr_array, hstack

from .columns import Columns, Matrix, unknown_column
from .errors import TableError, listing, raise_all, show
from .guessing import EncodingOptions, guess_kinds
from .kinds import NO, YES, Category, Date, Found, Kind, LeftOut, Number, YesNo, as_texts, kind_from_dict

#: More cells than this are held as a sparse matrix (a dense one would need more than 1 GiB).
DENSE_CELLS = 2**27


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
    found : dict of str to Found
        What was met in each column: missing cells, texts among numbers, unknown categories.
    dropped : int
        Rows without a target, which are left out.
    """

    X: Matrix
    y: np.ndarray | None
    features: tuple[str, ...]
    encoding: Encoding
    found: dict[str, Found] = field(default_factory=dict)
    dropped: int = 0


@dataclass(frozen=True)
class Encoding:
    """How columns become features: a plain value, stored with a model.

    Attributes
    ----------
    target : str or None
        Name of the target column; it is never a feature.
    columns : tuple of Kind
        What the other columns are, in the order of their features.
    target_kind : Kind or None
        What the target is, where it is a column of texts or types.
    """

    target: str | None
    columns: tuple[Kind, ...]
    target_kind: Kind | None = None

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features."""
        return tuple(feature for column in self.columns for feature in column.features)

    @property
    def used(self) -> tuple[str, ...]:
        """Names of the columns that have features."""
        return tuple(column.name for column in self.columns if column.features)

    def apply(self, columns: Columns) -> Table:
        """Encode columns, found by name in any order; columns the encoding does not know are ignored."""
        known = set(columns.all_names)
        absent = [] if columns.open_ended else [name for name in self.used if name not in known]
        if absent:
            problem = f"columns that the model needs are missing: {listing(absent)}"
            raise TableError(columns.path, problem, "add them (any order; other columns are ignored)")
        found: dict[str, Found] = {}
        parts = [*self._parts(columns, found)]
        raise_all(problem for column in self.columns for problem in _problems(columns.path, column, found))
        return Table(_join(parts, columns.n_rows), None, self.features, self, found)

    def _parts(self, columns: Columns, found: dict[str, Found]) -> Iterator[Matrix]:
        """Yield the features of all columns; those that a matrix holds as numbers come together."""
        place = {name: j for j, name in enumerate(columns.names)}
        waiting: list[Number] = []
        for column in self.columns:
            plain = isinstance(column, Number) and not column.flag and column.name not in columns.raw
            if waiting and not plain:
                yield _block(columns, place, waiting, found)
                waiting = []
            if plain:
                waiting.append(column)  # type: ignore[arg-type]
            elif column.features:
                encoded, found[column.name] = column.encode(_raw(columns, column.name))
                yield encoded
        if waiting:
            yield _block(columns, place, waiting, found)

    def restrict(self, features: Iterable[str]) -> Encoding:
        """Return the part that some features need, so that a sparse model asks for its own columns only."""
        wanted = set(features)
        return replace(self, columns=tuple(c for c in self.columns if wanted & set(c.features)))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        kind = None if self.target_kind is None else self.target_kind.to_dict()
        return {"target": self.target, "target_kind": kind, "columns": [c.to_dict() for c in self.columns]}

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> Encoding:
        """Undo `to_dict`; KeyError, TypeError or ValueError if parts are missing or wrong."""
        target = stored["target"]
        if not isinstance(target, str | None):
            raise TypeError("a target is a name")
        if "numeric" in stored:
            return cls(target, _first_format(stored))
        kind = stored["target_kind"]
        made = cls(target, tuple(map(kind_from_dict, stored["columns"])), kind and kind_from_dict(kind))
        if len({column.name for column in made.columns}) < len(made.columns):
            raise ValueError("a column is there twice")
        return made


def _first_format(stored: dict[str, Any]) -> tuple[Kind, ...]:
    """Return the columns of a model that was written when there were numbers and categories only."""
    fill = stored["fill"] or {}
    numbers = [{"kind": "number", "name": name, "fill": fill.get(name)} for name in stored["numeric"]]
    categories = [
        {"kind": "category", "name": name, "levels": levels, "shown": levels, "fill": fill.get(name)}
        for name, levels in stored["categories"].items()
    ]
    for column in categories:
        if not isinstance(column["levels"], list) or (fill and column["fill"] not in column["levels"]):
            raise ValueError("missing values can only be filled by known categories")
    if fill and None in [column["fill"] for column in numbers]:
        raise ValueError("missing values can only be filled by numbers")
    return tuple(map(kind_from_dict, (*numbers, *categories)))


def _raw(columns: Columns, name: str) -> Any:
    """Return a column as pyarrow has it, wherever it is kept; zeros where the format left it out."""
    if name in columns.raw:
        return columns.texts.get(name, columns.raw[name])
    values = columns.numbers(name) if name in columns.names else np.zeros(columns.n_rows)
    return pyarrow.array(values, mask=np.isnan(values))


def _block(columns: Columns, place: dict[str, int], wanted: list[Number], found: dict[str, Found]) -> Matrix:
    """Return some columns of the file's matrix, with what is missing filled."""
    there = [(place[column.name], new) for new, column in enumerate(wanted) if column.name in place]
    matrix = columns.matrix
    old, new = (np.array([pair[i] for pair in there], dtype=np.int64) for i in (0, 1))
    if isinstance(matrix, csr_array):
        chosen = csr_array((np.ones(len(there)), (old, new)), shape=(matrix.shape[1], len(wanted)))
        block = (
            matrix
            if len(there) == matrix.shape[1] == len(wanted) and (old == new).all()
            else csr_array(matrix @ chosen)
        )
        bad: Any = np.flatnonzero(~np.isfinite(block.data))
        rows, cols = np.searchsorted(block.indptr, bad, side="right") - 1, block.indices[bad]
        values = block.data
    else:
        block = (
            np.zeros((columns.n_rows, len(wanted)))
            if matrix is None
            else matrix[:, old].astype(float, copy=True)
        )
        rows, cols = np.nonzero(~np.isfinite(block))
        bad, values = (rows, cols), block
    for j in np.unique(cols).tolist():
        at = rows[cols == j]
        found[wanted[j].name] = Found(missing=len(at), first_missing=int(at.min()) + 1)
    if len(cols):
        fills = np.array([np.nan if column.fill is None else column.fill for column in wanted])
        values = values.copy()
        values[bad] = fills[cols]
        block = (
            csr_array((values, block.indices, block.indptr), shape=block.shape)
            if isinstance(block, csr_array)
            else values
        )
    return block


def _problems(path: str, column: Kind, found: dict[str, Found]) -> Iterator[TableError]:
    """Yield what makes an encoded column useless."""
    met = found.get(column.name, Found())
    where = f"column {show(column.name)}, row"
    if met.missing and getattr(column, "fill", "") is None:
        remedy = "fill it in, or leave out --no-impute to have missing values filled"
        yield TableError(
            path, f"{where} {met.first_missing}: the value is missing", remedy, (), "--no-impute"
        )
    if met.strays and not met.matched:
        what = (
            "dates"
            if isinstance(column, Date)
            else column.words()
            if isinstance(column, Number)
            else "numbers"
        )
        what = what.replace("number", "numbers")
        yield TableError(
            path, f"{where} {met.row}: {show(met.cell)} where the model expects {what}", "correct the column"
        )
    if met.unseen > 1 and not met.matched and isinstance(column, Category | YesNo):
        levels = listing(getattr(column, "levels", ("yes", "no")), 3)
        problem = f"column {show(column.name)} holds none of the categories of the model ({levels})"
        yield TableError(path, problem, "spell them as the file did that the model was fitted to")


def learn(columns: Columns, options: EncodingOptions, given: Encoding | None = None) -> Table:
    """Learn an encoding from columns (or take a given one), apply it to them, and take the target out."""
    raise_all(_unknown_names(columns, options))
    target = options.target or "y"
    said = [name for name in columns.names if name in options.kinds and name != target]
    moved = {name: _raw(columns, name) for name in said}
    kinds = guess_kinds({**moved, **columns.raw, **columns.texts}, replace(options, target=target))
    target_kind = kinds.pop(target, None)
    y, keep = _target(columns, target, target_kind, target in options.kinds)
    if given is None:
        block = _block_kinds(columns, {*said, target}, options.impute)
        given = Encoding(target, (*block, *kinds.values()), target_kind)
    else:
        given = replace(given, target=target, target_kind=target_kind)
    if not given.features:
        told = "; ".join(f"{column.name}: {column.words()}" for column in given.columns[:5])
        problem = f"no column is left beside the target ({told or 'there is no other'})"
        raise TableError(columns.path, problem, "give a table with features, or say what they are (--column)")
    table = given.apply(columns)
    if keep.all():
        return replace(table, y=y)
    return replace(table, X=table.X[keep], y=y[keep], dropped=int((~keep).sum()))


def _unknown_names(columns: Columns, options: EncodingOptions) -> Iterator[TableError]:
    names, target = columns.all_names, options.target
    if target is None and columns.target is None:
        yield TableError(
            columns.path,
            "it is not said which column is the target",
            f"name it: {listing(names)}",
            ("--target", names[-1]),
        )
    elif target is not None and target not in names:
        first = next(iter(columns.raw.values()), pyarrow.array([]))
        if target in first.slice(0, 10**5).to_pylist():
            problem = f"{show(target)} is the name of a row, not of a column"
            yield TableError(columns.path, problem, "turn rows into columns", ("--transpose",))
        else:
            yield unknown_column(columns.path, target, names, "--target")
    for name, kind in options.kinds.items():
        if name not in names and not columns.open_ended:
            error = unknown_column(columns.path, name, names, "--drop" if kind == "drop" else "--column")
            fix = (
                ()
                if not error.fix
                else error.fix
                if kind == "drop"
                else ("--column", f"{error.fix[1]}={kind}")
            )
            yield TableError(columns.path, error.problem, error.remedy, fix, f"{name}={kind}")


def _target(columns: Columns, name: str, kind: Kind | None, forced: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the values of the target, and which rows have one."""
    if name not in columns.raw:
        beside = columns.target is not None and name not in columns.names
        values = np.asarray(columns.target) if beside else columns.numbers(name)
        keep = np.isfinite(values) if values.dtype.kind == "f" else np.asarray(values.astype(str) != "")
        return values, _some(columns, name, keep)
    raw = _raw(columns, name)
    if isinstance(kind, Number):
        values, met = kind.values(raw)
        if met.strays and not forced:
            problem = f"target {show(name)}, row {met.row}: {show(met.cell)} is not a number"
            remedy = f"correct {met.strays} such cells, or leave their rows out"
            raise TableError(columns.path, problem, remedy, ("--column", f"{name}=number"))
        return values, _some(columns, name, np.isfinite(values))
    if isinstance(kind, Date):
        problem = f"the target {show(name)} holds dates"
        raise TableError(
            columns.path, problem, "give another target (--target), or the days between two dates"
        )
    codes, labels = as_texts(raw).coded
    if isinstance(kind, YesNo):
        labels = _one_spelling(codes, labels)
    return np.array([*labels, ""], dtype=np.str_)[codes], _some(columns, name, codes >= 0)


def _some(columns: Columns, name: str, keep: np.ndarray) -> np.ndarray:
    if not keep.any():
        raise TableError(columns.path, f"the target {show(name)} is empty", "give another target (--target)")
    return keep


def _one_spelling(codes: np.ndarray, labels: list[str]) -> list[str]:
    """Return labels where all that mean yes are spelled as most of them are, and so for no."""
    counts = np.bincount(codes[codes >= 0], minlength=len(labels))
    best: dict[int, str] = {}
    for words in (YES, NO):
        own = [i for i, label in enumerate(labels) if label.casefold() in words]
        best |= dict.fromkeys(own, labels[max(own, key=lambda i: counts[i])] if own else "")
    return [best.get(i, label) for i, label in enumerate(labels)]


def _block_kinds(columns: Columns, without: set[str], impute: bool) -> list[Kind]:
    """Return the columns of a file's matrix as numbers, each with its median for what is missing."""
    matrix = columns.matrix
    if matrix is None:
        return []
    if isinstance(matrix, csr_array):
        by_column = matrix.tocsc()
        dense = np.diff(by_column.indptr) * 2 >= matrix.shape[0]
        dense[by_column.nonzero()[1][np.isnan(by_column.data[by_column.data != 0])]] = True
        medians = np.zeros(matrix.shape[1])
        for j in np.flatnonzero(dense):
            medians[j] = np.nanmedian(columns.numbers(columns.names[j])) if j < len(medians) else 0.0
    else:
        known = np.isfinite(matrix).any(axis=0)
        medians = np.full(matrix.shape[1], np.nan)
        medians[known] = np.nanmedian(
            np.where(np.isfinite(matrix[:, known]), matrix[:, known], np.nan), axis=0
        )
    return [
        LeftOut(name, "empty") if np.isnan(median) else Number(name, fill=median if impute else None)
        for name, median in zip(columns.names, medians.tolist())
        if name not in without
    ]


def _join(parts: list[Matrix], rows: int) -> Matrix:
    """Join parts side by side: dense where that fits in memory, unless a large part is sparse."""
    width = sum(part.shape[1] for part in parts)
    stored = sum(part.nnz if isinstance(part, csr_array) else part.size for part in parts)
    sparse = any(isinstance(part, csr_array) for part in parts)
    if len(parts) == 1 and not (sparse and rows * width <= min(DENSE_CELLS, 20 * stored)):
        return parts[0]
    if sparse and (rows * width > DENSE_CELLS or rows * width > 20 * stored):
        return csr_array(hstack([csr_array(part) for part in parts], format="csr"))
    joined = np.empty((rows, width), order="F")  # solvers gather columns
    at = 0
    for part in parts:
        joined[:, at : at + part.shape[1]] = part.toarray() if isinstance(part, csr_array) else part
        at += part.shape[1]
    return joined
