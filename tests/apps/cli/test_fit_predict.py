"""``skpursuit fit`` and ``skpursuit predict``, on good and on bad files."""

import csv
import json
import re

import numpy as np
import pytest

import skpursuit
from skpursuit import _atomic_files as _files
from tests.support.process import invoke


def houses(path, rows=120, seed=0, hole=False):
    rng = np.random.default_rng(seed)
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["area", "noise", "town", "price", "dear"])
        for i in range(rows):
            area, town = rng.uniform(30, 200), rng.choice(["north", "west"])
            price = 10 * area + (500 if town == "west" else 0) + rng.normal()
            shown = "" if hole and i == 5 else f"{area:.3f}"
            writer.writerow(
                [shown, f"{rng.normal():.3f}", town, f"{price:.3f}", "yes" if price > 1200 else "no"]
            )
    return path


@pytest.fixture
def table(tmp_path):
    return houses(tmp_path / "houses.csv")


def test_fit_and_predict(tmp_path, table):
    model = tmp_path / "model.json"
    done = invoke("fit", table, "--target", "price", "--drop", "dear", "--out", model, "--json")
    found = json.loads(done.stdout)
    assert found["task"] == "regression"
    assert found["held_out_score"] > 0.99 > found["baseline"]
    assert abs(found["features"].get("noise", [0.0])[0]) < 0.5
    assert found["features"]["area"][0] == pytest.approx(10, rel=0.01)
    sizes = [size["k"] for size in found["path"]]
    assert found["k"] in sizes
    assert sizes == sorted(set(sizes))
    assert json.loads(model.read_text())["model"]["task"] == "regression"

    fresh = houses(tmp_path / "new.csv", rows=20, seed=1)
    done = invoke("predict", model, fresh, "--json")
    truth = [float(row["price"]) for row in csv.DictReader(fresh.read_text().splitlines())]
    rows = json.loads(done.stdout)
    assert [row["prediction"] for row in rows] == pytest.approx(truth, abs=6)
    assert sum(row["low"] <= y <= row["high"] for row, y in zip(rows, truth)) >= 14
    narrow = json.loads(invoke("predict", model, fresh, "--json", "--interval", 0.5, "--id", "town").stdout)
    assert narrow[0]["high"] < rows[0]["high"]
    assert {row["town"] for row in narrow} == {"north", "west"}
    printed = invoke("predict", model, fresh).stdout.splitlines()
    assert printed[0] == "row,prediction,low,high"
    assert [line.partition(",")[0] for line in printed[1:]] == [str(i) for i in range(1, 21)]
    assert all(re.fullmatch(r"\d+,(?:-?\d+\.\d,?){3}", line) for line in printed[1:])  # the error is about 1
    first = invoke("predict", model, fresh, "--id", "area").stdout.splitlines()[1]
    assert first.startswith(fresh.read_text().splitlines()[1].partition(",")[0] + ",")
    assert invoke("predict", model, fresh, "--out", tmp_path / "p.csv", "--quiet").output == ""
    assert (tmp_path / "p.csv").read_text().splitlines() == printed


def test_classes_are_found_out_and_k_is_obeyed(tmp_path, table):
    done = invoke("fit", table, "--target", "dear", "--drop", "price", "-k", 1, "--out", tmp_path / "m.json")
    assert "classification of 'dear'" in done.output
    assert "(k = 1, as asked)\n(features came in by omp: with -k, --selector or" in done.output
    done = invoke("fit", table, "--target", "dear", "--drop", "price", "--selector", "exact", "--json")
    assert json.loads(done.stdout)["family"] == "omp"
    rows = list(csv.DictReader(invoke("predict", tmp_path / "m.json", table).stdout.splitlines()))
    assert {row["prediction"] for row in rows} == {"yes", "no"}
    assert all((float(row["p(yes)"]) > 0.5) == (row["prediction"] == "yes") for row in rows)


def test_more_features_than_there_are_is_all_of_them(table):
    done = invoke("fit", table, "--target", "price", "--drop", "dear", "-k", 50, "--json")
    assert json.loads(done.stdout)["k"] == 3
    told = invoke("fit", table, "--target", "price", "--drop", "dear", "-k", 50).output
    assert "(k = 3, lowered from 50: there are no more features)" in told


