"""Frank-Wolfe on the l1 ball and the simplex: vanilla, away steps, pairwise, blended pairwise, corrective.

A step asks the selector for the vertex that the gradient favours, takes a direction from the variant and a
length from the step rule. The gap between the iterate and that vertex bounds the distance to the minimum, so
it also says when to stop.

Every non-zero coefficient of an iterate stands for one vertex of the constraint set, with a weight; what is
left of the weight belongs to the origin. Plain Frank-Wolfe moves towards a new vertex. The variants may also
take weight from the worst of the present vertices: they need the largest and the smallest <g, vertex> among
them (`Iterate.active_extremes`). Products that differ by less than their rounding count as equal, and the
lowest column wins, so that a run does not depend on how products are rounded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from math import isfinite
from typing import Any, Self

import numpy as np
from numpy.random import Generator

from skpursuit.fit.hull import minimize_in_hull
from skpursuit.fit.merged import normal_equations
from skpursuit.fit.newton import minimize_convex_1d
from skpursuit.numerics.arrays import NO_COLUMNS, Floats, Indices
from skpursuit.numerics.error_bounds import Estimate
from skpursuit.numerics.float_range import EPS, NonFiniteError
from skpursuit.numerics.sums import fixed_order_dot, fixed_order_vdot, safe_norm
from skpursuit.parameters import check_choice, check_methods
from skpursuit.problem.constraint_sets import SET_METHODS, ConvexSet, L1Ball
from skpursuit.problem.problem import Problem
from skpursuit.problem.state import SparseUpdate, State, Status
from skpursuit.selectors.base import SelectionOracle
from skpursuit.selectors.gram import GramSteps
from skpursuit.selectors.query import Query, Selection
from skpursuit.solvers.base import Solver, stop_on_residual

ORIGIN = -1  # the column of the origin, which the l1 ball's points may lean on like on a vertex
WEIGHT_TOL = 1e-12
MAX_DOUBLINGS = 1100  # of a curvature, which reach the smallest step of all
FIRST_VERTICES = 64  # at most that are found together by the first corrective steps
COMPILED_ENTRIES = 2**20  # of X, from which loading compiled code pays


@dataclass(frozen=True)
class FrankWolfe(Solver):
    """Frank-Wolfe (conditional gradient): move towards the vertex that the gradient points away from.

    The coefficients are the active set: a point of the l1 ball is the mean of the vertices of its non-zero
    coefficients and the origin, so that no other list of vertices is kept. The origin counts as an atom that
    away and pairwise steps may leave. `Record.gap` is the duality gap <g, w - s> of the iterate that the step
    starts from, an upper bound of its distance to the minimum when the selection is exact.

    Parameters
    ----------
    constraint : L1Ball or Simplex
        The feasible set; any object with the methods of `ConvexSet`.
    max_iter : int
        Limit on steps.
    line_search : {"exact", "open-loop", "backtracking"}
        Step sizes: the minimum along the direction (closed form for squared loss, safeguarded Newton on the
        predictions for others); 2 / (t + 2), for which a rate is known for the variant vanilla without
        `lazy` only; or by a running estimate of the curvature (Pedregosa et al.).
    variant : {"vanilla", "away", "pairwise", "blended", "corrective"}
        "away" may also move away from the worst active vertex, "pairwise" moves weight from it to the new
        one, "blended" prefers such moves between active vertices while they promise more (Tsuji et al.).
        "corrective", for squared loss and ``line_search="exact"``, finds several vertices a step and goes on
        to the best point of the hull of the active ones by their Gram matrix. Some ten steps are enough.
    gap_tol : float, optional
        Stop once the duality gap is at most this. An answer of a selector that is not exact is checked by an
        exact one before the run stops.
    lazy : bool
        Take the best active vertex without asking the selector while it promises at least half of the last
        known gap. Steps that did not ask have no `Record.gap`.
    confirm : bool
        Ask for an exact vertex where that of a heuristic selector promises nothing. False, as in the paper:
        the iterate stays as it is and the next step asks anew; such a run ends by its limits.

    Examples
    --------
    >>> from skpursuit import FrankWolfe, L1Ball, datasets, minimize
    >>> X, y, w = datasets.make_sparse_signal(100, 200, 3, snr=20.0, random_state=0)
    >>> result = minimize(X, y, FrankWolfe(L1Ball(abs(w).sum()), variant="blended", gap_tol=1e-6))
    >>> result.status.name, bool(abs(result.coef).sum() <= abs(w).sum() * (1 + 1e-9))
    ('CONVERGED', True)
    """

    constraint: ConvexSet
    max_iter: int = 1000
    line_search: str = "exact"
    variant: str = "vanilla"
    gap_tol: float | None = None
    lazy: bool = False
    confirm: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_methods("constraint", self.constraint, SET_METHODS, "L1Ball(2.0)")
        check_choice("line_search", self.line_search, STEP_RULES)
        check_choice("variant", self.variant, VARIANTS)
        if self.variant == "corrective" and self.line_search != "exact":
            raise ValueError('variant="corrective" goes to the minimum; leave line_search at "exact"')

    @classmethod
    def from_parameters(cls, tol: object = None, **given: object) -> Self:
        """Frank-Wolfe on the l1 ball of radius 1; an estimator's `tol` is the duality gap."""
        return super().from_parameters(constraint=L1Ball(), gap_tol=tol, **given)

    @property
    def radius(self) -> float:
        """The l1 norm of the vertices."""
        return self.constraint.radius

    def expected_queries(self, problem: Problem) -> tuple[int, int]:
        """Vertices are visited again and again; Gram columns come in blocks, four times as cheap.

        Corrective steps are few, and find as many vertices as there are.
        """
        if self.variant == "corrective":
            steps = min(self.max_iter, 8)
            return steps, min(2**steps, *problem.design.shape)
        return self.max_iter, min(16 + self.max_iter // 64, problem.design.shape[1])

    @property
    def n_updates(self) -> None:
        """`State.move` tells each move."""
        return None

    def init(self, problem: Problem) -> State:
        if problem.target_shape:
            raise ValueError("Frank-Wolfe fits one target; loop over columns, or write shared_support=False")
        if self.variant == "corrective" and not problem.quadratic:
            raise ValueError('variant="corrective" is least squares; use "blended" for other losses')
        support, coef = self.constraint.start()
        z = problem.design.predict(support, coef)
        return State(support, coef, z, problem.value(z), memory={"t": np.array(0)})

    def step(self, problem: Problem, state: State, select: SelectionOracle, rng: Generator) -> State:
        t, steps = int(np.asarray(state.memory["t"])), self._gram_steps(problem, select)
        memory: dict[str, Any] = {"t": np.array(t + 1)}
        answer = toward = None
        made = None if steps is None else steps.take(state, select)
        if made is None:
            eps, r = tolerated_error(problem, self.constraint, t), problem.residual(state.z)
            k = self._vertices(problem, len(state.support)) if self.variant == "corrective" else 1
            query = Query(r, k, self.constraint.score, rng=rng, tolerated_error=eps, state=state)
            if steps is not None:
                answer = steps.make(query, state.z, t, select)
                made = steps.take(state, select, answer is not None)
        if made is not None:
            move, gap, objective, z = made
            memory["gap"] = memory["phi"] = np.array(gap)
            given = *apply_step(state, move), z, objective
            return State(*given, memory=memory, last_update=move, selector_memory=select.memory)
        point = Iterate(problem, state, self.constraint, r)
        if self.lazy:
            point.estimate, phi = select.known_gradient(query), state.memory.get("phi")
            if phi is not None and len(state.support):  # half of the last gap that was asked for is enough
                local = point.active_extremes[1]
                toward = local if point.value - local.value >= 0.5 * float(np.asarray(phi)) else None
        if toward is None:
            toward, gap, status = self._query_vertex(point, query, select, answer)
            memory["gap"] = memory["phi"] = np.array(gap)
            if status is not None:
                return replace(state, status=status, last_update=None, memory={**state.memory, **memory})
        else:
            memory["phi"] = state.memory["phi"]
        return self._take_step(point, toward, memory)

    def _vertices(self, problem: Problem, active: int) -> int:
        """How many vertices a corrective step asks for: as many as there are, and no more than can differ."""
        n, d = problem.design.shape
        return min(max(FIRST_VERTICES, active), d, max(1, n - active))

    def _gram_steps(self, problem: Problem, select: SelectionOracle) -> GramSteps | None:
        """What makes many steps at once, where it can: of the plain variant, in float64, on a large X."""
        sums, (n, d) = select.bound.gram_gradient, problem.design.shape
        if sums is not None and sums.steps is not None:
            return sums.steps
        plain = self.variant == "vanilla" and self.line_search != "backtracking" and not self.lazy
        known = getattr(self.constraint, "has_compiled_steps", False) and problem.design.dtype == np.float64
        if sums is None or n * d < COMPILED_ENTRIES or not (plain and known) or select.audited:
            return None
        exact, least = self.line_search == "exact", self.gap_tol or 0.0
        sums.steps = GramSteps(problem, self.constraint, exact, least, sums.xty)
        return sums.steps

    def _query_vertex(
        self, point: Iterate, query: Query, select: SelectionOracle, answer: Selection | None
    ) -> tuple[Vertex, float, Status | None]:
        """The selector's vertex and gap; a gap small enough to stop is made sure of by an exact answer."""
        floor = point.rounding()
        answer = select(query) if answer is None else answer
        point.estimate, point.promising = answer.full_gradient, answer.columns[1:]
        for _ in range(2):
            toward = point.vertex(int(answer.columns[0]))
            gap = point.value - toward.value
            if not isfinite(gap):
                raise NonFiniteError("the duality gap is not finite")
            exact = answer.certificate == "exact"
            if gap > max(floor, self.gap_tol or 0.0) or not (exact or self.confirm):
                return toward, gap, None
            if exact:
                break
            answer = select.select_exactly(query)
        return toward, gap, Status.OPTIMAL if gap <= floor else Status.CONVERGED

    def _take_step(self, point: Iterate, toward: Vertex, memory: dict[str, Any]) -> State:
        """Go along the variant's direction as far as the step rule says."""
        problem, state = point.problem, point.state
        way = VARIANTS[self.variant](point, toward)
        dz = way.factor * state.z
        for j, c in way.moves:
            dz += c * point.column(j)
        gamma, kept = STEP_RULES[self.line_search](point, dz, way.max_step, int(memory["t"]) - 1)
        if not gamma > 0:
            status = Status.STALLED if self.confirm else None
            return replace(state, status=status, last_update=None, memory={**state.memory, **memory})
        z = state.z + gamma * dz
        columns = np.array([j for j, _ in way.moves], dtype=np.intp)
        move = SparseUpdate(1.0 + gamma * way.factor, columns, np.array([gamma * c for _, c in way.moves]))
        support, coef = apply_step(state, move, way.drop_column, gamma == way.max_step)
        after = State(support, coef, z, problem.value(z), memory={**memory, **kept}, last_update=move)
        return after if self.variant != "corrective" else self._corrected(point, after)

    def _corrected(self, point: Iterate, state: State) -> State:
        """The best point on the vertices of a state and those that were found with its own.

        The state itself where rounding leaves no better one.
        """
        problem, new = point.problem, np.setdiff1d(point.promising, state.support)
        support = np.append(state.support, new)
        order = np.argsort(support)
        equations, lines, places = normal_equations(problem, support[order], point.state.memory)
        slope, coef = np.empty(len(order)), np.append(state.coef, np.zeros(len(new)))
        slope[places] = lines @ problem.residual(state.z)
        signs = np.sign(coef)[order]
        signs[signs == 0] = [np.sign(self.constraint.vertex(one)) for one in slope[signs == 0]]
        has_origin = self.constraint.origin_weight(np.zeros(1)) > 0
        best = minimize_in_hull(equations.gram, slope, coef[order], signs, self.radius, has_origin)
        z, coef[order] = best[places] @ lines, best
        memory, objective, left = {**state.memory, **equations._asdict()}, problem.value(z), coef != 0
        after = replace(state, memory=memory)
        if objective < state.objective:
            after = State(support[left], coef[left], z, objective, memory=memory)
        if not after.objective < point.state.objective:
            return replace(point.state, memory=memory, last_update=None, status=Status.STALLED)
        return stop_on_residual(problem, after, None, None)


def tolerated_error(problem: Problem, constraint: ConvexSet, t: int) -> float | None:
    """gamma_t C_f / (4 radius): delta times this gradient error costs the rate a factor 1 + delta."""
    smoothness = problem.loss.smoothness
    if smoothness is None:
        return None
    if problem.weights is not None:
        smoothness = smoothness * float(problem.weights.max())
    return 2 / (t + 2) * constraint.radius * (problem.max_column_norm * problem.max_column_norm) * smoothness


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

    `estimate` is that of the gradient, where the selector knows it; set before
    `active_extremes` are asked for.
    """

    def __init__(self, problem: Problem, state: State, constraint: ConvexSet, r: Floats) -> None:
        self.problem, self.state, self.constraint, self.r = problem, state, constraint, r
        self.estimate: Estimate | None = None
        self.promising = NO_COLUMNS
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
        signed, support = sign * values, self.state.support
        close = np.flatnonzero(signed >= signed.max() - 2 * error - self.tie_tolerance)
        if len(close) == 0:  # comparisons with NaN
            raise NonFiniteError("the gradient of an active column is not finite")
        close = close[np.argsort(support[close])]
        exact = coefs[close] * fixed_order_dot(list(self.problem.design.columns(support[close])), self.r)
        first = int(np.argmax(sign * exact >= (sign * exact).max() - self.tie_tolerance))
        i = int(close[first])
        weight = abs(float(self.state.coef[i])) / self.constraint.radius
        return Vertex(int(support[i]), float(coefs[i]), float(exact[first]), weight)


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
    "corrective": vanilla_direction,
}


def coefficient_terms(atom: Vertex, sign: float = 1.0) -> tuple[tuple[int, float], ...]:
    """The move of one coefficient that an atom makes; none for the origin."""
    return () if atom.column == ORIGIN else ((atom.column, sign * atom.coef),)


def apply_step(
    state: State, move: SparseUpdate, drop_column: int = ORIGIN, full: bool = False
) -> tuple[Indices, Floats]:
    """Support and coefficients after a move; coefficients that became zero leave.

    A `full` step empties `drop_column`, and one that rounds beyond zero too.
    """
    support, coef = state.support, move.factor * state.coef
    for j, amount in zip(move.columns.tolist(), move.amounts.tolist()):
        (place,) = (support == j).nonzero()
        if len(place):
            coef[place[0]] += amount
        else:
            support, coef = np.append(support, j), np.append(coef, amount)
    if drop_column != ORIGIN:
        i = np.flatnonzero(support == drop_column)[0]
        if full or np.sign(coef[i]) * np.sign(state.coef[i]) < 0:
            coef[i] = 0.0
    if np.count_nonzero(coef) < len(coef):
        support, coef = support[coef != 0], coef[coef != 0]
    return support, coef


# Step sizes, and what a rule remembers. All work on predictions: a trial costs n operations, not n d.
StepSize = tuple[float, dict[str, Any]]


def open_loop_step(point: Iterate, dz: Floats, limit: float, t: int) -> StepSize:
    """2 / (t + 2)."""
    return min(limit, 2.0 / (t + 2.0)), {}


def exact_step(point: Iterate, dz: Floats, limit: float, t: int) -> StepSize:
    """The minimum along the line."""
    problem, slope = point.problem, fixed_order_vdot(point.r, dz)
    if slope >= 0.0:
        return 0.0, {}
    if problem.quadratic:
        size = fixed_order_vdot(dz, dz)
        return (min(limit, -slope / size) if size > 0 else 0.0), {}

    def slopes(gamma: float) -> tuple[float, float]:
        z = point.state.z + gamma * dz
        with np.errstate(invalid="ignore", over="ignore"):
            first = fixed_order_vdot(problem.residual(z), dz)
            return first, fixed_order_vdot(problem.curvature(z), dz * dz)

    return minimize_convex_1d(slopes, limit, 1e-12 * abs(slope)), {}


def backtracking_step(point: Iterate, dz: Floats, limit: float, t: int) -> StepSize:
    """By a curvature estimate that shrinks by a tenth each step and doubles until it bounds the objective."""
    problem, state, slope = point.problem, point.state, fixed_order_vdot(point.r, dz)
    first = problem.loss.smoothness or 1.0
    curvature = 0.9 * float(np.asarray(state.memory.get("curvature", first)))
    size, start, gamma = fixed_order_vdot(dz, dz), state.objective, 0.0
    slack = 1e-14 * abs(start)  # rounding of the objective: without it the estimate doubles at the minimum
    for _ in range(MAX_DOUBLINGS if slope < 0.0 < size else 0):
        gamma = min(limit, -slope / (curvature * size))
        bend = 0.5 * gamma * (gamma * curvature * size)  # gamma alone may be tiny
        if problem.value(state.z + gamma * dz) <= start + gamma * slope + bend + slack:
            break
        curvature, gamma = 2.0 * curvature, 0.0
    return gamma, {"curvature": np.array(curvature)}


STEP_RULES: dict[str, Callable[[Iterate, Floats, float, int], StepSize]] = {
    "exact": exact_step,
    "open-loop": open_loop_step,
    "backtracking": backtracking_step,
}
