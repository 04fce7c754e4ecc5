"""Progress: nothing for what is quick, lines where there is no terminal, an estimate."""

import subprocess
import sys
import time

import pytest

from skpursuit.apps.cli.program import Output
from skpursuit.apps.cli.progress_bar import ProgressBar, format_duration
from skpursuit.progress import current_monitor


@pytest.mark.parametrize(
    ("seconds", "words"), [(5, "5 s"), (65, "1 min 05 s"), (3600, "1 h 00 min"), (7384, "2 h 03 min")]
)
def test_durations(seconds, words):
    assert format_duration(seconds) == words


def test_a_line_tells_what_how_far_and_how_long(capsys):
    with ProgressBar(Output(), soon=0.01, every=0.02) as meter:
        meter("reading", 0.25)
        meter.began -= 10
        time.sleep(0.2)
    lines = capsys.readouterr().err.splitlines()
    assert "reading: 25%, 10 s, about 30 s left" in lines
    with ProgressBar(Output(quiet=True), soon=0.0, every=0.01) as meter:
        meter("reading", 0.5)
        time.sleep(0.05)
    with ProgressBar(Output()) as meter:
        meter("reading", 1.0)
    assert capsys.readouterr().err == ""


def test_what_the_library_counts_is_shown():
    with ProgressBar(Output(quiet=True)) as meter, meter.watching():
        meter("fitting", None)
        assert meter.line() == "fitting: working, 0 s"
        current_monitor().set_total(8)
        current_monitor().advance_by(2)
        meter.began -= 10
        assert meter.line() == "fitting: 25%, 10 s, about 30 s left"
        meter("refit 1 of 50", 0.0)
        assert meter.line() == "refit 1 of 50: 0%, 0 s"


@pytest.mark.parametrize(
    "arguments", [["--help"], ["fit", "no such file.csv"], ["predict", "no.json", "no.csv"]]
)
def test_what_is_quick_loads_nothing_heavy(arguments):
    code = f"import sys; from skpursuit.apps.cli import main\ntry: main({arguments!r})\n"
    code += "except SystemExit: pass\n"
    code += "print(*(m for m in ('numpy', 'scipy', 'sklearn', 'pyarrow', 'matplotlib') if m in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == ""


def test_a_package_that_is_missing_is_named(tmp_path):
    (tmp_path / "t.csv").write_text("x,y\n1,2\n")
    code = "import sys; sys.modules['pyarrow'] = None; from skpursuit.apps.cli import main\n"
    code += f"main(['fit', {str(tmp_path / 't.csv')!r}, '--target', 'y'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "Error: pyarrow is not installed; run: pip install 'skpursuit[cli]'\n"