def test_missing_values_are_named_or_imputed(tmp_path):
    table = houses(tmp_path / "holes.csv", hole=True)
    done = invoke("fit", table, "--target", "price", "--no-impute", code=2)
    assert "column 'area', row 6: the value is missing" in done.output
    assert done.output.strip().endswith(f"; run: skpursuit fit {table} --target price")
    for more in ([], ["--impute"]):
        done = invoke("fit", table, "--target", "price", *more)
        assert "1 cell, filled by" in done.output


def test_losses_tell_what_a_prediction_means(tmp_path, table):
    model = tmp_path / "model.json"
    done = invoke("fit", table, "--target", "price", "--loss", "poisson", "-k", 2, "--json", "--out", model)
    assert json.loads(done.stdout)["loss"] == "poisson"
    done = invoke("predict", model, table, "--json")
    predicted = np.array([row["prediction"] for row in json.loads(done.stdout)])
    actual = np.array([float(row["price"]) for row in csv.DictReader(table.read_text().splitlines())])
    assert predicted.min() > 0
    assert np.abs(predicted - actual).mean() < 0.5 * np.abs(actual - actual.mean()).mean()


#: What people give by mistake; a folder and a file that is not there have no content.
BAD_FILES = {
    "binary.csv": bytes(range(256)) * 40,
    "cut.parquet": b"PAR1\x00\x01",
    "absent.csv": None,
    "folder.csv": None,
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_bad_files_are_one_line_that_names_them_and_nothing_is_written(tmp_path, table, name):
    (tmp_path / "folder.csv").mkdir()
    if BAD_FILES[name] is not None:
        (tmp_path / name).write_bytes(BAD_FILES[name])
    model = tmp_path / "model.json"
    invoke("fit", table, "--target", "price", "--out", model, "-k", 1)
    before = sorted(tmp_path.iterdir())
    for done in (
        invoke("fit", tmp_path / name, "--target", "price", "--out", tmp_path / "new.json", code=2),
        invoke("predict", model, tmp_path / name, "--out", tmp_path / "new.csv", code=2),
    ):
        assert done.output.startswith("Error: ")
        assert len(done.output.splitlines()) == 1
        assert name in done.output
        assert ";" in done.output  # what is wrong; what to do
        assert len(done.output.replace(str(tmp_path), "")) < 400
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--target", "prise"], "there is no column 'prise'"),
        ([], "--target"),
        (["--target", "price", "--drop", "x"], "'x'"),
        (["--target", "price", "--task", "classification"], "--target price --task regression"),
        (["--target", "dear", "--task", "regression"], "--target dear --task classification"),
        (["--target", "price", "--selector", "magic"], "magic"),
        (
            ["--target", "price", "--solver", "fw"],
            "'fw' is not known; use one of auto, omp, mp, cosamp, grasp",
        ),
        (["--target", "price", "--loss", "logistic"], "'logistic' is not known; use one of squared, huber"),
        (["--target", "price", "--out", "/nowhere/m.json"], "/nowhere"),
    ],
)
def test_wrong_choices_name_the_remedy(table, arguments, words):
    done = invoke("fit", table, *arguments, code=2)
    assert words in done.output


@pytest.mark.parametrize(
    ("cells", "share", "words"),
    [
        (range(5), 0.2, "at least 10"),
        ([3] * 20, 0.2, "same value"),
        ([*"b", *"a" * 19], 0.2, "'b' has 1 row"),
        ([f"c{i % 15}" for i in range(60)], 0.2, "use a --test-share from 0.25 to 0.5"),
        ([f"{i + 1}e306" for i in range(20)], 0.2, "goes beyond 1e+75; give it in a larger unit"),
        ([i % 7 for i in range(12)], 0.05, "use a --test-share from 0.17 to 0.58"),
        ([i % 7 for i in range(12)], 0.9, "use a --test-share from 0.17 to 0.58"),
        ([*"bbbb", *"a" * 8], 0.9, "use a --test-share from 0.17 to 0.66"),
        ([*"bbbb", *"a" * 96], 0.9, "fewer than 2 rows to learn from; hold out less (--test-share)"),
    ],
)
def test_tables_that_hold_too_little(tmp_path, cells, share, words):
    path, model = tmp_path / "t.csv", tmp_path / "model.json"
    path.write_text("x,y\n" + "".join(f"{i},{cell}\n" for i, cell in enumerate(cells)))
    done = invoke("fit", path, "--target", "y", "--test-share", share, "--out", model, code=2)
    assert not model.exists()
    assert "t.csv" in done.output
    assert words in done.output


