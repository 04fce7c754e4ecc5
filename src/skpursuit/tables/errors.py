"""What is wrong with a table, told all at once: each problem is a line that names the file and the remedy.

Readers raise `Refused`, which knows no file; `naming` gives it one. A remedy that is a command comes as an
`Advice`: options to add to the command that was run, and one to leave out.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from .._files import FileError

MOST_TOLD = 10  # problems; a wholly wrong file has one per cell

#: Every kind of advice and the problem it solves. The tests paste one of each into a command line.
ADVICE = {
    "format": "a name that does not tell the format",
    "encoding": "an encoding that is unknown, or not that of the file",
    "header": "a file without a line of names",
    "bad rows": "rows with too many or too few fields",
    "sheet": "a sheet that is not in the workbook",
    "transpose": "a target that names a row",
    "no transpose": "a table that cannot be transposed",
    "target": "no target, or one that is no column",
    "column": "a name that is no column, in --column",
    "drop": "a name that is no column, in --drop",
    "id": "a name that is no column, in --id",
    "number": "a target with texts among its numbers",
    "impute": "missing values that are refused",
    "task": "a target that does not fit the task",
    "test share": "too few rows held out, or left",
    "selector": "a selector that is unknown",
    "loss": "a loss that is unknown, or does not fit the task",
    "solver": "a solver that is unknown, or takes no number of features",
}


@dataclass(frozen=True)
class Advice:
    """Command line options that lead past a problem."""

    kind: str  # one of `ADVICE`
    #: what is added to the command; whoever knows the command shows it as a whole
    options: tuple[str, ...] = ()
    instead_of: str = ""  # the option, or the value of one that names columns, that is taken out of it

    def __post_init__(self) -> None:
        if self.kind not in ADVICE:
            raise ValueError(f"no advice is called {self.kind!r}")


class TableError(FileError):
    """A table that cannot be used: its first problem, the `Advice` that leads past it, and more problems."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        problem: str,
        remedy: str,
        advice: Advice | None = None,
        more: Sequence[TableError] = (),
    ):
        super().__init__(path, problem, remedy)
        self.advice = advice
        self.problems = (self, *more)
        self.line = str(self)  # the first problem alone
        self.args = ("\n".join(one.line for one in self.problems),)

    def __reduce__(self) -> tuple:
        return type(self), (self.path, self.problem, self.remedy, self.advice, self.problems[1:])


class Refused(Exception):
    """A problem of a file that is not named yet."""

    def __init__(self, problem: str, remedy: str, advice: Advice | None = None):
        super().__init__(problem, remedy, advice)


def refuse_all(problems: Iterable[Refused]) -> None:
    """Raise the problems that were found, if there are any."""
    if found := list(problems):
        raise ExceptionGroup("problems of a table", found[:MOST_TOLD])


@contextlib.contextmanager
def naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn what is refused inside into one error that names the file and tells every problem."""
    try:
        yield
    except (Refused, ExceptionGroup) as refused:
        named = [TableError(path, *one.args) for one in getattr(refused, "exceptions", [refused])]
        first = named[0]
        raise TableError(path, first.problem, first.remedy, first.advice, named[1:]) from None


def show(value: object, limit: int = 40) -> str:
    """Return a value quoted for a message, cut if it is long, control characters escaped."""
    text = repr(str(value))
    return text if len(text) <= limit else text[: limit - 4] + "...'"


def listing(names: Sequence[str], limit: int = 8) -> str:
    """Return the first few names for a message, and how many more there are."""
    shown = ", ".join(show(name) for name in names[:limit])
    more = len(names) - limit
    return f"{shown} and {more} more" if more > 0 else shown
