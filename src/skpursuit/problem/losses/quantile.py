"""The quantile (pinball) loss, smoothed around its kink so that Newton steps exist.

The pinball loss at level q costs q for every unit that a prediction is too low and 1 - q for every unit that
it is too high; the q-quantile of the targets minimises it. It has a kink and no curvature, so we take its
Moreau envelope instead: a parabola of curvature 1 / width around the target, and from there on the two lines.
The parabola is `width` wide, and the envelope is nowhere more than width / 2 below the pinball loss.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from skpursuit.numerics.arrays import Floats
from skpursuit.parameters import check_number
from skpursuit.problem.losses.base import Loss


@dataclass(frozen=True)
class Quantile(Loss):
    """Smoothed pinball loss, whose best prediction is a quantile of the targets.

    Parameters
    ----------
    level : float, default 0.5
        The quantile q, between 0 and 1; 0.5 is the median.
    width : float, optional
        Width of the parabola around the target, in the units of y. A smaller one comes closer to the pinball
        loss, and takes more steps. Default: a thousandth of the interquartile range of y (of its range where
        that is zero, 1 where that is too); of several targets the least. Give a smaller one where errors of
        the model are not much larger than that.

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
    width: float | None = None
    predicts_targets = True
    has_flat_pieces = True

    def __post_init__(self) -> None:
        for name, allowed in (("level", "(0, 1)"), ("width", "(0, inf)")):
            if name != "width" or self.width is not None:
                check_number(name, getattr(self, name), allowed)
                object.__setattr__(self, name, float(getattr(self, name)))  # NumPy's would widen float32

    def resolved(self, y: Floats) -> Quantile:
        """Return the loss with a width, its own or that which targets y give it."""
        return replace(self, width=self._width_for(y))

    def _width_for(self, y: Floats) -> float:
        if self.width is not None:
            return self.width
        y = 1e-3 * np.atleast_1d(np.asarray(y, dtype=np.float64))
        inner = np.subtract(*np.quantile(y, [0.75, 0.25], axis=0))
        widths = np.where(inner > 0, inner, np.ptp(y, axis=0))
        return float(widths[widths > 0].min()) if widths.any() else 1.0

    @property
    def smoothness(self) -> float | None:  # type: ignore[override]
        """The curvature of the parabola."""
        return None if self.width is None else 1.0 / self.width

    def derivatives(self, y: Floats, z: Floats) -> tuple[Floats, Floats, Floats]:
        """With r = z - y and s = r / width, clipped to [-level, 1 - level]: s (r - s width / 2), and s.

        The curvature is 1 / width, or zero where s was clipped.
        """
        width = self._width_for(y)
        with np.errstate(over="ignore", under="ignore"):
            r = z - y
            steep = r / width
            slope = np.clip(steep, -self.level, 1 - self.level)
            curvature = np.where(slope == steep, 1.0 / width, 0.0).astype(r.dtype)
            return slope * (r - 0.5 * width * slope), slope, curvature

    def majorant(self, y: Floats, z: Floats) -> Floats:
        """Curvature of the parabola that touches the loss at z and, beyond the target, its other line.

        With s the steepness of the line at z it is 1 / (2 |z - y| + (1 - 2 s) width), at most 1 / width.
        """
        width = self._width_for(y)
        with np.errstate(over="ignore"):
            r = z - y
            steepness = np.where(r < 0, self.level, 1 - self.level).astype(r.dtype)
            return 1.0 / np.maximum(2 * np.abs(r) + (1 - 2 * steepness) * width, width)
