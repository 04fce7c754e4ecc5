"""Files whose cells have types: Parquet by pyarrow, Excel by calamine. Their columns stay as they are."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet

from .columns import Columns, ReadOptions, trailing_totals
from .errors import Advice, Refused, listing, show

PANDAS_INDEX = "__index_level_"  # what pandas calls its row index in a file


def read_parquet(path: Path, options: ReadOptions) -> Columns:
    """Read a Parquet file: numbers, truth values, times and texts; what is nested is left out."""
    try:
        table = pyarrow.parquet.ParquetFile(path).read()
        table.validate(full=True)
    except (pyarrow.ArrowException, OSError, MemoryError) as error:
        if "UTF8" in str(error):
            raise Refused("it holds text that is not UTF-8", "write it again as text") from None
        remedy = "the file is damaged, cut off or something else: get or write it again"
        raise Refused("this cannot be read as Parquet", remedy) from None
    pairs = zip(table.column_names, table.columns)
    given = [(name, _plain(column)) for name, column in pairs if not name.startswith(PANDAS_INDEX)]
    plain = [(name, column) for name, column in given if column is not None]
    strange = [name for name, column in given if column is None]
    if strange:
        options.told(f"columns that hold neither numbers, texts nor times are left out: {listing(strange)}")
    if not plain:
        raise Refused("no column holds numbers, texts or times", "write a table that does")
    return Columns.of(path, *zip(*plain))


def _plain(column: Any) -> Any:
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


def read_excel(path: Path, options: ReadOptions) -> Columns:
    """Read one sheet of a workbook; a column of cells of one type keeps that type, any other is text."""
    rows = [row for row in _sheet(path, options) if any(cell != "" for cell in row)]
    width = max((_filled(row) for row in rows[:50]), default=0)
    while len(rows) > 2 and options.header and _filled(rows[0]) < 0.5 * width:
        title = " ".join(str(cell) for cell in rows[0] if cell != "")
        options.told(f"the row above the header is left out: {show(title)}")
        rows = rows[1:]
    if len(rows) < 1 + options.header:
        raise Refused("there are no rows in the sheet", "give a sheet with data below the header")
    heads = rows[0] if options.header else [f"c{j + 1}" for j in range(len(rows[0]))]
    data = rows[options.header :]
    totals = trailing_totals(data, data[1:], options)
    return Columns.of(path, heads, map(_typed, zip(*data[: len(data) - totals])))


def _sheet(path: Path, options: ReadOptions) -> list[list[Any]]:
    """Return the cells of a sheet, "" where they are empty."""
    try:
        import python_calamine
    except ImportError:
        remedy = "pip install 'skpursuit[cli]', or save the sheet as CSV"
        raise Refused("reading Excel needs python-calamine, which is not installed", remedy) from None
    try:
        book = python_calamine.CalamineWorkbook.from_path(str(path))
        names = book.sheet_names
        sheet = options.sheet or names[0]
        rows = book.get_sheet_by_name(sheet).to_python(skip_empty_area=True) if sheet in names else None
    except Exception:  # calamine raises whatever the bytes lead to
        remedy = "the file is damaged or something else: save it again as .xlsx"
        raise Refused("this cannot be read as a workbook", remedy) from None
    if rows is None:
        advice = Advice("sheet", ("--sheet", names[0]), "--sheet")
        raise Refused(f"there is no sheet {show(sheet)}", f"the sheets are {listing(names)}", advice)
    if len(names) > 1 and options.sheet is None:
        options.told(f"the first of {len(names)} sheets is read, {show(names[0])}; --sheet names another")
    return rows


def _filled(row: list[Any]) -> int:
    return sum(cell != "" for cell in row)


def _typed(cells: tuple[Any, ...]) -> Any:
    known = {type(cell) for cell in cells if cell != ""}
    values = [None if cell == "" else cell for cell in cells]
    if known and known <= {int, float}:
        return pyarrow.array(values, pyarrow.float64())
    if known == {bool}:
        return pyarrow.array(values, pyarrow.bool_())
    if known and known <= {datetime.date, datetime.datetime}:
        days = pyarrow.array([v and v.isoformat() for v in values], pyarrow.string())
        return days.cast(pyarrow.timestamp("us"))
    whole = [int(v) if isinstance(v, float) and v.is_integer() and abs(v) < 2**53 else v for v in values]
    return pyarrow.array([None if v is None else str(v) for v in whole], pyarrow.string())
