"""Files that are wide, swallow their own rows, unpack to more than there is, or hold what cannot be kept."""

import gzip
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.support.process import run_code

from skpursuit.apps.tables import (
    EncodingOptions,
    ReadOptions,
    TableError,
    columns,
    delimited,
    read_columns,
    read_table,
)


def wide(path, d, name="ENSG{:012d}", rows=6):
    X = np.round(np.random.default_rng(0).standard_normal((rows, d)), 3)
    lines = [",".join(name.format(j) for j in range(d)), *(",".join(map(str, row)) for row in X.tolist())]
    path.write_text("\n".join(lines) + "\n")
    return X


def test_a_header_of_any_length_is_read_by_name(tmp_path):
    X = wide(tmp_path / "t.csv", 20_000)
    table = read_table(tmp_path / "t.csv", EncodingOptions("ENSG000000019999"))
    assert table.features[:2] == ("ENSG000000000000", "ENSG000000000001")
    np.testing.assert_array_equal(table.X, X[:, :-1])
    np.testing.assert_array_equal(table.y, X[:, -1])


def test_lines_that_are_longer_than_a_block(tmp_path, monkeypatch):
    monkeypatch.setattr(delimited, "CSV_BLOCK_BYTES", 1000)
    X = wide(tmp_path / "t.csv", 500)
    found = read_columns(tmp_path / "t.csv")
    assert [found.raw[name].cell(5) for name in found.all_names] == [str(v) for v in X[5].tolist()]


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="threads are counted on Linux alone")
def test_no_thread_holds_a_text_file_when_it_has_been_read(tmp_path):
    wide(tmp_path / "t.csv", 20, rows=200)
    code = "import os; from skpursuit.apps.tables import read_columns; tasks = lambda: len(os.listdir('{}'));"
    code += "before = tasks(); read_columns({!r}); print(tasks() - before)"
    printed = run_code(code.format("/proc/self/task", str(tmp_path / "t.csv")))
    assert int(printed) <= 1  # the one that hears of Ctrl-C


def test_very_many_columns_of_one_name(tmp_path):
    wide(tmp_path / "t.csv", 20_000, "x")
    names = read_columns(tmp_path / "t.csv").all_names
    assert (names[0], names[1], names[-1]) == ("x", "x (2)", "x (20000)")


def quoted(path, breaks=(), strays=(), n=300, blank=""):
    """A table of n rows; those of `breaks` have a cell of three lines, those of `strays` an opening quote."""
    rng = np.random.default_rng(0)
    cells = {i: f'"so {i}\n\n  said, he"' for i in breaks} | dict.fromkeys(strays, '"so')
    rows = [f"{v:.3f},{cells.get(i, 'so')},{2 * v:.3f}\n{blank}" for i, v in enumerate(rng.random(n))]
    path.write_text("size,words,price\n" + "".join(rows))


@pytest.mark.parametrize("blank", ["", "\n"])
def test_quoted_line_breaks_are_told_and_many_refused(tmp_path, monkeypatch, blank):
    told = []
    options = ReadOptions(notify=told.append)
    monkeypatch.setattr(delimited, "CSV_BLOCK_BYTES", 2000)
    quoted(tmp_path / "t.csv", blank=blank)
    assert read_columns(tmp_path / "t.csv", options).n_rows == 300
    assert told == []
    quoted(tmp_path / "t.csv", strays=(100, 200), blank=blank)
    assert read_columns(tmp_path / "t.csv", options).n_rows == 200
    lines = (202, 402) if blank else (102, 202)
    assert len(told) == 1
    assert told[0].startswith("lines {} to {} are one row, with line breaks in quotes".format(*lines))
    quoted(tmp_path / "t.csv", breaks=range(10, 16), blank=blank)
    with pytest.raises(
        TableError, match=r"6 rows go over several lines.*\(lines \d+ to \d+.*say so"
    ) as error:
        read_columns(tmp_path / "t.csv", options)
    assert error.value.advice.options == ("--line-breaks",)
    assert read_columns(tmp_path / "t.csv", ReadOptions(line_breaks=True)).n_rows == 300


# -- sizes -------------------------------------------------------------------------------------------------


def sheet(path, last):
    """A workbook of a few rows and one cell far away."""
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for i in range(8):
        book.active.append(["a", "b"] if i == 0 else [i, i * i])
    book.active[last] = 1
    book.save(path)


def packed_text(path):
    path.write_bytes(gzip.compress(b"a,b\n" + b"1,2\n" * 750_000))


