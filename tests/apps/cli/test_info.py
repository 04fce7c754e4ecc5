"""``skpursuit info``."""

import json

from click.testing import CliRunner

from skpursuit.apps.cli import main
from skpursuit.apps.cli.info import machine_info


def test_info():
    done = CliRunner().invoke(main, ["info"])
    assert "numpy" in done.output
    facts = json.loads(CliRunner().invoke(main, ["info", "--json"]).stdout)
    assert {"processor", "python", "selectors", "blas"} <= set(facts)


def test_the_machine_is_described():
    made = machine_info()
    assert json.loads(json.dumps(made)) == made
    assert {"processor", "cores", "python", "numpy", "blas"} <= set(made)
