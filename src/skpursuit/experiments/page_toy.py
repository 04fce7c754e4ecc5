"""Sections of the report on toy signals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .methods import label
from .paper import CLAIMS
from .parts import Cell, Content, Figure, Note, Panel, Section, Series, Table
from .store import Row
from .summary import flat, lines, mean, methods_of, pick, places, ratios, shared, speed

BANDS = "Means over trials (times: medians); bands from the lowest to the highest."
LOST = 0.01  # of F, and of exact's atoms, beyond which a loss is marked


def omp_section(rows: Sequence[Row]) -> Section:
    """Against k, for every size."""
    text = [CLAIMS["omp"], "Here: k iterations, N_s 2% of the rows, budgets 20% of n d, noise at 3 dB."]
    return Section("Orthogonal matching pursuit", text, _against_k(rows, "OMP"))


def cosamp_section(rows: Sequence[Row]) -> Section:
    """Against k, for every size, with both stop rules of exact."""
    text = [
        CLAIMS["cosamp"],
        "The paper lets exact run k iterations and stops the others at 1.001 times its residual. Exact "
        "comes as "
        "near as that long before, so that protocol favours the others. Lines called `k iterations` follow "
        "it; all "
        "others, the other exact ones included, stop by the 1.001 rule. Only ratios between those are "
        "speed-ups.",
    ]
    return Section("CoSaMP", text, _against_k(rows, "CoSaMP"))


def _against_k(rows: Sequence[Row], name: str) -> list[Figure | Table | Note]:
    items: list[Any] = []
    for n, d in sizes(rows):
        here = pick(rows, n=n, d=d)
        title = f"{name}, X is {n} x {d}"
        items.append(Figure(title, BANDS, _panels(here, "k", "k, atoms")))
        items.append(comparison(here, f"{title}: all k together"))
    return items


def sizes(rows: Sequence[Row]) -> list[tuple[Any, Any]]:
    """The shapes of X that occur."""
    return sorted({(row["n"], row["d"]) for row in rows})


def _panels(rows: Sequence[Row], x: str, x_label: str, **axes: Any) -> tuple[Panel, ...]:
    return (
        Panel("Recovery (F-measure)", x_label, lines(rows, x, "f_measure"), y_include=(0, 1), **axes),
        Panel("Time (seconds)", x_label, lines(rows, x, "seconds"), y_log=True, **axes),
        Panel(
            "Share of X read in an iteration (%)",
            x_label,
            lines(rows, x, "share_read", 100),
            y_include=(0,),
            **axes,
        ),
    )


def comparison(rows: Sequence[Row], title: str, caption: str = "") -> Table:
    """One line per method, against both exact baselines."""
    rows = shared(rows)
    blas, accumulated = pick(rows, method="exact"), pick(rows, method="rows")
    return Table(
        title,
        caption
        or "times faster: medians over problems, against the same problem solved by exact selection. "
        "Atoms: the "
        "share of those of exact that are found as well. Only problems that all methods have finished "
        "count (successive reject: some).",
        (
            "Method",
            "F-measure",
            "atoms of exact (%)",
            "than BLAS",
            "than accumulated rows",
            "X read (%)",
            "iterations",
        ),
        [_compared(method, rows, blas, accumulated) for method in methods_of(rows)],
        (("", 1), ("recovery", 2), ("times faster", 2), ("", 2)),
    )


def _compared(
    method: str, rows: Sequence[Row], blas: Sequence[Row], accumulated: Sequence[Row]
) -> list[Content | Cell]:
    own = pick(rows, method=method)
    f, same, read = mean(own, "f_measure"), mean(own, "same_atoms"), mean(own, "share_read")
    baseline = [row for row in blas if any(_same_problem(row, one) for one in own)]
    reference = mean(baseline, "f_measure")
    lost = f is not None and reference is not None and f < reference - LOST
    return [
        label(method),
        Cell(f, "bad" if lost else "", f"exact has {reference:.3f} on these problems" if lost else ""),
        None if same is None else 100 * same,
        judged(speed(own, blas)),
        judged(speed(own, accumulated)),
        None if read is None else 100 * read,
        mean(own, "iterations"),
    ]


def _same_problem(one: Row, other: Row) -> bool:
    return all(one[name] == other[name] for name in ("n", "d", "k", "trial"))


def judged(ratio: float | None) -> Cell:
    """A speed, marked where it is better or worse than the baseline by more than a tenth."""
    if ratio is None:
        return Cell(None)
    tone = "good" if ratio > 1.1 else "bad" if ratio < 0.9 else ""
    return Cell(ratio, tone, {"good": "faster", "bad": "slower"}.get(tone, ""))


def fw_section(rows: Sequence[Row]) -> Section:
    """Against the setting of the inner computation."""
    swept = pick(rows, method=lambda m: m in ("greedy", "uniform", "importance", "halving", "halving-random"))
    placed: list[Row] = [{**row, "setting": _setting(row)} for row in swept]
    swept_methods = {row["method"] for row in swept}
    alone = [m for m in methods_of(rows) if m not in swept_methods and m != "reject"]
    x_label = "N_s in rows; the budget is N_s / 100 of n d"
    panels = _swept_panels(placed, "setting", x_label, flat_rows=rows, alone=alone)
    items: list[Any] = [Figure("Frank-Wolfe against the precision of the selection", BANDS, panels)]
    default = [row for row in rows if row.get("budget") in (None, 0.2) and row.get("stability") in (None, 20)]
    items.append(comparison(default, "Frank-Wolfe at N_s = 20 rows and a budget of 0.2"))
    if (note := _reject_note(rows)) is not None:
        items.append(note)
    text = [
        CLAIMS["fw"],
        "Here: the l1 ball of radius ‖w*‖_1, as the unit ball of the paper cannot contain its w*; exact "
        "line search; "
        "a fixed number of iterations. With noise at 3 dB the minimiser on that ball has many small "
        "coefficients "
        "that are not in w*, so that F is low for every method, exact included: what counts is the "
        "share of exact's atoms.",
    ]
    return Section("Frank-Wolfe", text, items)


def _swept_panels(
    rows: Sequence[Row], x: str, x_label: str, flat_rows: Sequence[Row], alone: Sequence[str]
) -> list[Panel]:
    """Recovery, time and reading against a setting; methods that have none are drawn level."""
    xs = places(rows, x)

    def series(y: str, scale: float = 1.0) -> list[Series]:
        return flat(flat_rows, xs, y, alone, scale) + lines(rows, x, y, scale)

    return [
        Panel("Recovery (F-measure)", x_label, series("f_measure"), x_log=True, y_include=(0, 1)),
        Panel("Time (seconds)", x_label, series("seconds"), x_log=True, y_log=True),
        Panel("X read in an iteration (%)", x_label, series("share_read", 100), x_log=True, y_include=(0,)),
    ]


def _setting(row: Row) -> float:
    return float(row["stability"] if row.get("stability") is not None else 100 * float(row["budget"]))  # type: ignore[arg-type]


def _reject_note(rows: Sequence[Row]) -> Note | None:
    own = pick(rows, method="reject")
    if not own:
        return None
    found = speed(own, pick(rows, method="exact"))
    pace = "" if found is None else f"; it is {1 / found:.1f} times slower than BLAS all the same"
    share = 100 * float(own[0]["budget"])  # type: ignore[arg-type]
    return Note(
        f"Successive reject pulls single entries. At the paper's budgets one run needs 10^10 of them and "
        "more, so it is run "
        f"at {share:g}% of n d on {len(own)} problem(s) only{pace}."
    )


def budget_section(rows: Sequence[Row]) -> Section:
    """Halving against its budget."""
    swept = pick(rows, method=lambda m: str(m).startswith("halving"))
    xs = places(swept, "budget")
    panels = _swept_panels(
        swept,
        "budget",
        "budget, share of n d",
        flat_rows=rows,
        alone=[m for m in methods_of(rows) if not m.startswith("halving")],
    )
    n, d = sizes(rows)[0]
    title = f"CoSaMP with halving, X is {n} x {d}, k = {rows[0]['k']}"
    table = Table(
        "Times faster than exact CoSaMP by BLAS, by budget",
        "Medians over problems, the same stop rule for all.",
        ("Method", *(f"{x:g}" for x in xs)),
        [
            [
                label(m),
                *(judged(speed(pick(swept, method=m, budget=x), pick(rows, method="exact"))) for x in xs),
            ]
            for m in methods_of(swept)
        ],
    )
    text = [
        CLAIMS["budget"],
        "Here halving scores its last 1/16 of the columns exactly, unless it says `to the last round`, as "
        "in the paper.",
    ]
    return Section("The budget of halving", text, [Figure(title, BANDS, panels), table])


def scaling_section(rows: Sequence[Row]) -> Section:
    """Against d, then against n."""
    items: list[Any] = []
    for k in sorted({row["k"] for row in rows}):  # type: ignore[type-var]
        here = pick(rows, k=k)
        x, fixed = ("d", "n") if len({row["d"] for row in here}) > 1 else ("n", "d")
        title = f"CoSaMP against {x}, with {fixed} = {here[0][fixed]} and k = {k}"
        items.append(Figure(title, BANDS, _panels(here, x, x)))
        items.append(comparison(here, f"{title}: all sizes together"))
    return Section("Scaling", [CLAIMS["scaling"]], items)


def losses(name: str, rows: Sequence[Row]) -> list[list[Content | Cell]]:
    """Methods that are slower than exact by BLAS on some problems: how often, and how much at worst."""
    blas = pick(rows, method="exact")
    found: list[list[Content | Cell]] = []
    for method in methods_of(rows):
        speeds = [] if method == "exact" else ratios(pick(rows, method=method), blas)
        slower = [ratio for ratio in speeds if ratio < 0.95]
        if slower:
            share = f"{len(slower)} of {len(speeds)}"
            found.append(
                [f"{name}: {label(method)}", share, Cell(min(slower), "bad", "times as fast as BLAS")]
            )
    return found
