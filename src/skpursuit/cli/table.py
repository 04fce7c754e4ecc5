"""``skpursuit fit`` and ``skpursuit predict``."""

from __future__ import annotations

import contextlib
import csv
import functools
import io
import json
import math
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from skpursuit._files import FileError
from skpursuit.cli.base import Command, Output, Refusal, check_input, output_options
from skpursuit.cli.outputs import check_outputs, write_all
from skpursuit.cli.progress import Meter

if TYPE_CHECKING:
    from skpursuit.models.fitting import Outcome
    from skpursuit.tables import ReadOptions, Table

FORMATS = ("csv", "tsv", "parquet", "xlsx", "npz", "svmlight", "arff")
SAID = ("number", "category", "yesno", "date", "dmy", "mdy", "ymd", "time", "drop")
SHOWN = 30  # features, and columns, of a table on the terminal
FILE = click.Path(path_type=Path, allow_dash=True)
#: The options on how a file is read; they are called as the fields of `ReadOptions` are.
READING = {
    "format": click.option("--format", type=click.Choice(FORMATS), help="Format, if the name does not tell."),
    "text_encoding": click.option(
        "--encoding", "text_encoding", help="How a text file spells characters.  [default: recognised]"
    ),
    "header": click.option(
        "--no-header", "header", flag_value=False, default=True, help="There is no line of names."
    ),
    "sheet": click.option("--sheet", help="Sheet of a workbook.  [default: the first]"),
    "skip_bad_rows": click.option(
        "--skip-bad-rows", is_flag=True, help="Leave out rows with other numbers of fields."
    ),
    "keep_total": click.option("--keep-total", is_flag=True, help="Keep a last row that is a total."),
    "transpose": click.option("--transpose", is_flag=True, help="Rows are columns, the first names them."),
}


class Source:
    """The file that a command reads, or standard input, and how it is to be read."""

    def __init__(self, file: Path, read: dict[str, Any], out: Output):
        self.file, self.read, self.out = file, read, out

    @contextlib.contextmanager
    def opened(self) -> Iterator[tuple[Path, Meter]]:
        """Yield a path to read from, and the meter: standard input is kept in a file meanwhile."""
        check_input(self.file)
        with contextlib.ExitStack() as stack:
            path = self.file
            if str(path) == "-":
                path = Path(stack.enter_context(_standard_input(self.read["format"])))
            yield path, stack.enter_context(Meter(self.out))

    def options(self, path: Path, meter: Meter, only: frozenset[str] | None = None) -> ReadOptions:
        """Return how the file is read; the meter hears how far it is."""
        from skpursuit.tables import ReadOptions

        size, read = max(1, path.stat().st_size), 0

        def progress(bytes_read: int) -> None:
            nonlocal read
            read += bytes_read
            meter("reading", read / size)

        def told(text: str) -> None:
            self.out.note(f"{'standard input' if str(self.file) == '-' else path.name}: {text}")

        meter("reading", 0.0)
        return ReadOptions(**self.read, only=only, told=told, progress=progress)


@contextlib.contextmanager
def _standard_input(kind: str | None) -> Iterator[str]:
    if kind is None:
        from skpursuit.tables.errors import Advice

        advice = Advice("format", ("--format", "csv"))
        raise Refusal("standard input: it has no name that tells its format; say it", advice)
    with tempfile.NamedTemporaryFile(suffix=f".{kind}") as file:
        file.write(sys.stdin.buffer.read())
        file.flush()
        try:
            yield file.name
        except FileError as error:
            refusal = Refusal.of(error)
            refusal.problems = [
                (text.replace(file.name, "standard input"), advice) for text, advice in refusal.problems
            ]
            raise refusal from None


