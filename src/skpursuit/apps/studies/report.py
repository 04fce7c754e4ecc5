"""The HTML page of the results in a folder, by the template study.html.

Figures are inline SVG: a method has the same colour and marker in every panel, and names stand at line ends.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import msgspec

from skpursuit._text import write
from skpursuit.apps.pages.render import CARD, COLOURS, RULE, format_number, new_figure, render, to_svg

from ..tables.errors import TableProblem, attach_path
from . import statistics
from .methods import DECLARED, METHODS, label
from .results import Results, read_results
from .statistics import Curve, ResultRows, curves, methods_of, where
from .studies import STUDIES, result_columns

_NUMBER = Annotated[float, msgspec.Meta(ge=0, lt=1e300)]
#: The kinds of columns that studies.toml declares.
VALUE_TYPES: dict[str, Any] = {
    "any": Any,
    "name": Annotated[str, msgspec.Meta(min_length=1)],
    "number": _NUMBER,
    "number?": _NUMBER | None,
    "share": Annotated[float, msgspec.Meta(ge=0, le=1)],
    "whole": Annotated[int, msgspec.Meta(ge=0, lt=2**53)],
    "count": Annotated[int, msgspec.Meta(ge=1, lt=2**53)],
}
#: The lines of the race: the column of its results, and a colour.
RACE_LINES = {
    "exact winner": ("winner", COLOURS[4]),
    "second": ("second", COLOURS[2]),
    "third": ("third", COLOURS[5]),
    "best of the others": ("others", COLOURS[1]),
}
MARKERS = "osD^vP*Xphd<>8sD^vP*Xo"
CLOSEST = 9.5  # points between the names of two lines


def read_folder(folder: Path) -> dict[str, Results]:
    """Read and check the results of all studies in a folder; FileError if a page cannot show them."""
    with attach_path(folder):
        if not folder.is_dir():
            raise TableProblem("no results folder")
        found = {name: one for name in STUDIES if (one := read_results(folder, name)) and one.cells}
        if not found:
            raise TableProblem("no results")
    for name, results in found.items():
        with attach_path(folder / f"{name}.jsonl"):
            if results.columns != tuple(result_columns(name)):
                raise TableProblem("other results")
            for key, example in DECLARED[name].get("needs", {}).items():
                if not isinstance(results.settings.get(key), type(example)):
                    raise TableProblem("results without settings", key=key)
            kinds = [(column, VALUE_TYPES[kind]) for column, kind in result_columns(name).items()]
            try:
                msgspec.convert(results.rows, list[msgspec.defstruct(name, kinds)])  # type: ignore[misc]
            except msgspec.ValidationError as error:
                raise TableProblem("wrong results", words=error) from None
    return found


def render_page(folder: str | Path) -> tuple[str, str]:
    """Return the page of the results in a folder, one HTML document, and the paper's claims as CSV."""
    results = read_folder(Path(folder))
    claims = statistics.graded_claims(results)
    sizes = {str(one.settings["sizes"]) for one in results.values() if "sizes" in one.settings}
    runs = [dict(run) for one in results.values() for run in one.about]
    days = sorted({day for run in runs if (day := run.pop("measured", None))})
    page = render(
        "study.html",
        title="Sparse selection by reading a fraction of the data",
        sizes=min(sizes) if len(sizes) == 1 else "mixed",
        results=results,
        claims=claims,
        machines=list({str(run): run for run in runs}.values()),
        days=list(dict.fromkeys([*days[:1], *days[-1:]])),
        statistics=statistics,
        **{one.__name__: one for one in (draw_panel, legend, label, measures, settings_panels)},
        **{one.__name__: one for one in (race_panels, family_panels, theory_panels)},
    )
    return page, statistics.claims_csv(claims)


@dataclass(frozen=True)
class Panel:
    """One plot: lines over a common axis; ``y_shown`` are values that the vertical axis shows anyway."""

    title: str
    x_label: str  # mathematics between dollars
    lines: Sequence[Curve]
    x_log: bool = False
    y_log: bool = False
    y_shown: Sequence[float] = ()
    names: Sequence[str] = ()  # of the values 0, 1, ... of x

    @property
    def places(self) -> list[float]:
        """The values of x that occur, ascending."""
        return sorted({x for line in self.lines for x in line.x})

    def points(self, line: Curve) -> list[int]:
        """Return which points of a line can be drawn."""
        pairs = list(enumerate(zip(line.x, line.y)))
        finite = [i for i, (x, y) in pairs if math.isfinite(x) and math.isfinite(y)]
        return [i for i in finite if (line.x[i] > 0 or not self.x_log) and (line.y[i] > 0 or not self.y_log)]


