"""Fits on a support that grows by one column at a time.

A `QRFactor` holds the columns of the support as Q^T R. A new column is split into its coefficients on the
orthonormal rows of Q and a remainder, which becomes the next row. One pass over Q loses digits where little
remains of the column; the pass is then repeated on the remainder, and twice is nearly always enough. A column
of which only rounding remains depends on the others. A checkpoint leaves the factor out: the columns of the
support are split again, one at a time as before, by the same operations on the same numbers, and so to the
same bits.

Least squares, O(n k) a step, takes coefficients from R and the products b of the rows of Q with y alone:
plain ones solve R w = b, and those that must not be negative a small problem of their own. A ridge changes
the coefficients, and not which columns depend on others: it is least squares on R with the roots of the
penalties below it, which are factorised in the same way (`RidgeFactor`). Other losses keep the columns
themselves and go by Newton (`newton.py`). Far steps in all coefficients are expensive, so a new column gets a
good first coefficient with the others held, and then all are fitted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import sqrt
from typing import NamedTuple

import numpy as np

from skpursuit.data.caches import gram_column
from skpursuit.fit.newton import fit_support, initial_coefficient
from skpursuit.numerics.arrays import Floats, Indices
from skpursuit.numerics.error_bounds import dependence_threshold, outer_error_bound, rank_tolerance
from skpursuit.numerics.float_range import EPS
from skpursuit.numerics.row_buffer import RowBuffer
from skpursuit.numerics.sums import BLOCK_ROWS, safe_norm, safe_norms_per_row
from skpursuit.numerics.tuning import DEPENDENCE_ENTRIES
from skpursuit.problem.problem import Problem
from skpursuit.problem.state import State, empty_state

STEP_PRECISION = 1e-6  # of Newton while columns are added; the last digits are fitted at the end of a run
MOST_PASSES = 3
PROBE_FACTOR = 8.0  # |<x, v>| is at most this many times the norm of what the support leaves of x
SURE = 4.0  # times its bound: what is left of a column that is not split again
NOTHING = np.empty(0)


class RidgeFactor(NamedTuple):
    """The triangle R of a factor with roots of penalties below it, as Q^T R once more.

    Rows of R and roots take turns, so that the k-th column ends with its root and rows grow by two numbers.
    """

    Q: Floats = np.empty((0, 0))  # (k, 2 k), orthonormal rows
    R: Floats = NOTHING  # the columns of the new triangle one after the other

    def add(self, column: Floats, root: float) -> RidgeFactor:
        """Grow by a column of R, of k + 1 numbers, and the root of its penalty."""
        k = len(self.Q)
        Q, x = np.zeros((k, 2 * k + 2)), np.zeros(2 * k + 2)
        Q[:, : 2 * k], x[::2], x[-1] = self.Q, column, root
        q, h = orthogonalise(Q, x, sqrt(x @ x), 0.0, np.zeros(k))
        assert q is not None  # R has a diagonal
        return RidgeFactor(np.vstack([Q, q]), np.concatenate([self.R, h]))

    def first(self, k: int) -> RidgeFactor:
        """That of the first k columns."""
        return RidgeFactor(self.Q[:k, : 2 * k], self.R[: k * (k + 1) // 2])


@dataclass(frozen=True, eq=False)
class QRFactor:
    """The k columns of a support as Q^T R: a value that shares its large parts with those it grows from."""

    Q: RowBuffer  # (rank, n), orthonormal rows
    columns: RowBuffer | None  # (k, n), the columns themselves, if the factor keeps them
    row_scale: Floats | None  # (n,), what columns are multiplied by before they are split: roots of weights
    rank_tol: float  # the size of a remainder that is rounding, relative to its column
    y: Floats  # (n,) or (n, m), targets
    b: Floats  # (rank,) or (rank, m), the products of the rows of Q with them
    fitted: Floats  # the sum of the rows of Q times these
    keeps_dependent: bool = False  # a column that depends on others is added, without a row of Q
    shrinkage: RidgeFactor | None = None  # what a ridge adds, if there is one
    R: Floats = field(default_factory=lambda: NOTHING)  # the columns of the triangle one after the other
    #: (rank,), the share of each row of Q that was rounding in its column before (`Design.noise_floor`)
    noise_share: Floats = field(default_factory=lambda: NOTHING)
    raises_rank: np.ndarray = field(default_factory=lambda: NOTHING.astype(bool))  # columns with a row of Q

    @property
    def lines(self) -> Floats:
        """The columns as rows of an array, where the factor keeps them."""
        assert self.columns is not None
        return self.columns.rows

    def add(self, column: Floats, floor: float, penalty: float = 0.0) -> QRFactor | None:
        """The factor with one more column; None where that depends on the others, or is rounding alone.

        `floor` is the norm of the rounding that the column had before, `penalty` that of its coefficient.
        """
        floor = floor if self.row_scale is None else floor * self.row_scale.max()
        v = column if self.row_scale is None else column * self.row_scale
        size = sqrt(v @ v)
        q, h = orthogonalise(self.Q.rows, v, size, max(floor, self.rank_tol * size), self.noise_share)
        if q is None and not (self.keeps_dependent and size > floor):
            return None
        columns = None if self.columns is None else self.columns.extend(column[None])
        raises_rank = np.concatenate([self.raises_rank, [q is not None]])
        if q is None:
            return replace(self, columns=columns, R=np.append(self.R, h[:-1]), raises_rank=raises_rank)
        b = np.concatenate([self.b, (q @ (self.y - self.fitted))[None]])
        fitted = np.multiply.outer(q, b[-1])
        fitted += self.fitted
        return replace(
            self,
            Q=self.Q.extend(q[None]),
            columns=columns,
            b=b,
            fitted=fitted,
            shrinkage=self.shrinkage and self.shrinkage.add(h, sqrt(penalty)),
            R=np.concatenate([self.R, h]),
            noise_share=np.concatenate([self.noise_share, [floor / h[-1]]]),
            raises_rank=raises_rank,
        )

    def add_column(self, problem: Problem, j: int) -> QRFactor | None:
        """The factor with column j of the problem's X; None as in `add`."""
        one, design = np.array([j]), problem.design
        penalty = 0.0 if self.shrinkage is None else float(problem.penalties(one)[0])
        return self.add(design.columns(one)[0], design.noise_floor(one)[0], penalty)

    def add_columns(self, problem: Problem, columns: Indices) -> QRFactor | None:
        """The factor with these columns, added one at a time; None where one depends on those before it."""
        factor: QRFactor | None = self
        for j in columns.tolist():
            factor = None if factor is None else factor.add_column(problem, j)
        return factor

    def triangle(self) -> Floats:
        """R as a matrix of shape (rank, k)."""
        ranks = np.cumsum(self.raises_rank)
        rows = np.zeros((len(ranks), len(self.noise_share)))
        rows[np.arange(len(self.noise_share)) < ranks[:, None]] = self.R
        return rows.T

    def first(self, k: int) -> QRFactor:
        """The factor of the first k columns, none of which depends on others."""
        Q, b = self.Q.first(k), self.b[:k]
        return replace(
            self,
            Q=Q,
            columns=None if self.columns is None else self.columns.first(k),
            b=b,
            fitted=Q.combine(b),
            R=self.R[: k * (k + 1) // 2],
            noise_share=self.noise_share[:k],
            raises_rank=self.raises_rank[:k],
            shrinkage=self.shrinkage and self.shrinkage.first(k),
        )


def empty_factor(
    y: Floats, weights: Floats | None = None, keeps_columns: bool = False, room: float = np.inf
) -> QRFactor:
    """A factor without columns; rows of Q, and columns, that take more than `room` bytes are in files."""
    root = None if weights is None else np.sqrt(weights)
    none, b = RowBuffer(np.empty((0, len(y))), limit=room), np.empty((0, *y.shape[1:]))
    columns = none.first(0) if keeps_columns else None
    return QRFactor(none, columns, root, rank_tolerance(len(y)), y, b, np.zeros_like(y))


def orthogonalise(
    Q: Floats, v: Floats, size: float, tiny: float, noise: Floats
) -> tuple[Floats | None, Floats]:
    """A vector as its coefficients on orthonormal rows and a unit remainder; None when it depends on them.

    `size` is the norm of the vector v, `tiny` that of a remainder which is rounding
    (`numerics/error_bounds.py`), `noise` the share of the rows that was rounding. Returns the unit
    remainder, and the coefficients with the norm of the remainder behind them.
    """
    h: Floats = np.zeros(len(noise) + 1)
    left, least, noisy = size, tiny, noise.any()
    for _ in range(MOST_PASSES):
        part = row_products(Q, v)
        v = v - part @ Q
        h[:-1] += part
        before, left = left, sqrt(v @ v)
        if noisy:
            unsure = noise * h[:-1]
            least = max(tiny, sqrt(unsure @ unsure))
        if left <= least:
            return None, h
        if left > 0.5 * before:
            break
    h[-1] = left
    return v / left, h


def row_products(Q: Floats, v: Floats) -> Floats:
    """Products of the rows of Q with v, in an order that does not depend on how their numbers are cut."""
    if len(v) <= BLOCK_ROWS:
        return Q @ v
    v, pieces = np.ascontiguousarray(v), len(v) // BLOCK_ROWS  # strided numbers are added in another order
    whole = pieces * BLOCK_ROWS
    lines = Q[:, :whole].reshape(len(Q), pieces, BLOCK_ROWS).transpose(1, 0, 2)
    parts = np.matmul(lines, v[:whole].reshape(pieces, BLOCK_ROWS, 1))[..., 0]
    if whole < len(v):
        parts = np.vstack([parts, Q[:, whole:] @ v[whole:]])
    return np.ascontiguousarray(parts.cumsum(axis=0)[-1])


def dependent_columns(problem: Problem, state: State) -> Indices:
    """All columns off the support, and not dropped yet, that depend on the support.

    A pursuit that has spanned what X can span has nothing more to choose from. Asking for what is left one
    column at a time costs one selection each, thousands of them in a wide X. A random vector v orthogonal to
    the support tells most columns apart for the price of one product: <x_j, v> is zero to rounding if x_j
    depends on the support, and almost never otherwise. That is a proposal; the columns it leaves are gathered
    in blocks and decided by the rule that decides a single column.
    """
    design, root, factor = problem.design, np.sqrt(problem.row_weights), state.factorised
    gone = np.concatenate([state.support, state.dropped])
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite does not depend
        cols = np.setdiff1d(dependence_candidates(problem, factor, root), gone, assume_unique=True)
        step, found = max(1, DEPENDENCE_ENTRIES // design.shape[0]), []
        for start in range(0, len(cols), step):
            part = cols[start : start + step]
            lines, floor = design.columns(part, cache=False) * root, design.noise_floor(part) * root.max()
            found.append(part[are_dependent(factor.Q, lines, floor, factor.noise_share)])
    return np.concatenate(found) if found else cols


def dependence_candidates(problem: Problem, factor: QRFactor, root: Floats) -> Indices:
    """Columns whose product with a random vector orthogonal to the rows of Q is small; ascending."""
    design, Q = problem.design, factor.Q
    v = np.random.default_rng(len(factor.noise_share)).standard_normal(len(root))
    for _ in range(2):  # the second time for digits that the first one lost
        v -= Q.combine(Q.rows @ v)
    g = np.abs(design.product(v * root))
    error = design.rounding(v * root)
    sizes = design.norm_bounds * root.max()
    small = dependence_threshold(len(v), sizes, design.noise_floor(np.arange(len(sizes))) * root.max())
    small = np.maximum(small, factor.noise_share.max(initial=0.0) * sizes)
    return np.flatnonzero(~(g > PROBE_FACTOR * small + (0.0 if error is None else error)))


def are_dependent(Q: RowBuffer, lines: Floats, noise_floor: Floats, noise: Floats) -> np.ndarray:
    """Which of the columns `lines` depend on the rows of Q, as `orthogonalise` decides it for one."""
    tiny = dependence_threshold(lines.shape[1], safe_norms_per_row(lines), noise_floor)
    h = np.zeros((len(lines), len(noise)))
    found = np.zeros(len(lines), dtype=bool)
    for _ in range(MOST_PASSES):
        part = (Q.rows @ lines.T).T
        lines = lines - Q.combine(part.T).T
        h += part
        found |= safe_norms_per_row(lines) <= np.maximum(tiny, safe_norms_per_row(noise * h))
        if found.all():
            break
    return found


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
    if len(columns) > 1 and 8 * len(columns) * problem.design.shape[0] <= problem.design.limit.columns:
        problem.design.columns(np.array(columns))  # in one reading
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


class Remainders(NamedTuple):
    """Squared norms of what the support leaves of the columns, and bounds on their errors."""

    squares: Floats
    errors: Floats


def after_columns(problem: Problem, state: State, start: int, likely: Callable[[int], Indices]) -> State:
    """The state whose memory has the remainders, those before its columns from `start` on being there.

    With q the new direction of a support, every column loses (x_j . q)^2, and X^T q is a sum of the Gram
    columns of the support: its weights are the last column of the inverse triangle. So the squares follow by
    one new Gram column a step, with a bound on what rounding may have made of them. Where little is left of a
    column the bound says nothing: it is split again, and dropped if it depends on the support. `likely` has
    columns that may come next.
    """
    from scipy.linalg import blas

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
        ends = blas.dtpsv(k + 1, factor.R[: (k + 1) * (k + 2) // 2], ends)
        for j, amount in zip(state.support[: k + 1].tolist(), ends.tolist()):
            weights = blas.daxpy(gram_column(design, j, likely), weights, a=amount)
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
