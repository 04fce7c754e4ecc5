"""Files that are wide, swallow their own rows, or unpack to more than there is."""

import numpy as np
import pytest

from skpursuit.tables import (
    EncodingOptions,
    ReadOptions,
    TableError,
    delimited,
    read_columns,
    read_table,
    source,
    stream_columns,
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


@pytest.mark.parametrize("block", [37, 1000, 20_000])
def test_lines_that_are_longer_than_a_block(tmp_path, monkeypatch, block):
    monkeypatch.setattr(source, "BLOCK", block)
    monkeypatch.setattr(delimited, "BLOCK", 1000)
    X = wide(tmp_path / "t.csv", 500)
    (piece,) = stream_columns(tmp_path / "t.csv")
    for columns in (read_columns(tmp_path / "t.csv"), piece):
        assert [columns.raw[name].cell(5) for name in columns.all_names] == [str(v) for v in X[5].tolist()]


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
@pytest.mark.parametrize(
    "read", [lambda *given: [read_columns(*given)], lambda *given: list(stream_columns(*given))]
)
def test_quoted_line_breaks_are_told_and_many_refused(tmp_path, monkeypatch, read, blank):
    told = []
    options = ReadOptions(told=told.append)
    monkeypatch.setattr(delimited, "BLOCK", 2000)
    quoted(tmp_path / "t.csv", blank=blank)
    assert sum(columns.n_rows for columns in read(tmp_path / "t.csv", options)) == 300
    assert told == []
    quoted(tmp_path / "t.csv", strays=(100, 200), blank=blank)
    assert sum(columns.n_rows for columns in read(tmp_path / "t.csv", options)) == 200
    lines = (202, 402) if blank else (102, 202)
    assert len(told) == 1
    assert told[0].startswith("lines {} to {} are one row, with line breaks in quotes".format(*lines))
    quoted(tmp_path / "t.csv", breaks=range(10, 16), blank=blank)
    with pytest.raises(
        TableError, match=r"6 rows go over several lines.*\(lines \d+ to \d+.*say so"
    ) as error:
        read(tmp_path / "t.csv", options)
    assert error.value.advice.options == ("--line-breaks",)
    meant = read(tmp_path / "t.csv", ReadOptions(line_breaks=True))
    assert sum(columns.n_rows for columns in meant) == 300


def test_lines_are_read_again_only_where_rows_are_fewer(tmp_path, monkeypatch):
    """Line breaks are looked for where there are fewer rows than lines, as the csv module is slow."""
    quoted(tmp_path / "t.csv", breaks=())
    text = (tmp_path / "t.csv").read_text().replace("so", '"so, he ""said"""')

    def reader(lines, real=delimited.csv.reader, **more):
        assert isinstance(lines, list), "the second pass reads all lines of the file"
        return real(lines, **more)

    monkeypatch.setattr(delimited.csv, "reader", reader)
    for end in ("\n", "\r\n"):
        for last in (text, text.rstrip("\n")):
            (tmp_path / "t.csv").write_bytes(last.replace("\n", end).encode())
            assert read_columns(tmp_path / "t.csv").raw["words"].cell(299) == 'so, he "said"'
