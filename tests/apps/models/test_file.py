"""Model files: readable, checked, whole or absent."""

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from msgspec import structs

from skpursuit import _atomic_files as _files
from skpursuit.apps.models import model_file
from skpursuit.apps.models.model_file import LinearModel, linear_model, load_model
from skpursuit.apps.tables import EncodingOptions, TableEncoding, TableError, read_columns, read_table
from skpursuit.apps.tables.errors import TableProblem
from tests.support.failing import fails

VERSION = b'{"format": "skpursuit linear model", "format_version": %d}'
TRAIN = "x,z,c,t\n1,5,a,1\n2,6,b,2\n3,7,a,3\n,8,b,2\n"


def save_model(path, model):
    _files.write_atomically(path, model_file.model_json(model))


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "train.csv"
    path.write_text(TRAIN)
    x, z, c = read_table(path, EncodingOptions(target="t")).encoding.columns
    encoding = TableEncoding("t", (x, z, structs.replace(c, shown=c.levels)))
    return encoding.apply(read_columns(path))


@pytest.fixture
def saved(tmp_path, table):
    path = tmp_path / "model.json"
    save_model(path, linear_model(table, [0.1, 0, 0, -2.5], 0.25, info={"score": 0.5}))
    return path


def new_table(tmp_path, model, text):
    path = tmp_path / "new.csv"
    path.write_text(text)
    return model.encoding.apply(read_columns(path))


def test_a_model_comes_back_and_asks_only_for_the_columns_it_uses(tmp_path, saved):
    model = load_model(saved)
    assert model.features == ("c=b", "x")
    assert model.info == {"score": 0.5}
    assert model.versions["numpy"] == np.__version__
    table = new_table(tmp_path, model, "c,x\nb,10\na,\n")
    np.testing.assert_array_equal(model.predict(table), [0.1 * 10 - 2.5 + 0.25, 0.1 * 2 + 0.25])


def test_the_file_is_readable(saved):
    body = json.loads(saved.read_text())["model"]
    assert body["coefficients"][0] == {"feature": "c=b", "coef": [-2.5]}
    assert body["task"] == "regression"
    assert [column["fill"] for column in body["encoding"]["columns"]] == [2.0, ""]


@pytest.mark.parametrize(
    ("coef", "intercept", "classes", "rows", "predicted"),
    [
        ([[1.0, 0, 0, 0]], [-2.0], ["no", "yes"], "x\n1\n3\n2\n", ["no", "yes", "no"]),
        (np.eye(3, 4) * [[1], [1], [0]], [0, 0, 1.5], [10, 20, 30], "x,z\n5,1\n1,5\n1,1\n", [10, 20, 30]),
        (np.zeros(4), 7.0, None, "x\n1\n2\n", [7.0, 7.0]),
    ],
)
def test_classes_and_a_constant_come_back(tmp_path, table, coef, intercept, classes, rows, predicted):
    save_model(tmp_path / "m.json", linear_model(table, coef, intercept, classes))
    model = load_model(tmp_path / "m.json")
    assert model.predict(new_table(tmp_path, model, rows)).tolist() == predicted


def test_every_single_bit_of_a_coefficient_survives(tmp_path, table):
    coef = np.random.default_rng(0).normal(size=4) * 10.0 ** np.arange(-300, 300, 150)
    save_model(tmp_path / "m.json", linear_model(table, coef, np.pi))
    model = load_model(tmp_path / "m.json")
    assert sorted(model.coef[0]) == sorted(coef)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.99])
def test_cut_off(saved, share):
    content = saved.read_bytes()
    saved.write_bytes(content[: int(share * len(content))])
    with pytest.raises(TableError, match="this is not JSON, or only the beginning") as caught:
        load_model(saved)
    assert str(caught.value).startswith(str(saved))


def test_changed_content_is_noticed_but_not_changed_layout(saved):
    document = json.loads(saved.read_text())
    saved.write_text(json.dumps(document, sort_keys=True))
    assert load_model(saved).features == ("c=b", "x")
    document["model"]["coefficients"][0]["coef"] = [2.5]
    saved.write_text(json.dumps(document))
    fails("checksum", load_model, saved, error=TableError)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        *((VERSION % version, f"version {version}, not 2; fit it again") for version in (1, 3)),
        (b'{"a": 1}', "not a skpursuit model"),
        (b"[" * 100_000, "not JSON"),
        (b"\x80\x04\x95", "not JSON"),
    ],
)
def test_other_versions_and_other_files(tmp_path, content, words):
    other = tmp_path / "other.json"
    other.write_bytes(content)
    fails(words, load_model, other, error=TableError)
    fails("no such file", load_model, tmp_path / "absent.json", error=TableError)
    fails("cannot be read", load_model, tmp_path, error=TableError)


ABSENT = object()
#: Keys of a model, and values that are wrong there.
WRONG = json.loads(Path(__file__).with_name("wrong_parts.json").read_text(encoding="utf-8"))


