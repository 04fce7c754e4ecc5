"""Tables as they come: six messy ones and many spellings of one more are fitted and predicted as they are."""

import csv
import datetime
import io
import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from skpursuit.apps.cli import main
from skpursuit.apps.models.fit_table import FitOptions, fit_table
from skpursuit.apps.tables import EncodingOptions, read_columns, read_table

FOLDER = Path(__file__).parent / "messy"
LEFT = "left out"


def invoke(*arguments):
    done = CliRunner().invoke(main, [str(a) for a in arguments])
    assert done.exit_code == 0, done.output
    return done


def fitted(path, target, folder, *more):
    """Fit, predict the same file, and return what the fit told and the rows of predictions."""
    model = folder / "model.json"
    told = json.loads(invoke("fit", path, "--target", target, "--out", model, "--json", *more).stdout)
    read = [option for option in more if option == "--transpose"]
    rows = list(csv.DictReader(invoke("predict", model, path, *read).stdout.splitlines()))
    return told, rows


MESSY = {
    "homes.csv": (
        "Sold Price",
        {
            "MLS #": LEFT, "Address": LEFT, "ZIP Code": "category", "City": "category",
            "List Price": "number", "Sq Ft": "number", "Beds": "number", "HOA": "number",
            "Tax Rate": "number",
            "Sold Date": "date",
            "Pool": "yes/no", "Year Built": "number", "State": LEFT, "Remarks": LEFT,
        },
    ),
    "kunden.csv": (
        "Umsatz",
        {
            "Kunden-Nr.": LEFT, "PLZ": "category", "Größe (m²)": "number", "Rabatt": "number",
            "Kunde seit": "date",
            "Newsletter": "yes/no", "Branche": "category", "Kosten": "number",
        },
    ),
    "churn.csv": (
        "Churn",
        {
            "customerID": LEFT, "gender": "category", "SeniorCitizen": "number", "tenure": "number",
            "Contract": "category", "AutoPay": "yes/no", "Charges": "number", "Charges (2)": "number",
            "TotalCharges": "number",
        },
    ),
    "genes.tsv": ("status", {f"GENE{j}": "number" for j in range(90)}),
    "patients.xlsx": (
        "Blood pressure",
        {
            "Patient": LEFT, "Born": "date", "Sex": "category", "Smoker": "yes/no", "BMI": "number",
            "Visit": "date",
        },
    ),
    "sensors.txt": (
        "power_kW",
        {"time": "date", "plant": "category", "load %": "number", "temp_C": "number", "state": "category"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MESSY)
def test_messy_tables_work_as_they_come(tmp_path, name):
    target, kinds = MESSY[name]
    told, rows = fitted(FOLDER / name, target, tmp_path, *(["--transpose"] if name == "genes.tsv" else []))
    assert {row["column"]: row["kind"] for row in told["columns"]} == kinds
    assert told["held_out_score"] > max(0.8, told["baseline"])
    assert len(rows) == told["rows"]


TOWNS = ("Köln", "Ulm", "Bad Tölz")
SPELLINGS = list(
    itertools.product(
        (",", ";", "\t", "|"),
        (".", ","),
        ("%Y-%m-%d", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y %H:%M"),
        ("utf-8", "utf-8-sig", "utf-16", "cp1252"),
        (csv.QUOTE_MINIMAL, csv.QUOTE_ALL),
        ("", "NA", "-", "k.A.", "#N/A"),
    )
)
CHOSEN = SPELLINGS[:: len(SPELLINGS) // 48]


@pytest.mark.parametrize(("comma", "decimal", "date", "encoding", "quoting", "missing"), CHOSEN)
def test_every_spelling_of_one_table(tmp_path, comma, decimal, date, encoding, quoting, missing):
    rng = np.random.default_rng(len(date))
    rows, prices = [["Nr.", "size", "cost", "share", "when", "sold", "town", "note", "price"]], []

    def number(value, digits, gap=True):
        text = f"{value:,.{digits}f}" if gap else f"{value:.{digits}f}"
        return text if decimal == "." else text.translate(str.maketrans(",.", ".,"))

    for i in range(80):
        size, day, sold = rng.uniform(20, 5000), datetime.datetime(2019, 1, 2), bool(rng.random() < 0.5)
        day += datetime.timedelta(hours=int(rng.integers(0, 20_000)))
        price = 3.0 * size + 2000 * sold + 900 * (i % 3 == 0) + rng.normal()
        prices.append(round(price, 2))
        rows.append(
            [
                f"A{i}", number(size, 1), "€ " + number(rng.uniform(1, 9), 2),
                missing if i % 8 == 0 else number(rng.uniform(0, 99), 1, gap=False) + "%", day.strftime(date),
                "ja" if sold else "nein", TOWNS[i % 3],
                f"remark number {i}, of no use at all to anybody who reads it",
                number(price, 2),
            ]
        )  # fmt: skip
    text = io.StringIO()
    csv.writer(text, delimiter=comma, quoting=quoting).writerows(rows)
    path = tmp_path / "table.csv"
    path.write_bytes(text.getvalue().encode(encoding))
    table = read_table(path, EncodingOptions("price"))
    assert {column.name: column.kind for column in table.encoding.columns} == {
        "Nr.": LEFT, "size": "number", "cost": "number", "share": "number", "when": "date", "sold": "yes/no",
        "town": "category", "note": LEFT,
    }  # fmt: skip
    assert table.found["share"].missing == 10
    np.testing.assert_array_equal(table.y, prices)
    model = fit_table(table, FitOptions(k=3, needs_path=False)).model
    assert {column.name for column in model.encoding.columns} == {"size", "sold", "town"}
    np.testing.assert_allclose(model.predict(model.encoding.apply(read_columns(path))), prices, atol=15)
