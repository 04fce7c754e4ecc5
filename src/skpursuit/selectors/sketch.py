"""Sketch: two bits an entry point at the columns worth computing. Fast, and proves nothing."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, sqrt

import numpy as np

from skpursuit.design.base import Design, Floats, Indices, scaled_norm
from skpursuit.selectors.base import Query, Selection, Selector, Shortlist
from skpursuit.selectors.exact import Exact
from skpursuit.selectors.score import top

FIRST = 8  # columns computed exactly before asking whether that is enough
DOUBT = 3.0  # errors of guesses by which the best of the rest must fall short


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
        Change of the residual, relative to its norm, up to which all columns are not ranked again: those that
        looked best before it are. 0: they are ranked anew for each residual.
    """

    second: float = 1 / 8
    last: int = 96
    drift: float = 0.3

    def __post_init__(self) -> None:
        if not 0 < self.second <= 1:
            raise ValueError(f"second must be above 0 and at most 1, got {self.second!r}")
        if self.last < 1:
            raise ValueError(f"last must be at least 1, got {self.last!r}")
        if not 0 <= self.drift < 1:
            raise ValueError(f"drift must be at least 0 and below 1, got {self.drift!r}")

    def prepare(self, design: Design) -> None:
        if design.has_twin():
            design.sketch()

    def memory(self, design: Design) -> int:
        return design.shape[0] * design.shape[1] // 4 if design.has_twin() else 0

    def find(self, design: Design, query: Query) -> Selection:
        if not design.has_twin():
            return Exact().find(design, query)
        from skpursuit.kernels import topk

        last, off = min(query.k + self.last, design.shape[1] - len(query.exclude)), query.exclude
        shortlist = query.shortlist
        if shortlist is None or not self._serves(shortlist, query):
            scores = query.score.of(design.sketch_estimate(query.r))
            size = max(query.k + self.last + len(off), ceil(self.second * design.shape[1]))
            shortlist = Shortlist(topk.keep(scores, size), query.r)
        cols = shortlist.cols
        guess = query.score.of(design.sketch_refine(query.r, cols))
        places = np.searchsorted(cols, off)
        guess[places[cols.take(places, mode="clip") == off]] = -np.inf
        order = topk.top(guess, last)
        return _exactly(design, query, cols[order], guess[order], shortlist)

    def _serves(self, shortlist: Shortlist, query: Query) -> bool:
        """Whether the residual is nearly that of a shortlist, which has columns enough."""
        if len(shortlist.cols) < query.k + self.last + len(query.exclude):
            return False
        old = shortlist.r.ravel()
        return scaled_norm(query.r.ravel() - old) <= self.drift * scaled_norm(old)


def _exactly(design: Design, query: Query, cols: Indices, guess: Floats, shortlist: Shortlist) -> Selection:
    """Compute columns, best guess first, until what is left is not likely to win."""
    exact, done = np.empty((0, *query.r.shape[1:])), query.k + FIRST
    while True:
        more = cols[len(exact) : done]
        design.fetch(more, lambda: cols)
        exact = np.concatenate([exact, design.correlate(query.r, cols=more)])
        found = query.score.of(exact)
        best = top(found, query.k)
        if len(found) < len(cols):
            error = scaled_norm(found - guess[: len(found)]) / sqrt(len(found))
            done = int(np.count_nonzero(guess + DOUBT * error >= found[best[-1]]))
        if done <= len(found) or len(found) == len(cols):
            return Selection(cols[best], exact[best], "heuristic", recomputed=len(found), shortlist=shortlist)
