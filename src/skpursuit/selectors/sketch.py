"""Sketch: two bits an entry point at the columns worth computing. Fast, and proves nothing."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from skpursuit.design.base import Design, Floats, Indices, scaled_norm
from skpursuit.selectors.base import Query, Selection, Selector
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
    """

    second: float = 1 / 12
    last: int = 64

    def __post_init__(self) -> None:
        if not 0 < self.second <= 1:
            raise ValueError(f"second must be above 0 and at most 1, got {self.second!r}")
        if self.last < 1:
            raise ValueError(f"last must be at least 1, got {self.last!r}")

    def prepare(self, design: Design) -> None:
        if design.has_twin():
            design.sketch()

    def memory(self, design: Design) -> int:
        return design.shape[0] * design.shape[1] // 4 if design.has_twin() else 0

    def find(self, design: Design, query: Query) -> Selection:
        if not design.has_twin():
            return Exact().find(design, query)
        from skpursuit.kernels import topk

        d = design.shape[1]
        last = query.k + self.last
        scores = query.scores(design.sketch_estimate(query.r))
        allowed = d - len(query.exclude)
        some = topk.keep(scores, min(allowed, max(last, int(np.ceil(self.second * d)))))
        guess = query.score.of(design.sketch_refine(query.r, some))
        order = topk.top(guess, last)
        return _exactly(design, query, some[order], guess[order])


def _exactly(design: Design, query: Query, cols: Indices, guess: Floats) -> Selection:
    """Compute columns, best guess first, until what is left is not likely to win."""
    exact, done = np.empty((0, *query.r.shape[1:])), query.k + FIRST
    while True:
        more = cols[len(exact) : done]
        design.fetch(more, lambda: cols)
        exact = np.concatenate([exact, design.correlate(query.r, cols=more)])
        done = len(exact)
        found = query.score.of(exact)
        best = top(found, query.k)
        error = scaled_norm(found - guess[:done]) / sqrt(done) if done < len(cols) else 0.0
        if done == len(cols) or guess[done] + DOUBT * error < found[best[-1]]:
            return Selection(cols[best], exact[best], "heuristic", recomputed=done)
        done *= 2
