"""CSV and TSV files, by pyarrow: every column as text, so that what a column is gets decided elsewhere.

pyarrow refuses rows of another width than the first, but accepts a quote that is never closed and counts
rows, not lines. So a row that no file holds is put after the end: if it does not come back as the last one,
some quote swallowed it. Where rows are bad, a second and slow pass finds the lines they are on.
"""

from __future__ import annotations

import csv
import itertools
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from io import BufferedReader, StringIO
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.csv

from .columns import Columns, ReadOptions, different, no_rows
from .errors import TableError, raise_all, show
from .source import Utf8Stream, open_lines, recognise, utf8_blocks
from .spelling import ONLY

SNIFFED = 2**18  # bytes, of which
SNIFFED_ROWS = 100  # are looked at for the separator
BLOCK = 2**23  # bytes; a row must fit in one
END = "\x1eend\x1e"  # of the row after the last; \x1e separates records in formats that nobody uses
END_NUMBER = "-9.876543210123e-299"  # the same where numbers are read
LARGE = 2**23  # bytes from which columns that look like plain numbers are read as such at once
PLAIN = re.compile(r"[+-]?\d+\.(?:\d{1,2}|\d{4,})(?:[eE][+-]?\d+)?")  # a decimal point beyond doubt
PREAMBLE = 10  # lines above the header, at most
WIDE = 20  # characters of a bad line that are shown


@dataclass(frozen=True)
class Layout:
    """How a delimited file is laid out: its separator, its columns, and where their rows begin."""

    codec: str
    delimiter: str
    names: tuple[str, ...]
    start: int  # bytes before the first row of data
    skipped: int  # records before it that are not blank
    floats: frozenset[str] = frozenset()  # columns that pyarrow may read as numbers itself
    quotes: bool = True  # whether there may be any, and line breaks between them

    @property
    def last(self) -> list[str]:
        """The row after the last."""
        return [END_NUMBER if name in self.floats else END for name in self.names]

    @property
    def after(self) -> str:
        """The same as a line."""
        return "\n" + self.delimiter.join(self.last) + "\n"


def read_delimited(path: Path, options: ReadOptions, delimiter: str | None = None) -> Columns:
    """Read a CSV or TSV file; without a delimiter it is found out."""
    layout = find_layout(path, options, delimiter)
    if path.stat().st_size >= LARGE:
        quotes = any(b'"' in block for block in utf8_blocks(path, layout.codec))
        layout = replace(layout, floats=_plain_numbers(path, layout), quotes=quotes)
    try:
        table = _parsed(path, layout, options, pyarrow.csv.read_csv)
    except _OtherText:  # among the numbers: all columns as text, then
        table = _parsed(path, replace(layout, floats=frozenset()), options, pyarrow.csv.read_csv)
    if table.num_rows and not any(_is_end(column[-1]) for column in table.columns):
        raise _unclosed(path)
    table = table.slice(0, table.num_rows - 1)
    return Columns(str(path), dict(zip(table.column_names, table.columns)))


def stream_delimited(path: Path, options: ReadOptions, delimiter: str | None = None) -> Iterator[Columns]:
    """Read a CSV or TSV file in pieces that fit in memory."""
    layout = find_layout(path, options, delimiter)
    batches = iter(_parsed(path, layout, options, pyarrow.csv.open_csv))
    ended = some = False
    while (batch := _guarded(path, layout, partial(next, batches, None))) is not None:
        ended = bool(batch.num_rows) and _is_end(batch.column(0)[-1])
        rows = batch.slice(0, batch.num_rows - ended)
        if rows.num_rows:
            some = True
            yield Columns(str(path), dict(zip(rows.schema.names, rows.columns)))
    if not ended:
        raise _unclosed(path)
    if not some:
        raise no_rows(path)


class _OtherText(Exception):
    """A column that looked like plain numbers holds something else."""


