"""``skpursuit reproduce`` and ``skpursuit report``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from skpursuit._files import FileError
from skpursuit.cli.base import Command, Output, Refusal, output_options
from skpursuit.cli.outputs import check_outputs, write_all
from skpursuit.cli.progress import Meter

if TYPE_CHECKING:
    from skpursuit.experiments.studies import Options


def own_selectors(ctx: click.Context, option: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """Take FILE.py:NAME apart."""
    found = {}
    for value in values:
        path, colon, name = value.rpartition(":")
        if not colon or not name.isidentifier() or not Path(path).is_file():
            raise click.BadParameter(f"{value!r} is not FILE.py:NAME with a file that is there.")
        found[name] = f"{Path(path).resolve()}:{name}"
    return found


def split_names(ctx: click.Context, option: click.Parameter, value: str | None) -> tuple[str, ...]:
    """Take names with commas apart."""
    return tuple(filter(None, (name.strip() for name in (value or "").split(","))))


def _check_methods(own: dict[str, str], methods: tuple[str, ...]) -> None:
    """Refuse methods that nobody knows, and selectors that cannot be made, before anything is run."""
    from skpursuit.experiments.methods import LABELS, load_selector

    for place in own.values():
        load_selector(place)
    unknown = [name for name in methods if name not in LABELS and name not in own]
    if unknown:
        known = ", ".join((*LABELS, *own))
        raise Refusal(f"--methods: {unknown[0]!r} is not known; use some of {known}")


STUDIES = ("omp", "cosamp", "budget", "scaling", "fw", "audio", "text")
FOLDER = Path("results")
FULL_FOLDER = Path("results-full")


@click.command(
    cls=Command,
    epilog="""
    skpursuit reproduce all
    skpursuit reproduce omp --trials 5 --out mine
    skpursuit reproduce text audio --data ~/collections
    skpursuit reproduce omp --selector examples/lucb.py:LUCB --methods exact,halving,LUCB
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
    "--selector", "own", multiple=True, metavar="FILE.py:NAME", callback=own_selectors,
    help="Add a selector of your own; may be repeated.",
)  # fmt: skip
@click.option("--methods", callback=split_names, help="Compare these alone, as exact,halving,NAME.")
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
    own: dict[str, str],
    methods: tuple[str, ...],
    folder: Path | None,
    out: Output,
) -> None:
    """Run experiments of the paper; what is finished is kept, so that a stopped run goes on.

    STUDIES: fw, omp, cosamp, budget, scaling, audio, text, or all.
    """
    from skpursuit.experiments.studies import Options

    _check_methods(own, methods)
    options = Options(full, trials, None if data is None else str(data), methods, own)
    folder = folder or (FULL_FOLDER if full else FOLDER)
    names = STUDIES if "all" in studies else tuple(dict.fromkeys(studies))
    written = {name: str(_run(name, options, folder, jobs, out)) for name in names}
    out.result(written)
    out.say(f"Results: {folder}/*.jsonl and, as tables, *.csv. A page of them: skpursuit report {folder}")


def _run(name: str, options: Options, folder: Path, jobs: int, out: Output) -> Path:
    from skpursuit.experiments.grid import CellError, run
    from skpursuit.experiments.machine import machine
    from skpursuit.experiments.studies import STUDIES as known

    experiment = known[name](options)
    if name in ("audio", "text") and options.data is None:
        out.note(f"{name}: no --data, so generated stand-ins are used; they are not real {name}")
    try:
        with Meter(out) as meter:
            return run(
                experiment,
                folder,
                jobs=jobs,
                progress=lambda p: meter(f"{name}: cell {p.done} of {p.total}", p.share),
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
    from skpursuit.experiments.figures import render_page
    from skpursuit.experiments.page import make_page

    page = page or folder / "report.html"
    if folder.is_dir():
        results = [folder / f"{name}.{end}" for name in STUDIES for end in ("jsonl", "csv", "json")]
        check_outputs(results, {"--out": page})
    write_all([(page, "--out", render_page(make_page(folder)))])
    out.result({"page": str(page)})
    out.say(f"Page: {page}")
