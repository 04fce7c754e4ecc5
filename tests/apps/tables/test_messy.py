"""Tables as they come: six messy ones are fitted and predicted as they are."""

import csv
import json
import tomllib
from pathlib import Path

import pytest
from tests.support.process import invoke

FOLDER = Path(__file__).parent / "messy"


def fitted(path, target, folder, *more):
    """Fit, predict the same file, and return what the fit told and the rows of predictions."""
    model = folder / "model.json"
    told = json.loads(invoke("fit", path, "--target", target, "--out", model, "--json", *more).stdout)
    read = [option for option in more if option == "--transpose"]
    rows = list(csv.DictReader(invoke("predict", model, path, *read).stdout.splitlines()))
    return told, rows


MESSY = tomllib.loads((FOLDER / "kinds.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", MESSY)
def test_messy_tables_work_as_they_come(tmp_path, name):
    target, kinds = MESSY[name]["target"], MESSY[name]["kinds"]
    kinds |= {f"GENE{j}": "number" for j in range(MESSY[name].get("genes", 0))}
    told, rows = fitted(FOLDER / name, target, tmp_path, *(["--transpose"] if name == "genes.tsv" else []))
    assert {row["column"]: row["kind"] for row in told["columns"]} == kinds
    assert told["held_out_score"] > max(0.8, told["baseline"])
    assert len(rows) == told["rows"]
