"""``skpursuit fit`` and ``skpursuit predict``."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from skpursuit.cli.base import Command, Output, Refusal, output_options
from skpursuit.cli.outputs import check_outputs, write_all

if TYPE_CHECKING:
    from skpursuit.fitting import Outcome
    from skpursuit.tables import ReadOptions, Table

FORMATS = ("csv", "tsv", "parquet", "npz", "svmlight", "arff")
SHOWN = 30
IDENTIFIER = 0.8  # share of the rows from which different texts are noted
FILE = click.Path(path_type=Path)


def read_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options on how a file is read."""
    for option in (
        click.option("--no-header", is_flag=True, help="A CSV or TSV file has no line of names."),
        click.option(
            "--encoding", default="utf-8", show_default=True, help="How a text file spells characters."
        ),
        click.option(
            "--format", "kind", type=click.Choice(FORMATS), help="Format, if the name does not tell."
        ),
    ):
        command = option(command)
    return command


def reading(kind: str | None, encoding: str, no_header: bool, **more: Any) -> ReadOptions:
    """Collect the options on how a file is read."""
    from skpursuit.tables import ReadOptions

    return ReadOptions(kind, encoding, not no_header, **more)


def refuse_nan(ctx: click.Context, option: click.Parameter, value: float) -> float:
    """Refuse NaN, which lies in any range that click checks."""
    if math.isnan(value):
        raise click.BadParameter("nan is not a number in the range 0<x<=0.9.")
    return value


