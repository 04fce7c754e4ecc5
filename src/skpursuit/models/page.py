"""A page about a fitted table for people who were not there: what was found, how good it is, its use."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from skpursuit.models.fitting import BOOTSTRAPS, Effect, Outcome
from skpursuit.pages import ACCENT, BAD, INK, RULE, SOFT, new_figure, number, render, svg
from skpursuit.tables import Table

BARS = 25
POINTS = 1500  # of the scatter plot
COLUMNS = 60  # that are listed, of a wide table
BINS = 10


def model_page(
    file: str, table: Table, outcome: Outcome, columns: Sequence[dict[str, str]], model_file: Path | None
) -> str:
    """Return the page as one HTML document.

    Parameters
    ----------
    file : str
        Name of the table's file.
    table, outcome : Table, Outcome
        What was fitted, and what came out.
    columns : sequence of dict
        What every column was taken for: "column", "taken for", "missing".
    model_file : Path or None
        Where the model is.
    """
    model, info = outcome.model, outcome.model.info
    target, unit = str(model.encoding.target), getattr(model.encoding.target_kind, "unit", "")
    odd = [row for row in columns if len(columns) <= COLUMNS or row["taken for"] != "number"][:COLUMNS]
    return render(
        "model.html",
        title=f"What {target} depends on",
        sentence=_sentence(outcome, target, len(table.features)),
        tiles=_tiles(outcome, unit),
        effect_words=_effect_words(outcome, target, unit),
        bootstraps=BOOTSTRAPS,
        **_bars(outcome),
        **_sizes(outcome, unit),
        **_fit(outcome, target, unit),
        columns=odd,
        more_columns=len(columns) - len(odd),
        column_words=_column_words(columns, table.dropped),
        use=_use(outcome, model_file, target, unit),
        footer=f"Made by `skpursuit fit` from {file}: {info['rows']} rows, {len(table.features)} features. "
        f"skpursuit {model.versions.get('skpursuit')}, solver {info['solver']}, selector {info['selector']}.",
    )


def _percent(share: float) -> str:
    return f"{100 * share:.3g}\u202f%"


def _sentence(outcome: Outcome, target: str, every: int) -> str:
    used, held = len(outcome.model.features), outcome.model.info["held_out_rows"]
    all_of_them = f"a model of all {every} features"
    if outcome.task == "regression":
        first = f"{used} of {every} features explain {_percent(outcome.score)} of the variance of {target}"
        rest = "the best constant explains none of it"
        if outcome.everything is not None:
            rest += f", {all_of_them} {_percent(outcome.everything)}"
    else:
        first = f"{used} of {every} features tell {target} right in {_percent(outcome.score)} of the cases"
        rest = f"always saying the most frequent class is right in {_percent(outcome.baseline)}"
        if outcome.everything is not None:
            rest += f", {all_of_them} in {_percent(outcome.everything)}"
    return f"{first}, in {held} rows that the model had not seen; {rest}."


def _tiles(outcome: Outcome, unit: str) -> list[tuple[str, str]]:
    k, name = outcome.model.info["k"], "R²" if outcome.task == "regression" else "accuracy"
    tiles = [(number(outcome.score), f"{name} on rows not seen")]
    if outcome.task == "regression":
        left = outcome.actual - outcome.predicted
        tiles.append(
            (_with_unit(float(np.sqrt(np.mean(left**2))), unit), "typical error (RMSE, cross-validated)")
        )
    elif outcome.sizes and np.isfinite(outcome.sizes[min(k, len(outcome.sizes)) - 1].other):
        tiles.append((number(outcome.sizes[min(k, len(outcome.sizes)) - 1].other), "AUC, cross-validated"))
    tiles.append((str(len(outcome.model.features)), f"features, of {len(outcome.features)}"))
    return tiles


def _with_unit(value: float, unit: str) -> str:
    before = unit and not unit[0].isalpha() and unit not in "%‰€"
    if before:
        return f"{'−' * (value < 0)}{unit}{number(abs(value))}"
    return f"{number(value)}\u202f{unit}".strip()


def _effect_words(outcome: Outcome, target: str, unit: str) -> str:
    if outcome.task == "regression":
        return (
            f"A bar says by how much {target} changes{f' (in {unit})' if unit else ''} where a feature is "
            "larger by its standard deviation, all others equal; all bars share one scale."
        )
    classes = outcome.model.classes or ()
    of = f"of “{classes[-1]}”" if len(classes) == 2 else "of the class that is named"
    return (
        f"A bar says by how much the log odds {of} change where a feature is larger by its standard "
        "deviation, all others equal; all bars share one scale."
    )


def _bars(outcome: Outcome) -> dict[str, Any]:
    """Positions of bars and whiskers in percent of one scale, and the table of their numbers."""
    effects, model = outcome.effects, outcome.model
    shown = effects[:BARS]
    ends = [0.0, *(v for e in shown for v in (e.standardised, e.low, e.high) if v is not None)]
    low, high = min(ends), max(ends)
    wide = (high - low) or 1.0
    several = len(model.coef) > 1

    def place(value: float) -> float:
        return round(100 * (value - low) / wide, 2)

    def bar(effect: Effect) -> dict[str, Any]:
        left, right = sorted((place(0.0), place(effect.standardised)))
        known = effect.low is not None and effect.high is not None
        return {
            "feature": effect.feature,
            "output": str((model.classes or ())[effect.output]) if several else "",
            "sign": "plus" if effect.standardised > 0 else "minus",
            "left": left,
            "width": round(right - left, 2),
            "low": place(effect.low) if known else None,  # type: ignore[arg-type]
            "span": round(place(effect.high) - place(effect.low), 2) if known else 0,  # type: ignore[arg-type]
            "effect": number(effect.standardised),
            "chosen": "" if effect.chosen is None else _percent(effect.chosen),
        }

    chosen = [None if e.chosen is None else _percent(e.chosen) for e in effects]
    return {
        "bars": [bar(effect) for effect in shown],
        "zero": place(0.0),
        "raw_heads": [f"per unit, {label}" for label in model.classes or ()] if several else ["per unit"],
        "effect_rows": [
            [e.feature, e.standardised, e.low, e.high, c, *e.raw] for e, c in zip(effects, chosen)
        ],
    }


def _sizes(outcome: Outcome, unit: str) -> dict[str, Any]:
    """Scores against the number of features, with the choice and why."""
    sizes, k = outcome.sizes, outcome.model.info["k"]
    if len(sizes) < 2:
        return {"size_words": f"The model was asked to have {k} features.", "size_figures": []}
    regression = outcome.task == "regression"
    names = ("R²", f"RMSE{f' ({unit})' if unit else ''}") if regression else ("accuracy", "AUC")
    at = sizes[min(k, len(sizes)) - 1]
    each = " for each class" if len(outcome.model.coef) > 1 else ""
    words = (
        f"Models of 1 to {sizes[-1].k} features{each} were compared by five-fold cross-validation; {k} "
        f"{'has' if k == 1 else 'have'} the best score ({names[0]} {number(at.score)})"
    )
    more = [size for size in sizes if size.k > k]
    words += f", and {more[0].k} would have {number(more[0].score)}." if more else "."
    if outcome.at_limit:
        words += " That is the largest number that was tried, so that more may be better still (--max-k)."
    figures = []
    for i, name in enumerate(names):
        values = [size.other if i else size.score for size in sizes]
        if np.isfinite(values).all():
            figures.append(_curve([size.k for size in sizes], values, k, name, f"size{i}"))
    return {"size_words": words, "size_figures": figures}


def _curve(ks: list[int], values: list[float], k: int, name: str, key: str) -> Any:
    figure, (axes,) = new_figure(4.2, 2.9)
    axes.plot(ks, values, color=ACCENT, marker="o", markersize=4, linewidth=1.8)
    chosen = values[ks.index(k)] if k in ks else values[-1]
    axes.plot([k], [chosen], color=BAD, marker="o", markersize=9, fillstyle="none", markeredgewidth=2)
    above = 12 if chosen >= max(values) else -20
    axes.annotate(
        f"{k}: {number(chosen)}", (k, chosen), (0, above), textcoords="offset points", ha="center", color=INK
    )
    axes.margins(x=0.12, y=0.25)
    axes.set_xlabel("number of features")
    axes.set_title(name, fontsize=11, loc="left")
    axes.xaxis.get_major_locator().set_params(integer=True)
    return svg(
        figure,
        key,
        f"{name} against the number of features: {number(values[0])} at 1, {number(chosen)} at {k}",
    )


def _fit(outcome: Outcome, target: str, unit: str) -> dict[str, Any]:
    """Predicted against actual; or confusion matrix and calibration."""
    if outcome.task == "regression":
        margins = outcome.model.margins(0.9)
        words = "Every point is a row, predicted by a model that was fitted without it (cross-validation)."
        if margins is not None:
            low, high = _with_unit(margins[0], unit), _with_unit(margins[1], unit)
            words += f" Nine in ten predictions are off by between {low} and {high}."
        return {
            "fit_words": words,
            "fit_figures": [_scatter(outcome, target)],
            "confusion": [],
            "classes": [],
        }
    classes = list(outcome.model.classes or ())
    said = np.argmax(outcome.predicted, axis=1)
    truth = np.array([[str(c) for c in classes].index(_label(v, classes)) for v in outcome.actual.tolist()])
    table = np.zeros((len(classes), len(classes)), dtype=int)
    np.add.at(table, (truth, said), 1)
    shares = 100 * table / np.maximum(1, table.sum(axis=1, keepdims=True))
    rows = [
        (label, [(int(n), round(float(s)), i == j) for j, (n, s) in enumerate(zip(table[i], shares[i]))])
        for i, label in enumerate(classes)
    ]
    words = "Every row was predicted by a model that was fitted without it (cross-validation)."
    figures = []
    if len(classes) == 2:
        figures.append(_calibration(outcome.predicted[:, 1], truth == 1, str(classes[1])))
        words += (
            " The curve says how often a class comes true that the model gave a chance: on the diagonal, "
        )
        words += "as often as it said."
    return {"fit_words": words, "fit_figures": figures, "confusion": rows, "classes": classes}


def _label(value: Any, classes: list[Any]) -> str:
    """The class of a value, as a text: 1.0 of a file is the class 1 of a model."""
    return next(str(label) for label in classes if label == value)


def _scatter(outcome: Outcome, target: str) -> Any:
    rows = np.linspace(0, len(outcome.actual) - 1, min(POINTS, len(outcome.actual))).astype(int)
    actual, predicted = outcome.actual[rows], outcome.predicted[rows]
    figure, (axes,) = new_figure(4.2, 4.0)
    ends = [float(min(actual.min(), predicted.min())), float(max(actual.max(), predicted.max()))]
    axes.plot(ends, ends, color=SOFT, linewidth=1)
    axes.scatter(predicted, actual, s=10, color=ACCENT, alpha=0.55, linewidths=0)
    axes.grid(True, color=RULE)
    axes.set_xlabel("predicted")
    axes.set_title(f"actual {target[:40]}", fontsize=11, loc="left")
    from matplotlib.ticker import EngFormatter, MaxNLocator

    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(5))
        if max(map(abs, ends)) >= 1e4:
            axis.set_major_formatter(EngFormatter(sep=""))
    return svg(
        figure, "fit", f"actual against predicted {target}, near the diagonal where the model is right"
    )


def _calibration(chance: np.ndarray, truth: np.ndarray, label: str) -> Any:
    edges = np.unique(np.quantile(chance, np.linspace(0, 1, BINS + 1)))
    where = np.clip(np.searchsorted(edges, chance, side="right") - 1, 0, max(0, len(edges) - 2))
    bins = [where == i for i in range(max(1, len(edges) - 1)) if np.any(where == i)]
    figure, (axes,) = new_figure(4.2, 3.4)
    axes.plot([0, 1], [0, 1], color=SOFT, linewidth=1)
    axes.plot(
        [chance[b].mean() for b in bins],
        [truth[b].mean() for b in bins],
        color=ACCENT,
        marker="o",
        markersize=5,
    )
    axes.set_xlabel(f"chance of “{label[:30]}” that the model names")
    axes.set_title("how often it is so", fontsize=11, loc="left")
    return svg(figure, "calibration", "observed frequency against predicted chance")


def _column_words(columns: Sequence[dict[str, str]], dropped: int) -> str:
    left = sum(row["taken for"].startswith("left out") for row in columns)
    words = f"{len(columns) - left} of {len(columns)} columns are used"
    words += f", {left} {'is' if left == 1 else 'are'} left out for the reason given." if left else "."
    return words + (f" {dropped} rows without a target are left out." if dropped else "")


def _use(outcome: Outcome, model_file: Path | None, target: str, unit: str) -> list[str]:
    name = "model.json" if model_file is None else model_file.name
    where = "" if model_file is not None else " (write it by `--out model.json` first)"
    texts = [
        f"For a new table with the same columns, in any order and as raw as the first one: "
        f"`skpursuit predict {shlex.quote(name)} NEW_FILE`{where}.",
        "The model is linear: an effect is that of one feature while the others stay, which need not be what "
        "would happen if somebody changed it. Features that say nearly the same stand in for each other; "
        "where a feature is chosen in few refits, another one can take its place.",
    ]
    if outcome.task == "regression":
        texts.insert(1, "Every prediction comes with an interval that should hold nine in ten actual values.")
    else:
        texts.insert(1, "Every prediction comes with the chance of every class.")
    return texts
