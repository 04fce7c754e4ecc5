"""The HTML report of a fitted table: the numbers and figures of the template model.html."""

from __future__ import annotations

import shlex
import zlib
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup
from scipy.special import expit
from sklearn.calibration import calibration_curve
from sklearn.metrics import precision_recall_curve, roc_curve

from skpursuit._text import write
from skpursuit.apps.models.fit_table import BOOTSTRAPS, FitReport
from skpursuit.apps.tables import EncodedTable
from skpursuit.problem.losses import as_loss

from ..pages import render as pages

BARS = 25
POINTS = 1500  # of the scatter plots
MAX_COLUMNS_LISTED = 60  # that are listed, of a wide table
BINS = 10
WORST = 10  # rows that are listed
THRESHOLDS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 0.9)


def model_page(
    file: str, table: EncodedTable, report: FitReport, model_file: Path | None, made: Mapping[str, str]
) -> str:
    """Return the page as one HTML document.

    `file` is the table's, `model_file` says where the model is, `made` how the page was made.
    """
    kinds = (report.model.encoding.target_kind, *table.encoding.columns)
    marks = ".," if any(getattr(kind, "decimal", "") == "," for kind in kinds) else ",."
    return pages.render(
        "model.html",
        marks=marks,
        file=file,
        made=made,
        table=table,
        report=report,
        shown=report.effects[:BARS],
        bootstraps=BOOTSTRAPS,
        max_columns=MAX_COLUMNS_LISTED,
        size_figures=_size_figures(report, marks) if len(report.sizes) > 1 else [],
        fit_figures=_fit_figures(report, marks),
        thresholds=_thresholds(report),
        worst=_worst(report),
        worked=_worked(table, report),
        model_name=None if model_file is None else shlex.quote(model_file.name),
    )


def _draw(
    title: str, label: str, points: tuple[Any, Any], marks: str, described: str = "", **more: Any
) -> tuple[str, Markup]:
    """Return a title and a figure of points or a line; ``more`` is a band, a line to compare with, a mark."""
    figure, (axes,) = pages.new_figure(4.2, 3.2)
    if "beside" in more:
        axes.plot(*more["beside"], color=pages.SOFT, linewidth=1)
    if "band" in more:
        axes.fill_between(points[0], *more["band"], color=pages.ACCENT, alpha=0.2, linewidth=0)
    if more.get("scattered"):
        axes.scatter(*points, s=10, color=pages.ACCENT, alpha=0.55, linewidths=0)
        axes.grid(True, color=pages.RULE)
    else:
        axes.plot(*points, color=pages.ACCENT, marker="o", markersize=more.get("size", 4), linewidth=1.8)
    if "mark" in more:
        k, value = more["mark"]
        axes.plot(
            [k], [value], color=pages.BAD, marker="o", markersize=9, fillstyle="none", markeredgewidth=2
        )
        behind = {
            "facecolor": pages.CARD,
            "edgecolor": "none",
            "pad": 1,
        }  # so that the curve does not cross it
        place = {"xytext": (0, -22), "textcoords": "offset points", "ha": "left"}
        axes.annotate(
            f"{k}: {pages.format_number(value, 3, marks)}", (k, value), color=pages.INK, bbox=behind, **place
        )
        axes.margins(x=0.12, y=0.25)
        axes.set_xlim(left=max(0.5, axes.get_xlim()[0]))  # there is no model of no features
        axes.xaxis.get_major_locator().set_params(integer=True)
    for axis in (axes.xaxis, axes.yaxis):
        axis.get_major_locator().set_params(nbins=5)
        axis.set_major_formatter(lambda v, _: f"{v:,.10g}".translate(str.maketrans(",.-", f"{marks}\u2212")))
    write(axes.set_xlabel(""), label)
    key = f"figure{zlib.crc32(title.encode())}"
    return title, pages.to_svg(figure, key, described or f"{title}, by {label}")


def _size_figures(report: FitReport, marks: str) -> list[tuple[str, Markup]]:
    """Draw scores against the number of features, with bands of one standard error, and the choice."""
    names = ("R²", "RMSE") if report.model.classes is None else ("accuracy", "AUC")
    sizes, k, figures = report.sizes, report.model.info["k"], []
    for place, name in enumerate(names):
        values = np.array([(size.score, size.other)[place] for size in sizes])
        errors = np.array([size.errors[place] for size in sizes])
        if np.isfinite(values).all() and np.isfinite(errors).all():
            chosen = float(values[max((i for i, size in enumerate(sizes) if size.k <= k), default=0)])
            first = f"{pages.format_number(float(values[0]), 3, marks)} at {sizes[0].k}"
            words = f"{name}: {first} features, {pages.format_number(chosen, 3, marks)} at {k}"
            points, band = ([size.k for size in sizes], values), (values - errors, values + errors)
            figures.append(
                _draw(name, "number of features", points, marks, words, band=band, mark=(k, chosen))
            )
    return figures


