"""Line plots as small hand-written SVG: text stays text, colours come from the page's style sheet."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from .scales import Scale, make_scale, number, usable

WIDTH, HEIGHT = 360, 250
LEFT, RIGHT, TOP, BOTTOM = 46, 12, 10, 42
#: Number of different looks (colour, marker, dash); more lines than that repeat them.
N_STYLES = 16


@dataclass(frozen=True)
class Series:
    """One line of a panel.

    Attributes
    ----------
    label : str
        What the line is; the same label has the same look everywhere on a page.
    x, y : sequence of float
        Its points, in order of x; None or NaN is a gap.
    low, high : sequence of float
        The spread around y, drawn as a band; empty for none.
    """

    label: str
    x: Sequence[float]
    y: Sequence[float | None]
    low: Sequence[float | None] = ()
    high: Sequence[float | None] = ()


@dataclass(frozen=True)
class Panel:
    """One plot: lines over a common axis.

    Attributes
    ----------
    title : str
        What is measured, with its unit.
    x_label : str
        What it is measured against.
    series : sequence of Series
        The lines.
    x_log, y_log : bool
        Logarithmic axes; values that are not positive are then left out.
    y_include : sequence of float
        Values that the vertical axis shows in any case, as 0 and 1 for a share.
    """

    title: str
    x_label: str
    series: Sequence[Series]
    x_log: bool = False
    y_log: bool = False
    y_include: Sequence[float] = ()


def draw(panel: Panel, styles: Mapping[str, int], key: str) -> str:
    """Return a panel as an SVG element; ``key`` makes its ids unique on the page."""
    x_values = [x for series in panel.series for x in series.x]
    y_values = [y for series in panel.series for y in (*series.y, *series.low, *series.high)]
    x_scale = make_scale(x_values, LEFT, WIDTH - RIGHT, panel.x_log)
    y_scale = make_scale([*y_values, *panel.y_include], HEIGHT - BOTTOM, TOP, panel.y_log)
    parts = [
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-labelledby="{key}-t {key}-d">',
        f'<title id="{key}-t">{escape(panel.title)} against {escape(panel.x_label)}</title>',
        f'<desc id="{key}-d">{escape(describe(panel))}</desc>',
        *_axes(panel, _own_ticks(x_values, x_scale), x_scale, y_scale),
        *(_band(series, styles[series.label], x_scale, y_scale) for series in panel.series if series.low),
        *(_line(series, styles[series.label], x_scale, y_scale) for series in panel.series),
        "</svg>",
    ]
    return "".join(parts)


def describe(panel: Panel) -> str:
    """Say in words what the lines do: where each begins and ends."""
    sentences = []
    for series in panel.series:
        known = [(x, y) for x, y in zip(series.x, series.y) if usable([y], panel.y_log)]
        if known:
            (x0, y0), (x1, y1) = known[0], known[-1]
            text = f"{series.label}: {number(y0)} at {number(x0)}"
            sentences.append(text + (f", {number(y1)} at {number(x1)}." if len(known) > 1 else "."))
    return " ".join(sentences) or "No data."


def swatch(style: int) -> str:
    """Return the sample of a line's look for a legend."""
    mark = marker(style, 17, 8)
    return (
        f'<svg class="swatch s s{style}" viewBox="0 0 34 16" aria-hidden="true">'
        f'<path class="line" d="M2 8H32"/>{mark}</svg>'
    )


def _own_ticks(values: Sequence[float], scale: Scale) -> Sequence[float]:
    """Return the values themselves as ticks where they are few and far enough apart, else round numbers."""
    distinct = sorted(set(usable(values, scale.log)))
    places = [scale(value) for value in distinct]
    roomy = all(b - a >= 34 for a, b in pairwise(places))
    return distinct if len(distinct) <= 8 and roomy else scale.ticks


