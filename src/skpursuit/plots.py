"""Pictures of a selection: the columns of X as runners in a race for the top entry of X^T r.

A selector takes part when it has a method ``rounds(design, query)``, which yields one triple per round: the
rows read so far (a float where columns read different entries: entries / d), the columns that are still in
the race, and their estimates of X^T r. The last round holds the answer, so that ``find`` can be "exhaust the
rounds, and take the best of the last one" (see ``examples/lucb.py``).
"""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skpursuit._text import write
from skpursuit.data import Design, as_design
from skpursuit.numerics.arrays import Floats
from skpursuit.selectors import Query, Selector, as_selector

PACK, FALLEN, WRONG = "#9aa5b1", "#d9822b", "#a83217"
LEADERS = {"exact winner": "#0b7a4b", "second": "#0072b2", "third": "#8e44ad"}
START = 4  # rows at the left edge
CEILING = 1.75  # in units of the exact top score; early estimates of sampled rows may lie far beyond


@dataclass(frozen=True)
class RaceTrace:
    """How the scores of all columns went during one selection.

    Attributes
    ----------
    rows : ndarray of shape (steps,)
        Rows read.
    scores : ndarray of shape (steps, d)
        NaN where a selector had no estimate of a column.
    dropped_at : ndarray of shape (d,)
        Rows read when a column was dropped; infinity for those that never were.
    rounds : list of (rows read, columns left)
        Where columns were dropped.
    answer : Selection
    """

    rows: Floats
    scores: Floats
    dropped_at: Floats
    rounds: Sequence[tuple[float, int]]
    answer: Any


def trace(selector: Selector, design: Design, query: Query) -> RaceTrace:
    """Follow one selection by a selector that has `rounds`."""
    name = type(selector).__name__
    if selector.rounds is None:
        raise TypeError(f"a race needs columns that compete in rounds; {name} has none (no method `rounds`)")
    again = lambda: replace(query, rng=deepcopy(query.rng))  # noqa: E731 - its random numbers from the start
    record = list(selector.rounds(design, again()))
    if not record:
        raise ValueError(f"{name}.rounds yields no round")
    rows = np.array([used for used, _, _ in record], dtype=np.float64)
    scores = np.full((len(record), design.shape[1]), np.nan)
    for step, (_, cols, estimates) in enumerate(record):
        scores[step, cols] = query.score.of(np.asarray(estimates, dtype=np.float64))
    running = np.isfinite(scores)
    ends = len(record) - running[::-1].argmax(axis=0)  # the round after a column's last one
    fell = np.where(running.any(axis=0), np.append(rows, np.inf)[ends], 0.0)
    counts = [design.shape[1], *running.sum(axis=1).tolist()]
    rounds = [(used, now) for used, before, now in zip(rows.tolist(), counts, counts[1:]) if now < before]
    return RaceTrace(rows, scores, fell, rounds, selector.select(design, again()))


