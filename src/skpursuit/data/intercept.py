"""X with a constant column: the intercept of losses for which centring is not enough."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skpursuit.data.affine import AffineDesign
from skpursuit.data.base import Design, Floats, Indices
from skpursuit.numerics.bounds import EPS, total_bound


class InterceptDesign(Design):
    """X with a last column of ones: the intercept of losses for which centring is not enough."""

    def __init__(self, inner: Design) -> None:
        self.inner = inner
        super().__init__((inner.shape[0], inner.shape[1] + 1), inner.dtype, inner.reads)

    reads = AffineDesign.reads

    def counted(self) -> InterceptDesign:
        other = InterceptDesign.__new__(InterceptDesign)
        other.__dict__.update(self.__dict__)
        other.inner = self.inner.counted()
        return other

    def _split(self, cols: Indices) -> tuple[Indices, Indices]:
        """Positions in `cols` of real columns, and of the constant one."""
        constant = np.asarray(cols) == self.inner.shape[1]
        return np.flatnonzero(~constant), np.flatnonzero(constant)

    def cost(self, rows: Indices | None = None, cols: Indices | None = None) -> tuple[int, int]:
        if cols is not None:
            cols = np.asarray(cols)[self._split(cols)[0]]
        return self.inner.cost(rows, cols)

    def _correlate(self, r: Floats) -> Floats:
        return np.concatenate([self.inner._correlate(r), np.asarray(r, dtype=np.float64).sum(axis=0)[None]])

    def _correlate_columns(self, r: Floats, cols: Indices) -> Floats:
        real, constant = self._split(cols)
        out = np.empty((len(cols), *r.shape[1:]))
        out[real] = self.inner._correlate_columns(r, np.asarray(cols)[real])
        out[constant] = np.asarray(r, dtype=np.float64).sum(axis=0)
        return out

    def correlate_error(self, r: Floats) -> Floats | None:
        inner = self.inner.correlate_error(r)
        return None if inner is None else np.concatenate([inner, self._constant(r)[1][None]])

    def accumulate_error(self, r: Floats) -> Floats:
        return np.concatenate([self.inner.accumulate_error(r), self._constant(r)[1][None]])

    def product_unit(self) -> float:
        return max(self.inner.product_unit(), (self.shape[0] + 8) * EPS)

    def column_sizes(self) -> Floats:
        return np.append(self.inner.column_sizes(), np.sqrt(self.shape[0]))

    def offsets(self, cols: Indices) -> Floats:
        real = self._split(cols)[0]
        out = np.zeros(len(cols))
        out[real] = self.inner.offsets(np.asarray(cols)[real])
        return out

    def is_intercept(self, cols: Indices) -> NDArray[np.bool_]:
        return np.asarray(cols) == self.inner.shape[1]

    def _accumulate(self, rows: Indices, weights: Floats, out: Floats, cols: Indices | None) -> None:
        if cols is None:
            self.inner._accumulate(rows, weights, out[:-1], None)
            out[-1] += weights.sum(axis=0)
            return
        real, constant = self._split(cols)
        part = np.zeros((len(real), *out.shape[1:]))
        self.inner._accumulate(rows, weights, part, np.asarray(cols)[real])
        out[real] += part
        out[constant] += weights.sum(axis=0)

    def pick_cost(self, rows: Indices, cols: Indices) -> tuple[int, int]:
        real = self._split(cols)[0]
        return self.inner.pick_cost(rows[real], cols[real])

    def _pick(self, rows: Indices, cols: Indices) -> Floats:
        real = self._split(cols)[0]
        out = np.ones(len(cols))
        out[real] = self.inner._pick(rows[real], cols[real])
        return out

    def prepare_rows(self) -> None:
        super().prepare_rows()
        self.inner.prepare_rows()

    check_unchanged = AffineDesign.check_unchanged
    prepare_entries = AffineDesign.prepare_entries
    row_layout_bytes = AffineDesign.row_layout_bytes
    mean_unit = AffineDesign.mean_unit
    has_twin = AffineDesign.has_twin
    twin = AffineDesign.twin
    sketch = AffineDesign.sketch
    is_prepared = AffineDesign.is_prepared

    def _sketch_guess(self, r: Floats, cols: Indices | None) -> Floats:
        real, constant = self._split(np.arange(self.shape[1]) if cols is None else cols)
        guess = np.empty((len(real) + len(constant), *r.shape[1:]))
        guess[real] = self.inner._sketch_guess(r, None if cols is None else np.asarray(cols)[real])
        guess[constant] = r.sum(axis=0)
        return guess

    def _estimate(
        self, r: Floats, seed: int | None, log_delta: float | None, cols: Indices | None
    ) -> tuple[Floats, Floats]:
        real, constant = self._split(np.arange(self.shape[1]) if cols is None else cols)
        some = None if cols is None else np.asarray(cols)[real]
        return self._with_constant(r, real, constant, self.inner._estimate(r, seed, log_delta, some))

    def _estimate_rows(self, r: Floats, parts: list[Indices]) -> tuple[Floats, Floats]:
        g, bound = self.inner._estimate_rows(r, parts)
        last = [self._constant(r[np.concatenate(parts[: i + 1])]) for i in range(len(parts))]
        totals, lost = (np.stack(some)[:, None] for some in zip(*last))
        return np.concatenate([g, totals], axis=1), np.concatenate([bound, lost], axis=1)

    def _refine(self, r: Floats, cols: Indices, seed: int | None) -> tuple[Floats, Floats]:
        real, constant = self._split(cols)
        return self._with_constant(r, real, constant, self.inner._refine(r, np.asarray(cols)[real], seed))

    def _with_constant(
        self, r: Floats, real: Indices, constant: Indices, known: tuple[Floats, Floats]
    ) -> tuple[Floats, Floats]:
        """Estimates and bounds of the real columns, and those of the constant one in its places."""
        g, bound = np.empty((2, len(real) + len(constant), *r.shape[1:]))
        g[real], bound[real] = known
        g[constant], bound[constant] = self._constant(r)
        return g, bound

    def _constant(self, r: Floats) -> tuple[Floats, Floats]:
        """The constant column's entry of the product, and a bound on its rounding."""
        return np.asarray(r.sum(axis=0)), total_bound(2 * len(r) * EPS, np.ones(1), r)[0]

    def _gather(self, cols: Indices) -> Floats:
        real, constant = self._split(cols)
        out = np.empty((len(cols), self.shape[0]))
        out[real] = self.inner._gather(np.asarray(cols)[real])
        out[constant] = 1.0
        return out

    def fetch(self, cols: Indices, likely: Callable[[], Indices]) -> None:
        self.inner.fetch(cols[self._split(cols)[0]], lambda: (some := likely())[self._split(some)[0]])

    def _norms(self, axis: int, order: float) -> Floats:
        inner = self.inner.norms(axis, order)
        if axis == 0:
            return np.append(inner, 1.0 if order == np.inf else np.sqrt(self.shape[0]))
        return np.maximum(inner, 1.0) if order == np.inf else np.hypot(inner, 1.0)

    def _digest(self, digest: Any) -> None:
        self.inner._digest(digest)
