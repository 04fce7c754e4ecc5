"""The quantile (pinball) loss, smoothed around its kink so that Newton steps exist.

The pinball loss at level q costs q for every unit that a prediction is too low and 1 - q for every unit that
it is too high; the q-quantile of the targets minimises it. It has a kink and no curvature, so we take its
Moreau envelope instead: a parabola of curvature 1 / width around the target, and from there on the two lines.
The parabola is `width` wide, and the envelope is nowhere more than width / 2 below the pinball loss.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skpursuit.numerics.scaling import NEARLY_INFINITE, NEARLY_ZERO
from skpursuit.parameters import check_number
from skpursuit.problem.losses.base import Loss
from skpursuit.problem.targets import Array


@dataclass(frozen=True)
class Quantile(Loss):
    """Smoothed pinball loss, whose best prediction is a quantile of the targets.

    Parameters
    ----------
    level : float, default 0.5
        The quantile q, between 0 and 1; 0.5 is the median.
    width : float, default 0.01
        Width of the parabola around the target, in the units of y; a hundredth of the spread of y does
        well. A smaller one comes closer to the pinball loss, and takes more steps.
    unit : float, default 1.0
        What the loss is multiplied with.

    Examples
    --------
    >>> import numpy as np
    >>> from skpursuit import OMP, Quantile, minimize
    >>> y = np.arange(100.0)
    >>> result = minimize(np.ones((100, 1)), y, OMP(1), loss=Quantile(0.9))
    >>> bool(89 < result.coef[0] < 91)
    True
    """

    level: float = 0.5
    width: float = 0.01
    unit: float = 1.0

    def __post_init__(self) -> None:
        check_number("level", self.level, "(0, 1)")
        check_number("width", self.width, "(0, inf)")
        check_number("unit", self.unit, "(0, inf)")
        for name in ("level", "width", "unit"):  # a NumPy scalar would turn float32 into float64
            object.__setattr__(self, name, float(getattr(self, name)))

    @property
    def smoothness(self) -> float:  # type: ignore[override]
        """The curvature of the parabola."""
        return self.unit / self.width

    def value(self, y: Array, z: Array) -> Array:
        """With r = z - y and s its slope in units: s (r - s width / 2)."""
        with np.errstate(over="ignore", under="ignore"):
            slope = np.clip((z - y) / self.width, -self.level, 1 - self.level)
            return self.unit * slope * ((z - y) - 0.5 * self.width * slope)

    def residual(self, y: Array, z: Array) -> Array:
        """Slope (z - y) / width, clipped to [-level, 1 - level], in units."""
        with np.errstate(over="ignore", under="ignore"):
            return self.unit * np.clip((z - y) / self.width, -self.level, 1 - self.level)

    def curvature(self, y: Array, z: Array) -> Array:
        """One unit / width on the parabola, else zero."""
        with np.errstate(over="ignore", under="ignore"):
            r = (z - y) / self.width
        return np.where((r >= -self.level) & (r <= 1 - self.level), self.smoothness, 0.0).astype(r.dtype)

    def scaled(self, exponent: int) -> Quantile:
        """Return the loss of y / 2^exponent and z / 2^exponent, times 4^exponent that of y and z."""
        with np.errstate(over="ignore", under="ignore"):
            numbers = np.ldexp([self.width, self.unit], -exponent)
        return Quantile(self.level, *np.clip(numbers, NEARLY_ZERO, NEARLY_INFINITE).tolist())

    def majorant(self, y: Array, z: Array) -> Array:
        """Curvature of the parabola that touches the loss at z and, beyond the target, its other line.

        With s the steepness of the line at z it is 1 / (2 |z - y| + (1 - 2 s) width), at most 1 / width.
        """
        with np.errstate(over="ignore"):
            r = z - y
            steepness = np.where(r < 0, self.level, 1 - self.level).astype(r.dtype)
            return self.unit / np.maximum(2 * np.abs(r) + (1 - 2 * steepness) * self.width, self.width)
