"""The group of all commands, with those that tell about the program itself."""

from __future__ import annotations

import errno
import os
import sys
from typing import Any

import click

from skpursuit import __version__
from skpursuit.cli.base import BAD_INPUT, Command, Commands, Output, output_options
from skpursuit.cli.demo import bench, demo
from skpursuit.cli.study import report, reproduce
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
EXTRAS = {
    **dict.fromkeys(("click", "rich", "jinja2", "matplotlib", "pyarrow", "python-calamine"), "cli"),
    "soundfile": "audio",
}


class Program(Commands):
    """All commands, with one end for an interrupt and for a standard output that takes nothing more."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().main(*args, **kwargs)
        except OSError as error:
            if error.filename is not None or error.errno not in FULL:
                raise
            # What is still to be written goes nowhere, or Python would try again at its end and complain.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            message = f"cannot be written ({error.strerror}); make room, or send it elsewhere"
            click.echo(f"Error: standard output: {message}", err=True)
            sys.exit(BAD_INPUT)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as interrupt:
            click.echo(f"\n{str(interrupt) or 'Stopped.'}", err=True)
            sys.exit(INTERRUPTED)


@click.group(cls=Program, context_settings=SETTINGS, epilog=EXAMPLES)
@click.version_option(__version__)
def main() -> None:
    """Sparse models, found by reading a fraction of the data.

    Exit codes: 0 done, 1 failed, 2 the input, the options or the output cannot be used, 130 interrupted.
    """


@click.command(
    cls=Command,
    epilog="""
    skpursuit info
    skpursuit info --json
    """,
)
@output_options
def info(out: Output) -> None:
    """Show versions, machine, optional packages and selectors: what a bug report needs."""
    from skpursuit.experiments.machine import installed, machine
    from skpursuit.selectors import NAMES

    facts: dict[str, Any] = machine()
    for name, extra in EXTRAS.items():
        facts[name] = installed(name) or f"missing, pip install 'skpursuit[{extra}]'"
    facts |= {"selectors": ", ".join(NAMES), "skpursuit": __version__}
    for name, value in facts.items():
        out.say(f"{name:<16}{value}")
    out.result(facts)


@click.command(
    cls=Command,
    epilog="""
    skpursuit completion bash >> ~/.bashrc
    skpursuit completion zsh >> ~/.zshrc
    skpursuit completion fish > ~/.config/fish/completions/skpursuit.fish
    """,
)
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print what makes a shell complete commands and options."""
    from click.shell_completion import get_completion_class

    kind: Any = get_completion_class(shell)
    click.echo(kind(ctx.find_root().command, {}, "skpursuit", "_SKPURSUIT_COMPLETE").source())


for command in (demo, fit, predict, reproduce, report, bench, info, completion):
    main.add_command(command)
