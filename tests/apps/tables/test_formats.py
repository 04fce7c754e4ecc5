"""Every format to the same columns."""

import datetime

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skpursuit.apps.tables import (
    EncodingOptions,
    ReadOptions,
    TableError,
    delimited,
    read_columns,
    read_table,
)

ROWS = [(1.5, "red", 3.0), (2.0, "blue", 4.0), (0.25, "red", 5.0)]
CSV = "size,colour,price\n" + "".join(f"{a},{b},{c}\n" for a, b, c in ROWS)


def write(folder, name, content):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def texts(path, **options):
    return {
        name: column.to_pylist() for name, column in read_columns(path, ReadOptions(**options)).raw.items()
    }


def check_colours(path, *read):
    table = read_table(path, EncodingOptions(target="price"), *read)
    assert sorted(table.features) == ["colour=red", "size"]
    order = [table.features.index(name) for name in ("size", "colour=red")]
    np.testing.assert_array_equal(table.X[:, order], [[1.5, 1], [2, 0], [0.25, 1]])
    np.testing.assert_array_equal(table.y, [3, 4, 5])


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.csv", "\ufeff" + CSV.replace("\n", "\r\n\r\n")),
        ("t.csv", CSV.replace(",", ";").replace("red", '"red"')),
        ("t.tsv", CSV.replace(",", "\t")),
        ("t.csv", "sep=;\n" + CSV.replace(",", ";")),
        ("t.csv", CSV.encode("utf-16-le")),
        ("t.csv", CSV.rstrip("\n")),
    ],
)
def test_spellings_of_one_table(tmp_path, name, content):
    check_colours(write(tmp_path, name, content))


def test_a_format_that_is_said(tmp_path):
    check_colours(write(tmp_path, "t.weird", CSV.replace(",", "\t")), ReadOptions(format="tsv"))


def test_parquet_and_a_workbook(tmp_path):
    sizes, colours, prices = zip(*ROWS)
    table = pa.table({"size": sizes, "colour": pa.array(colours).dictionary_encode(), "price": prices})
    pq.write_table(table, tmp_path / "t.parquet")
    check_colours(tmp_path / "t.parquet")
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.append(["nothing"])
    sheet = book.create_sheet("data")
    for row in [("size", "colour", "price"), *ROWS]:
        sheet.append(row)
    book.save(tmp_path / "t.xlsx")
    check_colours(tmp_path / "t.xlsx", ReadOptions(sheet="data"))


def test_days_and_times_in_one_column_of_a_workbook(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    day, moment = datetime.date(2020, 1, 2), datetime.datetime(2020, 1, 3, 4, 5)
    for row in [("when", "then", "count"), (day, moment, 2**60), (moment, day, 1), (None, None, None)]:
        book.active.append(row)
    book.active.append((day, day, 2))
    book.save(tmp_path / "t.xlsx")
    columns, midnight = read_columns(tmp_path / "t.xlsx").raw, datetime.datetime(2020, 1, 2)
    assert columns["when"].to_pylist() == [midnight, moment, midnight]
    assert columns["then"].to_pylist() == [moment, midnight, midnight]
    assert columns["count"].to_pylist() == [2.0**60, 1, 2]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("größe, m²;b;y\n1.5;2;3\n\n", ("größe, m²", "b", "y")),
        ("a\tb, c\ty\n1\t2\t3\n", ("a", "b, c", "y")),
        ("a;x,b,y\n1,2,3\n", ("a;x", "b", "y")),
        ('"a;\nx;",b\n1,2\n', ("a; x;", "b")),
        ("a;b\n\n1;2\n", ("a", "b")),
        ("a,b,a,,b\n1,2,3,4,5\n", ("a", "b", "a (2)", "column 4", "b (2)")),
        ("x y\n1\n2\n", ("x y",)),
        ('"a" "b"\n', ()),
    ],
)
def test_the_separator_and_the_names_are_found_out(tmp_path, text, names):
    path = write(tmp_path, "t.csv", text)
    if names:
        assert read_columns(path).all_names == names
    else:
        with pytest.raises(TableError, match="no rows"):
            read_columns(path)


def test_names_of_rows_that_r_writes(tmp_path):
    assert texts(write(tmp_path, "t.csv", 'a,b\n"r1",1,2\n"r2",3,4\n')) == {
        "row": ["r1", "r2"], "a": ["1", "3"], "b": ["2", "4"],
    }  # fmt: skip


