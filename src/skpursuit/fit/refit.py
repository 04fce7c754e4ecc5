"""The best coefficients on a support: least squares by a growing factorisation, other losses by Newton."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from math import isqrt
from typing import Any

import numpy as np

from skpursuit.data.base import Floats, Indices
from skpursuit.fit.curvature import centred, couples, curvature_at
from skpursuit.numerics.blas import one_thread
from skpursuit.numerics.sums import scaled_norm
from skpursuit.problem.problem import Problem
from skpursuit.problem.state import Stack, State

EPS = float(np.finfo(np.float64).eps)
FORBIDDING = 1e300  # a penalty that leaves nothing of a coefficient whose column has unit size
FARTHEST = 2.0**20  # steps of a parabola above the loss that are tried at once
CREEPING = 2.0**-26  # a step of the line search that gets nowhere
LEAST_SQUARE, MOST_SQUARE = 1e-180, 1e180  # of columns whose products stay within the range of floats


class LeastSquares:
    """X_S = Q^T R grown one atom at a time: O(n k) a step, dependent atoms found by a relative test.

    Memory of the state: Q (k, n) orthonormal rows; R, the columns of the triangle one after the other, column
    i with i + 1 entries; b (k, m...) = Q y; noise (k,), the share of each row of Q that was rounding in its
    column (`Design.lost`).

    Where coefficients must not be negative, a column that depends on the others may still help: they reach a
    cone, not all they span. It is added to R without a row of Q, so that R has the shape (rank, k), and
    memory holds the `lengths` of its columns.
    """

    def __init__(self, positive: bool = False) -> None:
        self.positive = positive

    def start(self, problem: Problem) -> dict[str, np.ndarray | Stack]:
        """Nothing factorised yet."""
        n = problem.design.shape[0]
        b = np.empty((0, *problem.targets))
        grown = {"Q": np.empty((0, n)), "R": np.empty(0), "b": b, "noise": np.empty(0)}
        if self.positive:
            grown["lengths"] = np.empty(0, dtype=np.intp)
        return {name: Stack(rows) for name, rows in grown.items()}

    def add(self, problem: Problem, state: State, j: int) -> State:
        """Add column j and fit again; a column that depends on the support is dropped instead."""
        with one_thread():
            return self._add(problem, state, j)

    def _add(self, problem: Problem, state: State, j: int) -> State:
        Q, R, b, noise = (as_stack(state.memory[name]) for name in ("Q", "R", "b", "noise"))
        lost = problem.design.lost(np.array([j]))[0]
        column = problem.design.columns(np.array([j]))[0]
        q, h = orthogonalise(Q.rows, column, lost, noise.rows)
        if q is None and (not self.positive or scaled_norm(column) <= lost):
            return replace(state, dropped=np.append(state.dropped, j))
        if q is not None:
            # Predictions of plain least squares on the support, from which b grows.
            fitted = b.rows.T @ Q.rows if self.positive else state.z
            last = q @ (problem.y - fitted)
            Q, b, noise = Q.push(q), b.push(last), noise.push(lost / h[-1])
        h = h[: len(Q.rows)]
        memory = {"Q": Q, "R": R.extend(h), "b": b, "noise": noise}
        if self.positive:
            memory["lengths"] = as_stack(state.memory["lengths"]).push(np.array(len(h)))
            triangle = unpacked(memory["R"].rows, memory["lengths"].rows)
            coef = non_negative(triangle, b.rows)
            z = (triangle @ coef) @ Q.rows
        else:
            assert q is not None
            coef = solve_packed(memory["R"].rows, b.rows)
            z = np.multiply.outer(q, last)
            z += state.z
        return State(np.append(state.support, j), coef, z, problem.value(z), state.dropped, memory)


def non_negative(R: Floats, b: Floats) -> Floats:
    """The w >= 0 with the least ||R w - b||."""
    from scipy.optimize import nnls

    size = np.abs(b).max() or 1.0
    return nnls(R, b / size)[0] * size


def orthogonalise(
    Q: Floats, x: Floats, lost: float = 0.0, noise: Floats | None = None
) -> tuple[Floats | None, Floats]:
    """Split x into its coefficients on the rows of Q and a unit remainder; None when it depends on them.

    A second Gram-Schmidt pass is made when the first one lost digits: twice is enough. `lost` is the norm of
    the rounding that x had before, `noise` the share of the rows of Q that comes from such rounding.
    """
    size = scaled_norm(x)
    tiny = float(smallest_remainder(len(x), size, lost))
    h = np.zeros(len(Q) + 1)
    left, v = size, x
    for _ in range(3):
        part = Q @ v
        v = v - part @ Q
        h[:-1] += part
        before, left = left, scaled_norm(v)
        if left <= tiny or (noise is not None and left <= scaled_norm(noise * h[:-1])):
            return None, h
        if left > 0.5 * before:
            break
    h[-1] = left
    v /= left
    return v, h


def smallest_remainder(n: int, size: Any, lost: Any) -> Any:
    """The norm at or below which the remainder of a column of that size is rounding."""
    return np.maximum(lost, 8 * max(16, n) * EPS * size)


def depend(Q: Floats, lines: Floats, lost: Floats, noise: Floats) -> np.ndarray:
    """Which of the columns `lines` depend on the rows of Q, as `orthogonalise` decides it for one."""
    tiny = smallest_remainder(lines.shape[1], row_norms(lines), lost)
    h = np.zeros((len(lines), len(Q)))
    found = np.zeros(len(lines), dtype=bool)
    for _ in range(3):
        part = lines @ Q.T
        lines = lines - part @ Q
        h += part
        found |= row_norms(lines) <= np.maximum(tiny, row_norms(noise * h))
        if found.all():
            break
    return found


def row_norms(lines: Floats) -> Floats:
    """Norms of rows that neither overflow nor underflow."""
    return np.array([scaled_norm(line) for line in lines])


def solve_packed(R: Floats, b: Floats) -> Floats:
    """Solve R w = b for a packed triangle."""
    from scipy.linalg.blas import dtpsv

    if b.ndim == 1:
        return dtpsv(len(b), R, b)
    return np.stack([dtpsv(len(b), R, part) for part in b.T], axis=1)


def unpacked(R: Floats, lengths: Indices | None = None) -> Floats:
    """The matrix of packed columns, which have 1, 2, ... entries unless their lengths are given."""
    if lengths is None:
        lengths = np.arange(1, isqrt(2 * len(R)) + 1)
    rows = np.zeros((len(lengths), int(lengths.max(initial=0))))
    rows[np.arange(rows.shape[1]) < lengths[:, None]] = R
    return rows.T


class Newton:
    """Damped Newton on the support with warm start; `ridge` keeps separable classes finite.

    The penalty is ridge / 2 times the squared coefficients of the problem's design, without the intercept.

    Memory of the state: Q and noise as in `LeastSquares`, by which dependent columns are found.
    """

    def __init__(self, ridge: float = 0.0, max_iter: int = 300, precision: float = 1e-15) -> None:
        self.ridge = ridge
        self.max_iter = max_iter
        self.precision = precision  # relative decrease of the objective that is not worth a step

    def start(self, problem: Problem) -> dict[str, np.ndarray | Stack]:
        """Nothing orthogonalised yet."""
        return {"Q": Stack(np.empty((0, problem.design.shape[0]))), "noise": Stack(np.empty(0))}

    def add(self, problem: Problem, state: State, j: int) -> State:
        """Add column j and fit again from the old coefficients; a dependent column is dropped."""
        with one_thread():
            return self._add(problem, state, j)

    def _add(self, problem: Problem, state: State, j: int) -> State:
        support = np.append(state.support, j)
        columns = problem.design.columns(support)
        stack = as_stack(state.memory["Q"])
        new = columns[-1] if problem.weights is None else columns[-1] * np.sqrt(problem.weights)
        lost = problem.design.lost(support[-1:])[0]
        if problem.weights is not None:
            lost *= np.sqrt(problem.weights.max())
        noise = as_stack(state.memory["noise"])
        q, h = orthogonalise(stack.rows, new, lost, noise.rows)
        if q is None:
            return replace(state, dropped=np.append(state.dropped, j))
        first = approach(problem, columns[-1], state)
        start = np.concatenate([state.coef, first[None]])
        coef, z, objective = self.fit(problem, support, columns, start)
        memory = {"Q": stack.push(q), "noise": noise.push(lost / h[-1])}
        return replace(state, support=support, coef=coef, z=z, objective=objective, memory=memory)

    def fit(self, problem: Problem, support: Indices, A: Floats, w: Floats) -> tuple[Floats, Floats, float]:
        """Minimise over the coefficients of the columns `support`, gathered as the rows of A, from w.

        Targets that do not depend on each other are fitted one by one, each to its own end.
        """
        if len(A) == 0:
            z = np.zeros((problem.design.shape[0], *problem.targets))
            return w, z, problem.value(z)
        penalty = np.where(problem.design.is_intercept(support), 0.0, self.ridge)
        with np.errstate(over="ignore", under="ignore"):
            squares = np.vecdot(A, A)
        if not (squares.min() > LEAST_SQUARE and squares.max() < MOST_SQUARE):
            exponents = np.frexp(row_norms(A))[1]
            power = np.ldexp(1.0, -exponents)  # columns near one, whose products stay within range
            with np.errstate(over="ignore"):
                felt = np.where(penalty > 0, np.minimum(penalty * power * power, FORBIDDING), 0.0)
            scaled = self._fit_targets(problem, A * power[:, None], (w.T / power).T, felt)
            return (scaled[0].T * power).T, scaled[1], scaled[2]
        return self._fit_targets(problem, A, w, penalty)

    def _fit_targets(
        self, problem: Problem, A: Floats, w: Floats, penalty: Floats
    ) -> tuple[Floats, Floats, float]:
        if couples(problem):
            return self._fit(problem, A, centred(w, penalty), penalty)
        if not problem.targets:
            return self._fit(problem, A, w, penalty)
        fits = [self._fit(one, A, w[:, t], penalty) for t, one in enumerate(problem.single_targets())]
        coefs, zs, values = zip(*fits)
        return np.stack(coefs, axis=1), np.stack(zs, axis=1), float(sum(values))

    def _fit(self, problem: Problem, A: Floats, w: Floats, penalty: Floats) -> tuple[Floats, Floats, float]:
        """Damped Newton.

        Curvature is what costs: it is kept from step to step while each gains at least a factor of 3. A step
        of which the line search took no quarter shows that curvature at z says little about the way to the
        minimum: the next one goes by the parabola above the loss, if it has one.
        """

        def objective(z: Floats, w: Floats) -> float:
            return problem.value(z) + 0.5 * float(np.sum(penalty * (w * w).T))

        z: Floats = A.T @ w
        f = objective(z, w)
        bend, last, trusted = None, np.inf, True
        for _ in range(self.max_iter):
            g = A @ problem.residual(z) + (penalty * w.T).T
            fresh = bend is None
            bend = bend or curvature_at(problem, A, z, penalty, trusted)
            p = bend.solve(g)
            decrement = float(np.sum(g * p))
            if not decrement > self.precision * max(abs(f), 1e-300):
                break
            w, z, f, step = line_search(objective, A, (w, z, f), p, decrement, bend.is_majorant)
            if step < CREEPING and fresh and not (trusted and problem.majorant(z) is not None):
                break
            trusted = bool(step >= 0.25 or not trusted)
            if not step or decrement > 0.3 * last or not trusted or bend.is_majorant:
                bend = None
            last = decrement
        return w, z, problem.value(z)


def line_search(
    objective: Callable[[Floats, Floats], float],
    A: Floats,
    point: tuple[Floats, Floats, float],
    p: Floats,
    decrement: float,
    far: bool = False,
) -> tuple[Floats, Floats, float, float]:
    """The first of the steps 1, 1/2, 1/4, ... along -p that lowers the objective enough; 0 if none does.

    A parabola above the loss bends more than the loss: where p comes from one (`far`), steps of 2, 4, ...
    are tried while the objective falls.
    """
    w, z, f = point
    dz = A.T @ p
    t = 1.0
    if far:
        while t < FARTHEST and objective(z - 2 * t * dz, w - 2 * t * p) < objective(z - t * dz, w - t * p):
            t *= 2.0
    for _ in range(60):
        w_new, z_new = w - t * p, z - t * dz
        f_new = objective(z_new, w_new)
        if f_new <= f - 1e-4 * t * decrement:
            return w_new, z_new, f_new, t
        t *= 0.5
    return w, z, f, 0.0


def approach(problem: Problem, column: Floats, state: State) -> Floats:
    """A good first coefficient for a new column, the others held: far steps cost one column, not all."""
    rows = np.flatnonzero(column)
    if len(rows) < len(column):  # predictions elsewhere do not move
        weights = None if problem.weights is None else problem.weights[rows]
        problem, column = replace(problem, y=problem.y[rows], weights=weights), column[rows]
    coef, z = np.zeros(problem.targets), state.z[rows]
    begun = f = problem.value(z)
    square = column * column
    for _ in range(10):
        g = column @ problem.residual(z)
        for bend in bends(problem, square, z):
            move = -g / np.where(bend > 0, bend, np.inf)
            z_new = z + (column * move if coef.ndim == 0 else np.multiply.outer(column, move))
            f_new = problem.value(z_new)
            if f_new <= f and np.any(move):
                break
        else:
            return coef
        if not f - f_new > 1e-3 * (begun - f_new):
            return coef
        coef, z, f = coef + move, z_new, f_new
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


def as_stack(rows: np.ndarray | Stack) -> Stack:
    """Rows that can grow; a checkpoint gives them back as a plain array."""
    return rows if isinstance(rows, Stack) else Stack(np.asarray(rows))
