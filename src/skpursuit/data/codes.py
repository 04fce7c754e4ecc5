"""X in few bits an entry, behind a view: estimates of V^T r with bounds, for a fraction of the bytes.

`CodedX` is to codes what the store is to X: one `QuantizedTile` for each tile, estimates and their bounds
summed over row edges and joined over column edges. It belongs to X itself, so one copy serves every view.
`Codes` is what a design hands out: it takes residuals down through the view, counts what is read, and
corrects what comes up, the rounding of that included. `BitCodes` does the same for two bits an entry, which
prove nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from math import log
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from skpursuit.data.reads import Reads
from skpursuit.numerics.arrays import Floats, Indices
from skpursuit.numerics.estimate import norms_of, total_bound
from skpursuit.numerics.sums import EPS

if TYPE_CHECKING:
    from skpursuit.data.design import Design
    from skpursuit.data.store import Place, TileStore

Bounded = tuple[Floats, Floats]  # an estimate and a bound on its error
COST_VERBS = ("estimate_cost", "refine_cost", "rows_cost")
ORDINARY = 1e-15, 1e15  # norms of columns and residuals whose products are within the range of float32
PANEL_ENTRIES = 2**24  # entries of some rows of X that are copied together to be packed into bits


class Represented(NamedTuple):
    """A residual of X that products of codes stand for, to go on from.

    Attributes
    ----------
    u : (rows of X,), the residual
    g : (columns of X,), products of the decoded columns with it
    loss : (p,), |g[j] - <decoded x_j, u>| <= loss . factors[j]
    """

    u: Floats
    g: Floats
    loss: Floats


class Followed(NamedTuple):
    """Products of the decoded columns with the residuals of consecutive steps.

    Attributes
    ----------
    g : (steps, columns) float32, behind the view
    loss : (steps, p), |g[t, j] - <decoded x_j, R[t]>| <= loss[t] . factors[j]
    represented : function of t that gives what `Codes.following` can go on from after step t
    """

    g: Any
    loss: Floats
    represented: Callable[[int], Represented]


@dataclass(frozen=True)
class Encoding:
    """How a tile is encoded: rounded to nearest or, with a seed, at random, and with which second bytes."""

    seed: int | None
    fine: bool
    steps: bool

    def __call__(self, tile: Any, number: int) -> Any:
        from skpursuit.data.quantized import QuantizedTile

        rng = None if self.seed is None else np.random.default_rng(self.seed)
        if rng is not None and number > 0:
            rng = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(number - 1,)))
        return QuantizedTile.build(tile.X, rng, self.fine, self.steps)


class CodeFacts(NamedTuple):
    """What is asked of the codes of a tile beside products: a few numbers a column."""

    plain: bool
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
    return CodeFacts(coded.plain, coded.peak, coded.row_squares, costs)


def itself(coded: Any) -> Any:
    """What is kept of a tile in memory."""
    return coded


def multiplied(coded: Any, u: Floats) -> Bounded:
    """Products of the decoded columns of a tile with those of u, begun and ended."""
    return coded.multiplying(u)()


def block_errors(coded: Any) -> Floats:
    """What the codes of a tile lose in each block of rows."""
    return coded.block_errors


def measured(coded: Any) -> tuple[Floats, Floats]:
    """What bounds of products are made of."""
    return coded.factors, coded.sizes


class CodedX:
    """The quantised tiles of X, which the store keeps."""

    def __init__(self, store: TileStore, seed: int | None, fine: bool, steps: bool) -> None:
        self.store = store
        self.has_fine, self.has_steps = fine, steps
        self.keep = Encoding(seed, fine, steps)
        if store.is_one_tile:
            self.only = next(iter(store.run(itself, keep=self.keep)))[1]
            self.facts = [[facts_of(self.only)]]
        else:
            facts = [found for _, found in store.run(facts_of, keep=self.keep)]
            width = len(store.grid[0])
            self.facts = [facts[i : i + width] for i in range(0, len(facts), width)]
        self._factors: Floats | None = None
        self._sizes: Floats | None = None

    @property
    def plain(self) -> bool:
        """True if no column needs rescaling, so that decoded columns can be multiplied."""
        return all(facts.plain for row in self.facts for facts in row)

    @property
    def peak(self) -> float:
        """A number with peak <= the largest |entry| <= 2^80 peak."""
        return max(facts.peak for row in self.facts for facts in row)

    def row_squares(self) -> Floats | None:
        """Sums of squares of the rows, where they came with the codes."""
        return self.facts[0][0].row_squares if self.store.is_one_tile else None

    def cost(self, verb: str, cols: Indices | None = None) -> tuple[int, int]:
        """What a verb of all columns or some reads."""
        if self.store.is_one_tile:
            return getattr(self.only, verb)(None if cols is None else len(cols))
        asked = np.arange(self.store.shape[1]) if cols is None else cols
        return added(
            row[j].cost(verb, len(local))
            for j, _, local in self.store.split(asked, self.store.col_edges)
            for row in self.facts
        )

    def rows_cost(self, rows: Indices) -> tuple[int, int]:
        """What `rows` reads for these rows in all."""
        if self.store.is_one_tile:
            return self.only.rows_cost(len(rows))
        found = self.store.split(rows, self.store.row_edges)
        return added(tile.cost("rows_cost", len(local)) for i, _, local in found for tile in self.facts[i])

    def estimate(self, u: Floats, log_delta: float | None, cols: Indices | None) -> Bounded:
        """X^T u or its entries at `cols`, from one byte an entry; see `QuantizedTile.estimate`."""
        if self.store.is_one_tile:
            return self.only.estimate(u, log_delta, cols)
        each = None if log_delta is None else log_delta - log(len(self.facts))  # one chance for each sum
        asked = np.arange(self.store.shape[1]) if cols is None else cols
        return self._summed("estimate", u, asked, each)

    def refine(self, u: Floats, cols: Indices) -> Bounded:
        """Entries of X^T u at `cols` from two bytes an entry."""
        return self.only.refine(u, cols) if self.store.is_one_tile else self._summed("refine", u, cols)

    def _summed(self, verb: str, u: Floats, cols: Indices, *more: Any) -> Bounded:
        """Estimates of tiles, added over rows and joined over columns."""
        asked = {j: (places, local) for j, places, local in self.store.split(cols, self.store.col_edges)}

        def args(at: Place) -> tuple[Any, ...] | None:
            return (np.ascontiguousarray(u[at.rows]), *more, asked[at.j][1]) if at.j in asked else None

        sums = TileSums((len(cols), *u.shape[1:]))
        for place, known in self.store.run(verb, args, self.keep):
            sums.add(asked[place.j][0], *known)
        return sums.total(len(self.facts))

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

    # -- products of decoded columns, which can be added up -------------------------------------------------

    def multiplying(self, u: Floats) -> Callable[[], Bounded]:
        """Products of the decoded columns with the columns of u; see `QuantizedTile.multiplying`.

        Losses and factors of several tiles join by Cauchy-Schwarz.
        """
        return self.only.multiplying(u) if self.store.is_one_tile else lambda: self._multiplied(u)

    def _multiplied(self, u: Floats) -> Bounded:
        g, squares, terms = np.zeros((u.shape[1], self.store.shape[1])), 0.0, len(self.facts)
        for place, (part, loss) in self.store.run(multiplied, lambda at: (u[at.rows],), self.keep):
            g[:, place.cols] += part
            if place.j == 0:  # the loss is that of the residual
                squares = squares + loss**2
        rounding = 2 * terms * EPS * np.stack([norms_of(u), np.abs(u).sum(axis=0)], axis=1)
        return g, np.sqrt(squares) * (1.0 + 2 * terms * EPS) + rounding

    def measure(self, reads: Reads) -> None:
        """Read the codes once for `factors` and `sizes`."""
        if self._factors is not None:
            return
        reads.prepare(*self.cost("estimate_cost"))
        if self.store.is_one_tile:
            self._factors, self._sizes = measured(self.only)
            return
        d = self.store.shape[1]
        factors, sizes = np.zeros((d, 2)), np.zeros(d)
        for place, (factor, size) in self.store.run(measured, keep=self.keep):
            factors[place.cols] += factor**2
            sizes[place.cols] += size**2
        wider = 1.0 + 8 * len(self.facts) * EPS
        self._factors, self._sizes = np.sqrt(factors) * wider, np.sqrt(sizes) * wider

    @property
    def factors(self) -> Floats:
        """(columns, 2), see `QuantizedTile.factors`."""
        assert self._factors is not None
        return self._factors

    @property
    def sizes(self) -> Floats:
        """Upper bounds of the column norms."""
        assert self._sizes is not None
        return self._sizes

    def block_errors(self) -> Floats:
        """(blocks, columns): upper bounds of the 2-norm of what the codes lose in a block of rows."""
        rows: list[list[Floats]] = [[] for _ in self.facts]
        for place, part in self.store.run(block_errors, keep=self.keep):
            rows[place.i].append(part)
        return np.concatenate([np.concatenate(row, axis=1) for row in rows])

    def block_norms(self, u: Floats) -> Floats:
        """(blocks, vectors): upper bounds of the norms of the columns of u in the same blocks."""
        args = lambda at: (u[at.rows],) if at.j == 0 else None  # noqa: E731
        return np.concatenate([part for _, part in self.store.run("block_norms", args, self.keep)])

    def decoded(self, cols: Indices) -> Floats:
        """Columns as the codes have them, the rows of a float32 array."""
        asked = {j: (places, local) for j, places, local in self.store.split(cols, self.store.col_edges)}
        out = np.empty((len(cols), self.store.shape[0]), np.float32)
        args = lambda at: asked[at.j][1:] if at.j in asked else None  # noqa: E731
        for place, part in self.store.run("decoded", args, self.keep):
            out[asked[place.j][0], place.rows] = part
        return out

    def code_loss(self, u: Floats) -> Floats:
        """Upper bounds of what the codes lose of a product with u."""
        if self.store.is_one_tile:
            return self.only.code_loss(u)
        losses = np.zeros((self.store.shape[1], *u.shape[1:]))
        for place, part in self.store.run("code_loss", lambda at: (u[at.rows],), self.keep):
            losses[place.cols] += part
        return losses * (1.0 + len(self.facts) * EPS)


class TileSums:
    """Estimates of tiles with their bounds, while they are added up."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.g, self.bound, self.size = np.zeros((3, *shape))

    def add(self, places: Any, part: Floats, error: Floats) -> None:
        """Add the estimates of a tile to the entries at these places."""
        self.g[places] += part
        self.bound[places] += error
        self.size[places] += np.abs(part)

    def total(self, terms: int) -> Bounded:
        """The sums, and bounds with the rounding of so many additions."""
        bound = (self.bound + terms * EPS * self.size) * (1.0 + 2 * terms * EPS)
        return np.where(np.isfinite(bound), self.g, 0.0), bound


