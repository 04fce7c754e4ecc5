"""The squared loss, and that of Huber, with which outliers pull with a bounded force."""

from dataclasses import dataclass

import numpy as np

from skpursuit.numerics.arrays import Floats
from skpursuit.parameters import check_number
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


@dataclass(frozen=True)
class Huber(Loss):
    """Huber loss: (y - z)^2 / 2 up to |y - z| = delta, then linear with slope delta.

    Parameters
    ----------
    delta : float, default 1.35
        Residuals larger than this count as outliers. At exactly delta the curvature is 1.
    """

    delta: float = 1.35
    smoothness = 1.0
    predicts_targets = True

    def __post_init__(self) -> None:
        check_number("delta", self.delta, "(0, inf)")
        # A NumPy scalar would turn float32 predictions into float64.
        object.__setattr__(self, "delta", float(self.delta))

    def derivatives(self, y: Floats, z: Floats) -> tuple[Floats, Floats, Floats]:
        """With r = z - y clipped to c: c (r - c / 2), c, and one where nothing was clipped."""
        with np.errstate(over="ignore", under="ignore"):
            r = z - y
            c = np.clip(r, -self.delta, self.delta)
            return c * (r - 0.5 * c), c, (c == r).astype(r.dtype)

    def majorant(self, y: Floats, z: Floats) -> Floats:
        """Curvature min(1, delta / |z - y|) of the parabola that touches the loss at z and lies above it."""
        with np.errstate(over="ignore"):
            return self.delta / np.maximum(np.abs(z - y), self.delta)