def _fit_figures(report: FitReport, marks: str) -> list[tuple[str, Markup]]:
    """Draw actual and residual values, or for two classes how often a chance comes true and what is found."""
    classes, draw = report.model.classes, partial(_draw, marks=marks)
    if classes is None:
        rows = np.linspace(0, len(report.actual) - 1, min(POINTS, len(report.actual))).astype(int)
        actual, predicted = report.actual[rows], report.predicted[rows]
        ends = [float(min(actual.min(), predicted.min())), float(max(actual.max(), predicted.max()))]
        title = f"Actual {pages.quoted(report.model.encoding.target)}"
        level = [float(predicted.min()), float(predicted.max())], [0, 0]
        draw = partial(draw, label="predicted", scattered=True)
        left = draw("Actual less predicted", points=(predicted, actual - predicted), beside=level)
        return [draw(title, points=(predicted, actual), beside=(ends, ends)), left]
    if len(classes) != 2:
        return []
    rare = report.rarest
    label = rare.get("label", report.labels[1])
    truth = report.actual == label
    chance = report.predicted[:, report.labels.index(label)]
    observed, said = calibration_curve(truth, chance, n_bins=BINS, strategy="quantile")
    name, diagonal = f"predicted chance of {pages.quoted(label, 24)}", ([0, 1], [0, 1])
    often = draw("How often it is so", name, (said, observed), beside=diagonal)
    draw = partial(draw, size=0)
    if not rare:
        wrong, found, _ = roc_curve(truth, chance)
        label = "share of the others called so"
        return [often, draw("Share found (ROC curve)", label, (wrong, found), beside=diagonal)]
    right, found, _ = precision_recall_curve(truth, chance)
    base = [0, 1], [truth.mean()] * 2
    return [often, draw("Share of right calls", "share found", (found, right), beside=base)]


def _thresholds(report: FitReport) -> list[tuple[float, int, int]]:
    """Return for some chances, of a rare class, how many rows have it or more, and how many rightly so."""
    if not (rare := report.rarest):
        return []
    chance = report.predicted[:, report.labels.index(rare["label"])]
    called = [chance >= threshold for threshold in THRESHOLDS]
    truth = report.actual == rare["label"]
    return [(t, int(said.sum()), int((said & truth).sum())) for t, said in zip(THRESHOLDS, called)]


def _worst(report: FitReport) -> list[tuple[int, Any, Any, float]]:
    """Return the rows that are predicted worst: number, actual, predicted, how far off or how unlikely."""
    if report.model.classes is None:
        off = report.actual - report.predicted
    else:
        places = np.argmax(report.actual[:, None] == np.array(report.labels), axis=1)
        off = 1 - report.predicted[np.arange(len(places)), places]
    order = np.argsort(-np.abs(off), kind="stable")[:WORST]
    return list(zip(*(part[order].tolist() for part in (report.rows, report.actual, report.called, off))))


def _worked(table: EncodedTable, report: FitReport) -> dict[str, Any]:
    """Return the terms of one prediction, of the row in the middle; nothing where it is no plain sum."""
    model = report.model
    loss = as_loss(model.info["loss"])
    plain = model.classes is not None or float(loss.mean(np.array([2.0]))[0]) == 2.0
    if len(model.coef) > 1 or not model.features or not plain:
        return {}
    place = {name: j for j, name in enumerate(table.features)}
    X = table.dense([place[effect.feature] for effect in report.effects])
    terms = X * [effect.raw[0] for effect in report.effects]
    scores = model.intercept[0] + terms.sum(axis=1)
    row = int(np.argsort(scores, kind="stable")[len(scores) // 2])
    used = [i for i in range(X.shape[1]) if X[row, i]]
    return {
        "row": 1 + (row if table.rows is None else int(table.rows[row])),
        "terms": [(report.effects[i], float(X[row, i]), float(terms[row, i])) for i in used],
        "score": float(scores[row]),
        "chance": float(expit(scores[row])),
        "actual": None if table.y is None else table.y[row].item(),
    }
