"""``skpursuit demo`` and ``skpursuit bench``: one toy problem by every selector, and how fast X is read.

Both fit the same generated problem with each selector, as the studies measure it (`experiments.toy`), and
print one row for each beside exact selection by BLAS. The demo draws them and says what to try next; bench
adds how fast this machine reads X, and is for somebody who wonders why a fit is slow.
"""

from __future__ import annotations

import contextlib
import io
import time
import timeit
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from skpursuit.apps.cli.info import total_memory
from skpursuit.apps.cli.program import InputError, Output, check_outputs, command, write_files
from skpursuit.apps.cli.progress_bar import ProgressBar

DEMO_SELECTORS = (
    "exact", "auto", "certified", "sketch", "halving", "halving-random", "greedy", "importance", "uniform",
    "gram", "reject",
)  # fmt: skip
QUICK = ("exact", "auto", "certified", "sketch", "halving", "greedy")
REJECT_BUDGET = 0.005  # at its default of 0.2 it alone would take minutes
TIMING_REPEATS = 3
MAX_REPEAT_SECONDS = 2.0  # seconds: a run of more is not repeated
LEGEND = """
vs exact: how many times faster than exact selection by BLAS. X read: bytes a step, share of X.
same atoms: those that exact finds too. F: F-measure with the true atoms. reject: budget 0.5%.
"""
NEXT = """\
What to try next:
  skpursuit bench                                     the speed of this machine, against BLAS
  skpursuit fit FILE.csv --target COLUMN              a sparse model of a table of yours
  skpursuit reproduce all && skpursuit report results the experiments of the paper, as a page
  python -c "import skpursuit; help(skpursuit.minimize)"
"""


def size_option(default: tuple[int, int], least: int) -> Any:
    """The option ``--size N D``."""
    kind = click.IntRange(min=least)
    shown: dict[str, Any] = {"show_default": True, "metavar": "N D", "help": "Rows and columns of X."}
    return click.option("--size", "shape", nargs=2, type=kind, default=default, **shown)


@contextlib.contextmanager
def enough_memory(n: int, d: int) -> Iterator[None]:
    """Refuse an X that memory cannot hold: at once where that is clear, or when it runs out."""
    size = 8 * n * d
    words = f"--size {n} {d}: X takes {size / 2**30:.3g} GiB, which memory cannot hold; give a smaller size"
    if size > (total_memory() or size):
        raise InputError(words)
    try:
        yield
    except MemoryError:
        raise InputError(words) from None


def time_selectors(
    n: int,
    d: int,
    k: int,
    seed: int,
    progress: Callable[[str, float], Any],
    names: Sequence[str] = DEMO_SELECTORS,
) -> list[dict[str, Any]]:
    """Fit one toy problem with each selector, in turns; one line for each, with the best of its times.

    ``progress`` is told what is being done, and the share of the work that is done.
    """
    from threadpoolctl import threadpool_limits

    from skpursuit import OMP
    from skpursuit.apps.studies.methods import make_selector
    from skpursuit.apps.studies.synthetic import Measurement, measure

    solver, runs = OMP(n_nonzero_coefs=k), dict[str, Measurement]()
    with threadpool_limits(1):
        for turn, name in enumerate([*names] * TIMING_REPEATS):
            if name not in runs or runs[name].row["seconds"] <= MAX_REPEAT_SECONDS:
                progress(f"fitting with {name}", turn / (TIMING_REPEATS * len(names)))
                selector = make_selector(name, budget=REJECT_BUDGET if name == "reject" else 0.2)
                atoms = runs["exact"].atoms if "exact" in runs else None
                found = measure((n, d, k, seed), solver, selector, atoms)
                runs[name] = min(runs.get(name, found), found, key=lambda one: one.row["seconds"])
    base = runs["exact"].row["seconds"]
    return [
        {
            "selector": name,
            "ratio": base / max(run.row["seconds"], 1e-9),
            **{column: run.row[column] for column in ("seconds", "share_read", "f_measure")},
            "same_atoms": round(run.row["same_atoms"] * len(runs["exact"].atoms)),
            "certificate": run.certificate,
        }
        for name, run in runs.items()
    ]


def print_timings(lines: list[dict[str, Any]], k: int, out: Output) -> None:
    """Tell people the lines as a table, and what its columns mean."""
    spelled = "{selector}|{seconds:.3f}|{ratio:.1f}x|{share_read:.1%}|{same_atoms}/{k}|{f_measure:.2f}"
    spelled += "|{certificate}"
    rows = [spelled.format(**line, k=k).split("|") for line in lines]
    out.table(["selector", "seconds", "vs exact", "X read", "same atoms", "F", "certificate"], rows)
    out.echo(LEGEND)


