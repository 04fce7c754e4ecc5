"""Categories, gaps and new files."""

import json
from dataclasses import replace

import numpy as np
import pytest

from skpursuit.tables import (
    Encoding,
    EncodingOptions,
    ReadOptions,
    TableError,
    apply_encoding,
    read_columns,
    read_table,
)


def write(folder, name, text):
    path = folder / name
    path.write_text(text)
    return path


GAPS = "x,c,t\n1,a,1\n,b,2\n4,?,3\n7,b,4\n"


@pytest.fixture
def trained(tmp_path):
    path = write(tmp_path, "train.csv", "x,c,z,t\n1,a,5,1\n2,b,6,2\n3,1,7,3\n")
    return read_table(path, EncodingOptions(target="t")).encoding


def test_a_gap_is_named_by_its_column_and_first_row(tmp_path):
    path = write(tmp_path, "t.csv", GAPS)
    with pytest.raises(TableError, match=r"t\.csv: column 'x', row 2: the value is missing; .*--impute"):
        read_table(path, EncodingOptions(target="t"))
    with pytest.raises(TableError, match="column 'c', row 3: the value is missing"):
        read_table(path, EncodingOptions(target="t"), ReadOptions(drop=("x",)))


def test_gaps_are_filled_on_request_and_the_filling_is_remembered(tmp_path):
    table = read_table(write(tmp_path, "t.csv", GAPS), EncodingOptions(target="t", impute=True))
    np.testing.assert_array_equal(table.X, [[1, 1, 0], [4, 0, 1], [4, 0, 1], [7, 0, 1]])
    assert table.encoding.fill == {"x": 4.0, "c": "b"}
    later = apply_encoding(write(tmp_path, "new.csv", "c,x\n,NA\na,9\n"), table.encoding)
    np.testing.assert_array_equal(later.X, [[4, 0, 1], [9, 1, 0]])


def test_gaps_of_a_sparse_table_are_filled_with_the_mean_over_all_known_rows(tmp_path):
    path = write(tmp_path, "t.svm", "1 1:nan 2:1\n2 1:6\n3 2:2\n")
    with pytest.raises(TableError, match="column '1', row 1"):
        read_table(path)
    table = read_table(path, EncodingOptions(impute=True))
    np.testing.assert_array_equal(table.X.toarray(), [[3, 1], [6, 0], [0, 2]])


def test_an_empty_column_cannot_be_imputed(tmp_path):
    path = write(tmp_path, "t.csv", "x,e,t\n1,,1\n2,,2\n")
    with pytest.raises(TableError, match="column 'e' is empty; drop it"):
        read_table(path, EncodingOptions(target="t", impute=True))


def test_infinity_is_never_filled(tmp_path):
    path = write(tmp_path, "t.csv", "x,t\n1,1\ninf,2\n")
    with pytest.raises(TableError, match="column 'x', row 2: the value is infinite"):
        read_table(path, EncodingOptions(target="t", impute=True))


def test_targets_may_be_text_but_never_missing(tmp_path):
    path = write(tmp_path, "t.csv", "x,t\n1,yes\n2,no\n")
    assert list(read_table(path, EncodingOptions(target="t")).y) == ["yes", "no"]
    path = write(tmp_path, "t.csv", "x,t\n1,yes\n2,\n")
    with pytest.raises(TableError, match="target 't', row 2"):
        read_table(path, EncodingOptions(target="t", impute=True))
    path = write(tmp_path, "t.csv", "x,t\n1,4\n2,\n")
    with pytest.raises(TableError, match="target 't', row 2"):
        read_table(path, EncodingOptions(target="t", impute=True))


def test_new_files_are_matched_by_name_in_any_order_others_ignored(tmp_path, trained):
    path = write(tmp_path, "new.csv", "when,z,c,x\n2001-01-01,7,1,0.5\n2002-01-01,8,b,1.5\n")
    table = apply_encoding(path, trained)
    assert table.features == ("x", "z", "c=1", "c=a", "c=b")
    np.testing.assert_array_equal(table.X, [[0.5, 7, 1, 0, 0], [1.5, 8, 0, 0, 1]])
    assert table.y is None


