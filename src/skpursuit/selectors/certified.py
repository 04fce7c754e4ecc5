"""Selection from one byte an entry: certified, the answer of exact selection, proven; and without proof.

Codes of X give an estimate of X^T r with an interval for every column. Columns whose interval lies below the
best lower end cannot win; usually one is left, else the few that are left are computed exactly
(`resolve_top_k`). For least squares several steps are guessed and proven together (`speculation.py`), so that
the codes are read once for all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import ClassVar

import numpy as np

from skpursuit.data.design import Design
from skpursuit.numerics import tuning
from skpursuit.numerics.arrays import NO_COLUMNS, Floats, are_columns
from skpursuit.numerics.blas import single_threaded_blas
from skpursuit.numerics.error_bounds import Estimate
from skpursuit.parameters import check_count
from skpursuit.problem.scores import top_k
from skpursuit.selectors.base import BoundSelector, Exact, Selector
from skpursuit.selectors.query import NO_MEMORY, Memory, Query, Selection, Workload
from skpursuit.selectors.speculation import SpeculativePursuit
from skpursuit.selectors.top_k import CodeOrigin, resolve_top_k

MIN_RECOMPUTED = 12  # columns computed exactly, beside those asked for, before asking whether that is enough
WILD = 3.0  # standard deviations by which a score may have moved without being seen


class CodeSelector(Selector):
    """A selector that reads codes of X, and where X has none computes X^T r."""

    def find(self, design: Design, query: Query) -> Selection:
        if not design.has_codes:
            return Exact().find(design, query)
        with single_threaded_blas():  # as in a run
            return self.find_with_memory(BoundSelector(self, design), query, NO_MEMORY)


@dataclass(frozen=True)
class Certified(CodeSelector):
    """Estimate X^T r on int8 codes of X with a rigorous interval, and compute what could still win exactly.

    The answer is that of `Exact`, ties to the lowest index included, unless the top entries differ by less
    than the rounding of a float64 product. Where the intervals leave many columns, a second byte of each
    narrows them down first. OMP with squared loss has several steps proven in one pass over the codes. On
    sparse X and operators the exact product is the certificate. Second bytes are made beforehand for solvers
    that ask for many columns, for long runs and tall X, and later where one byte leaves too many columns.
    """

    answers_contests: ClassVar[bool] = True

    def bind(self, design: Design, expect: Workload) -> BoundSelector:
        if not design.has_codes:
            return Exact().bind(design, expect)
        fine = self._fine(design, expect)
        design.codes(fine)
        bound = BoundSelector(self, design)
        bound.fine = fine
        if expect.is_pursuit:
            bound.speculation = SpeculativePursuit(design, expect)
        return bound

    def encodes(self, design: Design, expect: Workload) -> bool | None:
        return self._fine(design, expect) if design.has_codes else None

    def _fine(self, design: Design, expect: Workload) -> bool:
        """Whether a second byte an entry will be needed; on disk a pass makes it later."""
        (n, d), access = design.shape, design.access
        tall = n > tuning.SECOND_BYTE_ROWS or (
            design.on_disk and n > tuning.SECOND_BYTE_ROWS // 4 and access.has_room_for_codes(2 * n * d)
        )
        return expect.many_columns or tall or expect.n_queries >= tuning.SECOND_BYTE_SELECTIONS

    def find_with_memory(self, bound: BoundSelector, query: Query, memory: Memory) -> Selection:
        design = bound.design
        found = None if bound.speculation is None else bound.speculation.answer(query)
        if found is not None:
            return found
        if query.k > 1 and bound.fine:  # one byte would leave many columns in doubt
            both = design.codes(fine=True).estimate(query.r, second_byte=True)
            return resolve_top_k(design, query, Estimate(*both))
        one = Estimate(*design.codes().estimate(query.r))
        return resolve_top_k(design, query, one, codes=CodeOrigin(bound.fine))

    def predict_seconds(self, design: Design, expect: Workload) -> float:
        n, entries, targets = design.shape[0], design.cost()[0], expect.n_targets
        fine, there = self._fine(design, expect), design.access.has_made_codes
        if not (design.has_codes and (there or design.access.has_room_for_codes((1 + fine) * entries))):
            return inf
        # Residuals of several targets share a pass over the codes, of one byte or both.
        price = tuning.COSTS
        read = entries * (1 + expect.many_columns) * (price.code_product + (targets - 1) * price.target)
        if expect.is_pursuit:  # codes are read to guess, and to prove
            read = entries * (price.code_product / tuning.STEPS_PER_CODE_PASS + price.path_code_product)
        build = price.encode_entry + price.encode_second_byte * fine
        if design.on_disk and not fine and n > tuning.SECOND_BYTE_ROWS // 4:  # columns in doubt cost a pass
            read += design.access.pass_seconds / tuning.NANO
        seconds = 0.0 if there else entries * build * tuning.NANO + design.access.pass_seconds
        if design.on_disk:
            paths = -(-expect.n_columns // max(1, design.limit.columns // (32 * n)))
            seconds += (paths + (paths > 1)) * design.access.sweep_seconds(1)  # to guess, and to verify
            seconds += (2 * paths + 2) * design.access.n_tiles * tuning.TILE_LOOK
        left = design.access.gather_seconds(tuning.RECOMPUTED)
        return seconds + expect.n_queries * ((read + price.codes_step) * tuning.NANO + left)


@dataclass(frozen=True)
class Quantized(CodeSelector):
    """The way of certified selection without its proof: the best columns by codes, now or some steps ago.

    The next atoms of OMP with squared loss are guessed together, and the guesses are believed. Otherwise a
    look at the codes of X, one byte an entry, gives all scores, and the best few columns are computed
    exactly. From step to step the residual changes little, so the look of an earlier step serves again: how
    far the scores of those few have moved since tells how far those of the others may have, and what could
    have overtaken the best of them is computed too. When that would be many columns, a new look is due.

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
            bound.speculation = SpeculativePursuit(design, expect, tuning.UNVERIFIED_STOP_RATIO)
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
