"""Large files are read by a compiled kernel: the same tables, the same refusals."""

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from skpursuit.tables import ReadOptions, TableError, delimited, read_columns


def outcome(path, options, monkeypatch, large):
    """What reading gives, in a form that can be compared."""
    monkeypatch.setattr(delimited, "LARGE_FILE", 0 if large else 2**60)
    try:
        columns = read_columns(path, options)
    except TableError as error:
        return str(error)
    texts = {name: (column.labels, column.codes.tolist()) for name, column in columns.categorical.items()}
    return columns.names, columns.matrix.shape, columns.matrix.tobytes(), texts


def check_same(path, monkeypatch, **options):
    options = ReadOptions(**options)
    large = outcome(path, options, monkeypatch, large=True)
    assert large == outcome(path, options, monkeypatch, large=False)
    return large


NUMBERS = st.floats(allow_nan=True).map(repr) | st.sampled_from(["1", "-2.50", "1e3", " 7 ", "+1", "1_000"])
ODD = st.sampled_from(
    ["", "NA", "?", "x", "é", '"1"', '"a"', '""', 'a"', '"a,b"', '"a\nb"', '"', "0x1", "1,5", "inf", "\t"]
)  # fmt: skip
ROW = st.lists(NUMBERS | NUMBERS | ODD, min_size=1, max_size=4).map(",".join)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(ROW, max_size=9), end=st.sampled_from(["\n", "\r\n", "\n\n", "\r"]), header=st.booleans()
)
@example(rows=["1,2", '3,"4', '5",6'], end="\n", header=False)
@example(rows=["1,2", "3,4", "5"], end="\n", header=False)
@example(rows=['"a",1', '"",2', '"b,c",3'], end="\n", header=True)
@example(rows=['"a,"b"', '"a"b,1', 'a"b",1', '"a""b",1'], end="\n", header=True)
@example(rows=['""', '"1"', "2"], end="\n", header=False)
@example(rows=['"a,b', 'c,"d'], end="\n", header=True)
def test_the_same_as_for_small_files(tmp_path, monkeypatch, rows, end, header):
    monkeypatch.setattr(delimited, "BLOCK_ROWS", 2)
    path = tmp_path / "t.csv"
    path.write_bytes(end.join(["a,b", *rows] if header else rows).encode())
    check_same(path, monkeypatch, header=header)


def test_all_bits_and_missing_values(tmp_path, monkeypatch):
    X = np.random.default_rng(0).standard_normal((5000, 3))
    X[::7, 1] = np.nan
    path = tmp_path / "t.csv"
    path.write_text("a,b,c\n" + "".join(f"{a!r},{'' if b != b else b},{c!r}\n" for a, b, c in X.tolist()))
    names, shape, content, _ = check_same(path, monkeypatch)
    assert names == ("a", "b", "c")
    np.testing.assert_array_equal(np.frombuffer(content).reshape(shape), X)


def test_text_that_shows_up_late_and_columns_that_are_dropped(tmp_path, monkeypatch):
    path = tmp_path / "t.csv"
    path.write_text("code,x,w\n" + "".join(f"{i % 7},{i},one\n" for i in range(5000)) + "A,1,two\n" * 5000)
    names, shape, _, texts = check_same(path, monkeypatch)
    assert names == ("x",)
    assert shape == (10000, 1)
    assert texts["code"][0] == ("0", "1", "2", "3", "4", "5", "6", "A")
    assert check_same(path, monkeypatch, drop=("w", "code"))[3] == {}


@pytest.mark.parametrize(
    ("tail", "message"),
    [
        ("1,2\n3\n4,5\n", "line 5003 has 1 fields where the first line has 2; correct"),
        ("1,2\n3", "line 5003 has 1 fields .* cut off"),
        ('1,"2\n3,4\n', "ends inside a quoted field"),
        ("1," + "1" * 140_000 + "\n", "line 5002: a field has more than"),
        ("1,\udcff\n", r"not utf-8 \(byte 0xff\)"),
        ("1,\0\n", "line 5002 holds NUL bytes|the file holds NUL bytes"),
        ("1,oops\n", "column 'b', row 5001: 'oops' is not a number"),
    ],
)
def test_refusals_deep_in_the_file(tmp_path, monkeypatch, tail, message):
    path = tmp_path / "t.csv"
    path.write_bytes(("a,b\n" + "1,2\n" * 5000 + tail).encode("utf-8", "surrogateescape"))
    refusal = check_same(path, monkeypatch)
    with pytest.raises(TableError, match=message):
        read_columns(path)
    assert isinstance(refusal, str)


def test_what_is_no_file(tmp_path):
    for name in ("none.tsv", "none.csv"):
        with pytest.raises(TableError, match="no such file"):
            read_columns(tmp_path / name)


@pytest.mark.parametrize("texts", ["a", "f", "bc", "de", "af", "abcdef"])
def test_text_in_any_columns(tmp_path, monkeypatch, texts):
    path = tmp_path / "t.csv"
    rows = [[f"{name}{i % 3}" if name in texts else str(i) for name in "abcdef"] for i in range(9)]
    path.write_text("\n".join(map(",".join, ["abcdef", *rows])))
    names, _, _, found = check_same(path, monkeypatch)
    assert names == tuple(name for name in "abcdef" if name not in texts)
    assert {name: labels for name, (labels, _) in found.items()} == {
        name: tuple(f"{name}{i}" for i in range(3)) for name in texts
    }
