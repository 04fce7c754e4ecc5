"""Gram selection: the gradient of squared loss from columns of X^T X instead of X."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np

from skpursuit.data.design import Design
from skpursuit.numerics.error_bounds import Estimate
from skpursuit.numerics.tuning import COSTS, GRAM_BATCH, GRAM_BATCH_USED, NANO, RECOMPUTED
from skpursuit.parameters import check_count, check_flag
from skpursuit.selectors.base import BoundSelector, Selector
from skpursuit.selectors.exact import product_seconds
from skpursuit.selectors.gram_gradient import GramGradient
from skpursuit.selectors.query import NO_MEMORY, Memory, Query, Selection, Workload
from skpursuit.selectors.top_k import resolve_top_k


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

    def bind(self, design: Design, expect: Workload) -> BoundSelector:
        if expect.y is None:
            return BoundSelector(self, design)
        design.caches.gram_columns.max_bytes = min(self.memory_limit, design.limit.product_bytes)
        whole = self.whole and design.shape[1] ** 2 * 8 <= self.memory_limit
        return BoundSelector(self, design, GramGradient(design, expect.y, expect.n_updates, whole))

    def find(self, design: Design, query: Query) -> Selection:
        return self.find_with_memory(BoundSelector(self, design), query, NO_MEMORY)

    def find_with_memory(self, bound: BoundSelector, query: Query, memory: Memory) -> Selection:
        """From Gram columns; from rows of X where r is not the residual of a state but that of a batch."""
        design, r = bound.design, query.r
        if query.state is None:
            rows = np.flatnonzero(r if r.ndim == 1 else r.any(axis=1))
            g = np.zeros((design.shape[1], *r.shape[1:]))
            design.add_rows(rows, r[rows], g)
            return resolve_top_k(design, query, Estimate(g, design.rounding(r, any_order=True)))
        known = None if bound.gram_gradient is None else bound.gram_gradient.evaluate(query, memory)
        if known is None:
            raise ValueError(
                "gram selection needs squared loss and a solver that keeps its support; use 'exact'"
            )
        answer = resolve_top_k(design, query, known.estimate)
        return answer._replace(memory=known.memory, full_gradient=known.estimate)

    def accepts_memory(self, design: Design, memory: Memory, targets: tuple[int, ...]) -> bool:
        shapes = {"xtz": (design.shape[1], *targets), "roundings": (), "reach": ()}
        return not memory or {name: part.shape for name, part in memory.items()} == shapes

    def predict_seconds(self, design: Design, expect: Workload) -> float:
        """X^T y, Gram columns of the visited atoms, made in blocks, and their sums in each step."""
        if expect.y is None:
            return inf
        n, d = design.shape
        blocks = -(-expect.n_columns // GRAM_BATCH_USED) * product_seconds(design, GRAM_BATCH)
        terms = min(expect.n_columns, expect.n_queries) / 2
        terms *= COSTS.gram_term + d * expect.n_targets * COSTS.axpy
        left = RECOMPUTED * n * COSTS.gather if design.dtype == np.float32 else 0.0
        steps = expect.n_queries * (terms + left + COSTS.gram_step) * NANO
        width = GRAM_BATCH * -(-expect.n_columns // GRAM_BATCH_USED)
        before = design.pass_seconds + design.access.sweep_seconds(width)  # norms, columns
        return before + blocks + product_seconds(design, expect.n_targets) + steps

    def nbytes(self, design: Design) -> int:
        d = design.shape[1]
        return min(d * d * 8, self.memory_limit)
