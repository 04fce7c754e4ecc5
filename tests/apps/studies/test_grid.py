"""Grids: resumed without losing or doubling a row, whatever happened before."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.support.failing import fails
from threadpoolctl import threadpool_info

from skpursuit.apps.studies.grid import CellError, Experiment, run_experiment
from skpursuit.apps.studies.results import ResultsFile, read_results
from skpursuit.apps.tables import TableError

PROGRAM = Path(__file__).with_name("grid_program.py")
COLUMNS = ("x", "trial", "double", "note")


def double(cell):
    return [{"double": 2 * cell["x"], "note": 'a, "b"\nc'}, {"double": 2.5 * cell["x"], "note": None}]


def fail_at_two(cell):
    if cell["x"] == 2:
        raise ZeroDivisionError("two")
    return double(cell)


def die_at_two(cell):
    if cell["x"] == 2:
        os._exit(9)
    return double(cell)


def blas_threads(cell):
    np.ones((50, 50)) @ np.ones((50, 50))
    return [{"double": max(pool["num_threads"] for pool in threadpool_info())}]


def toy(function=double, n=4, **changes):
    cells = [{"x": x, "trial": trial} for x in range(n) for trial in (0, 1)]
    return replace(Experiment("toy", cells, function, COLUMNS), **changes)


def read_rows(path):
    return read_results(path.parent, path.stem).rows


def without_times(path):
    return [{k: v for k, v in row.items() if k not in ("seconds", "pid")} for row in read_rows(path)]


def test_rows_come_back_as_they_were(tmp_path):
    path = run_experiment(toy(), tmp_path)
    rows = read_rows(path)
    assert len(rows) == 16
    assert rows[2] == {"x": 0, "trial": 1, "double": 0, "note": 'a, "b"\nc'}
    assert rows[15] == {"x": 3, "trial": 1, "double": 7.5, "note": None}
    assert isinstance(rows[15]["double"], float)


def test_values_of_every_kind(tmp_path):
    values = [True, np.int64(3), np.float64(0.1), float("nan"), 1e-300, "1 2", "007", "a\x85b\u2028c", None]
    with ResultsFile(tmp_path / "v.jsonl", ["v"], {}) as store:
        store.append("a", [{"v": value} for value in values])
        store.finish(["a"])
    back = [row["v"] for row in read_rows(tmp_path / "v.jsonl")]
    assert [repr(v) for v in back] == [
        "True", "3", "0.1", "nan", "1e-300", "'1 2'", "'007'", repr("a\x85b\u2028c"), "None",
    ]  # fmt: skip
    assert (tmp_path / "v.csv").read_text().splitlines()[:3] == ["v", "True", "3"]


@pytest.mark.parametrize("jobs", [1, 2])
def test_nothing_is_computed_twice_and_processes_do_not_show(tmp_path, jobs):
    whole = run_experiment(toy(), tmp_path / "whole").read_bytes()
    path = run_experiment(toy(n=2), tmp_path)
    before, seen = path.read_bytes(), []
    run_experiment(toy(), tmp_path, jobs=jobs, progress=lambda *told: seen.append(told))
    assert path.read_bytes().startswith(before)
    assert path.read_bytes() == whole
    assert seen == [(4, 8, 0), (5, 8, 0.25), (6, 8, 0.5), (7, 8, 0.75), (8, 8, 1)]


@pytest.mark.parametrize("jobs", [1, 2])
def test_each_process_has_one_blas_thread(tmp_path, jobs):
    rows = read_rows(run_experiment(toy(blas_threads), tmp_path, jobs=jobs))
    assert {row["double"] for row in rows} == {1}


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_failing_cell_is_named_and_the_others_kept(tmp_path, jobs):
    with pytest.raises(CellError, match=r"cell \{'x': 2, 'trial': \d\} failed \(ZeroDivisionError: two\)"):
        run_experiment(toy(fail_at_two), tmp_path, jobs=jobs)
    assert len(read_rows(tmp_path / "toy.jsonl")) >= 8 / jobs
    assert len(read_rows(run_experiment(toy(), tmp_path))) == 16


def test_a_worker_that_dies_is_told_and_the_finished_cells_kept(tmp_path):
    fails("worker process died", run_experiment, toy(die_at_two), tmp_path, error=CellError, jobs=2)
    assert len(read_rows(run_experiment(toy(), tmp_path))) == 16


def test_undeclared_columns_and_no_jobs(tmp_path):
    fails("not declared", run_experiment, toy(columns=("x", "trial")), tmp_path)
    fails("at least 1", run_experiment, toy(), tmp_path / "other", jobs=0)


def test_other_settings_are_refused_and_named(tmp_path):
    run_experiment(toy(settings={"size": 10, "seed": 1}), tmp_path, about={"machine": "a"})
    before = (tmp_path / "toy.jsonl").read_bytes()
    with pytest.raises(TableError, match=r"toy\.jsonl: it holds results of other settings \(size\)"):
        run_experiment(toy(settings={"size": 20, "seed": 1}), tmp_path)
    with pytest.raises(TableError, match="columns are not those"):
        run_experiment(toy(columns=COLUMNS[::-1], settings={"size": 10, "seed": 1}), tmp_path)
    assert (tmp_path / "toy.jsonl").read_bytes() == before
    run_experiment(toy(settings={"seed": 1, "size": 10}), tmp_path, about={"machine": "b"})
    assert read_results(tmp_path, "toy").about == [{"machine": "a"}, {"machine": "b"}]


def test_a_second_writer_is_refused(tmp_path):
    pytest.importorskip("fcntl")
    with ResultsFile(tmp_path / "a.jsonl", ["v"], {}), pytest.raises(TableError, match="another run"):
        ResultsFile(tmp_path / "a.jsonl", ["v"], {})
    with ResultsFile(tmp_path / "a.jsonl", ["v"], {}) as store:
        assert not store.results.cells


def test_cut_at_every_byte_the_file_is_continued_to_the_same_end(tmp_path):
    small = toy(n=1)
    path = run_experiment(small, tmp_path)
    whole = path.read_bytes()
    for size in range(len(whole) + 1):
        path.write_bytes(whole[:size])
        (tmp_path / "toy.csv").unlink()
        assert run_experiment(small, tmp_path).read_bytes() == whole
    path.write_bytes(whole[: whole.rindex(b"\n", 0, -1) + 1] + b"\0" * 40)  # as a power cut leaves it
    assert run_experiment(small, tmp_path).read_bytes() == whole


def test_damage_in_the_middle_is_not_thrown_away(tmp_path):
    path = run_experiment(toy(), tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    for place, bad in (
        (3, b"garbage\n"),
        (4, lines[2]),
        (5, b'{"cell": "x", "rows": [{"y": 1}]}\n'),
        (4, lines[3][:9] + b"\n"),
    ):
        path.write_bytes(b"".join([*lines[:place], bad, *lines[place:]]))
        before = path.read_bytes()
        for read in (read_rows, lambda path: run_experiment(toy(), path.parent)):
            fails(rf"toy\.jsonl: it is damaged at line {place + 1}, not just", read, path, error=TableError)
        assert path.read_bytes() == before


FOREIGN = [b"[1]\n", b'{"a": 1}\n', b"[" * 100000 + b"\n", b"a,b\n1,2\n", b"hello",
    b'{"settings": {"a": 1}, "fingerprint": "x", "columns": []}\n',
    b'{"settings": {"a": [1]}, "fingerprint": "x", "columns": []}\n']  # fmt: skip


@pytest.mark.parametrize("content", FOREIGN, ids=range(len(FOREIGN)))
def test_files_of_someone_else_are_refused_and_kept(tmp_path, content):
    path = tmp_path / "toy.jsonl"
    path.write_bytes(content)
    fails(r"toy\.jsonl: ", run_experiment, toy(), tmp_path, error=TableError)
    assert path.read_bytes() == content


def test_a_full_disk_leaves_whole_cells(tmp_path, monkeypatch):
    with ResultsFile(tmp_path / "a.jsonl", ["v"], {}) as store:
        store.append("a", [{"v": 1}])
        before = (tmp_path / "a.jsonl").read_bytes()
        real = os.write
        monkeypatch.setattr(os, "write", lambda fd, data: real(fd, data[:3]))
        fails("disk is full", store.append, "b", [{"v": 2}], error=TableError)
        monkeypatch.undo()
        assert (tmp_path / "a.jsonl").read_bytes() == before
        assert store.results.cells.keys() == {"a"}


def start(folder, jobs):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen([sys.executable, str(PROGRAM), str(folder), str(jobs)], env=environment)


def lines_in(path):
    return path.read_bytes().count(b"\n") if path.exists() else 0


def alive(pid):
    with contextlib.suppress(ProcessLookupError, FileNotFoundError):
        os.kill(pid, 0)
        # A zombie is dead, only not yet collected.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_killed_many_times_and_resumed_the_results_are_those_of_one_run(tmp_path):
    chance = random.Random(0)
    path = tmp_path / "killed" / "toy.jsonl"
    pids, n_killed = set(), 0
    for attempt in range(4):
        process = start(path.parent, jobs=1 + attempt % 2)
        enough = lines_in(path) + chance.randrange(1, 6)
        deadline = time.monotonic() + 60
        while process.poll() is None and lines_in(path) < enough and time.monotonic() < deadline:
            time.sleep(0.001)
        time.sleep(chance.uniform(0, 0.02))
        process.kill()
        n_killed += process.wait() == -signal.SIGKILL
        pids |= {row["pid"] for row in read_rows(path)} if lines_in(path) else set()
    assert start(path.parent, jobs=1).wait() == 0
    assert start(tmp_path / "undisturbed", jobs=1).wait() == 0
    killed, undisturbed = without_times(path), without_times(tmp_path / "undisturbed" / "toy.jsonl")
    assert killed == undisturbed
    assert n_killed == 4
    assert len(pids) > 3
    deadline = time.monotonic() + 20
    while any(map(alive, pids)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(alive, pids))
    assert read_results(path.parent, "toy").settings == {"experiment": "toy"}