def _plain_numbers(path: Path, layout: Layout) -> frozenset[str]:
    """Return the columns whose first cells are numbers with a decimal point; none if some have a comma."""
    text = next(utf8_blocks(path, layout.codec), b"")[layout.start : layout.start + SNIFFED].decode(
        "utf-8", "ignore"
    )
    records = itertools.islice(
        _records(list(StringIO(text, newline=""))[:-1], layout.delimiter), SNIFFED_ROWS
    )
    rows = [record for record, _ in records if len(record) == len(layout.names)]
    if any(re.fullmatch(ONLY[","], cell) for row in rows for cell in row):
        return frozenset()
    columns = dict(zip(layout.names, zip(*rows)))
    return frozenset(
        name
        for name, cells in columns.items()
        if any(PLAIN.fullmatch(cell) for cell in cells)
        and all(re.fullmatch(r"[+-]?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|", cell) for cell in cells)
    )


def find_layout(path: Path, options: ReadOptions, delimiter: str | None = None) -> Layout:
    """Find separator, header and columns from the beginning of a file."""
    codec = recognise(path, options.text_encoding)
    block = next(utf8_blocks(path, codec), b"")
    if len(block) > SNIFFED:
        block = block[: block.rfind(b"\n", 0, SNIFFED) + 1 or SNIFFED]
    head = block.decode("utf-8", "ignore")
    begin = 0
    if said := re.match(r"sep=(.)\r?\n", head):  # Excel's own way to say it
        delimiter, begin = delimiter or said[1], said.end()
    lines = list(StringIO(head[begin:], newline=""))
    delimiter = delimiter or max("\t;|,", key=partial(_fit, lines))
    rows = list(itertools.islice(_records(lines, delimiter), SNIFFED_ROWS))
    if not rows:
        raise TableError(path, "the file is empty", "give a file with a header and rows of data")
    if not options.header:
        names = tuple(f"c{j + 1}" for j in range(len(rows[0][0])))
        return Layout(codec, delimiter, names, len(head[:begin].encode()), 0)
    header, above = _find_header([record for record, _ in rows])
    if _is_data(header):
        problem = "the first line holds numbers where column names should be"
        remedy = "add a line of names; or say that there is none, and the columns are c1, c2, ..."
        raise TableError(path, problem, remedy, ("--no-header", "--target", f"c{len(header)}"), "--target")
    if above:
        options.told(f"{above} lines above the header are left out, such as {show(lines[0].strip())}")
    start = len((head[:begin] + "".join(lines[: rows[above][1]])).encode())
    return Layout(codec, delimiter, tuple(different(header)), start, above + 1)


def _find_header(records: list[list[str]]) -> tuple[list[str], int]:
    """Return the header and how many records are above it."""
    widths = [len(record) for record in records]
    width = _usual(widths)
    above = next((i for i, record in enumerate(records) if _is_header(record, width)), widths.index(width))
    if above == 1 and width == widths[0] + 1:  # R leaves out the name of its row names
        return ["row", *records[0]], 0
    above = above if above <= PREAMBLE else 0
    return records[above], above


def _is_data(names: list[str]) -> bool:
    """Whether names are all numbers, or one of them has decimals, as no name has."""
    known = [name.strip() for name in names if name.strip()]
    whole = bool(known) and all(re.fullmatch(r"[\d.,+-]+", name) for name in known)
    return whole or any(re.fullmatch(r"[+-]?\d+[.,]\d+", name) for name in known)


def _is_header(record: list[str], width: int) -> bool:
    """Whether a record can be a header: of the usual width, and not just a title in its first cells."""
    return len(record) == width and 2 * sum(bool(cell.strip()) for cell in record) > width


def _records(lines: list[str], delimiter: str) -> Iterator[tuple[list[str], int]]:
    """Yield the records that are not blank, with the number of lines up to their end."""
    reader = csv.reader(lines, delimiter=delimiter)
    try:
        for record in reader:
            if record:
                yield record, reader.line_num
    except csv.Error:
        return


def _usual(widths: list[int]) -> int:
    counts = Counter(widths)
    return max(counts, key=lambda width: (counts[width], width))


