"""Results as a report reads them: whole, of the right kind, or refused in one line."""

from pathlib import Path

import pytest

from skpursuit.apps.studies.loaders import DataError
from skpursuit.apps.studies.methods import RESULT_COLUMNS
from skpursuit.apps.studies.report import render_page
from skpursuit.apps.studies.results import ResultsError, ResultsFile, read_results
from skpursuit.apps.studies.statistics import graded_claims, ratios
from skpursuit.apps.studies.studies import STUDIES

SOLVED = {"n": 20, "d": 40, "k": 3, "trial": 0, "seconds": 0.5, "f_measure": 1.0, "status": "COMPLETE"}
HEARD = {"first": 0, "count": 8, "atoms": 16, "error": 0.25, "error_square": 0.07, "seconds": 0.5}
READ = {"collection": "la2", "split": 0, "n_train": 9, "d": 7, "k": 10, "accuracy": 0.5, "seconds": 2.0}
SET = {"greedy": {"stability": 20}, "halving": {"budget": 0.2}, "reject": {"budget": 0.005}}


def toy_rows(**changes):
    rows = [{**SOLVED, "method": method, **SET.get(method, {})} for method in ("exact", "rows", *SET)]
    rows[-1] |= changes
    return rows


def two(row):
    return [{**row, "method": method} for method in ("exact", "halving")]


def write(folder, name, rows, **settings):
    columns = tuple(RESULT_COLUMNS.get(name, RESULT_COLUMNS["toy"]))
    with ResultsFile(folder / f"{name}.jsonl", columns, settings or {"sizes": "small"}) as store:
        for i, row in enumerate(rows):
            store.append(f"c{i}", [row])


def refusal(folder):
    with pytest.raises(ResultsError) as caught:
        render_page(folder)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_every_study_can_be_read_and_drawn(tmp_path):
    for name in ("omp", "cosamp", "fw", "budget", "scaling"):
        write(tmp_path, name, toy_rows())
    write(tmp_path, "audio", two(HEARD), recording="Bach")
    write(tmp_path, "text", two(READ), generated=False)
    course = {"n": 9, "d": 5, "k": 1, "trial": 0, "method": "halving", "rows_read": 2.5, "left": 5}
    write(tmp_path, "race", [{**course, "winner": 0.5, "rank": 1, "read": 0.1}])
    page = render_page(tmp_path)
    assert "5 rows, 1 trials" in page
    assert all(f'<section aria-labelledby="{name}">' in page for name in STUDIES)


def test_the_results_of_the_full_runs_are_shown():
    page = render_page(Path(__file__).parents[3] / "docs/results")
    for words in ("Orthogonal matching pursuit", "CoSaMP", "Frank-Wolfe", "halving, energy order"):
        assert words in page


@pytest.mark.parametrize(
    "changes",
    [
        {"n": None}, {"d": "x"}, {"k": 1.5}, {"n": 10**400}, {"trial": True}, {"method": ""},
        {"seconds": "fast"}, {"seconds": None}, {"seconds": float("inf")}, {"f_measure": "good"},
    ],
)  # fmt: skip
def test_wrong_values_are_named(tmp_path, changes):
    write(tmp_path, "omp", toy_rows(**changes))
    words = refusal(tmp_path)
    assert "omp.jsonl: it holds a wrong value" in words
    assert f"$[4].{next(iter(changes))}`" in words


def test_a_collection_may_be_called_by_a_number(tmp_path):
    write(tmp_path, "text", two({**READ, "collection": "007"}), generated=False)
    assert "007: 9 training documents" in render_page(tmp_path)


def test_columns_of_something_else(tmp_path):
    with ResultsFile(tmp_path / "omp.jsonl", ["x"], {}) as store:
        store.append("a", [{"x": 1}])
    assert "omp.jsonl: these are not results of this study" in refusal(tmp_path)


@pytest.mark.parametrize("size", [0, 7, 150])
def test_a_study_killed_before_its_first_row_is_left_out(tmp_path, size):
    write(tmp_path, "omp", toy_rows())
    write(tmp_path, "fw", toy_rows())
    content = (tmp_path / "omp.jsonl").read_bytes()
    (tmp_path / "omp.jsonl").write_bytes(content[:size])
    assert read_results(tmp_path, "omp") is None
    assert "Orthogonal" not in render_page(tmp_path)


def test_a_table_without_its_results_is_refused_and_kept(tmp_path):
    table = tmp_path / "omp.csv"
    table.write_text("cell,part,n\nabc,1/1,20\n")
    words = "omp.jsonl, which results are read from, is not beside it; use another folder"
    assert refusal(tmp_path).startswith(f"{table}: {words}")
    with pytest.raises(ResultsError, match="is not beside it"):
        write(tmp_path, "omp", toy_rows())
    assert [path.name for path in tmp_path.iterdir()] == ["omp.csv"]


