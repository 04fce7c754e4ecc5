"""Fits on a support that grows by one column at a time.

A `QRFactor` holds the columns of the support as Q^T R. Each new column is split by Gram-Schmidt, which adds
one row to Q and one column to R, and tells whether it depends on the others. Least squares, O(n k) a step,
takes coefficients from R and the products b of the rows of Q with y alone: plain ones solve R w = b, those
with a ridge a triangle with the penalties in it, and those that must not be negative a small problem of their
own. Other losses keep the columns themselves and go by Newton (`newton.py`). Far steps in all coefficients
are expensive, so a new column gets a good first coefficient with the others held, and then all are fitted.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from skpursuit.fit.gram_schmidt import QRFactor, RidgeFactor, empty_factor
from skpursuit.fit.newton import fit_support, initial_coefficient
from skpursuit.numerics.arrays import Floats, Indices
from skpursuit.numerics.error_bounds import rank_tolerance
from skpursuit.numerics.sums import safe_norm
from skpursuit.problem.problem import Problem
from skpursuit.problem.state import State, empty_state

STEP_PRECISION = 1e-6  # of Newton while columns are added; the last digits are fitted at the end of a run


def start_fit(problem: Problem, positive: bool = False) -> State:
    """The zero model; with `positive` for coefficients of at least zero, of squared loss."""
    return empty_state(problem, start_factor(problem, positive))


def start_factor(problem: Problem, positive: bool = False) -> QRFactor:
    """A factor without columns."""
    room = problem.design.limit.columns
    if not problem.quadratic:
        none = np.empty((problem.design.shape[0], 0))  # targets, for which Newton has no use
        return empty_factor(none, problem.weights, keeps_columns=True, room=room)
    ridge = RidgeFactor() if problem.penalty and not positive else None
    return replace(empty_factor(problem.y, room=room), keeps_dependent=positive, shrinkage=ridge)


def add_columns(problem: Problem, state: State, columns: Sequence[int]) -> State:
    """Add columns to the support and fit again; a column that depends on the support is dropped instead.

    Where coefficients must be at least zero, a column that depends on the others may still help: they reach a
    cone, not all they span. It is added without a row of Q, and only one of rounding alone is dropped.
    """
    factor, gone, support = state.factor, list[int](), state.support
    assert factor is not None
    for j in columns:
        grown = factor.add_column(problem, j)
        if grown is None:
            gone.append(j)
        else:
            factor, support = grown, np.append(support, j)
    dropped = np.append(state.dropped, gone) if gone else state.dropped
    new = len(support) - len(state.support)
    if not new:
        return replace(state, dropped=dropped)
    if problem.quadratic:
        return _least_squares(problem, support, factor, dropped)
    start, z = state.coef, state.z
    for column, penalty in zip(factor.lines[-new:], problem.penalties(support[-new:]).tolist()):
        first = initial_coefficient(problem, column, z, penalty)
        start, z = np.concatenate([start, first[None]]), z + np.multiply.outer(column, first)
    fitted = fit_support(problem, support, factor.lines, start, z, precision=STEP_PRECISION)
    return State(support, *fitted, dropped, factor=factor)


def refit(problem: Problem, state: State, support: Indices) -> State | None:
    """The fit on another support, from the columns that both begin with; None where some depend on others."""
    length = min(len(support), len(state.support))
    kept = int(np.cumprod(support[:length] == state.support[:length]).sum())
    factor = state.factorised.first(kept).add_columns(problem, support[kept:])
    if factor is None:
        return None
    if problem.quadratic:
        return _least_squares(problem, support, factor, state.dropped[:0])
    _, at, was = np.intersect1d(support, state.support, return_indices=True)
    start = np.zeros((len(support), *problem.target_shape))
    start[at] = state.coef[was]
    return State(support, *fit_support(problem, support, factor.lines, start), factor=factor)


def _least_squares(problem: Problem, support: Indices, factor: QRFactor, dropped: Indices) -> State:
    if factor.keeps_dependent:
        coef = solve_nnls(factor.triangle(), factor.b, problem.penalties(support))
    else:
        coef = solve_factor(factor)
    z = factor.fitted
    if factor.keeps_dependent or factor.shrinkage is not None:
        z = factor.Q.combine(factor.triangle() @ coef)
    return State(support, coef, z, problem.value(z), dropped, factor=factor)


def grows_from_zero(problem: Problem, j: int, r: Floats) -> bool:
    """Whether a new coefficient of at least zero would grow beyond rounding, the residual being r."""
    x = problem.design.columns(np.array([j]))[0]
    return bool(-(x @ r) > rank_tolerance(len(r)) * safe_norm(x) * safe_norm(r))


def solve_factor(factor: QRFactor) -> Floats:
    """The best coefficients of the columns of a factor."""
    from scipy.linalg.blas import dtpsv

    R, b = factor.R, factor.b
    if factor.shrinkage is not None:
        R, b = factor.shrinkage.R, factor.shrinkage.Q[:, ::2] @ b  # of which b is that of the old rows
    if len(b) == 0:
        return b
    return dtpsv(len(b), R, b) if b.ndim == 1 else np.stack([dtpsv(len(b), R, part) for part in b.T], axis=1)


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