def added(costs: Iterable[tuple[int, int]]) -> tuple[int, int]:
    """Entries and bytes of several reads."""
    entries, nbytes = np.sum([*costs, (0, 0)], axis=0).tolist()
    return entries, nbytes


class Codes:
    """The codes of X behind the view of a design."""

    def __init__(self, design: Design, seed: int | None, fine: bool, steps: bool) -> None:
        self.design, self.view = design, design.view
        self.coded = coded_x(design.store, design.reads, seed, fine, steps)

    def estimate(self, r: Floats, log_delta: float | None = None, cols: Indices | None = None) -> Bounded:
        """(g, bound) with |g - V^T r| <= bound, or at `cols`, from one byte an entry."""
        real = None if cols is None else self.design._real(np.asarray(cols))
        reads = self.design.reads
        reads.add(*self.coded.cost("estimate_cost", real))
        return self._corrected(r, real, cols, self.coded.estimate(self._down(r), log_delta, real))

    def refine(self, r: Floats, cols: Indices) -> Bounded:
        """(g, bound) for the entries at `cols`, from two bytes an entry."""
        real = self.design._real(np.asarray(cols))
        self.design.reads.add(*self.coded.cost("refine_cost", real))
        return self._corrected(r, real, cols, self.coded.refine(self._down(r), real))

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
        """Whether decoded columns can be multiplied; what `factors` and `sizes` need is read once."""
        if self.view.constant or not self.coded.plain:
            return False
        self.coded.measure(self.design.reads)
        return True

    def multiplying(self, v: Floats) -> Callable[[], Bounded]:
        """Begin with products of the decoded columns with those of v; what ends it returns (g, loss).

        |g[k, j] - <decoded x_j, v_k>| <= loss[k] . factors[j]; see `QuantizedTile.multiplying`. The rounding
        of centring and weighting is in the loss.
        """
        self.design.reads.add(*self.coded.cost("estimate_cost"))
        view = self.view
        u = view.weighted(v)
        end = self.coded.multiplying(view.spread(u, self.design.store.shape[0]))
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

    def following(self, R: Floats, before: Represented | None = None) -> Callable[[], Followed]:
        """Begin with products of the decoded columns with R, the residuals of consecutive steps as rows.

        `before` is what an earlier call represents: then only the way from there is multiplied. What ends it
        returns a `Followed`. Norms of R should be within `ORDINARY`, or zero.
        """
        end = self.multiplying(R.T)

        def finish() -> Followed:
            g, loss = end()
            single = g.astype(np.float32)
            loss = loss + 2.0**-23 * np.abs(self._down(R.T)).sum(axis=0)[:, None]  # of float32
            return Followed(single, loss, lambda t: Represented(R[t], single[t], loss[t]))

        return finish

    def decoded(self, cols: Indices) -> Floats:
        """Columns of the view as the codes have them: the rows of a float32 array, without bounds."""
        return self.view.columns(self.coded.decoded(cols), cols)

    @property
    def block_errors(self) -> Floats:
        """(blocks, columns) E with |<x_j - decoded x_j, r_t>| <= sum over b of M[t, b] E[b, j].

        M is what `block_norms` makes of the residuals. Blocks are those of X, 512 rows or fewer.
        """
        return self.view.bound_per_scale(self.coded.block_errors().T).T

    def block_norms(self, R: Floats) -> Floats:
        """(steps, blocks) M: norms of the rows of R in the blocks of rows of X; see `block_errors`."""
        return self.coded.block_norms(self._down(R.T)).T * (1.0 + self._unit)

    @property
    def _unit(self) -> float:
        return 4 * (self.design.shape[0] + 8) * EPS

    @property
    def factors(self) -> Floats:
        """(columns, p): those of the codes, the centres and the column sizes, all per scale."""
        view, coded = self.view, self.coded
        if view.is_unmoved:
            return coded.factors
        centre = np.zeros(len(coded.sizes)) if view.centre is None else np.abs(view.centre)
        raw = np.column_stack([coded.factors, centre, coded.sizes])
        return raw if view.scale is None else raw / np.abs(view.scale)[:, None]

    @property
    def sizes(self) -> Floats:
        """Upper bounds of the column norms, before centring too."""
        return self.view.sizes(self.coded.sizes, self.design.shape[0])

    def code_loss(self, r: Floats) -> Floats:
        """Upper bounds of what the codes lose of a product with r."""
        loss = self.coded.code_loss(self._down(r))
        return loss if self.view.is_unmoved else self.view.bound_per_scale(loss) * (1.0 + self._unit)


