"""``skpursuit demo``, and what all commands share."""

import errno
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from skpursuit.apps.cli import main
from tests.support.process import invoke, run_code, run_python

SMALL = ["demo", "--size", "60", "120", "-k", "3"]


def test_a_line_per_selector():
    done = invoke(*SMALL)
    starts = [line.split()[0] for line in done.output.splitlines() if line.strip()]
    assert {"exact", "auto", "halving", "greedy", "reject"} <= set(starts)
    assert "What to try next" in done.output


def test_json_is_json_and_exact_is_its_own_baseline():
    done = invoke(*SMALL, "--json")
    lines = {line["selector"]: line for line in json.loads(done.stdout)}
    assert lines["exact"]["ratio"] == 1.0
    assert lines["exact"]["same_atoms"] == 3
    assert lines["exact"]["share_read"] == 1.0
    assert lines["auto"]["same_atoms"] == 3


def test_info_describes_the_machine():
    assert "numpy" in invoke("info").output
    facts = json.loads(invoke("info", "--json").stdout)
    assert {"processor", "cores", "python", "numpy", "selectors", "blas"} <= set(facts)


def test_quiet_prints_nothing():
    assert invoke(*SMALL, "--quiet").output == ""


@pytest.mark.parametrize(
    ("arguments", "words"), [(["--size", "9", "9", "-k", "10"], "-k 10"), (["-k", "0"], "-k")]
)
def test_bad_arguments_are_refused_before_the_work(monkeypatch, arguments, words):
    monkeypatch.setattr("skpursuit.apps.cli.demo.time_selectors", lambda *_: pytest.fail("worked"))
    output = invoke("demo", *arguments, code=2).output
    assert "Error:" in output
    assert words in output


@pytest.mark.parametrize("size", [(50_000_000, 50_000_000), (10**20, 10**20)])
def test_a_size_that_memory_cannot_hold(size):
    done = invoke("demo", "--size", *map(str, size), code=2)
    assert done.output.startswith(f"Error: --size {size[0]} {size[1]}: X takes ")
    assert done.output.endswith(" GiB, more than the memory; give a smaller size\n")


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (MemoryError(), 2, "more than the memory"),
        (KeyboardInterrupt(), 130, "\nStopped.\n"),
        (OSError(errno.ENOSPC, "No space left on device", "/a/file"), 1, ""),  # others are not hidden
    ],
)
def test_work_that_ends_before_its_time(monkeypatch, error, code, words):
    def fail(*_):
        raise error

    monkeypatch.setattr("skpursuit.apps.cli.demo.time_selectors", fail)
    done = invoke(*SMALL, code=code)
    assert words in done.stderr
    assert (done.exception is error) == (code == 1)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize(("arguments", "unbuffered"), [(["--help"], ""), (["info", "--json"], "1")])
def test_output_that_takes_nothing_more(arguments, unbuffered):
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    command = [sys.executable, "-m", "skpursuit", *arguments]
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, env=environment, check=False
        )
    words = "Error: standard output: cannot be written (No space left on device); make room"
    assert done.returncode == 2
    assert done.stderr.startswith(words)
    assert len(done.stderr.splitlines()) == 1


def test_the_module_runs_as_a_program():
    assert run_python("-m", "skpursuit", "--help").startswith("Usage: skpursuit")


def test_every_command_explains_itself_with_examples():
    for name, command in main.commands.items():
        done = invoke(name, "--help")
        assert f"  skpursuit {name}" in done.output, name
        assert command.get_short_help_str()
    assert "130 interrupted" in " ".join(invoke("--help").output.split())


def test_what_is_quick_loads_nothing_heavy():
    code = "import sys; from skpursuit.apps.cli import main\n"
    for arguments in (["--help"], ["fit", "no such file.csv"], ["predict", "no.json", "no.csv"]):
        code += f"try: main({arguments!r})\nexcept SystemExit: pass\n"
    code += "print(*(m for m in ('numpy', 'scipy', 'sklearn', 'pyarrow', 'matplotlib') if m in sys.modules))"
    assert run_code(code).splitlines()[-1] == ""


def test_a_package_that_is_missing_is_named(tmp_path):
    (tmp_path / "t.csv").write_text("x,y\n1,2\n")
    code = "import sys; sys.modules['pyarrow'] = None; from skpursuit.apps.cli import main\n"
    code += f"main(['fit', {str(tmp_path / 't.csv')!r}, '--target', 'y'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "Error: pyarrow is not installed; run: pip install 'skpursuit[cli]'\n"


def test_a_long_command_says_what_it_does_unless_it_is_to_be_quiet(monkeypatch, capsys):
    from skpursuit import progress

    monkeypatch.setattr(progress, "QUIET_SECONDS", 0.01)
    slow = lambda *_: time.sleep(0.3) or progress.current_monitor().set_message("measuring") or []  # noqa: E731
    monkeypatch.setattr("skpursuit.apps.cli.demo.time_selectors", slow)
    main([*SMALL], standalone_mode=False)
    assert "demo: working (0 s" in capsys.readouterr().err
    main([*SMALL, "--quiet"], standalone_mode=False)
    assert capsys.readouterr().err == ""
