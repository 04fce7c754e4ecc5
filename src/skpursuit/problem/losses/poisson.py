"""The Poisson loss, without the cancellation its formula suffers from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skpursuit.problem.losses.base import Loss
from skpursuit.problem.targets import AnyArray, finite_targets

# log(2) in two parts. The first has 32 significant bits, so that its product with a binary exponent is exact.
_LN2_HIGH = float.fromhex("0x1.62e42feep-1")
_LN2_LOW = float.fromhex("0x1.a39ef35793c76p-33")


@dataclass(frozen=True)
class Poisson(Loss):
    """Poisson loss with log link: exp(z) - y z + (y log y - y), half the deviance, for y >= 0.

    The constant makes the loss non-negative, zero where exp(z) = y. The curvature exp(z) has no bound,
    so there is no smoothness constant.

    Value and residual are accurate to a few ulp, or exact for a z within one ulp. The latter is where exp(z)
    and y cancel: there one ulp of z changes them by an unbounded relative amount.
    """

    nonnegative_targets = True
    prefers_blocks = True

    def derivatives(self, y: AnyArray, z: AnyArray) -> tuple[AnyArray, AnyArray, AnyArray]:
        """Value, residual and curvature from one exponential and one logarithm."""
        y, z, dtype = _in_double(y, z)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            u, e = self._log_ratio(y, z), np.exp(z)
            near, clipped = (np.abs(u) < 1) & (y > 0), np.clip(u, -1, 1)
            value = np.where(near, y * _exp_minus_line(clipped), e - y * (1 + u))
            residual = np.where(near, y * np.expm1(clipped), e - y)
            return value.astype(dtype), residual.astype(dtype), (e + 0 * y).astype(dtype)

    def value(self, y: AnyArray, z: AnyArray) -> AnyArray:
        """exp(z) - y z + (y log y - y)."""
        return self.derivatives(y, z)[0]

    def residual(self, y: AnyArray, z: AnyArray) -> AnyArray:
        """exp(z) - y."""
        y, z, dtype = _in_double(y, z)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            u = self._log_ratio(y, z)
            near = y * np.expm1(np.clip(u, -1, 1))
            return np.where((np.abs(u) < 1) & (y > 0), near, np.exp(z) - y).astype(dtype)

    def curvature(self, y: AnyArray, z: AnyArray) -> AnyArray:
        """exp(z)."""
        with np.errstate(over="ignore", under="ignore"):
            return np.exp(z + np.zeros_like(y))

    def check_targets(self, y: ArrayLike) -> AnyArray:
        """Return y as a float array; ValueError unless finite and >= 0."""
        checked = finite_targets(y)
        if checked.size and checked.min() < 0:
            raise ValueError(f"Poisson loss needs targets >= 0, got {checked.min():g}")
        return checked

    def mean(self, z: AnyArray) -> AnyArray:
        """The expected target, exp(z); infinity where it overflows."""
        with np.errstate(over="ignore"):
            return np.exp(z)

    @staticmethod
    def _log_ratio(y: AnyArray, z: AnyArray) -> AnyArray:
        """Difference z - log(y), without losing what z and log(y) have in common; z itself where y = 0.

        With y = m 2^e the difference z - e log(2) is taken first, in two parts, and |log(m)| <= log(2) / 2
        has a rounding error far below that of log(y).
        """
        m, e = np.frexp(np.where(y > 0, y, 1))
        low = m < np.sqrt(0.5)
        m, e = np.where(low, 2 * m, m), e - low
        rest: AnyArray = (z - e * _LN2_HIGH) - (e * _LN2_LOW + np.log(m))
        return rest


def _in_double(y: AnyArray, z: AnyArray) -> tuple[AnyArray, AnyArray, np.dtype[Any]]:
    """Both as float64, and the dtype that the result is to have."""
    return np.asarray(y, np.float64), np.asarray(z, np.float64), np.result_type(y, z, np.float32)


def _exp_minus_line(u: AnyArray) -> AnyArray:
    """exp(u) - 1 - u for |u| <= 1 by its series, which does not cancel."""
    t = np.ones_like(u)
    for k in range(19, 2, -1):
        t *= u
        t /= k
        t += 1
    return 0.5 * u * u * t
