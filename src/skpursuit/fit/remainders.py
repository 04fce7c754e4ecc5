"""What a growing support leaves of every column: the squares of the parts that are orthogonal to it.

With q the new direction of a support, every column loses (x_j . q)^2, and X^T q is a sum of the Gram columns
of the support: its weights are the last column of the inverse triangle. So the squares follow by one new Gram
column a step, with a bound on what rounding may have made of them. Where little is left of a column the bound
says nothing: such a column is split again, and is dropped if it depends on the support.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import sqrt
from typing import NamedTuple

import numpy as np
from scipy.linalg.blas import daxpy, dtpsv

from skpursuit.data.caches import gram_column
from skpursuit.fit.growing import QRFactor, are_dependent, row_products
from skpursuit.numerics.arrays import Floats, Indices
from skpursuit.numerics.error_bounds import outer_error_bound
from skpursuit.numerics.float_range import EPS
from skpursuit.problem.problem import Problem
from skpursuit.problem.state import State

SURE = 4.0  # times its bound: what is left of a column that is not split again


class Remainders(NamedTuple):
    """Squared norms of what the support leaves of the columns, and bounds on their errors."""

    squares: Floats
    errors: Floats


def after_columns(problem: Problem, state: State, start: int, likely: Callable[[int], Indices]) -> State:
    """The state whose memory has the remainders, those before its columns from `start` on being there.

    Columns that turn out to depend on the support are dropped. `likely` has columns that may come next.
    """
    design, factor = problem.design, state.factorised
    norms, sizes, unit = design.norms(0), design.norm_bounds, design.rounding_unit
    if "squares" in state.memory:
        squares, errors = state.memory["squares"], state.memory["errors"]
    else:
        squares, errors = np.where(norms > 0, norms**2, np.inf), 8 * (design.shape[0] + 8) * EPS * sizes**2
    lost = design.rounding(np.full(design.shape[0], design.shape[0] ** -0.5))  # by products of norm 1
    for k in range(start, len(state.support)):
        ends, weights = np.zeros(k + 1), np.zeros(len(sizes))
        ends[k] = 1.0
        ends = dtpsv(k + 1, factor.R[: (k + 1) * (k + 2) // 2], ends)
        for j, amount in zip(state.support[: k + 1].tolist(), ends.tolist()):
            weights = daxpy(gram_column(design, j, likely), weights, a=amount)
        total = float(np.abs(ends) @ sizes[state.support[: k + 1]])
        error = outer_error_bound(4 * (unit + EPS * (k + 8)), sizes, total)
        if lost is not None:
            error = error + total * lost
        squares = squares - weights * weights
        errors = errors + error * (2 * np.abs(weights) + error) + 4 * EPS * sizes**2
    return _split_small(problem, state, Remainders(squares, errors))


def _split_small(problem: Problem, state: State, found: Remainders) -> State:
    """The state with remainders that are known well: those of small ones are made from their columns."""
    design, factor, (squares, errors) = problem.design, state.factorised, found
    floor = design.noise_floor(np.arange(len(squares)))
    small = ~(squares > np.maximum(SURE * errors, 4 * floor**2))
    small[state.support] = small[state.dropped] = False
    cols = np.flatnonzero(small)
    if len(cols):
        lines = design.columns(cols, cache=False)
        gone = are_dependent(factor.Q, lines, floor[cols], factor.noise_share)
        left = np.array([remainder_norm(factor, line) for line in lines])
        slack = (len(lines[0]) + 16) * EPS * design.norm_bounds[cols]
        squares, errors = squares.copy(), errors.copy()
        squares[cols], errors[cols] = np.where(gone, np.inf, left**2), slack * (2 * left + slack)
        state = replace(state, dropped=np.concatenate([state.dropped, cols[gone]]))
    return replace(state, memory={**state.memory, "squares": squares, "errors": errors})


def remainder_norm(factor: QRFactor, line: Floats) -> float:
    """The norm of what the support leaves of a column, by the same operations for equal columns."""
    for _ in range(2):
        line = line - row_products(factor.Q.rows, line) @ factor.Q.rows
    return sqrt(line @ line)
