"""Least squares on a support that grows by one column at a time: O(n k) a step.

A `QRFactor` holds the columns of the support as Q^T R, and the products b of the rows of Q with y. Each new
column is split by Gram-Schmidt, which adds one row to Q, one column to R and one number to b. Coefficients
come from R and b alone: plain ones solve R w = b, those with a ridge a triangle with the penalties in it, and
those that must not be negative a small problem of their own. Only predictions are as long as y.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from skpursuit.fit.gram_schmidt import QRFactor, RidgeFactor, empty_factor
from skpursuit.numerics.arrays import Floats, Indices
from skpursuit.numerics.rank_tolerance import rank_tolerance
from skpursuit.numerics.sums import safe_norm
from skpursuit.problem.problem import Problem
from skpursuit.problem.state import State, empty_state


def start_least_squares(problem: Problem, positive: bool = False) -> State:
    """The zero model; with `positive` for coefficients of at least zero."""
    factor = empty_factor(problem.y, room=problem.design.limit.columns)
    ridge = RidgeFactor() if problem.penalty and not positive else None
    return empty_state(problem, replace(factor, keeps_dependent=positive, shrinkage=ridge))


def add_least_squares(problem: Problem, state: State, j: int) -> State:
    """Add column j to the support and fit again; a column that depends on the support is dropped instead.

    Where coefficients must be at least zero, a column that depends on the others may still help: they reach a
    cone, not all they span. It is added without a row of Q, and only one of rounding alone is dropped.
    """
    assert state.factor is not None
    factor = state.factor.add_column(problem, j)
    if factor is None:
        return replace(state, dropped=np.append(state.dropped, j))
    support = np.concatenate([state.support, np.array([j])])
    if factor.keeps_dependent:
        coef = solve_nnls(factor.triangle(), factor.b, problem.penalties(support))
    else:
        coef = solve_factor(factor)
    z = factor.fitted
    if factor.keeps_dependent or factor.shrinkage is not None:
        z = factor.Q.combine(factor.triangle() @ coef)
    return State(support, coef, z, problem.value(z), state.dropped, factor=factor)


def grows_from_zero(problem: Problem, j: int, r: Floats) -> bool:
    """Whether a new coefficient of at least zero would grow beyond rounding, the residual being r."""
    x = problem.design.columns(np.array([j]))[0]
    return bool(-(x @ r) > rank_tolerance(len(r)) * safe_norm(x) * safe_norm(r))


def refit_least_squares(problem: Problem, state: State, support: Indices) -> State | None:
    """The fit on another support, from the columns that both begin with; None where some depend on others."""
    length = min(len(support), len(state.support))
    kept = int(np.cumprod(support[:length] == state.support[:length]).sum())
    factor = state.factorised.first(kept)
    for j in support[kept:].tolist():
        after = factor.add_column(problem, j)
        if after is None:
            return None
        factor = after
    coef = solve_factor(factor)
    z = factor.Q.combine(factor.triangle() @ coef)
    return State(support, coef, z, problem.value(z), factor=factor)


def solve_factor(factor: QRFactor) -> Floats:
    """The best coefficients of the columns of a factor."""
    if factor.shrinkage is None:
        return solve_packed(factor.R, factor.b)
    return solve_packed(factor.shrinkage.R, factor.shrinkage.rotate_targets(factor.b))


def solve_nnls(R: Floats, b: Floats, penalties: Floats) -> Floats:
    """The w >= 0 with the least ||R w - b||^2 + sum of penalties w^2, whatever the units of the columns."""
    from scipy.optimize import nnls

    if penalties.any():
        R, b = np.vstack([R, np.diag(np.sqrt(penalties))]), np.append(b, np.zeros(len(penalties)))
    powers, power = (np.frexp(np.abs(part).max(axis=0))[1] for part in (R, b))
    # SciPy takes in the column of the largest gradient, which in the units of X is a large column. It gives
    # up after 3 changes a column by default; near-dependent columns come and go more often.
    w, _ = nnls(np.ldexp(R, -powers), np.ldexp(b, -power), maxiter=100 * len(powers))
    return np.ldexp(w, power - powers)


def solve_packed(R: Floats, b: Floats) -> Floats:
    """Solve R w = b for a packed triangle."""
    from scipy.linalg.blas import dtpsv

    if len(b) == 0:
        return b
    if b.ndim == 1:
        return dtpsv(len(b), R, b)
    return np.stack([dtpsv(len(b), R, part) for part in b.T], axis=1)
