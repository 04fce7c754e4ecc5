"""Tables that stay on the disk: the same models as in memory, and refusals of one line."""

import csv
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.process import invoke

ROWS = 1500


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, 40)) * np.linspace(1, 9, 40) + 1000 * (np.arange(40) == 3)
    columns = {f"x{j}": X[:, j] for j in range(40)} | {"flag": rng.random(ROWS) > 0.5}
    y = X[:, 3] - 2 * X[:, 7] + X[:, 20] + 5 * columns["flag"] + rng.normal(size=ROWS)
    return pa.table({**columns, "y": y, "up": np.where(y > np.median(y), "yes", "no")})


@pytest.fixture(scope="module")
def folder(data, tmp_path_factory):
    path = tmp_path_factory.mktemp("pieces")
    for i, first in enumerate(range(0, ROWS, 400)):
        pq.write_table(data.slice(first, 400), path / f"part{i}.parquet", row_group_size=128)
    return path


@pytest.fixture(scope="module")
def file(data, tmp_path_factory):
    path = tmp_path_factory.mktemp("one") / "t.parquet"
    pq.write_table(data, path, row_group_size=512)
    return path


def fit(path, *options, target="y", other="up"):
    done = invoke("fit", path, "--target", target, "--drop", other, "--json", "--solver", "omp", *options)
    return json.loads(done.stdout)


def check_same(found, expected):
    assert list(found["features"]) == list(expected["features"])
    for name, values in expected["features"].items():
        np.testing.assert_allclose(found["features"][name], values, rtol=1e-6)
    np.testing.assert_allclose(found["held_out_score"], expected["held_out_score"], rtol=1e-6)
    assert found["k"] == expected["k"]
    assert found["baseline"] == pytest.approx(expected["baseline"])
    effects = [[one["standardised"] for one in fitted["effects"]] for fitted in (found, expected)]
    np.testing.assert_allclose(*effects, rtol=1e-6)


@pytest.mark.parametrize("more", [[], ["-k", 3]])
@pytest.mark.parametrize("target", ["y", "up"])
def test_a_file_and_a_folder_give_the_model_of_memory(file, folder, more, target):
    other = {"y": "up", "up": "y"}[target]
    expected = fit(file, *more, target=target, other=other)
    for path in (file, folder):
        check_same(fit(path, *more, "--memory-limit", "1MiB", target=target, other=other), expected)
    check_same(fit(folder, *more, target=target, other=other), expected)


def test_as_many_features_as_it_takes_are_tried_by_default(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1024, 60))
    y = X[:, :30] @ rng.choice([-1.0, 1.0], 30) + rng.normal(size=1024)
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({f"x{j}": X[:, j] for j in range(60)} | {"y": y}), path, row_group_size=512)
    given = ("fit", path, "--target", "y", "--memory-limit", "1MiB")
    found = json.loads(invoke(*given, "--json").stdout)
    assert {f"x{j}" for j in range(30)} <= set(found["features"])
    assert found["held_out_score"] > 0.95
    assert not found["k_is_the_largest_tried"]
    text = invoke(*given, "--max-k", 5, "--selection", "best").stdout
    assert "k is the largest number that was tried; --max-k 10 tries more" in text


def test_a_model_of_a_folder_predicts_raw_files_as_others_do(data, folder, tmp_path):
    model = tmp_path / "m.json"
    files = ["--out", model, "--report", tmp_path / "m.html"]
    done = invoke("fit", folder, "--target", "y", "--drop", "up", "--memory-limit", "1MiB", *files)
    assert "1500 rows, 41 columns" in done.output
    assert "rows held out" in (tmp_path / "m.html").read_text()
    by_folder = invoke("predict", model, folder).stdout
    assert len(by_folder.splitlines()) == ROWS + 1
    with open(tmp_path / "raw.csv", "w", newline="") as raw:
        writer = csv.writer(raw)
        writer.writerow(data.column_names)
        writer.writerows(list(row.values()) for row in data.to_pylist())
    by_csv = invoke("predict", model, tmp_path / "raw.csv").stdout
    numbers = [np.loadtxt(text.splitlines(), delimiter=",", skiprows=1) for text in (by_folder, by_csv)]
    np.testing.assert_allclose(*numbers, rtol=1e-9)


