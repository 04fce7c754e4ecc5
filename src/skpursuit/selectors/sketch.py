"""Sketch: two bits an entry point at the columns worth computing. Fast, and proves nothing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skpursuit.design.base import Design
from skpursuit.selectors.base import Query, Selection, Selector
from skpursuit.selectors.exact import Exact
from skpursuit.selectors.score import top


@dataclass(frozen=True)
class Sketch(Selector):
    """Rank all columns by one bit an entry, the best of them by two, and the best of those exactly.

    Parameters
    ----------
    second : float
        Share of the columns that is looked at with both bits.
    last : int
        Columns computed exactly, beside the k asked for. On sparse X selection is exact.
    """

    second: float = 1 / 32
    last: int = 32

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
        d = design.shape[1]
        from skpursuit.kernels.topk import keep

        last = query.k + self.last
        scores = query.scores(design.sketch_estimate(query.r))
        allowed = d - len(query.exclude)
        some = keep(scores, min(allowed, max(last, int(np.ceil(self.second * d)))))
        few = some[keep(query.score.of(design.sketch_refine(query.r, some)), last)]
        exact = design.correlate(query.r, cols=few)
        best = top(query.score.of(exact), query.k)
        return Selection(few[best], exact[best], "heuristic", recomputed=len(few))
