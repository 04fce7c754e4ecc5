"""Every format gives the same table, and every choice made while reading is honoured."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from skpursuit.tables import EncodingOptions, ReadOptions, TableError, read_columns, read_table

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

ROWS = [(1.5, "red", 10.0), (2.0, "blue", -1.0), (0.25, "red", 3.0)]
CSV = "size,colour,price\n" + "".join(f"{a},{b},{c}\n" for a, b, c in ROWS)
ARFF = """% a comment
@relation 'my things'
@attribute size NUMERIC
@Attribute 'colour' {red, 'blue', green}
@attribute price real
@data
1.5,red,10
2.0,'blue',-1
% another
0.25,red,3
"""


def write(folder, name, content):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def check_colours(path, read=None):
    table = read_table(path, EncodingOptions(target="price"), read)
    assert table.features == ("size", "colour=blue", "colour=red")
    np.testing.assert_array_equal(table.X, [[1.5, 0, 1], [2, 1, 0], [0.25, 0, 1]])
    np.testing.assert_array_equal(table.y, [10, -1, 3])


def test_csv(tmp_path):
    check_colours(write(tmp_path, "t.csv", CSV))


def test_csv_with_byte_order_mark_carriage_returns_and_blank_lines(tmp_path):
    check_colours(write(tmp_path, "t.csv", b"\xef\xbb\xbf" + CSV.replace("\n", "\r\n\r\n").encode()))


def test_csv_with_semicolons_and_quotes(tmp_path):
    text = CSV.replace(",", ";").replace("red", '"red"')
    check_colours(write(tmp_path, "t.csv", text))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("größe, m²;b;y\n1;2;3\n", ("größe, m²", "b", "y")),
        ("größe, m²;b;y\n1.5;2;3\n\n", ("größe, m²", "b", "y")),
        ("a\tb, c\ty\n1\t2\t3\n", ("a", "b, c", "y")),
        ("a;x,b,y\n1,2,3\n", ("a;x", "b", "y")),
        ('"a;\nx;",b\n1,2\n', ("a;\nx;", "b")),
        ("a;b\n\n1;2\n", ("a", "b")),
    ],
)
def test_the_separator_is_found_out(tmp_path, text, names):
    assert read_columns(write(tmp_path, "t.csv", text)).names == names


def test_tsv_and_a_format_that_is_said(tmp_path):
    text = CSV.replace(",", "\t")
    check_colours(write(tmp_path, "t.tsv", text))
    check_colours(write(tmp_path, "t.weird", text), ReadOptions(format="tsv"))


def test_latin_1_when_said(tmp_path):
    path = write(tmp_path, "t.csv", "a,b\né,1\nü,2\n".encode("latin-1"))
    table = read_table(path, EncodingOptions(target="b"), ReadOptions(text_encoding="latin-1"))
    assert table.features == ("a=é", "a=ü")


def test_csv_without_header(tmp_path):
    path = write(tmp_path, "t.csv", "1,2\n3,4\n")
    table = read_table(path, EncodingOptions(target="c2"), ReadOptions(header=False))
    assert table.features == ("c1",)
    np.testing.assert_array_equal(table.X, [[1], [3]])


def test_long_csv_whose_text_shows_up_late(tmp_path):
    lines = ["code,x"] + [f"{i % 7},{i}" for i in range(5000)] + ["A,1"] * 5000
    columns = read_columns(write(tmp_path, "t.csv", "\n".join(lines)))
    assert columns.categorical["code"].labels == ("0", "1", "2", "3", "4", "5", "6", "A")
    assert columns.matrix.shape == (10000, 1)
    assert columns.matrix[4999, 0] == 4999


def test_numbers_as_categories_when_said(tmp_path):
    path = write(tmp_path, "t.csv", "zip,x,y\n10,1,2\n20,2,3\n10,3,4\n")
    table = read_table(path, EncodingOptions(target="y"), ReadOptions(categorical=("zip",)))
    assert table.features == ("x", "zip=10", "zip=20")


def test_dropped_columns_are_not_even_looked_at(tmp_path):
    path = write(tmp_path, "t.csv", "id,x,y\n1,1,2\n2,2,3\n" + "3,1,1\n" * 30 + "oops,3,4\n")
    with pytest.raises(TableError, match="oops"):
        read_table(path, EncodingOptions(target="y"))
    assert read_table(path, EncodingOptions(target="y"), ReadOptions(drop=("id",))).features == ("x",)


def test_parquet(tmp_path):
    sizes, colours, prices = zip(*ROWS)
    table = pa.table({"size": sizes, "colour": pa.array(colours).dictionary_encode(), "price": prices})
    pq.write_table(table, tmp_path / "t.parquet")
    check_colours(tmp_path / "t.parquet")


def test_parquet_kinds(tmp_path):
    table = pa.table(
        {
            "flag": [True, None, False],
            "count": pa.array([1, 2, None], pa.int64()),
            "when": pa.array([0, 1, 2], pa.timestamp("s")),
            "word": ["a", None, "b"],
            "__index_level_0__": [5, 6, 7],
        }
    )
    pq.write_table(table, tmp_path / "t.parquet")
    with pytest.raises(TableError, match="'when' holds timestamp"):
        read_columns(tmp_path / "t.parquet")
    columns = read_columns(tmp_path / "t.parquet", ReadOptions(drop=("when",)))
    assert columns.names == ("flag", "count")
    np.testing.assert_array_equal(columns.matrix, [[1, 1], [np.nan, 2], [0, np.nan]])
    np.testing.assert_array_equal(columns.categorical["word"].codes, [0, -1, 1])


def test_dense_arff(tmp_path):
    check_colours(write(tmp_path, "t.arff", ARFF))


def test_sparse_arff_takes_the_first_label_and_zero_where_nothing_is_written(tmp_path):
    text = """@relation r
