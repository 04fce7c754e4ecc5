"""``skpursuit demo`` and ``skpursuit bench``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from skpursuit.cli.base import Meter, Output, Refusal, check_outputs, command, write_all

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
        raise Refusal(f"-k {k} is more than the {d} columns of X; give a smaller -k or a larger --size")
    check_outputs([], {"--png": None if no_png else png})
    from skpursuit.cli import comparison

    with comparison.enough_memory(n, d), Meter(out) as meter:
        out.say(f"OMP, {k} atoms, X is {n} x {d} (unit-norm Gaussian columns), noise at 3 dB, one thread\n")
        lines = comparison.fit_lines(n, d, k, seed, meter)
    spelled = "{selector}|{seconds:.3f}|{ratio:.1f}x|{share_read:.1%}|{same_atoms}/{k}|{f_measure:.2f}"
    spelled += "|{certificate}"
    rows = [spelled.format(**line, k=k).split("|") for line in lines]
    out.table(["selector", "seconds", "vs exact", "X read", "same atoms", "F", "certificate"], rows)
    out.say(
        "\nvs exact: how many times faster than exact selection by BLAS. X read: bytes a step, share of X.\n"
        "same atoms: those that exact finds too. F: F-measure with the true atoms. reject: budget 0.5%.\n"
    )
    out.result(lines)
    if not no_png:
        try:
            write_all([(png, "--png", comparison.draw(lines, k))])
            out.say(f"Picture: {png}\n")
        except ModuleNotFoundError:
            out.note("No picture: matplotlib is not installed; run: pip install 'skpursuit[cli]'")
    out.say(NEXT)


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
    from skpursuit.cli import comparison

    n, d = shape
    began = time.perf_counter()
    with comparison.enough_memory(n, d), Meter(out) as meter:
        out.say(f"X is {n} x {d}, float64, {n * d * 8 / 2**20:.0f} MiB; one thread, best of several\n")
        speeds = comparison.rates(n, d)
        out.table(["reading", "GB/s"], [[name, f"{value / 1e9:.1f}"] for name, value in speeds.items()])
        lines = comparison.fit_lines(n, d, k, 0, meter, comparison.QUICK)
    spelled = "{selector}|{seconds:.3f}|{ratio:.1f}x|{same_atoms}/{k}"
    rows = [spelled.format(**line, k=k).split("|") for line in lines]
    out.say()
    out.table([f"pursuit of {k} atoms", "seconds", "vs BLAS", "same atoms"], rows)
    best = max((line for line in lines if line["same_atoms"] == k), key=lambda line: line["ratio"])
    verdict = (
        f"{best['selector']} finds the atoms of exact {best['ratio']:.1f} times as fast as BLAS"
        if best["ratio"] > 1.1
        else "no selector that finds exact's atoms beats BLAS at this size; try a larger --size"
    )
    out.say(f"\nHere {verdict}. ({time.perf_counter() - began:.0f} s)")
    out.result({"shape": [n, d], "bytes_per_second": speeds, "pursuits": lines, "verdict": verdict})