def source_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add FILE and the options on how it is read; the command gets a `Source` as ``source``."""

    @functools.wraps(command)
    def run(file: Path, out: Output, **given: Any) -> Any:
        read = {name: given.pop(name) for name in READING}
        return command(source=Source(file, read, out), out=out, **given)

    for option in reversed(READING.values()):
        option(run)
    return click.argument("file", type=FILE)(run)


def refuse_nan(ctx: click.Context, option: click.Parameter, value: float) -> float:
    """Refuse NaN, which lies in any range that click checks."""
    if math.isnan(value):
        raise click.BadParameter("nan is not a number in the range 0<x<=0.9.")
    return value


def said_kinds(ctx: click.Context, option: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """Take NAME=KIND apart."""
    found = {}
    for value in values:
        name, equal, kind = value.rpartition("=")
        if not equal or kind not in SAID:
            raise click.BadParameter(f"{value!r} is not NAME=KIND with a KIND of {', '.join(SAID)}.")
        found[name] = kind
    return found


def said(kind: str) -> Callable[..., dict[str, str]]:
    """Return a callback that takes names for columns of a kind."""
    return lambda ctx, option, names: dict.fromkeys(names, kind)


@click.command(
    cls=Command,
    epilog="""
    skpursuit fit houses.csv --target price --out model.json --report model.html
    skpursuit fit patients.xlsx --target ill -k 20 --column 'birth=dmy' --drop name
    skpursuit fit documents.svm -k 50 --task classification --selector certified
    cat table.tsv | skpursuit fit - --format tsv --target y --json > fit.json
    """,
)
@click.option("--target", help="The column to predict; not needed where a file stores a y.")
@click.option("-k", "k", type=click.IntRange(min=1), help="Features.  [default: cross-validated]")
@click.option("--max-k", "most", type=click.IntRange(min=1), help="The most that cross-validation tries.")
@click.option(
    "--task",
    type=click.Choice(("auto", "regression", "classification")),
    default="auto",
    show_default=True,
    help="What the target is; auto: texts and two values are classes.",
)
@click.option("--out", "model_file", type=FILE, help="Write the model here, as JSON.")
@click.option("--report", "page", type=FILE, help="Write a page for people here, as HTML.")
@click.option("--png", type=FILE, help="Draw the path here.  [default: beside --out]")
@click.option(
    "--column",
    "kinds",
    multiple=True,
    metavar="NAME=KIND",
    callback=said_kinds,
    help=f"What a column is: {', '.join(SAID)}; may be repeated.",
)
@click.option(
    "--drop", multiple=True, metavar="COLUMN", callback=said("drop"), help="Leave a column out; repeatable."
)
@click.option(
    "--categorical", multiple=True, metavar="COLUMN", callback=said("category"), help="As =category above."
)
@click.option("--decimal", type=click.Choice((".", ",")), help="Decimal sign.  [default: found out]")
@click.option("--impute/--no-impute", default=True, help="Fill missing values, or refuse.  [default: fill]")
@click.option("--schema", type=FILE, help="Take columns for what this file says.")
@click.option("--save-schema", type=FILE, help="Write what columns were taken for here.")
@click.option(
    "--solver", type=click.Choice(("omp", "mp", "cosamp", "grasp")), default="omp", show_default=True
)
@click.option("--selector", default="auto", show_default=True, help="How features are found; see the demo.")
@click.option(
    "--no-normalize", "normalize", flag_value=False, default=True, help="Features compete by their own scale."
)
@click.option(
    "--test-share",
    type=click.FloatRange(0.0, 0.9, min_open=True),
    default=0.2,
    show_default=True,
    callback=refuse_nan,
    help="Share of the rows held out for the score.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@output_options
@source_options
def fit(source: Source, out: Output, **given: Any) -> None:
    """Fit a sparse model to a table: CSV, TSV, Parquet, Excel, npz, svmlight or ARFF; - is standard input."""
    check_input(source.file)
    if given["png"] is None and given["model_file"] is not None:
        given["png"] = given["model_file"].with_suffix(".png")
    outputs = {"--out": "model_file", "--report": "page", "--png": "png", "--save-schema": "save_schema"}
    schema = given["schema"]
    check_outputs(
        [source.file, *([] if schema is None else [schema])],
        {option: given[name] for option, name in outputs.items()},
    )
    with source.opened() as (path, meter):
        table = _read(source, path, given, meter)
        _tell_columns(source.file, table, out)
        outcome = _fit(source.file, table, given, meter)
    _tell(outcome, given["k"], out)
    out.result(_as_json(table, outcome))
    _write(source.file, table, outcome, given, out)


def _read(source: Source, path: Path, given: dict[str, Any], meter: Meter) -> Table:
    from skpursuit.models.file import read_json
    from skpursuit.tables import Encoding, EncodingOptions, learn, read_columns

    kinds = {**given["categorical"], **given["kinds"], **given["drop"]}
    schema = None
    if given["schema"] is not None:
        try:
            schema = Encoding.from_dict(read_json(given["schema"], "--save-schema"))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            if isinstance(error, FileError):
                raise
            wrong = f"{given['schema']}: this is no schema; give a file that --save-schema wrote"
            raise Refusal(wrong) from None
    columns = read_columns(path, source.options(path, meter))
    meter("looking at columns", 0.0)
    return learn(columns, EncodingOptions(given["target"], kinds, given["impute"], given["decimal"]), schema)


def _fit(file: Path, table: Table, given: dict[str, Any], meter: Meter) -> Outcome:
    from skpursuit.models.fitting import FitError, FitOptions, fit_table

    names = ("k", "most", "task", "solver", "selector", "normalize", "test_share", "seed")
    reported = given["page"] is not None
    options = FitOptions(
        **{name: given[name] for name in names},
        drawn=given["png"] is not None or reported,
        reported=reported,
        progress=meter,
    )
    try:
        return fit_table(table, options)
    except FitError as error:
        raise Refusal(f"{file}: {error}", error.advice) from None
    except ValueError as error:
        raise Refusal(f"{file}: no model could be fitted: {' '.join(str(error).split())}") from None


def _tell_columns(file: Path, table: Table, out: Output) -> None:
    """Say what every column was taken for; of a wide table the ones that are not plain numbers."""
    columns = table.described()
    odd = [row for row in columns if len(columns) <= SHOWN or row["taken for"] != "number"]
    shown = [[row["column"], row["taken for"], row["missing"]] for row in odd[:SHOWN]]
    rows = table.X.shape[0]
    out.say_page("fit_columns.txt", file=file, rows=rows, dropped=table.dropped, columns=columns, shown=shown)


def _tell(outcome: Outcome, asked: int | None, out: Output) -> None:
    classes = outcome.model.classes if len(outcome.model.coef) > 1 else None
    effects = [
        [effect.feature, f"{effect.standardised:.4g}", f"{effect.raw[effect.output]:.5g}"]
        + ([] if classes is None else [str(classes[effect.output])])
        for effect in outcome.effects[:SHOWN]
    ]
    out.say_page("fit.txt", outcome=outcome, model=outcome.model, asked=asked, effects=effects, quoted=repr)


def _as_json(table: Table, outcome: Outcome) -> dict[str, Any]:
    model = outcome.model
    other = "rmse" if outcome.task == "regression" else "auc"
    return {
        "task": outcome.task,
        "classes": None if model.classes is None else list(model.classes),
        "features": dict(zip(model.features, model.coef.T.tolist())),
        "intercept": model.intercept.tolist(),
        "baseline": outcome.baseline,
        "all_features": outcome.everything,
        "path": [
            {"k": size.k, "score": size.score, other: None if math.isnan(size.other) else size.other}
            for size in outcome.sizes
        ],
        "effects": [asdict(effect) for effect in outcome.effects],
        "columns": table.described(),
        "rows_without_target": table.dropped,
        "k_is_the_largest_tried": outcome.at_limit,
        **model.info,
    }


def _write(file: Path, table: Table, outcome: Outcome, given: dict[str, Any], out: Output) -> None:
    from skpursuit.models.file import model_text

    model, page, schema = given["model_file"], given["page"], given["save_schema"]
    files: dict[str, tuple[Path, str, str | bytes]] = {}
    if given["png"] is not None and (picture := _picture(outcome, out)):
        files[f"Path: {given['png']}"] = (given["png"], "--png", picture)
    if page is not None:
        from skpursuit.models.page import model_page

        files[f"Page: {page}"] = (page, "--report", model_page(file.name, table, outcome, model))
    if schema is not None:
        text = json.dumps(table.encoding.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)
        files[f"Schema: {schema}"] = (schema, "--save-schema", text + "\n")
    if model is not None:
        use = f"Model: {model}. Use it: skpursuit predict {model} NEW_FILE"
        files[use] = (model, "--out", model_text(outcome.model))
    write_all(files.values())
    for line in files:
        out.say(line)


def _picture(outcome: Outcome, out: Output) -> bytes:
    """Return the path as a PNG; nothing where it cannot be drawn."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        out.note("No picture: matplotlib is not installed; run: pip install 'skpursuit[cli]'")
        return b""
    from skpursuit import PathDisplay

    figure = Figure(figsize=(9, 6), layout="constrained")
    axes = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    PathDisplay.from_estimator(outcome.path, feature_names=outcome.features, axes=axes)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110)
    return buffer.getvalue()


