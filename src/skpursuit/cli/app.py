"""The group of all commands."""

from __future__ import annotations

import errno
import os
import sys
from typing import Any

import click

from skpursuit import __version__
from skpursuit.cli.base import BAD_INPUT, Commands
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
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
INTERRUPTED = 130  # what shells say of a program that Ctrl-C ended


class Program(Commands):
    """All commands, with one end for an interrupt and for a standard output that takes nothing more."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().main(*args, **kwargs)
        except OSError as error:
            if error.filename is not None or error.errno not in FULL:
                raise
            _leave_output()
            message = f"cannot be written ({error.strerror}); make room, or send it elsewhere"
            click.echo(f"Error: standard output: {message}", err=True)
            sys.exit(BAD_INPUT)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as interrupt:
            click.echo(f"\n{str(interrupt) or 'Stopped.'}", err=True)
            sys.exit(INTERRUPTED)


def _leave_output() -> None:
    """Send what is still to be written nowhere, or Python would try again at its end and complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@click.group(cls=Program, context_settings=SETTINGS, epilog=EXAMPLES)
@click.version_option(__version__)
def main() -> None:
    """Sparse models, found by reading a fraction of the data.

    Exit codes: 0 done, 1 failed, 2 the input, the options or the output cannot be used, 130 interrupted.
    """


for command in (demo, fit, predict, reproduce, report, bench, info, completion):
    main.add_command(command)
