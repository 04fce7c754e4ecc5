"""Logistic losses of two labels and of several classes, without overflow and without loss of digits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from skpursuit.numerics.arrays import Floats
from skpursuit.problem.losses.base import Loss, finite_targets


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
            way = -y
            wrong = way * z
            e = np.exp(-np.abs(wrong))
            more = 1 + e
            residual = way * (np.where(wrong < 0, e, 1) / more)
            return np.maximum(wrong, 0) + np.log1p(e), residual, e / np.square(more)

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


@dataclass(frozen=True)
class Multinomial(Loss):
    """Multinomial logistic loss log(sum_k exp(z_k)) - z_y for labels y in 0..K-1 and z of shape (n, K).

    The loss of a row couples its K predictions: its second derivatives are diag(p) - p p^T of the class
    probabilities p, of which `curvature` is the diagonal. Adding one vector to all columns of z changes
    nothing: they are singular, and Newton needs a ridge or a reference class.
    """

    smoothness = 0.5
    couples_targets = True
    gives_probability = True
    prefers_blocks = True

    def derivatives(self, y: Floats, z: Floats) -> tuple[Floats, Floats, Floats]:
        """The loss of each row; its probabilities less the indicator of y; and p_k (1 - p_k)."""
        e, others, distance = self._shifted(z)
        rows, y, total = np.arange(len(z)), np.asarray(y, np.intp), 1 + others
        with np.errstate(under="ignore"):
            curvature = e * np.where(distance == 0, others, total - e) / np.square(total)
        r = e / total
        # 1 - p_y as a sum of the other terms: it keeps its digits when p_y is close to 1.
        e[y, rows] = 0
        r[y, rows] = -e.sum(axis=0) / total
        return distance[y, rows] + np.log1p(others), r.T, curvature.T

    def probabilities(self, z: Floats) -> Floats:
        """Class probabilities exp(z_k) / sum_l exp(z_l), shape (n, K)."""
        e, others, _ = self._shifted(z)
        return (e / (1 + others)).T

    def prediction_shape(self, y: Floats) -> tuple[int, ...]:
        """Trailing shape (K,) of the predictions for these labels."""
        return (int(np.max(y)) + 1,)

    def check_targets(self, y: ArrayLike) -> Floats:
        """Return y as an integer array; ValueError unless it is a vector of whole numbers >= 0."""
        checked = finite_targets(y)
        if checked.ndim != 1:
            raise ValueError(f"multinomial loss needs a vector of class labels, got shape {checked.shape}")
        if checked.size and (checked.min() < 0 or np.any(checked != np.floor(checked))):
            raise ValueError("multinomial loss needs class labels 0, 1, 2, ...")
        return checked.astype(np.intp)

    @staticmethod
    def _shifted(z: Floats) -> tuple[Floats, Floats, Floats]:
        """exp(z - max), the sum of all but one of the largest of them, and max - z; classes in rows.

        Sums over few classes are fast across rows, slow along them.
        """
        z = np.ascontiguousarray(z.T)
        distance = z.max(axis=0) - z
        top = distance == 0
        with np.errstate(under="ignore"):
            e = np.exp(-distance)
            others = np.where(top, 0, e).sum(axis=0) + (top.sum(axis=0, dtype=z.dtype) - 1)
        return e, others, distance
