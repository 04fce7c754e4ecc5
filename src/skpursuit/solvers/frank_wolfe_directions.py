"""Where Frank-Wolfe can go: the vertices that an iterate is a mean of, and the directions of the variants.

Every non-zero coefficient of an iterate stands for one vertex of the constraint set, with a weight; what is
left of the weight belongs to the origin. Plain Frank-Wolfe moves towards a new vertex. The variants may also
take weight from the worst of the present vertices: they need the largest and the smallest <g, vertex> among
them (`Point.extremes`). Products that differ by less than their rounding count as equal, and the lowest
column wins, so that a run does not depend on how products are rounded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from skpursuit.numerics.arrays import Floats, Indices
from skpursuit.numerics.error_bounds import Estimate
from skpursuit.numerics.float_range import EPS, NonFiniteError
from skpursuit.numerics.sums import fixed_order_vdot, safe_norm
from skpursuit.problem.constraint_sets import ConvexSet
from skpursuit.problem.problem import Problem
from skpursuit.problem.state import State

ORIGIN = -1  # the column of the origin, which the l1 ball's points may lean on like on a vertex
WEIGHT_TOL = 1e-12


@dataclass(frozen=True)
class Vertex:
    """A vertex c e_j, or the origin: <g, vertex> and, where it is active, its weight."""

    column: int
    coef: float
    value: float
    weight: float = 0.0


@dataclass(frozen=True)
class Direction:
    """The direction factor * w + sum of c e_j, feasible up to a limit, at which one column may be emptied."""

    factor: float
    moves: tuple[tuple[int, float], ...]
    max_step: float = 1.0
    drop_column: int = ORIGIN


class Iterate:
    """An iterate and what the gradient says about it.

    `estimate` is that of the gradient, where the selector knows it; set before `extremes` are asked for.
    """

    def __init__(self, problem: Problem, state: State, constraint: ConvexSet) -> None:
        self.problem, self.state, self.constraint = problem, state, constraint
        self.estimate: Estimate | None = None
        self.r = problem.residual(state.z)
        self.value = fixed_order_vdot(self.r, state.z)
        self._columns: dict[int, Floats] = {}

    def column(self, j: int) -> Floats:
        """Column j of X."""
        if j not in self._columns:
            self._columns[j] = self.problem.design.columns(np.array([j]))[0]
        return self._columns[j]

    def vertex(self, j: int) -> Vertex:
        """The better vertex of column j."""
        slope = fixed_order_vdot(self.column(j), self.r)
        c = self.constraint.vertex(slope)
        return Vertex(j, c, c * slope)

    def rounding(self) -> float:
        """The duality gap below which there is nothing but rounding."""
        reach = safe_norm(self.state.z) + self.constraint.radius * self.problem.max_column_norm
        return 4 * len(self.r) * EPS * safe_norm(self.r) * reach

    @cached_property
    def tie_tolerance(self) -> float:
        """Rounding of <g, vertex>. A pairwise step makes two atoms equal up to it: those ties are real."""
        size = safe_norm(self.r) * self.problem.max_column_norm * self.constraint.radius
        return 4 * (len(self.r) + 8) * EPS * size

    @cached_property
    def active_extremes(self) -> tuple[Vertex, Vertex]:
        """The active atoms with the largest and the smallest <g, atom>, ties to the lowest column."""
        state = self.state
        spare = self.constraint.origin_weight(state.coef)
        origin = Vertex(ORIGIN, 0.0, 0.0, spare)
        if len(state.support) == 0:
            return origin, origin
        coefs = np.copysign(self.constraint.radius, state.coef)
        gradient, errors = self.estimate or (None, None)
        if gradient is None or errors is None:
            values, error = coefs * (self.problem.design.columns(state.support) @ self.r), 0.0
        else:
            values = coefs * gradient[state.support]
            error = self.constraint.radius * float(errors[state.support].max())
        most = self._largest(coefs, values, error, 1.0)
        least = self._largest(coefs, values, error, -1.0)
        if spare > WEIGHT_TOL:
            # A line search from the origin leaves an atom at zero up to rounding, which is a tie.
            most = origin if most.value <= self.tie_tolerance else most
            least = origin if least.value > self.tie_tolerance else least
        return most, least

    def _largest(self, coefs: Floats, values: Floats, error: float, sign: float) -> Vertex:
        """The active atom of largest sign * value, made sure of by products with the columns themselves."""
        signed = sign * values
        close = np.flatnonzero(signed >= signed.max() - 2 * error - self.tie_tolerance)
        if len(close) == 0:  # comparisons with NaN
            raise NonFiniteError("the gradient of an active column is not finite")
        close = close[np.argsort(self.state.support[close])]
        exact = [self.active(i, float(coefs[i])) for i in close.tolist()]
        top = max(sign * atom.value for atom in exact)
        return next(atom for atom in exact if sign * atom.value >= top - self.tie_tolerance)

    def active(self, i: int, coef: float) -> Vertex:
        """The active atom at position i of the support."""
        j = int(self.state.support[i])
        weight = abs(float(self.state.coef[i])) / self.constraint.radius
        return Vertex(j, coef, coef * fixed_order_vdot(self.column(j), self.r), weight)


def vanilla_direction(point: Iterate, toward: Vertex) -> Direction:
    """Towards the vertex: s - w."""
    return Direction(-1.0, coefficient_terms(toward))


def prefer_active(point: Iterate, toward: Vertex) -> Vertex:
    """The new vertex, unless an active one is as good: of equal atoms it must be the same one each time."""
    best = point.active_extremes[1]
    return best if best.value <= toward.value + point.tie_tolerance and best.column != ORIGIN else toward


def away_direction(point: Iterate, toward: Vertex) -> Direction:
    """Towards the vertex, or away from the worst active one, w - a, whichever promises more."""
    worst, toward = point.active_extremes[0], prefer_active(point, toward)
    if point.value - toward.value >= worst.value - point.value or worst.weight >= 1.0 - WEIGHT_TOL:
        return vanilla_direction(point, toward)
    return Direction(1.0, coefficient_terms(worst, -1.0), worst.weight / (1.0 - worst.weight), worst.column)


def pairwise_direction(point: Iterate, toward: Vertex) -> Direction:
    """Weight from the worst active vertex to the new one: s - a."""
    worst, toward = point.active_extremes[0], prefer_active(point, toward)
    if worst.column == toward.column and worst.coef == toward.coef:
        return vanilla_direction(point, toward)
    # Opposite vertices share one coefficient: it passes through zero and is not emptied.
    emptied = ORIGIN if worst.column == toward.column else worst.column
    return Direction(0.0, coefficient_terms(toward) + coefficient_terms(worst, -1.0), worst.weight, emptied)


def blended_direction(point: Iterate, toward: Vertex) -> Direction:
    """Weight from the worst active vertex to the best active one, unless the new vertex promises more."""
    worst, best = point.active_extremes
    if worst.value - best.value >= point.value - toward.value and worst.column != best.column:
        return pairwise_direction(point, best)
    return vanilla_direction(point, prefer_active(point, toward))


VARIANTS: dict[str, Callable[[Iterate, Vertex], Direction]] = {
    "vanilla": vanilla_direction,
    "away": away_direction,
    "pairwise": pairwise_direction,
    "blended": blended_direction,
}


def coefficient_terms(atom: Vertex, sign: float = 1.0) -> tuple[tuple[int, float], ...]:
    """The move of one coefficient that an atom makes; none for the origin."""
    return () if atom.column == ORIGIN else ((atom.column, sign * atom.coef),)


def apply_step(state: State, way: Direction, gamma: float) -> tuple[Indices, Floats]:
    """Support and coefficients after the step; coefficients that became zero leave."""
    support, coef = state.support, (1.0 + gamma * way.factor) * state.coef
    for j, c in way.moves:
        place = np.flatnonzero(support == j)
        if len(place):
            coef[place[0]] += gamma * c
        else:
            support, coef = np.append(support, j), np.append(coef, gamma * c)
    if way.drop_column != ORIGIN:
        i = np.flatnonzero(support == way.drop_column)[0]
        if gamma == way.max_step or np.sign(coef[i]) * np.sign(state.coef[i]) < 0:
            coef[i] = 0.0
    if not coef.all():
        support, coef = support[coef != 0], coef[coef != 0]
    return support, coef
