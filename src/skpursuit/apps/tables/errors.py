"""Problems of a file, all reported at once: one line each, with the file and the remedy.

Code raises `TableProblem` with the name of a problem; the texts are in problems.toml. `attach_path` adds the
file name. A `CommandFix` says which options to add to the command that was run, and which to remove.
"""

from __future__ import annotations

import contextlib
import os
import string
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from skpursuit._atomic_files import FileError

MAX_PROBLEMS_SHOWN = 10  # problems; a wholly wrong file has one per cell
PROBLEMS: dict[str, dict[str, str | list[str]]] = tomllib.loads(
    files(__package__).joinpath("problems.toml").read_text(encoding="utf-8")
)


@dataclass(frozen=True)
class CommandFix:
    """Command line options that lead past a problem."""

    kind: str  # the problem
    #: what is added to the command; whoever knows the command shows it as a whole
    options: tuple[str, ...] = ()
    instead_of: str = ""  # the option, or the value of one that names columns, that is taken out of it


class _MessageFormatter(string.Formatter):
    """Fills in messages: {name!q} is quoted, {names!l} a list of quoted names."""

    def convert_field(self, value: Any, conversion: Any) -> Any:
        own = {"q": quote, "l": quote_list}
        return own[conversion](value) if conversion in own else super().convert_field(value, conversion)


class TableProblem(Exception):
    """A problem of a file that is not named yet: its name in problems.toml, and what is filled in there."""

    def __init__(self, problem: str, /, *more: str, **values: object):
        told = {"add": [], "leave_out": "", **PROBLEMS[problem]}
        words, remedy, instead_of, *options = (
            _MessageFormatter().vformat(text, (), values)
            for text in (told["problem"], told["remedy"], told["leave_out"], *told["add"])
        )
        options += more  # which cannot be known beforehand
        advice = CommandFix(problem, tuple(options), instead_of) if options or instead_of else None
        super().__init__(words, remedy, advice)


class TableError(FileError):
    """A table that cannot be used: its first problem, the `CommandFix` for it, and further problems."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        problem: str,
        remedy: str,
        advice: CommandFix | None = None,
        more: Sequence[TableError] = (),
    ):
        super().__init__(path, problem, remedy)
        self.advice = advice
        self.problems = (self, *more)
        self.line = str(self)  # the first problem alone
        self.args = ("\n".join(one.line for one in self.problems),)


def raise_problems(problems: Iterable[TableProblem]) -> None:
    """Raise the problems that were found, if there are any."""
    if found := list(problems):
        raise ExceptionGroup("problems of a table", found[:MAX_PROBLEMS_SHOWN])


@contextlib.contextmanager
def attach_path(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn what is refused inside into one error that names the file and tells every problem."""
    try:
        yield
    except (TableProblem, ExceptionGroup) as refused:
        named = [TableError(path, *one.args) for one in getattr(refused, "exceptions", [refused])]
        first = named[0]
        raise TableError(path, first.problem, first.remedy, first.advice, named[1:]) from None


def quote(value: object, limit: int = 40) -> str:
    """Return a value quoted for a message, cut if it is long, control characters escaped."""
    text = repr(str(value))
    return text if len(text) <= limit else text[: limit - 4] + "...'"


def quote_list(names: Sequence[str], limit: int = 8) -> str:
    """Return the first few names for a message, and how many more there are."""
    shown = ", ".join(quote(name) for name in names[:limit])
    more = len(names) - limit
    return f"{shown} and {more} more" if more > 0 else shown