def _axes(panel: Panel, x_ticks: Sequence[float], x_scale: Scale, y_scale: Scale) -> list[str]:
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    grid = "".join(f"M{LEFT} {y_scale(t):.1f}H{right}" for t in y_scale.ticks)
    marks = "".join(f"M{x_scale(t):.1f} {bottom}v4" for t in x_ticks)
    return [
        f'<path class="grid" d="{grid}"/>',
        f'<path class="axis" d="M{LEFT} {bottom}H{right}{marks}"/>',
        *(_text(LEFT - 6, y_scale(tick) + 4, "end", number(tick)) for tick in y_scale.ticks),
        *(_text(x_scale(tick), bottom + 17, "middle", number(tick)) for tick in x_ticks),
        _text((LEFT + right) / 2, HEIGHT - 6, "middle", panel.x_label),
    ]


def _text(x: float, y: float, anchor: str, text: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _line(series: Series, style: int, x_scale: Scale, y_scale: Scale) -> str:
    runs = _runs(series.x, series.y, x_scale, y_scale)
    path = "".join("M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in run) for run in runs)
    points = []
    for x, y in zip(series.x, series.y):
        if y is not None and usable([x], x_scale.log) and usable([y], y_scale.log):
            title = f"<title>{escape(series.label)}: {number(y)} at {number(x)}</title>"
            points.append(f"<g>{title}{marker(style, x_scale(x), y_scale(y))}</g>")
    return f'<g class="s s{style}"><path class="line" d="{path}"/>{"".join(points)}</g>'


def _band(series: Series, style: int, x_scale: Scale, y_scale: Scale) -> str:
    ends = zip(_runs(series.x, series.low, x_scale, y_scale), _runs(series.x, series.high, x_scale, y_scale))
    shapes = (
        "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in [*low, *reversed(high)]) + "Z" for low, high in ends
    )
    return f'<path class="band s s{style}" d="{"".join(shapes)}"/>'


def _runs(
    xs: Sequence[float], ys: Sequence[float | None], x_scale: Scale, y_scale: Scale
) -> list[list[tuple[float, float]]]:
    """Return the unbroken stretches of a line, in pixels."""
    runs: list[list[tuple[float, float]]] = [[]]
    for x, y in zip(xs, ys):
        if y is not None and usable([x], x_scale.log) and usable([y], y_scale.log):
            runs[-1].append((x_scale(x), y_scale(y)))
        else:
            runs.append([])
    return [run for run in runs if run]


def marker(style: int, x: float, y: float, size: float = 4.2) -> str:
    """Return the marker of a style at a place: shapes differ, so that colour is not needed to tell lines."""
    return _MARKERS[style % len(_MARKERS)](x, y, size)


def _polygon(corners: int, turn: float, inner: float = 1.0) -> Callable[[float, float, float], str]:
    """Return a drawer of polygons; ``inner`` < 1 pulls every second corner in, which makes stars."""

    def shape(x: float, y: float, size: float) -> str:
        radii = [size * 1.15 * (inner if i % 2 else 1.0) for i in range(corners)]
        angles = [2 * math.pi * (i + turn) / corners - math.pi / 2 for i in range(corners)]
        points = " ".join(
            f"{x + r * math.cos(a):.1f},{y + r * math.sin(a):.1f}" for r, a in zip(radii, angles)
        )
        return f'<polygon class="mark" points="{points}"/>'

    return shape


def _circle(x: float, y: float, size: float) -> str:
    return f'<circle class="mark" cx="{x:.1f}" cy="{y:.1f}" r="{size * 0.9:.1f}"/>'


_MARKERS = (
    _circle,
    _polygon(4, 0.5),
    _polygon(3, 0),
    _polygon(4, 0),
    _polygon(3, 1.5),
    _polygon(10, 0, inner=0.45),
    _polygon(8, 0, inner=0.35),
    _polygon(6, 0),
    _polygon(5, 0),
    _polygon(8, 1, inner=0.35),
    _polygon(6, 0, inner=0.35),
    _polygon(6, 1, inner=0.35),
    _polygon(6, 0.5),
    _polygon(5, 2.5),
    _polygon(10, 1, inner=0.45),
    _polygon(12, 0, inner=0.5),
)