@click.command(
    cls=Command,
    epilog="""
    skpursuit fit houses.csv --target price --out model.json
    skpursuit fit patients.parquet --target ill -k 20 --impute --drop id
    skpursuit fit documents.svm -k 50 --task classification --selector certified
    skpursuit fit table.tsv --target y --json > fit.json
    """,
)
@click.argument("file", type=FILE)
@click.option("--target", help="The column to predict; not needed where a file stores a y.")
@click.option(
    "-k", "k", type=click.IntRange(min=1), help="Features in the model.  [default: cross-validated]"
)
@click.option("--max-k", "most", type=click.IntRange(min=1), help="The most that cross-validation tries.")
@click.option(
    "--task",
    type=click.Choice(("auto", "regression", "classification")),
    default="auto",
    show_default=True,
    help="What the target is; auto: texts and two values are classes.",
)
@click.option("--out", "model_file", type=FILE, help="Write the model here, as JSON.")
@click.option("--png", type=FILE, help="Draw the path here.  [default: beside --out]")
@click.option("--impute", is_flag=True, help="Fill missing values: means, most frequent categories.")
@click.option("--drop", multiple=True, metavar="COLUMN", help="Leave a column out; may be repeated.")
@click.option("--categorical", multiple=True, metavar="COLUMN", help="Numbers that are categories.")
@click.option(
    "--solver", type=click.Choice(("omp", "mp", "cosamp", "grasp")), default="omp", show_default=True
)
@click.option("--selector", default="auto", show_default=True, help="How features are found; see the demo.")
@click.option("--no-normalize", is_flag=True, help="Features compete by their own scale.")
@click.option(
    "--test-share",
    type=click.FloatRange(0.0, 0.9, min_open=True),
    default=0.2,
    show_default=True,
    callback=refuse_nan,
    help="Share of the rows held out for the score.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@read_options
@output_options
def fit(file: Path, out: Output, **given: Any) -> None:
    """Fit a sparse model to a table: CSV, TSV, Parquet, npz, svmlight or ARFF."""
    from skpursuit.fitting import FitError, FitOptions, fit_table
    from skpursuit.selectors import NAMES
    from skpursuit.tables import EncodingOptions, read_table

    if given["selector"] not in NAMES:
        raise Refusal(f"--selector {given['selector']!r} is not known; use one of {', '.join(NAMES)}")
    model_file = given["model_file"]
    png = given["png"] or (None if model_file is None else model_file.with_suffix(".png"))
    check_outputs([file], {"--out": model_file, "--png": png})
    read = reading(
        given["kind"],
        given["encoding"],
        given["no_header"],
        categorical=given["categorical"],
        drop=given["drop"],
    )
    table = read_table(file, EncodingOptions(given["target"], given["impute"]), read)
    _note_identifiers(file, table, out)
    names = ("k", "most", "task", "solver", "selector", "test_share", "seed")
    chosen = {name: given[name] for name in names}
    options = FitOptions(**chosen, normalize=not given["no_normalize"], drawn=png is not None)
    try:
        outcome = fit_table(table, options)
    except FitError as error:
        raise Refusal(f"{file}: {error}") from None
    except ValueError as error:
        raise Refusal(f"{file}: no model could be fitted: {' '.join(str(error).split())}") from None
    _tell(file, outcome, options.k, out)
    _write(outcome, model_file, png, out)


def _note_identifiers(file: Path, table: Table, out: Output) -> None:
    """Name columns of text where nearly every row is its own category: numbers with units, dates, names."""
    rows = table.X.shape[0]
    for column, labels in table.encoding.categories.items():
        if len(labels) > IDENTIFIER * rows:
            out.note(
                f"{file}: column {column!r} has {len(labels)} different texts in {rows} rows, such as "
                f"{labels[0]!r}, each a feature; write plain numbers, or drop it (--drop {column})"
            )


def _how(asked: int | None, k: int) -> str:
    if asked is None:
        return "chosen by cross-validation"
    return "as asked" if k == asked else f"lowered from {asked}: there are no more features"


def _in_line(name: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in name)


def _tell(file: Path, outcome: Outcome, asked: int | None, out: Output) -> None:
    model, info = outcome.model, outcome.model.info
    name = "R²" if outcome.task == "regression" else "accuracy"
    how = _how(asked, info["k"])
    out.say(f"{file}: {outcome.task} of {model.encoding.target!r}, {info['rows']} rows,")
    out.say(
        f"{len(outcome.features)} features of which {len(model.features)} are used (k = {info['k']}, {how})\n"
    )
    heads = ["coefficient"] if len(model.coef) == 1 else [str(label) for label in model.classes or ()]
    out.say(f"{'feature':<32}" + "".join(f"{_in_line(head[:11]):>13}" for head in heads))
    for feature, values in list(zip(model.features, model.coef.T))[:SHOWN]:
        out.say(f"{_in_line(feature[:31]):<32}" + "".join(f"{value:>13.5g}" for value in values))
    if len(model.features) > SHOWN:
        out.say(f"... and {len(model.features) - SHOWN} more; --json or --out has them all")
    out.say(f"{'(intercept)':<32}" + "".join(f"{value:>13.5g}" for value in model.intercept))
    held = info["held_out_rows"]
    out.say(f"\n{name} on {held} held-out rows: {outcome.score:.4f} (best constant: {outcome.baseline:.4f})")
    out.result(
        {
            "task": outcome.task,
            "classes": None if model.classes is None else list(model.classes),
            "features": dict(zip(model.features, model.coef.T.tolist())),
            "intercept": model.intercept.tolist(),
            "baseline": outcome.baseline,
            "path": [{"k": k, "score": score} for k, score in outcome.sizes],
            **info,
        }
    )


def _write(outcome: Outcome, model_file: Path | None, png: Path | None, out: Output) -> None:
    from skpursuit.model_file import model_text

    files: list[tuple[Path, str, str | bytes]] = []
    said = []
    if png is not None and (picture := _picture(outcome, out)):
        files.append((png, "--png", picture))
        said.append(f"Path: {png}")
    if model_file is not None:
        files.append((model_file, "--out", model_text(outcome.model)))
        said.append(f"Model: {model_file}. Use it: skpursuit predict {model_file} NEW_FILE")
    write_all(files)
    for line in said:
        out.say(line)


def _picture(outcome: Outcome, out: Output) -> bytes:
    """Return the path as a PNG; nothing where it cannot be drawn."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        out.note("No picture: matplotlib is not installed; run: pip install 'skpursuit[cli]'")
        return b""
    from skpursuit import PathDisplay

    figure = Figure(figsize=(9, 6), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    PathDisplay.from_estimator(outcome.path, feature_names=outcome.features, axes=axes)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110)
    return buffer.getvalue()


@click.command(
    cls=Command,
    epilog="""
    skpursuit predict model.json new_houses.csv
    skpursuit predict model.json new_houses.csv --out predictions.csv
    skpursuit predict model.json new.tsv --json
    """,
)
@click.argument("model", type=FILE)
@click.argument("file", type=FILE)
@click.option("--out", "predictions", type=FILE, help="Write a CSV file instead of printing.")
@read_options
@output_options
def predict(
    model: Path,
    file: Path,
    predictions: Path | None,
    kind: str | None,
    encoding: str,
    no_header: bool,
    out: Output,
) -> None:
    """Predict the rows of FILE by a MODEL that `skpursuit fit` wrote."""
    from skpursuit.model_file import load_model
    from skpursuit.tables import apply_encoding

    check_outputs([model, file], {"--out": predictions})
    fitted = load_model(model)
    table = apply_encoding(file, fitted.encoding, reading(kind, encoding, no_header))
    for column, rows in table.unseen.items():
        out.note(f"{file}: {rows} rows of column {column!r} hold categories the model does not know")
    values = fitted.predict(table).tolist()
    if predictions is None:
        out.result(values)
        out.say(_as_csv(values).rstrip("\n"))
        return
    write_all([(predictions, "--out", _as_csv(values))])
    out.result({"predictions": str(predictions), "rows": len(values)})
    out.say(f"{len(values)} predictions: {predictions}")


def _as_csv(values: list[Any]) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(["prediction"])
    writer.writerows([repr(value) if isinstance(value, float) else value] for value in values)
    return buffer.getvalue()
