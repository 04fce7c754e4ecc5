"""X in few bits an entry, behind a view: estimates of V^T r with bounds, for a fraction of the bytes.

`CodedX` is to codes what the store is to X: one `QuantizedTile` for each tile, estimates and their bounds
summed over row edges and joined over column edges. It belongs to X itself, so one copy serves every view.
`Codes` is what a design hands out: it takes residuals down through the view, counts what is read, and
corrects what comes up, the rounding of that included.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from math import log
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from skpursuit.data.norms import safe_roots
from skpursuit.data.panel_codes import Followed, PanelCodes, TileSums, added, itself, summed_estimates
from skpursuit.data.reads import Reads
from skpursuit.numerics.arrays import Floats, Indices
from skpursuit.numerics.estimate import norms_of, total_bound
from skpursuit.numerics.sums import EPS

if TYPE_CHECKING:
    from skpursuit.data.design import Design
    from skpursuit.data.panels import Represented
    from skpursuit.data.store import Place, TileStore

Bounded = tuple[Floats, Floats]  # an estimate and a bound on its error
COST_VERBS = ("estimate_cost", "rows_cost")
ORDINARY = 1e-15, 1e15  # norms of columns and residuals whose products are within the range of float32


@dataclass(frozen=True)
class Encoding:
    """How a tile is encoded: rounded to nearest or, with a seed, at random, and whether by rows too."""

    seed: int | None
    steps: bool
    planes: ClassVar[tuple[str, ...]] = ("codes", "steps")  # one and two bytes an entry

    @property
    def label(self) -> str:
        """The name of a folder of such codes."""
        return ("nearest" if self.seed is None else f"seed{self.seed}") + "-steps" * self.steps

    def kind(self) -> type:
        """The class of what is made."""
        from skpursuit.data.quantized import QuantizedTile

        return QuantizedTile

    def __call__(self, tile: Any, number: int) -> Any:
        from skpursuit.data.quantized import QuantizedTile

        rng = None if self.seed is None else np.random.default_rng(self.seed)
        if rng is not None and number > 0:
            rng = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(number - 1,)))
        return QuantizedTile.build(tile.X, rng, self.steps)


class CodeFacts(NamedTuple):
    """What is asked of the codes of a tile beside products: a few numbers a column."""

    peak: float
    row_squares: Floats | None
    costs: dict[str, tuple[tuple[int, int], tuple[int, int]]]  # of no line and of one, by verb

    def cost(self, verb: str, lines: int) -> tuple[int, int]:
        """Entries and bytes that a verb reads for so many columns, or rows."""
        none, one = self.costs[verb]
        return none[0] + lines * (one[0] - none[0]), none[1] + lines * (one[1] - none[1])


def facts_of(coded: Any) -> CodeFacts:
    """The facts of one quantised tile."""
    costs = {verb: (getattr(coded, verb)(0), getattr(coded, verb)(1)) for verb in COST_VERBS}
    return CodeFacts(coded.peak, coded.row_squares, costs)


class CodedX:
    """The codes of X with one rounding: panels of one byte an entry or two, and codes by rows.

    Panels (`panel_codes.py`) are for products with all columns. Codes that are rounded at random and codes by
    rows are `QuantizedTile`; they estimate where there are no panels.
    """

    def __init__(self, store: TileStore, seed: int | None) -> None:
        self.store, self.seed = weakref.proxy(store), seed  # the store keeps its codes: no cycle
        self.keep: Encoding | None = None
        self.facts: list[list[CodeFacts]] = []
        self._panels: PanelCodes | None = None

    def has(self, fine: bool, steps: bool) -> bool:
        """Whether there are such codes already."""
        there = self.keep is not None or self._panels is not None
        return there and self.has_fine >= fine and self.has_steps >= steps

    def make(self, fine: bool, steps: bool, reads: Reads) -> None:
        """Make such codes, keeping those that are there."""
        if self.seed is not None or (steps and not self.has_steps):
            self._make_tiles(Encoding(self.seed, steps), reads)
        if self.seed is None and not self.has(fine, steps):
            self._make_panels(fine, reads)

    def _make_tiles(self, keep: Encoding, reads: Reads) -> None:
        reads.prepare(*self.store.cost())
        if self.store.is_one_tile:
            self._only = next(iter(self.store.run(itself, keep=keep)))[1]
            facts = [facts_of(self._only)]
        else:
            facts = [found for _, found in self.store.run(facts_of, keep=keep)]
        width = len(self.store.grid[0])
        self.facts = [facts[i : i + width] for i in range(0, len(facts), width)]
        self.keep = keep  # last: an interrupt before it leaves what was there

    def _make_panels(self, fine: bool, reads: Reads) -> PanelCodes:
        reads.prepare(*self.store.cost())
        before, made = self._panels, PanelCodes(self.store, fine)
        self._panels = made
        if before is not None:
            self.store.forget(before.keep)
        return made

    def panels(self, reads: Reads) -> PanelCodes:
        """The panels, made if they are not there: codes by rows may have come before them."""
        return self._make_panels(False, reads) if self._panels is None else self._panels

    @property
    def only(self) -> Any:
        """The codes of the only tile: those of single columns, where they are there."""
        return self._only if self.keep is not None else self.panels(Reads()).only

    @property
    def has_fine(self) -> bool:
        """Whether there is a second byte of each entry."""
        return self._panels is not None and self._panels.keep.fine

    @property
    def has_steps(self) -> bool:
        """Whether there are codes by rows."""
        return self.keep is not None and self.keep.steps

    @property
    def peak(self) -> float:
        """A number with peak <= the largest |entry| <= 2^80 peak."""
        if self._panels is not None:
            return self._panels.peak
        return max(facts.peak for row in self.facts for facts in row)

    def row_squares(self) -> Floats | None:
        """Sums of squares of the rows, where they came with the codes."""
        return self.facts[0][0].row_squares if self.facts and self.store.is_one_tile else None

    def cost(self, verb: str, cols: Indices | None = None) -> tuple[int, int]:
        """What a verb of all columns or some reads."""
        if self._estimates_by_panels(cols) and verb == "estimate_cost":
            return self.panels(Reads()).cost
        if self.store.is_one_tile:
            return getattr(self.only, verb)(None if cols is None else len(cols))
        asked = np.arange(self.store.shape[1]) if cols is None else cols
        return added(
            row[j].cost(verb, len(local))
            for j, _, local in self.store.split(asked, self.store.col_edges)
            for row in self.facts
        )

    def _estimates_by_panels(self, cols: Indices | None) -> bool:
        return self._panels is not None and cols is None

    def rows_cost(self, rows: Indices) -> tuple[int, int]:
        """What `rows` reads for these rows in all."""
        if self.store.is_one_tile:
            return self.only.rows_cost(len(rows))
        found = self.store.split(rows, self.store.row_edges)
        return added(tile.cost("rows_cost", len(local)) for i, _, local in found for tile in self.facts[i])

    def estimate(self, u: Floats, log_delta: float | None, cols: Indices | None) -> Bounded:
        """X^T u or its entries at `cols`, from one byte an entry; see `QuantizedTile.estimate`."""
        if self._estimates_by_panels(cols):
            return self.panels(Reads()).estimate(u)
        if self.store.is_one_tile:
            return self.only.estimate(u, log_delta, cols)
        each = None if log_delta is None else log_delta - log(len(self.facts))  # one chance for each sum
        return summed_estimates(self.store, u, each, cols, self.keep)

    def rows(self, u: Floats, parts: list[Indices]) -> Bounded:
        """Sums over the rows up to the end of each part, from two bytes an entry."""
        if self.store.is_one_tile:
            return self.only.estimate_rows(u, parts)

        def args(at: Place) -> tuple[Any, ...] | None:
            inside = [part[(part >= at.rows.start) & (part < at.rows.stop)] for part in parts]
            local = [part - at.rows.start for part in inside]
            return (np.ascontiguousarray(u[at.rows]), local) if any(map(len, local)) else None

        sums = TileSums((len(parts), self.store.shape[1], *u.shape[1:]))
        for place, known in self.store.run("estimate_rows", args, self.keep):
            sums.add((slice(None), place.cols), *known)
        return sums.total(len(self.facts))


class Codes:
    """The codes of X behind the view of a design."""

    def __init__(self, design: Design, seed: int | None, fine: bool, steps: bool) -> None:
        self.design, self.view = design, design.view
        self.coded = coded_x(design.store, design.reads, seed, fine, steps)

    def estimate(self, r: Floats, log_delta: float | None = None, cols: Indices | None = None) -> Bounded:
        """(g, bound) with |g - V^T r| <= bound, or at `cols`, from one byte an entry."""
        real = None if cols is None else self.design._real(np.asarray(cols))
        if real is not None and self.coded.keep is None:  # single columns are not read from panels
            self.coded.make(False, True, self.design.reads)
        self.design.reads.add(*self.coded.cost("estimate_cost", real))
        return self._corrected(r, real, cols, self.coded.estimate(self._down(r), log_delta, real))

    def refine(self, r: Floats, cols: Indices | None = None) -> Bounded:
        """(g, bound) with |g - V^T r| <= bound, or at `cols`, from two bytes an entry."""
        real = None if cols is None else self.design._real(np.asarray(cols))
        self.design.reads.add(*(self.panels.fine_cost if real is None else self.panels.cost_at(real)))
        return self._corrected(r, real, cols, self.panels.estimate(self._down(r), True, real))

    def rows(self, r: Floats, parts: list[Indices]) -> Bounded:
        """(g, bound) of the sums over the rows up to the end of each part, from two bytes an entry."""
        view, u = self.view, self.view.weighted(r)
        below = [view.rows_of_x(part) for part in parts]
        self.design.reads.add(*self.coded.rows_cost(np.concatenate(below)))
        g, bound = self.coded.rows(view.spread(u, self.design.store.shape[0]), below)
        if view.is_unmoved and not view.constant:
            return g, bound
        both = [
            self._corrected(r, None, None, (g[i], bound[i]), np.concatenate(parts[: i + 1]))
            for i in range(len(parts))
        ]
        return np.stack([value for value, _ in both]), np.stack([error for _, error in both])

    def _down(self, r: Floats) -> Floats:
        if self.view.is_plain:
            return r
        return self.view.spread(self.view.weighted(r), self.design.store.shape[0])

    def _corrected(
        self,
        r: Floats,
        real: Indices | None,
        cols: Indices | None,
        known: Bounded,
        rows: Indices | None = None,
    ) -> Bounded:
        """Estimates of the view from those of X, with those of the constant column in its places."""
        view, design = self.view, self.design
        if not view.is_unmoved:
            u = view.weighted(r)
            u, sizes = u if rows is None else u[rows], design.store.sizes(design.reads)
            known = view.corrected_estimate(u, *known, sizes, slice(None) if real is None else real)
        if not view.constant:
            return known
        r = r if rows is None else r[rows]
        rounding = total_bound(2 * len(r) * EPS, np.ones(1), r)[0]
        total = np.asarray(r, dtype=np.float64).sum(axis=0)
        return with_constant(design, cols, known[0], total), with_constant(design, cols, known[1], rounding)

    # -- products of decoded columns, which can be added up -------------------------------------------------

    @property
    def can_multiply(self) -> bool:
        """Whether decoded columns can be multiplied."""
        return not self.view.constant and self.panels.plain

    @property
    def panels(self) -> PanelCodes:
        """What multiplies the decoded columns, made if it is not there."""
        return self.coded.panels(self.design.reads)

    def multiplying(self, v: Floats) -> Callable[[], Bounded]:
        """Begin with products of the decoded columns with those of v; what ends it returns (g, loss).

        |g[k, j] - <decoded x_j, v_k>| <= loss[k] . factors[j]; see `QuantizedTile.multiplying`. The rounding
        of centring and weighting is in the loss.
        """
        self.design.reads.add(*self.panels.cost)
        view = self.view
        u = view.weighted(v)
        end = self.panels.multiplying(view.spread(u, self.design.store.shape[0]))
        if view.is_unmoved:
            return end

        def finish() -> Bounded:
            g, loss = end()
            rounding = self._unit * np.stack([np.abs(u).sum(axis=0), norms_of(u)], axis=1)
            return view.corrected(g.T, u.sum(axis=0)).T, np.hstack([loss, rounding])

        return finish

    @property
    def can_follow(self) -> bool:
        """Whether products can be float32 numbers: `can_multiply`, and columns of ordinary size."""
        if not self.can_multiply:
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
        self.design.reads.add(*(self.panels.fine_cost if fine else self.panels.cost))
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
        entries, nbytes = self.panels.fine_cost if fine else self.panels.cost
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

    def code_loss(self, r: Floats) -> Floats:
        """Upper bounds of what the codes lose of a product with r."""
        loss = self.panels.code_loss(self._down(r))
        return loss if self.view.is_unmoved else self.view.bound_per_scale(loss) * (1.0 + self._unit)


def coded_x(store: TileStore, reads: Reads, seed: int | None, fine: bool, steps: bool) -> CodedX:
    """The codes of X that are kept, with what is missing of them made."""
    codes, fine = store.kept.codes, fine and seed is None  # second bytes have one rounding
    held = codes.get(seed)
    if held is not None and held.has(fine, steps):
        return held
    if held is None:
        held = CodedX(store, seed)
    for other in [name for name in codes if name is not None and name != seed and seed is not None]:
        gone = codes.pop(other, None)  # one seed is kept; another thread may have been faster
        if gone is not None:
            store.forget(gone.keep)
    held.make(fine, steps, reads)
    codes[seed] = held
    squares = held.row_squares()
    if squares is not None:  # came along for next to nothing
        store.kept.norms.setdefault((1, 2), safe_roots(store, squares, 1))
    store.kept.finite = True  # codes refuse anything else
    return held


def with_constant(design: Design, cols: Indices | None, g: Floats, last: Floats) -> Floats:
    """Entries at `cols` (None: all) from those of the columns of X and that of the constant column."""
    asked = np.arange(design.shape[1]) if cols is None else np.asarray(cols)
    constant = asked == design.store.shape[1]
    out = np.empty((len(asked), *g.shape[1:]))
    out[~constant], out[constant] = g, last
    return out
