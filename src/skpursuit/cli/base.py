"""What all commands share: examples in the help, errors with a command to paste, quiet and JSON output."""

from __future__ import annotations

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
WIDTH = 32  # of names in tables
OPTIONAL = ("pyarrow", "rich", "jinja2", "matplotlib", "python_calamine")
FLAGS = ("--no-impute", "--transpose")  # options without a value that may be the problem
NAMING = ("--column", "--drop", "--categorical")  # options whose value names a column


class Refusal(click.ClickException):
    """What was given cannot be used: one line on standard error for each problem, exit code 2.

    Parameters
    ----------
    message : str
        One line, or several.
    fix : sequence of str
        Options that lead past the problem.
    instead_of : str
        The option (or its value) that the fix replaces.
    """

    exit_code = BAD_INPUT

    def __init__(self, message: str, fix: Sequence[str] = (), instead_of: str = ""):
        super().__init__(message)
        self.problems: list[tuple[str, Sequence[str], str]] = [(message, fix, instead_of)]
        self.arguments: Sequence[str] = ()

    @classmethod
    def of(cls, error: FileError) -> Refusal:
        """Tell every problem of a file."""
        refusal = cls(str(error))
        refusal.problems = [
            (str(one), getattr(one, "fix", ()), getattr(one, "instead_of", ""))
            for one in getattr(error, "problems", [error])
        ]
        return refusal

    def show(self, file: Any = None) -> None:
        for message, fix, instead_of in self.problems:
            command = advice(self.arguments, fix, instead_of)
            click.echo(f"Error: {message}{'; run: ' + command if command else ''}", err=True)


def advice(arguments: Sequence[str], fix: Sequence[str], instead_of: str) -> str:
    """Return the command as it was given, but for what is the problem, as a line that a shell understands."""
    if not arguments or not (fix or instead_of):
        return ""
    left: list[str] = []
    value_of_it = False  # whether this argument belongs to an option that was left out
    for argument, following in zip(arguments, [*arguments[1:], ""]):
        option, equal, value = argument.partition("=") if argument.startswith("--") else (argument, "", "")
        names_it = option in NAMING and (value or following) in (instead_of, instead_of.rpartition("=")[0])
        if value_of_it:
            value_of_it = False
        elif option == instead_of or names_it:
            value_of_it = not equal and option not in FLAGS
        else:
            left.append(argument)
    return shlex.join(["skpursuit", *left, *fix])


class Commands(click.Group):
    """A group whose commands turn bad files into lines and exit code 2."""

    def main(self, args: Sequence[str] | None = None, *more: Any, **kwargs: Any) -> Any:
        self.arguments = list(sys.argv[1:] if args is None else args)
        return super().main(self.arguments, *more, **kwargs)

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
        refusal.arguments = getattr(self, "arguments", ())
        raise refusal from None


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

    def table(self, heads: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> None:
        """Tell people a table, its first columns to the left."""
        rows = [[in_line(cell) for cell in row] for row in rows]
        widths = [max(map(len, column)) for column in zip(heads, *rows)]
        for row in (heads, *rows):
            cells = (c.ljust(w) if i < left else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths)))
            self.say("  ".join(cells).rstrip())

    def result(self, value: Any) -> None:
        """Give a program the result."""
        if self.as_json:
            try:
                text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
            except ValueError:
                problem = (
                    "the result holds NaN or infinity, which JSON cannot say; leave out --json to see it"
                )
                raise click.ClickException(problem) from None
            click.echo(text)


def in_line(text: str, limit: int = WIDTH + 28) -> str:
    """Return a text of any content on one line, cut if it is long."""
    line = "".join(letter if letter.isprintable() else " " for letter in text)
    return line if len(line) <= limit else line[: limit - 1] + "…"


def output_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--quiet`` and ``--json``; the command gets an `Output` as ``out``."""

    def run(*args: Any, quiet: bool, as_json: bool, **kwargs: Any) -> Any:
        return command(*args, out=Output(quiet, as_json), **kwargs)

    run.__doc__ = command.__doc__
    run.__name__ = command.__name__
    run.__click_params__ = getattr(command, "__click_params__", [])  # type: ignore[attr-defined]
    quiet = click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
    as_json = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
    return quiet(as_json(run))


def check_input(path: Path) -> None:
    """Refuse what is not there before anything heavy is loaded."""
    if str(path) != "-" and not os.path.exists(path):
        raise Refusal(f"{path}: there is no such file; check the name")
