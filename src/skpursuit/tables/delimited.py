"""CSV and TSV files, read in blocks so that numbers never exist as a table of strings.

The first pass tries every column as numbers; a second pass reads the columns that were not.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np

from .columns import MISSING, Categorical, Columns
from .errors import TableError, show
from .options import ReadOptions
from .text import open_lines

BLOCK_ROWS = 4096
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")


def read_delimited(path: Path, options: ReadOptions, delimiter: str | None = None) -> Columns:
    """Read a CSV or TSV file.

    Parameters
    ----------
    path : Path
        The file.
    options : ReadOptions
        Character encoding, header, which columns to read and which of them as categories.
    delimiter : str or None
        Field separator; None takes the comma, or the semicolon where the first line has only those.
    """
    source = _Source(path, options.text_encoding, options.header, delimiter)
    names = source.names()
    wanted = options.choose(path, names)
    numbers = _read_numbers(source, [j for j in wanted if names[j] not in options.categorical])
    texts = _read_texts(source, [j for j in wanted if j not in numbers])
    for j, (_, strays) in texts.items():
        if names[j] not in options.categorical:
            _refuse_almost_numbers(str(path), names[j], strays)
    matrix = np.column_stack(list(numbers.values())) if numbers else np.empty((source.n_rows, 0))
    categorical = {names[j]: column for j, (column, _) in texts.items()}
    return Columns(str(path), tuple(names[j] for j in numbers), matrix, categorical)


class _Source:
    """The rows of one file, as often as wanted, each checked to have as many fields as the header."""

    def __init__(self, path: Path, text_encoding: str, header: bool, delimiter: str | None):
        self.path = path
        self.text_encoding = text_encoding
        self.header = header
        self.delimiter = delimiter or self._guess_delimiter()
        self.n_rows = 0

    def _guess_delimiter(self) -> str:
        first = next(open_lines(self.path, self.text_encoding), "")
        return ";" if ";" in first and "," not in first else ","

    def _records(self) -> Iterator[tuple[int, list[str]]]:
        """Yield (line number, fields), blank lines skipped."""
        lines = open_lines(self.path, self.text_encoding)
        reader = csv.reader(lines, delimiter=self.delimiter, strict=True)
        try:
            for record in reader:
                if record:
                    yield reader.line_num, record
        except csv.Error as error:
            raise self._quoting_error(reader.line_num, error) from None

    def _quoting_error(self, line: int, error: csv.Error) -> TableError:
        if "unexpected end" in str(error):
            problem = "the file ends inside a quoted field, so it seems to be cut off"
            return TableError(self.path, problem, "get the whole file again, or close the quote")
        return TableError(self.path, f"line {line}: {error}", "check the quotes near that line")

    def names(self) -> list[str]:
        """Return the column names."""
        first = next(self._records(), None)
        if first is None:
            raise TableError(self.path, "the file is empty", "give a file with a header and rows of data")
        if not self.header:
            return [f"c{j}" for j in range(1, len(first[1]) + 1)]
        names = [name.strip() or f"column {j}" for j, name in enumerate(first[1], start=1)]
        if all(_number(name) is not None for name in names):
            problem = "the first line holds numbers where column names should be"
            raise TableError(self.path, problem, "add a header line, or say that there is none (--no-header)")
        return names

    def blocks(self) -> Iterator[list[tuple[str, ...]]]:
        """Yield blocks of rows, each as a list of columns."""
        records = self._records()
        width = len(next(records)[1]) if self.header else None
        self.n_rows = 0
        while block := list(islice(records, BLOCK_ROWS)):
            width = len(block[0][1]) if width is None else width
            self._check_widths(block, width, last=len(block) < BLOCK_ROWS)
            self.n_rows += len(block)
            yield list(zip(*(record for _, record in block)))

    def _check_widths(self, block: list[tuple[int, list[str]]], width: int, last: bool) -> None:
        for i, (line, record) in enumerate(block):
            if len(record) != width:
                problem = f"line {line} has {len(record)} fields where the first line has {width}"
                cut = last and i == len(block) - 1 and len(record) < width
                raise TableError(
                    self.path,
                    problem,
                    "the file seems to be cut off there: get the whole file again"
                    if cut
                    else "correct that line (a separator inside a value needs quotes)",
                )


def _read_numbers(source: _Source, wanted: list[int]) -> dict[int, np.ndarray]:
    """Return those of the wanted columns that hold nothing but numbers and missing values."""
    parts: dict[int, list[np.ndarray]] = {j: [] for j in wanted}
    for block in source.blocks():
        for j in list(parts):
            numbers = _numbers(block[j])
            if numbers is None:
                del parts[j]
            else:
                parts[j].append(numbers)
    if source.n_rows == 0:
        raise TableError(source.path, "there are no rows below the header", "give a file with data")
    return {j: np.concatenate(part) for j, part in parts.items()}


def _numbers(fields: tuple[str, ...]) -> np.ndarray | None:
    try:
        return np.fromiter(map(float, fields), np.float64, len(fields))
    except ValueError:
        values = [_number(field) for field in fields]
    return None if None in values else np.array(values, dtype=np.float64)


def _number(field: str) -> float | None:
    """Return the number a field spells, NaN if it is missing, None if it is neither."""
    try:
        return float(field)
    except ValueError:
        return np.nan if field.strip() in MISSING else None


def _read_texts(source: _Source, wanted: list[int]) -> dict[int, tuple[Categorical, _Strays]]:
    """Return the wanted columns as categories, with what speaks against reading them so."""
    if not wanted:
        return {}
    values: dict[int, list[str]] = {j: [] for j in wanted}
    pool: dict[str, str] = {}
    for block in source.blocks():
        for j in wanted:
            # One string object per distinct value keeps a long column of few categories small.
            values[j].extend(pool.setdefault(value, value) for value in block[j])
    return {j: (Categorical.from_strings(column), _Strays(column)) for j, column in values.items()}


class _Strays:
    """Counts of numbers and of other values in a column of strings, and the first of the latter."""

    def __init__(self, values: list[str]):
        known = {value: _number(value) for value in set(values)}
        self.first: tuple[int, str] | None = None
        self.n_numbers = self.n_others = 0
        for row, value in enumerate(values, start=1):
            number = known[value]
            if number is None:
                self.n_others += 1
                self.first = self.first or (row, value)
            elif number == number:
                self.n_numbers += 1


def _refuse_almost_numbers(path: str, name: str, strays: _Strays) -> None:
    """Refuse to take a slip of the pen in a column of numbers for a category."""
    if strays.first is None:
        return
    row, value = strays.first
    if _DECIMAL_COMMA.fullmatch(value.strip()):
        problem = f"column {show(name)}, row {row}: {show(value)} has a decimal comma"
        raise TableError(path, problem, "write decimal points")
    if strays.n_numbers >= 9 * strays.n_others:
        problem = f"column {show(name)}, row {row}: {show(value)} is not a number, though most values are"
        raise TableError(
            path, problem, f"correct it, or treat the column as categorical (--categorical {name})"
        )
