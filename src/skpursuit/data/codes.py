"""X in one byte an entry or two, behind a view: estimates of V^T r with bounds, for a fraction of the bytes.

Codes belong to X itself (`panel_codes.py`), so one copy serves every view. A design hands out `Codes`: it
takes residuals down through the view, counts what is read, and corrects what comes up, with its rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from skpursuit.data.panel_codes import Bounded, Followed, PanelCodes
from skpursuit.data.reads import Reads
from skpursuit.numerics.arrays import Floats, Indices
from skpursuit.numerics.estimate import total_bound
from skpursuit.numerics.sums import EPS

if TYPE_CHECKING:
    from skpursuit.data.design import Design
    from skpursuit.data.panels import Represented
    from skpursuit.data.store import TileStore

ORDINARY = 1e-15, 1e15  # norms of columns and residuals whose products are within the range of float32


class Codes:
    """The codes of X behind the view of a design."""

    def __init__(self, design: Design, fine: bool) -> None:
        self.design, self.view = design, design.view
        self.panels = kept_panels(design.store, design.reads, fine)

    def estimate(self, r: Floats, cols: Indices | None = None, fine: bool = False) -> Bounded:
        """(g, bound) with |g - V^T r| <= bound, or at `cols`, from one byte an entry or both.

        Residuals in the columns of r share a pass over the codes.
        """
        real = None if cols is None else self.design._real(np.asarray(cols))
        cost = self.panels.costs[fine] if real is None else self.panels.cost_at(real, fine)
        self.design.reads.add(*cost)
        return self._corrected(r, real, cols, self.panels.estimate(self._down(r), fine, real))

    def _down(self, r: Floats) -> Floats:
        if self.view.is_plain:
            return r
        return self.view.spread(self.view.weighted(r), self.design.store.shape[0])

    def _corrected(self, r: Floats, real: Indices | None, cols: Indices | None, known: Bounded) -> Bounded:
        """Estimates of the view from those of X, with those of the constant column in its places."""
        view, design = self.view, self.design
        if not view.is_unmoved:
            where = slice(None) if real is None else real
            known = view.corrected_estimate(view.weighted(r), *known, self.panels.sizes, where)
        if not view.constant:
            return known
        rounding = total_bound(2 * len(r) * EPS, np.ones(1), r)[0]
        total = np.asarray(r, dtype=np.float64).sum(axis=0)
        return with_constant(design, cols, known[0], total), with_constant(design, cols, known[1], rounding)

    # -- products of decoded columns, which can be added up -------------------------------------------------

    @property
    def can_follow(self) -> bool:
        """Whether decoded columns can be multiplied, and products be float32: columns of ordinary size."""
        if self.view.constant or not self.panels.plain:
            return False
        sizes = self.sizes
        return bool(((sizes == 0.0) | ((sizes > ORDINARY[0]) & (sizes < ORDINARY[1]))).all())

    def following(
        self, R: Floats, before: Represented | None = None, fine: bool = False
    ) -> Callable[[], Followed]:
        """Begin with products of the decoded columns with R, the residuals of consecutive steps as rows.

        `before` is what an earlier call represents: then only the way from there is multiplied. What ends it
        returns a `Followed`. Norms of R should be within `ORDINARY`, or zero. `fine` decodes by both bytes.
        """
        self.design.reads.add(*self.panels.costs[fine])
        view, rows = self.view, np.ascontiguousarray(self._down(R.T).T)
        end = self.panels.following(rows, before, np.float32 if view.is_unmoved else np.float64, fine)

        def finish() -> Followed:
            g, loss, norms, represented = end()
            size = np.sqrt((norms * norms).sum(axis=1))[:, None] * (1.0 + self._unit)
            one = np.sqrt(rows.shape[1]) * size  # bounds the 1-norm
            if not view.is_unmoved:
                rounding = self._unit * np.hstack([one, size])
                g, loss = view.corrected(g.T, rows.sum(axis=1)).T, np.hstack([loss, rounding])
            loss += 2.0**-23 * one
            return Followed(g.astype(np.float32, copy=False), loss, norms * (1.0 + self._unit), represented)

        return finish

    def decoded(self, cols: Indices, fine: bool = False) -> Floats:
        """Columns of the view as one byte has them, or both: rows of a float32 array, without bounds."""
        entries, nbytes = self.panels.costs[fine]
        share = len(cols) / max(1, self.design.store.shape[1])
        self.design.reads.add(int(entries * share), int(nbytes * share))
        return self.view.columns(self.panels.decoded(cols, fine), cols)

    @property
    def has_fine(self) -> bool:
        """Whether panels have a second byte."""
        return self.panels.keep.fine

    def block_errors(self, fine: bool) -> Floats:
        """(blocks, columns), for `Followed.norms`. Blocks are those of X, 512 rows or fewer."""
        return self.view.bound_per_scale(self.panels.block_errors[int(fine)].T).T

    @property
    def _unit(self) -> float:
        return 4 * (self.design.shape[0] + 8) * EPS

    @property
    def factors(self) -> Floats:
        """(columns, p): those of the codes, the centres and the column sizes, all per scale."""
        view, coded = self.view, self.panels
        if view.is_unmoved:
            return coded.factors
        centre = np.zeros(len(coded.sizes)) if view.centre is None else np.abs(view.centre)
        raw = np.column_stack([coded.factors, centre, coded.sizes])
        return raw if view.scale is None else raw / np.abs(view.scale)[:, None]

    @property
    def sizes(self) -> Floats:
        """Upper bounds of the column norms, before centring too."""
        return self.view.sizes(self.panels.sizes, self.design.shape[0])


def kept_panels(store: TileStore, reads: Reads, fine: bool) -> PanelCodes:
    """The codes of X that the store keeps, made if they are not there or lack a second byte."""
    held = store.kept.codes
    if held is None or held.keep.fine < fine:
        reads.prepare(*store.cost())
        before, held = held, PanelCodes(store, fine)
        store.kept.codes = held
        if before is not None:
            store.forget(before.keep)
    if not store.kept.finite:  # codes refuse what is not finite, and know the sizes of columns
        store.check_columns(held.sizes)
    return held


def survey_with_codes(store: TileStore, reads: Reads, fine: bool, weights: Floats | None) -> None:
    """Make codes of X on disk and survey it from the same reading, where there are no codes yet."""
    if not store.on_disk or store.kept.codes is not None:
        return
    store.surveying = store.begin_survey(weights)
    try:
        kept_panels(store, reads, fine)
        store.end_survey(store.surveying)
    finally:
        store.surveying = None


def with_constant(design: Design, cols: Indices | None, g: Floats, last: Floats) -> Floats:
    """Entries at `cols` (None: all) from those of the columns of X and that of the constant column."""
    asked = np.arange(design.shape[1]) if cols is None else np.asarray(cols)
    constant = asked == design.store.shape[1]
    out = np.empty((len(asked), *g.shape[1:]))
    out[~constant], out[constant] = g, last
    return out
