"""Sketch: two bits an entry point at the columns worth computing. Fast, and proves nothing.

One bit of every entry ranks all columns, two bits the best tenth, and the best few are computed exactly. From
step to step the residual changes little: the shortlist of the last answer serves again, until the residual
has changed by a third or a column beyond the list might win. The list is memory that travels in the state.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, inf, sqrt
from typing import ClassVar, NamedTuple

import numpy as np

from skpursuit.data.codes import BitCodes
from skpursuit.data.design import Design
from skpursuit.numerics.arrays import Floats, Indices, are_columns
from skpursuit.numerics.blas import one_thread
from skpursuit.numerics.sums import scaled_norm
from skpursuit.numerics.tuning import PRICES
from skpursuit.parameters import check_count, check_number
from skpursuit.problem.score import top
from skpursuit.selectors.base import (
    NOTHING,
    Bound,
    Expect,
    Memory,
    Query,
    Selection,
    Selector,
)
from skpursuit.selectors.certified import codes_seconds
from skpursuit.selectors.exact import Exact

FIRST = 8  # columns computed exactly before asking whether that is enough
WILD = 6.0  # standard deviations by which a score may have moved without being seen
DOUBT = 3.0  # errors of guesses by which the best of the rest must fall short


class Shortlist(NamedTuple):
    """Columns, ascending, that looked best in a rough look at all entries of X^T r, and this r.

    `least` is the score of the worst of them in that look, `scores` are those of a closer one.
    """

    cols: Indices
    r: Floats
    least: np.ndarray
    scores: Floats


@dataclass(frozen=True)
class Sketch(Selector):
    """Rank all columns by one bit an entry, the best of them by two, and the best of those exactly.

    Parameters
    ----------
    second : float
        Share of the columns that is looked at with both bits.
    last : int
        Columns computed exactly at most, beside the k asked for. On sparse X selection is exact.
    drift : float
        Change of the residual, relative to its norm, up to which not all columns are ranked again, but those
        that looked best before, as long as no other is likely to beat them. 0: all, for each residual; so it
        is with solvers that ask for many columns.
    """

    compiled: ClassVar[bool] = True
    second: float = 1 / 10
    last: int = 96
    drift: float = 0.3

    def __post_init__(self) -> None:
        check_number("second", self.second, "(0, 1]")
        check_count("last", self.last, optional=False)
        check_number("drift", self.drift, "[0, 1)")

    def bind(self, design: Design, expect: Expect) -> Bound:
        if not design.has_codes:
            return Exact().bind(design, expect)
        BitCodes(design)
        # CoSaMP moves far in a step and takes a repeated answer for convergence, so reuse is disabled.
        return Bound(replace(self, drift=0.0) if expect.asks_many else self, design)

    def find(self, design: Design, query: Query) -> Selection:
        if not design.has_codes:
            return Exact().find(design, query)
        with one_thread():  # as in a run
            return self.answer(Bound(self, design), query, NOTHING)

    def answer(self, bound: Bound, query: Query, memory: Memory) -> Selection:
        design = bound.design
        held = Shortlist(**memory) if "least" in memory else None
        shortlist, scores = self._kept(design, query, held) or self._ranked(design, query)
        order = top(scores, query.k + self.last)
        answer = _exactly(design, query, shortlist.cols[order], scores[order])
        return answer._replace(memory=memory if shortlist is held else shortlist._asdict())

    def can_have(self, design: Design, memory: Memory, targets: tuple[int, ...]) -> bool:
        if memory.keys() != set(Shortlist._fields):
            return not memory
        (n, d), held = design.shape, Shortlist(**memory)
        shapes = held.r.shape == (n, *targets) and held.least.shape == ()
        return shapes and are_columns(held.cols, d) and held.scores.shape == held.cols.shape

    def price(self, design: Design, expect: Expect) -> float:
        if not design.has_codes:
            return inf
        read = expect.targets * design.shape[0] * design.shape[1] * PRICES.bits
        there = design.store.kept.bits is not None
        return codes_seconds(design, expect.steps, PRICES.sketch_build, read, there)

    def nbytes(self, design: Design) -> int:
        return design.shape[0] * design.shape[1] // 4 if design.has_codes else 0

    def _kept(self, design: Design, query: Query, held: Shortlist | None) -> tuple[Shortlist, Floats] | None:
        """The shortlist of the answer before, scored anew; None where a column beyond it might win."""
        if held is None or held.r.shape != query.r.shape:
            return None
        if len(held.cols) < query.k + self.last + len(query.exclude):
            return None
        before = held.r.ravel()
        if scaled_norm(query.r.ravel() - before) > self.drift * scaled_norm(before):
            return None
        scores, allowed = _looked_at(design, query, held.cols)
        moved = scaled_norm(scores - held.scores) / sqrt(len(scores))
        least = allowed[top(allowed, query.k)].min()
        return (held, allowed) if least >= held.least + WILD * moved else None

    def _ranked(self, design: Design, query: Query) -> tuple[Shortlist, Floats]:
        """The columns that look best by one bit an entry, and some for those that will be excluded."""
        d, least = design.shape[1], -np.inf
        size = max(ceil(self.second * d), 2 * (query.k + self.last)) + len(query.exclude)
        cols = np.arange(d)
        if size < d:
            from skpursuit.kernels.topk import keep

            rough = query.score.of(BitCodes(design).estimate(query.r))
            cols = keep(rough, size)
            least = rough[cols].min()
        scores, allowed = _looked_at(design, query, cols)
        return Shortlist(cols, query.r.copy(), np.asarray(least), scores), allowed


def _looked_at(design: Design, query: Query, cols: Indices) -> tuple[Floats, Floats]:
    """Scores of columns, ascending, by both bits; and those with -inf for the excluded ones."""
    scores = query.score.of(BitCodes(design).refine(query.r, cols))
    allowed, places = scores.copy(), np.searchsorted(cols, query.exclude)
    allowed[places[cols.take(places, mode="clip") == query.exclude]] = -np.inf
    return scores, allowed


def _exactly(design: Design, query: Query, cols: Indices, guess: Floats) -> Selection:
    """Compute columns, best guess first, until what is left is not likely to win."""
    exact, done = np.empty((0, *query.r.shape[1:])), query.k + FIRST
    while True:
        more = cols[len(exact) : done]
        exact = np.concatenate([exact, design.dots(more, query.r, lambda count: cols[:count])])
        found = query.score.of(exact)
        best = top(found, query.k)
        if len(found) < len(cols):
            error = scaled_norm(found - guess[: len(found)]) / sqrt(len(found))
            done = int(np.count_nonzero(guess + DOUBT * error >= found[best[-1]]))
        if done <= len(found) or len(found) == len(cols):
            return Selection(cols[best], exact[best], "heuristic", recomputed=len(found))
