"""Tables as they come: six messy ones are fitted and predicted as they are."""

import csv
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from skpursuit.apps.cli import main

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
