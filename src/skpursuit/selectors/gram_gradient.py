"""Gradients of squared loss as sums of Gram columns, known more cheaply than by reading X.

With r = X_S w_S - y the gradient is X^T r = sum of w_j X^T x_j, less X^T y: a sum of one Gram column for each
column of the support. Gram columns are a pure function of X, so the design keeps them, and they serve every
later step and every later y. One alone costs as much as X^T r itself, but several cost little more, because
they read X once. So when one is missing it is made together with those of the columns that score next best: a
pursuit takes nearly all of them soon.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.linalg.blas import daxpy

from skpursuit.data.design import Design
from skpursuit.data.gram_columns import gram_column, gram_matrix
from skpursuit.numerics import tuning
from skpursuit.numerics.arrays import Floats, Indices
from skpursuit.numerics.error_bounds import Estimate, outer_error_bound
from skpursuit.numerics.float_range import EPS
from skpursuit.numerics.sums import safe_norm
from skpursuit.problem.scores import Score, top_k
from skpursuit.problem.state import State
from skpursuit.selectors.query import NO_MEMORY, Memory, Query

SINGLE_EPS = float(np.finfo(np.float32).eps)


class KnownGradient(NamedTuple):
    """X^T r for all columns, and what the sums want to be given with the next query."""

    estimate: Estimate
    memory: Memory = NO_MEMORY


class GramGradient:
    """X^T (X_S w_S - y) by columns of X^T X.

    A solver that moves its predictions step by step (`roundings` None) has its gradient followed: X^T z comes
    from that of the state before and the move between them, in d numbers for each column of the move, however
    many columns the support has. Memory: `xtz`; the `roundings` it has gone through; `reach`, the largest sum
    of |w_j| ||x_j|| of a state on the way.

    Parameters
    ----------
    design : Design
    y : ndarray of shape (n,) or (n, m)
    roundings : int, optional
        As in `Workload`.
    whole : bool
        Whether X^T X is formed at once.
    """

    def __init__(self, design: Design, y: Floats, roundings: int | None, whole: bool = False) -> None:
        self.design, self.y, self.roundings = design, y, roundings
        self.whole, self.size_of_y = whole, safe_norm(y.ravel(order="K"))
        self.last: tuple[State | None, KnownGradient | None] = None, None

    @cached_property
    def xty(self) -> Floats:
        """X^T y."""
        return self.design.product(self.y)

    def evaluate(self, query: Query, memory: Memory) -> KnownGradient | None:
        """X^T r at the state of the query; None where it has none.

        `memory` is that of the state before, from which `State.move` led to this one.
        """
        at = query.state
        if at is None:
            return None
        if self.last[0] is at:  # a step that looked first
            return self.last[1]
        if self.whole:
            gram_matrix(self.design)
        sizes = self.design.norm_bounds
        reach = float((np.abs(at.coef.T) * sizes[at.support]).sum())
        if (
            self.roundings is None
            and at.last_update
            and "xtz" in memory
            and memory["roundings"] <= tuning.MAX_UPDATE_ROUNDINGS
        ):
            factor, columns, amounts = at.last_update
            xtz = self._add_gram_columns(factor * memory["xtz"], columns, amounts, query.score, memory["xtz"])
            roundings = abs(factor) * float(memory["roundings"]) + 4.0 * max(1.0, abs(factor))
            reach = max(reach, float(memory["reach"]))
        else:
            nothing = np.zeros((len(sizes), *at.coef.shape[1:]))
            xtz = self._add_gram_columns(nothing, at.support, at.coef, query.score)
            roundings = len(at.support) + (self.roundings or 0.0)
        unit = self.design.rounding_unit + EPS * (roundings + 8)
        error = outer_error_bound(4 * unit, sizes, self.size_of_y + reach)
        if xtz.ndim == 2:
            error = np.repeat(error[:, None], xtz.shape[1], axis=1)
        memory = {"xtz": xtz, "roundings": np.array(roundings), "reach": np.array(reach)}
        known = KnownGradient(
            Estimate(xtz - self.xty, error), memory if self.roundings is None else NO_MEMORY
        )
        self.last = at, known
        return known

    def _add_gram_columns(
        self, xtz: Floats, columns: Indices, amounts: Floats, score: Score, before: Floats | None = None
    ) -> Floats:
        """The sum, and Gram columns times amounts.

        A missing one is made with those of columns that scored high `before`, or by the sum so far.
        """

        def likely(count: int) -> Indices:
            scores = score.of((xtz if before is None else before) - self.xty)
            scores[list(self.design.caches.gram_columns.arrays)] = -np.inf
            return np.append(columns, top_k(scores, count))

        for j, amount in zip(columns.tolist(), amounts):
            line = gram_column(self.design, j, likely)
            xtz = daxpy(line, xtz, a=amount) if xtz.ndim == 1 else xtz + np.multiply.outer(line, amount)
        return xtz
