"""CSV and TSV files, read by pyarrow as text; `infer_kinds` interprets the columns later.

pyarrow refuses rows of another width than the first, but accepts a quote that is never closed. So a sentinel
row is added at the end: if it does not come back as the last row, a quote swallowed it. If rows are bad, a
second, slower pass finds their line numbers.
"""

from __future__ import annotations

import contextlib
import csv
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow
import pyarrow.compute as pc
import pyarrow.csv

from .columns import (
    MAX_TOTALS,
    RawTable,
    ReadOptions,
    is_total_row,
    last_totals,
    may_have_totals,
    unique_names,
)
from .errors import TableProblem, quote, quote_list, raise_problems
from .parsing import MISSING
from .text_files import MIXED, TextFile, read_text

SNIFFED = 2**18  # bytes of whole lines that are looked at, or more where these are long
SNIFFED_ROWS = 100  # rows among them that are looked at for the separator
CSV_BLOCK_BYTES = 2**22  # bytes that pyarrow reads at a time: a row must fit in, and of long ones several,
MAX_BLOCK_BYTES = 2**26  # up to so much
SENTINEL = "\x1eend\x1e"  # of the row after the last; \x1e separates records in formats that nobody uses
NOTE = re.compile(r"[*#(]|.*?[^\W\d_]{2,}[\W\d_].*?[^\W\d_]{2,}")  # marked as one, or a sentence
UNIT_RULE = re.compile("[-=:+]+")  # a line below the header
PREAMBLE = 10  # lines above the header, at most
HEADED = 21  # lines, the header first, that tell whether it goes on in the next one
BLANK_FIRST_CELL = re.compile(rb"\n[,;\t|]")  # so a row may hold nothing else
MAX_BREAKS = 5  # rows with line breaks in cells that are told; of more somebody should know
MAX_LINE_SHOWN = 20  # characters of a bad line that are shown
TAIL = 4096  # bytes at the end that may hold totals and notes


@dataclass(frozen=True)
class Layout:
    """How a delimited file is laid out: its separator, its columns, and where their rows begin and end."""

    file: TextFile  # its last row is the sentinel
    delimiter: str
    names: tuple[str, ...]
    units: tuple[str, ...]  # of the columns, where a line names them
    rows: tuple[list[str], ...]  # the first of them
    start: int  # bytes before the first row of data
    skipped: int  # records before it that are not blank
    tail: str  # the last rows


def read_delimited(path: Path, options: ReadOptions, delimiter: str | None = None) -> RawTable:
    """Read a CSV or TSV file; without a delimiter it is found out."""
    layout = find_layout(read_text(path, options), options, delimiter)
    table = _parsed(layout, options)
    _check_breaks(layout, options, table.num_rows)
    names, columns = _rows(layout, options, table)
    units = dict(zip(layout.names, layout.units))
    return RawTable.of(path, names, columns, (units.get(name, "") for name in names))


def _check_breaks(layout: Layout, options: ReadOptions, rows: int) -> None:
    """Tell which cells hold line breaks, and refuse many: stray quotes make such cells of the rows between.

    Where there are as many rows as lines, none does; else a second and slow pass looks for them.
    """
    if options.line_breaks or b'"' not in layout.file.content:
        return
    blank = layout.file.content.count(b"\n\r\n")
    if rows == int((layout.file.line_lengths() > 1).sum()) - blank - layout.skipped:
        return
    reader, found, line = csv.reader(layout.file.lines(), delimiter=layout.delimiter), [], 0
    with contextlib.suppress(csv.Error):  # a quote that is never closed, which is told elsewhere
        for _ in reader:
            if reader.line_num > line + 1:
                found.append(f"lines {line + 1} to {reader.line_num}")
            line = reader.line_num
    if len(found) > MAX_BREAKS:
        raise TableProblem("line breaks", count=len(found), first=", ".join(found[:3]))
    if found:
        words = "are one row, with line breaks in quotes: check that no quote is missing or stray"
        options.notify(f"{', '.join(found)} {words}")


