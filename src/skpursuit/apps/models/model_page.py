"""The HTML report of a fitted table, for readers who did not fit it.

The text is in the template model.html; its numbers and figures are made here.
"""

from __future__ import annotations

import shlex
from pathlib import Path

import numpy as np
from markupsafe import Markup
from sklearn.calibration import calibration_curve
from sklearn.metrics import confusion_matrix

from skpursuit._text import one_line, write
from skpursuit.apps.models.fit_table import BOOTSTRAPS, FeatureEffect, FitReport
from skpursuit.apps.tables import EncodedTable

from ..pages.render import ACCENT, BAD, CARD, INK, RULE, SOFT, format_number, new_figure, render, to_svg

BARS = 25
POINTS = 1500  # of the scatter plot
MAX_COLUMNS_LISTED = 60  # that are listed, of a wide table
BINS = 10


def model_page(file: str, table: EncodedTable, report: FitReport, model_file: Path | None) -> str:
    """Return the page as one HTML document; `file` is the table's, `model_file` says where the model is."""
    model, columns = report.model, table.described()
    odd = [row for row in columns if len(columns) <= MAX_COLUMNS_LISTED or row["taken for"] != "number"]
    shown = report.effects[:BARS]
    ends = [0.0, *(v for e in shown for v in (e.standardised, e.low, e.high) if v is not None)]
    sizes = {size.k: size for size in report.sizes}
    larger = [k for k in sizes if k > model.info["k"]]
    return render(
        "model.html",
        file=file,
        report=report,
        model=model,
        target=str(model.encoding.target),
        unit=getattr(model.encoding.target_kind, "unit", ""),
        regression=report.task == "regression",
        dropped=table.dropped,
        margins=model.interval_offsets(0.9),
        chosen=report.chosen,
        size=sizes.get(model.info["k"]),
        next_size=sizes[min(larger)] if larger else None,
        bars=[_bar(effect, min(ends), max(ends)) for effect in shown],
        bootstraps=BOOTSTRAPS,
        size_figures=_size_figures(report) if len(sizes) > 1 else [],
        fit_figures=_fit_figures(report),
        confusion=_confusion(report),
        columns=odd[:MAX_COLUMNS_LISTED],
        more_columns=len(columns) - len(odd[:MAX_COLUMNS_LISTED]),
        n_columns=len(columns),
        left_out=sum(row["kind"] == "left out" for row in columns),
        model_name="model.json" if model_file is None else shlex.quote(model_file.name),
        written=model_file is not None,
        with_unit=with_unit,
    )


def with_unit(value: float, unit: str) -> str:
    """Spell a number with its unit, which is written before it where people do so."""
    if unit and not unit[0].isalpha() and unit not in "%‰€":
        return f"{'−' * (value < 0)}{unit}{format_number(abs(value))}"
    return f"{format_number(value)}\u202f{unit}".strip()


def _bar(effect: FeatureEffect, low: float, high: float) -> dict[str, object]:
    """Return an effect with the places of its bar and whisker, in percent of one scale."""

    def place(value: float) -> float:
        return round(100 * (value - low) / ((high - low) or 1.0), 2)

    left, right = sorted((place(0.0), place(effect.standardised)))
    bar = {"effect": effect, "zero": place(0.0), "left": left, "width": round(right - left, 2)}
    if effect.low is not None and effect.high is not None:
        bar |= {"low": place(effect.low), "span": round(place(effect.high) - place(effect.low), 2)}
    return bar


