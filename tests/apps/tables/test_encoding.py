"""Kinds of columns, gaps, targets, and new files."""

import json
import tomllib
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.sparse import csr_array

from skpursuit.apps.tables import (
    EncodingOptions,
    RawColumn,
    TableEncoding,
    TableError,
    read_columns,
    read_table,
)
from skpursuit.apps.tables.column_kinds import AnyKind
from skpursuit.apps.tables.infer_kinds import infer_kinds

N = 60


def write(folder, name, text):
    path = folder / name
    path.write_text(text)
    return path


def kinds_of(raw, **options):
    return infer_kinds({name: col(values) for name, values in raw.items()}, EncodingOptions(**options))


def col(values):
    return RawColumn(pa.array(values))


def kind_of(values, name="x", **options):
    return kinds_of({name: values}, **options)[name]


IDENTIFIER = "left out: an identifier: another number in every row"


UNITS = ("kg", "l/100km", "m2", "mg/24h", "°C", "kWh/m²")


def cycle(*values, n=N):
    return [values[i % len(values)] for i in range(n)]


RANDOM = np.random.default_rng(0)
FLOATS = RANDOM.normal(size=N) * 5000


CELLS = tomllib.loads(Path(__file__).with_name("cells.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("values", "words"),
    [
        *((cycle(*one["cells"]), one["kind"]) for one in CELLS["cycled"]),
        ([f"${abs(v):,.2f}" for v in FLOATS], "number, $"),
        ([f"{v:.1f} %".replace(".", ",") for v in FLOATS], "number, %, decimal comma"),
        ([f"{v:,.2f} €".translate(str.maketrans(",.", ".,")) for v in FLOATS], "number, €, decimal comma"),
        ([f"{v:,.2f}".replace(",", "\u202f").replace(".", ",") for v in FLOATS], "number, decimal comma"),
        ([f"{v:,.2f}".replace(",", "'") for v in FLOATS], "number"),
        ([f"{v:,.2f}".replace(",", "\u00a0").replace(".", ",") for v in FLOATS], "number, decimal comma"),
        ([f"{abs(v):,.0f} sqft" for v in FLOATS], "number, sqft"),
        ([f"{v:.3e}" for v in FLOATS], "number"),
        ([f"{v:.2f}" for v in FLOATS[:-2]] + ["oops", "n.k."], "number"),
        ([f"{v:.2f}" for v in FLOATS[:40]] + ["unknown"] * 20, "number"),
        ([f"2020-{i % 12 + 1:02d}-{i % 28 + 1:02d}" for i in range(N)], "date"),
        ([f"{i % 12 + 1}/{i % 28 + 1}/2020" for i in range(N)], "date, month/day/year"),
        ([f"{i % 28 + 1}.{i % 12 + 1}.2020" for i in range(N)], "date, day.month.year"),
        ([f"{i % 28 + 1:02d}/{i % 12 + 1:02d}/20 14:{i:02d}" for i in range(N)], "date, day.month.year"),
        ([f"{i % 28 + 1}-Mar-2020" for i in range(N)], "date"),
        ([f"{i % 28 + 1}. März 2020" for i in range(N)], "date"),
        ([f"Jan {i % 28 + 1}, 2020" for i in range(N)], "date"),
        ([f"2024/03/01 {i % 12 + 1}:{i:02d}:05 PM GMT+1" for i in range(N)], "date"),
        ([f"2024-03-{i % 28 + 1:02d}T08:00:00.125+02:00[Europe/Berlin]" for i in range(N)], "date"),
        ([f"2024-03-{i % 28 + 1:02d} 08:{i:02d}:00 CEST" for i in range(N)], "date"),
        ([f"{i % 24:02d}:{i:02d}" for i in range(N)], "time of day"),
        ([f"id{i}" for i in range(N)], "left out: an identifier: 60 different texts in 60 rows"),
        ([f"a word and many others in row {i}" for i in range(N)],
         "left out: free text: 60 different texts in 60 rows"),
        (["same"] * N, "left out: the same value in every row, 'same'"),
        (["3"] * N, "left out: the same value in every row, 3"),
        ([f"{v:.2f}" for v in FLOATS[:-1]] + ["inf"], "number"),
    ],
)  # fmt: skip
def test_what_a_column_is(values, words):
    assert kind_of(values).describe() == words


@pytest.mark.parametrize(
    ("name", "values", "words"),
    [
        ("customer_id", list(map(str, range(1000, 1000 + N))), IDENTIFIER),
        ("column 1", list(map(str, range(N))), IDENTIFIER),
        ("year", list(map(str, range(1960, 1960 + N))), "number"),
        ("ZIP", cycle("85201", "85202"), "category, 2 levels"),
        ("date", cycle("20200131", "20210215"), "date"),
        ("count", cycle("20200131", "20210215"), "number"),
        ("Kundennr", [str(7000 + 3 * i) for i in range(N)], IDENTIFIER),
        ("No.", list(map(str, range(1, N + 1))), IDENTIFIER),
        ("phone", [f"+49 30 {1000 + 7 * i}" for i in range(N)],
         "left out: an identifier: 60 different texts in 60 rows"),
        ("Numéro", list(map(str, range(N))), IDENTIFIER),
        ("Département", cycle("01", "75", "2A"), "category, 3 levels"),
        *(("x", [f"{i}.5 {unit}" for i in range(N)], f"number, {unit}") for unit in UNITS),
    ],
)  # fmt: skip
def test_names_help(name, values, words):
    assert kind_of(values, name).describe() == words


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("number", "number"), ("category", "category, 4 levels"), ("drop", "left out: as asked"),
        ("date", "left out: no cell is a date"), ("yesno", "yes/no"),
    ],
)  # fmt: skip
def test_what_is_said_counts(said, words):
    assert kind_of(cycle("1", "2", "3", "0"), kinds={"x": said}).describe() == words


