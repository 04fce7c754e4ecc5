"""Damped Newton on a support, for losses other than squared.

How all coefficients are fitted together stands in `fit/descent.py`. A pursuit adds one column at a time, and
far steps in all coefficients are dear. So a new column gets a good first coefficient with the others held
(`approach`), and only then are all of them fitted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from skpursuit.fit.curvature import centred
from skpursuit.fit.descent import HALVINGS, descend
from skpursuit.fit.gram_schmidt import empty_factor
from skpursuit.numerics.arrays import Floats, Indices
from skpursuit.problem.problem import Problem
from skpursuit.problem.sample_losses import SampleLosses
from skpursuit.problem.score import top_set
from skpursuit.problem.state import State, empty_state


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
        design, one = problem.design, np.array([j])
        assert state.factor is not None
        factor = state.factor.add(design.columns(one)[0], design.noise_floor(one)[0])
        if factor is None:
            return replace(state, dropped=np.append(state.dropped, j))
        assert factor.columns is not None
        support, A = np.append(state.support, j), factor.columns.rows
        penalty, column = problem.penalties(support), A[-1]
        first = approach(problem, column, state.z, float(penalty[-1]))
        start, z = np.concatenate([state.coef, first[None]]), state.z + np.multiply.outer(column, first)
        coef, z, objective = self._fit(problem, A, start, z, penalty)
        return State(support, coef, z, objective, state.dropped, factor=factor)

    def exchange(self, problem: Problem, state: State, gone: int, j: int) -> State | None:
        """The fit with column j for the one at position `gone`; None where it depends on the others."""
        support, factor = np.append(np.delete(state.support, gone), j), state.factorised.first(gone)
        for one in support[gone:, None]:
            grown = factor.add(problem.design.columns(one)[0], problem.design.noise_floor(one)[0])
            if grown is None:
                return None
            factor = grown
        start = np.concatenate([np.delete(state.coef, gone, axis=0), np.zeros((1, *problem.targets))])
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
            z = np.zeros((problem.design.shape[0], *problem.targets))
            return w, z, problem.value(z)
        coef, found, value = self._fit(problem, A, w, z, problem.penalties(support))
        if most is not None and len(coef) > most:
            keep = top_set(problem.score.of(coef), most)
            coef[np.setdiff1d(np.arange(len(coef)), keep)] = 0.0
            found = (coef.T @ A).T
        return coef, found, value

    def _fit(
        self, problem: Problem, A: Floats, w: Floats, z: Floats | None, penalty: Floats
    ) -> tuple[Floats, Floats, float]:
        samples, coupled = problem.fitted_apart, problem.loss.couples_targets
        if coupled:
            w, z = centred(w, penalty), None
        z = (w.T @ A).T if z is None else z
        rules = penalty, self.precision, self.max_iter
        if coupled or not problem.targets:
            return descend(A, samples[0], w, z, *rules)
        fits = [descend(A, some, w[:, i], z[:, i], *rules) for i, some in enumerate(samples)]
        coefs, lines, values = zip(*fits)
        return np.stack(coefs, axis=1), np.stack(lines, axis=1), sum(values)


def approach(samples: SampleLosses, column: Floats, z: Floats, penalty: float) -> Floats:
    """A good first coefficient for a new column, the others held: far steps cost one column, not all.

    Steps are those of the loss alone, as long as they gain with the penalty too.
    """
    rows = np.flatnonzero(column)
    if len(rows) < len(column):  # predictions elsewhere do not move
        samples, column, z = samples.part(rows), column[rows], z[rows]
    coef = np.zeros(z.shape[1:])
    now = samples.derivatives(z)
    begun, square = now.value, column * column
    for _ in range(10):
        g = column @ now.residual
        for bend in bends(samples, square, z, now.curvature):
            move = -g / np.where(bend > 0, bend, np.inf)
            there = z + np.multiply.outer(column, move)
            after = samples.derivatives(there)
            if after.value <= now.value and np.any(move):
                break
        else:
            return coef
        gain, moved = now.value - after.value, coef + move
        if not gain > 1e-3 * (begun - after.value):
            return coef
        if 0.5 * penalty * float(np.sum(moved * moved - coef * coef)) > gain:
            return coef
        coef, z, now = moved, there, after
    return coef


def bends(samples: SampleLosses, square: Floats, z: Floats, curvature: Floats) -> Iterator[Floats]:
    """Curvatures along a column to try in turn: that at z, that of the parabola above, and steeper ones."""
    bend = square @ curvature
    yield bend
    above = samples.majorant(z)
    if above is not None:
        bend = square @ above
        yield bend
    for _ in range(26):  # until a step is lost in rounding
        bend = 4.0 * bend
        yield bend


def step_along(
    samples: SampleLosses, column: Floats, z: Floats, f: float | None, g: Floats
) -> tuple[Floats, Floats, float] | None:
    """A Newton step in one coefficient, halved until the objective is at most f; None if none helps.

    z are the predictions, g is the gradient in the coefficient. Without f the whole step is taken.
    """
    if not column.any():
        return None
    bend = np.asarray((column * column) @ samples.curvature(z))
    move = -g / np.where(bend > 0, bend, 1.0)
    for _ in range(HALVINGS):
        there = z + np.multiply.outer(column, move)
        value = samples.value(there)
        if f is None or (value <= f and np.any(move)):
            return move, there, value
        move = 0.5 * move
    return None