def one_value(path):
    pq.write_table(pa.table({"a": np.zeros(200_000), "b": np.zeros(200_000)}), path)


LARGE = {
    "t.csv.gz": packed_text,
    "t.parquet": one_value,
    "t.xlsx": lambda path: sheet(path, "ALL78"),
}  # of 3 MB each


@pytest.mark.parametrize("name", LARGE)
def test_what_unpacks_to_more_than_is_free_is_refused(tmp_path, monkeypatch, name):
    LARGE[name](tmp_path / name)
    told = []
    monkeypatch.setattr(columns, "LARGE_TABLE_BYTES", 2e6)
    monkeypatch.setattr(columns, "available_memory", lambda: 5e6)
    read_columns(tmp_path / name, ReadOptions(notify=told.append))
    assert [sentence for sentence in told if sentence.startswith("it unpacks to 0.0 GB, which")] == told[:1]
    monkeypatch.setattr(columns, "available_memory", lambda: 1e6)
    words = r"unpacks to 0\.0 GB at least, and 0\.0 GB of memory are free; leave out"
    with pytest.raises(TableError, match=words):
        read_columns(tmp_path / name)


def test_one_cell_at_the_end_of_a_sheet(tmp_path):
    sheet(tmp_path / "t.xlsx", "XFD1048576")
    with pytest.raises(TableError, match=r"687\.2 GB at least.*cells far from the table"):
        read_columns(tmp_path / "t.xlsx")
    sheet(tmp_path / "t.xlsx", "C9000")
    assert read_columns(tmp_path / "t.xlsx").n_rows == 8


# -- what cannot be kept -----------------------------------------------------------------------------------


def test_mixed_encodings_are_told_with_the_column(tmp_path):
    lines = [f"{i},Müller {i},{2 * i}\n".encode("utf-8" if i % 9 else "cp1252") for i in range(1, 40)]
    told = []
    (tmp_path / "t.csv").write_bytes(b"a,name,y\n" + b"".join(lines))
    read_columns(tmp_path / "t.csv", ReadOptions(notify=told.append))
    assert len(told) == 1
    assert "UTF-8 and others Windows-1252" in told[0]
    assert "column 'name' holds 'MÃ¼ller 1'" in told[0]
    told.clear()
    words = "„Spaß“ «CAFÉ» São Ähre à € Œuvre Å«"  # none of them UTF-8 by mistake
    (tmp_path / "t.csv").write_bytes(("a,b\n" + f"{words},2\n" * 9).encode("cp1252"))
    read_columns(tmp_path / "t.csv", ReadOptions(notify=told.append))
    assert told == []


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_whole_numbers_of_too_many_digits_are_names(tmp_path, kind):
    rows = {"a": [2**53 + i % 5 for i in range(40)], "b": [2**53 + 1] * 39 + [3], "y": list(range(40))}
    path = tmp_path / f"t.{kind}"
    if kind == "parquet":
        pq.write_table(pa.table(rows), path)
    else:
        path.write_text("a,b,y\n" + "".join(f"{a},{b},{y}\n" for a, b, y in zip(*rows.values())))
    table = read_table(path, EncodingOptions("y"))
    assert table.features == (*(f"a={2**53 + i}" for i in range(5)), "b=9007199254740993")


def test_large_numbers_that_keep_their_digits_and_those_that_have_no_square(tmp_path):
    rows = [f"{2**60 + 2**20 * i},{1e300 * i},{i}\n" for i in range(40)]
    (tmp_path / "t.csv").write_text("a,b,y\n" + "".join(rows))
    with pytest.raises(TableError, match=r"'b' goes beyond 1e\+100; give it in a larger unit"):
        read_table(tmp_path / "t.csv", EncodingOptions("y"))
    assert read_table(tmp_path / "t.csv", EncodingOptions("y", {"a": "number", "b": "drop"})).features == (
        "a",
    )


REPEATED = '<table:table-row table:number-rows-repeated="999999999999999999"><table:table-cell/>'
SHEETS = {
    "GB": f"<table:table>{REPEATED}</table:table-row></table:table>",  # more cells than memory holds
    r"t\.ods": "<office:spreadsheet><table:table><table:table-row>",  # which is not closed
}


@pytest.mark.parametrize("words", SHEETS)
def test_sheets_that_no_program_wrote(tmp_path, words):
    with zipfile.ZipFile(tmp_path / "t.ods", "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr("content.xml", SHEETS[words])
    with pytest.raises(TableError, match=words):
        read_columns(tmp_path / "t.ods")