def test_methods_that_are_not_known_are_shown_by_their_names(tmp_path):
    write(tmp_path, "omp", [*toy_rows(), {**SOLVED, "method": "<b>mine</b>"}])
    page = render_page(tmp_path)
    assert "&lt;b&gt;mine&lt;/b&gt;" in page
    assert "<b>mine" not in page


@pytest.mark.parametrize(
    ("name", "row", "missing"), [("audio", HEARD, "recording"), ("text", READ, "generated")]
)
def test_results_of_nobody_knows_what_are_not_shown(tmp_path, name, row, missing):
    write(tmp_path, name, two(row))
    assert f"{name}.jsonl: its settings do not say '{missing}'" in refusal(tmp_path)


def test_times_too_short_to_measure_have_no_ratio(tmp_path):
    rows = toy_rows(seconds=0.0)
    assert ratios(rows[-1:], rows[:1]) == ratios(rows[:1], rows[-1:]) == []
    assert ratios(rows[1:2], rows[:1]) == [1.0]
    write(tmp_path, "fw", rows)
    assert "Successive reject pulls single entries" in render_page(tmp_path)


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(DataError, match="nofolder: there is no such folder; run `skpursuit"):
        render_page(tmp_path / "nofolder")


def test_results_that_may_not_be_read(tmp_path, monkeypatch):
    def refuse(*args):
        raise PermissionError(13, "Permission denied")

    write(tmp_path, "omp", toy_rows())
    monkeypatch.setattr("skpursuit.apps.studies.results.parse_results", refuse)
    assert "omp.jsonl: it cannot be read (Permission denied); name another folder" in refusal(tmp_path)


def timed(method, seconds, **found):
    return {**SOLVED, "method": method, "seconds": seconds, "same_atoms": 1.0, **found}


@pytest.mark.parametrize(
    ("study", "rows", "verdict", "measured"),
    [
        ("omp", [timed("halving", 1.0), timed("rows", 2.0)], "reproduced", "2 times, 100.0% of exact's"),
        ("omp", [timed("halving", 1.0), timed("rows", 1.0)], "partly", "1 times"),
        ("omp", [timed("halving", 3.0), timed("rows", 1.0)], "not reproduced", "0.333 times"),
        ("omp", [timed("halving", 1.0, same_atoms=0.9), timed("rows", 2.0)], "partly", "90.0% of exact's"),
        ("omp", [timed("uniform", 1.0, f_measure=0.9)], "reproduced", "F 1 by exact, 0.9 by uniform"),
        ("omp", [timed("uniform", 1.0, f_measure=0.98)], "partly", "at k = 3"),
        ("cosamp", [timed("halving", 1.0), timed("rows-k", 20.0)], "reproduced", "20 times"),
        (
            "fw",
            [timed("bound", 1.0, share_read=0.9), timed("greedy", 1.0, share_read=0.1)],
            "reproduced",
            "9",
        ),
        ("budget", [timed("halving", 1.0, budget=0.1)], "reproduced", "1 of 1 budgets"),
        ("budget", [timed("halving", 1.0, budget=0.1, f_measure=0.9)], "not reproduced", "0 of 1 budgets"),
    ],
)
def test_verdicts_on_claims(study, rows, verdict, measured):
    (found,) = graded_claims({study: [timed("exact", 1.0), *rows]})
    assert found["verdict"] == verdict
    assert measured in found["measured"]


@pytest.mark.parametrize(
    ("error", "seconds", "verdict"),
    [(0.25, 1.0, "reproduced"), (0.25, 3.0, "partly"), (0.5, 1.0, "partly"), (0.5, 3.0, "not reproduced")],
)
def test_a_claim_of_two_parts_holds_partly_with_either(error, seconds, verdict):
    rows = [{**HEARD, "method": m, "seconds": 3.0} for m in ("exact", "rows")]
    rows.append({**HEARD, "method": "halving", "error": error, "seconds": seconds})
    assert [one["verdict"] for one in graded_claims({"audio": rows})] == [verdict]


def test_verdicts_on_the_full_runs():
    folder = Path(__file__).parents[3] / "docs" / "results"
    found = {name: results.rows for name in STUDIES if (results := read_results(folder, name))}
    short = {"reproduced": "yes", "partly": "partly", "not reproduced": "no"}
    verdicts = [short[one["verdict"]] for one in graded_claims(found)]
    assert " ".join(verdicts) == "partly yes partly yes partly no no yes yes partly no"
