"""SampleLosses: targets with a loss and weights, and what these make of predictions.

A loss sees predictions alone, sample by sample. So values, slopes and curvatures of some rows need nothing
but the targets and weights of these rows: a part of the samples is samples again, on a worker of a cluster
too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from skpursuit.numerics.arrays import Floats, Indices
from skpursuit.numerics.sums import fixed_order_vdot
from skpursuit.problem.losses import Loss, Squared

LOSS_BLOCK_ROWS = 2**13  # samples that losses are made of at a time


class Derivatives(NamedTuple):
    """The sum of the losses at some predictions, with the residual and the curvature there."""

    value: float
    residual: Floats
    curvature: Floats


@dataclass(frozen=True)
class SampleLosses:
    """Targets y, the loss of predictions of them, and positive weights of the samples, if they have some."""

    y: Floats
    loss: Loss
    weights: Floats | None = None

    def subset(self, rows: Indices | slice) -> SampleLosses:
        """Some of the samples."""
        return SampleLosses(self.y[rows], self.loss, None if self.weights is None else self.weights[rows])

    def target(self, t: int) -> SampleLosses:
        """One of several targets, for losses that do not couple them."""
        return SampleLosses(np.ascontiguousarray(self.y[:, t]), self.loss.for_target(t), self.weights)

    def value(self, z: Floats) -> float:
        """The sum of the losses at predictions z; +inf where the loss overflows."""
        if type(self.loss) is Squared:
            with np.errstate(over="ignore"):
                r = z - self.y
                return 0.5 * fixed_order_vdot(r.ravel(), r.ravel())
        return self.derivatives(z).value

    def residual(self, z: Floats) -> Floats:
        """The residual r such that X^T r is the gradient."""
        if type(self.loss) is Squared:
            return z - self.y
        return self.derivatives(z).residual

    def curvature(self, z: Floats) -> Floats:
        """Second derivatives of the weighted losses."""
        return self.derivatives(z).curvature

    def derivatives(self, z: Floats) -> Derivatives:
        """Value, residual and curvature at z; by blocks, whose temporary arrays stay in the cache."""
        step = LOSS_BLOCK_ROWS if self.loss.prefers_blocks else max(1, len(z))
        parts = [slice(start, start + step) for start in range(0, len(z), step)]
        with np.errstate(over="ignore", invalid="ignore"):
            blocks = [self.loss.derivatives(self.y[part], z[part]) for part in parts]
            values, residual, curvature = (self._weighted(_joined(parts)) for parts in zip(*blocks))
            return Derivatives(float(np.sum(values)), residual, curvature)

    @cached_property
    def has_majorant(self) -> bool:
        """Whether there is a parabola above the losses; not of coupled targets."""
        first = SampleLosses(self.y[:1], self.loss)
        return not self.loss.couples_targets and first.majorant(np.zeros(1)) is not None

    def majorant(self, z: Floats) -> Floats | None:
        """Curvature of a parabola above the losses that touches them at z; None where the loss has none."""
        c = self.loss.majorant(self.y, z)
        return None if c is None else self._weighted(c)

    def _weighted(self, values: Floats) -> Floats:
        return values if self.weights is None else scaled_rows(values, self.weights)


def scaled_rows(values: Floats, factors: Floats) -> Floats:
    """Values of shape (n,) or (n, m) times a factor for each of n rows."""
    return values * (factors if values.ndim == 1 else factors[:, None])


def _joined(parts: Sequence[Floats]) -> Floats:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
