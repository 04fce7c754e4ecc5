"""The Gamma loss, for positive amounts whose spread grows with their size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from skpursuit.problem.losses.base import Loss
from skpursuit.problem.targets import AnyArray, finite_targets


@dataclass(frozen=True)
class Gamma(Loss):
    """Gamma loss with log link: u - 1 - log(u) with u = y exp(-z), half the deviance, for y > 0.

    It depends on the ratio of y and exp(z) alone. The curvature u has no bound.

    Examples
    --------
    >>> import numpy as np
    >>> from skpursuit import OMP, Gamma, minimize
    >>> y = np.array([1.0, 2.0, 3.0])
    >>> result = minimize(np.ones((3, 1)), y, OMP(1), loss=Gamma())
    >>> float(np.exp(result.coef[0]).round(6))
    2.0
    """

    nonnegative_targets = True

    def value(self, y: AnyArray, z: AnyArray) -> AnyArray:
        """exp(t) - 1 - t with t = log(y) - z."""
        t = np.log(y) - z
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            # Near zero the difference cancels; its series does not.
            near = 0.5 * t * t * (1 + t / 3 * (1 + t / 4 * (1 + t / 5 * (1 + t / 6))))
            return np.where(np.abs(t) < 1e-2, near, np.expm1(t) - t)

    def residual(self, y: AnyArray, z: AnyArray) -> AnyArray:
        """1 - y exp(-z)."""
        with np.errstate(over="ignore", under="ignore"):
            return -np.expm1(np.log(y) - z)

    def curvature(self, y: AnyArray, z: AnyArray) -> AnyArray:
        """Ratio y exp(-z)."""
        with np.errstate(over="ignore", under="ignore"):
            return np.exp(np.log(y) - z)

    def check_targets(self, y: ArrayLike) -> AnyArray:
        """Return y as a float array; ValueError unless finite and > 0."""
        checked = finite_targets(y)
        if checked.size and checked.min() <= 0:
            raise ValueError(f"Gamma loss needs targets > 0, got {checked.min():g}; use 'tweedie' for zeros")
        return checked

    def mean(self, z: AnyArray) -> AnyArray:
        """The expected target, exp(z); infinity where it overflows."""
        with np.errstate(over="ignore"):
            return np.exp(z)
