"""``skpursuit fit`` and ``skpursuit predict``.

The model is written before any figure is drawn. Large packages are imported after the arguments are checked.
"""

from __future__ import annotations

import contextlib
import csv
import functools
import hashlib
import io
import math
import shlex
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from skpursuit._atomic_files import FileError
from skpursuit.apps.cli.program import InputError, Output, check_input, check_outputs, command, write_files
from skpursuit.progress import current_monitor, monitoring

if TYPE_CHECKING:
    from skpursuit.apps.models.fit_table import FitOptions, FitReport
    from skpursuit.apps.models.model_file import LinearModel
    from skpursuit.apps.tables import EncodedTable, ReadOptions

Options: TypeAlias = dict[str, Any]  # of a command, by the names of its parameters
TABLE_FORMATS = ("csv", "tsv", "parquet", "xlsx")
DECLARABLE_KINDS = (
    "number", "category", "fold", "ordinal", "yesno", "date", "dmy", "mdy", "ymd", "time", "duration", "drop",
)  # fmt: skip
MAX_ROWS_PRINTED = 30  # features, and columns, of a table on the terminal
FILE = click.Path(path_type=Path)
COUNT, SHARE = click.IntRange(min=1), click.FloatRange(0.0, 0.9, min_open=True)
BETWEEN = click.FloatRange(0.0, 1.0, min_open=True, max_open=True)
SELECTION = click.Choice(("one_se", "best"))
TASKS = click.Choice(("auto", "regression", "classification"))
KINDS_HELP = f"What a column is: {', '.join(DECLARABLE_KINDS)} (ordinal:a,b,c says the order); repeatable."
#: The options on how a file is read, by the fields of `ReadOptions` that they set.
READ_OPTIONS = {
    "format": click.option("--format", type=click.Choice(TABLE_FORMATS), help="If the name tells it not."),
    "text_encoding": click.option("--encoding", "text_encoding", help="By default it is recognised."),
    "header": click.option("--header/--no-header", default=True, help="Is there a line of names?"),
    "sheet": click.option("--sheet", help="Sheet of a workbook.  [default: the first]"),
    "skip_bad_rows": click.option("--skip-bad-rows", is_flag=True, help="Leave out rows of another width."),
    "line_breaks": click.option("--line-breaks", is_flag=True, help="Cells in quotes hold line breaks."),
    "keep_total": click.option("--keep-total", is_flag=True, help="Keep a last row that is a total."),
    "transpose": click.option("--transpose", is_flag=True, help="Rows are columns, the first names them."),
}