def _size_figures(report: FitReport) -> list[Markup]:
    """Draw scores against the number of features, with the choice."""
    names = ("R²", "RMSE") if report.task == "regression" else ("accuracy", "AUC")
    sizes, k = report.sizes, report.model.info["k"]
    curves = {names[0]: [size.score for size in sizes], names[1]: [size.other for size in sizes]}
    figures: list[Markup] = []
    for name, values in curves.items():
        if not np.isfinite(values).all():
            continue
        figure, (axes,) = new_figure(4.2, 2.9)
        axes.plot([size.k for size in sizes], values, color=ACCENT, marker="o", markersize=4, linewidth=1.8)
        at = max((i for i, size in enumerate(sizes) if size.k <= k), default=0)
        chosen = values[at]
        axes.plot([k], [chosen], color=BAD, marker="o", markersize=9, fillstyle="none", markeredgewidth=2)
        text, above = f"{k}: {format_number(chosen)}", 12 if chosen >= max(values) else -20
        side = "left" if 2 * at <= len(values) else "right"
        behind = {"facecolor": CARD, "edgecolor": "none", "pad": 1}  # so that the curve does not cross it
        place = {"xytext": (0, above), "textcoords": "offset points", "ha": side}
        axes.annotate(text, (k, chosen), color=INK, bbox=behind, **place)
        axes.margins(x=0.12, y=0.25)
        axes.set_xlim(left=max(0.5, axes.get_xlim()[0]))  # there is no model of no features
        axes.set_xlabel("number of features")
        axes.set_title(name, fontsize=11, loc="left")
        axes.xaxis.get_major_locator().set_params(integer=True)
        first = f"{format_number(values[0])} at {sizes[0].k}"
        words = f"{name} against the number of features: {first}, {format_number(chosen)} at {k}"
        figures.append(to_svg(figure, f"size{len(figures)}", words))
    return figures


def _fit_figures(report: FitReport) -> list[Markup]:
    """Draw actual against predicted values, or for two classes how often a chance comes true."""
    classes = report.model.classes
    if classes is not None and len(classes) != 2:
        return []
    figure, (axes,) = new_figure(4.2, 4.0 if classes is None else 3.4)
    if classes is None:
        from matplotlib.ticker import EngFormatter, MaxNLocator

        rows = np.linspace(0, len(report.actual) - 1, min(POINTS, len(report.actual))).astype(int)
        actual, predicted = report.actual[rows], report.predicted[rows]
        ends = [float(min(actual.min(), predicted.min())), float(max(actual.max(), predicted.max()))]
        axes.plot(ends, ends, color=SOFT, linewidth=1)
        axes.scatter(predicted, actual, s=10, color=ACCENT, alpha=0.55, linewidths=0)
        axes.grid(True, color=RULE)
        axes.set_xlabel("predicted")
        write(axes.set_title("", fontsize=11, loc="left"), f"actual {report.model.encoding.target}", 44)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(MaxNLocator(5))
            if max(map(abs, ends)) >= 1e4:
                axis.set_major_formatter(EngFormatter(sep=""))
        words = "actual against predicted values, near the diagonal where the model is right"
    else:
        truth, chance = report.actual == classes[1], report.predicted[:, 1]
        observed, said = calibration_curve(truth, chance, n_bins=BINS, strategy="quantile")
        axes.plot([0, 1], [0, 1], color=SOFT, linewidth=1)
        axes.plot(said, observed, color=ACCENT, marker="o", markersize=5)
        write(axes.set_xlabel(""), f"predicted chance of “{one_line(classes[1], 24)}”")
        axes.set_title("how often it is so", fontsize=11, loc="left")
        words = "observed frequency against predicted chance"
    return [to_svg(figure, "fit", words)]


def _confusion(report: FitReport) -> list[tuple[float | str, list[tuple[int, int, bool]]]]:
    """Return for every class how often each was said: the count, its share in percent, if it is right."""
    if report.model.classes is None:
        return []
    classes = list(report.model.classes)
    said = np.array(classes)[np.argmax(report.predicted, axis=1)]
    counts = confusion_matrix(report.actual, said.astype(report.actual.dtype), labels=classes)
    shares = 100 * counts / np.maximum(1, counts.sum(axis=1, keepdims=True))
    return [
        (label, [(int(n), round(float(s)), i == j) for j, (n, s) in enumerate(zip(counts[i], shares[i]))])
        for i, label in enumerate(classes)
    ]
