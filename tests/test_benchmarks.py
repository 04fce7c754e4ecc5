"""The runner of the benchmarks works, the gate knows all names, and measured costs are written into place."""

import csv
import sys
from argparse import Namespace
from dataclasses import asdict
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

import common
import gate
from cases import machine as costs

from skpursuit.numerics import tuning

from .support.process import ROOT, run_python

RUN = ROOT / "benchmarks" / "run.py"


def test_a_tiny_case_runs():
    told = run_python(RUN, "auto", "--quick", "--only", "50x80")
    assert "OPENBLAS_CORETYPE" in told
    found = [line.split()[0] for line in told.splitlines()[2:]]
    assert found == ["=exact", "=gram", "=certified", "auto"]


def test_a_new_measurement_takes_the_place_of_the_old_one(monkeypatch, tmp_path):
    monkeypatch.setattr(common, "ROOT", tmp_path)
    (tmp_path / "docs" / "figures").mkdir(parents=True)
    common.record("case", [{"problem": "p", "method": m, "ratio": 1.23456} for m in ("a", "b")])
    common.record("case", [{"problem": "p", "method": "b", "ratio": 2.0, "F": 0.5}])
    with open(tmp_path / "docs" / "figures" / "case.csv", encoding="utf-8") as lines:
        a, b = csv.DictReader(lines)
    assert (a["method"], a["ratio"], a["F"]) == ("a", "1.235", "")
    assert (b["method"], b["ratio"], b["F"]) == ("b", "2", "0.5")
    assert a["machine"] in ("busy", "quiet")


@pytest.mark.parametrize("name", ["quantized", "greedy 2%", "reject", "exact"])
def test_the_gate_finds_every_selector(name):
    assert gate.selector_named(name)


def test_the_page_of_the_field_judges_answers_before_seconds(tmp_path):
    head = "task,family,n,d,k,dtype,peer,version,seconds,first,memory,error,recovery,ours"
    head += ",coretype,processor,note"
    lines = ["2,float64,skpursuit,,1.0,1.0,0,0.5,,1.0", "2,float64,SPAMS,1.0,0.5,1.0,0,0.6,,1.0",
             "3,float64,skpursuit,,1.0,1.0,0,0.5,,1.0", "3,float64,SPAMS,1.0,0.9,1.0,0,0.501,,1.0",
             "3,float64,abess,2.0,,,,,,1.0"]  # fmt: skip
    notes = ["", "", "", "", ">600 s"]
    table = [f"pursuit,,40,80,{line},Haswell,a processor,{note}" for line, note in zip(lines, notes)]
    (tmp_path / "b.csv").write_text("\n".join([head, *table]) + "\n")
    assert "1 of 2 rows" in run_python(RUN.with_name("peers.py"), "--page", "--out", tmp_path / "b.csv")
    page = (tmp_path / "b.md").read_text()
    assert "| **skpursuit** |" in page.partition("k = 3")[0]
    assert "| **SPAMS** | 900 | 0.90 |" in page
    assert ">600 s" in page
    assert page.count("\n- ") == 1
    assert "k = 3, float64: SPAMS." in page
    assert (tmp_path / "b.svg").exists()


def test_the_page_of_the_field_is_that_of_its_table(tmp_path):
    docs = ROOT / "docs"
    (tmp_path / "benchmarks.csv").write_text((docs / "benchmarks.csv").read_text("utf-8"), "utf-8")
    run_python(RUN.with_name("peers.py"), "--page", "--out", tmp_path / "benchmarks.csv")
    assert (tmp_path / "benchmarks.md").read_text("utf-8") == (docs / "benchmarks.md").read_text("utf-8")


TEXT = costs.FILE.read_text("utf-8")
BESIDE = ("SPARSE_SHARE", "LOAD_KERNELS")


def executed(text):
    """What a file of this text defines."""
    space = {"__name__": tuning.__name__}
    exec(compile(text, costs.FILE.name, "exec"), space)
    return space


def test_the_file_is_what_the_writer_writes_for_its_values():
    values = asdict(tuning.COSTS) | {name: getattr(tuning, name) for name in BESIDE}
    assert costs.written(TEXT, values) == TEXT


def test_written_prices_are_read_back_and_the_rest_stays():
    given = {name: 1.25 * (i + 1) for i, name in enumerate(asdict(tuning.COSTS))} | {"LOAD_KERNELS": 1e-4}
    before, after = executed(TEXT), executed(costs.written(TEXT, given))
    assert asdict(after["COSTS"]) == {n: float(f"{v:.2g}") for n, v in given.items() if n != "LOAD_KERNELS"}
    assert after["LOAD_KERNELS"] == 1e-4
    same = [name for name in before if name.isupper() and name not in ("COSTS", "LOAD_KERNELS")]
    assert {name: after[name] for name in same} == {name: before[name] for name in same}
    with pytest.raises(ValueError, match="wings stands 0 times"):
        costs.written(TEXT, {"wings": 1.0})


def test_every_constant_that_is_measured_stands_in_the_file(monkeypatch, tmp_path):
    copy = tmp_path / "tuning.py"
    copy.write_text(TEXT, "utf-8")

    def timed(functions, repeats):
        for function in functions.values():
            function()
        return dict.fromkeys(functions, 1e-3), {}

    for name, fake in (("FILE", copy), ("best_times", timed), ("first_answers", lambda *_: [0.3])):
        monkeypatch.setattr(costs, name, fake)
    costs.costs(Namespace(quick=True, repeats=1, write=True))
    after, present = executed(copy.read_text("utf-8")), asdict(tuning.COSTS)
    same = [name for name, cost in asdict(after["COSTS"]).items() if cost == present[name]]
    assert same == ["gram_term"]  # which is estimated
    assert after["LOAD_KERNELS"] == 0.3
