"""``skpursuit reproduce`` and ``skpursuit report``."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from skpursuit._files import FileError
from skpursuit.cli.base import Command, Output, Refusal, output_options
from skpursuit.cli.outputs import check_outputs, write_all

if TYPE_CHECKING:
    from skpursuit.experiments.grid import Progress
    from skpursuit.experiments.studies import Options

STUDIES = ("omp", "cosamp", "budget", "scaling", "fw", "audio", "text")
FOLDER = Path("results")
FULL_FOLDER = Path("results-full")


@click.command(
    cls=Command,
    epilog="""
    skpursuit reproduce all
    skpursuit reproduce omp --trials 5 --out mine
    skpursuit reproduce text audio --data ~/collections
    skpursuit reproduce fw --full            (stop with Ctrl-C, run again to go on)
    """,
)
@click.argument("studies", nargs=-1, required=True, type=click.Choice((*STUDIES, "all")))
@click.option("--full", is_flag=True, help="The sizes of the paper: hours instead of minutes.")
@click.option("--trials", type=click.IntRange(min=1), help="Repetitions.  [default: 3, with --full 20]")
@click.option("--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="Processes at a time.")
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder with text/ and audio/; without it stand-ins are generated.",
)
@click.option(
    "--out",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of the results.  [default: results, with --full results-full]",
)
@output_options
def reproduce(
    studies: tuple[str, ...],
    full: bool,
    trials: int | None,
    jobs: int,
    data: Path | None,
    folder: Path | None,
    out: Output,
) -> None:
    """Run experiments of the paper; what is finished is kept, so that a stopped run goes on.

    STUDIES: fw, omp, cosamp, budget, scaling, audio, text, or all.
    """
    from skpursuit.experiments.studies import Options

    options = Options(full, trials, None if data is None else str(data))
    folder = folder or (FULL_FOLDER if full else FOLDER)
    names = STUDIES if "all" in studies else tuple(dict.fromkeys(studies))
    written = {name: str(_run(name, options, folder, jobs, out)) for name in names}
    out.result(written)
    out.say(f"Results: {folder}/*.csv. A page of them: skpursuit report {folder}")


def _run(name: str, options: Options, folder: Path, jobs: int, out: Output) -> Path:
    from skpursuit.experiments.grid import CellError, run
    from skpursuit.experiments.machine import machine
    from skpursuit.experiments.studies import STUDIES as known

    experiment = known[name](options)
    if name in ("audio", "text") and options.data is None:
        out.note(f"{name}: no --data, so generated stand-ins are used; they are not real {name}")
    try:
        return run(
            experiment,
            folder,
            jobs=jobs,
            progress=Meter(out),
            about={**machine(), "jobs": jobs, "threads": 1},
        )
    except CellError as error:
        if isinstance(error.__cause__, FileError):
            raise error.__cause__ from None
        raise click.ClickException(str(error)) from None
    except NotADirectoryError:
        raise Refusal(f"{folder}: this is not a folder; give another one (--out)") from None
    except OSError as error:
        raise Refusal(f"{folder}: {error.strerror}; give another folder (--out)") from None
    except KeyboardInterrupt:
        message = f"{name}: stopped; what is finished is kept, the same command goes on"
        raise KeyboardInterrupt(message) from None


class Meter:
    """Progress for people: one line that changes on a terminal, one every few seconds elsewhere."""

    def __init__(self, out: Output, every: float = 10.0) -> None:
        self.out = out
        self.every = 0.2 if sys.stderr.isatty() else every
        self.told = -float("inf")

    def __call__(self, progress: Progress) -> None:
        """Tell how far the run is."""
        last = progress.done == progress.total
        if self.out.quiet or (time.monotonic() - self.told < self.every and not last):
            return
        self.told = time.monotonic()
        text = f"{progress.name}: {progress.done} of {progress.total}, {spell(progress.elapsed)}"
        if progress.remaining is not None and not last:
            text += f", about {spell(progress.remaining)} left"
        if sys.stderr.isatty():
            click.echo(f"\r\033[K{text}", err=True, nl=last)
        else:
            click.echo(text, err=True)


def spell(seconds: float) -> str:
    """Spell a duration as people do."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02} min"
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"


@click.command(
    cls=Command,
    epilog="""
    skpursuit report results
    skpursuit report results-full --out study.html
    """,
)
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--out",
    "page",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The page.  [default: FOLDER/report.html]",
)
@output_options
def report(folder: Path, page: Path | None, out: Output) -> None:
    """Make one self-contained HTML page of the results in FOLDER."""
    from skpursuit.experiments.page import make_page
    from skpursuit.experiments.report import render

    page = page or folder / "report.html"
    if folder.is_dir():
        results = [folder / f"{name}.{end}" for name in STUDIES for end in ("csv", "json")]
        check_outputs(results, {"--out": page})
    write_all([(page, "--out", render(make_page(folder)))])
    out.result({"page": str(page)})
    out.say(f"Page: {page}")
