"""What is wrong with a table, told all at once: each problem is a line that names the file and the remedy."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from .._files import FileError

MOST_TOLD = 10  # problems; a wholly wrong file has one per cell


class TableError(FileError):
    """A table that cannot be used.

    Attributes
    ----------
    fix : tuple of str
        Command line options that lead past the problem; whoever knows the command shows them as one.
    instead_of : str
        The option whose value is the problem, which the fix replaces.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        problem: str,
        remedy: str,
        fix: Sequence[str] = (),
        instead_of: str = "",
    ):
        super().__init__(path, problem, remedy)
        self.fix = tuple(fix)
        self.instead_of = instead_of

    def __reduce__(self) -> tuple:
        return type(self), (self.path, self.problem, self.remedy, self.fix, self.instead_of)


class TableProblems(TableError):
    """Several problems of one table."""

    def __init__(self, problems: Sequence[TableError]):
        first = problems[0]
        super().__init__(first.path, first.problem, first.remedy, first.fix, first.instead_of)
        self.problems = tuple(problems)
        self.args = ("\n".join(map(str, problems)),)

    def __reduce__(self) -> tuple:
        return type(self), (self.problems,)


def raise_all(problems: Iterable[TableError]) -> None:
    """Raise what was found, if anything was: one problem as itself, several together."""
    found = list(problems)
    if len(found) == 1:
        raise found[0]
    if found:
        raise TableProblems(found[:MOST_TOLD])


def show(value: object, limit: int = 40) -> str:
    """Return a value quoted for a message, cut if it is long, control characters escaped."""
    text = repr(str(value))
    return text if len(text) <= limit else text[: limit - 4] + "...'"


def listing(names: Sequence[str], limit: int = 8) -> str:
    """Return the first few names for a message, and how many more there are."""
    shown = ", ".join(show(name) for name in names[:limit])
    more = len(names) - limit
    return f"{shown} and {more} more" if more > 0 else shown
