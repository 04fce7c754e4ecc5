"""How much of X was read: exact counts, kept apart by what they were read for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Reads:
    """How much was read: of X or what stands for it (codes, copies), and of stored products of columns.

    `entries` and `bytes` are what selection read to answer questions. `prepared_entries` and `prepared_bytes`
    are what was read once for all questions: for norms, codes, layouts, gathered columns, fingerprints. Both
    contain the indices of sparse X and the scales of codes; each call of an operator counts as all of X.
    `stored_bytes` are those of columns of X^T X and of products of codes with columns, each time they are
    read. Vectors (r, norms, bounds: a few numbers for each row or column) are not counted.
    """

    entries: int = 0
    bytes: int = 0
    prepared_entries: int = 0
    prepared_bytes: int = 0
    stored_bytes: int = 0

    def add(self, entries: int, nbytes: int) -> None:
        """Count a read made to answer a question."""
        self.entries += int(entries)
        self.bytes += int(nbytes)

    def prepare(self, entries: int, nbytes: int) -> None:
        """Count a read whose result is kept for every later question."""
        self.prepared_entries += int(entries)
        self.prepared_bytes += int(nbytes)
