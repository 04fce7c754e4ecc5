"""An intercept for solvers that cannot keep a column of ones in their model.

The best constant prediction is found first. The solver then minimises the loss of predictions that are all
moved by this constant, and once it is done the constant is fitted again beside its model.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from skpursuit.numerics.arrays import Floats
from skpursuit.numerics.convex_1d import minimize_convex_1d
from skpursuit.problem.losses import Loss

MAX_BRACKET = 2.0**60  # from where the search for a constant starts


@dataclass(frozen=True)
class ShiftedLoss(Loss):
    """A loss of predictions that are all moved by a constant, one per target."""

    loss: Loss
    shift: Floats | float

    @property
    def smoothness(self) -> float | None:  # type: ignore[override]
        return self.loss.smoothness

    def derivatives(self, y: Floats, z: Floats) -> tuple[Floats, Floats, Floats]:
        return self.loss.derivatives(y, z + self.shift)

    def majorant(self, y: Floats, z: Floats) -> Floats | None:
        return self.loss.majorant(y, z + self.shift)

    @property
    def predicts_targets(self) -> bool:  # type: ignore[override]
        return self.loss.predicts_targets

    def for_target(self, t: int) -> ShiftedLoss:
        return ShiftedLoss(self.loss, np.ravel(self.shift)[t])

    def check_targets(self, y: ArrayLike) -> Floats:
        return self.loss.check_targets(y)


def optimal_intercept(
    loss: Loss, y: Floats, weights: Floats | None = None, z: Floats | float = 0.0, start: Floats | float = 0.0
) -> Floats | float:
    """The b (one per target) that minimises the sum of weighted losses at z + b.

    It is found by `minimize_convex_1d` in a bracket that is opened from `start`. Where predictions have the
    units of y, its first end is beyond every target.
    """
    y = np.asarray(y, dtype=np.float64)
    z, start = np.broadcast_to(z, y.shape), np.broadcast_to(start, y.shape[1:])
    if y.ndim == 2:
        targets = zip(y.T, z.T, start)
        found = [
            optimal_intercept(loss.for_target(t), one[0], weights, *one[1:]) for t, one in enumerate(targets)
        ]
        return np.array(found)
    w = np.ones(len(y)) if weights is None else weights

    def slopes(t: float) -> tuple[float, float]:
        b = start + way * t
        return way * float(w @ loss.residual(y, z + b)), float(w @ loss.curvature(y, z + b))

    slope = w * loss.residual(y, z + start)
    way, rounding = float(-np.sign(slope.sum())), 1e-16 * float(np.abs(slope).sum())
    limit = float(np.abs(y - z - start).max()) if loss.predicts_targets else 1.0
    farthest = MAX_BRACKET * limit
    while limit < farthest and slopes(limit)[0] < -rounding:
        limit *= 2.0
    return float(start) + way * minimize_convex_1d(slopes, limit, rounding)
