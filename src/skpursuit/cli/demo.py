"""``skpursuit demo``."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from skpursuit.cli.base import Command, Output, Refusal, output_options
from skpursuit.cli.outputs import check_outputs, write_all

if TYPE_CHECKING:
    from skpursuit.cli.comparison import Line

NEXT = """\
What to try next:
  skpursuit bench                                     the speed of this machine, against BLAS
  skpursuit fit FILE.csv --target COLUMN              a sparse model of a table of yours
  skpursuit reproduce all && skpursuit report results the experiments of the paper, as a page
  python -c "import skpursuit; help(skpursuit.minimize)"
"""


@click.command(
    cls=Command,
    epilog="""
    skpursuit demo
    skpursuit demo --size 5000 10000 -k 50 --png demo.png
    skpursuit demo --json > demo.json
    """,
)
@click.option(
    "--size",
    "shape",
    nargs=2,
    type=click.IntRange(min=2),
    default=(2000, 4000),
    show_default=True,
    metavar="N D",
    help="Rows and columns of X.",
)
@click.option("-k", "k", type=click.IntRange(min=1), default=50, show_default=True, help="Atoms to find.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of the problem.")
@click.option(
    "--png",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("skpursuit-demo.png"),
    show_default=True,
    help="Where the picture goes.",
)
@click.option("--no-png", is_flag=True, help="Draw no picture.")
@output_options
def demo(shape: tuple[int, int], k: int, seed: int, png: Path, no_png: bool, out: Output) -> None:
    """Find the atoms of a noisy toy signal with every selector, and compare."""
    from skpursuit.cli.comparison import fit_lines

    n, d = shape
    if k > d:
        raise Refusal(f"-k {k} is more than the {d} columns of X; give a smaller -k or a larger --size")
    check_outputs([], {"--png": None if no_png else png})
    with enough_memory(n, d):
        out.say(f"OMP, {k} atoms, X is {n} x {d} (unit-norm Gaussian columns), noise at 3 dB, one thread\n")
        lines = fit_lines(n, d, k, seed, progress=lambda name: progress(out, name))
    progress(out, None)
    head = f"{'selector':<16}{'seconds':>9}{'vs exact':>10}{'X read':>9}{'same atoms':>12}{'F':>7}"
    out.say(f"{head}  certificate")
    for line in lines:
        out.say(
            f"{line.selector:<16}{line.seconds:>9.3f}{line.ratio:>9.1f}x{line.share_read:>9.1%}"
            f"{line.same_atoms:>9}/{k}{line.f_measure:>7.2f}  {line.certificate}"
        )
    out.say(
        "\nvs exact: how many times faster than exact selection by BLAS. X read: bytes a step, share of X."
    )
    out.say(
        "same atoms: those that exact finds too. F: F-measure with the true atoms. reject: budget 0.5%.\n"
    )
    out.result([asdict(line) for line in lines])
    if not no_png:
        picture(lines, k, png, out)
    out.say(NEXT)


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


def progress(out: Output, name: str | None) -> None:
    """Show what is being done on a terminal; None clears the line."""
    if not out.quiet and sys.stderr.isatty():
        click.echo(f"\r\033[K{f'fitting with {name} ...' if name else ''}", err=True, nl=False)


def picture(lines: list[Line], k: int, png: Path, out: Output) -> None:
    """Write the PNG, or say why not."""
    from skpursuit.cli.comparison import draw

    try:
        drawn = draw(lines, k)
    except ModuleNotFoundError:
        out.note("No picture: matplotlib is not installed; run: pip install 'skpursuit[cli]'")
        return
    write_all([(png, "--png", drawn)])
    out.say(f"Picture: {png}\n")
