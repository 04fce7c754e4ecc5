"""All formats but delimited text: Parquet by pyarrow, Excel by calamine."""

from __future__ import annotations

import contextlib
import datetime
import functools
import itertools
import re
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias
from xml.parsers import expat

import numpy as np
import pyarrow
import pyarrow.parquet

from skpursuit.data.disk.npy_source import list_data_files
from skpursuit.data.disk.parquet_source import ENDINGS, row_indexes

from .columns import RawTable, ReadOptions, last_totals
from .delimited import split_header
from .errors import TableProblem, quote, quote_list

if TYPE_CHECKING:
    from python_calamine import CalamineSheet

Cell: TypeAlias = bool | float | str | datetime.date | datetime.time | datetime.timedelta  # of a sheet
MIDNIGHT = datetime.time()
PARQUET_BATCH_ROWS = 2**16  # rows of a Parquet file that are read at a time
CELL = 40  # bytes of a cell of a sheet, at least
HEAD = 50  # rows of a sheet that are looked at for the header


def read_parquet(path: Path, options: ReadOptions) -> RawTable:
    """Read a Parquet file, or a folder of them: numbers, truth values, times and texts."""
    with _refusing_parquet():
        footers = list(map(pyarrow.parquet.read_metadata, parquet_files(path)))
        options.check_room(sum(footer.num_rows * _row_bytes(footer, options) for footer in footers))
        tables = list(_parquet_tables(path, options))
    alike = all(table.schema.equals(tables[0].schema) for table in tables)
    try:  # columns are joined by name, and a file that lacks one has nothing there
        table = pyarrow.concat_tables(tables, promote_options="none" if alike else "permissive")
    except pyarrow.ArrowException as error:
        raise TableProblem("parquet pieces", words=str(error).splitlines()[0]) from None
    return _parquet_columns(path, table, options)


def _row_bytes(footer: pyarrow.parquet.FileMetaData, options: ReadOptions) -> float:
    """Return the bytes that a row takes at least, of the columns that are read."""
    schema = footer.schema.to_arrow_schema()
    wanted = [field.type for field in schema if options.only is None or field.name in options.only]
    known = pyarrow.types.is_primitive  # null has no width
    return sum(kind.bit_width / 8 if known(kind) and kind != pyarrow.null() else 4 for kind in wanted)


def stream_parquet(path: Path, options: ReadOptions) -> Iterator[RawTable]:
    """Read a Parquet file, or a folder of them, in pieces that fit in memory."""
    with _refusing_parquet():
        for table in _parquet_tables(path, options):
            if table.num_rows:
                yield _parquet_columns(path, table, options)
                options = replace(options, notify=lambda sentence: None)  # once is enough


def parquet_files(path: Path) -> list[Path]:
    """Return the file itself, or those of a folder."""
    return list(map(Path, list_data_files(path, *ENDINGS))) if path.is_dir() else [path]


@contextlib.contextmanager
def _refusing_parquet() -> Iterator[None]:
    try:
        yield
    except (pyarrow.ArrowException, OSError, MemoryError) as error:
        raise TableProblem("parquet text" if "UTF8" in str(error) else "parquet") from None


def _parquet_tables(path: Path, options: ReadOptions) -> Iterator[pyarrow.Table]:
    """Yield the columns that are wanted, some rows at a time; at least one table for each file."""
    for file in parquet_files(path):
        with pyarrow.parquet.ParquetFile(file, page_checksum_verification=True) as source:
            every, names = source.schema_arrow, None
            if options.only is not None and len(set(every.names)) == len(every.names):
                names = [name for name in every.names if name in options.only] or every.names[:1]
            yield every.empty_table().select(names or range(len(every)))
            for batch in source.iter_batches(PARQUET_BATCH_ROWS, columns=names):
                batch.validate(full=True)
                yield pyarrow.Table.from_batches([batch])


def _parquet_columns(path: Path, table: pyarrow.Table, options: ReadOptions) -> RawTable:
    """Return the columns of a table; what is nested is left out."""
    pairs, indexes = zip(table.column_names, table.columns), row_indexes(table.schema)
    given = [(name, _plain(column)) for name, column in pairs if name not in indexes]
    plain = [(name, column) for name, column in given if column is not None]
    strange = [name for name, column in given if column is None]
    if strange:
        options.notify(
            f"columns that hold neither numbers, texts nor times are left out: {quote_list(strange)}"
        )
    if not plain:
        raise TableProblem("parquet columns")
    return RawTable.of(path, *zip(*plain))


def _plain(column: pyarrow.ChunkedArray) -> pyarrow.ChunkedArray | None:
    """Return a column as texts, numbers, truth values or times; None if it is none of them."""
    types, kind = pyarrow.types, column.type
    if types.is_dictionary(kind):
        return _plain(column.cast(kind.value_type))
    if types.is_decimal(kind):
        return column.cast(pyarrow.float64(), safe=False)
    if types.is_date(kind) or types.is_timestamp(kind):
        return column.cast(pyarrow.timestamp("us"), safe=False)
    as_text = (types.is_string, types.is_large_string, types.is_string_view, types.is_time, types.is_null)
    if any(is_it(kind) for is_it in as_text):
        return column.cast(pyarrow.string())
    return column if types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind) else None


