"""What ``demo`` and ``bench`` do, without printing: one problem by every selector, and how fast X is read."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from skpursuit.datasets import make_sparse_signal
from skpursuit.design import as_design
from skpursuit.loop import minimize
from skpursuit.metrics import f_measure
from skpursuit.selectors import NAMES, Selector
from skpursuit.selectors.greedy import empty_sums
from skpursuit.solvers.pursuit import OMP
from skpursuit.state import Result

SHOWN = (
    "exact",
    "auto",
    "certified",
    "sketch",
    "halving",
    "halving-random",
    "greedy",
    "importance",
    "uniform",
    "gram",
    "reject",
)
REJECT_BUDGET = 0.005  # at its default of 0.2 it alone would take minutes
ROUNDS = 3


@dataclass(frozen=True)
class Line:
    """One selector on the demo problem."""

    selector: str
    seconds: float
    ratio: float
    share_read: float
    same_atoms: int
    f_measure: float
    certificate: str


def choices(names: Sequence[str]) -> dict[str, str | Selector]:
    """The selectors of those names that there are, in their order."""
    found: dict[str, str | Selector] = {name: name for name in names if name in NAMES}
    if "reject" in found:
        from skpursuit.selectors.reject import SuccessiveReject

        found["reject"] = SuccessiveReject(REJECT_BUDGET)
    return found


def fit_lines(
    n: int,
    d: int,
    k: int,
    seed: int = 0,
    progress: Callable[[str], Any] | None = None,
    names: Sequence[str] = SHOWN,
) -> list[Line]:
    """Fit one toy problem with each selector, in turns, and keep the best time of each."""
    X, y, w = make_sparse_signal(n, d, k, random_state=seed)
    fits = _best_fits(X, y, k, seed, choices(names), progress or (lambda name: None))
    base, exact = fits["exact"]
    return [
        Line(
            selector=name,
            seconds=seconds,
            ratio=base / seconds,
            share_read=result.bytes_read / (result.n_iter * X.nbytes),
            same_atoms=int(np.isin(result.support, exact.support).sum()),
            f_measure=f_measure(w, result.coef),
            certificate=result.history[-1].certificate,
        )
        for name, (seconds, result) in fits.items()
    ]


def _best_fits(
    X: np.ndarray,
    y: np.ndarray,
    k: int,
    seed: int,
    selectors: dict[str, str | Selector],
    progress: Callable[[str], Any],
) -> dict[str, tuple[float, Result]]:
    fits: dict[str, tuple[float, Result]] = {}
    with threadpool_limits(1):
        for name, selector in selectors.items():
            progress(name)
            minimize(X, y, OMP(n_nonzero_coefs=1), selector, random_state=seed)  # compiles
        for turn in range(ROUNDS):
            for name, selector in selectors.items():
                if turn and fits[name][0] > 2.0:
                    continue
                progress(name)
                began = time.perf_counter()
                result = minimize(X, y, OMP(n_nonzero_coefs=k), selector, random_state=seed)
                seconds = time.perf_counter() - began
                if not turn or seconds < fits[name][0]:
                    fits[name] = (seconds, result)
    return fits


def draw(lines: list[Line], k: int) -> bytes:
    """Draw the lines as bars (speed, share of X read, atoms) and return the PNG."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    names = [line.selector for line in lines]
    panels: tuple[tuple[str, list[Any], str, bool], ...] = (
        ("times faster than exact (BLAS)", [line.ratio for line in lines], "{:.2g}x", True),
        ("share of X read in a step (%)", [100 * line.share_read for line in lines], "{:.3g}%", False),
        (f"atoms equal to exact, of {k}", [line.same_atoms for line in lines], "{}", False),
    )
    figure = Figure(figsize=(12, 0.42 * len(lines) + 1.6), layout="constrained")
    FigureCanvasAgg(figure)
    for axes, (title, values, spelling, log) in zip(figure.subplots(1, 3, sharey=True), panels):
        colours = ["#1d2329" if name == "exact" else "#0072b2" for name in names]
        bars = axes.barh(names, values, color=colours)
        axes.bar_label(bars, [spelling.format(value) for value in values], padding=3, fontsize=9)
        axes.set_title(title, fontsize=11)
        axes.spines[["top", "right"]].set_visible(False)
        axes.margins(x=0.18)
        if log:
            axes.set_xscale("log")
            axes.axvline(1.0, color="#a83217", linewidth=1)
    figure.axes[0].invert_yaxis()
    figure.suptitle("One sparse signal, one pursuit, many ways to find the atoms", fontsize=13)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110)
    return buffer.getvalue()


QUICK = ("exact", "auto", "certified", "sketch", "halving", "greedy")


def rates(n: int, d: int, rounds: int = 7) -> dict[str, float]:
    """Bytes of X read in a second: by BLAS, by the row kernel, and by that on a fifth of the rows."""
    rng = np.random.default_rng(0)
    X, r = rng.standard_normal((n, d)), rng.standard_normal(n)
    design = as_design(X)
    rows = np.arange(n, dtype=np.intp)
    some = np.sort(rng.permutation(n)[: n // 5]).astype(np.intp)
    sums = empty_sums(design, r)
    ways: dict[str, tuple[Callable[[], object], int]] = {
        "X^T r by BLAS": (lambda: design.correlate(r), X.nbytes),
        "rows accumulated, all": (lambda: design.accumulate(rows, r, sums), X.nbytes),
        "rows accumulated, a random fifth": (
            lambda: design.accumulate(some, r[some], sums),
            len(some) * d * X.itemsize,
        ),
    }
    best = dict.fromkeys(ways, np.inf)
    with threadpool_limits(1):
        for _ in range(rounds):
            for name, (work, _) in ways.items():
                began = time.perf_counter()
                work()
                best[name] = min(best[name], time.perf_counter() - began)
    return {name: size / best[name] for name, (_, size) in ways.items()}


def pursuits(n: int, d: int, k: int) -> list[Line]:
    """The pursuit of the demo by the quickest selectors."""
    return fit_lines(n, d, k, names=QUICK)
