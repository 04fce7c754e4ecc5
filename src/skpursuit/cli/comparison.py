"""What ``demo`` and ``bench`` do, without printing: one problem by every selector, and how fast X is read."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import skpursuit
from skpursuit.datasets import make_sparse_signal
from skpursuit.metrics import f_measure

SHOWN = (
    "exact", "auto", "certified", "sketch", "halving", "halving-random", "greedy", "importance", "uniform",
    "gram", "reject",
)  # fmt: skip
QUICK = ("exact", "auto", "certified", "sketch", "halving", "greedy")
REJECT_BUDGET = 0.005  # at its default of 0.2 it alone would take minutes
ROUNDS = 3
SLOW = 2.0  # seconds, from which one round is enough


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


def fit_lines(
    n: int, d: int, k: int, seed: int, names: Sequence[str], progress: Callable[[str, float], Any]
) -> list[Line]:
    """Fit one toy problem with each selector, in turns, and keep the best time of each."""
    X, y, w = make_sparse_signal(n, d, k, random_state=seed)
    fits: dict[str, tuple[float, Any]] = {}
    with threadpool_limits(1):
        for turn in range(1 + ROUNDS):  # the first finds one atom, and compiles
            for i, name in enumerate(names):
                if turn > 1 and fits[name][0] > SLOW:
                    continue
                progress(f"fitting with {name}", (turn + i / len(names)) / (1 + ROUNDS))
                selector = skpursuit.SuccessiveReject(REJECT_BUDGET) if name == "reject" else name
                solver = skpursuit.OMP(n_nonzero_coefs=k if turn else 1)
                began = time.perf_counter()
                result = skpursuit.minimize(X, y, solver, selector, random_state=seed)
                seconds = time.perf_counter() - began
                if turn == 1 or (turn and seconds < fits[name][0]):
                    fits[name] = (seconds, result)
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


def draw(lines: list[Line], k: int) -> bytes:
    """Draw the lines as bars (speed, share of X read, atoms) and return the PNG."""
    from matplotlib.figure import Figure

    names = [line.selector for line in lines]
    panels: tuple[tuple[str, list[Any], str], ...] = (
        ("times faster than exact (BLAS)", [line.ratio for line in lines], "{:.2g}x"),
        ("share of X read in a step (%)", [100 * line.share_read for line in lines], "{:.3g}%"),
        (f"atoms equal to exact, of {k}", [line.same_atoms for line in lines], "{}"),
    )
    figure = Figure(figsize=(12, 0.42 * len(lines) + 1.6), layout="constrained")
    for axes, (title, values, spelling) in zip(figure.subplots(1, 3, sharey=True), panels):
        bars = axes.barh(names, values, color=["#1d2329" if name == "exact" else "#0072b2" for name in names])
        axes.bar_label(bars, [spelling.format(value) for value in values], padding=3, fontsize=9)
        axes.set_title(title, fontsize=11)
        axes.spines[["top", "right"]].set_visible(False)
        axes.margins(x=0.18)
    figure.axes[0].set_xscale("log")
    figure.axes[0].axvline(1.0, color="#a83217", linewidth=1)
    figure.axes[0].invert_yaxis()
    figure.suptitle("One sparse signal, one pursuit, many ways to find the atoms", fontsize=13)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110)
    return buffer.getvalue()


def rates(n: int, d: int, rounds: int = 7) -> dict[str, float]:
    """Bytes of X read in a second: by BLAS, all of its rows and a random fifth of them, and by a copy."""
    rng = np.random.default_rng(0)
    X, r = rng.standard_normal((n, d)), rng.standard_normal(n)
    some = np.sort(rng.permutation(n)[: n // 5])
    target = np.empty_like(X)
    ways: dict[str, tuple[Callable[[], object], int]] = {
        "X^T r by BLAS": (lambda: r @ X, X.nbytes),
        "X^T r by BLAS, a random fifth": (lambda: r[some] @ X[some], X.nbytes * len(some) // n),
        "X copied": (lambda: np.copyto(target, X), X.nbytes),
    }
    best = dict.fromkeys(ways, np.inf)
    with threadpool_limits(1):
        for _ in range(rounds):
            for name, (work, _) in ways.items():
                began = time.perf_counter()
                work()
                best[name] = min(best[name], time.perf_counter() - began)
    return {name: size / best[name] for name, (_, size) in ways.items()}
