"""Losses whose predictions are logarithms of the expected target: Poisson, Gamma, and those between them.

Values and residuals are differences of nearly equal numbers where exp(z) is close to y. There they are
computed from the logarithm of their ratio, so that a good fit keeps its digits.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from skpursuit.numerics.arrays import Floats
from skpursuit.parameters import check_number
from skpursuit.problem.losses.base import Loss, finite_targets


class LogLink(Loss):
    """What these losses share: amounts as targets, and exp(z) as their mean."""

    nonnegative_targets = True
    prefers_blocks = True

    def check_targets(self, y: ArrayLike) -> Floats:
        """Return y as a float array; ValueError unless finite and >= 0."""
        checked = finite_targets(y)
        if checked.size and checked.min() < 0:
            raise ValueError(f"{type(self).__name__} loss needs targets >= 0, got {checked.min():g}")
        return checked

    def mean(self, z: Floats) -> Floats:
        """The expected target, exp(z); infinity where it overflows."""
        with np.errstate(over="ignore"):
            return np.exp(z, dtype=np.float64)


@dataclass(frozen=True)
class Poisson(LogLink):
    """Poisson loss with log link: exp(z) - y z + (y log y - y), half the deviance, for y >= 0.

    The constant makes the loss non-negative, zero where exp(z) = y. The curvature exp(z) has no bound,
    so there is no smoothness constant.
    """

    def derivatives(self, y: Floats, z: Floats) -> tuple[Floats, Floats, Floats]:
        """With u = z - log(y): y (exp(u) - 1 - u), y (exp(u) - 1) and exp(z)."""
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            u, e = z - np.log(np.where(y > 0, y, 1)), np.exp(z)
            near = (np.abs(u) < 1) & (y > 0)  # where exp(z) and y cancel
            value = np.where(near, y * exp_minus_line(np.clip(u, -1, 1)), e - y * (1 + u))
            return value, np.where(near, y * np.expm1(np.clip(u, -1, 1)), e - y), e + 0 * y


@dataclass(frozen=True)
class Gamma(LogLink):
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

    def derivatives(self, y: Floats, z: Floats) -> tuple[Floats, Floats, Floats]:
        """With t = log(y) - z: exp(t) - 1 - t, 1 - exp(t) and exp(t)."""
        t = np.log(y) - z
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            return exp_minus_line(t), -np.expm1(t), np.exp(t)

    def check_targets(self, y: ArrayLike) -> Floats:
        """Return y as a float array; ValueError unless finite and > 0."""
        checked = finite_targets(y)
        if checked.size and checked.min() <= 0:
            raise ValueError(f"Gamma loss needs targets > 0, got {checked.min():g}; use 'tweedie' for zeros")
        return checked


@dataclass(frozen=True)
class Tweedie(LogLink):
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

    def __post_init__(self) -> None:
        check_number("power", self.power, "[1, 2]")
        object.__setattr__(self, "power", float(self.power))

    def derivatives(self, y: Floats, z: Floats) -> tuple[Floats, Floats, Floats]:
        """With a = 2 - power, b = power - 1, u = exp(a z) and v = y exp(-b z) three sums of these two.

        They are u / a + v / b - y^a / (a b), u - v, and a u + b v.
        """
        if self.power in (1.0, 2.0):  # where the formula has a limit
            return (Poisson() if self.power == 1.0 else Gamma()).derivatives(y, z)
        a, b = 2 - self.power, self.power - 1
        with np.errstate(over="ignore", under="ignore"):
            u, v = np.exp(a * z), y * np.where(y > 0, np.exp(-b * z), 0)
            return u / a + v / b - y**a / (a * b), u - v, a * u + b * v

    def check_targets(self, y: ArrayLike) -> Floats:
        """Return y as a float array; ValueError unless finite and >= 0, or > 0 for power 2."""
        return Gamma().check_targets(y) if self.power == 2.0 else super().check_targets(y)


def exp_minus_line(u: Floats) -> Floats:
    """exp(u) - 1 - u; near zero, where the difference cancels, by its series."""
    near = 0.5 * u * u * (1 + u / 3 * (1 + u / 4 * (1 + u / 5 * (1 + u / 6))))
    return np.where(np.abs(u) < 1e-2, near, np.expm1(u) - u)
