"""Gram selection: the gradient of squared loss from columns of X^T X instead of X."""

from __future__ import annotations

from dataclasses import dataclass

from skpursuit.design.base import Design
from skpursuit.selectors.base import Query, Selection, Selector, rank


@dataclass(frozen=True)
class Gram(Selector):
    """Keep X^T x_j of every visited column: g = X^T X_S w_S - X^T y costs d |S|, not n d.

    Visited columns are kept, at most `memory_limit` bytes of them; once an eighth of the columns was
    visited and the whole d x d matrix fits in that bound, it is formed at once. Squared loss only.
    It pays when many targets or many iterations share a design (Frank-Wolfe, coding); a single orthogonal
    pursuit gains nothing.

    Parameters
    ----------
    memory_limit : int
        Bound in bytes on what is kept.
    """

    memory_limit: int = 2**30

    def __post_init__(self) -> None:
        if self.memory_limit < 1:
            raise ValueError(f"memory_limit must be at least 1 byte, got {self.memory_limit}")

    def find(self, design: Design, query: Query) -> Selection:
        if query.known is None:
            raise ValueError(
                "gram selection needs squared loss and a solver that keeps its support; use 'exact'"
            )
        design.gram_cache.limit = self.memory_limit
        g, error = query.known()
        return rank(design, query, g, error)

    def memory(self, design: Design) -> int:
        d = design.shape[1]
        return min(d * d * 8, self.memory_limit)

    def wants_known(self, design: Design) -> bool:
        return True
