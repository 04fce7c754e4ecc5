"""Tables as a sceptical analyst brings them: each must be read as it is, and every planted cell rightly."""

import bz2
import datetime
import gzip
import json
import lzma
import re
import tomllib
import zipfile
from pathlib import Path

import numpy as np
import openpyxl
import pytest
from tests.support.process import invoke

from skpursuit.apps.tables import EncodingOptions, ReadOptions, TableError, read_table

N = 60
RNG = np.random.default_rng(0)
SIZE = RNG.uniform(1000, 90_000, N).round(2)
PRICE = (3 * SIZE + RNG.normal(size=N) * 500).round(2)
DAYS = [datetime.date(2021, 1, 1) + datetime.timedelta(days=11 * i) for i in range(N)]
WEEKDAYS = ["Mo", "Di", "Mi", "Do", "Fr", "Sa", "So"]
MARKS = ["n/a", "N.A.", "--", "#DIV/0!", "(blank)", "Not available"]
TOWNS = ["Ulm", "Köln", "Bonn"]


def german(value, gap="."):
    return f"{value:,.2f}".translate({ord(","): gap, ord("."): ","})


def lines(heads, *columns, comma=","):
    quoted = [[f'"{cell}"' if comma in str(cell) else str(cell) for cell in row] for row in zip(*columns)]
    return "\n".join(comma.join(map(str, row)) for row in [heads, *quoted]) + "\n"


def pick(*values):
    return [values[i % len(values)] for i in range(N)]


def days(spelling):
    return [spelling(day) for day in DAYS]


def named(day):
    return f"{WEEKDAYS[day.weekday()]}, {day:%d.%m.%y}"


def mixed(i, day):
    return [f"{day:%Y-%m-%d}", f"{day:%d.%m.%Y}", f"{day:%d %b %Y}"][i % 3]


PLAIN = [f"{v:.2f}" for v in PRICE]
SHOP = lines(["size", "town", "price"], SIZE, pick(*TOWNS), PLAIN)
TOWN_FIRST = lines(["town", "size", "price"], pick(*TOWNS), SIZE, PLAIN)
GERMAN_SHOP = lines(["town", "size", "price"], pick(*TOWNS), map(german, SIZE), map(german, PRICE), comma=";")
NUMBERED = list(enumerate(SIZE))
SIGNED = np.where(np.arange(N) % 2, -SIZE, SIZE)
FOURTH, HALVES = np.arange(N) % 4 == 0, np.arange(N) // 2 + np.arange(N) % 2 / 2
MONTHS = [day.month for day in DAYS]
#: Texts with the columns size, town and price.
SHOPS = {
    "a header on line 3": "Report of the shop\n\n" + SHOP,
    "blank rows, one of them of spaces": SHOP + ",,\n , , \n",
    "semicolons and quoted decimals": re.sub(r"([^;\n]+)", r'"\1"', GERMAN_SHOP),
    "a total and an average": f"{TOWN_FIRST}Grand Total,{SIZE.sum():.2f},5\nAverage,{SIZE.mean():.2f},5\n",
    "a German sum after a blank line, of fewer cells": f"{GERMAN_SHOP}\nSumme:;{german(SIZE.sum())}\n",
    "two files put together, with headers": TOWN_FIRST.replace("\nKöln", "\ntown,size,price\nKöln", 1),
    "spaces after separators": SHOP.replace(",", ", "),
    "old Macintosh line ends": SHOP.replace("\n", "\r"),
}
#: A text, its columns with their kinds, and values that some features must have.
TABLES = {
    "commas and quoted decimals": (
        "size,price\n" + "".join(f'"{german(a)}","{german(b)}"\n' for a, b in zip(SIZE, PRICE)),
        {"size": "number"},
        {"size": SIZE},
    ),
    "non-breaking spaces everywhere": (
        lines(
            ["the\u00a0size", "price"],
            [f"\u00a0{v:_.0f} €\u00a0".replace("_", "\u00a0") for v in SIZE],
            PLAIN,
        ),
        {"the size": "number"},
        {"the size": SIZE.round()},
    ),
    "a separator at the end of every row but the header": (
        TOWN_FIRST.replace("\n", ",\n").replace("price,", "price"),
        {"town": "category", "size": "number", "column 4": "left out"},
        {"size": SIZE},
    ),
    "a line of groups above the header": (
        "place,,money,\n" + lines(["town", "size", "cost", "price"], pick(*TOWNS), SIZE, SIZE, PLAIN),
        {"town": "category", "size": "number", "cost": "number"},
        {"size": SIZE},
    ),
    "a trailing separator in every line": (
        SHOP.replace("\n", ",\n"),
        {"size": "number", "town": "category", "column 4": "left out"},
        {"size": SIZE},
    ),
}
TABLES |= {
    name: (text, {"size": "number", "town": "category"}, {"size": SIZE}) for name, text in SHOPS.items()
}