@attribute word1 numeric
@attribute flag {0,1}
@attribute 'the kind' {news,sport}
@data
{0 2, 2 sport}
{1 1}
{}
{0 ?, 2 ?}
"""
    columns = read_columns(write(tmp_path, "t.arff", text))
    assert isinstance(columns.matrix, csr_array)
    assert columns.names == ("word1", "flag")
    np.testing.assert_array_equal(columns.matrix.toarray(), [[2, 0], [0, 1], [0, 0], [np.nan, 0]])
    np.testing.assert_array_equal(columns.categorical["the kind"].values(), ["sport", "news", "news", ""])


def test_arff_quotes_and_strings(tmp_path):
    text = "@relation r\n@attribute s string\n@attribute x real\n@data\n'it\\'s, so',1\n\"b\",2\n"
    columns = read_columns(write(tmp_path, "t.arff", text))
    np.testing.assert_array_equal(columns.categorical["s"].values(), ["it's, so", "b"])
    sparse = "@relation r\n@attribute x real\n@attribute s {'a, b', c}\n@data\n{0 1, 1 'a, b'}\n"
    columns = read_columns(write(tmp_path, "u.arff", sparse))
    np.testing.assert_array_equal(columns.categorical["s"].values(), ["a, b"])


def test_arff_date_is_refused_only_if_it_is_read(tmp_path):
    text = '@relation r\n@attribute d date "yyyy"\n@attribute x real\n@data\n2001,1\n'
    path = write(tmp_path, "t.arff", text)
    with pytest.raises(TableError, match="'d' has the type 'date"):
        read_columns(path)
    assert read_columns(path, ReadOptions(drop=("d",))).names == ("x",)


def test_npz_dense_with_names_and_text_labels(tmp_path):
    X = np.arange(6).reshape(3, 2)
    np.savez(tmp_path / "t.npz", X=X, y=np.array(["a", "b", "a"]), feature_names=np.array(["u", "v"]))
    table = read_table(tmp_path / "t.npz")
    assert table.features == ("u", "v")
    np.testing.assert_array_equal(table.X, X)
    np.testing.assert_array_equal(table.y, ["a", "b", "a"])


def test_npz_sparse_and_a_column_of_it_as_target(tmp_path):
    X = csr_array(np.array([[0.0, 2, 0], [1, 0, 3]]))
    np.savez(tmp_path / "t.npz", data=X.data, indices=X.indices, indptr=X.indptr, shape=X.shape, y=[1, 2])
    table = read_table(tmp_path / "t.npz", EncodingOptions(target="y"))
    np.testing.assert_array_equal(table.X.toarray(), X.toarray())
    np.testing.assert_array_equal(table.y, [1, 2])
    other = read_table(tmp_path / "t.npz", EncodingOptions(target="2"))
    assert other.features == ("0", "1")
    np.testing.assert_array_equal(other.y, [0, 3])
    np.testing.assert_array_equal(other.X.toarray(), X.toarray()[:, :2])


@pytest.mark.parametrize(("first", "names"), [(1, ("1", "2", "3")), (0, ("0", "1", "2"))])
def test_svmlight_names_columns_as_the_file_does(tmp_path, first, names):
    path = write(tmp_path, "t.svm", f"+1 {first}:0.5 {first + 2}:2 # note\n-1 qid:3 {first + 1}:1\n")
    table = read_table(path)
    assert table.features == names
    np.testing.assert_array_equal(table.X.toarray(), [[0.5, 0, 2], [0, 1, 0]])
    np.testing.assert_array_equal(table.y, [1, -1])


def test_the_sparse_result_of_many_indicators(tmp_path, monkeypatch):
    monkeypatch.setattr("skpursuit.tables.encoding.DENSE_CELLS", 5)
    table = read_table(write(tmp_path, "t.csv", CSV), EncodingOptions(target="price"))
    assert isinstance(table.X, csr_array)
    np.testing.assert_array_equal(table.X.toarray(), [[1.5, 0, 1], [2, 1, 0], [0.25, 0, 1]])


@pytest.mark.parametrize("odd", ["1_2", "\u0663\u0664"])
def test_only_python_takes_these_for_numbers(tmp_path, odd):
    columns = read_columns(write(tmp_path, "t.csv", f"code,y\n{odd},1\n12,2\n"))
    assert columns.names == ("y",)
    assert set(columns.categorical["code"].labels) == {odd, "12"}
    arff = "@relation r\n@attribute x real\n@data\n" + odd
    with pytest.raises(TableError, match="is not a number"):
        read_columns(write(tmp_path, "t.arff", arff))
    for line in (f"1 1:2\n{odd} 1:2\n", f"1 1:2\n1 {odd}:2\n", f"1 1:2\n1 1:{odd}\n"):
        with pytest.raises(TableError, match="line 2 is not LABEL INDEX:VALUE"):
            read_columns(write(tmp_path, "t.svm", line))


def test_blanks_of_any_kind_around_a_number(tmp_path):
    columns = read_columns(write(tmp_path, "t.csv", "x,y\n\u00a01,2\n3 ,4\n"))
    np.testing.assert_array_equal(columns.matrix, [[1, 2], [3, 4]])


IDS = [2**53, 2**53 + 1, 2**53 + 2, 2**53]


def check_ids(path):
    column = read_columns(path, ReadOptions(categorical=("g",))).categorical["g"]
    assert column.values().tolist() == [str(number) for number in IDS]


def test_large_whole_numbers_stay_different_categories(tmp_path):
    pq.write_table(pa.table({"g": IDS, "y": [1.0, 2, 3, 4]}), tmp_path / "t.parquet")
    check_ids(tmp_path / "t.parquet")
    X = np.column_stack([IDS, [1, 2, 3, 4]])
    np.savez(tmp_path / "t.npz", X=X, feature_names=["g", "x"])
    check_ids(tmp_path / "t.npz")
    S = csr_array(X)
    parts = {"data": S.data, "indices": S.indices, "indptr": S.indptr, "shape": S.shape}
    np.savez(tmp_path / "t.npz", **parts, feature_names=["g", "x"])
    check_ids(tmp_path / "t.npz")


def test_fractions_as_categories_keep_all_their_digits(tmp_path):
    np.savez(tmp_path / "t.npz", X=np.array([[0.1, 0.1 + 2**-56, 3.0, np.nan]]).T, feature_names=["g"])
    column = read_columns(tmp_path / "t.npz", ReadOptions(categorical=("g",))).categorical["g"]
    assert column.values().tolist() == ["0.1", "0.10000000000000002", "3", ""]


def test_a_string_that_a_sparse_arff_leaves_out_is_refused(tmp_path):
    text = "@relation r\n@attribute x real\n@attribute t string\n@data\n{0 1, 1 b}\n{0 2}\n{0 3, 1 ?}\n"
    path = write(tmp_path, "t.arff", text)
    with pytest.raises(TableError, match=r"row 2 leaves out the string 't'.*--drop t"):
        read_columns(path)
    assert read_columns(path, ReadOptions(drop=("t",))).names == ("x",)
    whole = write(tmp_path, "w.arff", text.replace("{0 2}", "{1 a}"))
    assert read_columns(whole).categorical["t"].values().tolist() == ["b", "a", ""]
    none = write(tmp_path, "n.arff", text.replace(", 1 b", "").replace(", 1 ?", ""))
    with pytest.raises(TableError, match="row 1 leaves out the string"):
        read_columns(none)


def test_npz_of_bytes(tmp_path):
    X = np.ones((2, 1))
    np.savez(tmp_path / "t.npz", X=X, y=np.array(["é".encode(), b"b"]), feature_names=np.array([b"d"]))
    table = read_table(tmp_path / "t.npz")
    assert table.features == ("d",)
    assert table.y.tolist() == ["é", "b"]


def test_svmlight_with_huge_indices_and_a_byte_order_mark(tmp_path):
    table = read_table(write(tmp_path, "t.svm", b"\xef\xbb\xbf1 7:0.5 2000000000:2\n2 7:1\n"))
    assert table.features == ("7", "2000000000")
    np.testing.assert_array_equal(table.X.toarray(), [[0.5, 2], [1, 0]])
    np.testing.assert_array_equal(table.y, [1, 2])
