"""Bad files: always a TableError of one line that names the file."""

import io
import pickle
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skpursuit.apps.tables import READERS, EncodingOptions, ReadOptions, TableError, read_columns, read_table

GOOD_ARFF = "@relation r\n@attribute x real\n@attribute c {a,b}\n@data\n"

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
    "too wide": ("t.csv", b"a,b\n1,2\n3,4,5\n", "line 3 has 3 fields"),
    "cut off": ("t.csv", b"a,b\n1,2\n3", "line 3 has 1 fields .* cut off"),
    "cut off in quotes": ("t.csv", b'a,b\n1,"2\n3,4\n', "cut off"),
    "no header": ("t.csv", b"1,2\n3,4\n", "numbers where column names should be; add a line of names"),
    "unknown format": ("t.docx", b"hello", "'docx' is not a known table format; use one of csv"),
    "npz that is a pickle": ("t.npz", pickle.dumps({"X": 1}), "cannot be read as npz"),
    "npz that is text": ("t.npz", b"a,b\n1,2\n", "cannot be read as npz"),
    "parquet that is text": ("t.parquet", b"a,b\n1,2\n", "cannot be read as Parquet"),
    "svmlight label": ("t.svm", b"1 1:2\nspam 1:2\n", "line 2 is not LABEL INDEX:VALUE.*'spam"),
    "svmlight cut": ("t.svm", b"1 1:2\n1 2:", "line 2 is not"),
    "svmlight order": ("t.svm", b"1 3:2 2:1\n", "line 1 is not"),
    "arff without data": ("t.arff", b"@relation r\n@attribute x real\n", "ARFF"),
    "arff that is csv": ("t.arff", b"a,b\n1,2\n", "cannot be read as ARFF"),
    "arff attribute": ("t.arff", b"@attribute x\n@data\n1\n", "cannot be read as ARFF"),
    "arff string": ("t.arff", b"@relation r\n@attribute x string\n@data\na\n", "write it as CSV"),
    "arff no rows": ("t.arff", GOOD_ARFF.encode(), "no rows"),
    "arff label": ("t.arff", (GOOD_ARFF + "1,c\n").encode(), "c value not in"),
    "arff number": ("t.arff", (GOOD_ARFF + "x,a\n").encode(), "cannot be read as ARFF"),
    "arff ragged": ("t.arff", (GOOD_ARFF + "1\n").encode(), "cannot be read as ARFF"),
    "arff sparse": ("t.arff", (GOOD_ARFF + "{0 1}\n").encode(), "nominal values in dense rows"),
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


def test_wrong_columns(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("price,size\n1,2\n")
    with pytest.raises(TableError, match="there is no column 'prise'; did you mean 'price'"):
        read_table(path, EncodingOptions(target="prise"))
    with pytest.raises(TableError, match="not said which column is the target"):
        read_table(path)
    for kind in ("drop", "category"):
        with pytest.raises(TableError, match="there is no column 'nope'; the columns are 'price', 'size'"):
            read_table(path, EncodingOptions("price", {"nope": kind}))


def npz(folder, **arrays):
    path = folder / "t.npz"
    np.savez(path, **arrays)
    return path


def test_bad_npz(tmp_path):
    X = np.ones((3, 2))
    check_refused(npz(tmp_path, Z=X), r"there is no X among the arrays \('Z'\)")
    check_refused(npz(tmp_path, X=np.ones(3)), "1-dimensional")
    check_refused(npz(tmp_path, X=X.astype(str)), "not a table of numbers")
    check_refused(npz(tmp_path, X=X, y=np.ones(2)), "y has the shape")
    check_refused(npz(tmp_path, X=X, feature_names=np.array(["a"])), "feature_names has the shape")
    check_refused(npz(tmp_path, X=np.ones((0, 2))), "no rows")
    check_refused(npz(tmp_path, data=X, indptr=X), "parts of the sparse matrix are missing")
    check_refused(npz(tmp_path, X=np.array([{"a": 1}, 2], dtype=object)), "Python objects")
    check_refused(npz(tmp_path, X=X, y=np.array(3 * ["2001-01-01"], "M8[D]")), r"y holds datetime64\[D\]")
    check_refused(npz(tmp_path, X=X, y=1j * X[:, 0]), "y holds complex128, which is neither")
    check_refused(npz(tmp_path, X=X, y=np.array(3 * [b"\xff"])), "y holds bytes that are not UTF-8")
    parts = {"data": [1.0], "indices": [0], "indptr": [0, 1], "shape": [1, 1]}
    check_refused(npz(tmp_path, **parts, format=np.array(["csr", "csr"])), "not in CSR form")
    for wrong in ({"data": ["a"]}, {"indices": [996]}):
        check_refused(npz(tmp_path, **parts | wrong), "do not make up a sparse matrix")
    np.save(tmp_path / "one.npy", X)
    (tmp_path / "one.npy").rename(tmp_path / "one.npz")
    check_refused(tmp_path / "one.npz", "single array")


@pytest.mark.parametrize("shape", [(2**40, 2**20), (2**62, 4), (10**30, 4), (200_000, 2_000_000)])
def test_npz_that_claims_a_gigantic_array(tmp_path, shape):
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": shape})
    with zipfile.ZipFile(tmp_path / "t.npz", "w") as archive:
        archive.writestr("X.npy", header.getvalue() + bytes(100))
    check_refused(tmp_path / "t.npz", "cannot be read as npz")


def test_npz_of_an_unknown_compression(tmp_path):
    path = tmp_path / "t.npz"
    np.savez_compressed(path, X=np.ones((5, 5)))
    content = path.read_bytes()
    for mark, place in ((b"PK\x01\x02", 10), (b"PK\x03\x04", 8)):
        at = content.find(mark) + place
        content = content[:at] + b"\x63\x00" + content[at + 2 :]
    path.write_bytes(content)
    check_refused(path, "cannot be read as npz")


@pytest.mark.parametrize("width", [2**40, 2**62])
def test_npz_with_few_of_very_many_columns(tmp_path, width):
    parts = {"data": [1.0, 2, 3], "indices": [0, 5, width - 1], "indptr": [0, 1, 2, 3]}
    columns = read_columns(npz(tmp_path, **parts, shape=np.array([3, width])))
    assert columns.names == ("0", "5", str(width - 1))
    np.testing.assert_array_equal(columns.matrix.toarray(), np.diag([1.0, 2, 3]))


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


def test_the_error_survives_a_process_boundary():
    error = pickle.loads(pickle.dumps(TableError("f.csv", "is bad", "repair it")))
    assert str(error) == "f.csv: is bad; repair it"
    assert error.remedy == "repair it"


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
