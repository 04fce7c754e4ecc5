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

    def derivatives(self, y: Floats, z: Floats) -> tuple[Floats, Floats, Floats]:
        """(y - z)^2 / 2, z - y, and one everywhere."""
        with np.errstate(over="ignore", under="ignore"):
            r = z - y
            return 0.5 * r * r, r, np.ones_like(r)