@click.command(
    cls=Command,
    epilog="""
    skpursuit predict model.json new_houses.csv
    skpursuit predict model.json new_houses.csv --id address --out predictions.csv
    skpursuit predict model.json new.tsv --json
    """,
)
@click.argument("model", type=click.Path(path_type=Path))
@click.option("--out", "predictions", type=FILE, help="Write a CSV file instead of printing.")
@click.option("--id", "ids", multiple=True, metavar="COLUMN", help="Put a column beside the predictions.")
@click.option(
    "--interval",
    type=click.FloatRange(0.0, 1.0, min_open=True, max_open=True),
    default=0.9,
    show_default=True,
    help="Share of new rows that intervals of a regression should hold.",
)
@output_options
@source_options
def predict(model: Path, source: Source, predictions: Path | None, out: Output, **given: Any) -> None:
    """Predict the rows of FILE by a MODEL that `skpursuit fit` wrote.

    Beside each prediction stand its interval, from cross-validated residuals, or the chances of all classes.
    """
    check_input(model)
    check_input(source.file)
    check_outputs([model, source.file], {"--out": predictions})
    with source.opened() as (path, meter):
        heads, rows = _predicted(model, source, path, meter, **given)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(heads)
    writer.writerows([repr(v) if isinstance(v, float) else v for v in row] for row in rows)
    if predictions is None:
        out.result([dict(zip(heads, row)) for row in rows])
        out.say(text.getvalue().rstrip("\n"))
        return
    write_all([(predictions, "--out", text.getvalue())])
    out.result({"predictions": str(predictions), "rows": len(rows)})
    out.say(f"{len(rows)} predictions: {predictions}")


def _predicted(
    model: Path, source: Source, path: Path, meter: Meter, ids: tuple[str, ...], interval: float
) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Read a file piece by piece and return the heads and rows of its predictions."""
    from skpursuit.models.file import load_model
    from skpursuit.tables import stream_columns
    from skpursuit.tables.errors import naming, refuse_all

    fitted = load_model(model)
    rows: list[tuple[Any, ...]] = []
    met: Counter[tuple[str, str]] = Counter()
    wanted = frozenset((*fitted.encoding.used, *ids))
    for columns in stream_columns(path, source.options(path, meter, wanted)):
        with naming(path):
            refuse_all(columns.unknown(name, "id") for name in ids if name not in columns.raw)
        table = fitted.encoding.apply(columns)
        for name, found in table.found.items():
            met[name, "hold categories the model does not know"] += found.unseen
            met[name, "hold no value of their kind, and are filled"] += found.missing + found.strays
        beside = [columns.raw[name].to_pylist() for name in ids]
        rows += zip(*beside, *fitted.predictions(table, interval))
    for (name, words), count in met.items():
        if count:
            source.out.note(f"{path.name}: {count} rows of column {name!r} {words}")
    return [*ids, *fitted.prediction_heads], rows