def _fit(lines: list[str], delimiter: str) -> tuple[float, int]:
    """How well a delimiter fits: the share of rows that have the usual number of fields, and that number."""
    widths = [len(record) for record, _ in itertools.islice(_records(lines, delimiter), SNIFFED_ROWS)]
    width = _usual(widths) if widths else 1
    return (widths.count(width) / len(widths) if width > 1 else 0.0), width


def _parsed(path: Path, layout: Layout, options: ReadOptions, reader: Any) -> Any:
    """Have pyarrow read the rows below the header."""
    blocks = utf8_blocks(path, layout.codec)
    first = next(blocks, b"")[layout.start :]
    stream: Any = Utf8Stream(itertools.chain([first], blocks), layout.after.encode(), options.progress)
    if reader is pyarrow.csv.read_csv:  # all of it at once, which is quicker
        stream = pyarrow.BufferReader(stream.readall())
    wanted = [name for name in layout.names if options.only is None or name in options.only]
    skipped: list[Any] = []

    def bad_row(row: Any) -> str:
        skipped.append(row)
        if len(skipped) == 1 and options.skip_bad_rows:
            options.told(f"rows with another number of fields are left out, such as {show(row.text)}")
        return "skip" if options.skip_bad_rows else "error"

    def read() -> Any:
        return reader(
            stream if isinstance(stream, pyarrow.BufferReader) else BufferedReader(stream, 2**20),
            read_options=pyarrow.csv.ReadOptions(column_names=layout.names, block_size=BLOCK),
            parse_options=pyarrow.csv.ParseOptions(
                delimiter=layout.delimiter, newlines_in_values=layout.quotes, invalid_row_handler=bad_row
            ),
            convert_options=pyarrow.csv.ConvertOptions(
                column_types={
                    name: pyarrow.float64() if name in layout.floats else pyarrow.string()
                    for name in layout.names
                },
                null_values=["", "NA", "N/A", "NaN", "nan", "NULL", "null"],
                include_columns=wanted or list(layout.names[:1]),
            ),
        )

    return _guarded(path, layout, read)


def _guarded(path: Path, layout: Layout, read: Any) -> Any:
    try:
        return read()
    except pyarrow.ArrowException as error:
        if "conversion error to double" in str(error):
            raise _OtherText from None
        raise_all(bad_rows(path, layout))
        words = " ".join(str(error).split())[:120]
        raise TableError(path, f"this cannot be read as a table ({words})", "check that it is one") from None


def bad_rows(path: Path, layout: Layout) -> Iterator[TableError]:
    """Find the lines that do not have as many fields as there are columns."""
    width = len(layout.names)
    reader = csv.reader(open_lines(path, layout.codec, layout.after), delimiter=layout.delimiter)
    last: list[str] = []
    pending: TableError | None = None
    fix = ("--skip-bad-rows",)
    try:
        for record in itertools.islice(filter(None, reader), layout.skipped, None):
            ended = record == layout.last
            if pending is not None:
                if ended and len(last) < width:
                    remedy = (
                        "the file seems to be cut off there: get the whole file again, or leave the row out"
                    )
                    pending = TableError(path, pending.problem, remedy, fix)
                yield pending
                pending = None
            if not ended and len(record) != width:
                if any(END in cell or END_NUMBER in cell for cell in record):
                    yield _unclosed(path)
                    return
                shown = show(layout.delimiter.join(record), WIDE)
                problem = f"line {reader.line_num} has {len(record)} fields where there are {width} columns"
                problem += f": {shown}"
                pending = TableError(
                    path, problem, "correct the line (a separator inside a value needs quotes)", fix
                )
            last = record
    except csv.Error:
        yield TableError(
            path, f"line {reader.line_num} cannot be read", "check the quotes near that line", fix
        )
        return
    if last != layout.last:
        yield _unclosed(path)


def _is_end(value: Any) -> bool:
    return value.as_py() in (END, float(END_NUMBER))


def _unclosed(path: Path) -> TableError:
    problem = "the file ends inside a quoted field, so it seems to be cut off"
    return TableError(path, problem, "get the whole file again, or close the quote")
