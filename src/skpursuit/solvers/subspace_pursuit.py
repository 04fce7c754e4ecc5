"""Subspace pursuit: a support of k columns that is exchanged, not grown, as long as that helps.

Like CoSaMP it merges the support with new columns, fits on all of them and prunes. It differs in three ways:
it merges k new columns instead of 2k, it fits again after pruning, and it takes a step only if the objective
falls. So the objective falls until the run ends, and no iterate has to be remembered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from skpursuit.fit.merged import fit_and_prune
from skpursuit.problem.problem import Problem
from skpursuit.problem.state import State, Status, empty_state
from skpursuit.selectors.base import SelectionOracle
from skpursuit.selectors.query import Query
from skpursuit.solvers.base import Solver, stop_on_residual


@dataclass(frozen=True)
class SubspacePursuit(Solver):
    """Subspace pursuit (Dai, Milenkovic, 2009), for squared loss.

    Each step merges the support with the k columns of largest |gradient|, solves least squares on the merged
    columns, keeps the k largest coefficients and fits these again. The run ends with the first step that
    does not lower the objective.

    Parameters
    ----------
    n_nonzero_coefs, tol, rtol, max_iter, ridge, prune, exclude
        As in `CoSaMP`.

    Examples
    --------
    >>> from skpursuit import SubspacePursuit, datasets, metrics, minimize
    >>> X, y, w = datasets.make_sparse_signal(200, 400, 5, snr=20.0, random_state=0)
    >>> metrics.f_measure(w, minimize(X, y, SubspacePursuit(n_nonzero_coefs=5)).coef)
    1.0
    """

    selects_many: ClassVar[bool] = True
    takes_sparsity: ClassVar[bool] = True
    supports_ridge: ClassVar[bool] = True
    squared_loss_only: ClassVar[bool] = True
    n_nonzero_coefs: int | None = None
    tol: float | None = None
    rtol: float | None = None
    max_iter: int = 100
    ridge: float = 0.0
    prune: str = "size"
    exclude: Sequence[int | str] = ()

    def expected_queries(self, problem: Problem) -> tuple[int, int]:
        """A few steps settle it; each visits k columns, many of them again."""
        return min(self.max_iter, 4), min(2 * self.sparsity(problem), problem.design.shape[1])

    def init(self, problem: Problem) -> State:
        if not problem.quadratic:
            raise ValueError("SubspacePursuit is least squares; use GraSP for other losses than squared")
        self._check_sparsity(problem)
        return stop_on_residual(problem, empty_state(problem), self.tol, self.rtol)

    def step(self, problem: Problem, state: State, select: SelectionOracle, rng: Generator) -> State:
        k, r = self.sparsity(problem), problem.residual(state.z)
        # The support is merged anyway, so nothing is lost by excluding it.
        gone = self.closed(state.support)
        query = Query(r, k, problem.score, gone, rng, state=state, ordered=False)
        found = select(query).columns
        if len(found) == 0:
            return replace(state, status=Status.OPTIMAL)
        after = fit_and_prune(problem, state, np.union1d(state.support, found), k, True, self.prune)
        if not problem.penalized_objective(after) < problem.penalized_objective(state):
            return replace(state, status=Status.STALLED)
        return stop_on_residual(problem, after, self.tol, self.rtol)
