"""What ``demo`` and ``bench`` do, without printing: one problem by every selector, and how fast X is read."""

from __future__ import annotations

import contextlib
import io
import timeit
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import skpursuit
from skpursuit.cli.base import Refusal
from skpursuit.cli.system import memory_size
from skpursuit.experiments.methods import make_selector, timed_fit
from skpursuit.selectors.greedy import empty_sums

ALL = (
    "exact", "auto", "certified", "sketch", "halving", "halving-random", "greedy", "importance", "uniform",
    "gram", "reject",
)  # fmt: skip
QUICK = ("exact", "auto", "certified", "sketch", "halving", "greedy")
REJECT_BUDGET = 0.005  # at its default of 0.2 it alone would take minutes
ROUNDS = 3
LONG = 2.0  # seconds: a run of more is not repeated


@contextlib.contextmanager
def enough_memory(n: int, d: int) -> Iterator[None]:
    """Refuse an X that memory cannot hold: at once where that is clear, or when it runs out."""
    size = 8 * n * d
    words = f"--size {n} {d}: X takes {size / 2**30:.3g} GiB, which memory cannot hold; give a smaller size"
    if size > (memory_size() or size):
        raise Refusal(words)
    try:
        yield
    except MemoryError:
        raise Refusal(words) from None


def fit_lines(
    n: int, d: int, k: int, seed: int, progress: Callable[[str, float], Any], names: Sequence[str] = ALL
) -> list[dict[str, Any]]:
    """Fit one toy problem with each selector, in turns; one line for each, with the best of its times.

    ``progress`` is told what is being done, and the share of the work that is done.
    """
    X, y, w = skpursuit.datasets.make_sparse_signal(n, d, k, random_state=seed)
    solver = skpursuit.OMP(n_nonzero_coefs=k)
    fits: dict[str, tuple[Any, float]] = {}
    with threadpool_limits(1):
        for turn, name in enumerate([*names] * ROUNDS):
            if name not in fits or fits[name][1] <= LONG:
                progress(f"fitting with {name}", turn / (ROUNDS * len(names)))
                selector = make_selector(name, budget=REJECT_BUDGET if name == "reject" else 0.2)
                found = timed_fit(X, y, solver, selector, seed=seed)
                fits[name] = min(fits.get(name, found), found, key=lambda one: one[1])
    exact, base = fits["exact"]
    return [
        {
            "selector": name,
            "seconds": seconds,
            "ratio": base / max(seconds, 1e-9),
            "share_read": result.bytes_read / (result.n_iter * X.nbytes),
            "same_atoms": int(np.isin(result.support, exact.support).sum()),
            "f_measure": skpursuit.metrics.f_measure(w, result.coef),
            "certificate": result.history[-1].certificate,
        }
        for name, (result, seconds) in fits.items()
    ]


def draw(lines: list[dict[str, Any]], k: int) -> bytes:
    """Draw the lines as bars (speed, share of X read, atoms) and return the PNG."""
    from matplotlib.figure import Figure

    names = [line["selector"] for line in lines]
    panels: tuple[tuple[str, list[Any], str], ...] = (
        ("times faster than exact (BLAS)", [line["ratio"] for line in lines], "{:.2g}x"),
        ("share of X read in a step (%)", [100 * line["share_read"] for line in lines], "{:.3g}%"),
        (f"atoms equal to exact, of {k}", [line["same_atoms"] for line in lines], "{}"),
    )
    figure = Figure(figsize=(12, 0.42 * len(lines) + 1.6), layout="constrained")
    for axes, (title, values, spelling) in zip(figure.subplots(1, 3, sharey=True), panels):
        bars = axes.barh(names, values, color=["#1d2329" if name == "exact" else "#0072b2" for name in names])
        axes.bar_label(bars, [spelling.format(value) for value in values], padding=3, fontsize=9)
        axes.set_title(title, fontsize=11)
        axes.spines[["top", "right"]].set_visible(False)
        axes.margins(x=0.18)
    first = figure.axes[0]
    first.set_xscale("log")
    first.xaxis.set_major_formatter("{x:g}")
    first.axvline(1.0, color="#a83217", linewidth=1)
    first.invert_yaxis()
    figure.suptitle("One sparse signal, one pursuit, many ways to find the atoms", fontsize=13)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110)
    return buffer.getvalue()


def rates(n: int, d: int, rounds: int = 7) -> dict[str, float]:
    """Bytes of X read in a second: by BLAS, by the row kernel, and by that on a fifth of the rows."""
    rng = np.random.default_rng(0)
    X, r = rng.standard_normal((n, d)), rng.standard_normal(n)
    design = skpursuit.as_design(X)
    some = np.sort(rng.permutation(n)[: n // 5])
    sums = empty_sums(design, r)
    ways: dict[str, tuple[Callable[[], object], int]] = {
        "X^T r by BLAS": (lambda: design.product(r), n),
        "rows accumulated, all": (lambda: design.add_rows(np.arange(n), r, sums), n),
        "rows accumulated, a random fifth": (lambda: design.add_rows(some, r[some], sums), len(some)),
    }
    with threadpool_limits(1):
        best = {name: min(timeit.repeat(work, number=1, repeat=rounds)) for name, (work, _) in ways.items()}
    return {name: rows * d * X.itemsize / best[name] for name, (_, rows) in ways.items()}