def test_an_output_that_is_also_an_input_is_refused(tmp_path, table):
    model, link = tmp_path / "model.json", tmp_path / "link.csv"
    invoke("fit", table, "--target", "price", "-k", 1, "--out", model)
    link.symlink_to(table)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    for arguments, option in (
        (["fit", table, "--target", "price", "--out", table], "--out"),
        (["fit", table, "--target", "price", "--report", link], "--report"),
        (["predict", model, table, "--out", model], "--out"),
        (["predict", model, table, "--out", link], "--out"),
    ):
        done = invoke(*arguments, code=2)
        assert "already an input or output" in done.output
        assert f"({option})" in done.output
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_if_the_model_cannot_be_written_nothing_is(tmp_path, table, monkeypatch):
    def fail_on_model(path, *args):
        if "model.json" in str(path):
            raise PermissionError(13, "Permission denied")
        return open(path, *args)

    monkeypatch.setattr(_files, "open", fail_on_model, raising=False)
    done = invoke("fit", table, "--target", "price", "-k", 1, "--out", tmp_path / "model.json", code=2)
    assert "model.json: cannot be written (Permission denied); give another file (--out)" in done.output
    assert list(tmp_path.iterdir()) == [table]


def test_whole_numbers_as_classes_come_back_as_such(tmp_path):
    path, model = tmp_path / "t.csv", tmp_path / "model.json"
    path.write_text("x,y\n" + "".join(f"{i},{int(i > 20)}\n" for i in range(40)))
    invoke("fit", path, "--target", "y", "--out", model)
    rows = json.loads(invoke("predict", model, path, "--json").stdout)
    assert [row["prediction"] for row in rows] == 21 * [0] + 19 * [1]
    assert all(row["p(0)"] + row["p(1)"] == pytest.approx(1, abs=1e-5) for row in rows)


