"""X known only through products: scipy.sparse.linalg.LinearOperator, or anything like it. Selection is exact.

An operator adds up in an order of its own, which may differ from one column to the next. Equal columns are
therefore told apart by the rounding of a product with all of them, and ties would go to any of them. So its
products have an error bound like those of BLAS, and the few columns that it leaves in doubt are fetched, as
products with unit vectors, and multiplied in a fixed order. Equal and opposite columns then tie, as long as
the operator gives them with equal bits, and the lowest index wins. Where more than `MOST_FETCHED` columns are
in doubt at once, as when all of X^T r is rounding, the operator's own product decides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from skpursuit.data.dense_tile import check_shape
from skpursuit.data.tile import Cost, Tile
from skpursuit.numerics.arrays import Floats, Indices
from skpursuit.numerics.float_range import EPS, NonFiniteError

if TYPE_CHECKING:
    from scipy.sparse.linalg import LinearOperator

MOST_FETCHED = 256  # columns that are fetched to settle one answer
PROBES = 2  # products with random vectors that tell the sizes of columns
NORM_SAFETY = 8.0  # times the larger of those: rarely below the norm of a column, and never far below
PROBE_SCALE = 2.0**-40  # size of the random vectors, so that products with the largest columns are finite


def accepts(X: object) -> bool:
    """Whether X gives products."""
    return hasattr(X, "matvec")


def make_tiles(X: object) -> list[list[Tile]]:
    """One tile, which cannot be cut."""
    from scipy.sparse.linalg import aslinearoperator

    if not hasattr(X, "rmatvec"):
        raise TypeError("X, a linear operator, has no rmatvec, the product with X^T; give it one")
    check_shape(getattr(X, "shape", ()))
    tile = OperatorTile(operator := aslinearoperator(X))
    if np.dtype(operator.dtype).kind == "c":
        from skpursuit.data.complex_tile import real_operator

        tile = OperatorTile(real_operator(operator))
        tile.is_complex = True
    return [[tile]]


class OperatorTile(Tile):
    """A linear operator, which cannot be cut. Every call of its functions counts as one reading of X."""

    has_entries = False

    def __init__(self, operator: LinearOperator) -> None:
        self.shape, self.dtype = operator.shape, np.dtype(np.float64)
        self.operator = operator
        self.mean_rounding_unit = 8 * max(16, self.shape[0]) * EPS

    @property
    def rounding_unit(self) -> float:
        """As if the operator worked in the precision of its dtype."""
        single = self.operator.dtype == np.float32
        return (self.shape[0] + 8) * float(np.finfo(np.float32 if single else np.float64).eps)

    def cost(self, rows: Indices | None = None, cols: Indices | None = None) -> Cost:
        entries = self.shape[0] * self.shape[1]
        return entries, entries * self.dtype.itemsize

    def product(self, r: Floats, rows: Indices | None = None) -> Floats:
        if r.ndim == 1:
            return self._call("rmatvec", r, (self.shape[1],))
        return self._call("rmatmat", r, (self.shape[1], r.shape[1]))

    def rough_sizes(self) -> Floats:
        """Guesses at the column norms that are not too small."""
        probes = PROBE_SCALE * np.random.default_rng(0).standard_normal((self.shape[0], PROBES))
        return NORM_SAFETY / PROBE_SCALE * np.abs(self.product(probes)).max(axis=1)

    def take(self, cols: Indices) -> Floats:
        unit = np.zeros((self.shape[1], len(cols)))
        unit[cols, np.arange(len(cols))] = 1.0
        return np.ascontiguousarray(self._call("matmat", unit, (self.shape[0], len(cols))).T)

    def add_rows(self, rows: Indices, weights: Floats, out: Floats, cols: Indices | None = None) -> None:
        r = np.zeros((self.shape[0], *weights.shape[1:]))
        np.add.at(r, rows, weights)
        total = self.product(r)
        out += total if cols is None else total[cols]

    def entries(self, rows: Indices, cols: Indices) -> Floats:
        raise ValueError(
            "this selector reads single entries, and of a linear operator each costs a product with all of "
            "X; use 'exact' or 'halving', or give X as an array"
        )

    def _call(self, verb: str, v: Floats, shape: tuple[int, ...]) -> Floats:
        """A product of the operator with vectors; errors of its functions and numbers that are none name X.

        Products are all that is known of X, and NaN in one would pass for an answer. With entries of up to
        one in size the operator is to blame; larger ones may have been too much for it.
        """
        told = f"X, a linear operator of shape {self.shape},"
        try:
            product = np.asarray(getattr(self.operator, verb)(v))
        except ValueError as error:
            raise ValueError(f"{told} failed in {verb} ({error}); check its functions") from error
        except (NotImplementedError, TypeError) as error:  # scipy's words for a function that was not given
            raise TypeError(f"{told} cannot do {verb} ({error}); give it rmatvec too") from error
        if product.dtype.kind == "c":
            raise TypeError(f"{told} gave complex numbers; give it a complex dtype")
        if product.shape != shape:
            raise ValueError(f"{told} gave an array of shape {product.shape} in {verb} instead of {shape}")
        product = product.astype(np.float64, copy=False)
        if not np.isfinite(product).all():
            blame = ValueError if np.abs(v).max() <= 1.0 else NonFiniteError
            raise blame(f"{told} gave a product with NaN or infinity; check its functions")
        return product