def test_the_decimal_sign_is_decided_for_the_whole_file():
    raw = {"a": (cycle("1.234", "5.678")), "b": (cycle("12,5", "3,25"))}
    kinds = kinds_of(raw)
    assert kinds["a"].encode(col(raw["a"]))[0][0, 0] == 1234
    alone = kinds_of({"a": raw["a"]})
    assert alone["a"].encode(col(raw["a"]))[0][0, 0] == 1.234
    said = kinds_of({"a": raw["a"]}, decimal=",")
    assert said["a"].encode(col(raw["a"]))[0][0, 0] == 1234
    dated = {"a": raw["a"], "d": (cycle("31.12.2020", "01.02.2021"))}
    assert kinds_of(dated)["a"].encode(col(raw["a"]))[0][0, 0] == 1234


def test_a_column_that_can_only_be_read_otherwise_is():
    raw = {name: ([f"{v:.2f}".replace(".", ",") for v in FLOATS]) for name in "abc"}
    raw["d"] = [f"{v:.1f} %" for v in FLOATS]
    words = [kind.describe() for kind in kinds_of(raw).values()]
    assert words == [*["number, decimal comma"] * 3, "number, %"]


def test_whole_numbers_beside_a_decimal_comma_have_none():
    kinds = kinds_of({"price": cycle("1,5", "2,25"), "year": cycle("1950", "1970")})
    assert [kind.describe() for kind in kinds.values()] == ["number, decimal comma", "number"]
    assert kinds["year"].encode(col(["1950,5"]))[0][0, 0] == 1950.5


def test_a_column_without_cells_is_left_out_beside_decimal_commas():
    kinds = kinds_of({"price": cycle("1,5", "2,25"), "note": cycle("", "")})
    assert kinds["note"].describe() == "left out: empty"


def test_numbers_that_mean_missing_are_filled_here_and_in_new_files_unless_they_are_said_to_be_numbers():
    values = cycle("20", "30", "-9", "40", "31")
    kind = kind_of(values)
    np.testing.assert_array_equal(kind.encode(col(["-9", "20"]))[0], [[30.5, 1], [20, 0]])
    assert msgspec.convert(json.loads(json.dumps(msgspec.to_builtins(kind))), AnyKind) == kind
    assert kind_of(values, kinds={"x": "number"}).describe() == "number"


def test_day_and_month_follow_the_rest_of_the_file():
    values = cycle("03/04/2020", "05/06/2020")
    assert kinds_of({"d": values})["d"].order == "mdy"
    with_comma = {"d": values, "x": (cycle("1,5", "2,25"))}
    assert kinds_of(with_comma)["d"].order == "dmy"
    with_other = {"d": values, "e": (cycle("31/12/2020", "13/06/2020"))}
    assert kinds_of(with_other)["d"].order == "dmy"