def test_a_column_of_codes_stays_categorical_when_the_new_file_has_only_numbers(tmp_path, trained):
    table = apply_encoding(write(tmp_path, "new.csv", "x,z,c\n1,1,1\n"), trained)
    np.testing.assert_array_equal(table.X, [[1, 1, 1, 0, 0]])


def test_ignored_columns_may_hold_anything(tmp_path, trained):
    text = "x,z,c,junk\n" + "1,1,a,5\n" * 40 + "1,1,a,oops\n"
    assert apply_encoding(write(tmp_path, "new.csv", text), trained).X.shape == (41, 5)


def test_missing_columns_are_named(tmp_path, trained):
    with pytest.raises(TableError, match=r"new\.csv: columns that the model needs are missing: 'z', 'c'"):
        apply_encoding(write(tmp_path, "new.csv", "x\n1\n"), trained)


def test_text_where_numbers_were(tmp_path, trained):
    path = write(tmp_path, "new.csv", "x,z,c\n1,low,a\n1,high,a\n")
    with pytest.raises(TableError, match="column 'z', row 1: 'low' where the model expects numbers"):
        apply_encoding(path, trained)


def test_unknown_categories_are_counted_and_have_no_indicator(tmp_path, trained):
    table = apply_encoding(write(tmp_path, "new.csv", "x,z,c\n1,1,new\n1,1,a\n1,1,newer\n"), trained)
    np.testing.assert_array_equal(table.X[:, 2:], [[0, 0, 0], [0, 1, 0], [0, 0, 0]])
    assert table.unseen == {"c": 2}


def test_svmlight_files_may_be_narrower_or_wider_than_the_training_file(tmp_path):
    encoding = read_table(write(tmp_path, "a.svm", "1 1:1 3:2\n2 2:5\n")).encoding
    narrow = apply_encoding(write(tmp_path, "b.svm", "0 2:7\n"), encoding)
    wide = apply_encoding(write(tmp_path, "c.svm", "0 3:7 9:1\n"), encoding)
    np.testing.assert_array_equal(narrow.X.toarray(), [[0, 7, 0]])
    np.testing.assert_array_equal(wide.X.toarray(), [[0, 0, 7]])


def test_an_svmlight_file_may_leave_out_a_column_of_categories(tmp_path):
    path = write(tmp_path, "a.svm", "1 1:1 2:3\n2 2:5\n")
    encoding = read_table(path, None, ReadOptions(categorical=("2",))).encoding
    assert encoding.features == ("1", "2=3", "2=5")
    known = replace(encoding, categories={"2": ("0", "3")})
    np.testing.assert_array_equal(
        apply_encoding(write(tmp_path, "b.svm", "0 1:7\n"), known).X.toarray(), [[7, 1, 0]]
    )


def test_an_encoding_survives_json_and_can_be_restricted(tmp_path):
    table = read_table(write(tmp_path, "t.csv", GAPS), EncodingOptions(target="t", impute=True))
    encoding = Encoding.from_dict(json.loads(json.dumps(table.encoding.to_dict())))
    assert encoding == table.encoding
    assert encoding.restrict(["c=b"]).features == ("c=a", "c=b")
    later = apply_encoding(write(tmp_path, "new.csv", "c\nb\n"), encoding.restrict(["c=b"]))
    np.testing.assert_array_equal(later.X, [[0, 1]])


def test_identifiers_are_not_turned_into_thousands_of_features(tmp_path):
    path = write(tmp_path, "t.csv", "who,t\n" + "".join(f"p{i},{i}\n" for i in range(30)))
    with pytest.raises(TableError, match=r"'who' has 30 different texts.*--drop who"):
        read_table(path, EncodingOptions(target="t", max_categories=20))


def test_an_indicator_may_not_be_called_like_a_column(tmp_path):
    path = write(tmp_path, "t.csv", "c=a,c,t\n1,a,1\n2,b,2\n")
    with pytest.raises(TableError, match="more than once: 'c=a'"):
        read_table(path, EncodingOptions(target="t"))


