"""Every command that a message advises works when it is pasted."""

import csv
import io
import re
import shlex
from pathlib import Path

import numpy as np
import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import skpursuit
from skpursuit.apps.cli.program import InputError
from skpursuit.apps.tables.errors import PROBLEMS
from tests.support.process import invoke


def table(
    path, rows=60, hole=False, stray=False, header=True, ragged=False, rare=False, odd=False, encoding="utf-8"
):
    rng = np.random.default_rng(0)
    text = io.StringIO()
    writer = csv.writer(text)
    if header:
        writer.writerow(["size", "töwn", "mark", "price"])
    for i in range(rows):
        size = rng.uniform(1, 90)
        row = [f"{size:.2f}", "ab"[i > 3 if rare else i % 2], "xyz"[i % 3], f"{3 * size + i % 2:.2f}"]
        row[0] = "" if hole and i % 7 == 3 else "oops" if odd and i == 9 else row[0]
        row[3] = "sold" if stray and i == 5 else row[3]
        writer.writerow(row + ["more"] * (ragged and i in (9, 20)))
    path.write_bytes(text.getvalue().encode(encoding))
    return path


def genes(folder):
    """A table whose rows are its columns."""
    X = np.random.default_rng(0).normal(size=(8, 40)).round(3)
    rows = [["gene", *(f"s{i}" for i in range(40))], *([f"g{j}", *x] for j, x in enumerate(X))]
    rows.append(["ill", *np.where(X[3] > 0, "yes", "no")])
    path = folder / "genes.csv"
    path.write_text("\n".join(",".join(map(str, row)) for row in rows))
    return path


def workbook(folder):
    book = openpyxl.Workbook()
    book.active.title = "Sales 2024"
    for i in range(40):
        book.active.append(["size", "price"] if not i else [i, 3 * i + i % 2])
    book.save(folder / "book.xlsx")
    return folder / "book.xlsx"


def on_disk(folder):
    pq.write_table(pa.table({"a": np.arange(60.0), "price": np.sin(np.arange(60))}), folder / "t.parquet")
    return folder / "t.parquet"


def plain(folder, name="a table.csv", end="", **made):
    path = table(folder / name, **made)
    path.write_bytes(path.read_bytes() + end.encode())
    return path


def comments(folder):
    rows = [f'{i},"first\nsecond",{3 * i + i % 2}' for i in range(1, 40)]
    (folder / "t.csv").write_text("\n".join(["size,comment,price", *rows, ""]))
    return folder / "t.csv"


PRICE = ["--target", "price"]
#: The problems that have a command to paste: what makes the file, and the options that are wrong.
CASES = {
    "unknown format": [({"name": "table.docx"}, PRICE)],
    "no extension": [({"name": "table"}, PRICE)],
    "other encoding": [
        ({"encoding": "cp1252"}, [*PRICE, "--encoding", "utf-8"]),
        ({"encoding": "cp1252"}, [*PRICE, "--encoding", "ascii"]),
    ],
    "unknown encoding": [({}, [*PRICE, "--encoding=klingon"])],
    "no header": [({"header": False}, PRICE), ({"header": False}, [])],
    "bad row": [({"ragged": True}, PRICE)],
    "cut off": [({"end": "12.0,a"}, PRICE)],
    "bad quotes": [({"end": f"1\n1,a,{'x' * 200_000},3\n"}, PRICE)],
    "line breaks": [(comments, PRICE)],
    "no sheet": [(workbook, [*PRICE, "--sheet", "Sales"])],
    "row name": [(genes, ["--target", "ill"])],
    "no transpose": [(on_disk, [*PRICE, "--transpose"])],
    "no target": [({}, [])],
    "misspelled": [
        ({}, ["--target", "prise"]),
        ({}, [*PRICE, "--column", "twn=category"]),
        ({}, [*PRICE, "--drop", "siz"]),
        ({}, ["--id", "sise"]),
    ],
    "no column": [
        ({}, [*PRICE, "--column", "qqqqq=category"]),
        ({}, [*PRICE, "--drop=qqqqq"]),
        ({}, ["--id", "qqqqq", "--id", "size"]),
    ],
    "no order": [({}, [*PRICE, "--column", "mark=ordinal"])],
    "target with texts": [({"stray": True}, PRICE)],
    "missing value": [({"hole": True}, [*PRICE, "--no-impute"])],
    "stray value": [({"odd": True}, [*PRICE, "--no-impute"])],
    "texts": [({}, ["--target", "töwn", "--task", "regression"])],
    "a quantity": [({}, [*PRICE, "--task", "classification"])],
    "test share": [({"rows": 20}, [*PRICE, "--test-share", "0.01"])],
    "small share": [({"rows": 100, "rare": True}, ["--target", "töwn", "--test-share", "0.9"])],
    "unknown selector": [({}, [*PRICE, "--selector", "magic"])],
    "unknown loss": [({}, [*PRICE, "--loss", "logistic"])],
    "unknown solver": [({}, [*PRICE, "--solver", "fw"])],
}


