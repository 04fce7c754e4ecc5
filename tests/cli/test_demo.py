"""``skpursuit demo``, and what all commands share."""

import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

from skpursuit.cli import main

SMALL = ["demo", "--size", "60", "120", "-k", "3"]


def test_a_line_per_selector_and_a_picture(tmp_path):
    png = tmp_path / "demo.png"
    done = CliRunner().invoke(main, [*SMALL, "--png", str(png)])
    assert done.exit_code == 0, done.output
    starts = [line.split()[0] for line in done.output.splitlines() if line.strip()]
    assert {"exact", "auto", "halving", "greedy", "reject"} <= set(starts)
    assert "What to try next" in done.output
    assert png.read_bytes().startswith(b"\x89PNG")


def test_json_is_json_and_exact_is_its_own_baseline():
    done = CliRunner().invoke(main, [*SMALL, "--no-png", "--json"])
    lines = {line["selector"]: line for line in json.loads(done.stdout)}
    assert lines["exact"]["ratio"] == 1.0
    assert lines["exact"]["same_atoms"] == 3
    assert lines["exact"]["share_read"] == 1.0
    assert lines["auto"]["same_atoms"] == 3


def test_quiet_prints_nothing():
    done = CliRunner().invoke(main, [*SMALL, "--no-png", "--quiet"])
    assert (done.exit_code, done.output) == (0, "")


@pytest.mark.parametrize(
    "arguments",
    [["demo", "--size", "9", "9", "-k", "10"], [*SMALL, "--png", "/nowhere/at/all.png"], ["demo", "-k", "0"]],
)
def test_bad_arguments_exit_with_2(arguments):
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 2
    assert "Error:" in done.output


def test_the_module_runs_as_a_program():
    done = subprocess.run(
        [sys.executable, "-m", "skpursuit", "--help"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0
    assert done.stdout.startswith("Usage: skpursuit")


def test_every_command_explains_itself_with_examples():
    for name, command in main.commands.items():
        done = CliRunner().invoke(main, [name, "--help"])
        assert done.exit_code == 0
        assert f"  skpursuit {name}" in done.output, name
        assert command.get_short_help_str()
