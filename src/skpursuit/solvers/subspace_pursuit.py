"""Subspace pursuit: a support of k columns that is exchanged, not grown, as long as that helps.

Like CoSaMP it merges the support with new columns, fits on all of them and prunes. It differs in three ways:
it merges k new columns instead of 2k, it fits again after pruning, and it takes a step only if the objective
falls. So the objective falls until the run ends, and no iterate has to be remembered.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from numpy.random import Generator

from skpursuit.problem.problem import Problem
from skpursuit.problem.state import State, Status
from skpursuit.selectors.base import SelectionOracle
from skpursuit.solvers.base import stop_on_residual
from skpursuit.solvers.cosamp import MergingSolver


@dataclass(frozen=True)
class SubspacePursuit(MergingSolver):
    """Subspace pursuit (Dai, Milenkovic, 2009), for squared loss.

    Each step merges the support with the k columns of largest |gradient|, solves least squares on the merged
    columns, keeps the k largest coefficients and fits these again. The run ends with the first step that
    does not lower the objective.

    Parameters
    ----------
    n_nonzero_coefs, tol, rtol, max_iter, ridge, prune, feature_groups, exclude, always_include, positive
        As in `CoSaMP`.

    Examples
    --------
    >>> from skpursuit import SubspacePursuit, datasets, metrics, minimize
    >>> X, y, w = datasets.make_sparse_signal(200, 400, 5, snr=20.0, random_state=0)
    >>> metrics.f_measure(w, minimize(X, y, SubspacePursuit(n_nonzero_coefs=5)).coef)
    1.0
    """

    merged_share: ClassVar[int] = 1

    def step(self, problem: Problem, state: State, select: SelectionOracle, rng: Generator) -> State:
        # The support is merged anyway, so nothing is lost by excluding it.
        found = select(self._query(problem, problem.residual(state.z), state.support, rng, state)).columns
        if len(found) == 0:
            return replace(state, status=Status.OPTIMAL)
        after = self._pruned(problem, state, self._merged(state, found), refit=True)
        if not problem.penalized_objective(after) < problem.penalized_objective(state):
            return replace(state, status=Status.STALLED)
        return stop_on_residual(problem, after, self.tol, self.rtol)
