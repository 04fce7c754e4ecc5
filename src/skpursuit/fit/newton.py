"""Damped Newton on a support, for losses other than squared.

A step goes along -H^-1 g, with the curvature H of the loss on the support; a line search shortens it until
the objective falls by enough. Where the loss has a parabola that touches it and lies above (`majorant`), its
curvature takes over where that of the loss is singular or led nowhere: such steps gain from any distance.

A pursuit adds one column at a time, and far steps in all coefficients are dear. So a new column gets a good
first coefficient with the others held (`approach`), and only then are all of them fitted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from skpursuit.fit.curvature import centred, curvature_at
from skpursuit.fit.gram_schmidt import empty_factor
from skpursuit.fit.least_squares import column_for
from skpursuit.fit.worker_rows import moved_away
from skpursuit.numerics.arrays import Floats, Indices
from skpursuit.numerics.scaling import LEAST_SQUARE, MOST_SQUARE, NEARLY_INFINITE, NEARLY_ZERO
from skpursuit.numerics.stack import Rows
from skpursuit.problem.problem import Problem
from skpursuit.problem.state import State, empty_state

FARTHEST = 2.0**20  # steps of a parabola above the loss that are tried at once
CREEPING = 2.0**-26  # a step of the line search that gets nowhere
EPS = float(np.finfo(np.float64).eps)
HALVINGS = 60  # of a step before it is given up


@dataclass(frozen=True)
class Newton:
    """Damped Newton on the support with warm start; the problem's penalty keeps separable classes finite.

    `precision` is the relative decrease of the objective that is not worth a step.
    """

    max_iter: int = 300
    precision: float = 1e-15

    def start(self, problem: Problem) -> State:
        """The zero model; its factor finds dependent columns, and keeps those of the support together."""
        n = problem.design.shape[0]
        room = problem.design.store.limit.columns
        return empty_state(problem, empty_factor(n, weights=problem.weights, keeps_columns=True, room=room))

    def add(self, problem: Problem, state: State, j: int) -> State:
        """Add column j and fit again from the old coefficients; a dependent column is dropped."""
        design, before = problem.design, moved_away(problem.design, state.factor, state.support)
        factor = before.add(column_for(before, design, j), design.noise_floor(np.array([j]))[0])
        if factor is None:
            return replace(state, dropped=np.append(state.dropped, j), factor=before)
        penalty = float(problem.penalties(np.array([j]))[0])
        support, first = np.append(state.support, j), approach(problem, factor.columns.last, state.z, penalty)
        start = np.concatenate([state.coef, first[None]])
        coef, z, objective = self.fit(problem, support, factor.columns, start)
        return State(support, coef, z, objective, state.dropped, factor=factor)

    def exchange(self, problem: Problem, state: State, gone: int, j: int) -> State | None:
        """The fit with column j for the one at position `gone`; None where it depends on the others."""
        support, factor = np.append(np.delete(state.support, gone), j), state.factor.first(gone)
        for one in support[gone:, None]:
            column = column_for(factor, problem.design, int(one[0]))
            factor = factor.add(column, problem.design.noise_floor(one)[0])
            if factor is None:
                return None
        start = np.concatenate([np.delete(state.coef, gone, axis=0), np.zeros((1, *problem.targets))])
        coef, z, objective = self.fit(problem, support, factor.columns, start)
        return State(support, coef, z, objective, factor=factor)

    def fit(self, problem: Problem, support: Indices, A: Rows, w: Floats) -> tuple[Floats, Floats, float]:
        """Minimise over the coefficients of the columns `support`, gathered as the rows of A, from w.

        Targets that do not depend on each other are fitted one by one, each to its own end.
        """
        if len(w) == 0:
            z = np.zeros((problem.design.shape[0], *problem.targets))
            return w, z, problem.value(z)
        penalty = problem.penalties(support)
        power = powers(A)
        if power is None:
            return self._fit_targets(problem, A, w, penalty)
        with np.errstate(over="ignore"):
            felt = np.where(penalty > 0, np.minimum(penalty * power * power, NEARLY_INFINITE), 0.0)
        scaled = self._fit_targets(problem, A.scaled(power), (w.T / power).T, felt)
        return (scaled[0].T * power).T, scaled[1], scaled[2]

    def _fit_targets(
        self, problem: Problem, A: Rows, w: Floats, penalty: Floats
    ) -> tuple[Floats, Floats, float]:
        if problem.loss.couples_targets:
            return self._fit(problem, A, centred(w, penalty), penalty)
        if not problem.targets:
            return self._fit(problem, A, w, penalty)
        fits = [self._fit(one, A, w[:, t], penalty) for t, one in enumerate(problem.single_targets())]
        coefs, zs, values = zip(*fits)
        return np.stack(coefs, axis=1), np.stack(zs, axis=1), float(sum(values))

    def _fit(self, problem: Problem, A: Rows, w: Floats, penalty: Floats) -> tuple[Floats, Floats, float]:
        """Damped Newton, which looks at A twice a step.

        Curvature is what costs: it is kept from step to step while each gains at least a factor of 3. A step
        of which the line search took no quarter shows that curvature at z says little about the way to the
        minimum: the next one goes by the parabola above the loss, if it has one.
        """

        def objective(z: Floats, w: Floats) -> float:
            return problem.value(z) + 0.5 * float(np.sum(penalty * (w * w).T))

        z: Floats = A.combined(w)
        f = objective(z, w)
        bend, last, trusted = None, np.inf, True
        for _ in range(self.max_iter):
            fresh = bend is None
            if bend is None:
                g, bend = curvature_at(problem, A, z, penalty, trusted)
            else:
                g = A.correlated(problem.residual(z))
            g = g + (penalty * w.T).T
            p = bend.solve(g)
            decrement = float(np.sum(g * p))
            if not decrement > self.precision * max(abs(f), NEARLY_ZERO):
                break
            dz = A.combined(p)
            if np.abs(dz).max() <= EPS * np.abs(z).max():  # lost in rounding, as where residuals vanish
                break
            w, z, f, step = line_search(objective, (w, z, f), (p, dz), decrement, bend.is_majorant)
            if step < CREEPING and fresh and not (trusted and problem.majorant(z) is not None):
                break
            trusted = bool(step >= 0.25 or not trusted)
            if not step or decrement > 0.3 * last or not trusted or bend.is_majorant:
                bend = None
            last = decrement
        return w, z, problem.value(z)


def powers(A: Rows) -> Floats | None:
    """Powers of two that bring columns near one, if products of them are beyond the range; else None."""
    sizes = A.sizes
    with np.errstate(over="ignore", under="ignore"):
        squares = sizes * sizes
    if squares.min() > LEAST_SQUARE and squares.max() < MOST_SQUARE:
        return None
    return np.ldexp(1.0, -np.frexp(sizes)[1])


def line_search(
    objective: Callable[[Floats, Floats], float],
    point: tuple[Floats, Floats, float],
    move: tuple[Floats, Floats],
    decrement: float,
    far: bool = False,
) -> tuple[Floats, Floats, float, float]:
    """The first of the steps 1, 1/2, 1/4, ... along -p that lowers the objective enough; 0 if none does.

    `move` is p and the change of the predictions by it. A parabola above the loss bends more than the loss:
    where p comes from one (`far`), steps of 2, 4, ... are tried while the objective falls.
    """
    (w, z, f), (p, dz), t = point, move, 1.0
    if far:
        while t < FARTHEST and objective(z - 2 * t * dz, w - 2 * t * p) < objective(z - t * dz, w - t * p):
            t *= 2.0
    for _ in range(HALVINGS):
        w_new, z_new = w - t * p, z - t * dz
        f_new = objective(z_new, w_new)
        if f_new <= f - 1e-4 * t * decrement:
            return w_new, z_new, f_new, t
        t *= 0.5
    return w, z, f, 0.0


def approach(problem: Problem, column: Floats, z: Floats, penalty: float) -> Floats:
    """A good first coefficient for a new column, the others held: far steps cost one column, not all.

    Steps are those of the loss alone, as long as they gain with the penalty too.
    """
    rows = np.flatnonzero(column)
    if len(rows) < len(column):  # predictions elsewhere do not move
        weights = None if problem.weights is None else problem.weights[rows]
        problem, column = replace(problem, y=problem.y[rows], weights=weights), column[rows]
    coef, z = np.zeros(problem.targets), z[rows]
    begun = f = problem.value(z)
    square = column * column
    for _ in range(10):
        g = column @ problem.residual(z)
        moves = (-g / np.where(bend > 0, bend, np.inf) for bend in bends(problem, square, z))
        found = first_descent(problem, column, (z, f), moves)
        if found is None or not f - found[2] > 1e-3 * (begun - found[2]):
            return coef
        after = coef + found[0]
        if 0.5 * penalty * float(np.sum(after * after - coef * coef)) > f - found[2]:
            return coef
        coef, z, f = after, found[1], found[2]
    return coef


def bends(problem: Problem, square: Floats, z: Floats) -> Iterator[Floats]:
    """Curvatures along a column to try in turn: that at z, that of the parabola above, and steeper ones."""
    bend = square @ problem.curvature(z)
    yield bend
    above = problem.majorant(z)
    if above is not None:
        bend = square @ above
        yield bend
    for _ in range(26):  # until a step is lost in rounding
        bend = 4.0 * bend
        yield bend


def step_along(
    problem: Problem, column: Floats, z: Floats, f: float | None, g: Floats
) -> tuple[Floats, Floats, float] | None:
    """A Newton step in one coefficient, halved until the objective is at most f; None if none helps.

    z are the predictions, g is the gradient in the coefficient. Without f the whole step is taken.
    """
    size = float(np.abs(column).max(initial=0.0))
    if size == 0.0:
        return None
    unit = column / size
    bend = np.asarray((unit * unit) @ problem.curvature(z))
    move = -(g / size) / np.where(bend > 0, bend, 1.0) / size
    return first_descent(problem, column, (z, f), (move * 0.5**halved for halved in range(HALVINGS)))


def first_descent(
    problem: Problem, column: Floats, point: tuple[Floats, float | None], moves: Iterable[Floats]
) -> tuple[Floats, Floats, float] | None:
    """The first move of one coefficient that does not raise the objective, with what it leads to.

    `point` and the answer end with predictions and objective; without an objective any move will do.
    """
    z, f = point
    for move in moves:
        z_new = z + np.multiply.outer(column, move)
        f_new = problem.value(z_new)
        if f is None or (f_new <= f and np.any(move)):
            return move, z_new, f_new
    return None
