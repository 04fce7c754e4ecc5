"""The command group, and what all commands share: input errors, quiet and JSON output, output files.

An input error ends in a corrected command to paste. Output files are checked before the computation starts
and written after it, all or none.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import json
import os
import shlex
import sys
import textwrap
import tomllib
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from skpursuit import __version__
from skpursuit._atomic_files import FileError, staged_write
from skpursuit._text import one_line

if TYPE_CHECKING:
    from skpursuit.apps.tables.errors import CommandFix

EXIT_BAD_INPUT = 2
EXIT_INTERRUPTED = 130  # what shells say of a program that Ctrl-C ended
WRITE_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
#: Optional packages, and the extra that installs them.
EXTRAS = dict.fromkeys(("click", "jinja2", "matplotlib", "pyarrow", "python-calamine", "msgspec"), "cli")
EXTRAS["soundfile"] = "audio"
COLUMN_OPTIONS = ("--column", "--drop", "--id")  # options whose value names a column


class InputError(click.ClickException):
    """The input cannot be used: one line for each problem, with its `CommandFix` if any; exit code 2."""

    exit_code = EXIT_BAD_INPUT

    def __init__(self, message: str, advice: CommandFix | None = None):
        super().__init__(message)
        self.problems: list[tuple[str, CommandFix | None]] = [(message, advice)]
        self.corrected: Callable[[CommandFix], str] = lambda advice: ""  # the command to run instead

    @classmethod
    def of(cls, error: FileError) -> InputError:
        """Tell every problem of a file."""
        refusal = cls(str(error))
        every = getattr(error, "problems", [error])
        refusal.problems = [(getattr(one, "line", str(one)), getattr(one, "advice", None)) for one in every]
        return refusal

    def show(self, file: IO[str] | None = None) -> None:
        for message, advice in self.problems:
            command = self.corrected(advice) if advice is not None else ""
            click.echo(f"Error: {message}{command and '; run: ' + command}", err=True)


class CommandGroup(click.Group):
    """All commands, with one end for bad files, an interrupt, and an output that takes nothing more."""

    arguments: Sequence[str] = ()

    def main(self, args: Sequence[str] | None = None, *more: Any, **kwargs: Any) -> Any:
        self.arguments = list(sys.argv[1:] if args is None else args)
        try:
            return super().main(self.arguments, *more, **kwargs)
        except OSError as error:
            if error.filename is not None or error.errno not in WRITE_ERRORS:
                raise
            # What is still to be written goes nowhere, or Python would try again at its end and complain.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            message = f"cannot be written ({error.strerror}); make room, or send it elsewhere"
            click.echo(f"Error: standard output: {message}", err=True)
            sys.exit(EXIT_BAD_INPUT)

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except FileError as error:
            refusal = InputError.of(error)
        except InputError as error:
            refusal = error
        except ModuleNotFoundError as error:
            extra = EXTRAS.get((error.name or "").partition(".")[0].replace("_", "-"))
            if extra is None:
                raise
            refusal = InputError(f"{error.name} is not installed; run: pip install 'skpursuit[{extra}]'")
        except KeyboardInterrupt as interrupt:
            click.echo(f"\n{str(interrupt) or 'Stopped.'}", err=True)
            sys.exit(EXIT_INTERRUPTED)
        refusal.corrected = functools.partial(self._corrected, str(ctx.invoked_subcommand))
        raise refusal from None

    def _corrected(self, command: str, advice: CommandFix) -> str:
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
            names_it = option in COLUMN_OPTIONS and (rest[0] if rest else value) in (bad, named)
            if option != bad and not names_it:
                left += [argument, *rest]
        return shlex.join(["skpursuit", *left, *advice.options])


def examples(name: str) -> str:
    """Return the end of the help of a command, with the examples of examples.toml."""
    text = files(__package__).joinpath("examples.toml").read_text(encoding="utf-8")
    return "\b\nExamples:\n" + textwrap.indent(tomllib.loads(text)[name], "  ")


@click.group(
    cls=CommandGroup,
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
    epilog=examples("main"),
)
@click.version_option(__version__)
def main() -> None:
    """Sparse models, found by reading a fraction of the data.

    Exit codes: 0 done, 1 failed, 2 the input, the options or the output cannot be used, 130 interrupted.
    """


@dataclass(frozen=True)
class Output:
    """Where a command's words go: to people, to a program (`--json`), or nowhere (`--quiet`)."""

    quiet: bool = False
    as_json: bool = False

    def echo(self, text: str = "") -> None:
        """Tell people the result."""
        if not (self.quiet or self.as_json):
            click.echo(text)

    def echo_error(self, text: str) -> None:
        """Tell people something beside the result, on standard error."""
        if not self.quiet:
            click.echo(text, err=True)

    def echo_template(self, template: str, **values: Any) -> None:
        """Tell people the result by a template of `skpursuit.pages`."""
        if not (self.quiet or self.as_json):
            from skpursuit.apps.pages.render import render_text

            click.echo(render_text(template, format_table=format_table, **values), nl=False)

    def echo_json(self, value: object) -> None:
        """Give a program the result."""
        if self.as_json:
            click.echo(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False))


