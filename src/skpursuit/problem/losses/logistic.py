"""The logistic loss of labels -1 and +1, without overflow and without loss of digits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from skpursuit.numerics.arrays import Floats
from skpursuit.problem.losses.base import Loss, finite_targets
from skpursuit.problem.losses.multinomial import Multinomial


@dataclass(frozen=True)
class Logistic(Loss):
    """Logistic loss log(1 + exp(-y z)) for labels y in {-1, +1}."""

    smoothness = 0.25
    gives_probability = True
    has_entropy_bound = True
    prefers_blocks = True

    def derivatives(self, y: Floats, z: Floats) -> tuple[Floats, Floats, Floats]:
        """Value, residual and curvature from one exponential, exp(-|z|), which cannot overflow."""
        with np.errstate(under="ignore"):
            margin = y * z
            e = np.exp(-np.abs(margin))
            more = 1 + e
            residual = -y * (np.where(margin > 0, e, 1) / more)
            return np.maximum(-margin, 0) + np.log1p(e), residual, e / np.square(more)

    def majorant(self, y: Floats, z: Floats) -> Floats:
        """Curvature tanh(z / 2) / (2 z) of the parabola that touches the loss at z and lies above it."""
        half: Floats = np.maximum(0.5 * np.abs(z), 1e-8)  # the limit at zero is 1/4
        return np.tanh(half) / (4 * half)

    def check_targets(self, y: ArrayLike) -> Floats:
        """Return y as a float array; ValueError unless every label is -1 or +1."""
        checked = finite_targets(y)
        wrong = checked[np.abs(checked) != 1]
        if wrong.size:
            raise ValueError(f"logistic loss needs labels -1 and +1, got {wrong.flat[0]:g}")
        return checked

    def probability(self, z: Floats) -> Floats:
        """Chance of the label +1, 1 / (1 + exp(-z))."""
        e = np.exp(-np.abs(z))
        return np.where(z >= 0, 1.0, e) / (1.0 + e)

    def for_classes(self) -> Multinomial:
        """The multinomial loss, which is this one for two classes."""
        return Multinomial()