def _rows(
    layout: Layout, options: ReadOptions, table: pyarrow.Table
) -> tuple[list[str], list[pyarrow.ChunkedArray]]:
    """Return the names and columns that are wanted, without blank rows and without what ends the table."""
    if not table.num_rows or table.column(0)[-1].as_py() != SENTINEL:
        raise TableProblem("open quote")
    table = table.slice(0, table.num_rows - 1)
    if BLANK_FIRST_CELL.search(layout.file.content):
        table = _without(table, dict.fromkeys(table.column_names, ""))
    table = _without(table, {name: name for name in table.column_names})  # files that were put together
    last = [list(row.values()) for row in table.slice(max(0, table.num_rows - MAX_TOTALS)).to_pylist()]
    table = table.slice(0, table.num_rows - last_totals(layout.rows, last, options))
    wanted = _wanted(layout, options)
    return wanted, table.select(wanted).columns


def _wanted(layout: Layout, options: ReadOptions) -> list[str]:
    wanted = [name for name in layout.names if options.only is None or name in options.only]
    return wanted or list(layout.names[:1])


def _without(table: pyarrow.Table, cells: dict[str, str]) -> pyarrow.Table:
    """Return a table without the rows that hold these cells, and no others."""
    kept = None
    for name, cell in cells.items():
        column = table.column(name)
        other = pc.fill_null(pc.not_equal(pc.utf8_trim_whitespace(column), cell), bool(cell))
        kept = other if kept is None else pc.or_(kept, other)
        if pc.all(kept).as_py():
            return table
    return table.filter(kept)


def find_layout(file: TextFile, options: ReadOptions, delimiter: str | None = None) -> Layout:
    """Find separator, header and columns from the beginning of a file, and add the sentinel to its end."""
    end = 0  # of as many lines as tell the layout of the widest table
    for _ in range(HEADED + 1):
        end = file.content.find(b"\n", end) + 1 or len(file.content)
    lines = list(file.lines(max(end, file.content.find(b"\n", SNIFFED) + 1 or len(file.content))))
    said = re.match(r"sep=(.)\r?\n", lines[0]) if lines else None  # Excel's own way to say it
    begin = len(lines.pop(0)) if said else 0
    delimiter = delimiter or (said[1] if said else None)
    ways = {sign: _records(lines, sign) for sign in (delimiter or "\t;|,")}
    delimiter = max(ways, key=lambda sign: _shape(record for record, _ in ways[sign]))
    records = ways[delimiter]
    if len(ways) > 1 and b'"' not in file.content and _are_spaced([row for row, _ in records]):
        with file.lines() as every:  # any number of spaces is between columns
            tabs = "\n".join("\t".join(line.split()) for line in every)
        return find_layout(TextFile(bytearray(tabs.encode()), file.mixed), options, "\t")
    if not records:
        raise TableProblem("empty file")
    rows = tuple(record for record, _ in records)
    names, skipped, units = split_header(rows, options)
    if file.mixed and options.text_encoding is None:
        cells = dict(zip(names, _records([file.mixed], delimiter)[0][0]))
        name, cell = next(((n, c) for n, c in cells.items() if MIXED.search(c)), ("", file.mixed))
        words = f"column {quote(name)} holds {quote(cell)}; save the file in one encoding"
        options.notify(f"some lines are UTF-8 and others Windows-1252, as which all are read: {words}")
    above = "".join(lines[: records[skipped - 1][1]]) if skipped else ""
    tail = file.content[-TAIL:].decode(errors="ignore")
    file.content.extend(f"\n{delimiter.join([SENTINEL] * len(names))}\n".encode())
    start = begin + len(above.encode())
    return Layout(file, delimiter, tuple(unique_names(names)), units, rows[skipped:], start, skipped, tail)


