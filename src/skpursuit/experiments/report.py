"""The page of results: the rows of a folder, summarised per study, and put into words by a template."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from skpursuit.pages import render

from .figures import Line, Panel, draw, legend
from .loaders import DataError
from .methods import METHODS, label
from .results import Results, ResultsError, Row, check_rows, read_results
from .studies import STUDIES
from .summary import (
    PAPER,
    judged_claims,
    lines,
    mean,
    methods_of,
    pick,
    problem_of,
    ratios,
    shared,
    speed,
    values,
)

RUNNERS = {"winner": "exact winner", "second": "second", "third": "third", "others": "best of the others"}
FIRST_SEEN = ("certified", "halving")  # methods of the tiles
SLOWER = 0.95  # times as fast as exact by BLAS: below this a method loses
Rows = Sequence[Row]
Found = list[dict[str, Any]]


def read_folder(folder: Path) -> dict[str, Results]:
    """Read and check the results of all studies in a folder.

    Raises
    ------
    FileError
        If there are no results, or they cannot be read, or a page cannot show them.
    """
    remedy = "run `skpursuit reproduce` first, or name its folder"
    if not folder.is_dir():
        raise DataError(folder, "there is no such folder", remedy)
    found = {}
    for name, study in STUDIES.items():
        results, path = read_results(folder, name), folder / f"{name}.jsonl"
        if results is None or not results.cells:
            continue
        if results.columns != study.columns:
            other = "delete the file, or name another folder"
            raise ResultsError(path, "these are not results of this study", other)
        for key, kind in study.shown.items():
            if not isinstance(results.settings.get(key), kind):
                problem = f"its settings do not say {key!r}"
                raise ResultsError(path, problem, "use another folder, or delete the file")
        check_rows(path, results.rows, {method: one.takes for method, one in METHODS.items()})
        found[name] = results
    if not found:
        raise DataError(folder, "there are no results in it", remedy)
    return found


def render_page(folder: str | Path) -> str:
    """Return the page of the results in a folder as one HTML document."""
    results = read_folder(Path(folder))
    found = {name: one.rows for name, one in results.items()}
    sizes = {one.settings["sizes"] for one in results.values() if "sizes" in one.settings}
    return render(
        "study.html",
        title="Sparse selection by reading a fraction of the data",
        sizes=sizes.pop() if len(sizes) == 1 else "mixed",
        tiles=tiles(shared(found.get("omp", ()))),
        claims=judged_claims(found),
        studies={name: SUMMARIES[name](rows) for name, rows in found.items()},
        results=results,
        slower={name: losses for name, rows in found.items() if name != "race" and (losses := slower(rows))},
        paper=PAPER,
        machines=list({str(made): made for one in results.values() for made in one.about}.values()),
        label=label,
        draw=draw,
        legend=legend,
    )


def tiles(rows: Rows) -> Found:
    """The few numbers to see first: OMP on the largest X, by speed against BLAS and atoms of exact."""
    n, d = max(((row["n"], row["d"]) for row in rows), default=(0, 0))
    found = {one["method"]: one for one in compared(pick(rows, n=n, d=d))}
    shown = [{"n": n, "d": d, **found[method]} for method in FIRST_SEEN if method in found]
    return [one for one in shown if None not in (one["blas"], one["same_atoms"])]


def slower(rows: Rows) -> Found:
    """Methods that are slower than exact by BLAS on some problems: how often, and how much at worst."""
    found = []
    for method in methods_of(rows):
        speeds = ratios(pick(rows, method=method), pick(rows, method="exact"))
        below = [ratio for ratio in speeds if ratio < SLOWER]
        if below:
            found.append({"method": method, "times": len(below), "of": len(speeds), "worst": min(below)})
    return found


def per_method(rows: Rows, *columns: str) -> Found:
    """The means of some columns for each method, and its speed against both exact baselines."""
    return [
        {
            "method": method,
            "blas": speed(rows, method, "exact"),
            "rows": speed(rows, method, "rows"),
            **{name: mean(pick(rows, method=method), name) for name in columns},
        }
        for method in methods_of(rows)
    ]


def compared(rows: Rows) -> Found:
    """Each method on the problems that all have finished, with the F of exact on those it was run on."""
    rows = shared(rows)
    found = per_method(rows, "f_measure", "same_atoms", "share_read", "iterations")
    for one in found:
        places = set(map(problem_of, pick(rows, method=one["method"])))
        same = [row for row in pick(rows, method="exact") if problem_of(row) in places]
        one["exact_f"] = mean(same, "f_measure")
    return found


def measures(rows: Rows, x: str, x_label: str, x_log: bool = False) -> list[Panel]:
    """Recovery, time and reading against x."""
    return [
        Panel("Recovery (F-measure)", x_label, lines(rows, x, "f_measure"), x_log, y_shown=(0, 1)),
        Panel("Time (seconds)", x_label, lines(rows, x, "seconds"), x_log, y_log=True),
        Panel("X read in an iteration (%)", x_label, lines(rows, x, "share_read", 100), x_log, y_shown=(0,)),
    ]


def against_k(rows: Rows) -> Found:
    """A figure and a comparison for every size of X."""
    shapes = sorted({(row["n"], row["d"]) for row in rows})
    parts = [(n, d, pick(rows, n=n, d=d)) for n, d in shapes]
    return [
        {"n": n, "d": d, "panels": measures(here, "k", "k, atoms"), "methods": compared(here)}
        for n, d, here in parts
    ]


def scaling(rows: Rows) -> Found:
    """Against d, then against n: k tells which."""
    found = []
    for k in values(rows, "k"):
        here = pick(rows, k=k)
        x, fixed = ("d", "n") if len(values(here, "d")) > 1 else ("n", "d")
        shown = {"x": x, "fixed": fixed, "value": here[0][fixed], "k": k}
        found.append({**shown, "panels": measures(here, x, x), "methods": compared(here)})
    return found


def frank_wolfe(rows: Rows) -> dict[str, Any]:
    """Against the setting of the inner computation; methods with one setting alone are drawn level."""
    placed = []
    for method in methods_of(rows):
        own = pick(rows, method=method)
        places = [r["stability"] if r.get("budget") is None else 100 * r["budget"] for r in own]
        level = len(set(places)) == 1
        placed += [{**row, "setting": None if level else place} for row, place in zip(own, places)]
    drawn, reject = [row for row in placed if row["method"] != "reject"], pick(rows, method="reject")
    panels = measures(drawn, "setting", "N_s in rows; the budget is N_s / 100 of n d", x_log=True)
    default = [r for r in rows if r.get("budget") in (None, 0.2) and r.get("stability") in (None, 20)]
    rejected = {
        "count": len(reject),
        "budget": mean(reject, "budget"),
        "speed": speed(rows, "reject", "exact"),
    }
    return {"panels": panels, "methods": compared(default), "reject": rejected}


def budget(rows: Rows) -> dict[str, Any]:
    """Halving against its budget; methods that have none are drawn level."""
    shares, exact = values(rows, "budget"), pick(rows, method="exact")
    speeds = {
        m: [speed([*exact, *pick(rows, method=m, budget=share)], m, "exact") for share in shares]
        for m in methods_of(row for row in rows if row.get("budget") is not None)
    }
    panels = measures(rows, "budget", "budget, share of n d", x_log=True)
    return {"panels": panels, "shares": shares, "speeds": speeds, "first": rows[0]}


def race(rows: Rows) -> dict[str, Any]:
    """A panel for every selector: the estimates of the exact winner and its rivals as rows are read."""
    panels = []
    for method in methods_of(rows):
        own = pick(rows, method=method)
        found = "finds the winner" if own[0]["rank"] == 1 else f"takes number {own[0]['rank']} for it"
        title = f"{label(method)}: {found}, reads {own[0]['share_read']:.0%} of X"
        runners = []
        for column, name in RUNNERS.items():
            known = [(row["rows_read"], row[column]) for row in own if row[column] is not None]
            runners.append(Line(name, [x for x, _ in known], [y for _, y in known]))
        panels.append(Panel(title, "rows read", runners, x_log=True, y_shown=(1,)))
    return {"panels": panels, "first": rows[0]}


def sound(rows: Rows) -> dict[str, Any]:
    """Errors and times of each method."""
    methods = per_method(rows, "error", "error_square", "seconds", "share_read", "same_atoms")
    pieces = sum(row["count"] for row in pick(rows, method="exact"))
    return {"pieces": pieces, "atoms": rows[0]["atoms"], "methods": methods}


def text(rows: Rows) -> Found:
    """Accuracy and time of each method on each collection."""
    found = []
    for name in dict.fromkeys(row["collection"] for row in rows):
        here = pick(rows, collection=name)
        methods = per_method(here, "accuracy", "accuracy_all", "seconds", "share_read", "k")
        for one in methods:
            hits = [row["accuracy"] for row in pick(here, method=one["method"])]
            one["spread"] = float(np.std(hits))
        splits = len(values(here, "split"))
        found.append({"collection": name, "first": here[0], "splits": splits, "methods": methods})
    return found


SUMMARIES: Mapping[str, Callable[[Rows], Any]] = {
    "race": race,
    "omp": against_k,
    "cosamp": against_k,
    "budget": budget,
    "scaling": scaling,
    "fw": frank_wolfe,
    "audio": sound,
    "text": text,
}
