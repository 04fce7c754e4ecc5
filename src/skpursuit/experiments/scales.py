"""Axes of small plots: where values go, which ticks to show, how numbers are spelled."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Scale:
    """A map from values to pixels, linear or logarithmic, with its ticks."""

    low: float
    high: float
    start: float
    end: float
    log: bool
    ticks: tuple[float, ...]

    def __call__(self, value: float) -> float:
        """Return the pixel of a value."""
        place = math.log10 if self.log else float
        share = (place(value) - place(self.low)) / (place(self.high) - place(self.low))
        return self.start + share * (self.end - self.start)


def usable(values: Sequence[float | None], log: bool) -> list[float]:
    """Return the values that can be drawn."""
    known = [float(v) for v in values if v is not None and math.isfinite(v)]
    return [v for v in known if v > 0] if log else known


def make_scale(values: Sequence[float | None], start: float, end: float, log: bool = False) -> Scale:
    """Return a scale that holds all drawable values, with four to seven ticks where that is possible."""
    known = usable(values, log) or [1.0]
    low, high = min(known), max(known)
    if low == high:
        low, high = (low / 2, high * 2) if log else (low - (abs(low) or 1) / 2, high + (abs(high) or 1) / 2)
    if log:
        ticks = _log_ticks(low, high)
        low, high = low / (high / low) ** 0.06, high * (high / low) ** 0.06
    else:
        ticks = _linear_ticks(low, high)
        pad = 0.06 * (high - low)
        low, high = low - pad, high + pad
    return Scale(low, high, start, end, log, tuple(t for t in ticks if low <= t <= high))


def _linear_ticks(low: float, high: float) -> list[float]:
    raw = (high - low) / 4
    power = 10.0 ** math.floor(math.log10(raw))
    step = power * next(f for f in (1, 2, 2.5, 5, 10) if f * power >= raw * 0.999)
    first, last = math.floor(low / step), math.ceil(high / step)
    return [round(i * step, 12) for i in range(first, last + 1)]


def _log_ticks(low: float, high: float) -> list[float]:
    decades = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 2)
    inside = [e for e in decades if low <= 10.0**e <= high]
    if len(inside) >= 3:
        every = math.ceil(len(inside) / 6)
        return [10.0**e for e in inside[::every]]
    if high / low < 4:  # so narrow that a logarithm is nearly a straight line
        return _linear_ticks(low, high)
    return [f * 10.0**e for e in decades for f in (1, 2, 5)]


def number(value: float | None, pad: bool = False) -> str:
    """Spell a number for people: three digits (with ``pad`` always, if a float), a dash for nothing."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value == int(value) and abs(value) < 1e7 and not (pad and isinstance(value, float)):
        text = f"{int(value):,}"
    elif 1e-3 <= abs(value) < 999.5:
        text = f"{value:#.3g}".rstrip(".") if pad else f"{value:.3g}"
    elif 999.5 <= abs(value) < 1e7:
        text = f"{value:,.0f}"
    else:
        text = f"{value:.2g}" if value else "0"
    return text.replace(",", "\u202f").replace("-", "\u2212")
