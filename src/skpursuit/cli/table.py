"""``skpursuit fit`` and ``skpursuit predict``."""

from __future__ import annotations

import contextlib
import csv
import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from skpursuit._files import write_atomically
from skpursuit.cli.base import Command, Output, Refusal, output_options

if TYPE_CHECKING:
    from skpursuit.fitting import Outcome
    from skpursuit.tables import ReadOptions

FORMATS = ("csv", "tsv", "parquet", "npz", "svmlight", "arff")
SHOWN = 30
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


@contextlib.contextmanager
def writing(path: Path, option: str) -> Iterator[None]:
    """Turn a file that cannot be written into one line."""
    try:
        yield
    except OSError as error:
        raise Refusal(
            f"{path}: cannot be written ({error.strerror or error}); give another file ({option})"
        ) from None


def check_folder(path: Path | None, option: str) -> None:
    """Refuse early what could not be written at the end."""
    if path is not None and (path.is_dir() or not path.absolute().parent.is_dir()):
        what = "this is a folder" if path.is_dir() else f"there is no folder {path.parent}"
        raise Refusal(f"{path}: {what}; give a file in a folder that exists ({option})")


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
    model_file, png = given["model_file"], given["png"]
    check_folder(model_file, "--out")
    check_folder(png, "--png")
    read = reading(
        given["kind"],
        given["encoding"],
        given["no_header"],
        categorical=given["categorical"],
        drop=given["drop"],
    )
    table = read_table(file, EncodingOptions(given["target"], given["impute"]), read)
    names = ("k", "most", "task", "solver", "selector", "test_share", "seed")
    options = FitOptions(**{name: given[name] for name in names}, normalize=not given["no_normalize"])
    try:
        outcome = fit_table(table, options)
    except FitError as error:
        raise Refusal(f"{file}: {error}") from None
    except ValueError as error:
        raise Refusal(f"{file}: no model could be fitted: {' '.join(str(error).split())}") from None
    _tell(file, outcome, options.k is None, out)
    _write(outcome, model_file, png, out)


def _tell(file: Path, outcome: Outcome, chosen: bool, out: Output) -> None:
    model, info = outcome.model, outcome.model.info
    name = "R²" if outcome.task == "regression" else "accuracy"
    how = "chosen by cross-validation" if chosen else "as asked"
    out.say(f"{file}: {outcome.task} of {model.encoding.target!r}, {info['rows']} rows,")
    out.say(
        f"{len(outcome.features)} features of which {len(model.features)} are used (k = {info['k']}, {how})\n"
    )
    heads = ["coefficient"] if len(model.coef) == 1 else [str(label) for label in model.classes or ()]
    out.say(f"{'feature':<32}" + "".join(f"{head[:11]:>13}" for head in heads))
    for feature, values in list(zip(model.features, model.coef.T))[:SHOWN]:
        out.say(f"{feature[:31]:<32}" + "".join(f"{value:>13.5g}" for value in values))
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
    from skpursuit.model_file import save_model

    png = png or (None if model_file is None else model_file.with_suffix(".png"))
    if png is not None:
        with writing(png, "--png"):
            _draw(outcome, png, out)
    if model_file is not None:
        with writing(model_file, "--out"):
            save_model(model_file, outcome.model)
        out.say(f"Model: {model_file}. Use it: skpursuit predict {model_file} NEW_FILE")


def _draw(outcome: Outcome, png: Path, out: Output) -> None:
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        out.note("No picture: matplotlib is not installed; run: pip install 'skpursuit[cli]'")
        return
    from skpursuit import PathDisplay

    figure = Figure(figsize=(9, 6), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    PathDisplay.from_estimator(outcome.path, feature_names=outcome.features, axes=axes)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110)
    write_atomically(png, buffer.getvalue())
    out.say(f"Path: {png}")


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

    check_folder(predictions, "--out")
    fitted = load_model(model)
    table = apply_encoding(file, fitted.encoding, reading(kind, encoding, no_header))
    for column, rows in table.unseen.items():
        out.note(f"{file}: {rows} rows of column {column!r} hold categories the model does not know")
    values = fitted.predict(table).tolist()
    if predictions is None:
        out.result(values)
        out.say(_as_csv(values).rstrip("\n"))
        return
    with writing(predictions, "--out"):
        write_atomically(predictions, _as_csv(values))
    out.result({"predictions": str(predictions), "rows": len(values)})
    out.say(f"{len(values)} predictions: {predictions}")


def _as_csv(values: list[Any]) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(["prediction"])
    writer.writerows([repr(value) if isinstance(value, float) else value] for value in values)
    return buffer.getvalue()
