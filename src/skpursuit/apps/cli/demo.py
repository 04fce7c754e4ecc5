"""``skpursuit demo``: one generated problem, fitted with every selector and timed as in the studies."""

from __future__ import annotations

from typing import Any

import click

from skpursuit.apps.cli.program import InputError, Output, command
from skpursuit.progress import current_monitor, monitoring

DEMO_SELECTORS = (
    "exact", "auto", "certified", "quantized", "halving", "halving-random", "greedy", "importance", "uniform",
    "gram", "reject",
)  # fmt: skip
REJECT_BUDGET = 0.005  # at its default of 0.2 it alone would take minutes
TIMING_REPEATS = 3
MAX_REPEAT_SECONDS = 2.0  # seconds: a run of more is not repeated


def time_selectors(n: int, d: int, k: int, seed: int) -> list[dict[str, Any]]:
    """Fit one synthetic problem with each selector, in turn; one row for each, with the best of its times."""
    from threadpoolctl import threadpool_limits

    from skpursuit import OMP, audit
    from skpursuit.apps.studies.methods import make_selector
    from skpursuit.apps.studies.synthetic import Measurement, measure, toy

    place, solver, runs = (n, d, k, seed, 3.0, ""), OMP(n_nonzero_coefs=k), dict[str, Measurement]()
    with threadpool_limits(1):
        for name in DEMO_SELECTORS * TIMING_REPEATS:
            if name not in runs or runs[name].row["seconds"] <= MAX_REPEAT_SECONDS:
                current_monitor().set_message("fitting with {}", name)
                selector = make_selector(name, budget=REJECT_BUDGET if name == "reject" else 0.2)
                atoms = runs["exact"].atoms if "exact" in runs else None
                found = measure(place, solver, selector, atoms)
                runs[name] = min(runs.get(name, found), found, key=lambda one: one.row["seconds"])
    return [
        {
            "selector": name,
            "ratio": runs["exact"].row["seconds"] / max(run.row["seconds"], 1e-9),
            **{column: run.row[column] for column in ("seconds", "share_read", "f_measure")},
            "same_atoms": round(run.row["same_atoms"] * len(runs["exact"].atoms)),
            "rho_min": audit(*toy(place)[:2], run.result).rho_min,
            "certificate": run.certificate,
        }
        for name, run in runs.items()
    ]


@command
@click.option(
    "--size", "shape", nargs=2, type=click.IntRange(min=2), default=(2000, 4000), metavar="N D",
    help="Rows and columns of X.",
)  # fmt: skip
@click.option("-k", "k", type=click.IntRange(min=1), default=50, help="Atoms to find.")
@click.option("--seed", type=click.IntRange(min=0), default=0, help="Seed of the problem.")
def demo(shape: tuple[int, int], k: int, seed: int, out: Output) -> None:
    """Find the atoms of a noisy synthetic signal with every selector, and compare."""
    n, d = shape
    if k > d:
        raise InputError(f"-k {k} is more than the {d} columns of X; give a smaller -k or a larger --size")
    from skpursuit.data.options import available_memory

    size = 8 * n * d
    message = f"--size {n} {d}: X takes {size / 2**30:.3g} GiB, more than the memory; give a smaller size"
    if size > available_memory():
        raise InputError(message)
    try:
        with monitoring("demo", verbose=not out.quiet):
            out.echo(
                f"OMP, {k} atoms, X is {n} x {d} (unit-norm Gaussian columns), noise at 3 dB, one thread\n"
            )
            timings = time_selectors(n, d, k, seed)
    except MemoryError:
        raise InputError(message) from None
    out.echo_template("demo.txt", timings=timings, k=k)
    out.echo_json(timings)