def split_header(rows: Sequence[list[str]], options: ReadOptions) -> tuple[list[str], int, tuple[str, ...]]:
    """Return the names of columns, how many of the first rows hold no data, and units if a row names them."""
    if not options.header:
        return [f"c{j + 1}" for j in range(len(rows[0]))], 0, ()
    header, above = _find_header(rows)
    for top in (above - 1, above):
        if top >= 0 and (both := _two_lines(rows[top : top + HEADED])):
            options.notify(f"the header has two lines, read as {quote_list(both, 4)}")
            return both, top + 2, ()
    known = [name.strip() for name in header if name.strip()]
    whole = bool(known) and all(re.fullmatch(r"[\d.,+-]+", name) for name in known)
    if whole or any(re.fullmatch(r"[+-]?\d+[.,]\d+", name) for name in known):  # no name has decimals
        raise TableProblem("no header", width=len(header))
    if above:
        title = " ".join(filter(None, rows[0]))
        options.notify(f"what stands above the header is left out: {quote(title)}")
    if _are_units(rows[above + 1 : above + HEADED]):
        units = tuple(cell.strip(" ()[]") for cell in rows[above + 1])
        options.notify(f"the line below the header holds units: {quote(' '.join(filter(None, units)))}")
        return header, above + 2, tuple("" if UNIT_RULE.fullmatch(unit) else unit for unit in units)
    return header, above + 1, ()


def _two_lines(rows: Sequence[list[str]]) -> list[str]:
    """Return the names of a header of two lines, of groups and of columns; nothing if it is none.

    A group is named above its first column alone; a column without a group has an empty cell, or the same
    name again, in the second line, where all rows below have a value.
    """
    upper, lower = ([cell.strip() for cell in row] for row in (*rows[:2], [], [])[:2])
    gaps = [j for j in range(1, len(upper)) if not upper[j]]
    rest = [row for row in rows[2:] if len(row) == len(upper)]
    fits = len(upper) == len(lower) and all(lower[j] for j in gaps)
    if not fits or len(upper) - len(gaps) < 2 or len(rest) < 3:
        return []
    named = [cell for cell in lower if cell and not re.fullmatch(r"[-+]?[\d.,]+", cell)]
    years = [cell for cell in lower if re.fullmatch(r"(19|20)\d\d", cell)]
    if not named and not years:  # a row of numbers below a header with an empty name
        return []
    alone = [j for j, name in enumerate(upper) if name and lower[j] in ("", name)]
    if not gaps or not any(all(row[j].strip() for row in rest) for j in alone):
        return []
    groups: list[str] = []
    for name in upper:
        groups.append(name or (groups or [""])[-1])
    return [" ".join(dict.fromkeys(filter(None, pair))) for pair in zip(groups, lower)]


def _are_units(rows: Sequence[list[str]]) -> bool:
    """Whether the first of some rows has words where all others have digits, and nothing else, or dashes."""
    units = {j: cell.strip().lower() for j, cell in enumerate(rows[0]) if cell.strip()} if rows[3:] else {}
    if units and all(map(UNIT_RULE.fullmatch, units.values())):
        return True
    words = [cell for cell in units.values() if cell not in MISSING and not re.search(r"\d", cell)]
    if len(words) < 2 or len(words) < len(units):
        return False
    below = (row[j].strip() for row in rows[1:] for j in units if j < len(row))
    return all(re.search(r"\d", cell) for cell in below if cell.lower() not in MISSING)


def _find_header(records: Sequence[list[str]]) -> tuple[list[str], int]:
    """Return the header and how many records are above it, such as titles in the first cells."""
    width = _shape(records)[1]
    wide = [i for i, record in enumerate(records) if len(record) == width]
    above = next((i for i in wide if 2 * sum(bool(cell.strip()) for cell in records[i]) > width), wide[0])
    if above == 1 and width == len(records[0]) + 1:
        if not any(records[i][-1].strip() for i in wide):  # a separator at the end of every row
            return [*records[0], ""], 0
        return ["row", *records[0]], 0  # R leaves out the name of its row names
    above = above if above <= PREAMBLE else 0
    return records[above], above


def _are_spaced(rows: Sequence[list[str]]) -> bool:
    """Whether rows of one cell each are mostly as many words, most of them numbers."""
    words = [row[0].split() for row in rows if len(row) == 1]
    numbers = [re.search(r"\d", word) for line in words[1:] for word in line]
    alike = len(words) == len(rows) > 3 and _shape(words)[0] > 0.9
    return alike and sum(map(bool, numbers)) > 0.5 * len(numbers)


def _records(lines: Iterable[str], delimiter: str) -> list[tuple[list[str], int]]:
    """Return the first records that are not blank, with the number of lines up to their end."""
    reader = csv.reader(lines, delimiter=delimiter)
    found: list[tuple[list[str], int]] = []
    with contextlib.suppress(csv.Error):
        for record in itertools.takewhile(lambda _: len(found) < SNIFFED_ROWS, reader):
            if record:
                found.append((record, reader.line_num))
    return found


