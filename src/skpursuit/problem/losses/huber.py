"""The Huber loss: squared near the target, linear far from it, so that outliers pull with a bounded force."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skpursuit.parameters import check_number
from skpursuit.problem.losses.base import Loss
from skpursuit.problem.targets import AnyArray


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

    def derivatives(self, y: AnyArray, z: AnyArray) -> tuple[AnyArray, AnyArray, AnyArray]:
        """Value, residual and curvature from one difference."""
        with np.errstate(over="ignore", under="ignore"):
            r = z - y
            c = np.clip(r, -self.delta, self.delta)
            return c * (r - 0.5 * c), c, (c == r).astype(r.dtype)

    def value(self, y: AnyArray, z: AnyArray) -> AnyArray:
        """With a = |z - y| and c = min(a, delta): c (a - c / 2)."""
        with np.errstate(over="ignore", under="ignore"):
            a = np.abs(z - y)
            c = np.minimum(a, self.delta)
            return c * (a - 0.5 * c)

    def residual(self, y: AnyArray, z: AnyArray) -> AnyArray:
        """Slope z - y, clipped to [-delta, delta]."""
        with np.errstate(over="ignore"):
            return np.clip(z - y, -self.delta, self.delta)

    def curvature(self, y: AnyArray, z: AnyArray) -> AnyArray:
        """One where |z - y| <= delta, else zero."""
        with np.errstate(over="ignore"):
            r = z - y
        return (np.abs(r) <= self.delta).astype(r.dtype)

    def majorant(self, y: AnyArray, z: AnyArray) -> AnyArray:
        """Curvature min(1, delta / |z - y|) of the parabola that touches the loss at z and lies above it."""
        with np.errstate(over="ignore"):
            return self.delta / np.maximum(np.abs(z - y), self.delta)
