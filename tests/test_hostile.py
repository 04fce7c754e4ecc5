"""A few of the cases of benchmarks/hostile.py, whose references are in long double."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from skpursuit import OMP, Status, minimize

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

import hostile
from children import outcomes
from hostile_cases import faults, programs, replays
from hostile_cases.reference import Reference
from hostile_cases.tables import Table

FIRST, CASES, GROUP = 100, 200, 20


@pytest.mark.parametrize("first", range(FIRST, FIRST + CASES, GROUP))
def test_hostile_cases_agree_with_their_references(first):
    outcomes = [hostile.run_case(seed) for seed in range(first, first + GROUP)]
    assert [outcome for outcome in outcomes if outcome["wrong"]] == []


#: Cases of means far from zero in which a run once ended above its own start.
ABOVE_START = (113, 316, 375)


@pytest.mark.parametrize("program", [program.__name__ for program in faults.PROGRAMS])
def test_faults_that_were_found_once_do_not_come_back(program):
    outcomes = [hostile.run_case(seed, program=program) for seed in (*range(20), *ABOVE_START)]
    assert [outcome for outcome in outcomes if outcome["wrong"]] == []


def test_classes_that_all_rows_but_one_separate_have_no_best_fit():
    X, y = np.array([[1, 0], [2, 0], [-1, 0], [0, 1], [0, -2.0]]), np.array([1, 1, -1, 1, 1.0])
    result, ref = minimize(X, y, OMP(2, ridge=0.1), loss="logistic"), Reference(Table(X, y), "logistic")
    assert programs.well_posed(ref, result)
    assert not programs.well_posed(ref, replace(result, coef=np.array([60.0, result.coef[1]])))


def test_no_rate_is_asked_of_a_lazy_run_with_open_loop_steps():
    assert hostile.run_case(34340002823)["wrong"] == []


def test_a_wrong_answer_is_a_failure_with_a_command(monkeypatch, capsys):
    good = {"seed": 7, "family": "plain", "program": "omp", "call": "", "wrong": []}
    found = [(7, good | {"wrong": [("fit", "far off")]}, ""), (8, good, "")]
    monkeypatch.setattr(hostile, "outcomes", lambda *_: iter(found))
    assert hostile.main(["--cases", "2"]) == 1
    told = capsys.readouterr().out
    assert "2 cases, 1 failures" in told
    assert "--case 7" in told


@pytest.mark.parametrize(
    ("code", "end"), [("import os; os.abort()", "exit code -6"), ("while True: pass", "hung")]
)
def test_a_child_that_dies_or_hangs_is_one_failure(code, end):
    found = list(outcomes([sys.executable, "-c", code], 3, 5, 1.0))
    assert [number for number, outcome, _ in found if outcome is None] == [3, 4]
    assert all(end in told for *_, told in found)


def positive_run(X, y):
    """A reference and a positive pursuit of all columns."""
    return Reference(Table(X, y)), minimize(
        X, y, OMP(X.shape[1], positive=True, always_include=range(X.shape[1]))
    )


def test_lost_digits_are_judged_by_the_size_of_coefficients():
    """The rows are well conditioned; the columns, of which there are more, can cancel each other."""
    X = np.array([[1e12, -1e12, 1.0, 0.0], [1.0, 1.0, 0.0, 1.0]])
    ref, result = positive_run(X, np.array([1.0, 1.0]))
    lost = replace(result, status=Status.INCONSISTENT)
    assert programs.lost_its_way(ref, replace(lost, coef=np.array([0.5, 0.5, 0.0, 0.0]))) == []
    assert programs.lost_its_way(ref, replace(lost, coef=np.array([0.0, 0.0, 1.0, 1.0]))) != []


def test_a_non_negative_fit_of_zeros_is_judged():
    X = np.array([[1.0, 2.0, 1.0], [0.0, 0.0, 1.0]])
    ref, result = positive_run(X, np.zeros(2))
    assert replays.cone(ref, result, [0, 1, 2]) == []
    assert replays.cone(ref, replace(result, coef=np.array([0.0, 1e-3, 0.0])), [0, 1, 2]) != []
