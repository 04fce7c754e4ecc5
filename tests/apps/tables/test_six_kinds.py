"""What is recognised in tables as people keep them, and six of them fitted as they are."""

import json

import numpy as np
import pytest
from tests.apps.tables.six_kinds import LIKERT, SIX, hospital
from tests.support.process import invoke

from skpursuit.apps.tables import EncodingOptions, TableError, read_columns, read_table


def kinds(table):
    return {column.name: column for column in table.encoding.columns}


def written(folder, name, *columns):
    """Write columns, each a name and its cells, as CSV."""
    path = folder / name
    lines = [[head for head, _ in columns], *zip(*(cells for _, cells in columns))]
    path.write_text("".join(",".join(map(str, line)) + "\n" for line in lines))
    return path


def test_words_of_a_scale_are_one_number_in_their_order(tmp_path):
    answers = [LIKERT[i % 5].upper() if i % 7 else LIKERT[i % 5] for i in range(40)]
    letters = [["C", "A", "B+"][i % 3] for i in range(40)]
    sizes = [["XL", "S", "M"][i % 3] for i in range(40)]
    urgent = [["low", "mid", "high", "mid", "n/a"][i % 5] for i in range(40)]
    columns = [("asked", answers), ("Grade", letters), ("ward", letters), ("size", sizes), ("urgent", urgent)]
    columns += [("mood", [["ok", "happy", "unhappy"][i % 3] for i in range(40)]), ("y", range(40))]
    path = written(tmp_path, "t.csv", *columns)
    table = read_table(path, EncodingOptions(target="y"))
    found = kinds(table)
    assert [name for name in found if found[name].kind == "ordinal"] == [
        name for name, _ in columns if name not in ("ward", "y")
    ]
    assert table.described()[4]["missing"] == "8 cells, filled by 'mid', and marked"
    np.testing.assert_array_equal(table.X[:, table.features.index("asked")], [1 + i % 5 for i in range(40)])
    np.testing.assert_array_equal(table.X[:3, table.features.index("Grade")], [1, 3, 2])
    np.testing.assert_array_equal(table.X[:3, table.features.index("size")], [3, 1, 2])
    later = written(tmp_path, "u.csv", *columns[:3], ("size", ["m"] * 40), *columns[4:])
    later = table.encoding.apply(read_columns(later))
    np.testing.assert_array_equal(later.X[:, later.features.index("size")], [2] * 40)
    classes = read_table(path, EncodingOptions(target="size"))
    assert set(classes.y) == {"XL", "S", "M"}


def test_an_order_may_be_said(tmp_path):
    cells = [["poolside", "garden", "street"][i % 3] for i in range(30)]
    ages = [["<18", "18-34", "35-64", "65+"][i % 4] for i in range(30)]
    path = written(tmp_path, "t.csv", ("view", cells), ("age", ages), ("y", range(30)))
    with pytest.raises(TableError, match="the order of its levels is not known") as refused:
        read_table(path, EncodingOptions("y", {"view": "ordinal"}))
    assert refused.value.advice.options == ("--column", "view=ordinal:garden,poolside,street")
    said = {"view": "ordinal:street,garden,poolside", "age": "ordinal"}
    table = read_table(path, EncodingOptions("y", said))
    np.testing.assert_array_equal(table.X[:3, table.features.index("view")], [3, 2, 1])
    np.testing.assert_array_equal(table.X[:4, table.features.index("age")], [1, 2, 3, 4])


def test_levels_that_differ_in_case_or_blanks_are_one_where_that_is_said(tmp_path):
    cells = ["north", "North", "north ", "NORTH  east", "north east", "west"] * 5
    path = written(tmp_path, "t.csv", ("town", cells), ("y", range(30)))
    assert len(kinds(read_table(path, EncodingOptions("y")))["town"].levels) == 5
    table = read_table(path, EncodingOptions("y", {"town": "fold"}))
    assert set(kinds(table)["town"].levels) == {"north", "NORTH  east", "west"}
    column = table.X[:, table.features.index("town=north")]
    np.testing.assert_array_equal(column, [1, 1, 1, 0, 0, 0] * 5)
    later = table.encoding.apply(read_columns(written(tmp_path, "u.csv", ("town", ["nOrTh", "West "]))))
    np.testing.assert_array_equal(later.X[:, later.features.index("town=north")], [1, 0])
    y = read_table(path, EncodingOptions("town", {"town": "fold"})).y
    assert set(y) == {"north", "NORTH  east", "west"}


@pytest.mark.parametrize(
    ("name", "values", "left_out"),
    [
        ("Objekt", [70_000_000 + 37 * i for i in range(60)], True),
        ("Respondent", [41_000 + 3 * i for i in range(60)], True),
        ("case", [(7919 * i) % 10**7 + 80_000_000 for i in range(60)], True),
        ("case", [5000 + 7 * i % 60 for i in range(60)], True),
        ("pid", [7919 * i % 60_000 for i in range(60)], True),
        ("customer id", [4000 + i // 2 * 17 for i in range(200)], True),
        ("year", [1950 + i for i in range(60)], False),
        ("day", list(range(1, 61)), False),
        ("income", [30_000 + (7919 * i) % 60_000 for i in range(60)], False),
        ("number of visits", [i * i % 23 for i in range(60)], False),
    ],
)
def test_identifiers_of_digits_are_left_out(tmp_path, name, values, left_out):
    x = np.random.default_rng(0).normal(size=len(values)).round(3)
    table = read_table(written(tmp_path, "t.csv", (name, values), ("x", x), ("y", -x)), EncodingOptions("y"))
    assert (kinds(table)[name].kind == "left out") == left_out
    said = read_table(tmp_path / "t.csv", EncodingOptions("y", {name: "number"}))
    assert kinds(said)[name].kind == "number"


@pytest.mark.parametrize("make", SIX)
def test_the_columns_that_tell_are_found_and_few_others(tmp_path, make):
    path, target, true = make(tmp_path, np.random.default_rng(0))
    arguments = ["fit", str(path), "--target", target, "--json", "--report", str(tmp_path / "p.html")]
    done = invoke(*arguments)
    chosen = {effect["column"]: effect["chosen"] for effect in json.loads(done.stdout)["effects"]}
    assert true <= chosen.keys()
    assert len([name for name, share in chosen.items() if name not in true and share > 0.5]) <= 1


def test_a_weak_effect_may_be_left_out_by_the_fewest_and_is_in_the_best(tmp_path):
    path, target, true = hospital(tmp_path, np.random.default_rng(0), weak=True)
    found = {}
    for way in ("one_se", "best"):
        done = invoke("fit", path, "--target", target, "--json", "--selection", way)
        found[way] = {effect["column"] for effect in json.loads(done.stdout)["effects"]}
    assert true - found["one_se"] == {"Smoker"}
    assert found["one_se"] < true < found["best"]
    assert len(found["best"]) <= 6
