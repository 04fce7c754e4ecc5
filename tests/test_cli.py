"""The command line."""

from click.testing import CliRunner

from skpursuit.cli import main


def test_demo_prints_a_line_per_selector():
    done = CliRunner().invoke(main, ["demo", "--size", "60", "120", "-k", "3"])
    assert done.exit_code == 0, done.output
    lines = done.output.splitlines()
    assert any(line.startswith("exact") and line.endswith("exact") for line in lines)
    assert any(line.startswith("auto") for line in lines)
