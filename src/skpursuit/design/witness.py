"""How a design notices that its X was changed in place.

A design keeps norms, codes and columns of X, which are worthless once the caller writes to X. To compare all
entries would cost as much as what is kept. So one entry of every row and one of every column is remembered,
n + d of them at positions that the shape fixes, and read again when the design is used again. That notices a
row, a column or a matrix that was written anew; a change of a few single entries, it most likely does not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from skpursuit.design.kept import Floats, Indices

GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # its multiples, cut to 64 bits, are spread evenly


class Witness:
    """Some numbers of X as they were.

    Parameters
    ----------
    read : callable
        Reads them from X.
    place : callable
        Says where the number at an index of that reading is in X.
    """

    def __init__(self, read: Callable[[], Floats], place: Callable[[int], str]) -> None:
        self.read = read
        self.place = place
        self.before = read()

    def compare(self) -> None:
        """Raise ValueError if one of the numbers is another one now."""
        now = self.read()
        changed = np.flatnonzero((now != self.before) & ~(np.isnan(now) & np.isnan(self.before)))
        if len(changed):
            raise ValueError(
                f"X was changed in place after its design was made, at {self.place(int(changed[0]))}; "
                "make a new design of it: as_design(X)"
            )


def dense_witness(X: Floats) -> Witness:
    """One entry of every row and of every column of an array."""
    n, d = X.shape
    rows = np.concatenate([np.arange(n), spread(d, n)])
    cols = np.concatenate([spread(n, d), np.arange(d)])
    return Witness(lambda: X[rows, cols], lambda k: f"row {rows[k]}, column {cols[k]}")


def sparse_witness(matrix: Any) -> Witness:
    """One stored entry of every line and of every index of a CSR or CSC array, and where its lines end."""
    line, index = ("row", "column") if matrix.format == "csr" else ("column", "row")
    data, indices, pointers = matrix.data, matrix.indices, matrix.indptr
    counts = np.diff(pointers)
    filled = np.flatnonzero(counts)
    last = np.full(matrix.shape[1] if line == "row" else matrix.shape[0], -1, dtype=np.intp)
    last[indices] = np.arange(len(indices))  # the last entry of each index
    places = np.concatenate([pointers[filled] + spread(len(filled), 2**31) % counts[filled], last[last >= 0]])
    lines = np.searchsorted(pointers, places, side="right") - 1
    before = indices[places]

    def read() -> Floats:
        return np.concatenate([data[places], indices[places], pointers], dtype=np.float64)

    def place(k: int) -> str:
        if k >= 2 * len(places):
            return f"{line} {max(0, k - 2 * len(places) - 1)}"
        return f"{line} {lines[k % len(places)]}, {index} {before[k % len(places)]}"

    return Witness(read, place)


def spread(count: int, size: int) -> Indices:
    """`count` numbers below `size`, spread evenly."""
    return ((np.arange(count, dtype=np.uint64) * GOLDEN >> np.uint64(32)) % np.uint64(size)).astype(np.intp)
