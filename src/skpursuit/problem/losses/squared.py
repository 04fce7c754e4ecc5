"""The squared loss."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skpursuit.problem.losses.base import Loss
from skpursuit.problem.targets import AnyArray


@dataclass(frozen=True)
class Squared(Loss):
    """Squared loss (y - z)^2 / 2, with residual z - y."""

    smoothness = 1.0
    quadratic = True
    predicts_targets = True

    def value(self, y: AnyArray, z: AnyArray) -> AnyArray:
        """(y - z)^2 / 2."""
        with np.errstate(over="ignore", under="ignore"):
            r = z - y
            return 0.5 * r * r

    def residual(self, y: AnyArray, z: AnyArray) -> AnyArray:
        """Slope z - y."""
        return z - y

    def curvature(self, y: AnyArray, z: AnyArray) -> AnyArray:
        """One everywhere."""
        return np.ones_like(z - y)
