"""One accountant for `memory_limit`: whatever is kept of an X on disk asks here first.

The limit is divided once. Tiles in hand and ahead, columns that were gathered, and products of columns get
fixed shares, small beside what they save. A fit reserves its rows of n numbers, and a source what it holds
beside tiles (the row group or the piece that is being read); the codes of X may have the rest, and what is
not granted of them goes to a folder. What an X in memory keeps is bounded by the caches themselves.
"""

from __future__ import annotations

import os
import re
from numbers import Real
from typing import Any

from skpursuit.parameters import short_repr

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
    size: Any = value
    if isinstance(value, str):
        found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([kKmMgGtT]?i?)[bB]?\s*", value)
        if found is None or found[2].upper() not in UNITS:
            raise ValueError(refusal)
        size = float(found[1]) * UNITS[found[2].upper()]
    if not least <= size < 2**63:
        raise ValueError(f"{name} must be at least {least:,} bytes, got {short_repr(value)}")
    return int(size)


class MemoryBudget:
    """How many bytes each kind of thing that is kept may take.

    Parameters
    ----------
    limit : int
        Bytes in all.

    Attributes
    ----------
    tile : int
        Bytes of one tile; two are in memory at a time, and half of one more while it is encoded.
    columns : int
        Of gathered columns of X.
    product_bytes : int
        Of columns of X^T X or products of codes; and as much of columns of a view.
    """

    def __init__(self, limit: int) -> None:
        self.total_bytes = limit
        self.tile = min(MOST_TILE, limit // 24)
        self.columns, self.product_bytes = limit // 8, limit // 16
        self.allocated = 3 * self.tile + self.columns + 2 * self.product_bytes
        self.reserved = 0

    def fits_in_memory(self, nbytes: int) -> bool:
        """Whether an X of so many bytes can be loaded whole, with its codes and all that is kept of it."""
        return 2 * nbytes <= self.total_bytes

    def try_allocate(self, nbytes: int, force: bool = False) -> bool:
        """Grant so many bytes more, or none; `force` grants what is small and must be there."""
        if self.allocated + nbytes > self.total_bytes and not force:
            return False
        self.allocated += nbytes
        return True

    def reserve(self, nbytes: int) -> None:
        """Set so much apart for the rows of a fit, in place of what the last one needed.

        Rows beyond the share of columns are kept in a file.
        """
        nbytes = min(nbytes, self.columns)
        self.allocated += nbytes - self.reserved
        self.reserved = nbytes

    def release(self, nbytes: int) -> None:
        """Give back what was granted."""
        self.allocated -= nbytes


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
