"""Files whose cells have types: Parquet by pyarrow, Excel by calamine. Their columns stay as they are."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.compute
import pyarrow.parquet

from .columns import Columns, ReadOptions, different
from .errors import TableError, listing, show
from .source import check_readable


def read_parquet(path: Path, options: ReadOptions) -> Columns:
    """Read a Parquet file: numbers, truth values, times and texts; what is nested is left out."""
    check_readable(path)
    try:
        table = pyarrow.parquet.ParquetFile(path).read()
        table.validate(full=True)
    except (pyarrow.ArrowException, OSError, MemoryError) as error:
        if "UTF8" in str(error):
            raise TableError(path, "it holds text that is not UTF-8", "write it again as text") from None
        remedy = "the file is damaged, cut off or something else: get or write it again"
        raise TableError(path, "this cannot be read as Parquet", remedy) from None
    columns, strange = {}, []
    for name, column in zip(different(table.column_names), table.columns):
        plain = None if name.startswith("__index_level_") else _plain(column)  # the row index of pandas
        if plain is not None:
            columns[name] = plain
        elif not name.startswith("__index_level_"):
            strange.append(name)
    if strange:
        options.told(f"columns that hold neither numbers, texts nor times are left out: {listing(strange)}")
    if not columns:
        raise TableError(path, "no column holds numbers, texts or times", "write a table that does")
    return Columns(str(path), columns)


def _plain(column: Any) -> Any:
    """Return a column as texts, numbers, truth values or times; None if it is none of them."""
    types = pyarrow.types
    kind = column.type
    if types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    if types.is_decimal(kind):
        return column.cast(pyarrow.float64(), safe=False)
    if types.is_large_string(kind) or types.is_null(kind) or types.is_string_view(kind):
        return column.cast(pyarrow.string())
    if types.is_date(kind) or types.is_timestamp(kind):
        return column.cast(pyarrow.timestamp("us"), safe=False)
    if types.is_time(kind):
        return column.cast(pyarrow.string())
    simple = (
        types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind) or types.is_string(kind)
    )
    return column if simple else None


def read_excel(path: Path, options: ReadOptions) -> Columns:
    """Read one sheet of a workbook; a column of cells of one type keeps that type, any other is text."""
    check_readable(path)
    try:
        import python_calamine
    except ImportError:
        remedy = "pip install 'skpursuit[cli]', or save the sheet as CSV"
        raise TableError(
            path, "reading Excel needs python-calamine, which is not installed", remedy
        ) from None
    try:
        book = python_calamine.CalamineWorkbook.from_path(str(path))
        names = book.sheet_names
        if options.sheet is not None and options.sheet not in names:
            problem = f"there is no sheet {show(options.sheet)}"
            raise TableError(
                path, problem, f"the sheets are {listing(names)}", ("--sheet", names[0]), "--sheet"
            )
        rows = book.get_sheet_by_name(options.sheet or names[0]).to_python(skip_empty_area=True)
    except TableError:
        raise
    except Exception:  # calamine raises whatever the bytes lead to
        remedy = "the file is damaged or something else: save it again as .xlsx"
        raise TableError(path, "this cannot be read as a workbook", remedy) from None
    if len(names) > 1 and options.sheet is None:
        options.told(f"the first of {len(names)} sheets is read, {show(names[0])}; --sheet names another")
    rows = [row for row in rows if any(cell != "" for cell in row)]
    width = max((sum(cell != "" for cell in row) for row in rows[:50]), default=0)
    while len(rows) > 2 and options.header and sum(cell != "" for cell in rows[0]) < 0.5 * width:
        options.told(
            f"the row above the header is left out: {show(' '.join(str(c) for c in rows[0] if c != ''))}"
        )
        rows = rows[1:]
    if len(rows) < 1 + options.header:
        raise TableError(path, "there are no rows in the sheet", "give a sheet with data below the header")
    heads = rows[0] if options.header else [f"c{j + 1}" for j in range(len(rows[0]))]
    cells = list(zip(*rows[options.header :]))
    return Columns(str(path), {name: _cells(column) for name, column in zip(different(heads), cells)})


def _cells(cells: tuple[Any, ...]) -> Any:
    known = {type(cell) for cell in cells if cell != ""}
    values = [None if cell == "" else cell for cell in cells]
    if known and known <= {int, float}:
        return pyarrow.array(values, pyarrow.float64())
    if known == {bool}:
        return pyarrow.array(values, pyarrow.bool_())
    if known and known <= {datetime.date, datetime.datetime}:
        whole = [v if v is None or isinstance(v, datetime.datetime) else _midnight(v) for v in values]
        return pyarrow.array(whole, pyarrow.timestamp("us"))
    return pyarrow.array([None if v is None else _text(v) for v in values], pyarrow.string())


def _midnight(day: datetime.date) -> datetime.datetime:
    return datetime.datetime.combine(day, datetime.time())


def _text(value: Any) -> str:
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return value.isoformat(" ") if isinstance(value, datetime.datetime) else str(value)
