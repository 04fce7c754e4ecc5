"""CSV and TSV files, read in blocks so that numbers never exist as a table of strings.

Every column is tried as numbers. One that is text from the start is kept as such at once; a second pass
reads those where text shows up later.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain, islice
from pathlib import Path

import numpy as np

from .blocks import Block, Lines, Records
from .columns import Categorical, Columns
from .errors import TableError, show
from .options import ReadOptions
from .spelling import to_number
from .text import open_lines

BLOCK_ROWS = 4096
LARGE_FILE = 8 * 2**20  # bytes from which loading a compiled reader pays
GUESS_LINES = 20  # enough for two rows, even with line breaks in quotes
LONG_LINE = 2**16  # characters: csv refuses fields of twice as many
_WITH_COMMA = re.compile(r"[+-]?(\d+,\d+|\d{1,3}(,\d{3})+(\.\d*)?)")  # a decimal comma, or thousands


def read_delimited(path: Path, options: ReadOptions, delimiter: str | None = None) -> Columns:
    """Read a CSV or TSV file.

    Parameters
    ----------
    path : Path
        The file.
    options : ReadOptions
        Character encoding, header, which columns to read and which of them as categories.
    delimiter : str or None
        Field separator; None takes the comma, the semicolon or the tab, the first that fits the first rows.
    """
    source = _Source(path, options.text_encoding, options.header, delimiter)
    names = source.names()
    wanted = options.choose(path, names)
    numbers, texts = _read(source, [j for j in wanted if names[j] not in options.categorical], wanted)
    for j, values in texts.items():
        if names[j] not in options.categorical:
            _refuse_almost_numbers(path, names[j], _Strays(values), options)
    matrix = np.column_stack(list(numbers.values())) if numbers else np.empty((source.n_rows, 0))
    categorical = {names[j]: Categorical.from_strings(values) for j, values in texts.items()}
    return Columns(str(path), tuple(names[j] for j in numbers), matrix, categorical)


class _Source:
    """The rows of one file, as often as wanted, each checked to have as many fields as the header."""

    def __init__(self, path: Path, text_encoding: str, header: bool, delimiter: str | None):
        self.path = path
        self.text_encoding = text_encoding
        self.header = header
        self.delimiter = delimiter or self._guess_delimiter()
        self.n_rows = self.width = 0
        # Begins with the quote, which is fast to find, and then looks back for a delimiter.
        self.quoted = re.compile('"(?<![^D]")([^"D\\r\\n]*)"(?![^D\\r\\n])'.replace("D", self.delimiter))

    def _guess_delimiter(self) -> str:
        first = list(islice(self._lines(), GUESS_LINES))
        return max(",;\t", key=partial(_separates, first))

    def _lines(self) -> Iterator[str]:
        return open_lines(self.path, self.text_encoding)

    def _records(self, lines: Iterable[str], before: int = 0) -> Iterator[tuple[int, list[str]]]:
        """Yield (line number, fields), blank lines skipped; `before` lines come before these."""
        reader = csv.reader(lines, delimiter=self.delimiter, strict=True)
        try:
            for record in reader:
                if record:
                    yield before + reader.line_num, record
        except csv.Error as error:
            raise self._quoting_error(before + reader.line_num, error) from None

    def _quoting_error(self, line: int, error: csv.Error) -> TableError:
        if "unexpected end" in str(error):
            problem = "the file ends inside a quoted field, so it seems to be cut off"
            return TableError(self.path, problem, "get the whole file again, or close the quote")
        if "larger than field limit" in str(error):
            problem = f"line {line}: a field has more than {csv.field_size_limit()} characters"
            return TableError(self.path, problem, "shorten it, or close the quote it begins with")
        return TableError(self.path, f"line {line}: {error}", "check the quotes near that line")

    def names(self) -> list[str]:
        """Return the column names."""
        first = next(self._records(self._lines()), None)
        if first is None:
            raise TableError(self.path, "the file is empty", "give a file with a header and rows of data")
        self.width = len(first[1])
        if not self.header:
            return [f"c{j}" for j in range(1, len(first[1]) + 1)]
        names = [name.strip() or f"column {j}" for j, name in enumerate(first[1], start=1)]
        if all(to_number(name) is not None for name in names):
            problem = "the first line holds numbers where column names should be"
            raise TableError(self.path, problem, "add a header line, or say that there is none (--no-header)")
        return names

    def blocks(self) -> Iterator[Block]:
        """Yield the rows below the header; csv takes over where lines of a large file are not plain."""
        self.n_rows = before = 0
        lines, large = self._lines(), self.path.stat().st_size >= LARGE_FILE
        if self.header:
            before, _ = next(self._records(lines))
        while large and (some := list(islice(lines, BLOCK_ROWS))):
            rows = [self._plain(line) for line in some if line.strip("\r\n")]
            if not all(rows):
                lines = chain(some, lines)
                break
            before += len(some)
            self.n_rows += len(rows)
            yield Lines(rows, self.delimiter, self.width)
        records = self._checked(self._records(lines, before))
        while block := list(islice(records, BLOCK_ROWS)):
            self.n_rows += len(block)
            yield Records(block)

    def _plain(self, line: str) -> str:
        """The line without the quotes around whole fields; empty if more is to do than to split it."""
        if '"' in line:
            line = self.quoted.sub(r"\1", line)
        return (
            line
            if '"' not in line
            and line.strip("\r\n")
            and line.count(self.delimiter) == self.width - 1
            and (len(line) <= LONG_LINE or max(map(len, line.split(self.delimiter))) <= LONG_LINE)
            else ""
        )

    def _checked(self, records: Iterator[tuple[int, list[str]]]) -> Iterator[list[str]]:
        """Yield the fields of each record, refusing one of another width than the first."""
        for line, record in records:
            if len(record) != self.width:
                problem = f"line {line} has {len(record)} fields where the first line has {self.width}"
                cut = len(record) < self.width and next(records, None) is None
                raise TableError(
                    self.path,
                    problem,
                    "the file seems to be cut off there: get the whole file again"
                    if cut
                    else "correct that line (a separator inside a value needs quotes)",
                )
            yield record


def _separates(lines: list[str], delimiter: str) -> tuple[bool, bool]:
    """How well a delimiter fits: whether the first two rows have as many fields, and whether it is there."""
    try:
        rows = list(islice(filter(None, csv.reader(lines, delimiter=delimiter)), 2))
    except csv.Error:
        rows = []
    widths = {len(row) for row in rows}
    return len(widths) == 1 and max(widths) > 1, delimiter in "".join(lines[:1])


def _read(
    source: _Source, numeric: list[int], wanted: list[int]
) -> tuple[dict[int, np.ndarray], dict[int, list[str]]]:
    """Return the wanted columns: those that may be and are numbers or missing, and the others as text."""
    parts: dict[int, list[np.ndarray]] = {j: [] for j in numeric}
    texts, late = _Texts([j for j in wanted if j not in parts]), _Texts([])
    for i, block in enumerate(source.blocks()):
        cols = list(parts)
        for j, numbers in zip(cols, block.numbers(cols)):
            if numbers is None:
                del parts[j]
                (late if i else texts).values[j] = []
            else:
                parts[j].append(numbers)
        texts.add(block)
    if source.n_rows == 0:
        raise TableError(source.path, "there are no rows below the header", "give a file with data")
    for block in source.blocks() if late.values else ():
        late.add(block)
    values = texts.values | late.values
    columns = {j: np.concatenate(part) for j, part in parts.items()}
    return columns, {j: values[j] for j in wanted if j in values}


class _Texts:
    """Columns of strings, one object per distinct value: that keeps long columns of few categories small."""

    def __init__(self, cols: list[int]):
        self.values: dict[int, list[str]] = {j: [] for j in cols}
        self._pool: dict[str, str] = {}

    def add(self, block: Block) -> None:
        if self.values:
            for values, fields in zip(self.values.values(), block.texts(list(self.values))):
                values.extend(self._pool.setdefault(field, field) for field in fields)


class _Strays:
    """Counts of numbers and of other values in a column of strings, and the first of the latter."""

    def __init__(self, values: list[str]):
        known = {value: to_number(value) for value in set(values)}
        self.first: tuple[int, str] | None = None
        self.n_numbers = self.n_others = 0
        for row, value in enumerate(values, start=1):
            number = known[value]
            if number is None:
                self.n_others += 1
                self.first = self.first or (row, value)
            elif number == number:
                self.n_numbers += 1


def _refuse_almost_numbers(path: Path, name: str, strays: _Strays, options: ReadOptions) -> None:
    """Refuse to take a slip of the pen in a column of numbers for a category."""
    if strays.first is None:
        return
    row, value = strays.first
    where, categorical = f"column {show(name)}, row {row}: {show(value)}", f"--categorical {name}"
    if _WITH_COMMA.fullmatch(value.strip()):
        remedy = options.remedy(
            "write decimal points, and thousands without separators",
            f"take texts for categories ({categorical})",
        )
        raise TableError(path, f"{where} is a number with a comma", remedy)
    if strays.n_numbers >= 9 * strays.n_others:
        remedy = options.remedy("correct it", f"treat the column as categorical ({categorical})")
        raise TableError(path, f"{where} is not a number, though most values are", remedy)