def test_a_line_break_in_a_name_does_not_break_the_table(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('"a\nb",y\n' + "".join(f"{i},{i + i % 3}\n" for i in range(40)))
    assert "\na b  " in invoke("fit", path, "--target", "y").stdout


def test_one_new_category_is_noted_and_predicted_but_nothing_is_where_all_are_new(tmp_path, table):
    model = tmp_path / "model.json"
    invoke("fit", table, "--target", "price", "--drop", "dear", "--out", model)
    new = tmp_path / "new.csv"
    new.write_text("area,noise,town\n100,0.5,east\n")
    done = invoke("predict", model, new)
    told = "new.csv: categories that are rare or new to the model, taken as none of its own: 'town' (1 row)"
    assert told in done.output
    done = invoke("predict", model, new, "--id", "who", code=2)
    assert "there is no column 'who'; the columns are 'area', 'noise', 'town'" in done.output
    new.write_text("area,noise,town\n,x,north\n100,,north\n50,1,west\n")
    done = invoke("predict", model, new)
    told = "new.csv: no usable value, filled as in the fit: 'area' (1 row)"
    assert [line for line in done.stderr.splitlines() if line.startswith(told)]
    new.write_text("area,noise,town\n50,0,North\n60,0,West\n")
    done = invoke("predict", model, new, "--quiet", "--out", tmp_path / "p.csv", code=2)
    assert not (tmp_path / "p.csv").exists()
    assert "column 'town' holds none of the categories of the model" in done.output


def drawn_table(path, signal, classes=0):
    """A table of 200 rows and 12 columns, of which two tell the target."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(200, 12)).round(3)
    y = signal * (X[:, 2] - X[:, 7]) + rng.normal(size=200)
    cells = np.array(["up", "down", "flat"])[np.digitize(y, [0, 2][: classes - 1])] if classes else y.round(4)
    names = [f"x{j}" for j in range(12)]
    path.write_text(
        "\n".join(",".join(map(str, row)) for row in [[*names, "y"], *map(list, zip(*X.T, cells))])
    )
    return path


@pytest.mark.parametrize("classes", [0, 2])
def test_where_nothing_is_found_the_model_is_a_constant_and_says_so(tmp_path, classes):
    path = drawn_table(tmp_path / "t.csv", 0.0, classes)
    files = ["--out", tmp_path / "m.json", "--report", tmp_path / "m.html"]
    done = invoke("fit", path, "--target", "y", *files)
    assert "no model that is clearly better than the best constant" in done.output
    assert "Nothing that tells “y” was found in 12 columns" in (tmp_path / "m.html").read_text()
    rows = json.loads(invoke("predict", tmp_path / "m.json", path, "--json").stdout)
    assert len({row["prediction"] for row in rows}) == 1


@pytest.mark.parametrize(("classes", "way"), [(0, "one_se"), (2, "one_se"), (3, "one_se"), (0, "best")])
def test_the_choice_is_what_the_library_chooses(tmp_path, classes, way):
    path = drawn_table(tmp_path / "t.csv", 2.0, classes)
    files, more = [tmp_path / "m.json", path], ["--selection", way] if way == "best" else []
    done = invoke("fit", path, "--target", "y", *more)
    found = json.loads(invoke("fit", path, "--target", "y", "--json", "--out", files[0], *more).stdout)
    X, y = np.split(np.array([line.split(",") for line in path.read_text().splitlines()[1:]]), [12], axis=1)
    X = np.asfortranarray(X.astype(float))  # as tables are
    kind = skpursuit.PursuitClassifierCV if classes else skpursuit.PursuitRegressorCV
    target = y.ravel() if classes else y.ravel().astype(float)
    model = kind(random_state=0, cv=5, selection=way).fit(X, target)
    assert (found["k"], found["family"], found["ridge"]) == tuple(
        model.choice_[x] for x in ("k", "family", "ridge")
    )
    np.testing.assert_allclose(
        sorted(np.ravel([*found["features"].values()])), sorted(model.coef_[model.coef_ != 0])
    )
    fewest = f"(k = {found['k']}, the fewest that are within one standard error of the best" in done.output
    assert fewest == (way == "one_se")
    if classes:
        rows = json.loads(invoke("predict", *files, "--json").stdout)
        chances = [[row[f"p({label})"] for label in model.classes_] for row in rows]
        np.testing.assert_allclose(chances, model.predict_proba(X), atol=2e-6)
    sizes = {one["k"]: one["score"] for one in found["path"]}
    assert sizes[found["k"]] > (0.7 if classes else 0.8)


def test_effects_are_those_on_yes_in_any_language(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    labels = np.where(x + 0.3 * rng.normal(size=200) > 0, "ja", "nein")
    path, model = tmp_path / "t.csv", tmp_path / "m.json"
    path.write_text("x,z,y\n" + "".join(f"{v:.3f},{i % 7},{y}\n" for i, (v, y) in enumerate(zip(x, labels))))
    found = json.loads(invoke("fit", path, "--target", "y", "--out", model, "--json").stdout)
    assert found["classes"] == ["nein", "ja"]
    assert found["features"]["x"][0] > 0
    rows = json.loads(invoke("predict", model, path, "--json").stdout)
    assert np.mean([row["prediction"] == label for row, label in zip(rows, labels)]) > 0.85
    assert all((row["p(ja)"] > 0.5) == (row["prediction"] == "ja") for row in rows)


def test_a_few_rows_of_rare_classes_are_left_out_and_told(tmp_path):
    classes = [*"abc" * 40, "typo", "odd", "odd"]
    rows = "".join(f"{ord(c[0]) % 7}.{i % 10},{i % 5},{c}\n" for i, c in enumerate(classes))
    path, page = tmp_path / "t.csv", tmp_path / "p.html"
    path.write_text("x,z,y\n" + rows)
    done = invoke("fit", path, "--target", "y", "--report", page)
    assert "2 rows of class 'odd' left out" in done.stdout
    assert "1 row of class “typo” is left out" in page.read_text()
    path.write_text("x,z,y\n" + "".join(rows.splitlines(True)[-13:]))
    assert "class 'typo' has 1 row(s)" in invoke("fit", path, "--target", "y", code=2).stderr
