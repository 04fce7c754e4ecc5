"""An intercept for solvers that cannot keep a column of ones in their model.

The best constant prediction is found first. The solver then minimises the loss of predictions that are all
moved by this constant, and once it is done the constant is fitted again beside its model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skpursuit.numerics.arrays import Floats
from skpursuit.problem.losses import Loss
from skpursuit.problem.units import exponent_of

MOST = 1e3  # targets up to this are reached by steps of a hundred units


@dataclass(frozen=True)
class ShiftedLoss(Loss):
    """A loss of predictions that are all moved by a constant, one per target."""

    loss: Loss
    shift: Any

    @property
    def smoothness(self) -> float | None:  # type: ignore[override]
        """That of the loss."""
        return self.loss.smoothness

    def value(self, y: Floats, z: Floats) -> Floats:
        """Loss at z + shift."""
        return self.loss.value(y, z + self.shift)

    def residual(self, y: Floats, z: Floats) -> Floats:
        """Slope at z + shift."""
        return self.loss.residual(y, z + self.shift)

    def curvature(self, y: Floats, z: Floats) -> Floats:
        """Curvature at z + shift."""
        return self.loss.curvature(y, z + self.shift)

    def majorant(self, y: Floats, z: Floats) -> Floats | None:
        """That of the loss at z + shift."""
        return self.loss.majorant(y, z + self.shift)

    def scaled(self, exponent: int) -> ShiftedLoss | None:
        """The loss and its shift in other units of y and z."""
        scaled = self.loss.scaled(exponent)
        return None if scaled is None else ShiftedLoss(scaled, np.ldexp(self.shift, -exponent))

    def for_target(self, t: int) -> ShiftedLoss:
        """The loss of one of several targets."""
        return ShiftedLoss(self.loss, self.shift[t])

    def check_targets(self, y: Any) -> Floats:
        """As the loss does."""
        return self.loss.check_targets(y)


def best_constant(loss: Loss, y: Any, weights: Floats | None = None, z: Any = 0.0, start: Any = 0.0) -> Any:
    """The b (one per target) that minimises the sum of weighted losses at z + b, by damped Newton."""
    y = np.asarray(y, dtype=np.float64)
    exponent = exponent_of(loss, y, MOST)
    scaled = loss.scaled(exponent) if exponent else None
    if scaled is not None:
        y, z, start = (np.ldexp(part, -exponent) for part in (y, z, start))
        return np.ldexp(best_constant(scaled, y, weights, z, start), exponent)
    w = np.ones(len(y)) if weights is None else weights
    w = w if y.ndim == 1 else w[:, None]
    z = np.broadcast_to(z, y.shape)
    b = np.broadcast_to(np.asarray(start, dtype=np.float64), y.shape[1:]).copy()
    value = np.sum(w * loss.value(y, z + b), axis=0)
    for _ in range(100):
        slope = np.sum(w * loss.residual(y, z + b), axis=0)
        bend = np.sum(w * loss.curvature(y, z + b), axis=0)
        # Never trust a flat spot (Huber's tails, saturated logits) for more than a hundred units.
        move = np.clip(-slope / np.maximum(bend, 1e-12 * np.sum(w)), -100.0, 100.0)
        for _ in range(50):
            trial = np.sum(w * loss.value(y, z + b + move), axis=0)
            worse = ~(trial <= value)
            if not worse.any():
                break
            move = np.where(worse, 0.5 * move, move)
        else:
            return b if b.ndim else float(b)
        small = np.abs(move) <= 1e-12 * (1.0 + np.abs(b))
        b, value = b + move, trial
        if small.all():
            break
    return b if b.ndim else float(b)
