"""Results as a report reads them: whole, of the right kind, or refused in one line."""

from pathlib import Path

import pytest

from skpursuit.apps.studies import statistics
from skpursuit.apps.studies.methods import DECLARED, METHODS, RESULT_COLUMNS
from skpursuit.apps.studies.report import render_page
from skpursuit.apps.studies.results import Results, ResultsFile, read_results
from skpursuit.apps.studies.statistics import graded_claims, ratios
from skpursuit.apps.studies.studies import STUDIES
from skpursuit.apps.tables import TableError

SOLVED = {"n": 20, "d": 40, "k": 3, "trial": 0, "snr": 3.0, "seconds": 0.5, "f_measure": 1.0}
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
    with pytest.raises(TableError) as caught:
        render_page(folder)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_every_study_can_be_read_and_drawn(tmp_path):
    for name in ("omp", "cosamp", "fw", "budget", "scaling"):
        write(tmp_path, name, toy_rows())
    write(tmp_path, "families", [{**row, "design": "coherent"} for row in toy_rows()])
    write(
        tmp_path, "theory", [{"kind": "success", "method": "reject", "x": 2.0, "measured": 0.5, "bound": 0.1}]
    )
    write(tmp_path, "audio", two(HEARD), recording="Bach")
    write(tmp_path, "text", two(READ), generated=False)
    course = {"n": 9, "d": 5, "k": 1, "trial": 0, "method": "halving", "rows_read": 2.5, "left": 5}
    write(tmp_path, "race", [{**course, "winner": 0.5, "rank": 1, "read": 0.1}])
    page = render_page(tmp_path)[0]
    assert "5 rows, 1 trials" in page
    for beside in ("0.374 ± 0.22", "0.250 ± 0.09", "79.9", "50.0 ± 0.0"):  # those of the paper, and ours
        assert beside in page
    assert "These data are generated" not in page
    assert all(f'<section aria-labelledby="{name}">' in page for name in STUDIES)


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
    assert "007: 9 training documents" in render_page(tmp_path)[0]


def test_columns_of_something_else(tmp_path):
    with ResultsFile(tmp_path / "omp.jsonl", ["x"], {}) as store:
        store.append("a", [{"x": 1}])
    assert "omp.jsonl: these are not results of this study" in refusal(tmp_path)


def test_a_study_killed_before_its_first_row_is_left_out(tmp_path):
    write(tmp_path, "omp", toy_rows())
    write(tmp_path, "fw", toy_rows())
    content = (tmp_path / "omp.jsonl").read_bytes()
    for size in (0, 7, 150):
        (tmp_path / "omp.jsonl").write_bytes(content[:size])
        assert read_results(tmp_path, "omp") is None
    assert "Orthogonal" not in render_page(tmp_path)[0]


def test_a_table_without_its_results_is_refused_and_kept(tmp_path):
    table = tmp_path / "omp.csv"
    table.write_text("cell,part,n\nabc,1/1,20\n")
    words = "omp.jsonl, which results are read from, is not beside it; use another folder"
    assert refusal(tmp_path).startswith(f"{table}: {words}")
    with pytest.raises(TableError, match="is not beside it"):
        write(tmp_path, "omp", toy_rows())
    assert [path.name for path in tmp_path.iterdir()] == ["omp.csv"]


def test_methods_that_are_not_known_are_shown_by_their_names(tmp_path):
    write(tmp_path, "omp", [*toy_rows(), {**SOLVED, "method": "<b>mine</b>"}])
    page = render_page(tmp_path)[0]
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
    assert "Successive reject pulls single entries" in render_page(tmp_path)[0]


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(TableError, match="nofolder: there is no such folder; run `skpursuit"):
        render_page(tmp_path / "nofolder")


def test_results_that_may_not_be_read(tmp_path, monkeypatch):
    def refuse(*args):
        raise PermissionError(13, "Permission denied")

    write(tmp_path, "omp", toy_rows())
    monkeypatch.setattr("skpursuit.apps.studies.results.parse_results", refuse)
    assert "omp.jsonl: it cannot be read (Permission denied); name another folder" in refusal(tmp_path)


def timed(method, seconds, **found):
    return {**SOLVED, "method": method, "seconds": seconds, "same_atoms": 1.0, **found}


def graded(study, rows, settings=None, **changes):
    """The verdict on the one claim whose checks are those given."""
    results = Results(settings or {"sizes": "full"}, tuple(RESULT_COLUMNS.get(study, RESULT_COLUMNS["toy"])))
    results.cells = {str(i): [row] for i, row in enumerate(rows)}
    claim = {"study": study, "says": "s", "where": "w", "paper": "p", **changes}
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(statistics.PAPER, "claims", [claim])
        (found,) = graded_claims({study: results})
    return found


FASTER = {"methods": ["halving"], "column": "seconds", "against": "rows", "at_least": [2, 1]}
AS_GOOD = {"methods": ["halving"], "column": "f_measure", "against": "rows", "at_least": [-0.02, -0.1]}


