"""A table file before interpretation: named columns, and the options of reading.

A `RawColumn` holds the values of the file and converts them to numbers, days or category codes on request;
`infer_kinds` decides what it is.
"""

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
import pyarrow.compute as pc
from scipy.sparse import csr_array

from skpursuit.data.options import available_memory

from . import parsing
from .errors import TableProblem, quote

Matrix: TypeAlias = np.ndarray | csr_array

LARGE_TABLE_BYTES = 1e9  # bytes of memory that a table unpacks to, from which it is told
MAX_TOTALS = 3  # last rows, such as a total and an average


@dataclass(frozen=True)
class ReadOptions:
    """How a file is read."""

    format: str | None = None  # a format's name; None goes by the file's extension
    text_encoding: str | None = None  # how the bytes of a text format spell characters; None recognises it
    header: bool = True  # whether the first line of a CSV, TSV or Excel file holds the column names
    sheet: str | None = None  # the sheet of a workbook; None is the first
    #: leave out rows with too many or too few fields, instead of refusing the file
    skip_bad_rows: bool = False
    line_breaks: bool = False  # whether any number of cells of a CSV or TSV file may hold line breaks
    keep_total: bool = False  # keep a last row of totals in a CSV, TSV or Excel file
    transpose: bool = False  # whether the file's rows are columns, named by its first column
    only: frozenset[str] | None = None  # if given, columns beyond these need not be read
    #: hears what people should know, one sentence at a time
    notify: Callable[[str], None] = lambda sentence: None

    def check_room(self, nbytes: float, tell: bool = True) -> None:
        """Refuse what a file unpacks to where there is not so much memory, and tell it where it is much."""
        if nbytes > (free := available_memory()):
            raise TableProblem("too large", size=nbytes / 1e9, free=free / 1e9)
        if tell and nbytes > LARGE_TABLE_BYTES:
            self.notify(f"it unpacks to {nbytes / 1e9:.1f} GB, which takes its time")


