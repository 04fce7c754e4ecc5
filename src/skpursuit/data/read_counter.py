"""How much of X was read: exact counts, kept apart by what they were read for.

Bytes of files are counted by the open file itself, which all sources read by (`CountedFile`): nobody can
forget to count, and the sum is that of the system (`rchar` of /proc/self/io).
"""

import io
import os
from dataclasses import dataclass
from typing import Any


@dataclass
class ReadCounter:
    """How much was read: of X or what stands for it (codes, copies), and of stored products of columns.

    Indices of sparse X and scales of codes count, each call of an operator as all of X. Vectors (r, norms,
    bounds: a few numbers for each row or column) do not.
    """

    entries: int = 0  # that selection read to answer questions
    bytes: int = 0
    prepared_entries: int = 0  # read once for all: for norms, codes, layouts, gathered columns, fingerprints
    prepared_bytes: int = 0
    stored_bytes: int = 0  # of columns of X^T X and products of codes with columns, each time they are read

    def add(self, entries: int, nbytes: int) -> None:
        """Count a read made to answer a question."""
        self.entries += int(entries)
        self.bytes += int(nbytes)

    def add_prepared(self, entries: int, nbytes: int) -> None:
        """Count a read whose result is kept for every later question."""
        self.prepared_entries += int(entries)
        self.prepared_bytes += int(nbytes)


@dataclass
class FileReads:
    """Bytes that were read from files."""

    bytes: int = 0

    def add(self, count: int) -> int:
        """Count so many bytes, and return their number; no other thread comes in between these two."""
        self.bytes += count
        return count


class CountedFile(io.FileIO):
    """An open file without a buffer, whose reads are counted."""

    def __init__(self, path: str, reads: FileReads) -> None:
        super().__init__(path)
        self.reads = reads

    def read_at(self, out: memoryview, offset: int) -> int:
        """Fill memory from a place in the file, as far as the system does at once."""
        return self.reads.add(os.preadv(self.fileno(), [out], offset))

    def readinto(self, out: Any) -> int:
        return self.reads.add(super().readinto(out) or 0)

    read = io.RawIOBase.read  # type: ignore[assignment]
    readall = io.RawIOBase.readall  # these two call `readinto`
