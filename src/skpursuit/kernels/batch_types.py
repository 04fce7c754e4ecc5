"""Plain tuples of arrays that the kernels of the batched coder pass around; importing them is cheap."""

from __future__ import annotations

import math
from collections import namedtuple
from typing import Any, NamedTuple

import numpy as np

OMP, POSITIVE, GAIN = 0, 1, 2  # the largest |c|; the largest c, weights >= 0; the largest c^2 / den
PENDING = -1  # count of a code that is not known
CLOSED, LEAST = 1e30, 1e-30  # den of an atom that is not considered, and of one without a share of its own
LANES, VECTORS = 16, 8  # float32 numbers of a vector, vectors of a tile
TILE = LANES * VECTORS
AHEAD = 4  # Gram rows that are orthogonalised together


class Dictionary(NamedTuple):
    """Atoms in rows and what follows from them."""

    atoms: np.ndarray
    coarse: np.ndarray  # in float32, with rows of zeros up to whole tiles
    gram: np.ndarray  # of these without the rows of zeros, its columns filled up with zeros
    squares: np.ndarray  # of norms, less `Limits.bias`, in float32; CLOSED for atoms of zeros
    norms: np.ndarray  # in float64


class Signals(NamedTuple):
    """Signals in rows and their codes, which are filled in."""

    rows: Any
    number: np.ndarray  # for messages
    most: np.ndarray  # non-zeros
    tol: np.ndarray  # the squared residual at which to stop
    indices: np.ndarray
    values: np.ndarray
    counts: np.ndarray

    def at(self, some: Any, dtype: np.dtype) -> Signals:
        """Some of them, in this dtype."""
        rows = np.require(self.rows[some], dtype, ["C", "A", "W"])
        return Signals(rows, *(part[some] for part in self[1:]))


class Limits(NamedTuple):
    """Numbers of one encoder, the first three relative to the norms at hand."""

    fine: float  # bounds the rounding of float64 products
    floor: float  # what a product may be and still count as zero
    dependence: float  # what is left of the square of an atom that counts as a combination of others
    scale: float  # the largest squared norm
    rounding: float  # variance of float32 products in squared units of rounding
    bias: float  # bounds the first errors of den
    enough: float  # squared relative length of a refinement of weights, after which there is no other
    exponent: int  # atoms were divided by 2 to this power


class SparseCodes(NamedTuple):
    """Codes of signals, one in each row of arrays as wide as the longest code may be.

    ``indices`` (int32) are atoms and ``values`` their weights; after the first ``counts`` of a row both are
    0. `PursuitCoder.encode` returns the atoms in the order in which they were chosen.
    """

    indices: np.ndarray
    values: np.ndarray
    counts: np.ndarray


# Scratch of one thread. Float32: orthogonal rows P, in the last AHEAD steps those made ahead (`owner` are
# their atoms), products c, den, peaks. Least squares on the support: Cholesky factor, inverse diagonal,
# half = L^-1 D y, weights, residual. `rounds` are variances of the rounding of P; the rest are lists of
# atoms. What goes by fours has three more places.
Work = namedtuple(
    "Work",
    "rows c den peaks owner lower inverse half weights step rounds support queue gone residual picks exact",
)


def aligned(*shape: int) -> np.ndarray:
    """An empty float32 array that begins at a cache line."""
    raw = np.empty(4 * math.prod(shape) + 64, np.uint8)
    at = -raw.ctypes.data % 64
    return raw[at : at + 4 * math.prod(shape)].view(np.float32).reshape(shape)


def room_for(block: int, k: int, n: int, width: int) -> tuple[Any, ...]:
    """Scratch of one thread: float32 signals, their products with atoms, units, energies, and `Work`."""
    # Made here: compiling what allocates takes longer than all of it.
    tiles = aligned(width // TILE * (k + AHEAD), TILE), *aligned(2, width), aligned(width // VECTORS)
    small = np.zeros(AHEAD, np.int64), np.zeros((k, k)), *np.zeros((5, k + 3))
    lists = *np.zeros((3, 3 * k + 3), np.int64), np.zeros(n), np.zeros(width + 3, np.int64)
    work = Work._make((*tiles, *small, *lists, np.zeros(width + 3)))
    return aligned(block, n), aligned(block, width), *np.empty((2, block)), work
