"""How a file is read: the choices every reader is given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .columns import check_names
from .errors import TableError, listing, show


@dataclass(frozen=True)
class ReadOptions:
    """How a file is read.

    Attributes
    ----------
    format : str or None
        A format's name; None goes by the file's extension.
    text_encoding : str
        How the bytes of a text format spell characters.
    header : bool
        Whether the first line of a CSV or TSV file holds the column names.
    categorical : tuple of str
        Columns to treat as categories though their values are numbers.
    drop : tuple of str
        Columns not to read, whatever they hold.
    only : frozenset of str or None
        If given, columns beyond these are not read.
    """

    format: str | None = None
    text_encoding: str = "utf-8"
    header: bool = True
    categorical: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    only: frozenset[str] | None = None

    def choose(self, path: Path, names: Sequence[str]) -> list[int]:
        """Return the positions of the columns to read, having checked the names."""
        check_names(str(path), names)
        for name in (*self.drop, *(self.categorical if self.only is None else ())):
            if name not in names:
                raise unknown_column(path, name, names)
        out = set(self.drop)
        return [
            j for j, name in enumerate(names) if name not in out and (self.only is None or name in self.only)
        ]

    def remedy(self, correction: str, option: str) -> str:
        """Return what to do: correct the file, or use an option, which only the fit of a model has."""
        return correction if self.only is not None else f"{correction}, or {option}"


def unknown_column(path: Path | str, name: str, names: Sequence[str]) -> TableError:
    """Return the error for a name that no column has."""
    return TableError(path, f"there is no column {show(name)}", f"the columns are {listing(tuple(names))}")
