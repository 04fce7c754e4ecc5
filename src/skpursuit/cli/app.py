"""The group of all commands."""

from __future__ import annotations

import click

from skpursuit import __version__
from skpursuit.cli.base import Commands
from skpursuit.cli.demo import demo
from skpursuit.cli.study import report, reproduce
from skpursuit.cli.system import bench, completion, info
from skpursuit.cli.table import fit, predict

EXAMPLES = """\b
Examples:
  skpursuit demo
  skpursuit fit houses.csv --target price --out model.json
  skpursuit predict model.json new_houses.csv
  skpursuit reproduce all && skpursuit report results
"""


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]}, epilog=EXAMPLES)
@click.version_option(__version__)
def main() -> None:
    """Sparse models, found by reading a fraction of the data.

    Exit codes: 0 done, 1 failed or interrupted, 2 the input or the options cannot be used.
    """


for command in (demo, fit, predict, reproduce, report, bench, info, completion):
    main.add_command(command)
