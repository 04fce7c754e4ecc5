"""Every command that a message advises works when it is pasted."""

import csv
import io
import shlex

import numpy as np
import pytest
from click.testing import CliRunner

from skpursuit.cli import main


def invoke(*arguments, **more):
    return CliRunner().invoke(main, [str(a) for a in arguments], **more)


def table(path, rows=60, hole=False, stray=False, header=True, ragged=False, encoding="utf-8"):
    rng = np.random.default_rng(0)
    text = io.StringIO()
    writer = csv.writer(text)
    if header:
        writer.writerow(["size", "töwn", "mark", "price"])
    for i in range(rows):
        size = rng.uniform(1, 90)
        row = [f"{size:.2f}", "ab"[i % 2], "xyz"[i % 3], f"{3 * size + i % 2:.2f}"]
        row[0] = "" if hole and i % 7 == 3 else row[0]
        row[3] = "sold" if stray and i == 5 else row[3]
        writer.writerow(row + ["more"] * (ragged and i in (9, 20)))
    path.write_bytes(text.getvalue().encode(encoding))
    return path


CASES = {
    "a misspelled target": ({}, ["--target", "prise"]),
    "a misspelled column": ({}, ["--target", "price", "--drop", "siz", "--column", "twn=category"]),
    "missing cells": ({"hole": True}, ["--target", "price", "--no-impute"]),
    "a target that is no number": ({"stray": True}, ["--target", "price"]),
    "no header": ({"header": False}, ["--target", "price"]),
    "bad rows": ({"ragged": True}, ["--target", "price"]),
    "no target": ({}, []),
    "the wrong task": ({}, ["--target", "töwn", "--task", "regression"]),
    "the other wrong task": ({}, ["--target", "price", "--task", "classification"]),
    "too few held out": ({"rows": 20}, ["--target", "price", "--test-share", "0.01"]),
    "an encoding that it is not": ({"encoding": "cp1252"}, ["--target", "price", "--encoding", "utf-8"]),
    "an unknown encoding": ({}, ["--target", "price", "--encoding=klingon"]),
    "an unknown selector": ({}, ["--target", "price", "--selector", "magic"]),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_advised_can_be_pasted(tmp_path, case):
    made, options = CASES[case]
    path = table(tmp_path / "a table.csv", **made)
    arguments = ["fit", path, *options]
    done = invoke(*arguments)
    for _ in range(len(done.output.splitlines())):  # one problem after the other
        assert done.exit_code == 2, done.output
        lines = [line for line in done.output.splitlines() if line.startswith("Error: ")]
        commands = [shlex.split(line.rpartition("; run: ")[2]) for line in lines if "; run: " in line]
        assert len(commands) == len(lines) > 0, done.output
        assert commands[0][0] == "skpursuit"
        done = invoke(*commands[0][1:])
        if done.exit_code == 0:
            return
    pytest.fail(done.output)


def test_two_problems_are_two_lines(tmp_path):
    done = invoke("fit", table(tmp_path / "t.csv"), "--target", "prise", "--drop", "siz")
    lines = done.output.splitlines()
    assert len(lines) == 2
    assert "did you mean 'price'" in lines[0]
    assert "did you mean 'size'" in lines[1]


def test_a_table_whose_rows_are_its_columns(tmp_path):
    rng = np.random.default_rng(0)
    rows = [["gene", *(f"s{i}" for i in range(40))]]
    X = rng.normal(size=(8, 40)).round(3)
    rows += [[f"g{j}", *x] for j, x in enumerate(X)] + [["ill", *np.where(X[3] > 0, "yes", "no")]]
    path = tmp_path / "genes.csv"
    path.write_text("\n".join(",".join(map(str, row)) for row in rows))
    done = invoke("fit", path, "--target", "ill")
    assert done.exit_code == 2
    assert done.output.strip().endswith("--target ill --transpose")
    assert invoke("fit", path, "--target", "ill", "--transpose").exit_code == 0


def test_standard_input(tmp_path):
    content = table(tmp_path / "t.csv").read_bytes()
    done = invoke("fit", "-", "--target", "price", input=content)
    assert done.exit_code == 2
    assert done.output.strip().endswith("skpursuit fit - --target price --format csv")
    model = tmp_path / "m.json"
    assert (
        invoke("fit", "-", "--format", "csv", "--target", "price", "--out", model, input=content).exit_code
        == 0
    )
    assert len(invoke("predict", model, "-", "--format", "csv", input=content).stdout.splitlines()) == 61
    done = invoke("predict", model, "-", "--format", "csv", input=b"a,b\n1,2\n")
    assert done.output.startswith("Error: standard input: columns that the model needs are missing")


def test_a_schema_is_kept_and_used(tmp_path):
    path, schema = table(tmp_path / "t.csv"), tmp_path / "schema.json"
    options = ["--target", "price", "--column", "mark=drop", "--column", "size=category", "-k", 2]
    assert invoke("fit", path, *options, "--save-schema", schema).exit_code == 0
    done = invoke("fit", path, "--target", "price", "--schema", schema, "-k", 2)
    assert done.exit_code == 0, done.output
    assert "mark    left out: as asked" in done.output
    schema.write_text("{}")
    assert "this is no schema" in invoke("fit", path, "--target", "price", "--schema", schema).output
    done = invoke("fit", path, "--target", "price", "--schema", schema, "--save-schema", schema)
    assert "another use for that file" in done.output


@pytest.mark.parametrize("value", ["size", "size=magic", "=number=x"])
def test_what_is_no_kind(tmp_path, value):
    done = invoke("fit", table(tmp_path / "t.csv"), "--target", "price", "--column", value)
    assert (done.exit_code, "is not NAME=KIND" in done.output) == (2, True)