def check(path, kinds, values):
    table = read_table(path, EncodingOptions("price"))
    assert {column.name: column.kind for column in table.encoding.columns} == kinds
    np.testing.assert_allclose(table.y, PRICE)
    for name, wanted in values.items():
        np.testing.assert_allclose(table.X[:, table.features.index(name)], wanted, atol=1e-9)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_read_as_it_is(tmp_path, name, encoding):
    text, kinds, values = TABLES[name]
    path = tmp_path / "t.csv"
    path.write_bytes(text.encode(encoding))
    check(path, kinds, values)


#: Cells of a column, what it is, and the values of a feature.
COLUMNS = [
    (days(lambda d: f"{d.month}/{d.day}/{d.year} 3:05 PM"), "date", "x (month)", MONTHS),
    (days(named), "date", "x (weekday)", [day.weekday() + 1 for day in DAYS]),
    (days(lambda d: f"{d:%b-%y}"), "date", "x (month)", MONTHS),
    (list(map(mixed, range(N), DAYS)), "date", "x (days since 2021-01-01)", 11.0 * np.arange(N)),
    ([german(v, "’") for v in SIZE], "number", "x", SIZE),
    ([f"{v:.0f}m²" for v in SIZE], "number", "x", SIZE.round()),
    ([f"(${v:,.2f})" if i % 2 else f"${v:,.2f}" for i, v in NUMBERED], "number", "x", SIGNED),
    ([german(v) + "-" * (i % 2) for i, v in NUMBERED], "number", "x", SIGNED),
    ([f"{v:,.2f} EUR{'-' * (i % 2)}" for i, v in NUMBERED], "number", "x", SIGNED),
    ([f"{('-$', '$-')[i % 2]}{v:,.2f}" for i, v in NUMBERED], "number", "x", -SIZE),
    ([*MARKS, *SIZE[6:]], "number", "x is missing", np.arange(N) < 6),
    (["tbd" if i % 5 == 0 else v for i, v in NUMBERED], "number", "x is missing", np.arange(N) % 5 == 0),
    ([f"{i}.5{'%' * (i % 3 > 0)}" for i in range(N)], "number", "x", np.arange(N) + 0.5),
    ([f"{v}" if i % 4 else "<0.5" for i, v in NUMBERED], "number", "x", np.where(FOURTH, 0.5, SIZE)),
    ([f"${v / 1e3:.5f}K" if i % 2 else f"${v / 1e6:.8f}M" for i, v in NUMBERED], "number", "x", SIZE),
    ([f"'{v}" for v in SIZE], "number", "x", SIZE),
    ([f"CHF {i // 2},{'-' if i % 2 == 0 else '50'}" for i in range(N)], "number", "x", HALVES),
]


@pytest.mark.parametrize(("cells", "kind", "feature", "values"), COLUMNS)
def test_a_column_is_read_as_it_is(tmp_path, cells, kind, feature, values):
    (tmp_path / "t.csv").write_text(lines(["x", "y"], cells, range(N), comma="|"), encoding="utf-8")
    table = read_table(tmp_path / "t.csv", EncodingOptions("y"))
    assert table.encoding.columns[0].kind == kind
    np.testing.assert_allclose(table.X[:, table.features.index(feature)], values, atol=1e-9)


def sheet(path, rows, merged=()):
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    for cells in merged:
        book.active.merge_cells(cells)
    book.save(path)


def test_a_workbook_of_texts_and_dates_with_a_merged_title_and_a_total(tmp_path):
    rows = [["Sales of 2021", None, None, None], [], ["when", "size", "sold", "price"]]
    rows += [[d, german(a), s, german(b) + " €"] for d, a, s, b in zip(DAYS, SIZE, pick("Ja", "Nein"), PRICE)]
    rows += [[], ["Total", german(SIZE.sum()), None, german(PRICE.sum()) + " €"]]
    sheet(tmp_path / "t.xlsx", rows, ["A1:D1"])
    kinds = {"when": "date", "size": "number", "sold": "yes/no"}
    check(tmp_path / "t.xlsx", kinds, {"size": SIZE, "when (days since 2021-01-01)": 11.0 * np.arange(N)})