def test_rows_without_a_target_are_left_out(data, tmp_path):
    holes = pa.array(data["y"].to_numpy(), mask=np.arange(ROWS) % 7 == 3)
    pq.write_table(data.set_column(41, "y", holes), tmp_path / "t.parquet")
    found = fit(tmp_path / "t.parquet", "-k", 3, "--memory-limit", "1MiB")
    assert found["rows_without_target"] == 214
    check_same(found, fit(tmp_path / "t.parquet", "-k", 3))


def test_columns_that_are_not_numeric_are_named_with_the_command_that_leaves_them_out(data, tmp_path):
    words = data.append_column("day's word", pa.array(["a"] * ROWS))
    pq.write_table(words, tmp_path / "t.parquet")
    arguments = ["fit", tmp_path / "t.parquet", "--target", "y", "--memory-limit", "1MiB"]
    done = invoke(*arguments, code=2)
    assert "columns 'up', \"day's word\" are not numeric" in done.output
    assert done.output.endswith("--drop up --drop 'day'\"'\"'s word'\n")
    assert len(done.output.splitlines()) == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--memory-limit", "lots", "--target", "y", "--drop", "up"], "must be a number of bytes"),
        (["--memory-limit", "1MiB", "--target", "z"], "there is no column 'z'"),
        (["--memory-limit", "1MiB", "--target", "y", "--column", "x1=category"], "for tables in memory"),
    ],
)
def test_refusals_are_one_line(file, options, words):
    done = invoke("fit", file, *options, code=2)
    assert words in done.output, done.output


def test_other_formats_and_missing_cells_are_refused(data, tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    done = invoke("fit", tmp_path / "t.csv", "--target", "a", "--memory-limit", "1GB", code=2)
    assert "write the table as Parquet" in done.output
    holes = pa.array(data["x5"].to_numpy(), mask=np.arange(ROWS) == 900)
    pq.write_table(data.set_column(5, "x5", holes), tmp_path / "t.parquet")
    done = invoke(
        "fit", tmp_path / "t.parquet", "--target", "y", "--drop", "up", "--memory-limit", "1MiB", code=2
    )
    assert len(done.output.splitlines()) == 1
    assert "columns 'x5' have empty cells" in done.output
    assert done.output.endswith("--drop up --memory-limit 1MiB --drop x5\n")


@pytest.mark.parametrize("more", [[], ["--memory-limit", "1MiB"]])
def test_files_of_a_folder_with_columns_in_another_order(data, file, tmp_path, more):
    pq.write_table(data.slice(0, 700), tmp_path / "a.parquet")
    pq.write_table(data.slice(700).select(data.column_names[::-1]), tmp_path / "b.parquet")
    check_same(fit(tmp_path, "-k", 3, *more), fit(file, "-k", 3))
    words = data.slice(700).set_column(5, "x5", pa.array(["a"] * (ROWS - 700)))
    pq.write_table(words, tmp_path / "b.parquet")
    done = invoke("fit", tmp_path, "--target", "y", "--drop", "up", *more, code=2)
    assert "x5" in done.output, done.output


@pytest.mark.filterwarnings("always:.*row group")
def test_warnings_are_notes(data, tmp_path):
    pq.write_table(pa.concat_tables([data] * 4), tmp_path / "t.parquet", row_group_size=1024)
    given = ["--target", "y", "--drop", "up", "-k", 1, "--memory-limit", "1MiB"]
    told = invoke("fit", tmp_path / "t.parquet", *given).stderr
    assert f"{tmp_path / 't.parquet'}: a row group of 1024 rows" in told.splitlines()[0]
