"""The last look at a run: whether what it tells is what its coefficients give.

Solvers move coefficients, predictions z and the objective side by side, each by its own cheap update. A
mistake in one of them, or digits that near-dependent columns lose, would let a result tell an objective that
its coefficients do not reach. So a run ends with one product: X_S w_S, from the columns gathered for the
fit, is compared with z, and the loss there with the objective, both to TOLERANCE. What differs by more is
not repaired: the run tells the objective of its coefficients and ends with Status.INCONSISTENT.
"""

from __future__ import annotations

from math import isfinite

import numpy as np

from skpursuit.numerics.arrays import Floats
from skpursuit.numerics.sums import safe_norm
from skpursuit.numerics.tuning import CHECKED_TOGETHER
from skpursuit.problem.problem import Problem
from skpursuit.problem.state import State

CONSISTENCY_TOL = 1e-8  # of ||z|| + ||y|| in predictions, of the objectives here and at zero in the objective


def check_consistency(problem: Problem, state: State) -> tuple[bool, float]:
    """Whether z and the objective of a state are those of its coefficients, and the objective that is."""
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):  # what is not finite differs
        z = recompute_predictions(problem, state)
        objective = problem.value(z)
        return same_predictions(problem, state.z, z) and same_objective(problem, state, objective), objective


def recompute_predictions(problem: Problem, state: State) -> Floats:
    """X_S w_S."""
    z = np.zeros_like(state.z)
    for start in range(0, len(state.support), CHECKED_TOGETHER):
        part = slice(start, start + CHECKED_TOGETHER)
        z += problem.design.predict(state.support[part], state.coef[part])
    return z


def same_predictions(problem: Problem, reported: Floats, z: Floats) -> bool:
    """Whether ||told - z|| <= TOLERANCE (||z|| + ||y||)."""
    difference, *sizes = (safe_norm(part.ravel()) for part in (reported - z, z, problem.y))
    return isfinite(difference) and difference <= CONSISTENCY_TOL * sum(sizes)


def same_objective(problem: Problem, state: State, objective: float) -> bool:
    """Whether the objective told is this one, to TOLERANCE of it and of the zero model's."""
    if state.objective == objective:
        return True
    difference = abs(state.objective - objective)
    size = abs(objective) + abs(problem.value(np.zeros_like(state.z)))
    return isfinite(difference) and difference <= CONSISTENCY_TOL * size
