"""Statistics of the columns of X from one pass: weights, means and squares about the means.

Tiles give sums over blocks of 512 rows: the sum of each column, and its squares about the mean of the block,
while the block is in the cache. Blocks are merged in order by Chan's formula, so nothing cancels, and bits
depend on the blocks alone, not on how X is cut. Norms, spreads and norms about any centre follow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from skpursuit.data.read_counter import ReadCounter
from skpursuit.numerics.arrays import Floats

if TYPE_CHECKING:
    from skpursuit.data.store import TilePosition, TileStore

OPERATOR_BATCH = 64  # lines of an operator that are asked for in one call
Blocks = tuple[Floats, Floats, Floats]  # weights (b,), sums (b, d) and squares (b, d) of blocks of rows


@dataclass(frozen=True)
class Survey:
    """Statistics of all columns: total weight of the rows, (weighted) means, and squares about the means."""

    weight: float
    means: Floats
    squares: Floats  # zero where means alone were asked for
    unit: float  # bounds the rounding of means, relative to them
    has_spreads: bool = True  # whether squares were asked for

    def norms(self, centre: Floats | float = 0.0) -> Floats:
        """Norms of the columns less a centre each, of rows times the roots of their weights."""
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused
            return np.sqrt(self.squares + self.weight * (self.means - centre) ** 2)

    @cached_property
    def sizes(self) -> Floats:
        """Norms of the columns."""
        return self.norms()

    def spreads(self, centre: Floats) -> Floats:
        """Root mean squares of the columns less their centres, 0 for those that are only rounding."""
        spreads = self.norms(centre) / np.sqrt(self.weight)
        return np.where(spreads > self.unit * np.abs(centre), spreads, 0.0)


class SurveyBuilder:
    """Surveys in the making, one for each vector of row weights; None stands for ones."""

    def __init__(self, store: TileStore, weights: Sequence[Floats | None], spreads: bool = True) -> None:
        self.weights, self.tiles, self.spreads = weights, 0, spreads
        self.unit = store.first.mean_rounding_unit
        shape = len(weights), store.shape[1]
        self.weight, self.squares = np.zeros(shape), np.zeros(shape)
        self.sums = np.zeros(shape, np.longdouble)

    def arguments(self, place: TilePosition) -> tuple[list[Floats | None], bool]:
        """What `Tile.survey` needs: the weights of its rows, and whether squares are wanted."""
        return [None if weights is None else weights[place.rows] for weights in self.weights], self.spreads

    def add(self, place: TilePosition, found: list[Blocks]) -> None:
        """Merge the blocks of a tile, which lies below those of its columns that came before."""
        self.tiles += 1
        with np.errstate(all="ignore"):  # what is not finite is refused afterwards
            for k, blocks in enumerate(found):
                at = k, place.cols
                weight, sums, squares = self.weight[at], self.sums[at], self.squares[at]
                for w, s, q in zip(*blocks):
                    if w > 0.0:
                        if self.spreads:
                            gap = s / w - (sums / np.where(weight > 0.0, weight, 1.0)).astype(np.float64)
                            squares += q + gap * gap * (weight * w / (weight + w))
                        sums += s
                        weight += w

    def surveys(self) -> list[Survey]:
        """The surveys, when all tiles were added."""
        with np.errstate(all="ignore"):
            means = (self.sums / self.weight).astype(np.float64)
        found = zip(self.weight[:, 0].tolist(), means, self.squares)
        return [Survey(w, mean, squares, self.unit, self.spreads) for w, mean, squares in found]


def operator_survey(store: TileStore, reads: ReadCounter, weights: Floats | None, spreads: bool) -> Survey:
    """A survey of an operator: one product tells the means; columns are fetched where spreads are wanted."""
    w = np.ones(store.shape[0]) if weights is None else weights
    total, d = float(w.sum()), store.shape[1]
    means, squares = store.product(w / total), np.zeros(d)
    for start in range(0, d if spreads else 0, OPERATOR_BATCH):
        part = np.arange(start, min(start + OPERATOR_BATCH, d))
        reads.add_prepared(*store.cost(cols=part))
        held = store.caches.columns.contains_all(part)
        lines = np.stack(store.lines(part)) if held else store.take(part)
        squares[part] = (lines - means[part, None]) ** 2 @ w
    return Survey(total, means, squares, store.first.mean_rounding_unit, spreads)


def block_sums(
    block: Floats, weights: Floats | None, by_columns: bool, spreads: bool
) -> tuple[float, Floats, Floats | float]:
    """Weight, sums and, where spreads are wanted, squares about the mean of the columns of a block of rows.

    Not by BLAS across columns, whose sums of equal columns differ; a single column is summed up as of two.
    """
    width, by_two = block.shape[1], not by_columns and block.shape[1] == 1
    block = np.repeat(block, 2, axis=1) if by_two else block
    w = np.ones(len(block)) if weights is None else weights
    weight = float(w.sum())
    if by_columns:
        sums = np.vecdot(block.T.astype(np.float64, copy=False), w)
    elif weights is None:  # products with ones are the same bits, and take three times as long
        sums = np.add.reduce(block, axis=0, dtype=np.float64)
    else:
        sums = np.einsum("i,ij->j", w, block, dtype=np.float64)
    if not spreads:
        return weight, sums[:width], 0.0
    rest = block - sums / (weight or 1.0)
    scaled = rest if weights is None else rest * weights[:, None]
    squares = np.vecdot(rest.T, scaled.T) if by_columns else np.einsum("ij,ij->j", rest, scaled)
    return weight, sums[:width], squares[:width]
