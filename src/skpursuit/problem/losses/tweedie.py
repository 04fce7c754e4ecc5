"""The Tweedie loss, for amounts that are often zero and else positive, such as claims or rain."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from skpursuit.parameters import check_number
from skpursuit.problem.losses.base import Loss
from skpursuit.problem.losses.gamma import Gamma
from skpursuit.problem.losses.poisson import Poisson
from skpursuit.problem.targets import AnyArray


@dataclass(frozen=True)
class Tweedie(Loss):
    """Tweedie loss with log link, half the deviance, for y >= 0 whose variance grows like mean^power.

    Parameters
    ----------
    power : float, default 1.5
        Between 1, the Poisson loss, and 2, the Gamma loss, which needs y > 0. In between the loss is convex.

    Examples
    --------
    >>> import numpy as np
    >>> from skpursuit import OMP, Tweedie, minimize
    >>> y = np.array([0.0, 2.0, 4.0])
    >>> result = minimize(np.ones((3, 1)), y, OMP(1), loss=Tweedie(1.5))
    >>> float(np.exp(result.coef[0]).round(6))
    2.0
    """

    power: float = 1.5
    nonnegative_targets = True
    prefers_blocks = True

    def __post_init__(self) -> None:
        check_number("power", self.power, "[1, 2]")
        object.__setattr__(self, "power", float(self.power))

    @property
    def _end(self) -> Loss | None:
        """The loss at an end of the range, where the formula has a limit."""
        return {1.0: Poisson(), 2.0: Gamma()}.get(self.power)

    def value(self, y: AnyArray, z: AnyArray) -> AnyArray:
        """With a = 2 - power and b = power - 1: exp(a z) / a + y exp(-b z) / b - y^a / (a b)."""
        if self._end is not None:
            return self._end.value(y, z)
        a, b = 2 - self.power, self.power - 1
        with np.errstate(over="ignore", under="ignore"):
            value: AnyArray = np.exp(a * z) / a + _times(y, np.exp(-b * z)) / b - y**a / (a * b)
            return value

    def residual(self, y: AnyArray, z: AnyArray) -> AnyArray:
        """exp(a z) - y exp(-b z)."""
        if self._end is not None:
            return self._end.residual(y, z)
        a, b = 2 - self.power, self.power - 1
        with np.errstate(over="ignore", under="ignore"):
            slope: AnyArray = np.exp(a * z) - _times(y, np.exp(-b * z))
            return slope

    def curvature(self, y: AnyArray, z: AnyArray) -> AnyArray:
        """A exp(a z) + b y exp(-b z)."""
        if self._end is not None:
            return self._end.curvature(y, z)
        a, b = 2 - self.power, self.power - 1
        with np.errstate(over="ignore", under="ignore"):
            curvature: AnyArray = a * np.exp(a * z) + b * _times(y, np.exp(-b * z))
            return curvature

    def check_targets(self, y: ArrayLike) -> AnyArray:
        """Return y as a float array; ValueError unless finite and >= 0, or > 0 for power 2."""
        return (Gamma() if self.power == 2.0 else Poisson()).check_targets(y)

    def mean(self, z: AnyArray) -> AnyArray:
        """The expected target, exp(z); infinity where it overflows."""
        return Gamma().mean(z)


def _times(y: AnyArray, factor: AnyArray) -> AnyArray:
    """The product, zero where y is, whatever the factor."""
    return np.where(y > 0, y, 0) * np.where(y > 0, factor, 0)
