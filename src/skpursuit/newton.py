"""Newton directions on gathered columns: a factor per target, or one for all where a loss couples them."""

from __future__ import annotations

from typing import Any

import numpy as np

from skpursuit.design.base import Floats
from skpursuit.problem import Problem

STACK_ENTRIES = 2**22


class Curvature:
    """Second derivatives of a loss of one target at predictions z, in the coefficients of the rows of A."""

    def __init__(self, problem: Problem, A: Floats, z: Floats, ridge: float) -> None:
        self.factor = factor((A * problem.curvature(z)) @ A.T, ridge)

    def solve(self, g: Floats) -> Floats:
        """The direction p with (curvature) p = g."""
        return self.factor(g)


class CoupledCurvature:
    """Where the loss couples the targets: the whole k m x k m matrix of diag(p) - p p^T in each row.

    The products p_a p_b of all pairs of classes are one symmetric product of the stacked rows A p_a, made
    from blocks of samples so that the stack stays small.
    """

    def __init__(self, problem: Problem, A: Floats, z: Floats, ridge: float) -> None:
        loss: Any = problem.loss
        p = loss.probabilities(z)
        weights = np.ones(len(z)) if problem.weights is None else problem.weights
        self.shape = (p.shape[1], len(A))
        H = np.zeros((*self.shape, *self.shape))
        flat = H.reshape(p.shape[1] * len(A), -1)
        step = max(1, STACK_ENTRIES // len(flat))
        for start in range(0, len(z), step):
            rows = slice(start, start + step)
            stack = (p[rows] * np.sqrt(weights[rows])[:, None]).T[:, None, :] * A[:, rows]
            stack = stack.reshape(len(flat), -1)
            flat -= stack @ stack.T
        for a, share in enumerate((p * weights[:, None]).T):
            H[a, :, a] += (A * share) @ A.T
        self.factor = factor(flat, ridge)

    def solve(self, g: Floats) -> Floats:
        """The direction p with (curvature) p = g."""
        return self.factor(g.T.ravel()).reshape(self.shape).T


def curvature_at(problem: Problem, A: Floats, z: Floats, ridge: float) -> Curvature | CoupledCurvature:
    """The curvature in the form the loss allows."""
    kind = CoupledCurvature if couples(problem) else Curvature
    return kind(problem, A, z, ridge)


def couples(problem: Problem) -> bool:
    """Whether the loss of a sample depends on several predictions at once, as multinomial loss does."""
    return hasattr(problem.loss, "probabilities")


def factor(H: Floats, ridge: float) -> Any:
    """A solver of (H + ridge) p = g for a positive semi-definite H, damped as little as Cholesky needs."""
    from scipy.linalg import LinAlgError, cho_factor, cho_solve

    H.flat[:: len(H) + 1] += ridge
    scale = float(np.trace(H)) / len(H)
    if not scale > 0:
        return lambda g: g
    damping = 0.0
    while True:
        try:
            done = cho_factor(H, lower=True, check_finite=False)
            return lambda g: cho_solve(done, g, check_finite=False)
        except LinAlgError:
            more = max(10 * damping, 1e-14 * scale)
            H.flat[:: len(H) + 1] += more - damping
            damping = more
