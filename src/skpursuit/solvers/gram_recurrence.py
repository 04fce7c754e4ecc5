"""The gradient of squared loss along Frank-Wolfe, by a recurrence on Gram columns."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from skpursuit.data.base import Floats, Indices
from skpursuit.data.grams import GRAM_WIDTH
from skpursuit.numerics.bounds import outer_bound
from skpursuit.problem.problem import Problem
from skpursuit.problem.score import top
from skpursuit.problem.sets import ConvexSet
from skpursuit.problem.state import State

EPS = float(np.finfo(np.float64).eps)
WORN = 1e6  # roundings after which X^T z is computed afresh


class KnownGradient:
    """X^T (z - y) at a state, from X^T z of the state before it and the step between them.

    Memory of the state: `xtz` and its accumulated `roundings`; `factor`, `columns` and `amounts` of the last
    step, w <- factor w + sum of amounts e_columns. The update waits until the gradient is asked for, so that
    the Gram columns it reads are counted as selection. A step along visited columns costs d numbers, not n d;
    the error bound lets the selection be exact whatever the rounding.
    """

    def __init__(self, problem: Problem, state: State, constraint: ConvexSet) -> None:
        self.problem = problem
        self.state = state
        self.constraint = constraint
        self.gradient: Floats | None = None
        self.xtz: Floats = np.empty(0)
        self.roundings = 0.0

    def __call__(self) -> tuple[Floats, Floats]:
        """The gradient and a bound on its error."""
        if self.gradient is None:
            self.xtz, self.roundings = self._updated()
            self.gradient = self.xtz - self.problem.xty
        design = self.problem.design
        sizes = design.column_sizes()
        size = self.problem.size + self.constraint.radius * float(sizes.max())
        unit = design.product_unit() + EPS * (self.roundings + 8)
        return self.gradient, outer_bound(4 * unit, sizes, size)

    def _updated(self) -> tuple[Floats, float]:
        memory = self.state.memory
        before = memory.get("xtz")
        if before is None or float(np.asarray(memory["roundings"])) > WORN:
            return self._afresh(), 0.0
        old = np.asarray(before)
        factor = float(np.asarray(memory["factor"]))
        xtz = factor * old
        for j, amount in zip(np.asarray(memory["columns"]).tolist(), np.asarray(memory["amounts"]).tolist()):
            xtz += amount * self.problem.design.gram_column(j, partial(self._guesses, old))
        return xtz, abs(factor) * float(np.asarray(memory["roundings"])) + 4.0

    def _afresh(self) -> Floats:
        state = self.state
        if len(state.support) == 0:
            return np.zeros(self.problem.design.shape[1])
        return self.problem.design.gram(None, state.support) @ state.coef

    def _guesses(self, xtz: Floats) -> Indices:
        """Columns likely to be visited soon: those that scored high when the missing one was chosen."""
        scores = self.constraint.score.of(xtz - self.problem.xty)
        scores[self.problem.design.gram_held()] = -np.inf
        return top(scores, GRAM_WIDTH)

    def after(self, gamma: float, factor: float, moves: tuple[tuple[int, float], ...]) -> dict[str, Any]:
        """What the next state remembers."""
        if self.gradient is None:
            self()
        return {
            "xtz": self.xtz,
            "roundings": np.array(self.roundings),
            "factor": np.array(1.0 + gamma * factor),
            "columns": np.array([j for j, _ in moves], dtype=np.intp),
            "amounts": np.array([gamma * c for _, c in moves]),
        }
