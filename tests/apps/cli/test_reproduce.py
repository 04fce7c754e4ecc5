"""``skpursuit reproduce`` and ``skpursuit report``."""

import csv
import json
import re
import shutil
from pathlib import Path

import pytest

from skpursuit.apps.studies import grid, studies
from skpursuit.apps.studies.grid import CellError
from skpursuit.apps.tables import TableError
from tests.apps.cli import small_studies
from tests.support.process import invoke

TOY = ("omp", "cosamp", "budget", "scaling", "fw")


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(studies, "STUDIES", dict(studies.STUDIES))
    small_studies.install()


def rows(path):
    """The results without what differs from run to run."""
    with open(path, newline="") as file:
        return [{k: v for k, v in row.items() if k != "seconds"} for row in csv.DictReader(file)]


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Results of all toy studies."""
    folder = tmp_path_factory.mktemp("results")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(studies, "STUDIES", dict(studies.STUDIES))
        small_studies.install()
        invoke("reproduce", *TOY, "--trials", 2, "--out", folder)
    return folder


def test_reproduce_writes_a_row_per_cell_and_says_where(results):
    for name in TOY:
        found = rows(results / f"{name}.csv")
        assert {row["trial"] for row in found} == {"0", "1"}
        exact = [row for row in found if row["method"] in ("exact", "rows")]
        assert exact
        assert all(float(row["same_atoms"]) == 1.0 for row in exact)


def test_more_trials_go_on_and_the_same_again_changes_nothing(small, tmp_path):
    invoke("reproduce", "budget", "--trials", 1, "--out", tmp_path)
    first = (tmp_path / "budget.csv").read_bytes()
    invoke("reproduce", "budget", "--trials", 1, "--out", tmp_path)
    assert (tmp_path / "budget.csv").read_bytes() == first
    done = invoke("reproduce", "budget", "--trials", 2, "--out", tmp_path, "--json")
    assert json.loads(done.stdout) == {"budget": str(tmp_path / "budget.jsonl")}
    grown = (tmp_path / "budget.csv").read_bytes()
    assert grown.startswith(first)
    assert len(rows(tmp_path / "budget.csv")) == 2 * first.count(b"\n") - 2


def test_full_results_are_not_mixed_with_small_ones(small, tmp_path):
    invoke("reproduce", "budget", "--trials", 1, "--out", tmp_path)
    done = invoke("reproduce", "budget", "--trials", 1, "--out", tmp_path, "--full", code=2)
    assert "budget.jsonl" in done.output
    assert "--out" in done.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["text", "--data", "/nowhere"], "/nowhere"),
        (["audio", "--data", "/nowhere"], "/nowhere"),
        (["nonsense"], "nonsense"),
        (["omp", "--trials", "0"], "--trials"),
    ],
)
def test_what_cannot_be_run(tmp_path, arguments, words):
    done = invoke("reproduce", *arguments, "--out", tmp_path / "out", code=2)
    assert words in done.output
    assert not (tmp_path / "out").exists()


def test_without_data_generated_ones_are_used_and_said(tmp_path):
    done = invoke("reproduce", "text", "--trials", 1, "--methods", "exact", "--out", tmp_path)
    assert "text: no --data, so generated stand-ins are used" in done.stderr
    invoke("report", tmp_path)
    assert "These data are generated" in (tmp_path / "report.html").read_text()


def test_a_results_folder_that_is_a_file(small, tmp_path):
    (tmp_path / "file").write_text("x")
    done = invoke("reproduce", "budget", "--out", tmp_path / "file" / "inner", code=2)
    assert "--out" in done.output


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (RuntimeError("x"), 1, "run again to resume"),
        (TableError("a.npz", "it is bad", "get it again"), 2, "a.npz: it is bad; get it again"),
        (None, 130, "\nbudget: stopped; finished cells are saved, and the same command resumes the run\n"),
    ],
)
def test_a_run_that_fails_or_is_interrupted_says_how_to_go_on(
    small, tmp_path, monkeypatch, error, code, words
):
    def run(*args, **kwargs):
        if error is None:
            raise KeyboardInterrupt
        raise CellError("budget: cell failed; run again to resume") from error

    monkeypatch.setattr(grid, "run_experiment", run)
    done = invoke("reproduce", "budget", "--out", tmp_path, code=code)
    assert words in done.stderr


def test_the_page_has_every_study_and_both_baselines(results, tmp_path):
    page = tmp_path / "page.html"
    invoke("report", results, "--out", page)
    html = page.read_text()
    heads = ["Orthogonal matching pursuit", "CoSaMP", "Frank-Wolfe", "The budget of halving", "Scaling"]
    both = "exact, BLAS", "rows: exact, accumulated row by row", "Where a method loses to BLAS"
    rest = (
        "The paper, claim by claim",
        "not tested at this size",
        "Small X is where BLAS wins",
        "Machine, versions, seeds",
        "The paper:",
        "numpy",
    )
    assert [words for words in (*heads, *both, *rest) if words not in html] == []


@pytest.mark.parametrize("content", [None, b"", bytes(range(200, 256)), b"no,results\n1,2\n"])
def test_report_of_what_holds_no_results(tmp_path, content):
    if content is not None:
        (tmp_path / "omp.csv").write_bytes(content)
    done = invoke("report", tmp_path, "--out", tmp_path / "page.html", code=2)
    assert str(tmp_path) in done.output
    assert len(done.output.splitlines()) == 1
    assert not (tmp_path / "page.html").exists()


@pytest.mark.parametrize("command", [("report",), ("reproduce", "budget", "--out")])
def test_damage_is_told_by_both_commands(small, results, tmp_path, monkeypatch, command):
    lines = (results / "budget.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "budget.jsonl").write_text("".join([*lines[:20], "garbage\n", *lines[20:]]))
    before = (tmp_path / "budget.jsonl").read_bytes()
    monkeypatch.setattr("skpursuit.apps.cli.info.machine_info", lambda: {"processor": "another"})
    done = invoke(*command, tmp_path, code=2)
    assert "budget.jsonl: it is damaged at line 21, not just cut off; delete" in done.output
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [before]


def test_a_selector_of_ones_own_from_file_to_page(small, tmp_path):
    place = f"{Path(__file__).parents[3] / 'examples' / 'lucb.py'}:LUCB"
    arguments = ["reproduce", "omp", "--trials", 1, "--out", tmp_path, "--selector", place]
    done = invoke(*arguments, "--methods", "exact,halving,LUCB")
    assert {row["method"] for row in rows(tmp_path / "omp.csv")} == {"exact", "halving", "LUCB"}
    assert {row["method"] for row in rows(tmp_path / "race.csv")} == {"halving", "LUCB"}
    invoke("report", tmp_path)
    page = (tmp_path / "report.html").read_text()
    assert re.search(r"<h4>LUCB: [a-z0-9 ]+, reads \d+% of X</h4><svg", page)
    done = invoke(*arguments, "--methods", "exact,magic", code=2)
    assert "'magic' is not known" in done.output
    done = invoke("reproduce", "omp", "--out", tmp_path, "--selector", "nofile.py:X", code=2)
    assert "is not FILE.py:NAME" in done.output


@pytest.mark.parametrize("name", ["omp.jsonl", "omp.csv", "text.csv", "link.html"])
def test_report_never_overwrites_results(results, tmp_path, name):
    folder = tmp_path / "results"
    shutil.copytree(results, folder)
    (folder / "link.html").symlink_to(folder / "omp.csv")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    done = invoke("report", folder, "--out", folder / name, code=2)
    assert "is already an input or output of this command; choose another file (--out)" in done.output
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
