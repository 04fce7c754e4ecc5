"""X known only through products: scipy.sparse.linalg.LinearOperator. Selection is exact."""

from __future__ import annotations

from typing import Any

import numpy as np

from skpursuit.design.base import Design, Floats, Indices
from skpursuit.design.sums import scaled_norm
from skpursuit.finite import NotFinite


class OperatorDesign(Design):
    """A linear operator. Every product counts as one full reading of X."""

    def __init__(self, operator: Any) -> None:
        super().__init__(operator.shape, np.dtype(np.float64))
        self.operator = operator

    def cost(self, rows: Indices | None = None, cols: Indices | None = None) -> tuple[int, int]:
        entries = self.shape[0] * self.shape[1]
        return entries, entries * self.dtype.itemsize

    def _correlate(self, r: Floats) -> Floats:
        product = self.operator.rmatvec(r) if r.ndim == 1 else self.operator.rmatmat(r)
        return checked(product, r)

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
        return np.ascontiguousarray(checked(self.operator.matmat(unit), unit).T)

    def _norms(self, axis: int, order: float) -> Floats:
        out = np.zeros(self.shape[1 - axis])
        lines = self._gather if axis == 0 else self._gather_rows
        for start in range(0, len(out), 64):
            part = np.arange(start, min(start + 64, len(out)))
            some = lines(part)
            out[part] = np.abs(some).max(axis=1) if order == np.inf else [scaled_norm(line) for line in some]
        return out

    def _gather_rows(self, rows: Indices) -> Floats:
        unit = np.zeros((self.shape[0], len(rows)))
        unit[rows, np.arange(len(rows))] = 1.0
        return np.ascontiguousarray(self._correlate(unit).T)

    def _digest(self, digest: Any) -> None:
        rng = np.random.default_rng(0)
        for _ in range(2):
            digest.update(np.ascontiguousarray(self._correlate(rng.standard_normal(self.shape[0]))).data)


def checked(product: Any, factor: Floats) -> Floats:
    """The product of an operator with vectors, refused where it is not finite.

    Products are all that is known of X, and NaN in one would pass for an answer. With entries of up to one in
    size the operator is to blame; larger ones, or those that are not finite, may have been too much for it.
    """
    product = np.asarray(product, dtype=np.float64)
    if not np.isfinite(product).all():
        blame = ValueError if np.abs(factor).max() <= 1.0 else NotFinite
        raise blame("X, a linear operator, gave a product with NaN or infinity; check its functions")
    return product
