"""The command line: ``skpursuit --help``."""

from __future__ import annotations

import click

from skpursuit import __version__


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
def main() -> None:
    """Sparse models, found by reading a fraction of the data."""


@main.command()
@click.option("--size", "shape", nargs=2, type=click.IntRange(min=2), default=(2000, 4000), show_default=True)
@click.option("-k", "k", type=click.IntRange(min=1), default=50, show_default=True, help="Atoms to find.")
def demo(shape: tuple[int, int], k: int) -> None:
    """Find the atoms of a noisy toy signal with each selector and compare."""
    from skpursuit.demo import fit_lines

    n, d = shape
    click.echo(f"OMP, {k} atoms, X is {n} x {d} (unit-norm Gaussian columns), noise at 3 dB\n")
    click.echo(
        f"{'selector':<16}{'seconds':>9}{'vs exact':>10}{'X read':>9}{'same atoms':>12}{'F':>7}  certificate"
    )
    for line in fit_lines(n, d, k):
        click.echo(
            f"{line.selector:<16}{line.seconds:>9.3f}{line.ratio:>9.1f}x{line.share_read:>9.0%}"
            f"{line.same_atoms:>9}/{k}{line.f_measure:>7.2f}  {line.certificate}"
        )
    click.echo("\nX read: bytes per step, as a share of X. Next: python -m skpursuit --help")
