"""Files that are wide, swallow their own rows, or unpack to more than there is."""

import numpy as np
import pytest

from skpursuit.tables import EncodingOptions, delimited, read_columns, read_table, source, stream_columns


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
