"""Parquet files, and folders of them: the same models, and predictions in pieces."""

import csv
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.process import invoke

ROWS = 600


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, 20)) * np.linspace(1, 9, 20) + 1000 * (np.arange(20) == 3)
    columns = {f"x{j}": X[:, j] for j in range(20)} | {"flag": rng.random(ROWS) > 0.5}
    y = 2 * X[:, 3] - 2 * X[:, 7] + X[:, 15] + 5 * columns["flag"] + rng.normal(size=ROWS)
    return pa.table({**columns, "y": y, "up": np.where(y > np.median(y), "yes", "no")})


def fit(path, *options):
    given = ["--target", "y", "--drop", "up", "-k", 3, "--json"]
    return json.loads(invoke("fit", path, *given, *options).stdout)


def test_a_folder_gives_the_model_of_a_file_and_predicts_as_text_does(data, tmp_path):
    (folder := tmp_path / "pieces").mkdir()
    pq.write_table(data, tmp_path / "t.parquet", row_group_size=256)
    pq.write_table(data.slice(0, 350), folder / "a.parquet", row_group_size=128)
    pq.write_table(data.slice(350).select(data.column_names[::-1]), folder / "b.parquet")
    found = fit(folder, "--out", tmp_path / "m.json")
    assert found["features"] == fit(tmp_path / "t.parquet")["features"]
    assert set(found["features"]) == {"x3", "x7", "x15"}
    with open(tmp_path / "raw.csv", "w", newline="") as raw:
        writer = csv.writer(raw)
        writer.writerow(data.column_names)
        writer.writerows(list(row.values()) for row in data.to_pylist())
    told = [invoke("predict", tmp_path / "m.json", path).stdout for path in (folder, tmp_path / "raw.csv")]
    assert told[0] == told[1]
    assert len(told[0].splitlines()) == ROWS + 1
    words = data.slice(350).set_column(5, "x5", pa.array(["a"] * (ROWS - 350)))
    pq.write_table(words, folder / "b.parquet")
    done = invoke("fit", folder, "--target", "y", "--drop", "up", code=2)
    assert "x5" in done.output, done.output


def test_rows_without_a_target_are_left_out(data, tmp_path):
    holes = np.arange(ROWS) % 7 == 3
    kept = data.filter(pa.array(~holes))
    pq.write_table(
        data.set_column(21, "y", pa.array(data["y"].to_numpy(), mask=holes)), tmp_path / "t.parquet"
    )
    pq.write_table(kept, tmp_path / "u.parquet")
    found = fit(tmp_path / "t.parquet")
    assert found["rows_without_target"] == holes.sum()
    assert found["features"] == fit(tmp_path / "u.parquet")["features"]
