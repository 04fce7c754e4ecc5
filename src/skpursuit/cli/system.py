"""``skpursuit bench``, ``skpursuit info`` and ``skpursuit completion``."""

from __future__ import annotations

import time
from typing import Any

import click
from click.shell_completion import get_completion_class

from skpursuit import __version__
from skpursuit.cli.base import Command, Output, output_options
from skpursuit.cli.demo import enough_memory

EXTRAS = {
    **dict.fromkeys(("click", "rich", "jinja2", "matplotlib", "pyarrow", "python-calamine"), "cli"),
    "soundfile": "audio",
}


@click.command(
    cls=Command,
    epilog="""
    skpursuit bench
    skpursuit bench --size 5000 10000
    skpursuit bench --json
    """,
)
@click.option(
    "--size",
    "shape",
    nargs=2,
    type=click.IntRange(min=64),
    default=(3000, 6000),
    show_default=True,
    metavar="N D",
    help="Rows and columns of X.",
)
@click.option("-k", "k", type=click.IntRange(min=1, max=64), default=30, show_default=True, help="Atoms.")
@output_options
def bench(shape: tuple[int, int], k: int, out: Output) -> None:
    """Check the speed of this machine: reading X, and a pursuit by the quickest selectors."""
    with enough_memory(*shape):
        _bench(*shape, k, out)


def _bench(n: int, d: int, k: int, out: Output) -> None:
    from skpursuit.cli.comparison import pursuits, rates

    out.say(f"X is {n} x {d}, float64, {n * d * 8 / 2**20:.0f} MiB; one thread, best of several\n")
    speeds = rates(n, d)
    for name, value in speeds.items():
        out.say(f"{name:<34}{value / 1e9:>8.1f} GB/s")
    began = time.perf_counter()
    lines = pursuits(n, d, k)
    out.say(f"\n{'pursuit of ' + str(k) + ' atoms':<34}{'seconds':>9}{'vs BLAS':>9}{'same atoms':>12}")
    for line in lines:
        out.say(f"{line.selector:<34}{line.seconds:>9.3f}{line.ratio:>8.1f}x{line.same_atoms:>9}/{k}")
    best = max((line for line in lines if line.same_atoms == k), key=lambda line: line.ratio)
    verdict = (
        f"{best.selector} finds the atoms of exact {best.ratio:.1f} times as fast as BLAS"
        if best.ratio > 1.1
        else "no selector that finds exact's atoms beats BLAS at this size; try a larger --size"
    )
    out.say(f"\nHere {verdict}. ({time.perf_counter() - began:.0f} s)")
    out.result(
        {
            "shape": [n, d],
            "bytes_per_second": speeds,
            "pursuits": [vars(line) for line in lines],
            "verdict": verdict,
        }
    )


@click.command(
    cls=Command,
    epilog="""
    skpursuit info
    skpursuit info --json
    """,
)
@output_options
def info(out: Output) -> None:
    """Show versions, machine, optional packages and selectors: what a bug report needs."""
    from skpursuit.experiments.machine import installed, machine
    from skpursuit.selectors import NAMES

    extras = {
        name: installed(name) or f"missing, pip install 'skpursuit[{extra}]'"
        for name, extra in EXTRAS.items()
    }
    facts: dict[str, Any] = {**machine(), **extras, "selectors": ", ".join(NAMES)}
    facts["skpursuit"] = __version__
    for name, value in facts.items():
        out.say(f"{name:<16}{value}")
    out.result(facts)


@click.command(
    cls=Command,
    epilog="""
    skpursuit completion bash >> ~/.bashrc
    skpursuit completion zsh >> ~/.zshrc
    skpursuit completion fish > ~/.config/fish/completions/skpursuit.fish
    """,
)
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print what makes a shell complete commands and options."""
    kind = get_completion_class(shell)
    assert kind is not None
    command = ctx.find_root().command
    click.echo(kind(command, {}, "skpursuit", "_SKPURSUIT_COMPLETE").source())
