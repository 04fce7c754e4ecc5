"""X in one byte an entry or two, behind a view: estimates of V^T r with bounds, for a fraction of the bytes.

Codes belong to X itself (`coded_matrix.py`), so one copy serves every view. A design hands out `ViewCodes`:
it takes residuals down through the view, counts what is read, and corrects what comes up, with its rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from skpursuit.data.codes.coded_matrix import CodedMatrix, PathProducts, ValueAndBound
from skpursuit.data.read_counter import ReadCounter
from skpursuit.data.view import column_sums, constant_bound
from skpursuit.numerics.arrays import Floats, Indices
from skpursuit.numerics.float_range import EPS

if TYPE_CHECKING:
    from skpursuit.data.codes.coded_tile import PathState
    from skpursuit.data.design import Design
    from skpursuit.data.store import TileStore

F32_SAFE_NORMS = 1e-15, 1e15  # norms of columns and residuals whose products are within the range of float32


class ViewCodes:
    """The codes of X behind the view of a design."""

    def __init__(self, design: Design, second_byte: bool) -> None:
        self.design, self.view = design, design.view
        self.panels = kept_panels(design.store, design.reads, second_byte)

    def estimate(self, r: Floats, cols: Indices | None = None, second_byte: bool = False) -> ValueAndBound:
        """(g, bound) with |g - V^T r| <= bound, or at `cols`, from one byte an entry or both.

        Residuals in the columns of r share a pass over the codes.
        """
        real = None if cols is None else self.design._without_constant(np.asarray(cols))
        cost = self.panels.costs[second_byte] if real is None else self.panels.cost_at(real, second_byte)
        self.design.reads.add(*cost)
        return self._corrected(r, real, cols, self.panels.estimate(self._down(r), second_byte, real))

    def _down(self, r: Floats) -> Floats:
        if self.view.is_identity:
            return r
        return self.view.scatter_rows(self.view.scale_rows(r), self.design.store.shape[0])

    def _corrected(
        self, r: Floats, real: Indices | None, cols: Indices | None, known: ValueAndBound
    ) -> ValueAndBound:
        """Estimates of the view from those of X, with those of the constant column in its places."""
        view, design = self.view, self.design
        if not view.has_raw_entries:
            where = slice(None) if real is None else real
            known = view.correct_estimate(view.scale_rows(r), *known, self.panels.norm_bounds, where)
        if design.constant is None:
            return known
        totals = column_sums(r), constant_bound(r)
        g, bound = (design._join_constant(part, last, cols) for part, last in zip(known, totals))
        return g, bound

    # -- products of decoded columns, which can be added up -------------------------------------------------

    @property
    def supports_path_products(self) -> bool:
        """Whether decoded columns can be multiplied, and products be float32: columns of ordinary size."""
        if self.view.constant or not self.panels.needs_no_rescaling:
            return False
        sizes = self.norm_bounds
        return bool(((sizes == 0.0) | ((sizes > F32_SAFE_NORMS[0]) & (sizes < F32_SAFE_NORMS[1]))).all())

    def start_path_product(
        self, R: Floats, before: PathState | None = None, second_byte: bool = False
    ) -> Callable[[], PathProducts]:
        """Begin with products of the decoded columns with R, the residuals of consecutive steps as rows.

        `before` is what an earlier call represents: then only the way from there is multiplied. What ends it
        returns a `PathProducts`. Norms of R should be within `F32_SAFE_NORMS`, or zero. `second_byte` decodes
        by both bytes.
        """
        self.design.reads.add(*self.panels.costs[second_byte])
        view, rows = self.view, np.ascontiguousarray(self._down(R.T).T)
        dtype = np.float32 if view.has_raw_entries else np.float64
        end = self.panels.start_path_product(rows, before, dtype, second_byte)

        def finish() -> PathProducts:
            g, loss, norms, represented = end()
            size = np.sqrt((norms * norms).sum(axis=1))[:, None] * (1.0 + self._unit)
            one = np.sqrt(rows.shape[1]) * size  # bounds the 1-norm
            if not view.has_raw_entries:
                rounding = self._unit * np.hstack([one, size])
                g, loss = view.correct_product(g.T, rows.sum(axis=1)).T, np.hstack([loss, rounding])
            loss += 2.0**-23 * one
            g = g.astype(np.float32, copy=False)
            return PathProducts(g, loss, norms * (1.0 + self._unit), represented)

        return finish

    def decoded(self, cols: Indices, second_byte: bool = False) -> Floats:
        """Columns of the view as one byte has them, or both: rows of a float32 array, without bounds."""
        entries, nbytes = self.panels.costs[second_byte]
        share = len(cols) / max(1, self.design.store.shape[1])
        self.design.reads.add(int(entries * share), int(nbytes * share))
        return self.view.columns(self.panels.decoded(cols, second_byte), cols)

    @property
    def has_second_byte(self) -> bool:
        """Whether panels have a second byte."""
        return self.panels.transform.fine

    def block_errors(self, second_byte: bool) -> Floats:
        """(blocks, columns), for `PathProducts.norms`. Blocks are those of X, 512 rows or fewer."""
        return self.view.bound_per_scale(self.panels.block_errors[int(second_byte)].T).T

    @property
    def _unit(self) -> float:
        return 4 * (self.design.shape[0] + 8) * EPS

    @property
    def column_factors(self) -> Floats:
        """(columns, p): those of the codes, the centres and the column sizes, all per scale."""
        view, coded = self.view, self.panels
        if view.has_raw_entries:
            return coded.column_factors
        centre = np.zeros(len(coded.norm_bounds)) if view.centre is None else np.abs(view.centre)
        raw = np.column_stack([coded.column_factors, centre, coded.norm_bounds])
        return raw if view.scale is None else raw / np.abs(view.scale)[:, None]

    @cached_property
    def norm_bounds(self) -> Floats:
        """Upper bounds of the column norms, before centring too."""
        return self.view.norm_bounds(self.panels.norm_bounds, self.design.shape[0])


def kept_panels(store: TileStore, reads: ReadCounter, second_byte: bool) -> CodedMatrix:
    """The codes of X that the store keeps, made if they are not there or lack a second byte."""
    held = store.caches.codes
    if held is None or held.transform.fine < second_byte:
        reads.add_prepared(*store.cost())
        before, held = held, CodedMatrix(store, second_byte)
        store.caches.codes = held
        if before is not None:
            store.drop_transformed(before.transform)
    if not store.caches.finite:  # codes refuse what is not finite, and know the sizes of columns
        store.check_columns(held.norm_bounds)
    return held


def survey_with_codes(
    store: TileStore, reads: ReadCounter, second_byte: bool, weights: Floats | None
) -> None:
    """Make codes of X on disk and survey it from the same reading, where there are no codes yet."""
    if not store.on_disk or store.caches.codes is not None:
        return
    store.surveying = store.begin_survey(weights)
    try:
        kept_panels(store, reads, second_byte)
        store.end_survey(store.surveying)
    finally:
        store.surveying = None
