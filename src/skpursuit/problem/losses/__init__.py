"""Losses on predictions z = Xw: value, slope and curvature, elementwise, never seeing X.

The gradient of sum_i loss(y_i, x_i . w) is X^T r with r = ``loss.residual(y, z)``, so r is all that a
selector needs of a loss. Values keep the precision of their arguments and never warn: a prediction
that is too large gives ``inf``, which a line search rejects.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from skpursuit.parameters import check_number
from skpursuit.problem.losses.poisson import Poisson
from skpursuit.problem.losses.targets import Array, finite_targets

__all__ = ["Array", "Huber", "Logistic", "Loss", "Poisson", "Squared", "as_loss", "finite_targets"]


@runtime_checkable
class Loss(Protocol):
    """What a loss must offer; ``as_loss`` also takes objects that have only the first three methods.

    ``smoothness`` is the constant c with loss'' <= c everywhere, or None where there is none.
    """

    @property
    def smoothness(self) -> float | None:
        """Upper bound of the curvature, None if unbounded or unknown."""

    def value(self, y: Array, z: Array) -> Array:
        """Loss of each prediction."""

    def residual(self, y: Array, z: Array) -> Array:
        """Slope of the loss in z."""

    def curvature(self, y: Array, z: Array) -> Array:
        """Second derivative of the loss in z."""

    def check_targets(self, y: ArrayLike) -> Array:
        """Return y as a float array, or raise ValueError if it is no target of this loss."""


@dataclass(frozen=True)
class Squared:
    """Squared loss (y - z)^2 / 2, with residual z - y."""

    smoothness: ClassVar[float | None] = 1.0

    def value(self, y: Array, z: Array) -> Array:
        """(y - z)^2 / 2."""
        with np.errstate(over="ignore", under="ignore"):
            r = z - y
            return 0.5 * r * r

    def residual(self, y: Array, z: Array) -> Array:
        """Slope z - y."""
        return z - y

    def curvature(self, y: Array, z: Array) -> Array:
        """One everywhere."""
        return np.ones_like(z - y)

    def scaled(self, exponent: int) -> Squared:
        """Return the loss of y / 2^exponent and z / 2^exponent, times 4^exponent that of y and z."""
        return self

    def check_targets(self, y: ArrayLike) -> Array:
        """Return y as a float array; ValueError unless finite."""
        return finite_targets(y)


@dataclass(frozen=True)
class Logistic:
    """Logistic loss log(1 + exp(-y z)) for labels y in {-1, +1}."""

    smoothness: ClassVar[float | None] = 0.25

    def value(self, y: Array, z: Array) -> Array:
        """log(1 + exp(-y z)), as max(-y z, 0) + log1p(exp(-|z|))."""
        margin, e = self._margin(y, z)
        return np.maximum(-margin, 0) + np.log1p(e)

    def residual(self, y: Array, z: Array) -> Array:
        """-y / (1 + exp(y z))."""
        margin, e = self._margin(y, z)
        with np.errstate(under="ignore"):
            return -y * (np.where(margin > 0, e, 1) / (1 + e))

    def curvature(self, y: Array, z: Array) -> Array:
        """exp(-|z|) / (1 + exp(-|z|))^2."""
        _, e = self._margin(y, z)
        with np.errstate(under="ignore"):
            return e / np.square(1 + e)

    def majorant(self, y: Array, z: Array) -> Array:
        """Curvature tanh(z / 2) / (2 z) of the parabola that touches the loss at z and lies above it."""
        half = np.maximum(0.5 * np.abs(z), 1e-8)  # the limit at zero is 1/4
        return np.tanh(half) / (4 * half)

    def check_targets(self, y: ArrayLike) -> Array:
        """Return y as a float array; ValueError unless every label is -1 or +1."""
        checked = finite_targets(y)
        wrong = checked[np.abs(checked) != 1]
        if wrong.size:
            raise ValueError(f"logistic loss needs labels -1 and +1, got {wrong.flat[0]:g}")
        return checked

    def probability(self, z: Array) -> Array:
        """Chance of the label +1, 1 / (1 + exp(-z))."""
        e = np.exp(-np.abs(z))
        return np.where(z >= 0, 1.0, e) / (1.0 + e)

    @staticmethod
    def _margin(y: Array, z: Array) -> tuple[Array, Array]:
        """Margin y z and exp(-|y z|), the only exponential, which cannot overflow."""
        with np.errstate(under="ignore"):
            margin = y * z
            return margin, np.exp(-np.abs(margin))


@dataclass(frozen=True)
class Huber:
    """Huber loss: (y - z)^2 / 2 up to |y - z| = delta, then linear with slope delta.

    Parameters
    ----------
    delta : float, default 1.35
        Residuals larger than this count as outliers. At exactly delta the curvature is 1.
    """

    delta: float = 1.35
    smoothness: ClassVar[float | None] = 1.0

    def __post_init__(self) -> None:
        check_number("delta", self.delta, "(0, inf)")
        # A NumPy scalar would turn float32 predictions into float64.
        object.__setattr__(self, "delta", float(self.delta))

    def value(self, y: Array, z: Array) -> Array:
        """With a = |z - y| and c = min(a, delta): c (a - c / 2)."""
        with np.errstate(over="ignore", under="ignore"):
            a = np.abs(z - y)
            c = np.minimum(a, self.delta)
            return c * (a - 0.5 * c)

    def residual(self, y: Array, z: Array) -> Array:
        """Slope z - y, clipped to [-delta, delta]."""
        with np.errstate(over="ignore"):
            return np.clip(z - y, -self.delta, self.delta)

    def curvature(self, y: Array, z: Array) -> Array:
        """One where |z - y| <= delta, else zero."""
        with np.errstate(over="ignore"):
            r = z - y
        return (np.abs(r) <= self.delta).astype(r.dtype)

    def scaled(self, exponent: int) -> Huber:
        """Return the loss of y / 2^exponent and z / 2^exponent, times 4^exponent that of y and z."""
        with np.errstate(over="ignore", under="ignore"):
            return Huber(float(np.clip(np.ldexp(self.delta, -exponent), 1e-300, 1e300)))

    def majorant(self, y: Array, z: Array) -> Array:
        """Curvature min(1, delta / |z - y|) of the parabola that touches the loss at z and lies above it."""
        with np.errstate(over="ignore"):
            return self.delta / np.maximum(np.abs(z - y), self.delta)

    def check_targets(self, y: ArrayLike) -> Array:
        """Return y as a float array; ValueError unless finite."""
        return finite_targets(y)


@dataclass(frozen=True)
class _Plain:
    """A user's loss that has only value, residual and curvature, with the defaults for the rest."""

    loss: Any
    smoothness: ClassVar[float | None] = None

    def value(self, y: Array, z: Array) -> Array:
        return self.loss.value(y, z)

    def residual(self, y: Array, z: Array) -> Array:
        return self.loss.residual(y, z)

    def curvature(self, y: Array, z: Array) -> Array:
        return self.loss.curvature(y, z)

    def check_targets(self, y: ArrayLike) -> Array:
        return finite_targets(y)


_BY_NAME: dict[str, type] = {
    "squared": Squared,
    "logistic": Logistic,
    "huber": Huber,
    "poisson": Poisson,
}


def as_loss(loss: str | Loss) -> Loss:
    """Return the loss of that name, or the object itself if it is one.

    Parameters
    ----------
    loss : str or object
        "squared", "logistic", "huber", "poisson", or an object with ``value``, ``residual``
        and ``curvature``.

    Raises
    ------
    ValueError
        If there is no loss of that name.
    TypeError
        If the object is not a loss.
    """
    if isinstance(loss, str):
        if loss not in _BY_NAME:
            raise ValueError(f"unknown loss {loss!r}; known are {', '.join(_BY_NAME)}")
        return _BY_NAME[loss]()
    if isinstance(loss, type):
        raise TypeError(
            f"loss must be a name or an object, got the class {loss.__name__}: write {loss.__name__}()"
        )
    missing = [m for m in ("value", "residual", "curvature") if not callable(getattr(loss, m, None))]
    if missing:
        raise TypeError(f"{type(loss).__name__} object is no loss: it lacks {', '.join(missing)}")
    return loss if isinstance(loss, Loss) else _Plain(loss)
