"""Quantized: the way of certified selection without its proof.

The next atoms of OMP with squared loss are guessed together (`speculation.py`), and the guesses are believed.
Otherwise a look at the codes of X, one byte an entry, gives all scores, and the best few columns are computed
exactly. From step to step the residual changes little, so the look of an earlier step serves again: how far
the scores of those few have moved since tells how far those of the others may have, and what could have
overtaken the best of them is computed too. When that would be many columns, it is time for a new look.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skpursuit.data.design import Design
from skpursuit.numerics.arrays import NO_COLUMNS, Floats, are_columns
from skpursuit.numerics.tuning import UNVERIFIED_STOP_RATIO
from skpursuit.parameters import check_count
from skpursuit.problem.scores import top_k
from skpursuit.selectors.base import BoundSelector
from skpursuit.selectors.certified import CodeSelector
from skpursuit.selectors.exact import Exact
from skpursuit.selectors.query import Memory, Query, Selection, Workload
from skpursuit.selectors.speculation import SpeculativePursuit

MIN_RECOMPUTED = 12  # columns computed exactly, beside those asked for, before asking whether that is enough
WILD = 3.0  # standard deviations by which a score may have moved without being seen


@dataclass(frozen=True)
class Quantized(CodeSelector):
    """Compute the best columns exactly, by what one byte an entry tells of them now or told some steps ago.

    Parameters
    ----------
    max_recomputed : int
        Columns computed exactly at most, beside the k asked for. On sparse X selection is exact.
    """

    max_recomputed: int = 96

    def __post_init__(self) -> None:
        check_count("max_recomputed", self.max_recomputed, optional=False)

    def bind(self, design: Design, expect: Workload) -> BoundSelector:
        if not design.has_codes:
            return Exact().bind(design, expect)
        design.codes()
        bound = BoundSelector(self, design)
        if expect.is_pursuit:
            bound.speculation = SpeculativePursuit(design, expect, UNVERIFIED_STOP_RATIO)
        return bound

    def find_with_memory(self, bound: BoundSelector, query: Query, memory: Memory) -> Selection:
        guesses = memory.get("guesses", NO_COLUMNS)
        while len(guesses) and (query.exclude == guesses[0]).any():
            guesses = guesses[1:]
        if bound.speculation is not None and len(guesses) == 0:
            guesses = bound.speculation.draft(query)
        if len(guesses):
            g = bound.design.dots(guesses[:1], query.r)
            return Selection(guesses[:1], g, "heuristic", n_recomputed=1, memory={"guesses": guesses[1:]})
        # CoSaMP moves far in a step and takes a repeated answer for convergence: no old look for it.
        scores = memory.get("scores") if query.k == 1 else None
        found = None if scores is None else self._best(bound.design, query, scores, is_new=False)
        if found is None:
            scores = query.score.of(bound.design.codes().estimate(query.r)[0])
            found = self._best(bound.design, query, scores, is_new=True)
        assert found is not None  # a new look tells
        return found

    def _best(self, design: Design, query: Query, scores: Floats, is_new: bool) -> Selection | None:
        """The best columns by the scores of a look; None where that is too old to tell."""
        allowed = scores.copy()
        allowed[query.exclude] = -np.inf
        cols = top_k(allowed, query.k + min(MIN_RECOMPUTED, self.max_recomputed))
        g = design.dots(cols, query.r, lambda count: top_k(allowed, count))
        found = query.score.of(g)
        if len(cols) > query.k:
            moved = 1.5 * float(np.median(np.abs(found - allowed[cols])))
            least = found[top_k(found, query.k)[-1]]
            allowed[cols] = -np.inf
            more = np.flatnonzero(allowed >= least - WILD * moved)
            if len(cols) + len(more) > query.k + self.max_recomputed:
                if not is_new:
                    return None
                more = top_k(allowed, query.k + self.max_recomputed - len(cols))
            cols = np.concatenate([cols, more])
            g = np.concatenate([g, design.dots(more, query.r)])
        order = np.argsort(cols)  # of equal columns the first wins
        best = order[top_k(query.score.of(g)[order], query.k)]
        return Selection(cols[best], g[best], "heuristic", n_recomputed=len(cols), memory={"scores": scores})

    def accepts_memory(self, design: Design, memory: Memory, targets: tuple[int, ...]) -> bool:
        d, scores = design.shape[1], memory.get("scores")
        if "guesses" in memory:
            return len(memory) == 1 and are_columns(memory["guesses"], d)
        return not memory or (len(memory) == 1 and scores is not None and scores.shape == (d,))

    def encodes(self, design: Design, expect: Workload) -> bool | None:
        return False if design.has_codes else None
