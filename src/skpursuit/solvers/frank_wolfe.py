"""Frank-Wolfe on the l1 ball and the simplex: vanilla, away steps, pairwise, blended pairwise.

A step asks the selector for the vertex that the gradient favours, takes a direction from the variant
(`active_set.py`) and a length from the step rule (`line_search.py`). The gap between the iterate and that
vertex bounds the distance to the minimum, so it also says when to stop.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isfinite
from typing import Any, Self

import numpy as np

from skpursuit.numerics.float_range import NonFiniteError
from skpursuit.numerics.sums import fixed_order_vdot
from skpursuit.parameters import check_choice, check_count, check_flag, check_methods, check_nonnegative
from skpursuit.problem.constraint_sets import SET_METHODS, ConvexSet, L1Ball
from skpursuit.problem.problem import Problem
from skpursuit.problem.state import SparseUpdate, State, Status
from skpursuit.selectors.base import SelectionOracle
from skpursuit.selectors.query import Query
from skpursuit.solvers.base import Solver
from skpursuit.solvers.frank_wolfe_directions import VARIANTS, Iterate, Vertex, apply_step
from skpursuit.solvers.frank_wolfe_steps import STEP_RULES, LineSearchProblem


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
        predictions for others); 2 / (t + 2), for which with variants other than vanilla no rate is known;
        or by a running estimate of the curvature (Pedregosa et al.).
    variant : {"vanilla", "away", "pairwise", "blended"}
        "away" may also move away from the worst active vertex, "pairwise" moves weight from it to the new
        one, "blended" prefers such moves between active vertices while they promise more (Tsuji et al.).
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
        check_methods("constraint", self.constraint, SET_METHODS, "L1Ball(2.0)")
        check_count("max_iter", self.max_iter, optional=False)
        check_choice("line_search", self.line_search, STEP_RULES)
        check_choice("variant", self.variant, VARIANTS)
        check_nonnegative("gap_tol", self.gap_tol)
        check_flag("lazy", self.lazy)
        check_flag("confirm", self.confirm)

    @classmethod
    def from_parameters(cls, tol: float | None = None, **given: Any) -> Self:
        """Frank-Wolfe on the l1 ball of radius 1; an estimator's `tol` is the duality gap."""
        return super().from_parameters(constraint=L1Ball(), gap_tol=tol, **given)

    def expected_queries(self, problem: Problem) -> tuple[int, int]:
        """Vertices are visited again and again; Gram columns come in blocks, four times as cheap."""
        return self.max_iter, min(16 + self.max_iter // 64, problem.design.shape[1])

    @property
    def n_updates(self) -> None:
        """`State.move` tells each move."""
        return None

    def init(self, problem: Problem) -> State:
        if problem.target_shape:
            raise ValueError(
                "Frank-Wolfe fits one target; loop over the columns of y, or write shared_support=False"
            )
        support, coef = self.constraint.start()
        z = problem.design.predict(support, coef)
        return State(support, coef, z, problem.value(z), memory={"t": np.array(0)})

    def step(
        self, problem: Problem, state: State, select: SelectionOracle, rng: np.random.Generator
    ) -> State:
        t = int(np.asarray(state.memory["t"]))
        point = Iterate(problem, state, self.constraint)
        eps = tolerated_error(problem, self.constraint, t)
        query = Query(point.r, 1, self.constraint.score, rng=rng, tolerated_error=eps, state=state)
        memory: dict[str, Any] = {"t": np.array(t + 1)}
        toward = None
        if self.lazy:
            point.estimate, phi = select.known_gradient(query), state.memory.get("phi")
            if phi is not None and len(state.support):  # half of the last gap that was asked for is enough
                local = point.active_extremes[1]
                toward = local if point.value - local.value >= 0.5 * float(np.asarray(phi)) else None
        if toward is None:
            toward, gap, status = self._query_vertex(point, query, select)
            memory["gap"] = memory["phi"] = np.array(gap)
            if status is not None:
                return replace(state, status=status, last_update=None, memory={**state.memory, **memory})
        else:
            memory["phi"] = state.memory["phi"]
        return self._take_step(point, toward, memory)

    def _query_vertex(
        self, point: Iterate, query: Query, select: SelectionOracle
    ) -> tuple[Vertex, float, Status | None]:
        """The selector's vertex and gap; a gap small enough to stop is made sure of by an exact answer."""
        floor = point.rounding()
        answer = select(query)
        point.estimate = answer.full_gradient
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
        line = LineSearchProblem(problem, state, dz, fixed_order_vdot(point.r, dz), way.max_step)
        gamma, kept = STEP_RULES[self.line_search](line, int(memory["t"]) - 1)
        if not gamma > 0:
            status = Status.STALLED if self.confirm else None
            return replace(state, status=status, last_update=None, memory={**state.memory, **memory})
        support, coef = apply_step(state, way, gamma)
        z = state.z + gamma * dz
        columns = np.array([j for j, _ in way.moves], dtype=np.intp)
        move = SparseUpdate(1.0 + gamma * way.factor, columns, np.array([gamma * c for _, c in way.moves]))
        return State(support, coef, z, problem.value(z), memory={**memory, **kept}, last_update=move)


def tolerated_error(problem: Problem, constraint: ConvexSet, t: int) -> float | None:
    """gamma_t C_f / (4 radius): delta times this gradient error costs the rate a factor 1 + delta."""
    smoothness = problem.loss.smoothness
    if smoothness is None:
        return None
    if problem.weights is not None:
        smoothness = smoothness * float(problem.weights.max())
    return 2 / (t + 2) * constraint.radius * (problem.max_column_norm * problem.max_column_norm) * smoothness