def test_cells_that_are_merged_over_rows_hold_for_each_of_them(tmp_path):
    rows = [["Pay", "", ""], ["", "Work", ""], ["dept", "hours", "pay"]]
    rows += [["" if i % 10 else "abc"[i // 10], i % 7, 3 * i] for i in range(30)]
    merged = ["A1:C1", "B2:C2", *(f"A{i}:A{i + 9}" for i in (4, 14, 24))]
    sheet(tmp_path / "t.xlsx", rows, merged)
    table = read_table(tmp_path / "t.xlsx", EncodingOptions("pay"))
    assert [row["taken for"] for row in table.described()] == ["category, 3 levels", "number"]
    np.testing.assert_array_equal(table.X[:, 0], [1.0] * 10 + [0.0] * 20)


@pytest.mark.parametrize("kind", ["csv", "xlsx"])
def test_totals_are_left_out_of_fit_and_predict_and_said_unless_they_are_kept(tmp_path, kind):
    path, model = tmp_path / f"t.{kind}", tmp_path / "m.json"
    rows = [["town", "size", "price"], *zip(pick(*TOWNS), SIZE.tolist(), PRICE.tolist())]
    rows.append(["Sum", float(SIZE.sum()), float(PRICE.sum())])
    if kind == "csv":
        path.write_text("\n".join(",".join(map(str, row)) for row in rows))
    else:
        sheet(path, rows)
    for more, count in ((), N), (["--keep-total"], N + 1):
        arguments = ["fit", str(path), "--target", "price", "--out", str(model), "--json", *more]
        done = invoke(*arguments)
        assert json.loads(done.stdout)["rows"] == count
        assert ("the last row is a total, left out" in done.stderr) == (count == N)
        assert ("--keep-total keeps it" in done.stderr) == (count == N)
        done = invoke("predict", model, path, *more)
        assert len(done.stdout.splitlines()) == 1 + count


@pytest.mark.parametrize(
    ("towns", "last"),
    [
        (TOWNS, "Total recall,5,6"),
        (TOWNS, "Summer,5,6"),
        (TOWNS, "Sum,5,6\nUlm,5,6"),
        (["Total", "Shell"], "Total,5,6\n"),
    ],
    ids=["recall", "summer", "not last", "a category"],
)
def test_what_is_no_total(tmp_path, towns, last):
    path, told = tmp_path / "t.csv", []
    path.write_text(lines(["town", "size", "price"], pick(*towns), SIZE, PLAIN) + last)
    table = read_table(path, EncodingOptions("price"), ReadOptions(notify=told.append))
    assert (len(table.y), told) == (N + 1 + last.strip().count("\n"), [])


def random_table(seed):
    """A table in a random mixture of habits, with what it holds: sizes, days, and which were sold."""
    rng = np.random.default_rng(seed)
    choose = lambda *options: options[int(rng.integers(len(options)))]  # noqa: E731
    comma, decimal = choose((",", "."), (";", ","), ("\t", "."), ("|", ","), (";", "."))
    gap = choose("", "'", "\u202f", "." if decimal == "," else ",")
    before, after = choose(("", ""), ("€ ", ""), ("", " €"), ("$", ""), ("", "%"), ("", " kg"), ("CHF ", ""))
    minus = choose("-{}", "({})", "{}-", "\u2212{}")
    order = choose(
        "%Y-%m-%d", "%d.%m.%Y", "%m/%d/%Y", "%d %b %Y", "%Y-%m-%dT%H:%M:%S", "%d-%m-%Y", "%B %d, %Y"
    )
    yes, no = choose(("yes", "no"), ("Ja", "Nein"), ("TRUE", "FALSE"), ("oui", "non"), ("Да", "Нет"))
    missing = choose("", "NA", "-", "k.A.", "#N/A", "n/a", "null")
    size = (rng.normal(size=N) * 10.0 ** rng.integers(1, 6)).round(2)
    day = [datetime.datetime(2018, 1, 30) + datetime.timedelta(days=int(d)) for d in rng.integers(0, 2000, N)]
    sold = rng.random(N) < 0.5
    price = (2 * np.abs(size) + sold).round(2)

    def number(value):
        digits = f"{abs(value):,.2f}".translate({ord(","): gap, ord("."): decimal})
        text = before + digits + after
        return minus.format(text) if value < 0 else text

    rows = [["size", "when", "sold", "hole", "price"]]
    for i in range(N):
        hole, when = missing if i % 7 == 3 else number(float(i)), day[i].strftime(order)
        rows.append([number(size[i]), when, (no, yes)[int(sold[i])], hole, number(price[i])])
    if rng.random() < 0.5:
        rows.insert(int(rng.integers(5, N)), [""] * 5)
    if rng.random() < 0.3:
        rows.append(["Total", "", "", "", number(price.sum())])
    quote = lambda cell: f'"{cell}"' if comma in cell or rng.random() < 0.2 else cell  # noqa: E731
    text = "\n".join(comma.join(map(quote, row)) for row in rows)
    if rng.random() < 0.3:
        text = f"A report{comma * 4}\n{comma * 4}\n{text}"
    return text + choose("", "\n"), choose("utf-8", "utf-8-sig", "utf-16", "cp1252"), size, day, sold, price


@pytest.mark.parametrize("seed", range(60))
def test_random_mixtures_of_habits(tmp_path, seed):
    text, encoding, size, day, sold, price = random_table(seed)
    path = tmp_path / "t.csv"
    path.write_bytes(text.encode(encoding if encoding != "cp1252" or text.isascii() else "utf-8"))
    table = read_table(path, EncodingOptions("price"))
    assert [kind.kind for kind in table.encoding.columns] == ["number", "date", "yes/no", "number"]
    np.testing.assert_allclose(table.y, price)
    X = dict(zip(table.features, table.X.T))
    np.testing.assert_allclose(X["size"], size)
    first = min(day)
    since = next(values for name, values in X.items() if "days since" in name)
    np.testing.assert_allclose(since, [(one - first).days for one in day])
    np.testing.assert_allclose(next(values for name, values in X.items() if name.startswith("sold=")), sold)
    np.testing.assert_allclose(X["hole is missing"], np.arange(N) % 7 == 3)


def test_a_header_of_two_lines_with_merged_cells_is_one_of_both(tmp_path):
    heads = [["Region", "Sales 2023", "", "Sales 2024", "", "Target"], ["", "Q1", "Q2", "Q1", "Q2", ""]]
    sales = np.random.default_rng(0).uniform(10, 90, (60, 5)).round(1).tolist()
    rows = [["NS"[i % 2], *row] for i, row in enumerate(sales)]
    sheet(tmp_path / "t.xlsx", [[], *heads, *rows], ["A2:A3", "B2:C2", "D2:E2", "F2:F3"])
    table = read_table(tmp_path / "t.xlsx", EncodingOptions("Target"))
    names = ("Region=S", "Sales 2023 Q1", "Sales 2023 Q2", "Sales 2024 Q1", "Sales 2024 Q2")
    assert sorted(table.features) == sorted(names)
    assert table.X.shape == (60, 5)


@pytest.mark.parametrize("note", ["* preliminary data", "Source: the statistical office", "(1) estimated"])
def test_notes_below_a_table_are_left_out_and_told(tmp_path, note):
    told = []
    rows = "".join(f"{i},{i % 7},{i % 5}\n" for i in range(40))
    path = tmp_path / "t.csv"
    path.write_text(f"a,b,y\n{rows}{note}\n")
    table = read_table(path, EncodingOptions("y"), ReadOptions(notify=told.append))
    assert table.X.shape[0] == 40
    assert note in told[0]
    path.write_text(f"a,b,y\n{rows}{note}")  # cut off, perhaps
    with pytest.raises(TableError, match="cut off"):
        read_table(path, EncodingOptions("y"))


@pytest.mark.parametrize("gap", ["", "-"])
@pytest.mark.parametrize("units", [",°C,mm,,h", "day,°C,mm,,h"])
def test_a_line_of_units_below_the_header_is_no_row_and_told(tmp_path, units, gap):
    told = []
    rows = [f"{day},{i % 11 - 3}.5,{i % 4},{'NESW'[i % 4]},{i % 9}.2" for i, day in enumerate(DAYS)]
    rows[3] = f"{DAYS[3]},{gap},2,N,3.2"
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["day,temp,rain,wind,sun", units, *rows, ""]), encoding="utf-8")
    table = read_table(path, EncodingOptions("sun"), ReadOptions(notify=told.append))
    assert (table.X.shape[0], len(told)) == (len(DAYS), 1)
    kinds = [row["taken for"] for row in table.described()]
    assert kinds == ["date", "number, °C", "number, mm", "category, 4 levels"]
    path.write_text("\n".join(["day,temp,rain,wind,sun", ",NA,?,,-", *rows, ""]), encoding="utf-8")
    assert read_table(path, EncodingOptions("sun")).dropped == 1


def test_columns_that_are_apart_by_spaces(tmp_path):
    X = np.random.default_rng(1).normal(size=(50, 3)).round(4)
    lines = ["  ".join(f"{value:9.4f}" for value in row) for row in X]
    (tmp_path / "t.dat").write_text("a    b   y\n" + "\n".join(lines) + "\n")
    table = read_table(tmp_path / "t.dat", EncodingOptions("y"))
    np.testing.assert_array_equal(table.X, X[:, :2])
    np.testing.assert_array_equal(table.y, X[:, 2])
    (tmp_path / "t.dat").write_text("a    b   y\n" + "\n".join(lines) + "\n1 2\n")
    with pytest.raises(TableError, match="line 52 has 2 fields where there are 3 columns"):
        read_table(tmp_path / "t.dat", EncodingOptions("y"), ReadOptions(keep_total=True))


def test_a_table_as_markdown_has_it(tmp_path):
    rows = [f"| {i} | {i % 7}.5 | {'red' if i % 3 else 'blue'} | {i % 11} |" for i in range(40)]
    head = ["| id | size | colour | price |", "|----|:-----|--------|------:|"]
    (tmp_path / "t.txt").write_text("\n".join([*head, *rows, ""]))
    table = read_table(tmp_path / "t.txt", EncodingOptions("price"))
    assert table.X.shape[0] == 40
    assert table.features == ("size", "colour=red")


def packed(path, text):
    """Write a text as the name of a file says."""
    openers = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("inside.tsv" if "," not in text else "inside.csv", text)
    else:
        with openers[path.suffix](path, "wt", encoding="utf-8") as file:
            file.write(text)


@pytest.mark.parametrize("name", ["t.csv.gz", "t.tsv.bz2", "t.txt.xz", "t.zip", "t.csv.zip"])
def test_packed_tables_are_unpacked(tmp_path, name):
    comma = "\t" if "tsv" in name else ","
    packed(tmp_path / name, lines(["size", "price"], SIZE, PRICE, comma=comma))
    table = read_table(tmp_path / name, EncodingOptions("price"))
    np.testing.assert_array_equal(table.X[:, 0], SIZE)
    whole = (tmp_path / name).read_bytes()
    for end in (3, 30, len(whole) // 2, len(whole) - 9):
        (tmp_path / name).write_bytes(whole[:end])
        with pytest.raises(TableError, match=r"damaged or cut off|NUL bytes|header"):
            read_table(tmp_path / name, EncodingOptions("price"))


def test_groups_of_columns_are_named_in_a_line_of_their_own(tmp_path):
    told, text = [], "Region,Sales,,Costs,,Result\n,2022,2023,2022,2023,\n"
    text += "".join(f"{'NS'[i % 2]},{i}.5,{i % 7}.25,{i % 3},{i % 5},{i % 11}\n" for i in range(40))
    (tmp_path / "t.csv").write_text("Budget,,,,,\n" + text)
    table = read_table(tmp_path / "t.csv", EncodingOptions("Result"), ReadOptions(notify=told.append))
    assert table.features == ("Region=S", "Sales 2022", "Sales 2023", "Costs 2022", "Costs 2023")
    assert table.X.shape == (40, 5)
    assert "two lines" in told[0]


@pytest.mark.parametrize("head", ["kind,size,,y\n", "kind,,size,y\n,5,3,1.5\n"])
def test_a_gap_makes_no_header_of_two_lines(tmp_path, head):
    rows = "".join(f"{'' if i % 4 == 0 else 'ab'[i % 2]},{i}.5,{i % 7},{i % 5}\n" for i in range(40))
    (tmp_path / "t.csv").write_text(head + rows)
    table = read_table(tmp_path / "t.csv", EncodingOptions("y"))
    assert table.X.shape[0] == 39 + head.count("\n")
    assert any(name.startswith("column ") for name in table.features)


CELLS = tomllib.loads(Path(__file__).with_name("cells.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("one", CELLS["spelled"], ids=lambda one: one["cells"][0])
def test_spans_quarters_and_whole_prices(tmp_path, one):
    (tmp_path / "t.csv").write_text(
        lines(["x", "y"], pick(*one["cells"]), range(N), comma="|"), encoding="utf-8"
    )
    table = read_table(tmp_path / "t.csv", EncodingOptions("y"))
    assert table.described()[0]["taken for"] == one["kind"]
    assert table.X[0, table.features.index(one["feature"])] == pytest.approx(one["first"])
    assert not any("weekday" in name for name in table.features)
