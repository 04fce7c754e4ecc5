"""Some rows of a design. Rows of weight zero are left out by it, so that nothing can depend on them.

A weight of zero must mean that the row is not there: not in a fit, a norm or a draw, nor in a rule that uses
the number of rows. A factor of zero is not enough, because zero times an infinite loss is NaN. So such rows
are left out for good: n, norms and residuals are those of the others.

X is not copied, and its norms, layouts and codes serve every choice of rows, those of all folds among them. A
residual is spread over all rows of X, with zeros in those that are left out: X is finite, so that these add
exactly nothing. Bounds on column norms are those of all rows: error bounds may be wider than need be, never
too narrow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from skpursuit.data.affine import AffineDesign
from skpursuit.data.base import Design, Floats, Indices
from skpursuit.numerics.sums import line_norms


class RowsDesign(Design):
    """The rows of a design at `rows`, which ascend."""

    def __init__(self, inner: Design, rows: Indices) -> None:
        self.inner = inner
        self.rows = np.asarray(rows, dtype=np.intp)
        super().__init__((len(self.rows), inner.shape[1]), inner.dtype, inner.reads)

    reads = AffineDesign.reads

    def counted(self) -> RowsDesign:
        other = RowsDesign.__new__(RowsDesign)
        other.__dict__.update(self.__dict__)
        other.inner = self.inner.counted()
        return other

    def _lift(self, r: Floats) -> Floats:
        """Spread residuals over all rows of X, zero in those that are left out."""
        u = np.zeros((self.inner.shape[0], *r.shape[1:]))
        u[self.rows] = r
        return u

    def cost(self, rows: Indices | None = None, cols: Indices | None = None) -> tuple[int, int]:
        return self.inner.cost(None if rows is None else self.rows[rows], cols)

    def _correlate(self, r: Floats) -> Floats:
        return self.inner._correlate(self._lift(r))

    def _correlate_rows(self, r: Floats, rows: Indices) -> Floats:
        return self.inner._correlate_rows(self._lift(r), self.rows[rows])

    def _correlate_columns(self, r: Floats, cols: Indices) -> Floats:
        return self.inner._correlate_columns(self._lift(r), cols)

    def _weighted_sums(self, weights: Floats) -> Floats:
        return self.inner._weighted_sums(self._lift(weights))

    def correlate_error(self, r: Floats) -> Floats | None:
        return self.inner.correlate_error(self._lift(r))

    def accumulate_error(self, r: Floats) -> Floats:
        return self.inner.accumulate_error(self._lift(r))

    def column_sizes(self) -> Floats:
        return self.inner.column_sizes()

    def offsets(self, cols: Indices) -> Floats:
        return self.inner.offsets(cols)

    def squares_fit(self) -> bool:
        return self.inner.squares_fit()

    def product_unit(self) -> float:
        return self.inner.product_unit()

    def _accumulate(self, rows: Indices, weights: Floats, out: Floats, cols: Indices | None) -> None:
        self.inner._accumulate(self.rows[rows], weights, out, cols)

    def pick_cost(self, rows: Indices, cols: Indices) -> tuple[int, int]:
        return self.inner.pick_cost(self.rows[rows], cols)

    def _pick(self, rows: Indices, cols: Indices) -> Floats:
        return self.inner._pick(self.rows[rows], cols)

    def prepare_rows(self) -> None:
        super().prepare_rows()
        self.inner.prepare_rows()

    row_layout_bytes = AffineDesign.row_layout_bytes
    mean_unit = AffineDesign.mean_unit
    has_twin = AffineDesign.has_twin
    twin = AffineDesign.twin
    fetch = AffineDesign.fetch
    is_intercept = AffineDesign.is_intercept
    prepare_entries = AffineDesign.prepare_entries
    check_unchanged = AffineDesign.check_unchanged

    def is_prepared(self, kind: str) -> bool:
        return super().is_prepared(kind) if kind == "sketch" else self.inner.is_prepared(kind)

    def sketch(self) -> Any:
        """A sketch of these rows: its levels are means over rows, and guesses from others are not bounded."""
        key = ("sketch", None)
        if key not in self.cache:
            from skpursuit.data.sketch_twin import SketchTwin

            self.inner.reads.prepare(*self.cost())
            panels = (self._gather(cols).T.astype(self.dtype) for cols in self._panels(2**24))
            self.cache[key] = SketchTwin.joined([SketchTwin.build(panel) for panel in panels])
        return self.cache[key]

    def _estimate(
        self, r: Floats, seed: int | None, log_delta: float | None, cols: Indices | None
    ) -> tuple[Floats, Floats]:
        return self.inner._estimate(self._lift(r), seed, log_delta, cols)

    def _estimate_rows(self, r: Floats, parts: list[Indices]) -> tuple[Floats, Floats]:
        return self.inner._estimate_rows(self._lift(r), [self.rows[part] for part in parts])

    def _refine(self, r: Floats, cols: Indices, seed: int | None) -> tuple[Floats, Floats]:
        return self.inner._refine(self._lift(r), cols, seed)

    def decoded(self) -> DecodedRows | None:
        inner, held = self.inner.decoded(), self.cache.get("decoded")
        if inner is None or held is None or held.inner is not inner:
            held = self.cache["decoded"] = None if inner is None else DecodedRows(self, inner)
        return held

    def _gather(self, cols: Indices) -> Floats:
        return np.take(self.inner._gather(cols), self.rows, axis=1)

    def _panels(self, entries: int) -> Iterator[Indices]:
        """All columns, in groups of about this many entries."""
        step = max(1, entries // self.inner.shape[0])
        for start in range(0, self.shape[1], step):
            yield np.arange(start, min(start + step, self.shape[1]))

    def _norms(self, axis: int, order: float) -> Floats:
        if axis == 1:
            return self.inner.norms(1, order)[self.rows]
        out = np.zeros(self.shape[1])
        for cols in self._panels(2**20):
            self.inner.reads.prepare(*self.cost(cols=cols))
            out[cols] = line_norms(self._gather(cols), order)
        return out

    def _digest(self, digest: Any) -> None:
        self.inner._digest(digest)
        digest.update(self.rows.astype(np.int64).data)


class DecodedRows:
    """What multiplies decoded columns of some rows, from those of all rows; as `Twin.multiplying`."""

    def __init__(self, view: RowsDesign, inner: Any) -> None:
        self.view = view
        self.inner = inner
        self.estimate_cost = inner.estimate_cost
        self.factors = inner.factors
        self.sizes = inner.sizes

    def multiplying(self, v: Floats) -> Callable[[], tuple[Floats, Floats]]:
        """(g, loss) for the columns of v."""
        return self.inner.multiplying(self.view._lift(v))

    def lost(self, r: Floats) -> Floats:
        """Upper bounds of what the codes lose of a product with r."""
        return self.inner.lost(self.view._lift(r))


def rows_that_count(design: Design, y: Any, weights: Floats | None) -> tuple[Design, Any, Floats | None]:
    """The same problem without its rows of weight zero."""
    if weights is None or weights.all():
        return design, y, weights
    rows = np.flatnonzero(weights)
    return RowsDesign(design, rows), y[rows], weights[rows]