def coded_x(store: TileStore, reads: Reads, seed: int | None, fine: bool, steps: bool) -> CodedX:
    """The codes of X that are kept, made again where a second byte is missing."""
    codes = store.kept.codes
    held = codes.get(seed)
    if held is not None and held.has_fine >= fine and held.has_steps >= steps:
        return held
    reads.prepare(*store.cost())
    if held is not None:  # it keeps the bytes it has
        fine, steps = fine or held.has_fine, steps or held.has_steps
    others = [seed] if seed is None else [name for name in codes if name is not None]
    for other in others:  # one of each kind is kept
        gone = codes.pop(other, None)  # another thread may have been faster
        if gone is not None:
            store.forget(gone.keep)
    made = codes[seed] = CodedX(store, seed, fine, steps)
    squares = made.row_squares()
    if squares is not None:  # came along for next to nothing
        store.kept.norms.setdefault((1, 2), store.safe_roots(squares, 1))
    store.kept.finite = True  # codes refuse anything else
    return made


class BitCodes:
    """X in two bits an entry behind the view of a design.

    Levels are means over rows, and guesses from other rows are not bounded: a view of some rows has bits of
    its own.
    """

    def __init__(self, design: Design) -> None:
        from skpursuit.data.bits import PackedBits

        self.design, self.view = design, design.view
        keeper = design.store.kept if self.view.rows is None else design.kept
        if keeper.bits is None:
            design.reads.prepare(*design.store.cost())
            one_array = self.view.rows is None and design.store.is_one_tile
            panels = [design.store.first.X] if one_array else self._panels()  # type: ignore[attr-defined]
            keeper.bits = PackedBits.joined([PackedBits.build(panel) for panel in panels])
            design.store.kept.finite = True  # as the codes
        self.packed = keeper.bits

    def _panels(self) -> Iterator[Floats]:
        """The rows that are there, some columns at a time."""
        store = self.design.store
        step = max(1, PANEL_ENTRIES // store.shape[0])
        for start in range(0, store.shape[1], step):
            cols = np.arange(start, min(start + step, store.shape[1]))
            lines = store.take(cols)
            lines = lines if self.view.rows is None else np.take(lines, self.view.rows, axis=1)
            yield lines.T.astype(self.design.dtype)

    def estimate(self, r: Floats) -> Floats:
        """A guess at V^T r from one bit an entry."""
        self.design.reads.add(*self.packed.estimate_cost)
        return self._guess(r, None, self.packed.estimate)

    def refine(self, r: Floats, cols: Indices) -> Floats:
        """A better guess at the entries at `cols`, from two bits an entry."""
        real = self.design._real(cols)
        self.design.reads.add(*self.packed.refine_cost(len(real)))
        return self._guess(r, cols, lambda part: self.packed.refine(part, real))

    def _guess(self, r: Floats, cols: Indices | None, guess: Callable[[Floats], Floats]) -> Floats:
        view, design = self.view, self.design
        u = view.weighted(r)
        guesses = [guess(part) for part in u.reshape(len(u), -1).T]
        g = guesses[0] if r.ndim == 1 else np.stack(guesses, axis=1)
        real = slice(None) if cols is None else design._real(cols)
        g = view.corrected(g, u.sum(axis=0), real)
        return with_constant(design, cols, g, r.sum(axis=0)) if view.constant else g


def with_constant(design: Design, cols: Indices | None, g: Floats, last: Floats) -> Floats:
    """Entries at `cols` (None: all) from those of the columns of X and that of the constant column."""
    asked = np.arange(design.shape[1]) if cols is None else np.asarray(cols)
    constant = asked == design.store.shape[1]
    out = np.empty((len(asked), *g.shape[1:]))
    out[~constant], out[constant] = g, last
    return out
