"""Step sizes of Frank-Wolfe, all on predictions: a trial costs n operations, not n d."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from skpursuit.numerics.arrays import Floats
from skpursuit.numerics.convex_1d import minimize_convex_1d
from skpursuit.numerics.sums import fixed_order_vdot
from skpursuit.problem.problem import Problem
from skpursuit.problem.state import State


@dataclass(frozen=True)
class LineSearchProblem:
    """Predictions z + gamma dz for gamma in [0, limit], and the slope of the objective at gamma = 0."""

    problem: Problem
    state: State
    dz: Floats
    slope: float
    limit: float

    def value(self, gamma: float) -> float:
        """The objective at gamma."""
        return self.problem.value(self.state.z + gamma * self.dz)

    def slopes(self, gamma: float) -> tuple[float, float]:
        """First and second derivative of the objective at gamma."""
        z = self.state.z + gamma * self.dz
        with np.errstate(invalid="ignore", over="ignore"):
            first = fixed_order_vdot(self.problem.residual(z), self.dz)
            return first, fixed_order_vdot(self.problem.curvature(z), self.dz * self.dz)

    @property
    def size(self) -> float:
        """||dz||^2."""
        return fixed_order_vdot(self.dz, self.dz)


MAX_DOUBLINGS = 1100  # of a curvature, which reach the smallest step of all
StepSize = tuple[float, Mapping[str, Any]]


def open_loop_step(line: LineSearchProblem, t: int) -> StepSize:
    """2 / (t + 2)."""
    return min(line.limit, 2.0 / (t + 2.0)), {}


def exact_step(line: LineSearchProblem, t: int) -> StepSize:
    """The minimum along the line."""
    if line.slope >= 0.0:
        return 0.0, {}
    if line.problem.quadratic:
        size = line.size
        return (min(line.limit, -line.slope / size) if size > 0 else 0.0), {}
    return minimize_convex_1d(line.slopes, line.limit, 1e-12 * abs(line.slope)), {}


def backtracking_step(line: LineSearchProblem, t: int) -> StepSize:
    """By a curvature estimate that shrinks by a tenth each step and doubles until it bounds the objective."""
    first = line.problem.loss.smoothness or 1.0
    curvature = 0.9 * float(np.asarray(line.state.memory.get("curvature", first)))
    size, start = line.size, line.state.objective
    if line.slope >= 0.0 or size == 0.0:
        return 0.0, {"curvature": np.array(curvature)}
    slack = 1e-14 * abs(start)  # rounding of the objective: without it the estimate doubles at the minimum
    for _ in range(MAX_DOUBLINGS):
        gamma = min(line.limit, -line.slope / (curvature * size))
        bend = 0.5 * gamma * (gamma * curvature * size)  # gamma alone may be tiny
        if line.value(gamma) <= start + gamma * line.slope + bend + slack:
            return gamma, {"curvature": np.array(curvature)}
        curvature *= 2.0
    return 0.0, {"curvature": np.array(curvature)}


STEP_RULES: dict[str, Callable[[LineSearchProblem, int], StepSize]] = {
    "exact": exact_step,
    "open-loop": open_loop_step,
    "backtracking": backtracking_step,
}
