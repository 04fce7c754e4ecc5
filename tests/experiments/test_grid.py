"""Grids: resumed without losing or doubling a row, whatever happened before."""

import contextlib
import json
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
from threadpoolctl import threadpool_info

from skpursuit.experiments.grid import CellError, Experiment, product, run
from skpursuit.experiments.settings import StoreError, read_settings
from skpursuit.experiments.store import Store, read_rows

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
    return replace(Experiment("toy", product(x=range(n), trial=[0, 1]), function, COLUMNS), **changes)


def without_times(path):
    return [{k: v for k, v in row.items() if k not in ("seconds", "pid")} for row in read_rows(path)]


def test_rows_come_back_as_they_were(tmp_path):
    path = run(toy(), tmp_path)
    rows = read_rows(path)
    assert len(rows) == 16
    assert rows[2] == {"x": 0, "trial": 1, "double": 0, "note": 'a, "b" c'}
    assert rows[15] == {"x": 3, "trial": 1, "double": 7.5, "note": None}
    assert isinstance(rows[15]["double"], float)


def test_values_of_every_kind(tmp_path):
    values = [True, np.int64(3), np.float64(0.1), float("nan"), 1e-300, "1 2"]
    with Store(tmp_path / "v.csv", ["v"], {}) as store:
        store.append("a", [{"v": value} for value in values])
    back = [row["v"] for row in read_rows(tmp_path / "v.csv")]
    assert [repr(v) for v in back] == ["True", "3", "0.1", "nan", "1e-300", "'1 2'"]


@pytest.mark.parametrize("jobs", [1, 2])
def test_nothing_is_computed_twice(tmp_path, jobs):
    run(toy(n=2), tmp_path)
    before = (tmp_path / "toy.csv").read_bytes()
    seen = []
    run(toy(), tmp_path, jobs=jobs, progress=seen.append)
    assert (tmp_path / "toy.csv").read_bytes().startswith(before)
    assert [p.done for p in seen] == [4, 5, 6, 7, 8]
    assert {p.total for p in seen} == {8}
    assert seen[0].remaining is None
    assert seen[-1].remaining == 0
    assert seen[1].remaining > 0
    assert {(p.cell["x"], p.cell["trial"]) for p in seen[1:]} == {(2, 0), (2, 1), (3, 0), (3, 1)}


def test_several_processes_give_the_same_file_as_one(tmp_path):
    one = run(toy(), tmp_path / "one").read_bytes()
    assert run(toy(), tmp_path / "two", jobs=2).read_bytes() == one


@pytest.mark.parametrize("jobs", [1, 2])
def test_each_process_has_one_blas_thread(tmp_path, jobs):
    rows = read_rows(run(toy(blas_threads), tmp_path, jobs=jobs))
    assert {row["double"] for row in rows} == {1}


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_failing_cell_is_named_and_the_others_kept(tmp_path, jobs):
    with pytest.raises(CellError, match=r"cell \{'x': 2, 'trial': \d\} failed \(ZeroDivisionError: two\)"):
        run(toy(fail_at_two), tmp_path, jobs=jobs)
    assert len(read_rows(tmp_path / "toy.csv")) >= 8 / jobs
    assert len(read_rows(run(toy(), tmp_path))) == 16


def test_a_worker_that_dies_is_told_and_the_finished_cells_kept(tmp_path):
    with pytest.raises(CellError, match="worker process died"):
        run(toy(die_at_two), tmp_path, jobs=2)
    assert len(read_rows(run(toy(), tmp_path))) == 16


def test_undeclared_columns_and_no_jobs(tmp_path):
    with pytest.raises(ValueError, match="not declared"):
        run(toy(columns=("x", "trial")), tmp_path)
    with pytest.raises(ValueError, match="at least 1"):
        run(toy(), tmp_path / "other", jobs=0)


def test_other_settings_are_refused_and_named(tmp_path):
    run(toy(settings={"size": 10, "seed": 1}), tmp_path, about={"machine": "a"})
    before = (tmp_path / "toy.csv").read_bytes()
    with pytest.raises(StoreError, match=r"toy\.csv: it holds results of other settings \(size\)"):
        run(toy(settings={"size": 20, "seed": 1}), tmp_path)
    assert (tmp_path / "toy.csv").read_bytes() == before
    run(toy(settings={"seed": 1, "size": 10}), tmp_path, about={"machine": "b"})
    assert read_settings(tmp_path / "toy.csv").about == [{"machine": "a"}, {"machine": "b"}]


def test_other_columns_or_lost_settings_are_refused(tmp_path):
    run(toy(), tmp_path)
    with pytest.raises(StoreError, match="columns are not those"):
        run(toy(columns=("trial", "x", "double", "note")), tmp_path)
    (tmp_path / "toy.json").write_text("{")
    with pytest.raises(StoreError, match="settings cannot be read"):
        run(toy(), tmp_path)
    (tmp_path / "toy.json").unlink()
    with pytest.raises(StoreError, match=r"toy\.json with their settings is gone"):
        run(toy(), tmp_path)


def test_a_second_writer_is_refused(tmp_path):
    pytest.importorskip("fcntl")
    with Store(tmp_path / "a.csv", ["v"], {}), pytest.raises(StoreError, match="another run"):
        Store(tmp_path / "a.csv", ["v"], {})
    with Store(tmp_path / "a.csv", ["v"], {}) as store:
        assert store.done == frozenset()


