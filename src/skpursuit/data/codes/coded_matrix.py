"""The codes of all tiles of X, and the same behind a view: estimates of V^T r with bounds, for few bytes.

`CodedMatrix` is to codes what the store is to X: one `CodedTile` for each tile, products, estimates and
bounds summed over row edges and joined over column edges; losses and factors of several tiles join by
Cauchy-Schwarz. It belongs to X itself, so one copy serves every view. A design hands out `ViewCodes`: it
takes residuals down through the view, counts what is read, and corrects what comes up, with its rounding.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from skpursuit.data.read_counter import ReadCounter
from skpursuit.data.tile import Cost
from skpursuit.data.view import constant_bound
from skpursuit.numerics.arrays import Floats, Indices
from skpursuit.numerics.error_bounds import residual_norms
from skpursuit.numerics.float_range import EPS

if TYPE_CHECKING:
    from skpursuit.data.codes.coded_tile import CodedTile, Cut, PathState
    from skpursuit.data.design import Design
    from skpursuit.data.store import TileStore

F32_SAFE_NORMS = 1e-15, 1e15  # norms of columns and residuals whose products are within the range of float32
ValueAndBound = tuple[Floats, Floats]  # an estimate and a bound on its error


class PathProducts(NamedTuple):
    """Products g of the decoded columns with the residuals of consecutive steps, and what they lose.

    |g[t, j] - <decoded x_j, R[t]>| <= vector_errors[t] . column_factors[j], and
    |<x_j - decoded x_j, R[t]>| <= norms[t] . block_errors[:, j], added in any order. `represented(t)` is what
    `path_products` can go on from after step t; X in several tiles has nothing, and starts again.
    """

    g: Floats  # (steps, columns)
    vector_errors: Floats  # (steps, p)
    norms: Floats  # (steps, blocks)
    represented: Callable[[int], PathState | None]


class TileCodeInfo(NamedTuple):
    """What is asked of the codes of a tile beside products."""

    costs: list[Cost]  # of a product with one byte, and with both
    column_factors: Floats
    norm_bounds: Floats
    block_errors: Floats


def facts_of(codes: CodedTile) -> TileCodeInfo:
    """The facts about the codes of a tile."""
    costs, factors = [codes.cost(fine) for fine in (False, True)], codes.column_factors
    return TileCodeInfo(costs, factors, codes.norm_bounds, codes.block_errors)


def followed(codes: CodedTile, R: Floats, fine: bool, cut: list[Cut]) -> tuple[Floats, ...]:
    """Products of the decoded columns of a tile with the rows of R, their losses, and norms of R."""
    return codes.path_products(R, fine=fine, cut=cut)[:3]


def estimated(codes: CodedTile, cols: Indices, u: Floats, fine: bool) -> ValueAndBound:
    """Estimates at some columns of a tile."""
    return codes.estimate(u, fine, cols)


class CodedMatrix:
    """The codes of all tiles of X, with a second byte if `fine`; the store keeps them."""

    def __init__(self, store: TileStore, fine: bool = False) -> None:
        self.store, self.fine = weakref.proxy(store), fine  # no cycle: the store holds this
        if store.is_one_tile:
            self.only = next(iter(store.map_tiles(lambda codes: codes, fine=fine)))[1]
            verbs = ("decoded", "estimate", "path_products")  # those of the tile
            vars(self).update({name: getattr(self.only, name) for name in verbs})
        facts = [found for _, found in store.map_tiles(facts_of, fine=fine)]
        width = len(store.grid[0])
        self._facts = [facts[i : i + width] for i in range(0, len(facts), width)]
        self.terms = len(self._facts)
        self.costs = [total_cost(costs) for costs in zip(*(fact.costs for fact in facts))]
        wider = 1.0 if store.is_one_tile else 1.0 + 8 * self.terms * EPS
        self.column_factors, self.norm_bounds = (
            np.hypot.reduce([np.concatenate([getattr(fact, name) for fact in row]) for row in self._facts])
            * wider
            for name in ("column_factors", "norm_bounds")
        )

    @cached_property
    def block_errors(self) -> Floats:
        """(1 or 2, blocks, columns): bounds of the 2-norm of what one byte and both lose in a block."""
        rows = [np.concatenate([fact.block_errors for fact in row], axis=2) for row in self._facts]
        return np.concatenate(rows, axis=1)

    def decoded(self, cols: Indices, fine: bool = False) -> Floats:
        """Columns as one byte has them, or both, the rows of a float32 array."""
        out = np.empty((len(cols), self.store.shape[0]), np.float32)
        args = lambda at, places: (fine,)  # noqa: E731
        for place, places, part in self.store.map_column_tiles("decoded", cols, args, self.fine):
            out[places, place.rows] = part
        return out

    def estimate(self, u: Floats, fine: bool = False, cols: Indices | None = None) -> ValueAndBound:
        """X^T u or its entries at `cols`, with bounds; see `CodedTile.estimate`."""
        cols, u = np.arange(self.store.shape[1]) if cols is None else cols, np.ascontiguousarray(u)
        g, bound, size = np.zeros((3, len(cols), *u.shape[1:]))
        args = lambda at, places: (u[at.rows], fine)  # noqa: E731
        for _, places, (part, error) in self.store.map_column_tiles(estimated, cols, args, self.fine):
            g[places] += part
            bound[places] += error
            size[places] += np.abs(part)
        bound = (bound + self.terms * EPS * size) * (1.0 + 2 * self.terms * EPS)
        return np.where(np.isfinite(bound), g, 0.0), bound

    def cost_at(self, cols: Indices, fine: bool) -> Cost:
        """What `estimate` reads at these columns: their panels."""
        from skpursuit.kernels.llvm import PANEL_COLUMNS

        edges, costs = self.store.col_edges, []
        for j, _, local in self.store.split(cols, edges):
            width = int(edges[j + 1] - edges[j])
            read = np.minimum(PANEL_COLUMNS, width - PANEL_COLUMNS * np.unique(local // PANEL_COLUMNS)).sum()
            costs += [[part * int(read) // width for part in row[j].costs[fine]] for row in self._facts]
        return total_cost(costs)

    def path_products(
        self, R: Floats, before: PathState | None, dtype: DTypeLike, fine: bool = False
    ) -> PathProducts:
        """Products of the decoded columns with the rows of R; see `CodedTile.path_products`."""
        cuts: list[list[Cut]] = [[] for _ in range(self.terms)]  # vectors as bytes, for each range of rows
        args = lambda at: (np.ascontiguousarray(R[:, at.rows]), fine, cuts[at.i])  # noqa: E731
        g, losses = np.zeros((len(R), self.store.shape[1])), np.zeros((self.terms, len(R), 2))
        norms: list[Floats] = []
        for place, (part, loss, of_rows) in self.store.map_tiles(followed, args, self.fine):
            g[:, place.cols] += part
            # Unlike processors may lose unlike amounts.
            np.maximum(losses[place.i], loss, out=losses[place.i])
            if place.j == 0:  # these are of the residual
                norms.append(of_rows)
        unit = 2 * self.terms * EPS
        rounding = unit * np.stack([residual_norms(R.T), np.abs(R).sum(axis=1)], axis=1)
        loss = np.sqrt((losses**2).sum(axis=0)) * (1.0 + unit) + rounding
        return PathProducts(g, loss, np.hstack(norms), lambda t: None)


def total_cost(costs: Iterable[Iterable[int]]) -> Cost:
    """Entries and bytes of several reads."""
    entries, nbytes = (sum(parts) for parts in zip((0, 0), *costs))
    return entries, nbytes


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
        view, design = self.view, self.design
        design.reads.add(*cost)
        known = self.panels.estimate(self._down(r), second_byte, real)
        if not view.has_raw_entries:
            where = slice(None) if real is None else real
            known = view.correct_estimate(view.scale_rows(r), *known, self.panels.norm_bounds, where)
        if design.constant is None:
            return known
        totals = r.sum(axis=0), constant_bound(r)
        g, bound = (design._join_constant(part, last, cols) for part, last in zip(known, totals))
        return g, bound

    def _down(self, r: Floats) -> Floats:
        if self.view.is_identity:
            return r
        return self.view.scatter_rows(self.view.scale_rows(r), self.design.store.shape[0])

    # -- products of decoded columns, which can be added up -------------------------------------------------

    @property
    def supports_path_products(self) -> bool:
        """Whether decoded columns can be multiplied, and products be float32: columns of ordinary size."""
        if self.view.constant:
            return False
        sizes = self.norm_bounds
        return bool(((sizes == 0.0) | ((sizes > F32_SAFE_NORMS[0]) & (sizes < F32_SAFE_NORMS[1]))).all())

    def path_products(
        self, R: Floats, before: PathState | None = None, second_byte: bool = False
    ) -> PathProducts:
        """Products of the decoded columns with R, the residuals of consecutive steps as rows.

        `before` is what an earlier call represents: then only the way from there is multiplied. Norms of R
        should be within `F32_SAFE_NORMS`, or zero. `second_byte` decodes by both bytes.
        """
        self.design.reads.add(*self.panels.costs[second_byte])
        view, rows = self.view, np.ascontiguousarray(self._down(R.T).T)
        dtype = np.float32 if view.has_raw_entries else np.float64
        g, loss, norms, represented = self.panels.path_products(rows, before, dtype, second_byte)
        size = np.sqrt((norms * norms).sum(axis=1))[:, None] * (1.0 + self._unit)
        one = np.sqrt(rows.shape[1]) * size  # bounds the 1-norm
        if not view.has_raw_entries:
            rounding = self._unit * np.hstack([one, size])
            g, loss = view.correct_product(g.T, rows.sum(axis=1)).T, np.hstack([loss, rounding])
        loss += 2.0**-23 * one
        return PathProducts(g.astype(np.float32, copy=False), loss, norms * (1.0 + self._unit), represented)

    def decoded(self, cols: Indices, second_byte: bool = False) -> Floats:
        """Columns of the view as one byte has them, or both: rows of a float32 array, without bounds."""
        entries, nbytes = self.panels.costs[second_byte]
        share = len(cols) / max(1, self.design.store.shape[1])
        self.design.reads.add(int(entries * share), int(nbytes * share))
        return self.view.columns(self.panels.decoded(cols, second_byte), cols)

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
    if held is None or held.fine < second_byte:
        reads.add_prepared(*store.cost())
        store.drop_codes()
        held = store.caches.codes = CodedMatrix(store, second_byte)
    if not store.caches.finite:  # codes refuse what is not finite, and know the sizes of columns
        store.check_columns(held.norm_bounds)
    return held


def survey_with_codes(
    store: TileStore, reads: ReadCounter, second_byte: bool, weights: Floats | None, spreads: bool
) -> None:
    """Make codes of X and survey it from the same reading, where that can be and there are no codes yet."""
    # It can be on disk, and in memory where means alone are wanted of arrays in C order.
    tiles = [tile for row in store.grid for tile in row if store.in_memory]
    by_rows = all(tile.fast_axis == 1 < tile.shape[0] for tile in tiles) and weights is None and not spreads
    if store.caches.codes is not None or not (store.on_disk or (store.in_memory and by_rows)):
        return
    store.surveying = store.begin_survey(weights, spreads or store.on_disk)
    try:
        kept_panels(store, reads, second_byte)
        store.end_survey(store.surveying)
    except ValueError:
        store.check_finite(reads)  # names the column
        raise
    finally:
        store.surveying = None