def format_table(heads: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """Return a table for the terminal, its first columns to the left."""
    rows = [[one_line(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(heads, *rows)]
    lines = []
    for row in (heads, *rows):
        cells = (c.ljust(w) if i < left else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths)))
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def command(function: Callable[..., Any]) -> click.Command:
    """Add a command to the program, with ``--quiet`` and ``--json``; its function gets an `Output`."""

    @main.command(epilog=examples(function.__name__))
    @functools.wraps(function)
    def run(*args: Any, quiet: bool, as_json: bool, **kwargs: Any) -> Any:
        out = Output(quiet, as_json)
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *where, **more: out.echo_error(str(message))
            return function(*args, out=out, **kwargs)

    run.params += [
        click.Option(["-q", "--quiet"], is_flag=True, help="Print nothing but errors."),
        click.Option(["--json", "as_json"], is_flag=True, help="Print the result as JSON."),
    ]
    return run


# -- files


def check_input(*paths: Path) -> None:
    """Refuse what is not there before anything heavy is loaded."""
    for path in paths:
        if not os.path.exists(path):
            raise InputError(f"{path}: there is no such file; check the name")


def check_outputs(inputs: Iterable[Path], outputs: dict[str, Path | None]) -> None:
    """Refuse early what could not, or should not, be written at the end; outputs are by their options."""
    taken = list(inputs)
    for option, path in outputs.items():
        if path is None:
            continue
        if os.path.isdir(path) or not os.path.isdir(path.absolute().parent):
            what = "this is a folder" if os.path.isdir(path) else f"there is no folder {path.parent}"
            raise InputError(f"{path}: {what}; give a file in a folder that exists ({option})")
        if any(os.path.realpath(path) == os.path.realpath(other) for other in taken):
            problem = f"{path} is already an input or output of this command"
            raise InputError(f"{problem}; choose another file ({option})")
        taken.append(path)


def write_files(files: Iterable[tuple[Path, str, str | bytes]]) -> None:
    """Write files, each given with its option and its content; none if one of them cannot be written."""
    with contextlib.ExitStack() as stack:
        ready = []
        for path, option, content in files:
            with _writing(path, option):
                ready.append((path, option, stack.enter_context(staged_write(path, content))))
        for path, option, put in ready:
            with _writing(path, option):
                put()


@contextlib.contextmanager
def _writing(path: Path, option: str) -> Iterator[None]:
    """Turn a file that cannot be written into one line."""
    try:
        yield
    except OSError as error:
        problem = f"{path}: cannot be written ({error.strerror or error})"
        raise InputError(f"{problem}; give another file ({option})") from None
