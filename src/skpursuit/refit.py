"""The best coefficients on a support: least squares by a growing factorisation, other losses by Newton."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from skpursuit.blas import one_thread
from skpursuit.design.base import Floats
from skpursuit.problem import Problem
from skpursuit.state import Stack, State

EPS = float(np.finfo(np.float64).eps)


class LeastSquares:
    """X_S = Q^T R grown one atom at a time: O(n k) a step, dependent atoms found by a relative test.

    Memory of the state: Q (k, n) orthonormal rows; L (k, k) lower triangular, L^T = R; b (k, m...) = Q y.
    """

    def __init__(self, positive: bool = False) -> None:
        self.positive = positive

    def start(self, problem: Problem) -> dict[str, np.ndarray | Stack]:
        """Nothing factorised yet."""
        n = problem.design.shape[0]
        return {"Q": Stack(np.empty((0, n))), "L": np.empty((0, 0)), "b": np.empty((0, *problem.targets))}

    def add(self, problem: Problem, state: State, j: int) -> State:
        """Add column j and fit again; a column that depends on the support is dropped instead."""
        with one_thread():
            return self._add(problem, state, j)

    def _add(self, problem: Problem, state: State, j: int) -> State:
        stack = state.memory["Q"]
        stack = stack if isinstance(stack, Stack) else Stack(np.asarray(stack))
        q, h = orthogonalise(stack.rows, problem.design.columns(np.array([j]))[0])
        if q is None:
            return replace(state, dropped=np.append(state.dropped, j))
        b = np.concatenate([np.asarray(state.memory["b"]), (q @ (problem.y - self._fitted(state)))[None]])
        L = np.zeros((len(h), len(h)))
        L[:-1, :-1] = state.memory["L"]
        L[-1] = h
        memory: dict[str, Any] = {"Q": stack.push(q), "L": L, "b": b}
        if self.positive:
            return self._non_negative(problem, state, j, memory)
        z = state.z + (q * b[-1] if b.ndim == 1 else np.outer(q, b[-1]))
        return replace(
            state,
            support=np.append(state.support, j),
            coef=solve_lower_transposed(L, b),
            z=z,
            objective=problem.value(z),
            memory=memory,
        )

    def _fitted(self, state: State) -> Floats:
        """Predictions of plain least squares on the support, from which b grows."""
        if not self.positive:
            return state.z
        return np.asarray(state.memory["b"]) @ np.asarray(state.memory["Q"])

    def _non_negative(self, problem: Problem, state: State, j: int, memory: dict[str, Any]) -> State:
        from scipy.optimize import nnls

        R, b = memory["L"].T, memory["b"]
        size = np.abs(b).max() or 1.0
        coef = nnls(R, b / size)[0] * size
        z = (R @ coef) @ memory["Q"].rows
        support = np.append(state.support, j)
        return replace(state, support=support, coef=coef, z=z, objective=problem.value(z), memory=memory)


def orthogonalise(Q: Floats, x: Floats) -> tuple[Floats | None, Floats]:
    """Split x into its coefficients on the rows of Q and a unit remainder; None when it depends on them.

    A second Gram-Schmidt pass is made when the first one lost digits: twice is enough.
    """
    size = scaled_norm(x)
    tiny = 8 * max(16, len(x)) * EPS * size
    h = np.zeros(len(Q) + 1)
    left, v = size, x
    for _ in range(3):
        part = Q @ v
        v = v - part @ Q
        h[:-1] += part
        before, left = left, scaled_norm(v)
        if left <= tiny:
            return None, h
        if left > 0.5 * before:
            break
    h[-1] = left
    return v / left, h


def scaled_norm(x: Floats) -> float:
    """Euclidean norm that neither overflows nor underflows."""
    size = float(np.sqrt(x @ x))
    if 1e-140 < size < 1e140:
        return size
    top = float(np.abs(x).max(initial=0.0))
    return top * float(np.linalg.norm(x / top)) if 0 < top < np.inf else top


def solve_lower_transposed(L: Floats, b: Floats) -> Floats:
    """Solve L^T w = b."""
    from scipy.linalg.lapack import dtrtrs

    return dtrtrs(L.T, b, lower=0)[0].reshape(b.shape)


class Newton:
    """Damped Newton on the support with warm start; `ridge` keeps separable classes finite."""

    def __init__(self, ridge: float = 0.0, max_iter: int = 100) -> None:
        self.ridge = ridge
        self.max_iter = max_iter

    def start(self, problem: Problem) -> dict[str, np.ndarray | Stack]:
        """Newton keeps nothing between steps."""
        return {}

    def add(self, problem: Problem, state: State, j: int) -> State:
        """Add column j and fit again from the old coefficients; a dependent column is dropped."""
        columns = problem.design.columns(np.append(state.support, j))
        if depends(columns):
            return replace(state, dropped=np.append(state.dropped, j))
        start = np.concatenate([state.coef, np.zeros((1, *problem.targets))])
        coef, z, objective = self.fit(problem, columns, start)
        return replace(state, support=np.append(state.support, j), coef=coef, z=z, objective=objective)

    def fit(self, problem: Problem, A: Floats, w: Floats) -> tuple[Floats, Floats, float]:
        """Minimise over the coefficients of the rows of A (gathered columns), from w."""
        z = np.einsum("kn,k...->n...", A, w)
        f = self._objective(problem, z, w)
        for _ in range(self.max_iter):
            g = A @ problem.residual(z) + self.ridge * w
            p = solve_damped(self._hessian(problem, A, z), g.ravel()).reshape(w.shape)
            decrement = float(np.sum(g * p))
            if not decrement > 1e-15 * max(abs(f), 1e-300):
                break
            w, z, f, moved = self._line_search(problem, A, (w, z, f), p, decrement)
            if not moved:
                break
        return w, z, problem.value(z)

    def _objective(self, problem: Problem, z: Floats, w: Floats) -> float:
        return problem.value(z) + 0.5 * self.ridge * float(np.sum(w * w))

    def _line_search(
        self, problem: Problem, A: Floats, point: tuple[Floats, Floats, float], p: Floats, decrement: float
    ) -> tuple[Floats, Floats, float, bool]:
        w, z, f = point
        dz = np.einsum("kn,k...->n...", A, p)
        t = 1.0
        for _ in range(60):
            w_new, z_new = w - t * p, z - t * dz
            f_new = self._objective(problem, z_new, w_new)
            if f_new <= f - 1e-4 * t * decrement:
                return w_new, z_new, f_new, True
            t *= 0.5
        return w, z, f, False

    def _hessian(self, problem: Problem, A: Floats, z: Floats) -> Floats:
        """Second derivatives in the coefficients, (k m, k m), targets innermost."""
        k, m = len(A), int(np.prod(problem.targets, dtype=int))
        H = np.zeros((k, m, k, m))
        if hasattr(problem.loss, "hessian"):
            blocks = problem.loss.hessian(z)
            blocks = blocks if problem.weights is None else blocks * problem.weights[:, None, None]
            for a in range(m):
                for b in range(a, m):
                    H[:, a, :, b] = H[:, b, :, a] = (A * blocks[:, a, b]) @ A.T
        else:
            c = problem.curvature(z).reshape(len(z), m)
            for a in range(m):
                H[:, a, :, a] = (A * c[:, a]) @ A.T
        flat = H.reshape(k * m, k * m)
        flat.flat[:: k * m + 1] += self.ridge
        return flat


def depends(columns: Floats) -> bool:
    """Whether the last row depends on the others, by the relative test of the factorisation."""
    if len(columns) == 1:
        return scaled_norm(columns[0]) == 0.0
    sizes = np.array([scaled_norm(c) for c in columns])
    if sizes[-1] == 0.0:
        return True
    scaled = columns / np.where(sizes > 0, sizes, 1.0)[:, None]
    rest = np.linalg.lstsq(scaled[:-1] @ scaled[:-1].T, scaled[:-1] @ scaled[-1], rcond=None)[0]
    remainder = scaled[-1] - rest @ scaled[:-1]
    return bool(np.linalg.norm(remainder) <= np.sqrt(EPS) * 1e-2)


def solve_damped(H: Floats, g: Floats) -> Floats:
    """Solve H p = g for a positive semi-definite H, damped as little as a Cholesky factor needs."""
    from scipy.linalg import LinAlgError, cho_factor, cho_solve

    scale = float(np.trace(H)) / len(H)
    if not scale > 0:
        return g
    damping = 0.0
    while True:
        try:
            factor = cho_factor(H + damping * np.eye(len(H)), lower=True, check_finite=False)
            return cho_solve(factor, g, check_finite=False)
        except LinAlgError:
            damping = max(10 * damping, 1e-14 * scale)
