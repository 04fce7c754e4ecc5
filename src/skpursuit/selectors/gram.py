"""Gram selection: the gradient of squared loss from columns of X^T X instead of X."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from skpursuit.data.base import Design
from skpursuit.parameters import check_count, check_flag
from skpursuit.selectors.base import Query, Selection, Selector, rank
from skpursuit.selectors.exact import Exact


@dataclass(frozen=True)
class Gram(Selector):
    """Keep X^T x_j of every visited column: g = X^T X_S w_S - X^T y costs d |S|, not n d.

    Columns are made ahead: when one is missing, so are those that score next best, all in one product that
    costs less than four with a single vector. A pursuit takes nearly all of them later, so that it reads X
    about every twelfth step. Visited columns are kept, at most `memory_limit` bytes of them; once a third of
    them was visited and the whole d x d matrix fits in that bound, it is formed at once. Squared loss only.
    Where products of columns would leave the range of float64, exact selection takes its place.

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

    def find(self, design: Design, query: Query) -> Selection:
        if query.known is None:
            raise ValueError(
                "gram selection needs squared loss and a solver that keeps its support; use 'exact'"
            )
        design.gram_cache.limit = self.memory_limit
        if self.whole and design.shape[1] ** 2 * 8 <= self.memory_limit:
            design.gram_matrix()
        g, error = query.known()
        return rank(design, query, g, error)

    def resolve(self, problem: Any, solver: Any) -> Selector:
        return self if problem.design.squares_fit() else Exact()

    def memory(self, design: Design) -> int:
        d = design.shape[1]
        return min(d * d * 8, self.memory_limit)

    def wants_known(self, design: Design) -> bool:
        return True