def test_dates_are_a_few_numbers():
    values = ["2020-02-29T12:00:00", "2020-03-01T00:00:00", "2021-03-01T06:30:00"]
    column = kind_of(values)
    assert column.features == ("x (days since 2020-02-29)", "x (month)", "x (weekday)", "x (hour)")
    np.testing.assert_allclose(
        column.encode(col(values))[0], [[0.5, 2, 6, 12], [1, 3, 7, 0], [366 + 6.5 / 24, 3, 1, 6.5]]
    )


def test_levels_that_are_rare_go_together():
    values = [f"town {i}" for i in range(30) for _ in range(10)] + [f"hamlet {i}" for i in range(20)]
    column = kind_of(values)
    assert len(column.levels) == 30
    X, found = column.encode(col([*values, "nowhere"]))
    assert column.features[-1] == "x=(other)"
    assert X.toarray()[:, -1].sum() == 21
    assert X.toarray().sum() == len(values) + 1
    assert (found.unseen, found.row, found.cell) == (21, 301, "hamlet 0")


def test_missing_cells_are_filled_marked_and_given_a_level():
    number = kind_of(cycle("1", "2", "5", ""))
    assert number.features == ("x", "x is missing")
    np.testing.assert_array_equal(number.encode(col(["", "9", "n/a"]))[0], [[2, 1], [9, 0], [2, 1]])
    few = kind_of(["1", "2"] * 30 + [""])
    assert few.features == ("x",)
    level = kind_of(cycle("a", "b", "k.A."))
    assert level.features == ("x=a", "x=b", "x=(missing)")
    np.testing.assert_array_equal(level.encode(col(["b", ""]))[0].toarray(), [[0, 1, 0], [0, 0, 1]])


def test_all_problems_are_told_at_once(tmp_path):
    path = write(tmp_path, "t.csv", "x,c,z,t\n" + "1,a,5,1\n2,,6,2\n,b,7,3\n" * 5)
    with pytest.raises(TableError) as caught:
        read_table(path, EncodingOptions("t", impute=False))
    lines = str(caught.value).splitlines()
    assert [line.split(": ")[1] for line in lines] == ["column 'x', row 3", "column 'c', row 2"]
    with pytest.raises(TableError) as caught:
        read_table(path, EncodingOptions("tt", {"zz": "number", "X ": "drop"}))
    assert [one.advice.options for one in caught.value.problems] == [
        ("--target", "t"),
        ("--column", "z=number"),
        ("--drop", "x"),
    ]


def test_rows_without_a_target_are_left_out(tmp_path):
    path = write(tmp_path, "t.csv", "x,t\n" + "1,yes\n2,No\n3,\n4,YES\n5,yes\n6,no\n7,No\n")
    table = read_table(path, EncodingOptions("t"))
    assert table.y.tolist() == ["yes", "No", "yes", "yes", "No", "No"]
    assert (table.dropped, table.X[:, 0].tolist()) == (1, [1, 2, 4, 5, 6, 7])


def test_targets_in_any_spelling(tmp_path):
    path = write(tmp_path, "t.csv", "x;t\n" + "1;1.234,50 €\n2;3,25 €\n3;-7,5 €\n")
    np.testing.assert_array_equal(read_table(path, EncodingOptions("t")).y, [1234.5, 3.25, -7.5])
    path = write(tmp_path, "t.csv", "x,t\n" + "".join(f"{i},{i * i}\n" for i in range(40)) + "40,oops\n")
    with pytest.raises(TableError, match=r"target 't', row 41: 'oops' is not a number") as caught:
        read_table(path, EncodingOptions("t"))
    assert caught.value.advice.options == ("--column", "t=number")
    assert read_table(path, EncodingOptions("t", {"t": "number"})).dropped == 1
    path = write(tmp_path, "t.csv", "x,t\n" + "1,2020-01-01\n2,2020-02-01\n")
    with pytest.raises(TableError, match="holds dates"):
        read_table(path, EncodingOptions("t"))
    path = write(tmp_path, "t.csv", "x,t\n1,\n2,\n")
    with pytest.raises(TableError, match="the target 't' is empty"):
        read_table(path, EncodingOptions("t"))


