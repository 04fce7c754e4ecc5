"""What all commands share: examples in the help, errors with a command to paste, quiet and JSON output."""

from __future__ import annotations

import errno
import functools
import json
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from skpursuit._files import FileError

BAD_INPUT = 2
INTERRUPTED = 130  # what shells say of a program that Ctrl-C ended
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
WIDTH = 60  # of cells in tables
OPTIONAL = ("pyarrow", "rich", "jinja2", "matplotlib", "python_calamine")
NAMING = ("--column", "--drop", "--categorical", "--id")  # options whose value names a column


class Refusal(click.ClickException):
    """What was given cannot be used: one line on standard error for each problem, exit code 2.

    Parameters
    ----------
    message : str
        One line.
    advice : Advice or None
        Options that lead past the problem; see `skpursuit.tables.errors`.
    """

    exit_code = BAD_INPUT

    def __init__(self, message: str, advice: Any = None):
        super().__init__(message)
        self.problems: list[tuple[str, Any]] = [(message, advice)]
        self.corrected: Callable[[Any], str] = lambda advice: ""  # the command to run instead

    @classmethod
    def of(cls, error: FileError) -> Refusal:
        """Tell every problem of a file."""
        refusal = cls(str(error))
        every = getattr(error, "problems", [error])
        refusal.problems = [(str(one).partition("\n")[0], getattr(one, "advice", None)) for one in every]
        return refusal

    def show(self, file: Any = None) -> None:
        for message, advice in self.problems:
            command = self.corrected(advice) if advice is not None else ""
            click.echo(f"Error: {message}{command and '; run: ' + command}", err=True)


class Program(click.Group):
    """All commands, with one end for bad files, an interrupt, and an output that takes nothing more."""

    arguments: Sequence[str] = ()

    def main(self, args: Sequence[str] | None = None, *more: Any, **kwargs: Any) -> Any:
        self.arguments = list(sys.argv[1:] if args is None else args)
        try:
            return super().main(self.arguments, *more, **kwargs)
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
        except FileError as error:
            refusal = Refusal.of(error)
        except Refusal as error:
            refusal = error
        except ModuleNotFoundError as error:
            if error.name is None or error.name.partition(".")[0] not in OPTIONAL:
                raise
            refusal = Refusal(f"{error.name} is not installed; run: pip install 'skpursuit[cli]'")
        except KeyboardInterrupt as interrupt:
            click.echo(f"\n{str(interrupt) or 'Stopped.'}", err=True)
            sys.exit(INTERRUPTED)
        refusal.corrected = functools.partial(self._corrected, str(ctx.invoked_subcommand))
        raise refusal from None

    def _corrected(self, command: str, advice: Any) -> str:
        """Return the command as it was given, but for the problem, as a line that a shell understands."""
        flags = [param for param in self.commands[command].params if getattr(param, "is_flag", False)]
        alone = [name for flag in flags for name in (*flag.opts, *flag.secondary_opts)]
        bad, named = advice.instead_of, advice.instead_of.rpartition("=")[0]
        left: list[str] = []
        following = iter(self.arguments)
        for argument in following:
            option, equal, value = argument.partition("=")
            takes_next = option.startswith("--") and not equal and option not in alone
            rest = [next(following, "")] if takes_next else []
            names_it = option in NAMING and (rest[0] if rest else value) in (bad, named)
            if option != bad and not names_it:
                left += [argument, *rest]
        return shlex.join(["skpursuit", *left, *advice.options])


class Command(click.Command):
    """A command that keeps the line breaks of its examples."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if self.epilog:
            with formatter.section("Examples"):
                for line in self.epilog.strip().splitlines():
                    formatter.write(f"  {line.strip()}\n" if line.strip() else "\n")


@dataclass(frozen=True)
class Output:
    """Where a command's words go: to people, to a program (`--json`), or nowhere (`--quiet`)."""

    quiet: bool = False
    as_json: bool = False

    def say(self, text: str = "") -> None:
        """Tell people the result."""
        if not (self.quiet or self.as_json):
            click.echo(text)

    def note(self, text: str) -> None:
        """Tell people something beside the result, on standard error."""
        if not self.quiet:
            click.echo(text, err=True)

    def say_page(self, template: str, **values: Any) -> None:
        """Tell people the result by a template of `skpursuit.pages`."""
        if not (self.quiet or self.as_json):
            from skpursuit.pages import render_text

            click.echo(render_text(template, aligned=aligned, **values), nl=False)

    def table(self, heads: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> None:
        """Tell people a table, its first columns to the left."""
        self.say(aligned(heads, rows, left))

    def result(self, value: Any) -> None:
        """Give a program the result."""
        if self.as_json:
            try:
                click.echo(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False))
            except ValueError:
                problem = "the result holds NaN or infinity, which JSON cannot say"
                raise click.ClickException(f"{problem}; leave out --json to see it") from None


def aligned(heads: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """Return a table for the terminal, its first columns to the left."""
    rows = [[in_line(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(heads, *rows)]
    lines = []
    for row in (heads, *rows):
        cells = (c.ljust(w) if i < left else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths)))
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def in_line(text: str, limit: int = WIDTH) -> str:
    """Return a text of any content on one line, cut if it is long."""
    line = "".join(letter if letter.isprintable() else " " for letter in text)
    return line if len(line) <= limit else line[: limit - 1] + "…"


def output_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--quiet`` and ``--json``; the command gets an `Output` as ``out``."""

    @click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
    @click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
    @functools.wraps(command)
    def run(*args: Any, quiet: bool, as_json: bool, **kwargs: Any) -> Any:
        return command(*args, out=Output(quiet, as_json), **kwargs)

    return run


def check_input(path: Path) -> None:
    """Refuse what is not there before anything heavy is loaded."""
    if str(path) != "-" and not os.path.exists(path):
        raise Refusal(f"{path}: there is no such file; check the name")
