"""The page of results: the rows of a folder, checked, and shown by a template.

The template ``study.html`` says what is on the page and in which order; it takes its numbers from the
functions of `summary` and its figures from the panels that are made here.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from skpursuit.pages import render

from . import figures, summary
from .figures import Panel
from .loaders import DataError
from .methods import DECLARED, label
from .results import Results, ResultsError, Row, check_rows, read_results
from .studies import STUDIES, columns_of
from .summary import Line, lines, methods_of, pick

RUNNERS = {"winner": "exact winner", "second": "second", "third": "third", "others": "best of the others"}
Rows = Sequence[Row]


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
    for name in STUDIES:
        results, path = read_results(folder, name), folder / f"{name}.jsonl"
        if results is None or not results.cells:
            continue
        if results.columns != tuple(columns_of(name)):
            other = "delete the file, or name another folder"
            raise ResultsError(path, "these are not results of this study", other)
        for key, example in DECLARED[name].get("needs", {}).items():
            if not isinstance(results.settings.get(key), type(example)):
                problem = f"its settings do not say {key!r}"
                raise ResultsError(path, problem, "use another folder, or delete the file")
        check_rows(path, results.rows, columns_of(name))
        found[name] = results
    if not found:
        raise DataError(folder, "there are no results in it", remedy)
    return found


def render_page(folder: str | Path) -> str:
    """Return the page of the results in a folder as one HTML document."""
    results = read_folder(Path(folder))
    sizes = {str(one.settings["sizes"]) for one in results.values() if "sizes" in one.settings}
    found = {name: one.rows for name, one in results.items()}
    return render(
        "study.html",
        title="Sparse selection by reading a fraction of the data",
        sizes=sizes.pop() if len(sizes) == 1 else "mixed",
        results=results,
        claims=summary.judged_claims(found),
        machines=list({str(made): made for one in results.values() for made in one.about}.values()),
        summary=summary,
        figures=figures,
        label=label,
        measures=measures,
        settings_panels=settings_panels,
        race_panels=race_panels,
    )


def measures(rows: Rows, x: str, x_label: str, x_log: bool = False) -> list[Panel]:
    """Recovery, time and reading against x."""
    return [
        Panel("Recovery (F-measure)", x_label, lines(rows, x, "f_measure"), x_log, y_shown=(0, 1)),
        Panel("Time (seconds)", x_label, lines(rows, x, "seconds"), x_log, y_log=True),
        Panel("X read in an iteration (%)", x_label, lines(rows, x, "share_read", 100), x_log, y_shown=(0,)),
    ]


def settings_panels(rows: Rows) -> list[Panel]:
    """Frank-Wolfe against the setting of its selection; methods with one setting alone are drawn level."""
    placed = []
    for method in methods_of(rows):
        own = pick(rows, method=method)
        places = [row["stability"] if row["budget"] is None else 100 * row["budget"] for row in own]
        level = len(set(places)) == 1
        placed += [{**row, "setting": None if level else place} for row, place in zip(own, places)]
    drawn = [row for row in placed if row["method"] != "reject"]
    return measures(drawn, "setting", "N_s in rows; the budget is N_s / 100 of n d", x_log=True)


def race_panels(rows: Rows) -> list[Panel]:
    """A panel for every selector: the estimates of the exact winner and its rivals as rows are read."""
    panels = []
    for method in methods_of(rows):
        own = pick(rows, method=method)
        found = "finds the winner" if own[0]["rank"] == 1 else f"takes number {own[0]['rank']} for it"
        title = f"{label(method)}: {found}, reads {own[0]['read']:.0%} of X"
        runners = []
        for column, name in RUNNERS.items():
            known = [(row["rows_read"], row[column]) for row in own if row[column] is not None]
            runners.append(Line(name, [x for x, _ in known], [y for _, y in known]))
        panels.append(Panel(title, "rows read", runners, x_log=True, y_shown=(1,)))
    return panels
