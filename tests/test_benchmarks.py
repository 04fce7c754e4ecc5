"""The runner of the benchmarks works, and the gate has the names of this edition."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

import gate

from .support.process import ROOT, run_python

RUN = ROOT / "benchmarks" / "run.py"


def test_a_tiny_case_runs():
    told = run_python(RUN, "auto", "--quick", "--only", "50x80")
    assert "OPENBLAS_CORETYPE" in told
    found = [line.split()[0] for line in told.splitlines()[2:]]
    assert found == ["=exact", "=gram", "=certified", "auto"]


@pytest.mark.parametrize("name", ["quantized", "greedy 2%", "reject", "exact"])
def test_the_gate_finds_every_selector(name):
    assert gate.selector_named(name)
