"""Views of a design: centred, column-scaled, row-weighted. Sparse X stays sparse."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skpursuit.data.base import Design, Floats, Indices, Reads
from skpursuit.data.grams import GATHERED_ENTRIES
from skpursuit.numerics.bounds import EPS, norms_of, raised, total_bound
from skpursuit.numerics.sums import fixed_order_dot, line_norms, scaled_norm, scaled_norms


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
        super().__init__(inner.shape, inner.dtype, inner.reads)
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

    def check_unchanged(self) -> None:
        self.inner.check_unchanged()

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
        """From columns less an entry of their own, which leaves no more of a large mean than centring does.

        Subtracting the centres themselves would tell equal columns apart by the rounding of their means.
        """
        u = self._lift(np.asarray(r, dtype=np.float64))
        if not self.centred:
            return self.correct(self.inner._correlate_columns(u, cols), u.sum(axis=0), cols)
        g = np.empty((len(cols), *u.shape[1:]))
        step = max(1, GATHERED_ENTRIES // self.shape[0])
        for start in range(0, len(cols), step):
            some = slice(start, start + step)
            lines = self.inner._lines(cols[some])[0]
            first = np.array([line[self.anchor] for line in lines])
            near = fixed_order_dot([line - x for line, x in zip(lines, first)], u)
            rest = self.centre[cols[some]] - first
            g[some] = near - np.multiply.outer(rest, u.sum(axis=0))
        return self._per_scale(g, cols)

    @cached_property
    def centred(self) -> bool:
        """Whether anything is subtracted from the columns."""
        return bool(self.centre.any())

    @cached_property
    def anchor(self) -> int:
        """The first row that counts."""
        return int(np.argmax(self.root != 0))

    def correlate_error(self, r: Floats) -> Floats | None:
        u = self._lift(r)
        inner = self.inner.correlate_error(u)
        if not self.centred:
            return None if inner is None else self._bound_per_scale(inner)
        if inner is None:
            inner = self.inner.accumulate_error(u)
        return self._bound_per_scale(inner + total_bound(2 * (len(u) + 2) * EPS, self.centre, u))

    def norm_range(self) -> tuple[float, float]:
        least, most = self.inner.norm_range()
        root, scale = np.abs(self.root[self.root != 0]), np.abs(self.scale)
        most += float(np.abs(self.centre).max()) * sqrt(self.shape[0])
        least *= EPS if self.centred else 1.0  # what is left of a mean is at least its rounding, or nothing
        return float(least * root.min() / scale.max()), float(most * root.max() / scale.min())

    def column_sizes(self) -> Floats:
        """Of the columns before centring too: that is what the rounding of a product is relative to."""
        return self._sized(self.inner.column_sizes())

    def _sized(self, sizes: Floats) -> Floats:
        raw = sizes + np.abs(self.centre) * np.sqrt(self.shape[0])
        return raw * np.abs(self.root).max(initial=0.0) / np.abs(self.scale)

    def offsets(self, cols: Indices) -> Floats:
        taken = np.abs(self.centre[cols]) * scaled_norm(self.root)
        taken += self.inner.offsets(cols) * np.abs(self.root).max(initial=0.0)
        return taken / np.abs(self.scale[cols])

    def is_intercept(self, cols: Indices) -> NDArray[np.bool_]:
        return self.inner.is_intercept(cols)

    def mean_unit(self) -> float:
        return self.inner.mean_unit()

    def squares_fit(self) -> bool:
        factors = np.abs(np.concatenate([self.scale, self.root[self.root != 0]]))
        tame = factors.size > 0 and 1e-10 < factors.min() <= factors.max() < 1e10
        return (tame and self.inner.squares_fit()) or super().squares_fit()

    def product_unit(self) -> float:
        return 2 * self.inner.product_unit()

    def accumulate_error(self, r: Floats) -> Floats:
        u = self._lift(r)
        sums = total_bound(4 * (len(u) + 8) * EPS, self.centre, u)
        return self._bound_per_scale(self.inner.accumulate_error(u) + sums)

    def prepare_rows(self) -> None:
        super().prepare_rows()
        self.inner.prepare_rows()

    def prepare_entries(self) -> None:
        self.inner.prepare_entries()

    def row_layout_bytes(self) -> int:
        return self.inner.row_layout_bytes()

    def pick_cost(self, rows: Indices, cols: Indices) -> tuple[int, int]:
        return self.inner.pick_cost(rows, cols)

    def _pick(self, rows: Indices, cols: Indices) -> Floats:
        return (self.inner._pick(rows, cols) - self.centre[cols]) / self.scale[cols] * self.root[rows]

    def has_twin(self) -> bool:
        return self.inner.has_twin()

    def twin(self, seed: int | None = None, fine: bool = False, steps: bool = False) -> Any:
        """The twin of the inner design: one serves every centring, scaling and weighting."""
        return self.inner.twin(seed, fine, steps)

    def _estimate(
        self, r: Floats, seed: int | None, log_delta: float | None, cols: Indices | None
    ) -> tuple[Floats, Floats]:
        u = self._lift(r)
        g, bound = self.inner._estimate(u, seed, log_delta, cols)
        return self._corrected(u, g, bound, slice(None) if cols is None else cols)

    def _estimate_rows(self, r: Floats, parts: list[Indices]) -> tuple[Floats, Floats]:
        u = self._lift(r)
        g, bound = self.inner._estimate_rows(u, parts)
        for i in range(len(parts)):
            so_far = u[np.concatenate(parts[: i + 1])]
            g[i], bound[i] = self._corrected(so_far, g[i], bound[i], slice(None))
        return g, bound

    def _refine(self, r: Floats, cols: Indices, seed: int | None) -> tuple[Floats, Floats]:
        u = self._lift(r)
        g, bound = self.inner._refine(u, cols, seed)
        return self._corrected(u, g, bound, cols)

    def decoded(self) -> DecodedView | None:
        inner, held = self.inner.decoded(), self.cache.get("decoded")
        if inner is None or held is None or held.inner is not inner:
            held = self.cache["decoded"] = None if inner is None else DecodedView(self, inner)
        return held

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
        unit = 4 * (len(u) + 8) * EPS
        lost = unit * (np.abs(g) + bound) + total_bound(unit, self.centre[cols], u)
        # The rounding of u itself moves an entry by at most eps ||x_j||_inf sum|u|.
        lost += total_bound(4 * EPS, self.inner.column_sizes()[cols], u)
        return self.correct(g, u.sum(axis=0), cols), self._bound_per_scale(bound + lost, cols)

    def _per_scale(self, g: Floats, cols: Indices | slice = slice(None)) -> Floats:
        scale = self.scale[cols]
        return g / (scale if g.ndim == 1 else scale[:, None])

    def _bound_per_scale(self, bound: Floats, cols: Indices | slice = slice(None)) -> Floats:
        return raised(np.abs(self._per_scale(bound, cols)), bound)

    def _accumulate(self, rows: Indices, weights: Floats, out: Floats, cols: Indices | None) -> None:
        root = self.root[rows]
        u = weights * (root if weights.ndim == 1 else root[:, None])
        part = np.zeros_like(out)
        self.inner._accumulate(rows, u, part, cols)
        out += self.correct(part, u.sum(axis=0), slice(None) if cols is None else cols)

    def _gather(self, cols: Indices) -> Floats:
        out = self.inner._gather(cols)
        out -= self.centre[cols, None]
        out /= self.scale[cols, None]
        out *= self.root
        return out

    def fetch(self, cols: Indices, likely: Callable[[], Indices]) -> None:
        self.inner.fetch(cols, likely)

    def _norms(self, axis: int, order: float) -> Floats:
        if not self.centred and (axis == 0 or self.scale.all()):
            simple = self._norms_without_centre(axis, order)
            if simple is not None:
                return simple
        out = np.zeros(self.shape[1 - axis])
        step = max(1, 2**20 // self.shape[0])
        for start in range(0, self.shape[1], step):
            cols = np.arange(start, min(start + step, self.shape[1]))
            self.reads.prepare(*self.cost(cols=cols))
            block = np.abs(self._gather(cols))
            if axis == 0:
                out[cols] = line_norms(block, order)
            elif order == np.inf:
                out = np.maximum(out, block.max(axis=0))
            else:
                out = np.hypot(out, scaled_norms(block.T))
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


class DecodedView:
    """What multiplies a view's decoded columns, from those of the inner design; as `Twin.multiplying`."""

    def __init__(self, view: AffineDesign, inner: Any) -> None:
        self.view = view
        self.inner = inner
        self.estimate_cost = inner.estimate_cost
        self.unit = 4 * (view.shape[0] + 8) * EPS

    def multiplying(self, v: Floats) -> Callable[[], tuple[Floats, Floats]]:
        """(g, loss) for the columns of v; the rounding of centring and weighting is in the loss."""
        u = self.view._lift(v)
        end = self.inner.multiplying(u)

        def finish() -> tuple[Floats, Floats]:
            g, loss = end()
            rounding = self.unit * np.stack([np.abs(u).sum(axis=0), norms_of(u)], axis=1)
            return self.view.correct(g.T, u.sum(axis=0)).T, np.hstack([loss, rounding])

        return finish

    @cached_property
    def factors(self) -> Floats:
        """(columns, p): those of the inner design, the centres and the column sizes, all per scale."""
        raw = np.column_stack([self.inner.factors, np.abs(self.view.centre), self.inner.sizes])
        return raw / np.abs(self.view.scale)[:, None]

    @cached_property
    def sizes(self) -> Floats:
        """Upper bounds of the column norms, before centring too."""
        return self.view._sized(self.inner.sizes)

    def lost(self, r: Floats) -> Floats:
        """Upper bounds of what the codes lose of a product with r."""
        return self.view._bound_per_scale(self.inner.lost(self.view._lift(r))) * (1.0 + self.unit)
