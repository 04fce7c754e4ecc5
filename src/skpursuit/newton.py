"""Newton directions on gathered columns: a factor per target, conjugate gradients where targets couple."""

from __future__ import annotations

from typing import Any

import numpy as np

from skpursuit.design.base import Floats
from skpursuit.problem import Problem


class Curvature:
    """Second derivatives of a loss at predictions z, in the coefficients of the rows of A.

    Targets whose losses do not depend on each other (all but multinomial) need one k x k factor each.
    """

    def __init__(self, problem: Problem, A: Floats, z: Floats, ridge: float) -> None:
        curvature = problem.curvature(z).reshape(len(z), -1)
        self.factors = [factor((A * c) @ A.T, ridge) for c in curvature.T]

    def solve(self, g: Floats) -> Floats:
        """The direction p with (curvature) p = g."""
        columns = g.reshape(len(g), -1).T
        return np.stack([f(column) for f, column in zip(self.factors, columns)], axis=1).reshape(g.shape)


class CoupledCurvature(Curvature):
    """Where the loss couples the targets: conjugate gradients, preconditioned by one factor per target.

    Products with the curvature cost two products with A; the k m x k m matrix is never formed.
    """

    def __init__(self, problem: Problem, A: Floats, z: Floats, ridge: float) -> None:
        super().__init__(problem, A, z, ridge)
        self.problem, self.A, self.z, self.ridge = problem, A, z, ridge

    def _product(self, v: Floats) -> Floats:
        loss: Any = self.problem.loss
        u = loss.hessian_product(self.z, self.A.T @ v)
        u = u if self.problem.weights is None else u * self.problem.weights[:, None]
        return self.A @ u + self.ridge * v

    def solve(self, g: Floats) -> Floats:
        """Conjugate gradients to a hundredth of the starting residual: the outer loop corrects the rest."""
        p, r = np.zeros_like(g), g
        s = super().solve(r)
        direction, energy = s, float(np.sum(r * s))
        limit = 1e-4 * energy
        for _ in range(50):
            if not energy > limit:
                break
            bent = self._product(direction)
            slope = float(np.sum(direction * bent))
            if not slope > 0:
                break
            step = energy / slope
            p, r = p + step * direction, r - step * bent
            s = super().solve(r)
            before, energy = energy, float(np.sum(r * s))
            direction = s + energy / before * direction
        return p if p.any() else s


def curvature_at(problem: Problem, A: Floats, z: Floats, ridge: float) -> Curvature:
    """The curvature in the form the loss allows."""
    kind = CoupledCurvature if hasattr(problem.loss, "hessian_product") else Curvature
    return kind(problem, A, z, ridge)


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
