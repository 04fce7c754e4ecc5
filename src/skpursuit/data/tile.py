"""A tile: a rectangle of X in hand.

X is a grid of tiles, and one law holds for all of them: *sum over row edges, join over column edges.* A tile
multiplies, hands out columns and rows, adds up squares and sums, and can be encoded. It counts nothing, keeps
nothing but a second memory layout of itself, and knows nothing of centring or weights. What decides
something is summed over pieces of rows, which the caller adds one after the other, so that X cut between
pieces of 512 rows gives the same bits as X in one array.

What is kept of X is worthless once the caller writes to X, and to compare all entries would cost as much as
that. So a tile names one entry of every row and one of every column, at positions that the shape fixes, which
are read again when a design is used again (`as_design` says what that notices).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import numpy as np

from skpursuit.data.survey import Blocks
from skpursuit.numerics.arrays import Compressed, Floats, FloatType, Indices

if TYPE_CHECKING:
    from skpursuit.data.codes.coded_tile import CodedTile

Cost = tuple[int, int]  # entries and bytes
Sample = tuple[np.ndarray, Indices | slice | tuple[Indices, Indices]]  # an array, and positions in it
GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # its multiples, cut to 64 bits, are spread evenly


class Tile(ABC):
    """A rectangle of X. Rows and columns are numbered within it."""

    shape: tuple[int, int]
    dtype: FloatType
    in_memory_matrix: Floats | Compressed | None = None  # what the tile is; an operator is none
    is_sparse = False  # whether entries that are zero are left out
    is_complex = False  # whether pairs of rows and of columns stand for complex ones
    fast_axis = 0  # along which norms cost least: 0 columns, 1 rows
    has_fast_rows = False  # whether a row is read without the others
    has_entries = True  # whether entries, rows and columns can be read; an operator gives products
    can_encode = False  # whether there are codes; without them the product is cheap, or all there is
    fixed_order = False  # whether equal columns have equal bits in `product`
    small_product = -1  # entries of rows up to which their product does not need what "rows" prepares
    mean_rounding_unit: float  # bound on the rounding of means, relative to them

    @property
    @abstractmethod
    def rounding_unit(self) -> float:
        """Bound on the rounding of an entry of `product`, relative to ||x_j|| ||r||."""

    @abstractmethod
    def cost(self, rows: Indices | None = None, cols: Indices | None = None) -> Cost:
        """Entries and bytes touched when reading these rows and columns."""

    @abstractmethod
    def product(self, r: Floats, rows: Indices | None = None) -> Floats:
        """X^T r as float64; `rows` are those where r is not zero, when they are few."""

    @abstractmethod
    def take(self, cols: Indices) -> Floats:
        """Columns as the rows of a new float64 array."""

    @abstractmethod
    def add_rows(self, rows: Indices, weights: Floats, out: Floats, cols: Indices | None = None) -> None:
        """out[j] += sum over rows of weights[i] * X[rows[i], j], for all j or those in `cols`."""

    # -- asked of tiles with entries only -----------------------------------------------------------------

    def encode(self, fine: bool, totals: Floats | None = None) -> CodedTile:
        """The codes of a tile that has some, with a second byte or without.

        Of a tile in C order also the sums of blocks of rows, where there is an array to hold these `totals`.
        """
        raise NotImplementedError

    def dots(self, cols: Indices, r: Floats) -> Floats | None:
        """Columns times r in a fixed order, where that costs less than gathering them."""
        return None

    def entries(self, rows: Indices, cols: Indices) -> Floats:
        """Single entries X[rows[i], cols[i]]."""
        raise NotImplementedError

    def norm_parts(self, axis: int, order: float = 2) -> Floats:
        """Sums of squares, or with order infinity largest |entries|, of rows (axis 1), or columns if fast."""
        raise NotImplementedError

    def survey(self, weights: list[Floats | None], spreads: bool) -> list[Blocks]:
        """For each vector of weights of rows (None: ones) sums over blocks of rows: see `survey.Blocks`.

        Squares are zero where no `spreads` are wanted and they cost a look of their own.
        """
        raise NotImplementedError

    # -- layouts and changes ------------------------------------------------------------------------------

    def ensure_layout(self, what: str) -> Cost:
        """Make the layout that reading "rows", "columns" or "entries" needs; what was read for it."""
        return 0, 0

    def samples(self) -> list[Sample]:
        """Arrays, and positions in them that tell whether the tile was changed."""
        return []


def scattered_indices(count: int, size: int) -> Indices:
    """`count` numbers below `size`, spread evenly."""
    return ((np.arange(count, dtype=np.uint64) * GOLDEN >> np.uint64(32)) % np.uint64(size)).astype(np.intp)
