"""``skpursuit bench``, ``info`` and ``completion``."""

import json

import pytest
from click.testing import CliRunner

from skpursuit.apps.cli import main
from skpursuit.apps.cli.info import machine_info


def test_bench_measures_and_gives_a_verdict():
    done = CliRunner().invoke(main, ["bench", "--size", "100", "200", "-k", "3", "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert all(rate > 0 for rate in found["bytes_per_second"].values())
    assert {"exact", "auto"} <= {line["selector"] for line in found["pursuits"]}
    assert found["verdict"]


def test_bench_for_people():
    done = CliRunner().invoke(main, ["bench", "--size", "100", "200", "-k", "3"])
    assert "GB/s" in done.output
    assert "Here " in done.output


def test_info():
    done = CliRunner().invoke(main, ["info"])
    assert "numpy" in done.output
    facts = json.loads(CliRunner().invoke(main, ["info", "--json"]).stdout)
    assert {"processor", "python", "selectors", "blas"} <= set(facts)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell):
    done = CliRunner().invoke(main, ["completion", shell])
    assert done.exit_code == 0
    assert "_SKPURSUIT_COMPLETE" in done.output


def test_the_machine_is_described():
    made = machine_info()
    assert json.loads(json.dumps(made)) == made
    assert {"processor", "cores", "python", "numpy", "blas"} <= set(made)
