"""Gram selection: the gradient of squared loss from columns of X^T X instead of X."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np

from skpursuit.data.design import Design
from skpursuit.numerics.estimate import Estimate
from skpursuit.numerics.tuning import GRAM_USED, GRAM_WIDTH, NANO, PRICES, RECOMPUTED
from skpursuit.parameters import check_count, check_flag
from skpursuit.selectors.base import Bound, Selector
from skpursuit.selectors.exact import product_seconds
from skpursuit.selectors.gram_sums import GramSums
from skpursuit.selectors.query import NOTHING, Expect, Memory, Query, Selection
from skpursuit.selectors.settle import settle


@dataclass(frozen=True)
class Gram(Selector):
    """Keep X^T x_j of every visited column: g = X^T X_S w_S - X^T y costs d |S|, not n d.

    Columns are made ahead: when one is missing, so are those that score next best, all in one product that
    costs less than four with a single vector. A pursuit takes nearly all of them later, so that it reads X
    about every twelfth step. Visited columns are kept, at most `memory_limit` bytes of them; once a third of
    them was visited and the whole d x d matrix fits in that bound, it is formed at once. Squared loss only.

    Parameters
    ----------
    memory_limit : int
        Bound in bytes on what is kept.
    whole : bool
        Form the whole matrix at once if it fits in that bound, for many targets or runs on one design.
    """

    memory_limit: int = 2**30
    whole: bool = False

    def __post_init__(self) -> None:
        check_count("memory_limit", self.memory_limit, optional=False)
        check_flag("whole", self.whole)

    def bind(self, design: Design, expect: Expect) -> Bound:
        if expect.y is None:
            return Bound(self, design)
        design.kept.gram_columns.limit = min(self.memory_limit, design.store.limit.products)
        whole = self.whole and design.shape[1] ** 2 * 8 <= self.memory_limit
        return Bound(self, design, GramSums(design, expect.y, expect.roundings, whole))

    def find(self, design: Design, query: Query) -> Selection:
        return self.answer(Bound(self, design), query, NOTHING)

    def answer(self, bound: Bound, query: Query, memory: Memory) -> Selection:
        """From Gram columns; from rows of X where r is not the residual of a state but that of a batch."""
        design, r = bound.design, query.r
        if query.at is None:
            rows = np.flatnonzero(r if r.ndim == 1 else r.any(axis=1))
            g = np.zeros((design.shape[1], *r.shape[1:]))
            design.add_rows(rows, r[rows], g)
            return settle(design, query, Estimate(g, design.rounding(r, any_order=True)))
        known = None if bound.sums is None else bound.sums.gradient(query, memory)
        if known is None:
            raise ValueError(
                "gram selection needs squared loss and a solver that keeps its support; use 'exact'"
            )
        answer = settle(design, query, known.estimate)
        return answer._replace(memory=known.memory, estimate=known.estimate)

    def can_have(self, design: Design, memory: Memory, targets: tuple[int, ...]) -> bool:
        shapes = {"xtz": (design.shape[1], *targets), "roundings": (), "reach": ()}
        return not memory or {name: part.shape for name, part in memory.items()} == shapes

    def price(self, design: Design, expect: Expect) -> float:
        """X^T y, Gram columns of the visited atoms, made in blocks, and their sums in each step."""
        if expect.y is None:
            return inf
        n, d = design.shape
        blocks = -(-expect.visits // GRAM_USED) * product_seconds(design, GRAM_WIDTH)
        terms = min(expect.visits, expect.steps) / 2
        terms *= PRICES.gram_term + d * expect.targets * PRICES.axpy
        left = RECOMPUTED * n * PRICES.gather if design.dtype == np.float32 else 0.0
        steps = expect.steps * (terms + left + PRICES.gram_step) * NANO
        width = GRAM_WIDTH * -(-expect.visits // GRAM_USED)
        before = design.store.pass_seconds + design.store.sweep_seconds(width)  # norms, columns
        return before + blocks + product_seconds(design, expect.targets) + steps

    def nbytes(self, design: Design) -> int:
        d = design.shape[1]
        return min(d * d * 8, self.memory_limit)
