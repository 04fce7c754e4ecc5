"""What a caller may say about an X that is not in memory: how much of it may be, and which columns count."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from skpursuit.data.memory_budget import MemoryBudget, as_bytes
from skpursuit.data.read_counter import FileReads
from skpursuit.numerics.arrays import Indices
from skpursuit.parameters import short_repr

MEMORY_LIMIT = "2GB"


@dataclass(frozen=True)
class DesignOptions:
    """Checked options of `as_design`; `memory_budget` and `reads` are the accountants of one design."""

    memory_limit: int | str = MEMORY_LIMIT
    columns: Iterable[object] | None = None
    exclude: Iterable[object] | None = None
    codes: str | os.PathLike[str] | None = "auto"
    axis: int = 0
    columns_are: str = "columns"  # the argument that named the columns, for messages
    reads: FileReads = field(default_factory=FileReads, compare=False)
    memory_budget: MemoryBudget = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "memory_budget", MemoryBudget(as_bytes("memory_limit", self.memory_limit)))
        for name in ("columns", "exclude"):
            listed = getattr(self, name)
            if listed is not None and (isinstance(listed, (str, bytes)) or not isinstance(listed, Iterable)):
                raise TypeError(f"{name} must be a list of column names or numbers, got {short_repr(listed)}")
            object.__setattr__(self, name, listed if listed is None else list(listed))
        if not (self.codes is None or isinstance(self.codes, (str, os.PathLike))):
            raise TypeError(f'codes must be "auto", a path of a folder or None, got {short_repr(self.codes)}')
        if type(self.axis) is not int or self.axis not in (0, 1):
            raise ValueError(f"axis must be 0 (pieces have rows) or 1 (columns), got {short_repr(self.axis)}")

    @property
    def selects_columns(self) -> bool:
        """Whether some columns are chosen or left out."""
        return self.columns is not None or self.exclude is not None

    def selected_columns(self, d: int, names: list[str] | None) -> Indices:
        """The numbers of the columns of X among d, ascending."""
        used = range(d) if self.columns is None else column_indices(self.columns_are, self.columns, d, names)
        left_out = [] if self.exclude is None else column_indices("exclude", self.exclude, d, names)
        chosen = sorted(set(used) - set(left_out))
        if not chosen:
            raise ValueError("columns and exclude leave no column of X; name at least one")
        return np.array(chosen, dtype=np.intp)


def column_indices(option: str, listed: Iterable[object], d: int, names: list[str] | None) -> list[int]:
    """Names or numbers of columns as numbers; an error that names the first that is not there."""
    places = {name: j for j, name in enumerate(names or [])}
    out = []
    for one in listed:
        if isinstance(one, (int, np.integer)) and not isinstance(one, bool) and 0 <= one < d:
            out.append(int(one))
        elif one in places:
            out.append(places[one])
        else:
            unnamed = f"columns are numbered from 0 to {d - 1} and have no names"
            known = f"the names are {short_repr(names)}" if names else unnamed
            raise ValueError(f"{option} names {one!r}, which X does not have; {known}")
    return out
