"""``skpursuit reproduce`` runs studies and saves finished cells; ``skpursuit report`` renders their page."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import click

from skpursuit._atomic_files import FileError
from skpursuit.apps.cli import info
from skpursuit.apps.cli.program import InputError, Output, check_outputs, command, write_files
from skpursuit.progress import monitoring

STUDY_ORDER = ("fw", "omp", "race", "cosamp", "budget", "scaling", "theory", "families", "audio", "text")
FOLDER, FULL_FOLDER = Path("results"), Path("results-full")
IN_FOLDER = click.Path(path_type=Path, file_okay=False)
OUT_FILE = click.Path(path_type=Path, dir_okay=False)


def own_selectors(ctx: click.Context, option: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """Take FILE.py:NAME apart."""
    found = {}
    for value in values:
        path, colon, name = value.rpartition(":")
        if not colon or not name.isidentifier() or not Path(path).is_file():
            raise click.BadParameter(f"{value!r} is not FILE.py:NAME with a file that is there.")
        found[name] = f"{Path(path).resolve()}:{name}"
    return found


@command
@click.argument("studies", nargs=-1, required=True, type=click.Choice((*STUDY_ORDER, "all")))
@click.option("--full", is_flag=True, help="The sizes of the paper: hours instead of minutes.")
@click.option("--trials", type=click.IntRange(min=1), help="Repetitions.  [default: 3, with --full 20]")
@click.option("--jobs", type=click.IntRange(min=1), default=1, help="Processes at a time.")
@click.option("--data", type=IN_FOLDER, help="Folder with text/ and audio/; without it, generated stand-ins.")
@click.option(
    "--selector", "user_selectors", multiple=True, metavar="FILE.py:NAME", callback=own_selectors,
    help="Add a selector of your own; may be repeated.",
)  # fmt: skip
@click.option("--methods", default="", help="Compare these alone, as exact,halving,NAME.")
@click.option("--snr", type=float, multiple=True, help="Noise of toy signals in dB.  [default: 3 and 30]")
@click.option("--out", "folder", type=IN_FOLDER, help="[default: results, with --full results-full]")
def reproduce(
    studies: tuple[str, ...], jobs: int, methods: str, folder: Path | None, out: Output, **more: Any
) -> None:
    """Run experiments of the paper; the same command resumes a stopped run.

    STUDIES: fw, omp (with the race), cosamp, budget, scaling, theory, families, audio, text, or all.
    """
    from skpursuit.apps.studies.methods import METHODS, load_selector, runs
    from skpursuit.apps.studies.studies import StudyOptions

    chosen = tuple(filter(None, map(str.strip, methods.split(","))))
    options = StudyOptions(methods=chosen, **more)
    for place in options.user_selectors.values():
        load_selector(place)  # or refuse it before anything is run
    known = (*METHODS, *options.user_selectors)
    unknown = [name for name in options.methods if name not in known]
    if unknown:
        raise InputError(f"--methods: {unknown[0]!r} is not known; use some of {', '.join(known)}")
    folder = folder or (FULL_FOLDER if options.full else FOLDER)
    wanted = {*studies, "race"} if "omp" in studies else set(studies)
    names = [name for name in STUDY_ORDER if name in wanted or "all" in wanted]
    for method in options.methods:
        takers = [name for name in names if name != "theory" and runs(name, method, options.user_selectors)]
        if not takers:
            raise InputError(f"--methods: {method!r} cannot be run in {', '.join(names)}")
        if left := [name for name in names if name not in takers]:
            out.echo_error(f"{method}: not run in {', '.join(left)}, which cannot take it")
    out.echo_json({name: str(_run(name, options, folder, jobs, out)) for name in names})
    out.echo(f"Results: {folder}/*.jsonl and, as tables, *.csv. A page of them: skpursuit report {folder}")


def _run(name: str, options: Any, folder: Path, jobs: int, out: Output) -> Path:
    from skpursuit.apps.studies import grid
    from skpursuit.apps.studies.studies import STUDIES as known

    experiment = known[name](options)
    about = {**info.machine_info(), "jobs": jobs, "threads": 1, "measured": str(date.today())}
    if name in ("audio", "text") and options.data is None:
        out.echo_error(f"{name}: no --data, so generated stand-ins are used; they are not real {name}")
    try:
        with monitoring(name, verbose=not out.quiet) as monitor:

            def tell(done: int, total: int, share: float) -> None:
                monitor.set_message("cell {} of {}", done, total)
                monitor.set_total(1.0)
                monitor.advance_by(share)

            return grid.run_experiment(experiment, folder, jobs=jobs, progress=tell, about=about)
    except grid.CellError as error:
        if isinstance(error.__cause__, FileError):
            raise error.__cause__ from None
        raise click.ClickException(str(error)) from None
    except OSError as error:
        raise InputError(f"{folder}: {error.strerror}; give another folder (--out)") from None
    except KeyboardInterrupt:
        message = f"{name}: stopped; finished cells are saved, and the same command resumes the run"
        raise KeyboardInterrupt(message) from None


@command
@click.argument("folder", type=IN_FOLDER)
@click.option("--out", "page", type=OUT_FILE, help="The page.  [default: FOLDER/report.html]")
def report(folder: Path, page: Path | None, out: Output) -> None:
    """Make one self-contained HTML page of the results in FOLDER."""
    from skpursuit.apps.studies.report import render_page

    page = page or folder / "report.html"
    if folder.is_dir():
        results = [folder / f"{name}.{end}" for name in STUDY_ORDER for end in ("jsonl", "csv")]
        check_outputs(results, {"--out": page})
    made, claims = render_page(folder)
    write_files([(page, "--out", made), (page.with_name("claims.csv"), "--out", claims)])
    out.echo_json({"page": str(page)})
    out.echo(f"Page: {page}, with the paper's claims as a table in claims.csv beside it")
