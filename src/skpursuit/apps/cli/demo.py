"""``skpursuit demo``: one generated problem, fitted with every selector, as a table and a picture.

The selectors are timed as in the studies, on this machine and for any size of X, and compared with exact
selection by BLAS.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from skpursuit.apps.cli.info import total_memory
from skpursuit.apps.cli.program import InputError, Output, check_outputs, command, format_table, write_files
from skpursuit.apps.cli.progress_bar import ProgressBar

DEMO_SELECTORS = (
    "exact", "auto", "certified", "quantized", "halving", "halving-random", "greedy", "importance", "uniform",
    "gram", "reject",
)  # fmt: skip
REJECT_BUDGET = 0.005  # at its default of 0.2 it alone would take minutes
TIMING_REPEATS = 3
MAX_REPEAT_SECONDS = 2.0  # seconds: a run of more is not repeated
LEGEND = """
vs exact: how many times faster than exact selection by BLAS. X read: bytes a step, share of X.
same atoms: those that exact finds too. rho: least share of the best score in a step. F: F-measure.
reject: budget 0.5%.
"""
NEXT = """\
What to try next:
  skpursuit fit FILE.csv --target COLUMN              a sparse model of your table
  skpursuit reproduce all && skpursuit report results the experiments of the paper, as a page
  python -c "import skpursuit; help(skpursuit.minimize)"
"""


def time_selectors(
    n: int, d: int, k: int, seed: int, progress: Callable[[str, float], Any]
) -> list[dict[str, Any]]:
    """Fit one synthetic problem with each selector, in turn; one row for each, with the best of its times."""
    from threadpoolctl import threadpool_limits

    from skpursuit import OMP, audit
    from skpursuit.apps.studies.methods import make_selector
    from skpursuit.apps.studies.synthetic import Measurement, measure, toy

    solver, runs = OMP(n_nonzero_coefs=k), dict[str, Measurement]()
    with threadpool_limits(1):
        for turn, name in enumerate(DEMO_SELECTORS * TIMING_REPEATS):
            if name not in runs or runs[name].row["seconds"] <= MAX_REPEAT_SECONDS:
                progress(f"fitting with {name}", turn / (TIMING_REPEATS * len(DEMO_SELECTORS)))
                selector = make_selector(name, budget=REJECT_BUDGET if name == "reject" else 0.2)
                atoms = runs["exact"].atoms if "exact" in runs else None
                found = measure((n, d, k, seed), solver, selector, atoms)
                runs[name] = min(runs.get(name, found), found, key=lambda one: one.row["seconds"])
    return [
        {
            "selector": name,
            "ratio": runs["exact"].row["seconds"] / max(run.row["seconds"], 1e-9),
            **{column: run.row[column] for column in ("seconds", "share_read", "f_measure")},
            "same_atoms": round(run.row["same_atoms"] * len(runs["exact"].atoms)),
            "rho_min": audit(*toy((n, d, k, seed))[:2], run.result).rho_min,
            "certificate": run.certificate,
        }
        for name, run in runs.items()
    ]


def draw_timings(timings: list[dict[str, Any]], k: int) -> bytes:
    """Draw speed, share of X read and atoms as bars, one for each selector; return the PNG."""
    from matplotlib.figure import Figure

    names = [timing["selector"] for timing in timings]
    figure = Figure(figsize=(12, 0.42 * len(names) + 1.2), layout="constrained")
    panels = (
        ("times faster than exact (BLAS)", "{:.2g}x", [timing["ratio"] for timing in timings]),
        ("share of X read in a step (%)", "{:.3g}%", [100 * timing["share_read"] for timing in timings]),
        (f"atoms equal to exact, of {k}", "{}", [timing["same_atoms"] for timing in timings]),
    )
    for axes, (title, spelling, values) in zip(figure.subplots(1, 3, sharey=True), panels):
        bars = axes.barh(names, values, color=["#1d2329" if name == "exact" else "#0072b2" for name in names])
        axes.bar_label(bars, [spelling.format(value) for value in values], padding=3, fontsize=9)
        axes.set_title(title, fontsize=11)
        axes.margins(x=0.18)
    figure.axes[0].set_xscale("log")
    figure.axes[0].invert_yaxis()
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
@click.option(
    "--size", "shape", nargs=2, type=click.IntRange(min=2), default=(2000, 4000), metavar="N D",
    help="Rows and columns of X.",
)  # fmt: skip
@click.option("-k", "k", type=click.IntRange(min=1), default=50, help="Atoms to find.")
@click.option("--seed", type=click.IntRange(min=0), default=0, help="Seed of the problem.")
@click.option(
    "--png", type=click.Path(path_type=Path, dir_okay=False), default=Path("skpursuit-demo.png"),
    help="Where the picture goes.",
)  # fmt: skip
@click.option("--no-png", is_flag=True, help="Draw no picture.")
def demo(shape: tuple[int, int], k: int, seed: int, png: Path, no_png: bool, out: Output) -> None:
    """Find the atoms of a noisy synthetic signal with every selector, and compare."""
    n, d = shape
    if k > d:
        raise InputError(f"-k {k} is more than the {d} columns of X; give a smaller -k or a larger --size")
    check_outputs([], {"--png": None if no_png else png})
    size = 8 * n * d
    message = f"--size {n} {d}: X takes {size / 2**30:.3g} GiB, more than the memory; give a smaller size"
    if size > (total_memory() or size):
        raise InputError(message)
    try:
        with ProgressBar(out) as bar:
            kind = f"X is {n} x {d} (unit-norm Gaussian columns), noise at 3 dB, one thread"
            out.echo(f"OMP, {k} atoms, {kind}\n")
            timings = time_selectors(n, d, k, seed, bar)
    except MemoryError:
        raise InputError(message) from None
    cells = "{selector}|{seconds:.3f}|{ratio:.1f}x|{share_read:.1%}|{same_atoms}/{k}|{rho_min:.2f}"
    cells += "|{f_measure:.2f}|{certificate}"
    rows = [cells.format(**timing, k=k).split("|") for timing in timings]
    heads = ["selector", "seconds", "vs exact", "X read", "same atoms", "rho", "F", "certificate"]
    out.echo(format_table(heads, rows))
    out.echo(LEGEND)
    out.echo_json(timings)
    if not no_png:
        write_files([(png, "--png", draw_timings(timings, k))])
        out.echo(f"Picture: {png}\n")
    out.echo(NEXT)
