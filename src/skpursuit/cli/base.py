"""What all commands share: examples in the help, errors as one line, quiet and JSON output."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import click

from skpursuit._files import FileError

BAD_INPUT = 2


class Refusal(click.ClickException):
    """What was given cannot be used: one line on standard error, exit code 2."""

    exit_code = BAD_INPUT


class Commands(click.Group):
    """A group whose commands turn bad files into one line and exit code 2."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except FileError as error:
            raise Refusal(str(error)) from None


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
