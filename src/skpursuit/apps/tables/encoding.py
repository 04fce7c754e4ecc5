"""From columns to a matrix of features, the same for new files as for the training file.

`fit_encoding` infers the kinds of the columns, applies them and extracts the target. The result is a
`TableEncoding`, stored with a model, which finds the columns of new files by name.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

import msgspec
import numpy as np
from scipy.sparse import csr_array, hstack, issparse

from .column_kinds import AnyKind, CellCounts, Date, Number, Ordinal, YesNo
from .columns import Matrix, RawTable
from .errors import TableProblem, attach_path, quote, quote_list, raise_problems
from .infer_kinds import EncodingOptions, infer_kinds
from .parsing import BOOLEAN_WORDS

#: More cells than this are held as a sparse matrix (a dense one would need more than 1 GiB).
DENSE_CELLS = 2**27
MAX_FEATURE = 1e100  # that a feature may have


@dataclass(frozen=True)
class EncodedTable:
    """A table ready for a solver."""

    X: Matrix  # one row per row of the file, one column per feature
    y: np.ndarray | None  # the target: numbers, or strings where the column held categories
    features: tuple[str, ...]  # names of the columns of X; an indicator is called ``column=category``
    encoding: TableEncoding  # what was done, to be done again to new files
    #: what was met in each column: missing cells, texts among numbers, unknown categories
    found: dict[str, CellCounts] = field(default_factory=dict)
    dropped: int = 0  # rows without a target, which are left out
    path: str = ""  # the file
    rows: np.ndarray | None = None  # the places of these rows in the file, None where they are all of it

    def take(self, rows: np.ndarray) -> EncodedTable:
        """Return some rows, column after column in memory if X is so: solvers gather columns."""
        X = self.X
        fortran = isinstance(X, np.ndarray) and X.flags.f_contiguous and not X.flags.c_contiguous
        part = np.take(X.T, rows, axis=1).T if fortran else X[rows]
        places = rows if self.rows is None else self.rows[rows]
        return replace(self, X=part, y=None if self.y is None else self.y[rows], rows=places)

    def dense(self, columns: list[int]) -> np.ndarray:
        """Return some columns of X as an array."""
        part = self.X[:, columns]
        return part.toarray() if isinstance(part, csr_array) else part

    def described(self) -> list[dict[str, str]]:
        """Say what each column was taken for, and what became of its missing cells, in words."""
        rows = []
        for kind in self.encoding.columns:
            met = self.found.get(kind.name, CellCounts())
            count = met.missing + met.strays
            words = [f"{count} cell{'s' * (count > 1)}", *kind.describe_missing()] if count else []
            words += [f"row {met.row} holds {met.cell[:20]!r}"] if met.strays else []
            row = {"column": kind.name, "kind": kind.kind, "taken for": kind.describe()}
            rows.append({**row, "missing": ", ".join(words)})
        return rows


class TableEncoding(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How columns become features: a plain value, stored with a model."""

    target: str | None  # name of the target column; it is never a feature
    columns: tuple[AnyKind, ...]  # what the other columns are, in the order of their features
    target_kind: AnyKind | None = None  # what the target is

    def __post_init__(self) -> None:
        if len({column.name for column in self.columns}) < len(self.columns):
            raise ValueError("a column is there twice")

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features."""
        return tuple(feature for column in self.columns for feature in column.features)

    @property
    def used(self) -> tuple[str, ...]:
        """Names of the columns that have features."""
        return tuple(column.name for column in self.columns if column.features)

    def apply(self, columns: RawTable) -> EncodedTable:
        """Encode columns, found by name in any order; columns the encoding does not know are ignored."""
        known, found = set(columns.all_names), dict[str, CellCounts]()
        with attach_path(columns.path):
            absent = [name for name in self.used if name not in known]
            if absent:
                raise columns.transposed_name(absent[0]) or TableProblem("columns missing", names=absent)
            parts = list[Matrix]()
            for kind in filter(lambda kind: kind.features, self.columns):
                encoded, found[kind.name] = kind.encode(columns.raw[kind.name])
                parts.append(encoded)
            met = [(kind, found.get(kind.name, CellCounts())) for kind in self.columns]
            raise_problems(problem for one in met for problem in _problems(*one))
        return EncodedTable(_join(parts, columns.n_rows), None, self.features, self, found, path=columns.path)

    def restrict(self, features: Iterable[str]) -> TableEncoding:
        """Return the part that some features need, so that a sparse model asks for its own columns only."""
        wanted = set(features)
        kept = tuple(column for column in self.columns if wanted & set(column.features))
        return TableEncoding(self.target, kept, self.target_kind)


def _problems(kind: AnyKind, met: CellCounts) -> Iterator[TableProblem]:
    """Yield what makes an encoded column useless."""
    refuses = getattr(kind, "fill", "") is None
    if met.missing and refuses:
        yield TableProblem("missing value", name=kind.name, row=met.first_missing)
    elif met.strays and refuses:
        yield TableProblem("stray value", name=kind.name, row=met.row, cell=met.cell)
    if met.strays and not met.matched:
        what = "dates" if isinstance(kind, Date) else kind.describe().replace("number", "numbers")
        yield TableProblem("other kind", name=kind.name, row=met.row, cell=met.cell, what=what)
    if met.unseen > 1 and not met.matched:
        levels = quote_list(getattr(kind, "levels", ("yes", "no")), 3)
        yield TableProblem("other categories", name=kind.name, levels=levels)


def fit_encoding(columns: RawTable, options: EncodingOptions) -> EncodedTable:
    """Learn an encoding from columns, apply it to them, and take the target out."""
    target = options.target or ""
    holding = [name for name in columns.all_names if target.casefold() in name.casefold()]
    if options.target is not None and target not in columns.all_names and len(holding) == 1:
        warnings.warn(f"{columns.path}: the target is {quote(holding[0])}", UserWarning, stacklevel=2)
        options, target = replace(options, target=holding[0]), holding[0]
    with attach_path(columns.path):
        raise_problems(unknown_names(columns, options))
        kinds = infer_kinds(columns.raw, replace(options, target=target))
        target_kind = kinds.pop(target)
        y, keep = extract_target(columns, target, target_kind, target in options.kinds)
        encoding = TableEncoding(target, tuple(kinds.values()), target_kind)
        if not encoding.features:
            told = "; ".join(f"{column.name} is {column.describe()}" for column in encoding.columns[:5])
            raise TableProblem("no features", told=told or "there is no other than the target")
    table = replace(encoding.apply(columns), y=y, dropped=int((~keep).sum()))
    with attach_path(columns.path):
        _check_range(table)
    return table if keep.all() else table.take(np.flatnonzero(keep))


def _check_range(table: EncodedTable) -> None:
    """Refuse features whose squares are beyond what a computer can add."""
    high, low = table.X.max(axis=0), table.X.min(axis=0)
    ends = (end.toarray().ravel() if issparse(end) else end for end in (high, -low))
    huge = np.flatnonzero(np.maximum(*ends) > MAX_FEATURE)
    if huge.size:
        raise TableProblem("huge feature", name=table.features[huge[0]], most=MAX_FEATURE)


def unknown_names(columns: RawTable, options: EncodingOptions) -> Iterator[TableProblem]:
    """Yield the problems of names that no column has."""
    names, target = columns.all_names, options.target
    if target is None:
        yield TableProblem("no target", names=names, last=names[-1])
    elif target not in names:
        yield columns.transposed_name(target) or columns.unknown(target, "target")
    for name, kind in options.kinds.items():
        if name not in names:
            drop = kind == "drop"
            yield columns.unknown(name, "drop" if drop else "column", "" if drop else f"={kind}")


def extract_target(
    columns: RawTable, name: str, kind: AnyKind, forced: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return the values of the target, and which rows have one."""
    column = columns.raw[name]
    if isinstance(kind, Date):
        raise TableProblem("target of dates", name=name)
    if isinstance(kind, Number | Ordinal):
        values, met = kind.values(column)
        if met.strays and not forced and column.is_text:
            raise TableProblem("target with texts", name=name, row=met.row, cell=met.cell, count=met.strays)
        keep = np.isfinite(values)
    else:
        codes, labels = (column.folded() if getattr(kind, "fold", False) else column).factorized
        if isinstance(kind, YesNo):
            said: dict[bool | None, str] = {True: kind.yes, False: kind.no}
            labels = [said.get(BOOLEAN_WORDS.get(label.casefold()), label) for label in labels]
        values, keep = np.array([*labels, ""], dtype=np.str_)[codes], codes >= 0
    if not keep.any():
        raise TableProblem("empty target", name=name)
    return values, keep


def _join(parts: list[Matrix], rows: int) -> Matrix:
    """Join parts side by side: dense where that fits in memory, unless a large part is sparse."""
    width = sum(part.shape[1] for part in parts)
    stored = sum(part.nnz if isinstance(part, csr_array) else part.size for part in parts)
    sparse = any(isinstance(part, csr_array) for part in parts)
    if sparse and rows * width > min(DENSE_CELLS, 20 * stored):
        return csr_array(hstack([csr_array(part) for part in parts], format="csr"))
    if len(parts) == 1 and not sparse:
        return parts[0]
    dense = [part.toarray() if isinstance(part, csr_array) else part for part in parts]
    whole = np.empty((rows, width), order="F")  # solvers gather columns
    return np.concatenate([whole[:, :0], *dense], axis=1, out=whole)
