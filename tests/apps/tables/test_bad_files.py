"""Bad files: always a TableError of one line that names the file."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skpursuit.apps.tables import READERS, EncodingOptions, ReadOptions, TableError, read_columns, read_table

BAD_TEXT = {
    "empty file": ("t.csv", b"", "the file is empty"),
    "only a header": ("t.csv", b"a,b\n", "no rows in the table"),
    "only blank lines": ("t.csv", b"\n\n\n", "the file is empty"),
    "only a byte order mark": ("t.csv", b"\xef\xbb\xbf", "the file is empty"),
    "binary": ("t.csv", bytes(range(256)), "NUL bytes"),
    "nul byte late": ("t.csv", b"a,b\n" + b"1,2\n" * 30000 + b"1,\x002\n", "line 30002 holds NUL"),
    "picture": ("t.csv", b"\x89PNG\r\n\x1a\n....", "this is a picture"),
    "spreadsheet": ("t.csv", b"PK\x03\x04....", "zip archive"),
    "gzip": ("t.csv", b"\x1f\x8b\x08....", "gzip"),
    "ragged": ("t.csv", b"a,b\n1,2\n3\n4,5\n", "line 3 has 1 fields where there are 2 columns: '3'; correct"),
    "cut off in quotes": ("t.csv", b'a,b\n1,"2\n3,4\n', "cut off"),
    "no header": ("t.csv", b"1,2\n3,4\n", "numbers where column names should be; add a line of names"),
    "unknown format": ("t.docx", b"hello", "'docx' is not a known table format; use one of csv"),
    "parquet that is text": ("t.parquet", b"a,b\n1,2\n", "cannot be read as Parquet"),
}


def check_refused(path, match, *args):
    with pytest.raises(TableError, match=match) as caught:
        read_columns(path, *args)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    assert "; " in message
    assert len(message) < len(str(path)) + 250


@pytest.mark.parametrize("case", BAD_TEXT)
def test_bad_content(tmp_path, case):
    name, content, match = BAD_TEXT[case]
    path = tmp_path / name
    path.write_bytes(content)
    check_refused(path, match)


def test_a_huge_line(tmp_path, monkeypatch):
    monkeypatch.setattr("skpursuit.apps.tables.text_files.MAX_LINE", 2**20)
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,b\n" + b"1" * (2**21))
    check_refused(path, "line 2 is longer than 1 million characters")


def test_no_such_file_a_folder_and_an_unknown_encoding(tmp_path):
    check_refused(tmp_path / "none.csv", "no such file")
    (tmp_path / "folder.csv").mkdir()
    check_refused(tmp_path / "folder.csv", "this is a folder")
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,2\n")
    check_refused(path, "no text encoding is called 'klingon'", ReadOptions(text_encoding="klingon"))


def test_the_only_column_that_contains_the_word_is_the_target(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(
        "House price (€),size m2,size ft2\n" + "".join(f"{3 * i},{i},{10 * i}\n" for i in range(9))
    )
    with pytest.warns(UserWarning, match=r"the target is 'House price \(€\)'"):
        assert read_table(path, EncodingOptions("price")).encoding.target == "House price (€)"
    with pytest.raises(TableError, match="no column 'ft'; did you mean 'size ft2'"):
        read_table(path, EncodingOptions("House price (€)", {"ft": "drop"}))


def test_a_column_that_is_not_there_and_no_target(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("price,size\n1,2\n")
    with pytest.raises(TableError, match="not said which column is the target"):
        read_table(path)
    with pytest.raises(TableError, match="there is no column 'nope'; the columns are 'price', 'size'"):
        read_table(path, EncodingOptions("price", {"nope": "category"}))


def test_parquet_of_bytes_that_are_no_text(tmp_path):
    buffers = [None, pa.py_buffer(np.array([0, 1, 3, 4], dtype=np.int32)), pa.py_buffer(b"a\xff\xfeb")]
    pq.write_table(
        pa.table({"s": pa.Array.from_buffers(pa.string(), 3, buffers)}), tmp_path / "bytes.parquet"
    )
    check_refused(tmp_path / "bytes.parquet", "it holds text that is not UTF-8")


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"a,b\n\n\n1,2\n\n3\n4,5\n", [6]),
        (b'a,b\n"1\n\n2",2\n3\n4,5\n6,7,8\n', [5, 7]),
        (b'a,b\n1,5" pipe\n2\n"x\ny",4\n3,"a"b,c\n', [3, 6]),
        (b"a,b\r\n1,2\r\n3\r\n4,5\r\n", [3]),
    ],
)
def test_all_bad_lines_are_told_by_their_numbers(tmp_path, content, lines):
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    with pytest.raises(TableError) as caught:
        read_columns(path)
    problems = getattr(caught.value, "problems", [caught.value])
    assert [int(one.problem.split()[1]) for one in problems] == lines
    assert all(one.advice.options == ("--skip-bad-rows",) for one in problems)


@pytest.mark.parametrize("kind", READERS)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(content=st.one_of(st.binary(max_size=200), st.text(max_size=200).map(str.encode)))
def test_any_bytes_give_columns_or_a_table_error(tmp_path, kind, content):
    path = tmp_path / f"any.{kind}"
    path.write_bytes(content)
    try:
        n_rows = read_columns(path).n_rows
    except TableError:
        n_rows = None
    assert n_rows != 0
