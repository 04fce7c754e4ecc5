"""The panels of codes of X, of one byte or two: products of decoded columns, summed and joined over tiles.

`CodedMatrix` is to panels what the store is to X: one `CodedTile` for each tile, products, estimates and
bounds summed over row edges and joined over column edges; losses and factors of several tiles join by
Cauchy-Schwarz. It belongs to X itself, so one copy serves every view.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from skpursuit.numerics.arrays import Floats, Indices
from skpursuit.numerics.error_bounds import residual_norms
from skpursuit.numerics.float_range import EPS

if TYPE_CHECKING:
    from skpursuit.data.codes.coded_tile import CodedTile, Cut, PathState
    from skpursuit.data.dense_tile import DenseTile
    from skpursuit.data.store import TileStore

ValueAndBound = tuple[Floats, Floats]  # an estimate and a bound on its error


@dataclass(frozen=True)
class EncodeTransform:
    """Makes the panels of a tile, with a second byte if `fine`: a pure function, and a small value itself."""

    fine: bool = False
    large_arrays: ClassVar[tuple[str, ...]] = ("codes", "second_byte")  # one byte an entry each

    @property
    def label(self) -> str:
        """The name of a folder of such panels."""
        return "panels-fine" if self.fine else "panels"

    def kind(self) -> type:
        """The class of what is made."""
        from skpursuit.data.codes.coded_tile import CodedTile

        return CodedTile

    def __call__(self, tile: DenseTile) -> CodedTile:
        from skpursuit.data.codes.coded_tile import CodedTile

        return CodedTile.build(tile.X, fine=self.fine)


class PathProducts(NamedTuple):
    """Products of the decoded columns with the residuals of consecutive steps.

    Attributes
    ----------
    g : (steps, columns) float32, behind the view
    vector_errors : (steps, p), |g[t, j] - <decoded x_j, R[t]>| <= vector_errors[t] . column_factors[j]
    norms : (steps, blocks), |<x_j - decoded x_j, R[t]>| <= norms[t] . block_errors[:, j]
    represented : function of t that gives what `start_path_product` can go on from after step t; X in several
        tiles has nothing to go on from, and starts again
    """

    g: Floats
    vector_errors: Floats
    norms: Floats
    represented: Callable[[int], PathState | None]


class TileCodeInfo(NamedTuple):
    """What is asked of the codes of a tile beside products."""

    needs_no_rescaling: bool
    costs: list[tuple[int, int]]  # of a product with one byte, and with both
    column_factors: Floats
    norm_bounds: Floats
    errors: Floats


def facts_of(panels: CodedTile) -> TileCodeInfo:
    """The facts of the panels of one tile."""
    costs = [panels.cost(fine) for fine in (False, True)]
    return TileCodeInfo(
        panels.needs_no_rescaling, costs, panels.column_factors, panels.norm_bounds, panels.block_errors
    )


def followed(panels: CodedTile, R: Floats, fine: bool, cut: list[Cut]) -> tuple[Floats, ...]:
    """Products of the decoded columns of a tile with the rows of R, their losses, and norms of R."""
    return panels.start_path_product(R, fine=fine, cut=cut)()[:3]


class CodedMatrix:
    """The panels of all tiles of X, which the store keeps."""

    def __init__(self, store: TileStore, fine: bool = False) -> None:
        # No cycle: the store holds this.
        self.store, self.transform = weakref.proxy(store), EncodeTransform(fine)
        if store.is_one_tile:
            self.only = next(iter(store.map_tiles(lambda panels: panels, tile_transform=self.transform)))[1]
            verbs = ("decoded", "estimate", "start_path_product")  # those of the tile
            vars(self).update({name: getattr(self.only, name) for name in verbs})
        facts = [found for _, found in store.map_tiles(facts_of, tile_transform=self.transform)]
        width = len(store.grid[0])
        grid = [facts[i : i + width] for i in range(0, len(facts), width)]
        self.terms = len(grid)
        self.needs_no_rescaling = all(fact.needs_no_rescaling for fact in facts)
        self.costs = [total_cost(costs) for costs in zip(*(fact.costs for fact in facts))]
        wider = 1.0 if store.is_one_tile else 1.0 + 8 * self.terms * EPS
        self.column_factors, self.norm_bounds = (
            np.hypot.reduce([np.concatenate([getattr(fact, name) for fact in row]) for row in grid]) * wider
            for name in ("column_factors", "norm_bounds")
        )
        self._tile_costs = [[fact.costs for fact in row] for row in grid]
        self._errors = [[fact.errors for fact in row] for row in grid]

    @cached_property
    def block_errors(self) -> Floats:
        """(1 or 2, blocks, columns): bounds of the 2-norm of what one byte and both lose in a block."""
        return np.concatenate([np.concatenate(row, axis=2) for row in self._errors], axis=1)

    def decoded(self, cols: Indices, fine: bool = False) -> Floats:
        """Columns as one byte has them, or both, the rows of a float32 array."""
        out = np.empty((len(cols), self.store.shape[0]), np.float32)
        args = lambda at, places: (fine,)  # noqa: E731
        for place, places, part in self.store.map_column_tiles("decoded", cols, args, self.transform):
            out[places, place.rows] = part
        return out

    def estimate(self, u: Floats, fine: bool = False, cols: Indices | None = None) -> ValueAndBound:
        """X^T u or its entries at `cols`, with bounds; see `CodedTile.estimate`."""
        cols, u = np.arange(self.store.shape[1]) if cols is None else cols, np.ascontiguousarray(u)
        g, bound, size = np.zeros((3, len(cols), *u.shape[1:]))
        args = lambda at, places: (u[at.rows], fine)  # noqa: E731
        for _, places, (part, error) in self.store.map_column_tiles(estimated, cols, args, self.transform):
            g[places] += part
            bound[places] += error
            size[places] += np.abs(part)
        bound = (bound + self.terms * EPS * size) * (1.0 + 2 * self.terms * EPS)
        return np.where(np.isfinite(bound), g, 0.0), bound

    def cost_at(self, cols: Indices, fine: bool) -> tuple[int, int]:
        """What `estimate` reads at these columns: their panels."""
        from skpursuit.kernels.code_intrinsics import PANEL_COLUMNS

        edges, costs = self.store.col_edges, []
        for j, _, local in self.store.split(cols, edges):
            width = int(edges[j + 1] - edges[j])
            read = np.minimum(PANEL_COLUMNS, width - PANEL_COLUMNS * np.unique(local // PANEL_COLUMNS)).sum()
            costs += [tuple(part * int(read) // width for part in row[j][fine]) for row in self._tile_costs]
        return total_cost(costs)

    def start_path_product(
        self, R: Floats, before: PathState | None, dtype: DTypeLike, fine: bool = False
    ) -> Callable[[], tuple[Floats, Floats, Floats, Callable[[int], PathState | None]]]:
        """Products of the decoded columns with the rows of R; see `CodedTile.start_path_product`."""
        cuts: list[list[Cut]] = [[] for _ in range(self.terms)]  # vectors as bytes, for each range of rows
        args = lambda at: (np.ascontiguousarray(R[:, at.rows]), fine, cuts[at.i])  # noqa: E731

        def finish() -> tuple[Floats, Floats, Floats, Callable[[int], None]]:
            g, losses = np.zeros((len(R), self.store.shape[1])), np.zeros((self.terms, len(R), 2))
            norms: list[Floats] = []
            for place, (part, loss, of_rows) in self.store.map_tiles(followed, args, self.transform):
                g[:, place.cols] += part
                # Unlike processors may lose unlike amounts.
                np.maximum(losses[place.i], loss, out=losses[place.i])
                if place.j == 0:  # these are of the residual
                    norms.append(of_rows)
            unit = 2 * self.terms * EPS
            rounding = unit * np.stack([residual_norms(R.T), np.abs(R).sum(axis=1)], axis=1)
            loss = np.sqrt((losses**2).sum(axis=0)) * (1.0 + unit) + rounding
            return g, loss, np.hstack(norms), lambda t: None

        return finish


def estimated(panels: CodedTile, cols: Indices, u: Floats, fine: bool) -> ValueAndBound:
    """Estimates at some columns of a tile."""
    return panels.estimate(u, fine, cols)


def total_cost(costs: Iterable[tuple[int, int]]) -> tuple[int, int]:
    """Entries and bytes of several reads."""
    entries, nbytes = np.sum([*costs, (0, 0)], axis=0).tolist()
    return entries, nbytes
