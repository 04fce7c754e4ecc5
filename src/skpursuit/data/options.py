"""What a caller may say about an X that is not in memory, and one accountant for its `memory_limit`.

Whatever is kept of an X on disk asks the accountant first. The limit is divided once. Tiles in hand and
ahead, columns that were gathered, and products of columns get fixed shares, small beside what they save. A
fit reserves its rows of n numbers, and a source what it holds beside tiles (the row group or the piece that
is being read); the codes of X may have the rest, and what is not granted of them goes to a folder. What an X
in memory keeps is bounded by the caches themselves.
"""

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from numbers import Real

import numpy as np

from skpursuit.data.read_counter import FileReads
from skpursuit.numerics.arrays import Indices
from skpursuit.parameters import short_repr

MEMORY_LIMIT = "2GB"
MEMINFO = "/proc/meminfo"  # of Linux

UNITS = {"": 1} | {name: 1000**k for k, name in enumerate("KMGT", 1)}
UNITS |= {f"{name}I": 1024**k for k, name in enumerate("KMGT", 1)}
MIN_MEMORY_LIMIT = 2**20  # bytes below which nothing can be done
MOST_TILE = 128 * 2**20  # larger tiles are read no faster


def as_bytes(name: str, value: object, least: int = MIN_MEMORY_LIMIT) -> int:
    """Bytes from a number of at least so many or from text such as "2GB", "512 MiB"."""
    refusal = f'{name} must be a number of bytes or text such as "2GB", got {short_repr(value)}'
    if isinstance(value, bool) or not isinstance(value, (Real, str)):
        raise TypeError(refusal)
    size: float = value  # type: ignore[assignment]
    if isinstance(value, str):
        found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([kKmMgGtT]?i?)[bB]?\s*", value)
        if found is None or found[2].upper() not in UNITS:
            raise ValueError(refusal)
        size = float(found[1]) * UNITS[found[2].upper()]
    if not least <= size < 2**63:
        raise ValueError(f"{name} must be at least {least:,} bytes, got {short_repr(value)}")
    return int(size)


class MemoryBudget:
    """How many bytes each kind of thing that is kept may take, of a `limit` in all."""

    def __init__(self, limit: int) -> None:
        self.total_bytes = limit
        self.tile = min(MOST_TILE, limit // 24)  # two are in memory, and half of one more while it is encoded
        self.columns = limit // 8  # gathered ones of X
        self.product_bytes = limit // 16  # of columns of X^T X, and as much of those of views
        self.allocated = 3 * self.tile + self.columns + 2 * self.product_bytes
        self.reserved = 0

    def try_allocate(self, nbytes: int, force: bool = False) -> bool:
        """Grant so many bytes more, or none; `force` grants what is small and must be there."""
        if self.allocated + nbytes > self.total_bytes and not force:
            return False
        self.allocated += nbytes
        return True

    def reserve(self, nbytes: int) -> None:
        """Set so much apart for the rows of a fit, in place of what the last one needed."""
        # Rows beyond the share of columns are kept in a file.
        nbytes = min(nbytes, self.columns)
        self.allocated += nbytes - self.reserved
        self.reserved = nbytes


UNLIMITED = MemoryBudget(2**62)  # of X in memory, which is not divided


def available_memory() -> float:
    """Bytes of memory that can be had now, cached files included; infinity where that is not known."""
    try:
        with open(MEMINFO, encoding="ascii") as lines:
            return next(1024.0 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration):
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return float("inf")


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
        elif isinstance(one, str) and one in places:
            if len(places) < d and (names or []).count(one) > 1:
                raise ValueError(f"{option} names {one!r}, which several columns have; give their numbers")
            out.append(places[one])
        else:
            unnamed = f"columns are numbered from 0 to {d - 1} and have no names"
            known = f"the names are {short_repr(names)}" if names else unnamed
            raise ValueError(f"{option} names {one!r}, which X does not have; {known}")
    return out
