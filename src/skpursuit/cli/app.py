"""The group of all commands."""

from __future__ import annotations

import click

from skpursuit import __version__
from skpursuit.cli.base import Program
from skpursuit.cli.demo import bench, demo
from skpursuit.cli.study import report, reproduce
from skpursuit.cli.system import completion, info
from skpursuit.cli.table import fit, predict

EXAMPLES = """\b
Examples:
  skpursuit demo
  skpursuit fit houses.csv --target price --out model.json
  skpursuit predict model.json new_houses.csv
  skpursuit reproduce all && skpursuit report results
"""
SETTINGS = {"help_option_names": ["-h", "--help"], "show_default": True}


@click.group(cls=Program, context_settings=SETTINGS, epilog=EXAMPLES)
@click.version_option(__version__)
def main() -> None:
    """Sparse models, found by reading a fraction of the data.

    Exit codes: 0 done, 1 failed, 2 the input, the options or the output cannot be used, 130 interrupted.
    """


for command in (demo, fit, predict, reproduce, report, bench, info, completion):
    main.add_command(command)
