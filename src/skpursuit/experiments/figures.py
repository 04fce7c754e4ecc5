"""Panels of lines as inline SVG: a method has one colour and marker everywhere, lines end in names."""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from skpursuit.pages import ACCENT, CARD, COLOURS, GOOD, RULE, SOFT, new_figure, number, svg

from .methods import METHODS, label
from .summary import Line

MARKERS = "osD^vP*Xphd<>8sD^vP*Xo"
CLOSEST = 9.5  # points between the names of two lines
RUNNERS = {"exact winner": GOOD, "second": ACCENT, "third": COLOURS[5], "best of the others": SOFT}
VARIABLES = {GOOD: "good", ACCENT: "accent", SOFT: "soft", **{c: f"c{i}" for i, c in enumerate(COLOURS)}}


@dataclass(frozen=True)
class Panel:
    """One plot: lines over a common axis; ``y_shown`` are values that the vertical axis shows anyway."""

    title: str
    x_label: str
    lines: Sequence[Line]
    x_log: bool = False
    y_log: bool = False
    y_shown: Sequence[float] = ()

    @property
    def places(self) -> list[float]:
        """The values of x that occur, ascending."""
        return sorted({x for line in self.lines for x in line.x})

    def points(self, line: Line) -> list[int]:
        """Return which points of a line can be drawn."""
        pairs = list(enumerate(zip(line.x, line.y)))
        finite = [i for i, (x, y) in pairs if math.isfinite(x) and math.isfinite(y)]
        return [i for i in finite if (line.x[i] > 0 or not self.x_log) and (line.y[i] > 0 or not self.y_log)]


def look(name: str) -> tuple[str, str]:
    """Return the colour and the marker of a line; names that are not known get theirs from their letters."""
    if name in RUNNERS:
        return RUNNERS[name], ""
    if name in METHODS:
        at = list(METHODS).index(name)
        return COLOURS[at], MARKERS[at]
    at = zlib.crc32(name.encode())
    return COLOURS[len(METHODS) + at % 2], MARKERS[at % len(MARKERS)]


def draw(panel: Panel, key: str) -> Any:
    """Return a panel as an SVG element."""
    from matplotlib.ticker import LogLocator

    figure, (axes,) = new_figure(4.6, 3.3)
    axes.set_xscale("log" if panel.x_log else "linear")
    axes.set_yscale("log" if panel.y_log else "linear")
    ends = []
    for line in panel.lines:
        at, (colour, marker) = panel.points(line), look(line.name)
        if not at:
            continue
        xs, ys = [line.x[i] for i in at], [line.y[i] for i in at]
        style = {"marker": marker, "markersize": 5, "markeredgecolor": CARD, "markeredgewidth": 0.5}
        axes.plot(xs, ys, color=colour, linewidth=1.6, **style)
        if line.low:
            low, high = [line.low[i] for i in at], [line.high[i] for i in at]
            axes.fill_between(xs, low, high, color=colour, alpha=0.09, linewidth=0)
        ends.append((ys[-1], line.name, colour))
    for value in panel.y_shown:
        axes.axhline(value, color=RULE, linewidth=0.8)
    axes.grid(True, axis="y", color=RULE)
    for axis in [axis for axis, log in ((axes.xaxis, panel.x_log), (axes.yaxis, panel.y_log)) if log]:
        low, high = axis.get_view_interval()
        axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 300 * low else (1,), numticks=9))
        axis.set_major_formatter("{x:g}")
    axes.minorticks_off()
    axes.tick_params(labelsize=8)
    if 0 < len(panel.places) <= 8:
        axes.set_xticks(panel.places, [f"{x:g}" for x in panel.places])
    axes.set_xlabel(panel.x_label)
    axes.margins(x=0.04)
    if ends:
        _name_ends(figure, axes, ends, panel.places[-1])
    return svg(figure, key, f"{panel.title} against {panel.x_label}. {describe(panel)}")


def _name_ends(figure: Any, axes: Any, ends: Sequence[tuple[float, str, str]], right: float) -> None:
    """Write the names of lines at their right ends, pushed apart where they would touch."""
    figure.draw_without_rendering()
    scale = 72 / figure.dpi
    ends = sorted(ends)
    heights = [float(axes.transData.transform((right, y))[1]) * scale for y, _, _ in ends]
    places = list(heights)
    for i in range(1, len(places)):
        places[i] = max(places[i], places[i - 1] + CLOSEST)
    places.append(float(axes.bbox.y1) * scale + 4 + CLOSEST)
    for i in reversed(range(len(ends))):
        places[i] = min(places[i], places[i + 1] - CLOSEST)
    for (y, name, colour), height, place in zip(ends, heights, places):
        axes.annotate(
            name, (right, y), (7, place - height), textcoords="offset points", va="center", fontsize=8,
            color=colour, annotation_clip=False,
        )  # fmt: skip


def describe(panel: Panel) -> str:
    """Say in words what the lines do: where each begins and ends."""
    sentences = []
    for line in panel.lines:
        ends = [f"{number(line.y[i])} at {number(line.x[i])}" for i in panel.points(line)]
        if ends:
            sentences.append(f"{label(line.name)}: {', '.join(dict.fromkeys((ends[0], ends[-1])))}.")
    return " ".join(sentences) or "No data."


def legend(panels: Sequence[Panel]) -> list[tuple[str, str, str]]:
    """Return the lines of a figure: short name, full name, colour."""
    names = dict.fromkeys(line.name for panel in panels for line in panel.lines)
    return [(name, label(name), f"--{VARIABLES[look(name)[0]]}") for name in names]
