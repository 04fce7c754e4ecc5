"""``skpursuit demo`` and ``skpursuit bench``: one sparse signal, found by every selector."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click

from skpursuit.cli.base import Command, Output, Refusal, output_options
from skpursuit.cli.outputs import check_outputs, write_all
from skpursuit.cli.progress import Meter

FILE = click.Path(path_type=Path, dir_okay=False)


def size_option(least: int, default: tuple[int, int]) -> Callable[..., Any]:
    """Return the option ``--size N D``."""
    how: Any = {"nargs": 2, "type": click.IntRange(min=least), "metavar": "N D", "default": default}
    return click.option("--size", "shape", help="Rows and columns of X.", **how)


@click.command(
    cls=Command,
    epilog="""
    skpursuit demo
    skpursuit demo --size 5000 10000 -k 50 --png demo.png
    skpursuit demo --json > demo.json
    """,
)
@size_option(2, (2000, 4000))
@click.option("-k", "k", type=click.IntRange(min=1), default=50, help="Atoms to find.")
@click.option("--seed", type=click.IntRange(min=0), default=0, help="Seed of the problem.")
@click.option("--png", type=FILE, default=Path("skpursuit-demo.png"), help="Where the picture goes.")
@click.option("--no-png", is_flag=True, help="Draw no picture.")
@output_options
def demo(shape: tuple[int, int], k: int, seed: int, png: Path, no_png: bool, out: Output) -> None:
    """Find the atoms of a noisy toy signal with every selector, and compare."""
    from skpursuit.cli import comparison

    if k > shape[1]:
        problem = f"-k {k} is more than the {shape[1]} columns of X"
        raise Refusal(f"{problem}; give a smaller -k or a larger --size")
    check_outputs([], {"--png": None if no_png else png})
    with enough_memory(*shape), Meter(out) as meter:
        lines = comparison.fit_lines(*shape, k, seed, comparison.SHOWN, meter)
    out.say_page("demo.txt", lines=lines, k=k, shape=shape)
    out.result([vars(line) for line in lines])
    if not no_png:
        try:
            picture = comparison.draw(lines, k)
        except ModuleNotFoundError:
            out.note("No picture: matplotlib is not installed; run: pip install 'skpursuit[cli]'")
        else:
            write_all([(png, "--png", picture)])
            out.say(f"\nPicture: {png}")


@click.command(
    cls=Command,
    epilog="""
    skpursuit bench
    skpursuit bench --size 5000 10000
    skpursuit bench --json
    """,
)
@size_option(64, (3000, 6000))
@click.option("-k", "k", type=click.IntRange(min=1, max=64), default=30, help="Atoms.")
@output_options
def bench(shape: tuple[int, int], k: int, out: Output) -> None:
    """Check the speed of this machine: reading X, and a pursuit by the quickest selectors."""
    from skpursuit.cli import comparison

    with enough_memory(*shape), Meter(out) as meter:
        speeds = comparison.rates(*shape)
        lines = comparison.fit_lines(*shape, k, 0, comparison.QUICK, meter)
    best = max((line for line in lines if line.same_atoms == k), key=lambda line: line.ratio)
    verdict = (
        f"{best.selector} finds the atoms of exact {best.ratio:.1f} times as fast as BLAS"
        if best.ratio > 1.1
        else "no selector that finds exact's atoms beats BLAS at this size; try a larger --size"
    )
    out.say_page("bench.txt", speeds=speeds, lines=lines, k=k, shape=shape, verdict=verdict)
    pursuits = [vars(line) for line in lines]
    out.result({"shape": shape, "bytes_per_second": speeds, "pursuits": pursuits, "verdict": verdict})


@contextlib.contextmanager
def enough_memory(n: int, d: int) -> Iterator[None]:
    """Refuse an X that memory cannot hold: at once where that is clear, or when it runs out."""
    from skpursuit.experiments.machine import memory_size

    size = 8 * n * d
    words = f"--size {n} {d}: X takes {size / 2**30:.3g} GiB, which memory cannot hold; give a smaller size"
    if size > (memory_size() or size):
        raise Refusal(words)
    try:
        yield
    except MemoryError:
        raise Refusal(words) from None