def test_nothing_but_a_target(tmp_path):
    with pytest.raises(TableError, match="no column is left"):
        read_table(write(tmp_path, "t.csv", "t\n1\n2\n"), EncodingOptions(target="t"))


def test_columns_keep_what_the_file_holds(tmp_path):
    columns = read_columns(write(tmp_path, "t.csv", GAPS))
    assert columns.all_names == ("x", "t", "c")
    assert columns.n_rows == 4


def encoding_of(path, **read):
    return read_table(path, EncodingOptions(target="t"), ReadOptions(**read)).encoding


def test_categories_that_are_numbers_go_by_their_value_where_formats_spell_them_differently(tmp_path):
    encoding = encoding_of(write(tmp_path, "a.csv", "g,t\n1,1\n2,2\n03,3\n"), categorical=("g",))
    table = apply_encoding(write(tmp_path, "b.csv", "g\n1.0\n2e0\n3\n4\n"), encoding)
    np.testing.assert_array_equal(table.X.argmax(axis=1), [1, 2, 0, 0])
    np.testing.assert_array_equal(table.X.sum(axis=1), [1, 1, 1, 0])
    assert table.unseen == {"g": 1}


def test_codes_that_only_look_like_numbers_stay_different(tmp_path):
    encoding = encoding_of(write(tmp_path, "a.csv", "v,t\n1.1,1\n1.10,2\n2,3\n"), categorical=("v",))
    assert encoding.categories["v"] == ("1.1", "1.10", "2")
    table = apply_encoding(write(tmp_path, "b.csv", "v\n1.10\n1.100\n"), encoding)
    np.testing.assert_array_equal(table.X, [[0, 1, 0], [0, 0, 0]])


def test_truth_values_are_the_same_in_every_format(tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table({"f": [True, False, True], "t": [1, 2, 3]}), tmp_path / "t.parquet")
    text = write(tmp_path, "t.csv", "f,t\nTRUE,1\nFALSE,2\nTRUE,3\n")
    expected = [[0, 1], [1, 0], [0, 1]]
    np.testing.assert_array_equal(apply_encoding(tmp_path / "t.parquet", encoding_of(text)).X, expected)
    numbers = encoding_of(tmp_path / "t.parquet")
    np.testing.assert_array_equal(apply_encoding(text, numbers).X, [[1], [0], [1]])
    said = encoding_of(tmp_path / "t.parquet", categorical=("f",))
    assert said.features == ("f=False", "f=True")
    np.testing.assert_array_equal(apply_encoding(text, said).X, expected)


def test_a_nominal_attribute_of_numbers_in_any_order(tmp_path):
    arff = "@relation r\n@attribute f {%s}\n@attribute t real\n@data\n0,1\n1,2\n"
    encoding = encoding_of(write(tmp_path, "a.arff", arff % "0,1"))
    table = apply_encoding(write(tmp_path, "b.arff", arff % "1,0"), encoding)
    np.testing.assert_array_equal(table.X, [[0], [1]])


def test_a_column_of_which_no_category_is_known_is_refused(tmp_path, trained):
    path = write(tmp_path, "new.csv", "x,z,c\n1,1,new\n1,1,newer\n")
    with pytest.raises(TableError, match=r"new\.csv: column 'c' holds none of the .* 'a', 'b'"):
        apply_encoding(path, trained)


def test_remedies_for_new_files_do_not_name_options_of_the_fit(tmp_path, trained):
    for text, words in (
        ("x,z,c\n,1,a\n", "column 'x', row 1: the value is missing"),
        ("x,z,c\n1,1,\n", "column 'c', row 1: the value is missing"),
    ):
        with pytest.raises(TableError, match=words) as caught:
            apply_encoding(write(tmp_path, "new.csv", text), trained)
        assert caught.value.remedy == "fill it in, or fit the model again with --impute"
    slip = write(tmp_path, "new.csv", "x,z,c\n" + "1,1,a\n" * 20 + "o,1,a\n")
    with pytest.raises(TableError, match="'o' is not a number") as caught:
        apply_encoding(slip, trained)
    assert caught.value.remedy == "correct it"