def test_every_problem_with_a_command_is_pasted_here():
    advised = {name for name, told in PROBLEMS.items() if {"add", "leave_out"} & told.keys()}
    assert CASES.keys() == advised


@pytest.mark.parametrize(
    ("kind", "made", "options"), [(kind, *case) for kind, cases in CASES.items() for case in cases]
)
def test_what_is_advised_can_be_pasted(tmp_path, kind, made, options):
    path = made(tmp_path) if callable(made) else plain(tmp_path, **made)
    arguments = ["fit", path, *options]
    if "--id" in options:
        invoke("fit", path, *PRICE, "--out", tmp_path / "model.json")
        arguments = ["predict", tmp_path / "model.json", path, *options]
    with pytest.raises(InputError) as refused:
        invoke(*arguments, standalone_mode=False, catch_exceptions=False)
    assert kind in [advice.kind for _, advice in refused.value.problems if advice]
    done = invoke(*arguments, code=2)
    lines = [line for line in done.output.splitlines() if line.startswith("Error: ")]
    commands = [shlex.split(line.rpartition("; run: ")[2]) for line in lines if "; run: " in line]
    assert len(commands) == len(lines) > 0, done.output
    assert commands[0][0] == "skpursuit"
    invoke(*commands[0][1:])


def test_several_problems_are_solved_one_after_the_other(tmp_path):
    arguments = ["fit", plain(tmp_path), "--target", "prise", "--drop", "siz", "--column", "twn=category"]
    for left in (3, 2, 1):
        told = invoke(*arguments, code=2).output.splitlines()
        assert len(told) == left
        arguments = shlex.split(told[0].rpartition("; run: ")[2])[1:]
    invoke(*arguments)


#: Options that a message may name without a command to paste, because it cannot know their value.
UNKNOWN = ("target", "column", "format", "encoding", "drop", "data", "out")


def test_a_message_that_names_an_option_has_a_command_or_needs_a_value():
    """Every problem either carries advice, or names options whose value is the user's."""
    for name, told in PROBLEMS.items():
        named = set(re.findall(r"--[a-z][a-z-]+", told["problem"] + told["remedy"]))
        assert {"add", "leave_out"} & told.keys() or named <= {f"--{one}" for one in UNKNOWN}, name
    assert len(PROBLEMS) > 40


@pytest.mark.parametrize("value", ["size", "size=magic", "=number=x"])
def test_what_is_no_kind(tmp_path, value):
    done = invoke("fit", table(tmp_path / "t.csv"), "--target", "price", "--column", value, code=2)
    assert "is not NAME=KIND" in done.output


def test_every_problem_that_is_raised_has_words_and_all_words_are_used():
    sources = (Path(skpursuit.__file__).parent / "apps").glob("*/*.py")
    text = "".join(path.read_text(encoding="utf-8") for path in sources)
    raised = set(re.findall(r'TableProblem\(\s*"([^"]+)"', text))
    assert len(raised) > 40
    assert raised <= PROBLEMS.keys()
    assert [name for name in PROBLEMS if f'"{name}"' not in text and not name.startswith("unknown ")] == []