@pytest.fixture
def trained(tmp_path):
    path = write(tmp_path, "train.csv", "x,c,z,t\n1,a,5,1\n2,b,6,2\n3,1,7,3\n")
    return read_table(path, EncodingOptions(target="t")).encoding


def test_new_files_are_matched_by_name_in_any_order_others_ignored(tmp_path, trained):
    path = write(tmp_path, "new.csv", "when,z,c,x\n2001-01-01,7,1,0.5\n2002-01-01,8,b,1.5\n")
    table = trained.apply(read_columns(path))
    assert table.features == ("x", "c=1", "c=a", "c=b", "z")
    np.testing.assert_array_equal(table.X, [[0.5, 1, 0, 0, 7], [1.5, 0, 0, 1, 8]])
    assert table.y is None


def test_new_files_that_do_not_fit(tmp_path, trained):
    with pytest.raises(TableError, match=r"new\.csv: columns that the model needs are missing: 'c', 'z'"):
        trained.apply(read_columns(write(tmp_path, "new.csv", "x\n1\n")))
    path = write(tmp_path, "new.csv", "x,z,c\n1,low,q\n1,high,p\n")
    with pytest.raises(TableError) as caught:
        trained.apply(read_columns(path))
    assert "column 'c' holds none of the categories of the model" in str(caught.value)
    assert "column 'z', row 1: 'low' where the model expects numbers" in str(caught.value)


def test_a_new_file_that_is_transposed_is_told_so(tmp_path, trained):
    path = write(tmp_path, "t.csv", "name,r1,r2\nx,1,2\nc,a,b\nz,1,1\n")
    with pytest.raises(TableError, match="'x' is the name of a row") as caught:
        trained.apply(read_columns(path))
    assert caught.value.advice.options == ("--transpose",)


def test_unknown_categories_are_counted_and_have_no_indicator(tmp_path, trained):
    table = trained.apply(read_columns(write(tmp_path, "new.csv", "x,z,c\n1,1,new\n1,1,a\n1,1,newer\n")))
    np.testing.assert_array_equal(table.X[:, 1:4], [[0, 0, 0], [0, 1, 0], [0, 0, 0]])
    assert table.found["c"].unseen == 2


@pytest.mark.parametrize("typed", [[1.0, 2.0, 1.0], [1, 2, 1], [True, False, True]])
def test_categories_and_truth_values_are_the_same_in_every_format(tmp_path, typed):
    texts = [str(value) for value in typed] if isinstance(typed[0], bool) else ["1", "2", "1"]
    path = write(tmp_path, "t.csv", "c,y\n" + "".join(f"{text},{i}\n" for i, text in enumerate(texts)))
    kinds = {"c": "category"}
    encoding = read_table(path, EncodingOptions("y", kinds)).encoding
    pq.write_table(pa.table({"c": typed}), tmp_path / "t.parquet")
    one, other = encoding.apply(read_columns(path)).X, encoding.apply(read_columns(tmp_path / "t.parquet")).X
    np.testing.assert_array_equal(csr_array(one).toarray(), csr_array(other).toarray())


def test_an_encoding_survives_json_and_can_be_restricted(tmp_path):
    path = write(
        tmp_path, "t.csv",
        "x,c,d,b,i,t\n"
        + "".join(f"{i},{'pqr'[i % 3]},2020-01-{i % 28 + 1:02d},{'yn'[i % 2]},k{i},{i}\n" for i in range(40)),
    )  # fmt: skip
    table = read_table(path, EncodingOptions("t"))
    again = msgspec.convert(json.loads(json.dumps(msgspec.to_builtins(table.encoding))), TableEncoding)
    assert again == table.encoding
    np.testing.assert_array_equal(again.apply(read_columns(path)).X, table.X)
    part = again.restrict(["c=q", "d (weekday)"])
    assert part.used == ("c", "d")


def test_the_sparse_result_of_many_indicators(tmp_path, monkeypatch):
    monkeypatch.setattr("skpursuit.apps.tables.encoding.DENSE_CELLS", 5)
    path = write(tmp_path, "t.csv", "x,c,t\n" + "".join(f"{i},{'pqr'[i % 3]},{i}\n" for i in range(9)))
    table = read_table(path, EncodingOptions("t"))
    assert isinstance(table.X, csr_array)
    np.testing.assert_array_equal(table.X.toarray()[:2], [[0, 1, 0, 0], [1, 0, 1, 0]])