def read_excel(path: Path, options: ReadOptions) -> RawTable:
    """Read one sheet of a workbook; a column of cells of one type keeps that type, any other is text."""
    rows = [row for row in _sheet(path, options) if any(cell != "" for cell in row)]
    top = [list(map(str, row)) for row in rows[:HEAD]]
    heads, above, units = split_header(top, options) if rows else ([], 0, ())
    data = rows[above:]
    if not data:
        raise TableProblem("empty sheet")
    totals = last_totals(data, data[1:], options)
    columns = map(_typed, zip(*data[: len(data) - totals]))
    return RawTable.of(path, heads, columns, units or itertools.repeat(""))


def _sheet(path: Path, options: ReadOptions) -> list[list[Cell]]:
    """Return the cells of a sheet, "" where they are empty."""
    try:
        import python_calamine
    except ImportError:
        raise TableProblem("no calamine") from None
    options.check_room(CELL * _sheet_cells(path))
    try:
        if path.suffix.lower() == ".ods":  # calamine reads a table that is not closed for ever
            expat.ParserCreate().Parse(zipfile.ZipFile(path).read("content.xml"), True)
        book = python_calamine.CalamineWorkbook.from_path(str(path))
        names = book.sheet_names
        sheet = options.sheet or names[0]
        rows = _unmerged(book.get_sheet_by_name(sheet)) if sheet in names else None
    except Exception:  # calamine raises whatever the bytes lead to
        raise TableProblem("workbook") from None
    if rows is None:
        raise TableProblem("no sheet", sheet=sheet, sheets=names)
    if len(names) > 1 and options.sheet is None:
        options.notify(f"the first of {len(names)} sheets is read, {quote(names[0])}; --sheet names another")
    return rows


def _sheet_cells(path: Path) -> int:
    """Return how many cells the largest sheet of a workbook has up to its last one.

    calamine asks for memory for all of them, and ends the process where it gets none; in the formats that
    are not looked at here it has limits of its own.
    """
    most = 0
    with contextlib.suppress(Exception), zipfile.ZipFile(path) as archive:  # what is damaged, calamine says
        for name in {"content.xml"} & set(archive.namelist()):  # .ods; lines and cells may be repeated
            repeats = re.findall(rb"number-\w+-repeated=\"(\d{8,})\"", archive.read(name))
            most = max([most, *(2**14 * int(number) for number in repeats)])
        for name in filter(re.compile(r"xl/worksheets/[^/]+\.(xml|bin)").fullmatch, archive.namelist()):
            rows, columns, rest = 1, {b"A"}, b""
            with archive.open(name) as file:
                while block := file.read(2**22):
                    text = rest + block
                    rows = max(rows, *map(int, re.findall(rb"\br=[\"'][A-Z]*(\d+)[\"']", text)), 0)
                    columns |= set(re.findall(rb"\br=[\"']([A-Z]{1,3})\d", text))
                    rest = text[-32:]
                    if size := re.match(rb".{,64}?\x94\x01\x10(.{16})", text, re.S):  # .xlsb tells its range
                        _, last, _, right = np.frombuffer(size[1], "<u4").tolist()
                        most = max(most, (last + 1) * (right + 1))
            width = max(functools.reduce(lambda n, letter: 26 * n + letter - 64, name, 0) for name in columns)
            most = max(most, rows * width)
    return most


def _unmerged(sheet: CalamineSheet) -> list[list[Cell]]:
    """Return the cells of a sheet; what is merged over several rows of a column stands in each of them.

    A line with several names, some of them over several columns, is a header that goes on in the next line.
    """
    rows: list[list[Cell]] = sheet.to_python(skip_empty_area=False)
    upper = set()
    for (top, left), (bottom, right) in sheet.merged_cell_ranges or ():
        names = [cell for cell in rows[top] if cell != ""]
        if top == bottom and len(names) > 1 and all(isinstance(cell, str) for cell in names):
            upper.add(top)
        if left == right or top in upper:
            for row in rows[top : bottom + 1]:
                row[left : right + 1] = [rows[top][left]] * (right + 1 - left)
    for top in sorted(upper)[:1]:
        pairs = zip(rows.pop(top), rows[top])
        rows[top] = [" ".join(dict.fromkeys(str(cell) for cell in pair if cell != "")) for pair in pairs]
    used = [j for j, column in enumerate(zip(*rows)) if any(cell != "" for cell in column)]
    return [row[used[0] : used[-1] + 1] for row in rows] if used else []


def _typed(cells: tuple[object, ...]) -> pyarrow.Array:
    values = [None if cell == "" else cell for cell in cells]
    values = [datetime.datetime.combine(v, MIDNIGHT) if type(v) is datetime.date else v for v in values]
    with contextlib.suppress(pyarrow.ArrowInvalid, pyarrow.ArrowTypeError):
        column = pyarrow.array(values)
        if pyarrow.types.is_integer(column.type):
            column = column.cast(pyarrow.float64(), safe=False)
        if (plain := _plain(column)) is not None and not pyarrow.types.is_time(column.type):
            return plain
    whole = [int(v) if isinstance(v, float) and v.is_integer() and abs(v) < 2**53 else v for v in values]
    return pyarrow.array([None if v is None else str(v) for v in whole], pyarrow.string())