def plot_race(
    X: object,
    r: object,
    selectors: Sequence[str | Selector] = ("greedy", "uniform", "importance", "halving"),
    random_state: int = 0,
) -> Any:
    """Draw how selectors find the top entry of X^T r: the estimates of all columns against the rows read.

    One panel per selector. A grey line is a column; the three with the largest exact entries have colours,
    and dots at the right edge show all exact entries. Columns that are dropped end in a cross. The winner
    carries a star, green if it is the exact one.

    Parameters
    ----------
    X : array-like, sparse array or Design of shape (n, d)
    r : array-like of shape (n,)
        Residual.
    selectors : sequence of str or Selector
        Greedy, Uniform, Importance and SuccessiveHalving, and any selector that has a method
        ``rounds(design, query)``: it yields (rows read, columns left, their estimates) for each round.
    random_state : int
        Seed of the sampled rows.

    Returns
    -------
    matplotlib.figure.Figure
        Draw on it or save it; needs matplotlib (``pip install skpursuit[cli]``).

    Examples
    --------
    >>> from skpursuit import datasets
    >>> from skpursuit.plots import plot_race
    >>> X, y, _ = datasets.make_sparse_signal(300, 100, 3, random_state=0)
    >>> figure = plot_race(X, -y, ["greedy", "halving"])  # doctest: +SKIP
    >>> figure.savefig("race.png")  # doctest: +SKIP
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("plot_race needs matplotlib: pip install 'skpursuit[cli]'") from None
    design, r = as_design(X), np.asarray(r, dtype=np.float64)
    if r.shape != (design.shape[0],):
        raise ValueError(f"r must have shape ({design.shape[0]},), got {r.shape}")
    chosen = [as_selector(selector) for selector in selectors]
    exact = np.abs(design.for_run().product(r))
    height, width = -(-len(chosen) // 2), min(2, len(chosen))
    figure = Figure(figsize=(6.6 * width, 3.9 * height + 0.7), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(height, width, sharex=True, sharey=True, squeeze=False).ravel()
    for axes, selector in zip(panels, chosen):
        course = trace(selector, design.for_run(), Query(r, rng=np.random.default_rng(random_state)))
        _draw(axes, course, exact / (exact.max() or 1.0), exact.max() or 1.0, design.shape)
        write(axes.set_title("", loc="left", fontsize=12, fontweight="bold"), selector.plot_title)
    for axes in panels[len(chosen) :]:
        axes.set_visible(False)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    for axes in panels[max(0, len(chosen) - width) : len(chosen)]:
        axes.set_xlabel("rows read; dots at the right edge: exact values", fontsize=10)
    figure.supylabel("estimate of |X$^T$r|, exact maximum = 1", fontsize=10)
    return figure


def _draw(axes: Any, course: RaceTrace, exact: Floats, unit: float, shape: tuple[int, int]) -> None:
    """One panel, with a cross where a column was dropped and a line for each round."""
    from matplotlib.collections import LineCollection

    order = np.argsort(-exact, kind="stable")
    winner = int(course.answer.columns[0])
    right = winner == order[0]
    paths = {}
    for j, scores in enumerate(course.scores.T):  # (rows, score) until the column is dropped
        run = (course.rows <= course.dropped_at[j]) & np.isfinite(scores)
        paths[j] = np.column_stack([course.rows[run], scores[run] / unit])
    special = {int(j): look for j, look in zip(order[:3], LEADERS.items())}
    if not right:
        special[winner] = ("answer, not exact", WRONG)
    pack = [path for j, path in paths.items() if j not in special]
    axes.add_collection(LineCollection(pack, colors=PACK, linewidths=0.6, alpha=0.3, rasterized=True))
    edge = shape[0] * 1.12
    axes.scatter(np.full(shape[1], edge), exact, s=5, color=PACK, clip_on=False)
    for j, (name, colour) in list(special.items())[::-1]:
        axes.plot(*paths[j].T, color=colour, linewidth=2.0, zorder=4, label=name)
        axes.scatter(edge, exact[j], s=26, color=colour, zorder=5, clip_on=False)
    fallen = np.flatnonzero(np.isfinite(course.dropped_at) & (course.dropped_at > 0))
    ends = [paths[j][-1] for j in fallen.tolist() if len(paths[j])]
    if ends:
        axes.scatter(*np.array(ends).T, marker="x", s=11, linewidths=0.6, color=FALLEN, zorder=3)
    for rows, left in course.rounds:
        axes.axvline(rows, color=FALLEN, linewidth=0.8, linestyle=(0, (2, 3)), alpha=0.8)
        axes.text(rows, CEILING * 0.985, f"{left} left ", color=FALLEN, fontsize=8, ha="right", va="top")
    end = paths[winner][-1:].T  # nothing, if the record does not hold the answer
    axes.plot(*end, marker="*", markersize=17, color=special[winner][1], zorder=7)
    rank = int(np.flatnonzero(order == winner)[0]) + 1
    verdict = "finds the exact winner" if right else f"misses: its winner is really number {rank}"
    share = course.answer.entries_read / (shape[0] * shape[1])
    text = f"{verdict}\nreads {share:.0%} of the entries"
    axes.text(0.02, 0.88, text, color=special[winner][1], transform=axes.transAxes, va="top", zorder=6)
    axes.set(xscale="log", xlim=(START, shape[0] * 1.25), ylim=(0, CEILING))
