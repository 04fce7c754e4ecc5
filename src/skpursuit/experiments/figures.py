"""Panels as inline SVG, by matplotlib: a method has one colour and marker everywhere, lines end in names."""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from skpursuit.pages import CARD, COLOURS, RULE, new_figure, number, render, safe, svg

from .methods import LABELS, label
from .parts import Figure, Page, Panel, Table

MARKERS = "osD^vP*Xphd<>8sD^vP*Xo"
KNOWN = tuple(LABELS)
CLOSEST = 9.5  # points between the names of two lines


def look(method: str) -> tuple[str, str]:
    """Return the colour and the marker of a method; those that are not known get theirs from their name."""
    if method in LABELS:
        at = KNOWN.index(method)
        return COLOURS[at % 22], MARKERS[at % len(MARKERS)]
    at = zlib.crc32(method.encode())
    return COLOURS[22 + at % 2], MARKERS[at % len(MARKERS)]


def draw(panel: Panel, key: str) -> Any:
    """Return a panel as an SVG element."""
    figure, (axes,) = new_figure(4.6, 3.3)
    axes.set_xscale("log" if panel.x_log else "linear")
    axes.set_yscale("log" if panel.y_log else "linear")
    ends = []
    for series in panel.series:
        colour, marker = look(series.method)
        points = [
            (x, y) for x, y in zip(series.x, series.y) if _drawn(x, panel.x_log) and _drawn(y, panel.y_log)
        ]
        if not points:
            continue
        xs, ys = zip(*points)
        if series.low and len(points) == len(series.x):
            axes.fill_between(
                xs, _floats(series.low), _floats(series.high), color=colour, alpha=0.13, linewidth=0
            )
        axes.plot(
            xs,
            ys,
            color=colour,
            marker=marker,
            markersize=5,
            linewidth=1.6,
            markeredgecolor=CARD,
            markeredgewidth=0.5,
        )
        ends.append((xs[-1], ys[-1], series.method, colour))
    for value in panel.y_include:
        axes.axhline(value, color=RULE, linewidth=0.8)
    axes.grid(True, axis="y", color=RULE)
    places = sorted({x for series in panel.series for x in series.x})
    if 0 < len(places) <= 8:
        axes.set_xticks(places, [f"{x:g}" for x in places])
        axes.minorticks_off()
    axes.set_xlabel(panel.x_label)
    axes.margins(x=0.04)
    _name_ends(figure, axes, ends)
    return svg(figure, key, f"{panel.title} against {panel.x_label}. {describe(panel)}")


def _name_ends(figure: Any, axes: Any, ends: Sequence[tuple[float, float, str, str]]) -> None:
    """Write the names of lines at their right ends, pushed apart where they would touch."""
    if not ends:
        return
    figure.draw_without_rendering()
    scale = 72 / figure.dpi
    order = sorted(ends, key=lambda end: end[1])
    heights = [float(axes.transData.transform((x, y))[1]) * scale for x, y, _, _ in order]
    wanted = list(heights)
    for i in range(1, len(wanted)):
        wanted[i] = max(wanted[i], wanted[i - 1] + CLOSEST)
    top = float(axes.bbox.y1) * scale + 4
    over = max(0.0, wanted[-1] - top)
    wanted = [place - over for place in wanted]
    right = max(x for x, *_ in ends)
    for (_, y, method, colour), height, place in zip(order, heights, wanted):
        axes.annotate(
            method, (right, y), (7, place - height), textcoords="offset points", va="center", fontsize=8,
            color=colour, annotation_clip=False,
        )  # fmt: skip


def describe(panel: Panel) -> str:
    """Say in words what the lines do: where each begins and ends."""
    sentences = []
    for series in panel.series:
        known = [(x, y) for x, y in zip(series.x, series.y) if _drawn(y, panel.y_log)]
        if known:
            (x0, y0), (x1, y1) = known[0], known[-1]
            text = f"{label(series.method)}: {number(y0)} at {number(x0)}"
            sentences.append(text + (f", {number(y1)} at {number(x1)}." if len(known) > 1 else "."))
    return " ".join(sentences) or "No data."


def _drawn(value: float | None, log: bool) -> bool:
    return value is not None and math.isfinite(value) and (value > 0 or not log)


def _floats(values: Sequence[float | None]) -> np.ndarray:
    return np.array([np.nan if v is None else v for v in values], dtype=float)


def numbers_of(figure: Figure) -> list[Table]:
    """Return the numbers behind each panel: one row per line, one column per x."""
    tables = []
    for panel in figure.panels:
        xs = sorted({x for line in panel.series for x in line.x})
        rows = [[label(line.method), *map(dict(zip(line.x, line.y)).get, xs)] for line in panel.series]
        tables.append(Table(panel.title, "", [panel.x_label, *map(number, xs)], rows))
    return tables


def legend(figure: Figure) -> list[tuple[str, str, str]]:
    """Return the methods of a figure: short name, full name, colour."""
    methods = dict.fromkeys(series.method for panel in figure.panels for series in panel.series)
    return [(m, label(m), f"--c{COLOURS.index(look(m)[0])}") for m in methods]


def render_page(page: Page) -> str:
    """Return the page as one HTML document."""
    return render(
        "study.html", title=page.title, page=page, draw=draw, numbers_of=numbers_of, legend=legend, safe=safe
    )
