"""The runner of the benchmarks works, and the gate has the names of this edition."""

import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

import gate
from cases import CASES

RUN = Path(__file__).parents[1] / "benchmarks" / "run.py"


def run(*arguments):
    return subprocess.run([sys.executable, RUN, *arguments], capture_output=True, text=True, check=False)


def test_the_cases_are_listed():
    assert [line.split()[0] for line in run("--list").stdout.splitlines()] == list(CASES)


def test_a_tiny_case_runs():
    done = run("auto", "--quick", "--only", "50x80")
    assert done.returncode == 0, done.stderr
    assert "OPENBLAS_CORETYPE" in done.stdout
    assert [line.split()[0] for line in done.stdout.splitlines()[2:]] == [
        "=exact",
        "=gram",
        "=certified",
        "auto",
    ]


@pytest.mark.parametrize("name", ["quantized", "greedy 2%", "reject", "exact"])
def test_the_gate_finds_every_selector(name):
    assert gate.selector_named(name)