def draw_timings(lines: list[dict[str, Any]], k: int) -> bytes:
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


@command(
    """
    skpursuit demo
    skpursuit demo --size 5000 10000 -k 50 --png demo.png
    skpursuit demo --json > demo.json
    """
)
@size_option((2000, 4000), 2)
@click.option("-k", "k", type=click.IntRange(min=1), default=50, help="Atoms to find.")
@click.option("--seed", type=click.IntRange(min=0), default=0, help="Seed of the problem.")
@click.option(
    "--png", type=click.Path(path_type=Path, dir_okay=False), default=Path("skpursuit-demo.png"),
    show_default=True, help="Where the picture goes.",
)  # fmt: skip
@click.option("--no-png", is_flag=True, help="Draw no picture.")
def demo(shape: tuple[int, int], k: int, seed: int, png: Path, no_png: bool, out: Output) -> None:
    """Find the atoms of a noisy toy signal with every selector, and compare."""
    n, d = shape
    if k > d:
        raise InputError(f"-k {k} is more than the {d} columns of X; give a smaller -k or a larger --size")
    check_outputs([], {"--png": None if no_png else png})
    with enough_memory(n, d), ProgressBar(out) as meter:
        out.echo(f"OMP, {k} atoms, X is {n} x {d} (unit-norm Gaussian columns), noise at 3 dB, one thread\n")
        lines = time_selectors(n, d, k, seed, meter)
    print_timings(lines, k, out)
    out.echo_json(lines)
    if not no_png:
        try:
            write_files([(png, "--png", draw_timings(lines, k))])
            out.echo(f"Picture: {png}\n")
        except ModuleNotFoundError:
            out.echo_error("No picture: matplotlib is not installed; run: pip install 'skpursuit[cli]'")
    out.echo(NEXT)


@command(
    """
    skpursuit bench
    skpursuit bench --size 5000 10000
    skpursuit bench --json
    """
)
@size_option((3000, 6000), 64)
@click.option("-k", "k", type=click.IntRange(min=1, max=64), default=30, help="Atoms.")
def bench(shape: tuple[int, int], k: int, out: Output) -> None:
    """Check the speed of this machine: reading X, and a pursuit by the quickest selectors."""
    n, d = shape
    began = time.perf_counter()
    with enough_memory(n, d), ProgressBar(out) as meter:
        out.echo(f"X is {n} x {d}, float64, {n * d * 8 / 2**20:.0f} MiB; one thread, best of several\n")
        speeds = read_speeds(n, d)
        out.table(["reading", "GB/s"], [[name, f"{value / 1e9:.1f}"] for name, value in speeds.items()])
        lines = time_selectors(n, d, k, 0, meter, QUICK)
    out.echo(f"\nOMP, {k} atoms")
    print_timings(lines, k, out)
    right = [line for line in lines if line["same_atoms"] == lines[0]["same_atoms"]]  # as exact
    best = max(right, key=lambda line: line["ratio"])
    verdict = (
        f"{best['selector']} finds the atoms of exact {best['ratio']:.1f} times as fast as BLAS"
        if best["ratio"] > 1.1
        else "no selector that finds exact's atoms beats BLAS at this size; try a larger --size"
    )
    out.echo(f"Here {verdict}. ({time.perf_counter() - began:.0f} s)")
    out.echo_json({"shape": [n, d], "bytes_per_second": speeds, "pursuits": lines, "verdict": verdict})


def read_speeds(n: int, d: int, rounds: int = 7) -> dict[str, float]:
    """Bytes of X read in a second: by BLAS, by the row kernel, and by that on a fifth of the rows."""
    import numpy as np
    from threadpoolctl import threadpool_limits

    from skpursuit import as_design
    from skpursuit.selectors.greedy import empty_sums

    rng = np.random.default_rng(0)
    X, r = rng.standard_normal((n, d)), rng.standard_normal(n)
    design, some = as_design(X), np.sort(rng.permutation(n)[: n // 5])
    sums = empty_sums(design, r)
    ways: dict[str, tuple[Callable[[], object], int]] = {
        "X^T r by BLAS": (lambda: design.product(r), n),
        "rows accumulated, all": (lambda: design.add_rows(np.arange(n), r, sums), n),
        "rows accumulated, a random fifth": (lambda: design.add_rows(some, r[some], sums), len(some)),
    }
    with threadpool_limits(1):
        best = {name: min(timeit.repeat(work, number=1, repeat=rounds)) for name, (work, _) in ways.items()}
    return {name: rows * d * X.itemsize / best[name] for name, (_, rows) in ways.items()}
