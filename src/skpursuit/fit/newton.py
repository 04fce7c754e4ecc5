"""Damped Newton on a support, for losses other than squared.

How all coefficients are fitted together stands in `fit/newton_loop.py`. A pursuit adds one column at a time,
and far steps in all coefficients are dear. So a new column gets a good first coefficient with the others held
(`initial_coefficient`), and only then are all of them fitted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from skpursuit.fit.gram_schmidt import QRFactor, empty_factor
from skpursuit.fit.newton_loop import MAX_BACKTRACKS, fit_outputs
from skpursuit.numerics.arrays import Floats, Indices
from skpursuit.problem.problem import Problem
from skpursuit.problem.sample_losses import SampleLosses
from skpursuit.problem.scores import top_k_by_index
from skpursuit.problem.state import State, empty_state


@dataclass(frozen=True)
class Newton:
    """Damped Newton on the support with warm start; the problem's penalty keeps separable classes finite.

    `precision` is the relative decrease of the objective that is not worth a step.
    """

    max_iter: int = 300
    precision: float = 1e-15

    def start(self, problem: Problem) -> State:
        """The zero model."""
        return empty_state(problem, empty_newton_factor(problem))

    def add(self, problem: Problem, state: State, j: int) -> State:
        """Add column j and fit again from the old coefficients; a dependent column is dropped."""
        factor = state.factorised.add_column(problem, j)
        if factor is None:
            return replace(state, dropped=np.append(state.dropped, j))
        support, A = np.append(state.support, j), factor.lines
        column = A[-1]
        first = initial_coefficient(problem, column, state.z, float(problem.penalties(support[-1:])[0]))
        start, z = np.concatenate([state.coef, first[None]]), state.z + np.multiply.outer(column, first)
        coef, z, objective = self.fit(problem, support, A, start, z)
        return State(support, coef, z, objective, state.dropped, factor=factor)

    def exchange(self, problem: Problem, state: State, gone: int, j: int) -> State | None:
        """The fit with column j for the one at position `gone`; None where it depends on the others."""
        support, factor = np.append(np.delete(state.support, gone), j), state.factorised.first(gone)
        for column in support[gone:].tolist():
            grown = factor.add_column(problem, column)
            if grown is None:
                return None
            factor = grown
        start = np.concatenate([np.delete(state.coef, gone, axis=0), np.zeros((1, *problem.target_shape))])
        coef, z, objective = self.fit(problem, support, factor.lines, start)
        return State(support, coef, z, objective, factor=factor)

    def fit(
        self,
        problem: Problem,
        support: Indices,
        A: Floats,
        w: Floats,
        z: Floats | None = None,
        most: int | None = None,
    ) -> tuple[Floats, Floats, float]:
        """Minimise over the coefficients of the columns `support`, gathered as the rows of A, from w.

        z are the predictions of w, if they are known. Targets that do not depend on each other are fitted one
        by one, each to its own end. Returns coefficients, their predictions, and the objective at the
        minimum. Where only the `most` largest coefficients are wanted, the others are zero.
        """
        if len(w) == 0:
            z = np.zeros((problem.design.shape[0], *problem.target_shape))
            return w, z, problem.value(z)
        rules = problem.penalties(support), self.precision, self.max_iter
        coef, found, value = fit_outputs(A, problem.per_target_losses, w, z, *rules)
        if most is not None and len(coef) > most:
            keep = top_k_by_index(problem.score.of(coef), most)
            coef[np.setdiff1d(np.arange(len(coef)), keep)] = 0.0
            found = (coef.T @ A).T
        return coef, found, value


def empty_newton_factor(problem: Problem) -> QRFactor:
    """A factor that finds dependent columns, and keeps the others together."""
    none, room = np.empty((problem.design.shape[0], 0)), problem.design.limit.columns
    return empty_factor(none, problem.weights, keeps_columns=True, room=room)


def initial_coefficient(problem: Problem, column: Floats, z: Floats, penalty: float) -> Floats:
    """A good first coefficient for a new column, the others held: far steps cost one column, not all."""
    samples, rows = problem.per_target_losses, np.flatnonzero(column)
    if len(rows) < len(column):  # predictions elsewhere do not move
        samples, column, z = [some.subset(rows) for some in samples], column[rows], z[rows]
    start, rules = np.zeros((1, *problem.target_shape)), (np.array([penalty]), 1e-4, 10)
    return fit_outputs(column[None], samples, start, z, *rules)[0][0]


def coordinate_step(
    samples: SampleLosses, column: Floats, z: Floats, f: float | None, g: Floats
) -> tuple[Floats, Floats, float] | None:
    """A Newton step in one coefficient, halved until the objective is at most f; None if none helps.

    z are the predictions, g is the gradient in the coefficient. Without f the whole step is taken.
    """
    if not column.any():
        return None
    square = column * column
    bend = np.asarray(square @ samples.curvature(z))
    move = -g / np.where(bend > 0, bend, square.sum())  # no curvature: as if each sample had one
    for halved in range(MAX_BACKTRACKS):
        part = move * 0.5**halved
        there = z + np.multiply.outer(column, part)
        value = samples.value(there)
        if f is None or (value <= f and np.any(part)):
            return part, there, value
    return None