@pytest.mark.parametrize(
    ("seconds", "f_measure", "verdict"),
    [
        (0.4, 1.0, "reproduced"), (0.8, 1.0, "partly"), (2.0, 1.0, "not reproduced"),
        (0.4, 0.95, "partly"), (0.4, 0.5, "not reproduced"),
    ],
)  # fmt: skip
def test_a_claim_has_the_worst_grade_of_its_checks(seconds, f_measure, verdict):
    rows = [timed("exact", 1.0), timed("rows", 1.0), timed("halving", seconds, f_measure=f_measure)]
    found = graded("omp", rows, checks=[FASTER, AS_GOOD])
    assert found["verdict"] == verdict
    assert found["measured"].startswith(
        f"times faster against rows: halving {1 / seconds:.3g}\u00d7. f measure"
    )
    assert found["measured_30db"] == ""


def test_what_holds_at_30_db_alone_says_so_and_why():
    rows = [timed(m, 1.0, f_measure=0.3) for m in ("exact", "halving")]
    rows += [timed(m, 1.0, snr=30.0) for m in ("exact", "halving")]
    check = {"methods": ["halving"], "column": "f_measure", "at_least": [0.98, 0.9]}
    because = {"methods": ["exact"], "column": "f_measure", "at_most": [0.9, 0.9]}
    found = graded("fw", rows, checks=[check], why="exact fails", because=because)
    assert found["verdict"] == "reproduced at 30 dB"
    assert found["why"] == "exact fails (f measure: exact 0.3)"
    because["at_most"] = [0.1, 0.1]  # a reason that does not hold is not given
    assert graded("fw", rows, checks=[check], why="x", because=because)["why"] == "the reason is not known"


@pytest.mark.parametrize("study", ["omp", "text"])
def test_small_and_generated_runs_have_no_verdict(study):
    settings = {"omp": {"sizes": "small"}, "text": {"generated": True}}[study]
    rows = [{**READ, **timed("rows", 1.0)}, {**READ, **timed("halving", 9.0)}]
    assert graded(study, rows, settings, checks=[FASTER])["verdict"] == "not tested at this size"
    assert (
        graded(study, rows[:1], checks=[FASTER])["verdict"] == "not tested at this size"
    )  # nor unfinished ones
    assert graded(study, rows, settings, checks=[FASTER], testable=False)["verdict"] == "not testable"


def test_numbers_of_a_check_are_picked_by_a_column():
    rows = [timed("rows", 8.0, k=k) for k in (1, 2, 4)]
    rows += [timed("halving", s, k=k) for k, s in ((1, 1.0), (2, 2.0), (4, 4.0))]
    found = lambda **more: [v for _, _, v in statistics.measurements(rows, FASTER | more)]  # noqa: E731
    assert found(by="k") == [8, 4, 2]
    assert found(by="k", first=-1) == [2]
    assert found(by="k", last=1) == [8]
    assert found(by="k", within=[2, 3]) == [4]
    assert found() == [4]
    assert found(column="k", by="k", ratio=True) == [1, 1, 1]
    grades = {"min": 2, "max": 8, "rise": -6, "ratio": 0.25, "spread": 0.25}
    for pick, value in grades.items():
        check = FASTER | {"by": "k", "pick": pick}
        assert statistics.grade_check(rows, check | {"at_least": [value, value]})[0] == 2
        assert statistics.grade_check(rows, check | {"at_least": [value + 0.1, value]})[0] == 1


def test_the_claims_are_those_of_the_paper_in_its_order():
    claims = statistics.PAPER["claims"]
    assert len(claims) == 36
    places = ["III", "IV", "Fig. 1", "Fig. 2", "Fig. 3", "Fig. 4", "Fig. 5", "V-D", "Table I", "Table II"]
    known = [next(i for i, p in reversed([*enumerate(places)]) if c["where"].startswith(p)) for c in claims]
    assert known[4:] == sorted(known[4:])
    for claim in claims:
        assert claim["study"] in STUDIES
        columns = RESULT_COLUMNS.get(claim["study"], RESULT_COLUMNS["toy"])
        for check in [*claim["checks"], *([claim["because"]] if "because" in claim else [])]:
            assert {check["column"], check.get("by", "method")} <= set(columns)
            assert set(check["methods"]) <= set(METHODS)
            assert ("at_least" in check) != ("at_most" in check)
            assert check.get("pick", "min") in statistics.PICKS
            listed = DECLARED[claim["study"]]["methods"] or METHODS
            assert {*check["methods"], check.get("against", "exact")} <= {"exact", *listed}


def test_the_committed_page_and_claims_are_those_of_the_committed_results():
    folder = Path(__file__).parents[3] / "docs" / "results"
    page, claims = render_page(folder)
    for words in ("Orthogonal matching pursuit", "CoSaMP", "Frank-Wolfe", "halving, energy order"):
        assert words in page
    assert page == (folder / "report.html").read_text(encoding="utf-8")
    assert claims == (folder / "claims.csv").read_text(encoding="utf-8")
