"""A few of the cases of benchmarks/hostile.py, whose references are in long double."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

import hostile

FIRST, CASES, GROUP = 100, 150, 10


@pytest.mark.parametrize("first", range(FIRST, FIRST + CASES, GROUP))
def test_hostile_cases_agree_with_their_references(first):
    outcomes = [hostile.run_case(seed) for seed in range(first, first + GROUP)]
    assert [outcome for outcome in outcomes if outcome["wrong"]] == []


def test_a_wrong_answer_is_a_failure_with_a_command(monkeypatch, capsys):
    monkeypatch.setattr(hostile, "outcomes", lambda *_: iter([{**GOOD, "wrong": [("fit", "far off")]}, GOOD]))
    assert hostile.main(["--cases", "2"]) == 1
    told = capsys.readouterr().out
    assert "2 cases, 1 failures" in told
    assert "--case 7" in told


GOOD = {"seed": 7, "family": "plain", "program": "omp", "call": "", "wrong": []}


def test_a_child_that_dies_is_one_failure(monkeypatch):
    monkeypatch.setattr(hostile, "child_command", lambda *_: [sys.executable, "-c", "import os; os.abort()"])
    outcomes = list(hostile.outcomes(3, 5, None, None))
    assert [(o["seed"], o["wrong"][0][0]) for o in outcomes] == [(3, "crash"), (4, "crash")]
