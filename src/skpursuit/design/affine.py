"""Views of a design: centred, column-scaled, row-weighted, with a constant column. Sparse X stays sparse."""

from __future__ import annotations

from typing import Any

import numpy as np

from skpursuit.design.base import Design, Floats, Indices, Reads


class AffineDesign(Design):
    """diag(root) (X - 1 centre^T) diag(1 / scale), computed from products with X alone.

    Parameters
    ----------
    inner : Design
    centre, scale : ndarray of shape (d,), optional
        Subtracted from, then divided into, each column.
    root : ndarray of shape (n,), optional
        Multiplied into each row: the square root of sample weights.
    """

    def __init__(
        self,
        inner: Design,
        centre: Floats | None = None,
        scale: Floats | None = None,
        root: Floats | None = None,
    ) -> None:
        self.inner = inner
        super().__init__(inner.shape, inner.dtype)
        n, d = inner.shape
        self.centre = np.zeros(d) if centre is None else np.asarray(centre, dtype=np.float64)
        self.scale = np.ones(d) if scale is None else np.asarray(scale, dtype=np.float64)
        self.root = np.ones(n) if root is None else np.asarray(root, dtype=np.float64)

    @property
    def reads(self) -> Reads:
        """The inner design's counter: everything is read there."""
        return self.inner.reads

    @reads.setter
    def reads(self, value: Reads) -> None:
        self.inner.reads = value

    def counted(self) -> AffineDesign:
        other = AffineDesign.__new__(AffineDesign)
        other.__dict__.update(self.__dict__)
        other.inner = self.inner.counted()
        return other

    def cost(self, rows: Indices | None = None, cols: Indices | None = None) -> tuple[int, int]:
        return self.inner.cost(rows, cols)

    def _lift(self, u: Floats) -> Floats:
        """Multiply residuals by the row weights."""
        return u * (self.root if u.ndim == 1 else self.root[:, None])

    def correct(self, g: Floats, total: Floats, cols: Indices | slice = slice(None)) -> Floats:
        """Turn entries of X^T u into entries of the view's product, given sum(u)."""
        centre, scale = self.centre[cols], self.scale[cols]
        if g.ndim == 1:
            return (g - centre * total) / scale
        return (g - centre[:, None] * total) / scale[:, None]

    def _correlate(self, r: Floats) -> Floats:
        u = self._lift(r)
        return self.correct(self.inner._correlate(u), u.sum(axis=0))

    def _correlate_rows(self, r: Floats, rows: Indices) -> Floats:
        u = self._lift(r)
        return self.correct(self.inner._correlate_rows(u, rows), u.sum(axis=0))

    def _correlate_columns(self, r: Floats, cols: Indices) -> Floats:
        u = self._lift(np.asarray(r, dtype=np.float64))
        return self.correct(self.inner._correlate_columns(u, cols), u.sum(axis=0), cols)

    def correlate_error(self, r: Floats) -> Floats | None:
        u = self._lift(r)
        inner = self.inner.correlate_error(u)
        if not self.centre.any():
            return None if inner is None else self._per_scale(inner)
        unit = 2 * (len(u) + 2) * np.finfo(np.float64).eps
        sums = unit * np.multiply.outer(np.abs(self.centre), np.abs(u).sum(axis=0))
        return self._per_scale(sums if inner is None else inner + sums)

    def accumulate_error(self, r: Floats) -> Floats:
        u = self._lift(r)
        sums = np.multiply.outer(np.abs(self.centre), np.abs(u).sum(axis=0))
        unit = 4 * (len(u) + 8) * np.finfo(np.float64).eps
        return self._per_scale(self.inner.accumulate_error(u) + unit * sums)

    def prepare_rows(self) -> None:
        super().prepare_rows()
        self.inner.prepare_rows()

    def row_layout_bytes(self) -> int:
        return self.inner.row_layout_bytes()

    def _pick(self, rows: Indices, cols: Indices) -> Floats:
        return (self.inner._pick(rows, cols) - self.centre[cols]) / self.scale[cols] * self.root[rows]

    def has_twin(self) -> bool:
        return self.inner.has_twin()

    def twin(self, seed: int | None = None) -> Any:
        """The twin of the inner design: one serves every centring, scaling and weighting."""
        return self.inner.twin(seed)

    def _estimate(self, r: Floats, seed: int | None, log_delta: float | None) -> tuple[Floats, Floats]:
        u = self._lift(r)
        g, bound = self.inner._estimate(u, seed, log_delta)
        return self._corrected(u, g, bound, slice(None))

    def _refine(self, r: Floats, cols: Indices, seed: int | None) -> tuple[Floats, Floats]:
        u = self._lift(r)
        g, bound = self.inner._refine(u, cols, seed)
        return self._corrected(u, g, bound, cols)

    def sketch(self) -> Any:
        """The sketch of the inner design."""
        return self.inner.sketch()

    def is_prepared(self, kind: str) -> bool:
        return self.inner.is_prepared(kind)

    def _sketch_guess(self, r: Floats, cols: Indices | None) -> Floats:
        u = self._lift(r)
        guess = self.inner._sketch_guess(u, cols)
        return self.correct(guess, u.sum(axis=0), slice(None) if cols is None else cols)

    def _corrected(self, u: Floats, g: Floats, bound: Floats, cols: Indices | slice) -> tuple[Floats, Floats]:
        """Estimates of the view from those of the inner design; the bound grows by the rounding of this."""
        total = np.abs(u).sum(axis=0)
        unit = 4 * (len(u) + 8) * np.finfo(np.float64).eps
        lost = np.abs(g) + bound + np.multiply.outer(np.abs(self.centre[cols]), total)
        # The rounding of u itself moves an entry by at most eps ||x_j||_inf sum|u|.
        moved = np.multiply.outer(self.inner.norms(0)[cols], total)
        lost = unit * lost + 4 * np.finfo(np.float64).eps * moved
        scale = np.abs(self.scale[cols])
        return self.correct(g, u.sum(axis=0), cols), (bound + lost) / (
            scale if g.ndim == 1 else scale[:, None]
        )

    def _per_scale(self, error: Floats) -> Floats:
        scale = np.abs(self.scale)
        return error / (scale if error.ndim == 1 else scale[:, None])

    def _accumulate(self, rows: Indices, weights: Floats, out: Floats, cols: Indices | None) -> None:
        root = self.root[rows]
        u = weights * (root if weights.ndim == 1 else root[:, None])
        part = np.zeros_like(out)
        self.inner._accumulate(rows, u, part, cols)
        out += self.correct(part, u.sum(axis=0), slice(None) if cols is None else cols)

    def _gather(self, cols: Indices) -> Floats:
        raw = self.inner._gather(cols)
        return (raw - self.centre[cols, None]) / self.scale[cols, None] * self.root

    def _norms(self, axis: int, order: float) -> Floats:
        if not self.centre.any() and (axis == 0 or self.scale.all()):
            simple = self._norms_without_centre(axis, order)
            if simple is not None:
                return simple
        out = np.zeros(self.shape[1 - axis])
        step = max(1, 2**20 // self.shape[0])
        for start in range(0, self.shape[1], step):
            cols = np.arange(start, min(start + step, self.shape[1]))
            block = np.abs(self._gather(cols))
            if axis == 0:
                out[cols] = np.linalg.norm(block, ord=order, axis=1)
            elif order == np.inf:
                out = np.maximum(out, block.max(axis=0))
            else:
                out = np.hypot(out, np.linalg.norm(block, axis=0))
        return out

    def _norms_without_centre(self, axis: int, order: float) -> Floats | None:
        """Norms that follow from the inner ones; None where only a pass over the columns tells."""
        if axis == 0 and (self.root == self.root[0]).all():
            return self.inner.norms(0, order) * abs(self.root[0]) / np.abs(self.scale)
        if axis == 1 and (self.scale == self.scale[0]).all():
            return self.inner.norms(1, order) * np.abs(self.root) / abs(self.scale[0])
        return None

    def _digest(self, digest: Any) -> None:
        self.inner._digest(digest)
        for part in (self.centre, self.scale, self.root):
            digest.update(part.data)


class InterceptDesign(Design):
    """X with a last column of ones: the intercept of losses for which centring is not enough."""

    def __init__(self, inner: Design) -> None:
        self.inner = inner
        super().__init__((inner.shape[0], inner.shape[1] + 1), inner.dtype)

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
        if inner is None:
            return None
        last = 2 * len(r) * np.finfo(np.float64).eps * np.abs(r).sum(axis=0)
        return np.concatenate([inner, np.asarray(last)[None]])

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

    def prepare_rows(self) -> None:
        super().prepare_rows()
        self.inner.prepare_rows()

    row_layout_bytes = AffineDesign.row_layout_bytes
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

    def _estimate(self, r: Floats, seed: int | None, log_delta: float | None) -> tuple[Floats, Floats]:
        g, bound = self.inner._estimate(r, seed, log_delta)
        total, lost = self._constant(r)
        return np.concatenate([g, total[None]]), np.concatenate([bound, lost[None]])

    def _refine(self, r: Floats, cols: Indices, seed: int | None) -> tuple[Floats, Floats]:
        real, constant = self._split(cols)
        g, bound = np.empty((2, len(cols), *r.shape[1:]))
        g[real], bound[real] = self.inner._refine(r, np.asarray(cols)[real], seed)
        g[constant], bound[constant] = self._constant(r)
        return g, bound

    def _constant(self, r: Floats) -> tuple[Floats, Floats]:
        """The constant column's entry of the product, and a bound on its rounding."""
        unit = 2 * len(r) * np.finfo(np.float64).eps
        return np.asarray(r.sum(axis=0)), np.asarray(unit * np.abs(r).sum(axis=0))

    def _gather(self, cols: Indices) -> Floats:
        real, constant = self._split(cols)
        out = np.empty((len(cols), self.shape[0]))
        out[real] = self.inner._gather(np.asarray(cols)[real])
        out[constant] = 1.0
        return out

    def _norms(self, axis: int, order: float) -> Floats:
        inner = self.inner.norms(axis, order)
        if axis == 0:
            return np.append(inner, 1.0 if order == np.inf else np.sqrt(self.shape[0]))
        return np.maximum(inner, 1.0) if order == np.inf else np.hypot(inner, 1.0)

    def _digest(self, digest: Any) -> None:
        self.inner._digest(digest)