def test_quotes_of_all_kinds(tmp_path):
    path = write(tmp_path, "t.csv", 'a,b\n1,5" pipe\n2,"say ""hi"", so"\n3,"two\nlines"\n4, "x"\n')
    assert texts(path)["b"] == ['5" pipe', 'say "hi", so', "two\nlines", ' "x"']


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", None])
def test_windows_text_is_recognised_or_asked_for(tmp_path, encoding):
    path = write(tmp_path, "t.csv", "a,b\né,1\nü,2\n".encode("latin-1"))
    assert texts(path, text_encoding=encoding)["a"] == ["é", "ü"]


def test_csv_without_header(tmp_path):
    path = write(tmp_path, "t.csv", "1,2\n3,4\n")
    assert texts(path, header=False) == {"c1": ["1", "3"], "c2": ["2", "4"]}


def test_rows_that_are_left_out_when_said(tmp_path):
    told = []
    path = write(tmp_path, "t.csv", "a,b\n1,2\n3\n4,5,6\n7,8\n")
    columns = read_columns(path, ReadOptions(skip_bad_rows=True, notify=told.append))
    assert columns.raw["a"].to_pylist() == ["1", "7"]
    assert len(told) == 1


@pytest.mark.parametrize("total", ["Total,9", '"Total","9"', "Summe:,9,9,9", "Total,9,9", ",Total,9"])
def test_a_total_of_any_width_is_left_out_at_the_end_alone(tmp_path, total):
    rows = [f"k{i % 3},{i},{2 * i}" for i in range(9)]
    path = write(tmp_path, "t.csv", "\n".join(["a,b,c", *rows, total, ""]))
    assert read_columns(path).n_rows == 9
    assert read_columns(path, ReadOptions(only=frozenset("c"))).n_rows == 9
    path = write(tmp_path, "t.csv", "\n".join(["a,b,c", *rows[:4], total, *rows[4:], ""]))
    if len(total.split(",")) == 3:
        assert read_columns(path).n_rows == 10
    else:
        with pytest.raises(TableError, match="line 6 has"):
            read_columns(path)


def test_only_some_columns(tmp_path, monkeypatch):
    monkeypatch.setattr(delimited, "CSV_BLOCK_BYTES", 2000)
    path = write(tmp_path, "t.csv", "a,b,c\n" + "".join(f"{i},x{i},{i * 2}\n" for i in range(3000)))
    columns = read_columns(path, ReadOptions(only=frozenset("ac")))
    assert columns.all_names == ("a", "c")
    assert columns.raw["c"].to_pylist() == [str(2 * i) for i in range(3000)]


def test_transposed(tmp_path):
    path = write(tmp_path, "t.csv", "gene,s1,s2\ng1,1,2\ng2,3,4\nill,yes,no\n")
    assert texts(path, transpose=True) == {"g1": ["1", "2"], "g2": ["3", "4"], "ill": ["yes", "no"]}
    pq.write_table(pa.table({"a": [1.0, 2.0]}), tmp_path / "t.parquet")
    with pytest.raises(TableError, match="only a table of texts") as caught:
        read_columns(tmp_path / "t.parquet", ReadOptions(transpose=True))
    assert caught.value.advice.instead_of == "--transpose"


def test_parquet_kinds(tmp_path):
    table = pa.table(
        {
            "flag": [True, None, False],
            "count": pa.array([1, 2, None], pa.int64()),
            "when": pa.array([0, 1, 2], pa.timestamp("s")),
            "day": pa.array([datetime.date(2020, 1, 1)] * 3),
            "word": ["a", None, "b"],
            "list": [[1], [2], [3]],
            "cost": pa.array([1, 2, 3]).cast(pa.decimal128(30, 2)),
            "__index_level_0__": [5, 6, 7],
        }
    )
    pq.write_table(table, tmp_path / "t.parquet")
    told = []
    columns = read_columns(tmp_path / "t.parquet", ReadOptions(notify=told.append))
    assert columns.all_names == ("flag", "count", "when", "day", "word", "cost")
    assert "'list'" in told[0]
    assert columns.raw["cost"].to_pylist() == [1.0, 2.0, 3.0]


def test_names_that_occur_twice_get_a_suffix(tmp_path):
    twice = pa.Table.from_arrays([pa.array([1.0]), pa.array([2.0])], names=["a", "a"])
    pq.write_table(twice, tmp_path / "t.parquet")
    assert read_columns(tmp_path / "t.parquet").all_names == ("a", "a (2)")