def source_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add FILE and the options on how it is read; the command gets these as ``read``."""

    @functools.wraps(command)
    def run(**given: Any) -> Any:
        return command(read={name: given.pop(name) for name in READ_OPTIONS}, **given)

    for option in reversed(READ_OPTIONS.values()):
        option(run)
    return click.argument("file", type=FILE)(run)


@contextlib.contextmanager
def open_table(file: Path, read: Options, out: Output) -> Iterator[ReadOptions]:
    """Yield how a file is read; what is done inside is told after a while."""
    from skpursuit.apps.tables import ReadOptions

    with monitoring(file.name, verbose=not out.quiet):
        current_monitor().set_message("reading")
        yield ReadOptions(**read, notify=lambda text: out.echo_error(f"{file.name}: {text}"))


def split_kinds(ctx: click.Context, option: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """Take NAME=KIND apart."""
    found = {}
    for value in values:
        name, equal, kind = value.rpartition("=")
        if not equal or kind.partition(":" if kind.startswith("ordinal") else "=")[0] not in DECLARABLE_KINDS:
            every = ", ".join(DECLARABLE_KINDS)
            raise click.BadParameter(f"{value!r} is not NAME=KIND with a KIND of {every}.")
        found[name] = kind
    return found


@command
@click.option("--target", help="The column to predict.")
@click.option("-k", "k", type=COUNT, help="Features in the model.  [default: cross-validated]")
@click.option("--selection", type=SELECTION, default="one_se", help="one_se: the fewest as good as best.")
@click.option("--max-k", "most", type=COUNT, help="The most that cross-validation tries.")
@click.option("--task", type=TASKS, default="auto", help="auto: texts and two values are classes.")
@click.option("--out", "model_file", type=FILE, help="Write the model here, as JSON.")
@click.option("--report", "page", type=FILE, help="Write a page for people here, as HTML.")
@click.option("--column", "kinds", multiple=True, metavar="NAME=KIND", callback=split_kinds, help=KINDS_HELP)
@click.option("--drop", multiple=True, metavar="COLUMN", help="Leave a column out; may be repeated.")
@click.option("--decimal", type=click.Choice((".", ",")), help="Decimal sign.  [default: found out]")
@click.option("--impute/--no-impute", default=True, help="Fill missing values, or refuse them.")
@click.option("--loss", metavar="NAME", help="What is minimised.  [default: squared; classes: logistic]")
@click.option("--solver", metavar="NAME", default="auto", help="How the model grows; auto: several ways.")
@click.option("--selector", metavar="NAME", default="auto", help="How features are found, by omp.")
@click.option("--test-share", type=SHARE, default=0.2, help="Rows held out for the score.")
@click.option("--seed", type=click.IntRange(min=0), default=0)
@source_options
def fit(file: Path, read: Options, out: Output, **given: Any) -> None:
    """Fit a sparse model to a table: CSV, TSV, Parquet or Excel."""
    check_input(file)
    check_outputs([file], {"--out": given["model_file"], "--report": given["page"]})
    from skpursuit.apps.models.fit_table import fit_table
    from skpursuit.apps.tables import EncodingOptions, fit_encoding, read_columns

    with open_table(file, read, out) as options:
        columns = read_columns(file, options)
        current_monitor().set_message("looking at columns")
        kinds = given["kinds"] | dict.fromkeys(given["drop"], "drop")
        table = fit_encoding(
            columns, EncodingOptions(given["target"], kinds, given["impute"], given["decimal"])
        )
        out.echo_template("fit_columns.txt", file=file, table=table, most=MAX_ROWS_PRINTED)
        with _fitting(file):
            report = fit_table(table, _fit_options(given))
    out.echo_template("fit.txt", report=report, asked=given["k"], most=MAX_ROWS_PRINTED, quoted=repr)
    out.echo_json(_as_json(table, report))
    _write(file, table, report, given, out)


def _fit_options(given: Options) -> FitOptions:
    from skpursuit.apps.models.fit_table import FitOptions

    names = ("k", "most", "selection", "task", "loss", "solver", "selector", "test_share", "seed")
    return FitOptions(**{name: given[name] for name in names}, needs_report=given["page"] is not None)


@contextlib.contextmanager
def _fitting(file: Path) -> Iterator[None]:
    """Turn what estimators refuse into one line."""
    try:
        yield
    except FileError:
        raise
    except (ValueError, TypeError) as error:
        raise InputError(f"{file}: no model could be fitted: {' '.join(str(error).split())}") from None
    except RuntimeError as error:
        raise click.ClickException(f"{file}: the fit failed: {' '.join(str(error).split())}") from None


def _as_json(table: EncodedTable, report: FitReport) -> dict[str, object]:
    model, task = report.model, "classification" if report.model.classes else "regression"
    other = "auc" if model.classes else "rmse"
    features = dict(zip(model.features, model.coef.T.tolist()))
    sizes = [(one.k, one.score, None if math.isnan(one.other) else one.other) for one in report.sizes]
    return {
        "task": task,
        "classes": None if model.classes is None else list(model.classes),
        "features": features,
        "intercept": model.intercept.tolist(),
        "baseline": report.baseline,
        "all_features": report.full_model_score,
        "path": [dict(zip(("k", "score", other), one)) for one in sizes],
        "effects": [asdict(effect) for effect in report.effects],
        "alerts": list(report.alerts),
        "columns": table.described(),
        "rows_without_target": table.dropped,
        "k_is_the_largest_tried": report.at_limit,
        **model.info,
    }


def _write(file: Path, table: EncodedTable, report: FitReport, given: Options, out: Output) -> None:
    """Write the model, and only then draw: no figure can cost anybody the model."""
    if (model := given["model_file"]) is not None:
        from skpursuit.apps.models.model_file import model_json

        write_files([(model, "--out", model_json(report.model))])
    if (page := given["page"]) is not None:
        from skpursuit.apps.models.model_page import model_page

        write_files([(page, "--report", model_page(file.name, table, report, model, _made(file, given)))])
        out.echo(f"Page: {page}")
    if model is not None:
        out.echo(f"Model: {model}. Use it: skpursuit predict {model} NEW_FILE")


def _made(file: Path, given: Options) -> dict[str, str]:
    """Return how a page was made: by which command, when, and from which data."""
    group = click.get_current_context().find_root().command
    words = shlex.join(["skpursuit", *getattr(group, "arguments", ())])
    checksum = ""
    if file.is_file():
        with file.open("rb") as content:
            checksum = hashlib.file_digest(content, "sha256").hexdigest()
    return {"command": words, "date": f"{date.today()}", "seed": f"{given['seed']}", "checksum": checksum}


@command
@click.argument("model", type=click.Path(path_type=Path))
@click.option("--out", "predictions", type=FILE, help="Write a CSV file instead of printing.")
@click.option("--id", "ids", multiple=True, metavar="COLUMN", help="Put a column beside the predictions.")
@click.option("--interval", type=BETWEEN, default=0.9, help="Share of rows that intervals should hold.")
@source_options
def predict(
    model: Path, file: Path, read: Options, predictions: Path | None, out: Output, **given: Any
) -> None:
    """Predict the rows of FILE by a MODEL that `skpursuit fit` wrote.

    Beside each prediction stand its interval, from cross-validated residuals, or the chances of all classes.
    """
    check_input(model, file)
    check_outputs([model, file], {"--out": predictions})
    from skpursuit.apps.models.model_file import load_model

    fitted = load_model(model)
    with open_table(file, read, out) as options:
        text, kept, count = io.StringIO(), list[dict[str, object]](), 0
        writer = csv.writer(text, lineterminator="\n")
        for heads, rows in _predicted(fitted, file, options, **given):
            if not count:
                writer.writerow(heads)
            count += len(rows)
            known = max(1, len(given["ids"]))  # columns beside the predictions
            writer.writerows([*row[:known], *map(fitted.spell, row[known:])] for row in rows)
            kept += [dict(zip(heads, row)) for row in rows] if out.as_json and predictions is None else []
    if predictions is None:
        out.echo_json(kept)
        out.echo(text.getvalue().rstrip("\n"))
        return
    write_files([(predictions, "--out", text.getvalue())])
    out.echo_json({"predictions": str(predictions), "rows": count})
    out.echo(f"{count} predictions: {predictions}")


def _predicted(
    fitted: LinearModel, path: Path, options: ReadOptions, ids: tuple[str, ...], interval: float
) -> Iterator[tuple[list[str], list[tuple[object, ...]]]]:
    """Read a file piece by piece and yield the heads and rows of its predictions, with ids or row numbers."""
    from skpursuit.apps.tables import stream_columns
    from skpursuit.apps.tables.errors import attach_path, raise_problems

    gaps, news, first = Counter[str](), Counter[str](), 1
    for columns in stream_columns(path, replace(options, only=frozenset((*fitted.encoding.used, *ids)))):
        with attach_path(path):
            if unknown := [name for name in ids if name not in columns.raw]:
                every = next(stream_columns(path, replace(options, only=None, notify=lambda sentence: None)))
                raise_problems(every.unknown(name, "id") for name in unknown)
        table = fitted.encoding.apply(columns)
        for name, found in table.found.items():
            gaps[name] += found.missing + found.strays
            news[name] += found.unseen
        last = first + columns.n_rows
        beside = {name: columns.raw[name].to_pylist() for name in ids} or {"row": list(range(first, last))}
        with attach_path(path):
            predictions = {**beside, **fitted.predictions(table, interval)}
        yield list(predictions), list(zip(*predictions.values()))
        first = last
    for met, words in (
        (gaps, "no usable value, filled as in the fit"),
        (news, "categories that are rare or new to the model, taken as none of its own"),
    ):
        if counts := [f"{name!r} ({count} row{'s' * (count > 1)})" for name, count in met.items() if count]:
            options.notify(f"{words}: {', '.join(counts)}")