def test_cut_at_every_byte_the_file_is_continued_to_the_same_end(tmp_path):
    small = toy(n=1)
    path = run(small, tmp_path)
    whole, settings = path.read_bytes(), (tmp_path / "toy.json").read_bytes()
    for size in range(len(whole) + 1):
        path.write_bytes(whole[:size])
        (tmp_path / "toy.json").write_bytes(settings)
        assert run(small, tmp_path).read_bytes() == whole


def test_a_tail_of_zeros_after_a_power_cut_is_dropped(tmp_path):
    path = run(toy(), tmp_path)
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]) + b"\0" * 40)
    assert run(toy(), tmp_path).read_bytes() == whole


def test_damage_in_the_middle_is_not_thrown_away(tmp_path):
    path = run(toy(), tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:4] + lines[5:]))
    before = path.read_bytes()
    with pytest.raises(StoreError, match="damaged at line 4"):
        run(toy(), tmp_path)
    assert path.read_bytes() == before
    path.write_bytes(b"".join(lines + lines[1:3]))
    with pytest.raises(StoreError, match="damaged at line 18"):
        run(toy(), tmp_path)


def test_rows_are_not_read_past_damage(tmp_path):
    path = run(toy(), tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    for place in (3, 15):  # before many cells, and before the last one
        path.write_bytes(b"".join([*lines[:place], b"garbage\n", *lines[place:]]))
        for read in (read_rows, lambda path: run(toy(), path.parent)):
            with pytest.raises(StoreError, match=rf"toy\.csv: it is damaged at line {place + 1}, not just"):
                read(path)
    path.write_bytes(b"".join(lines[:-1]))
    assert len(read_rows(path)) == 14


def test_texts_stay_texts(tmp_path):
    with Store(tmp_path / "v.csv", ["v", "w"], {}) as store:
        store.append("a", [{"v": "007", "w": "007"}, {"v": "a\x85b\u2028c", "w": "true"}])
    rows = read_rows(tmp_path / "v.csv", texts=["v"])
    assert rows == [{"v": "007", "w": 7}, {"v": "a\x85b\u2028c", "w": True}]


OWN = '{"settings": {"experiment": "toy"}, "fingerprint": "1fba814c38f9", "about": %s}'
FOREIGN = [
    "[1]",
    '{"a": 1}',
    "[" * 100000,
    '{"settings": 3, "fingerprint": "x", "about": []}',
    '{"settings": {"experiment": "toy"}, "fingerprint": "x", "about": []}',
    *(OWN % about for about in ("5", '["x"]', '[{"cores": ["a"]}]', '[{"cores": 1e400}]')),
]


@pytest.mark.parametrize("content", FOREIGN, ids=range(len(FOREIGN)))
def test_settings_of_someone_else_are_refused(tmp_path, content):
    path = run(toy(n=1), tmp_path)
    before = path.read_bytes()
    path.with_suffix(".json").write_text(content)
    with pytest.raises(StoreError, match=r"toy\.json: .*use another folder, or delete it and toy\.csv"):
        run(toy(), tmp_path)
    assert path.read_bytes() == before
    path.unlink()
    with pytest.raises(StoreError):
        run(toy(), tmp_path)
    assert os.listdir(tmp_path) == ["toy.json"]


def test_settings_of_our_own_are_not(tmp_path):
    (tmp_path / "toy.json").write_text(OWN % "[]")
    assert run(toy(n=1), tmp_path).exists()


def test_settings_that_are_a_folder(tmp_path):
    (tmp_path / "toy.json").mkdir()
    with pytest.raises(StoreError, match=r"toy\.json: the settings cannot be read \(Is a directory\)"):
        run(toy(), tmp_path)


def test_a_full_disk_leaves_whole_cells(tmp_path, monkeypatch):
    with Store(tmp_path / "a.csv", ["v"], {}) as store:
        store.append("a", [{"v": 1}])
        before = (tmp_path / "a.csv").read_bytes()
        real = os.write
        monkeypatch.setattr(os, "write", lambda fd, data: real(fd, data[:3]))
        with pytest.raises(StoreError, match="disk is full"):
            store.append("b", [{"v": 2}])
        monkeypatch.undo()
        assert (tmp_path / "a.csv").read_bytes() == before
        assert store.done == {"a"}


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
def test_killed_twenty_times_and_resumed_the_results_are_those_of_one_run(tmp_path):
    chance = random.Random(0)
    path = tmp_path / "killed" / "toy.csv"
    pids, n_killed = set(), 0
    for attempt in range(20):
        process = start(path.parent, jobs=1 + attempt % 2)
        enough = lines_in(path) + chance.randrange(1, 6)
        deadline = time.monotonic() + 60
        while process.poll() is None and lines_in(path) < enough and time.monotonic() < deadline:
            time.sleep(0.001)
        time.sleep(chance.uniform(0, 0.02))
        process.kill()
        n_killed += process.wait() == -signal.SIGKILL
        pids |= {row["pid"] for row in read_rows(path)}
    assert start(path.parent, jobs=1).wait() == 0
    assert start(tmp_path / "undisturbed", jobs=1).wait() == 0
    killed, undisturbed = without_times(path), without_times(tmp_path / "undisturbed" / "toy.csv")
    assert killed == undisturbed
    assert n_killed == 20
    assert len(pids) > 10
    deadline = time.monotonic() + 20
    while any(map(alive, pids)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(alive, pids))
    assert json.loads(path.with_suffix(".json").read_text())["settings"] == {"experiment": "toy"}
