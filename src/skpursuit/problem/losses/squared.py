"""The squared loss."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skpursuit.numerics.arrays import Floats
from skpursuit.problem.losses.base import Loss


@dataclass(frozen=True)
class Squared(Loss):
    """Squared loss (y - z)^2 / 2, with residual z - y."""

    smoothness = 1.0
    quadratic = True
    predicts_targets = True

    def value(self, y: Floats, z: Floats) -> Floats:
        """(y - z)^2 / 2."""
        with np.errstate(over="ignore", under="ignore"):
            r = z - y
            return 0.5 * r * r

    def residual(self, y: Floats, z: Floats) -> Floats:
        """Slope z - y."""
        return z - y

    def curvature(self, y: Floats, z: Floats) -> Floats:
        """One everywhere."""
        return np.ones_like(z - y)