def _shape(records: Iterable[list[str]]) -> tuple[float, int]:
    """Return the share of records that have the usual number of fields (0 if it is one), and that number."""
    counts = Counter(map(len, records))
    width = max(counts, key=lambda width: (counts[width], width), default=1)
    return (counts[width] / counts.total() if width > 1 else 0.0), width


def _parsed(layout: Layout, options: ReadOptions) -> pyarrow.Table:
    """Have pyarrow read the rows below the header."""
    told: list[str] = []
    totals = _short_totals(layout, options)

    def bad_row(row: pyarrow.csv.InvalidRow) -> str:
        if row.text.strip("\r\n") in totals:
            options.notify(f"a total or note with another number of fields is left out: {quote(row.text)}")
            return "skip"
        if options.skip_bad_rows and not told:
            told.append(row.text)
            options.notify(f"rows with another number of fields are left out, such as {quote(row.text)}")
        return "skip" if options.skip_bad_rows else "error"

    content, blanks = layout.file.content, BLANK_FIRST_CELL.search(layout.file.content)
    needed = {layout.names[0], *_wanted(layout, options)}  # the first tells a total
    longest = int(layout.file.line_lengths().max())
    block = max(CSV_BLOCK_BYTES, min(MAX_BLOCK_BYTES, 16 * longest), longest)
    try:
        return pyarrow.csv.read_csv(
            pyarrow.BufferReader(pyarrow.py_buffer(content)[layout.start :]),
            # One of its threads may keep our buffer for a while, and end the process if Python ends before.
            read_options=pyarrow.csv.ReadOptions(
                use_threads=False, column_names=layout.names, block_size=block
            ),
            parse_options=pyarrow.csv.ParseOptions(
                delimiter=layout.delimiter, newlines_in_values=b'"' in content, invalid_row_handler=bad_row
            ),
            convert_options=pyarrow.csv.ConvertOptions(
                column_types=dict.fromkeys(layout.names, pyarrow.string()),
                null_values=["", "NA", "N/A", "NaN", "nan", "NULL", "null"],
                include_columns=[name for name in layout.names if blanks or name in needed],
            ),
        )
    except pyarrow.ArrowException as error:
        raise_problems(_bad_rows(layout))
        raise TableProblem("no table", words=" ".join(str(error).split())[:120]) from None


def _short_totals(layout: Layout, options: ReadOptions) -> set[str]:
    """Return those of the last lines that are totals of another width than the rest, or notes below it."""
    if not may_have_totals(layout.rows, options):
        return set()
    every = layout.tail.replace("\r", "").split("\n")
    lines = [line for line in every if line.strip(f'"{layout.delimiter} ')][-MAX_TOTALS:]
    found = {line: record for line in lines for record, _ in _records([line], layout.delimiter)}
    totals = {line for line, record in found.items() if is_total_row(record)}
    notes = {line for line, record in found.items() if len(record) == 1 and NOTE.match(record[0])}
    # A row that was cut off has no line break behind it.
    return totals | (notes if len(layout.names) > 2 and not every[-1] else set())


def _bad_rows(layout: Layout) -> Iterator[TableProblem]:
    """Find the lines that do not have as many fields as there are columns."""
    width, end = len(layout.names), [SENTINEL] * len(layout.names)
    reader, last, line = csv.reader(layout.file.lines(), delimiter=layout.delimiter), list[str](), 0
    try:
        for record in itertools.islice(filter(None, reader), layout.skipped, None):
            if line and len(last) != width:
                name = "cut off" if record == end and len(last) < width else "bad row"
                text = quote(layout.delimiter.join(last), MAX_LINE_SHOWN)
                yield TableProblem(name, line=line, fields=len(last), width=width, text=text)
            last, line = record, reader.line_num
            if record == end:
                return
            if any(SENTINEL in cell for cell in record):
                break
    except csv.Error:
        yield TableProblem("bad quotes", line=reader.line_num)
        return
    yield TableProblem("open quote")