def put(*keys):
    """Return what replaces one value deep in a document."""

    def change(body, value):
        for key in keys[:-1]:
            body = body[key]
        body[keys[-1]] = value
        if value is ABSENT:
            del body[keys[-1]]

    return change


@pytest.mark.parametrize(
    ("change", "value"),
    [
        *((put(part), ABSENT) for part in ("coefficients", "encoding", "intercept", "classes")),
        *((put(*keys), value) for keys, value in WRONG),
        (put("coefficients", 0, "coef"), [10**400]),
    ],
)
def test_a_wrong_part_under_a_valid_checksum(saved, change, value):
    check_wrong(saved, change, value)


def check_wrong(path, change, value):
    document = json.loads(path.read_text())
    change(document["model"], value)
    document["sha256"] = model_file._checksum(document["model"])
    path.write_text(json.dumps(document))
    fails("missing or wrong", load_model, path, error=TableError)


@pytest.mark.parametrize("number", ["Infinity", "NaN", "1e999", r'"\ud800"'])
def test_what_is_no_number_or_text_is_no_json(saved, number):
    saved.write_text(saved.read_text().replace("0.25", number))
    fails("not JSON", load_model, saved, error=TableError)


def test_a_byte_order_mark_is_no_harm(saved):
    saved.write_bytes(b"\xef\xbb\xbf" + saved.read_bytes())
    assert load_model(saved).features == ("c=b", "x")


def test_classes_of_an_older_file_that_are_whole_numbers(tmp_path, table):
    model = linear_model(table, [[1.0, 0, 0, 0]], [-2.0], classes=np.array([0.0, 1.0]))
    assert model.classes == (0, 1)
    save_model(tmp_path / "m.json", replace(model, classes=(0.0, 1.0)))
    assert repr(load_model(tmp_path / "m.json").classes) == "(0, 1)"
    halves = linear_model(table, [[1.0, 0, 0, 0]], [-2.0], classes=np.array([0.5, 1.0]))
    assert repr(halves.classes) == "(0.5, 1.0)"


@pytest.mark.parametrize(
    "classes", [[], ["a"], ["a", "a"], [1, 1.0], ["a", 1], ["a", None], [True, False], ["a", "b", "c"]]
)
def test_classes_of_a_file_are_two_or_more_and_differ(tmp_path, table, classes):
    path = tmp_path / "m.json"
    save_model(path, linear_model(table, [[1.0, 0, 0, 0]], [-2.0], classes=["no", "yes"]))
    check_wrong(path, put("classes"), classes)


@pytest.mark.parametrize(
    ("coef", "info"),
    [(1e308, {}), (1e3, {"loss": "poisson"}), (1e307, {"residuals": {"0.1": 0.0, "0.9": 1.7e308}})],
)
def test_predictions_beyond_the_range_of_numbers_are_refused(table, coef, info):
    model = linear_model(table, [coef, 0, 0, 0], 0.0, info=info)
    fails("beyond the range of numbers", model.predictions, table, 0.9, error=TableProblem)


def test_nonsense_is_not_made_into_a_model(table):
    fails("finite", linear_model, table, [np.nan, 0, 0, 0], 0.0)
    fails("do not fit 3 outputs", linear_model, table, np.ones(4), 0.0, classes=[1, 2, 3])
    fails("features of the encoding", LinearModel, ("nope",), np.ones((1, 1)), np.zeros(1), table.encoding)
    z = table.encoding.columns[1]
    twice = TableEncoding("t", (z, structs.replace(table.encoding.columns[2], name="c", shown=("a", "a"))))
    fails("a feature 'c=a'; rename one", LinearModel, ("z",), np.ones((1, 1)), np.zeros(1), twice)


def test_info_that_is_not_json_writes_nothing(tmp_path, table):
    with pytest.raises(ValueError, match="JSON compliant"):
        save_model(tmp_path / "m.json", linear_model(table, np.ones(4), 0.0, info={"score": float("nan")}))
    assert not (tmp_path / "m.json").exists()


def test_permissions_are_those_of_an_ordinary_new_file(tmp_path, saved):
    ordinary = tmp_path / "ordinary"
    ordinary.write_text("")
    assert saved.stat().st_mode == ordinary.stat().st_mode


def test_a_link_is_followed_and_a_pipe_is_written_to(tmp_path, saved):
    link, pipe = tmp_path / "link.json", tmp_path / "pipe"
    link.symlink_to(saved)
    _files.write_atomically(link, "new")
    assert link.is_symlink()
    assert saved.read_text() == "new"
    dangling = tmp_path / "dangling"
    dangling.symlink_to(tmp_path / "later")
    _files.write_atomically(dangling, "made")
    assert (tmp_path / "later").read_text() == "made"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    _files.write_atomically(pipe, "through")
    assert os.read(reader, 100) == b"through"
    os.close(reader)
    assert pipe.is_fifo()
