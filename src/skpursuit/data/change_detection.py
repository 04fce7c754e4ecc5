"""How a design notices that its X was changed in place.

A design keeps norms, codes and columns of X, which are worthless once the caller writes to X. To compare all
entries would cost as much as what is kept. So one entry of every row and one of every column is remembered,
at positions that the shape fixes, and read again when the design is used again. That notices a row, a column
or a matrix that was written anew; a change of a few single entries, it most likely does not. `TileStore`
compares.
"""

from __future__ import annotations

import numpy as np

from skpursuit.numerics.arrays import Compressed, Indices

GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # its multiples, cut to 64 bits, are spread evenly
Sample = tuple[np.ndarray, Indices | slice | tuple[Indices, Indices]]  # an array, and positions in it


def of_array(X: np.ndarray) -> Sample:
    """One entry of every row and of every column."""
    n, d = X.shape
    rows = np.append(np.arange(n), scattered_indices(d, n))
    return X, (rows, np.append(scattered_indices(n, d), np.arange(d)))


def of_sparse(matrix: Compressed) -> list[Sample]:
    """One stored entry of every line and of every index of a CSR or CSC array, and where its lines end."""
    counts, last = np.diff(matrix.indptr), np.full(max(matrix.shape), -1)
    last[matrix.indices] = np.arange(len(matrix.indices))
    filled = np.flatnonzero(counts)
    some = matrix.indptr[filled] + scattered_indices(len(filled), 2**31) % counts[filled]
    at = np.append(some, last[last >= 0])
    return [(matrix.data, at), (matrix.indices, at), (matrix.indptr, slice(None))]


def scattered_indices(count: int, size: int) -> Indices:
    """`count` numbers below `size`, spread evenly."""
    return ((np.arange(count, dtype=np.uint64) * GOLDEN >> np.uint64(32)) % np.uint64(size)).astype(np.intp)