class RawColumn:
    """A column as a file has it (texts, numbers, truth values or times), and what it can be read as.

    Everything that is found out about it is kept, because several guesses look at the same column.
    """

    def __init__(self, values: pyarrow.Array | pyarrow.ChunkedArray, unit: str = ""):
        self.values = values.combine_chunks() if isinstance(values, pyarrow.ChunkedArray) else values
        self.type = self.values.type
        self.is_text = bool(pyarrow.types.is_string(self.type))
        self.unit = unit  # that the file names once, for the whole column

    def __len__(self) -> int:
        return len(self.values)

    def cell(self, row: int) -> str:
        """Return one cell as a text, as it was given."""
        return str(self.values[row].as_py())

    def to_pylist(self) -> list[Any]:
        """Return the cells as they were given."""
        return self.values.to_pylist()

    def head(self, rows: int) -> list[str]:
        """Return the texts of the first rows that have one."""
        return [text for text in RawColumn(self.values.slice(0, rows)).texts.to_pylist() if text]

    @cached_property
    def texts(self) -> pyarrow.Array:
        """The column as trimmed texts, null where a value is missing; numbers as files write them."""
        if pyarrow.types.is_floating(self.type):
            known = (None if v is None or v != v else v for v in self.to_pylist())
            whole = (int(v) if v is not None and v.is_integer() and abs(v) < 2**63 else v for v in known)
            return pyarrow.array([None if v is None else str(v) for v in whole], pyarrow.string())
        if not self.is_text:
            return self.values.cast(pyarrow.string())
        trimmed = pc.utf8_trim_whitespace(self.values)
        missing = pc.is_in(pc.utf8_lower(trimmed), pyarrow.array(parsing.MISSING))
        return pc.if_else(missing, pyarrow.scalar(None, pyarrow.string()), trimmed)

    @cached_property
    def n_known(self) -> int:
        """How many values are not missing."""
        return len(self) - (self.texts if self.is_text else self.values).null_count

    @cached_property
    def factorized(self) -> tuple[np.ndarray, list[str]]:
        """Codes (-1: missing) and the different texts, in the order they come."""
        found = self.texts.dictionary_encode()
        codes = found.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        return codes, found.dictionary.to_pylist()

    def folded(self) -> RawColumn:
        """Return the column with labels that differ in case or blanks spelled as most of them are."""
        codes, labels = self.factorized
        best: dict[str, str] = {}
        for i in np.argsort(-self.counts, kind="stable").tolist():
            best.setdefault(parsing.folded(labels[i]), labels[i])
        spelled = [*(best[parsing.folded(label)] for label in labels), None]
        return RawColumn(pyarrow.array([spelled[code] for code in codes.tolist()], pyarrow.string()))

    @cached_property
    def counts(self) -> np.ndarray:
        """How often each of the different texts comes."""
        codes, labels = self.factorized
        return np.bincount(codes[codes >= 0], minlength=len(labels))

    @cached_property
    def plain_numbers(self) -> np.ndarray | None:
        """The column as numbers if all of it is plain ones, or empty; else None."""
        given = self.values
        first = given[0].as_py() if len(given) else None
        if first and first[0] not in "+-.0123456789nN":  # mostly: before a whole column is looked at
            return None
        found = _cast(given)
        if found is None:
            found = _cast(pc.if_else(pc.equal(given, ""), pyarrow.scalar(None, pyarrow.string()), given))
        return None if found is None or np.isinf(found).any() else found

    @cached_property
    def _typed(self) -> tuple[np.ndarray, np.ndarray]:
        """The numbers of a column that is not text, and where they are infinite."""
        given = self.values
        if self.type != pyarrow.float64():
            given = pc.cast(given, pyarrow.float64(), safe=False)
        values = given.to_numpy(zero_copy_only=False)
        infinite = np.isinf(values)
        return (np.where(infinite, np.nan, values) if infinite.any() else values), infinite

    def numbers(self, decimal: str = ".", unit: str = "") -> tuple[np.ndarray, np.ndarray]:
        """Return the column as numbers, NaN where there is none, and where some other text is instead."""
        if not self.is_text:
            return self._typed
        plain = None if unit else self.plain_numbers
        if plain is not None and (decimal == "." or not pc.any(pc.match_substring(self.values, ".")).as_py()):
            return plain, np.zeros(len(self), dtype=bool)
        return parsing.parse_numbers(self.texts, decimal, unit)

    def units(self, decimal: str) -> list[str]:
        """Return the signs and units that numbers carry here, the most frequent first; "" is none."""
        counts: dict[str, int] = {}
        labels = self.factorized[1][:2000] if self.is_text else []
        for label, count in zip(labels, self.counts.tolist()):
            if (unit := parsing.unit_of(label, decimal)) is not None:
                counts[unit] = counts.get(unit, 0) + count
        return sorted(counts, key=lambda unit: -counts[unit])

    def days(self, order: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the column as days since 1970 (NaN: none), and where some other text is instead."""
        if not self.is_text:
            moments = pc.cast(self.values, pyarrow.timestamp("us"), safe=False).to_numpy(zero_copy_only=False)
            days = moments.astype("M8[us]").astype("int64") / 86_400e6
            return np.where(np.isnat(moments), np.nan, days), np.zeros(len(self), dtype=bool)
        codes, labels = self.factorized
        days = np.array([*(parsing.parse_days(label, order) for label in labels), np.nan])[codes]
        return days, np.isnan(days) & (codes >= 0)


def _cast(texts: pyarrow.Array) -> np.ndarray | None:
    """Return texts as numbers, None if one is not."""
    try:
        return pc.cast(texts, pyarrow.float64()).to_numpy(zero_copy_only=False)
    except pyarrow.ArrowInvalid:
        return None


@dataclass(frozen=True)
class RawTable:
    """The columns of one file."""

    path: str  # where they come from, for messages
    raw: dict[str, RawColumn] = field(default_factory=dict)  # columns as the file has them

    def __post_init__(self) -> None:
        if self.n_rows == 0:
            raise TableProblem("no rows")

    @classmethod
    def of(
        cls,
        path: str | Path,
        names: Iterable[object],
        arrays: Iterable[pyarrow.Array],
        units: Iterable[str] = itertools.repeat(""),
    ) -> RawTable:
        """Return columns of pyarrow arrays, their names made different."""
        return cls(str(path), dict(zip(unique_names(names), map(RawColumn, arrays, units))))

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(next(iter(self.raw.values()), ()))

    @property
    def all_names(self) -> tuple[str, ...]:
        """Names of all columns."""
        return tuple(self.raw)

    def transposed(self) -> RawTable:
        """Return the table with its rows as columns, named by the first column."""
        first, *others = (column.values.cast(pyarrow.string()).to_pylist() for column in self.raw.values())
        rows = (pyarrow.array(row, pyarrow.string()) for row in zip(*others))
        return RawTable.of(self.path, first, rows)

    def transposed_name(self, name: str) -> TableProblem | None:
        """Return the problem of a name that a row has and no column; None if no row has it."""
        first = next(iter(self.raw.values()), None)
        known = first is not None and name in first.values.slice(0, 10**5).to_pylist()
        return TableProblem("row name", name=name) if known else None

    def unknown(self, name: str, option: str, suffix: str = "") -> TableProblem:
        """Return the problem of a name that no column has: the value, but for a suffix, of an option."""
        names = self.all_names
        near = difflib.get_close_matches(name.casefold(), [other.casefold() for other in names], 1, 0.5)
        words = [other for other in names if name.casefold() in other.casefold()]
        nearest = next((other for other in words or names if words or near[:1] == [other.casefold()]), "")
        given, lost = ("--target", "no such target") if option == "target" else (name + suffix, "no column")
        about = {"name": name, "names": names, "given": given, "nearest": nearest}
        return TableProblem("misspelled" if nearest else lost, option=option, suffix=suffix, **about)


def unique_names(names: Iterable[object]) -> list[str]:
    """Return names as texts, the second of a name with a suffix: price, price (2)."""
    found: dict[str, int] = {}  # with the number of the last one of that name
    for j, given in enumerate(names, start=1):
        name = first = " ".join(str("" if given is None else given).split()) or f"column {j}"
        while name in found:
            found[first] += 1
            name = f"{first} ({found[first]})"
        found[name] = 1
    return list(found)


def last_totals(
    rows: Sequence[Sequence[object]], tail: Sequence[Sequence[object]], options: ReadOptions
) -> int:
    """Return how many of the last rows (`tail`) are totals, and tell it; `rows` are the first ones."""
    if not may_have_totals(rows, options):
        return 0
    count = len(list(itertools.takewhile(is_total_row, reversed(tail[-MAX_TOTALS:]))))
    if count and count < len(rows):
        cells = quote(" ".join(str(cell) for cell in tail[-count] if cell not in (None, "")))
        words = "the last row is a total, left out: {}; --keep-total keeps it"
        several = f"the last {count} rows are totals, left out: {{}}; --keep-total keeps them"
        options.notify((several if count > 1 else words).format(cells))
        return count
    return 0


def may_have_totals(rows: Sequence[Sequence[object]], options: ReadOptions) -> bool:
    """Whether last rows that call themselves totals are such: no earlier row may begin with that word."""
    return not (options.keep_total or any(map(is_total_row, rows[: max(1, len(rows) - MAX_TOTALS)])))


def is_total_row(row: Sequence[object]) -> bool:
    """Whether the first text of a row says that it is a total."""
    first = next((cell for cell in row if cell is not None and str(cell).strip()), "")
    return isinstance(first, str) and first.strip(" *():\u00a0").casefold() in parsing.TOTALS