def measures(rows: ResultRows, x: str, x_label: str, kind: str = "measures", **axes: Any) -> list[Panel]:
    """Results against x, one panel for each of a kind that studies.toml lists."""
    return [
        Panel(one["title"], x_label, curves(rows, x, one["y"], one["scale"]), **one["axes"], **axes)
        for one in DECLARED["panels"][kind]
    ]


def settings_panels(rows: ResultRows) -> list[Panel]:
    """Frank-Wolfe against the setting of its selection; methods with one setting alone are drawn level."""
    placed = []
    for method in methods_of(rows):
        own = where(rows, method=method)
        places = [row["stability"] if row["budget"] is None else 100 * row["budget"] for row in own]
        level = len(set(places)) == 1 and method != "reject"
        placed += [{**row, "setting": None if level else place} for row, place in zip(own, places)]
    return measures(placed, "setting", "$N_s$ in rows; the budget is $N_s$ / 100 of $n d$", x_log=True)


def family_panels(rows: ResultRows) -> list[Panel]:
    """What every method finds and reads, by the family of X."""
    names = list(dict.fromkeys(row["design"] for row in rows))
    placed = [{**row, "family": names.index(row["design"])} for row in rows]
    return measures(placed, "family", "columns of X", "families", names=names)


def theory_panels(rows: ResultRows) -> list[Panel]:
    """What was measured and what is promised of it: the panels that studies.toml lists."""
    drawn = []
    for panel in DECLARED["theory"]["panels"]:
        own = where(rows, **panel["rows"])
        lines = [(curve, name) for y, name in panel["lines"].items() for curve in curves(own, "x", y)]
        named = [replace(curve, name=name or curve.name) for curve, name in lines]
        drawn.append(Panel(panel["title"], panel["x"], named, **panel.get("axes", {})))
    return drawn


def race_panels(rows: ResultRows) -> list[Panel]:
    """A panel for every selector: the estimates of the exact winner and its rivals as rows are read."""
    panels = []
    for method in methods_of(rows):
        own = where(rows, method=method)
        found = "finds the winner" if own[0]["rank"] == 1 else f"takes number {own[0]['rank']} for it"
        title = f"{label(method)}: {found}, reads {own[0]['read']:.0%} of X"
        runners = []
        for name, (column, _) in RACE_LINES.items():
            known = [(row["rows_read"], row[column]) for row in own if row[column] is not None]
            runners.append(Curve(name, [x for x, _ in known], [y for _, y in known]))
        panels.append(Panel(title, "rows read", runners, x_log=True, y_shown=(1,)))
    return panels


def line_style(name: str) -> tuple[str, str]:
    """Return the colour and the marker of a line; names that are not known get theirs from their letters."""
    if name in RACE_LINES:
        return RACE_LINES[name][1], ""
    if name in METHODS:
        turn, at = divmod(list(METHODS).index(name), len(COLOURS) - 2)
        return COLOURS[at], MARKERS[(at + turn) % len(MARKERS)]
    at = zlib.crc32(name.encode())
    return COLOURS[at % 2 - 2], MARKERS[at % len(MARKERS)]


def draw_panel(panel: Panel, key: str) -> Any:
    """Return a panel as an SVG element."""
    from matplotlib.ticker import LogLocator

    figure, (axes,) = new_figure(4.6, 3.3)
    axes.set_xscale("log" if panel.x_log else "linear")
    axes.set_yscale("log" if panel.y_log else "linear")
    ends = []
    for line in panel.lines:
        at, (colour, marker) = panel.points(line), line_style(line.name)
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
        axes.set_xticks(panel.places, panel.names or [f"{x:g}" for x in panel.places])
        axes.tick_params(axis="x", labelrotation=30 if panel.names else 0)
    axes.set_xlabel(panel.x_label)
    axes.margins(x=0.04)
    if ends:
        _name_ends(figure, axes, ends, panel.places[-1])
    return to_svg(figure, key, f"{panel.title} against {panel.x_label.replace('$', '')}. {describe(panel)}")


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
        look: Any = {"textcoords": "offset points", "va": "center", "fontsize": 8, "annotation_clip": False}
        write(axes.annotate("", (right, y), (7, place - height), color=colour, **look), name)


def describe(panel: Panel) -> str:
    """Say in words what the lines do: where each begins and ends."""
    sentences = []
    for line in panel.lines:
        ends = [f"{format_number(line.y[i])} at {format_number(line.x[i])}" for i in panel.points(line)]
        if ends:
            sentences.append(f"{label(line.name)}: {', '.join(dict.fromkeys((ends[0], ends[-1])))}.")
    return " ".join(sentences) or "No data."


def legend(panels: Sequence[Panel]) -> list[tuple[str, str, str]]:
    """Return the lines of a figure: short name, full name, colour."""
    names = dict.fromkeys(line.name for panel in panels for line in panel.lines)
    return [(name, label(name), f"--c{COLOURS.index(line_style(name)[0])}") for name in names]
