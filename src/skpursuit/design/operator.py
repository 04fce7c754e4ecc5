"""X known only through products: scipy.sparse.linalg.LinearOperator. Selection is exact."""

from __future__ import annotations

from typing import Any

import numpy as np

from skpursuit.design.base import Design, Floats, Indices
from skpursuit.design.sums import line_norms


class OperatorDesign(Design):
    """A linear operator. Every product counts as one full reading of X."""

    def __init__(self, operator: Any) -> None:
        super().__init__(operator.shape, np.dtype(np.float64))
        self.operator = operator

    def cost(self, rows: Indices | None = None, cols: Indices | None = None) -> tuple[int, int]:
        entries = self.shape[0] * self.shape[1]
        return entries, entries * self.dtype.itemsize

    def norm_range(self) -> tuple[float, float]:
        """From one product with random signs, because columns cost a product each. Kept."""
        n = self.shape[0]
        if "probe" not in self.cache:
            signs = np.random.default_rng(0).choice([-1.0, 1.0], n)
            self.reads.prepare(*self.cost())
            self.cache["probe"] = float(np.abs(self._correlate(signs / n)).max())
        return self.cache["probe"], n * self.cache["probe"]

    def _correlate(self, r: Floats) -> Floats:
        if r.ndim == 1:
            return self._product("rmatvec", r, (self.shape[1],))
        return self._product("rmatmat", r, (self.shape[1], r.shape[1]))

    def _correlate_columns(self, r: Floats, cols: Indices) -> Floats:
        return self._correlate(r)[cols]

    def _accumulate(self, rows: Indices, weights: Floats, out: Floats, cols: Indices | None) -> None:
        r = np.zeros((self.shape[0], *weights.shape[1:]))
        np.add.at(r, rows, weights)
        total = self._correlate(r)
        out += total if cols is None else total[cols]

    def _gather(self, cols: Indices) -> Floats:
        unit = np.zeros((self.shape[1], len(cols)))
        unit[cols, np.arange(len(cols))] = 1.0
        return np.ascontiguousarray(self._product("matmat", unit, (self.shape[0], len(cols))).T)

    def _product(self, verb: str, v: Floats, shape: tuple[int, ...]) -> Floats:
        """A product of the operator; errors of its functions and numbers that are none name X."""
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
            raise ValueError(f"{told} gave a product with NaN or infinity; check its functions")
        return product

    def _norms(self, axis: int, order: float) -> Floats:
        out = np.zeros(self.shape[1 - axis])
        lines = self._gather if axis == 0 else self._gather_rows
        for start in range(0, len(out), 64):
            part = np.arange(start, min(start + 64, len(out)))
            out[part] = line_norms(lines(part), order)
        return out

    def _gather_rows(self, rows: Indices) -> Floats:
        unit = np.zeros((self.shape[0], len(rows)))
        unit[rows, np.arange(len(rows))] = 1.0
        return np.ascontiguousarray(self._correlate(unit).T)

    def _digest(self, digest: Any) -> None:
        rng = np.random.default_rng(0)
        for _ in range(2):
            digest.update(np.ascontiguousarray(self._correlate(rng.standard_normal(self.shape[0]))).data)
