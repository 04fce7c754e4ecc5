"""X known only through products: scipy.sparse.linalg.LinearOperator. Selection is exact.

An operator adds up in an order of its own, which may differ from one column to the next. Equal columns are
therefore told apart by the rounding of a product with all of them, and ties would go to any of them. So its
products have an error bound like those of BLAS, and the few columns that it leaves in doubt are fetched, as
products with unit vectors, and multiplied in a fixed order. Equal and opposite columns then tie, as long as
the operator gives them with equal bits, and the lowest index wins. Where more than `MOST_FETCHED` columns are
in doubt at once, as when all of X^T r is rounding, the operator's own product decides.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from skpursuit.data.base import Design, Floats, Indices
from skpursuit.numerics.finite import NotFinite
from skpursuit.numerics.sums import fixed_order_dot, line_norms

WIDTH = 64  # vectors multiplied in one call
MOST_FETCHED = 256  # columns that are fetched to settle one answer
MOST_WORK = 2**32  # n d^2, the work of fetching all columns, up to which single entries may be asked for
PROBES = 2  # products with random vectors that tell the sizes of columns
FAR = 8.0  # times the larger of those: rarely below the norm of a column, and never far below
SMALL = 2.0**-40  # size of the random vectors, so that products with the largest columns are finite


class OperatorDesign(Design):
    """A linear operator. Every call of its functions counts as one full reading of X."""

    def __init__(self, operator: Any) -> None:
        super().__init__(operator.shape, np.dtype(np.float64))
        self.operator = operator

    def cost(self, rows: Indices | None = None, cols: Indices | None = None) -> tuple[int, int]:
        width = len(cols) if rows is None and cols is not None and self._holds(cols) else self.shape[1]
        return self.shape[0] * width, self.shape[0] * width * self.dtype.itemsize

    def _holds(self, cols: Indices) -> bool:
        """Whether all these columns are kept."""
        return all(j in self.column_cache.held for j in np.asarray(cols).tolist())

    def norm_range(self) -> tuple[float, float]:
        largest = float(self._rough_sizes().max())
        return largest / FAR**2, largest

    def _correlate(self, r: Floats) -> Floats:
        if r.ndim == 1:
            return self._product("rmatvec", r, (self.shape[1],))
        return self._product("rmatmat", r, (self.shape[1], r.shape[1]))

    def _correlate_columns(self, r: Floats, cols: Indices) -> Floats:
        if len(cols) > MOST_FETCHED and not self._holds(cols):
            return self._correlate(r)[cols]
        return fixed_order_dot(self._lines(cols)[0], np.asarray(r, dtype=np.float64))

    def product_unit(self) -> float:
        """As if the operator worked in the precision of its dtype."""
        single = self.operator.dtype == np.float32
        return (self.shape[0] + 8) * float(np.finfo(np.float32 if single else np.float64).eps)

    def correlate_error(self, r: Floats) -> Floats:
        size = self.product_unit() * np.linalg.norm(r, axis=0)
        return np.multiply.outer(self._rough_sizes(), size)

    def _rough_sizes(self) -> Floats:
        """The column norms where they are known, else guesses at them that are not too small."""
        if ("norms", 0, 2) in self.cache:
            return self.norms(0)
        if "rough sizes" not in self.cache:
            self.reads.prepare(*self.cost())
            probes = SMALL * np.random.default_rng(0).standard_normal((self.shape[0], PROBES))
            self.cache["rough sizes"] = FAR / SMALL * np.abs(self._correlate(probes)).max(axis=1)
        return self.cache["rough sizes"]

    def _accumulate(self, rows: Indices, weights: Floats, out: Floats, cols: Indices | None) -> None:
        r = np.zeros((self.shape[0], *weights.shape[1:]))
        np.add.at(r, rows, weights)
        total = self._correlate(r)
        out += total if cols is None else total[cols]

    def _gather(self, cols: Indices) -> Floats:
        held = [self.column_cache.get(j) for j in np.asarray(cols).tolist()]
        lines = [line for line in held if line is not None]
        if lines and len(lines) == len(held):
            return np.stack(lines)
        unit = np.zeros((self.shape[1], len(cols)))
        unit[cols, np.arange(len(cols))] = 1.0
        return np.ascontiguousarray(self._product("matmat", unit, (self.shape[0], len(cols))).T)

    def _product(self, verb: str, v: Floats, shape: tuple[int, ...]) -> Floats:
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
            raise TypeError(f"{told} gave complex numbers; complex data is not supported")
        if product.shape != shape:
            raise ValueError(f"{told} gave an array of shape {product.shape} in {verb} instead of {shape}")
        product = product.astype(np.float64, copy=False)
        if not np.isfinite(product).all():
            blame = ValueError if np.abs(v).max() <= 1.0 else NotFinite
            raise blame(f"{told} gave a product with NaN or infinity; check its functions")
        return product

    def prepare_entries(self) -> None:
        n, d = self.shape
        if n * d * d <= MOST_WORK and n * d * 8 <= self.column_cache.limit:
            for start in range(0, d, WIDTH):
                self._lines(np.arange(start, min(start + WIDTH, d)), count=True)

    def pick_cost(self, rows: Indices, cols: Indices) -> tuple[int, int]:
        return (len(rows), 8 * len(rows)) if self._holds(cols) else self.cost(cols=cols)

    def _norms(self, axis: int, order: float) -> Floats:
        out = np.zeros(self.shape[1 - axis])
        lines = self._gather if axis == 0 else self._gather_rows
        for start in range(0, len(out), WIDTH):
            part = np.arange(start, min(start + WIDTH, len(out)))
            self.reads.prepare(*self.cost(cols=part if axis == 0 else None))
            out[part] = line_norms(lines(part), order)
        return out

    def _gather_rows(self, rows: Indices) -> Floats:
        unit = np.zeros((self.shape[0], len(rows)))
        unit[rows, np.arange(len(rows))] = 1.0
        return np.ascontiguousarray(self._correlate(unit).T)

    def _digest(self, digest: Any) -> None:
        rng = np.random.default_rng(0)
        for _ in range(2):
            self.reads.prepare(*self.cost())
            digest.update(np.ascontiguousarray(self._correlate(rng.standard_normal(self.shape[0]))).data)
