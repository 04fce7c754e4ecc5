"""How a design notices that its X was changed in place.

A design keeps norms, codes and columns of X, which are worthless once the caller writes to X. To compare all
entries would cost as much as what is kept. So one entry of every row and one of every column is remembered,
n + d of them at positions that the shape fixes, and read again when the design is used again. That notices a
row, a column or a matrix that was written anew; a change of a few single entries, it most likely does not.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from skpursuit.numerics.arrays import Floats, Indices

GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # its multiples, cut to 64 bits, are spread evenly


class Witness(ABC):
    """Some numbers of X as they were."""

    before: Floats

    @abstractmethod
    def read(self) -> Floats:
        """The numbers as they are now."""

    @abstractmethod
    def place(self, k: int, row: int, column: int) -> str:
        """Where the k-th of them is in X, whose part begins at that row and column."""

    def compare(self, row: int = 0, column: int = 0) -> None:
        """Raise ValueError if one of the numbers is another one now."""
        now = self.read()
        changed = np.flatnonzero((now != self.before) & ~(np.isnan(now) & np.isnan(self.before)))
        if len(changed):
            place = self.place(int(changed[0]), row, column)
            raise ValueError(
                f"X was changed in place after its design was made, at {place}; "
                "make a new design of it: as_design(X)"
            )


class DenseWitness(Witness):
    """One entry of every row and of every column of an array, or of several below each other."""

    def __init__(self, arrays: list[Floats]) -> None:
        n, d = sum(len(X) for X in arrays), arrays[0].shape[1]
        self.arrays = arrays
        self.rows = np.concatenate([np.arange(n), spread(d, n)])
        self.cols = np.concatenate([spread(n, d), np.arange(d)])
        self.before = self.read()

    def read(self) -> Floats:
        if len(self.arrays) == 1:
            return self.arrays[0][self.rows, self.cols]
        out, start = np.empty(len(self.rows)), 0
        for X in self.arrays:
            here = (self.rows >= start) & (self.rows < start + len(X))
            out[here] = X[self.rows[here] - start, self.cols[here]]
            start += len(X)
        return out

    def place(self, k: int, row: int, column: int) -> str:
        return f"row {row + self.rows[k]}, column {column + self.cols[k]}"


class SparseWitness(Witness):
    """One stored entry of every line and of every index of a CSR or CSC array, and where its lines end."""

    def __init__(self, matrix: Any) -> None:
        self.matrix = matrix
        pointers, indices = matrix.indptr, matrix.indices
        counts = np.diff(pointers)
        filled = np.flatnonzero(counts)
        last = np.full(max(matrix.shape), -1, dtype=np.intp)
        last[indices] = np.arange(len(indices))  # the last entry of each index
        some = pointers[filled] + spread(len(filled), 2**31) % counts[filled]
        self.entries = np.concatenate([some, last[last >= 0]])
        self.lines = np.searchsorted(pointers, self.entries, side="right") - 1
        self.indices = indices[self.entries]
        self.before = self.read()

    def read(self) -> Floats:
        data, indices = self.matrix.data[self.entries], self.matrix.indices[self.entries]
        return np.concatenate([data, indices, self.matrix.indptr], dtype=np.float64)

    def place(self, k: int, row: int, column: int) -> str:
        by_rows = self.matrix.format == "csr"
        first, second = (("row", row), ("column", column)) if by_rows else (("column", column), ("row", row))
        past = k - 2 * len(self.entries)  # the number of a pointer, which ends the line before it
        if past >= 0:
            return f"{first[0]} {first[1] + max(0, past - 1)}"
        entry = k % len(self.entries)
        return f"{first[0]} {first[1] + self.lines[entry]}, {second[0]} {second[1] + self.indices[entry]}"


def spread(count: int, size: int) -> Indices:
    """`count` numbers below `size`, spread evenly."""
    return ((np.arange(count, dtype=np.uint64) * GOLDEN >> np.uint64(32)) % np.uint64(size)).astype(np.intp)
