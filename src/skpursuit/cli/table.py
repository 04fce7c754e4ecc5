"""``skpursuit fit`` and ``skpursuit predict``."""

from __future__ import annotations

import contextlib
import csv
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
    from skpursuit.tables import Encoding, ReadOptions, Table

FORMATS = ("csv", "tsv", "parquet", "xlsx", "npz", "svmlight", "arff")
SAID = ("number", "category", "yesno", "date", "dmy", "mdy", "ymd", "time", "drop")
SHOWN = 30  # features, and columns, of a table on the terminal
FILE = click.Path(path_type=Path, allow_dash=True)


class SolverName(click.Choice):
    """The solvers that can be told a number of coefficients, looked up for help and checked when they run."""

    @property
    def choices(self) -> tuple[str, ...]:
        """Their names."""
        from skpursuit.solvers import solver_names

        return tuple(solver_names(lambda kind: kind.has_sparsity))

    @choices.setter
    def choices(self, names: tuple[str, ...]) -> None:
        """Names given beforehand are not used."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return str(value)


def read_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options on how a file is read."""
    for option in (
        click.option("--transpose", is_flag=True, help="Rows are columns, named by the first column."),
        click.option("--skip-bad-rows", is_flag=True, help="Leave out rows with other numbers of fields."),
        click.option("--sheet", help="Sheet of a workbook.  [default: the first]"),
        click.option("--no-header", is_flag=True, help="A CSV, TSV or Excel file has no line of names."),
        click.option("--encoding", help="How a text file spells characters.  [default: recognised]"),
        click.option(
            "--format", "kind", type=click.Choice(FORMATS), help="Format, if the name does not tell."
        ),
    ):
        command = option(command)
    return command


def reading(given: dict[str, Any], path: Path, out: Output, meter: Meter, **more: Any) -> ReadOptions:
    """Collect the options on how a file is read."""
    from skpursuit.tables import ReadOptions

    size, read = max(1, path.stat().st_size), 0

    def progress(bytes_read: int) -> None:
        nonlocal read
        read += bytes_read
        meter("reading", read / size)

    meter("reading", 0.0)
    return ReadOptions(
        given["kind"], given["encoding"], not given["no_header"], given["sheet"], given["skip_bad_rows"],
        given["transpose"], told=lambda text: out.note(f"{path.name}: {text}"), progress=progress, **more,
    )  # fmt: skip


@contextlib.contextmanager
def as_file(path: Path, kind: str | None) -> Iterator[Path]:
    """Yield a path to read from: standard input is kept in a file for as long as it is needed."""
    if str(path) != "-":
        yield path
        return
    if kind is None:
        raise Refusal("standard input: it has no name that tells its format; say it", ("--format", "csv"))
    with tempfile.NamedTemporaryFile(suffix=f".{kind}") as file:
        file.write(sys.stdin.buffer.read())
        file.flush()
        try:
            yield Path(file.name)
        except FileError as error:
            refusal = Refusal.of(error)
            refusal.problems = [
                (text.replace(file.name, "standard input"), fix, instead_of)
                for text, fix, instead_of in refusal.problems
            ]
            raise refusal from None


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


@click.command(
    cls=Command,
    epilog="""
    skpursuit fit houses.csv --target price --out model.json --report model.html
    skpursuit fit patients.xlsx --target ill -k 20 --column 'birth=dmy' --drop name
    skpursuit fit documents.svm -k 50 --task classification --selector certified
    cat table.tsv | skpursuit fit - --format tsv --target y --json > fit.json
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
@click.option("--report", "page", type=FILE, help="Write a page for people here, as HTML.")
@click.option("--png", type=FILE, help="Draw the path here.  [default: beside --out]")
@click.option(
    "--column", "kinds", multiple=True, metavar="NAME=KIND", callback=said_kinds,
    help=f"What a column is: {', '.join(SAID)}; may be repeated.",
)  # fmt: skip
@click.option("--drop", multiple=True, metavar="COLUMN", help="Leave a column out; may be repeated.")
@click.option("--categorical", multiple=True, metavar="COLUMN", help="Numbers that are categories.")
@click.option("--decimal", type=click.Choice((".", ",")), help="Decimal sign.  [default: found out]")
@click.option(
    "--impute/--no-impute", default=True, help="Fill missing values, or refuse them.  [default: fill]"
)
@click.option("--schema", type=FILE, help="Take columns for what this file says.")
@click.option("--save-schema", type=FILE, help="Write what columns were taken for here.")
@click.option("--solver", type=SolverName(()), default="omp", show_default=True)
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
    """Fit a sparse model to a table: CSV, TSV, Parquet, Excel, npz, svmlight or ARFF; - is standard input."""
    model_file, page = given["model_file"], given["page"]
    png = given["png"] or (None if model_file is None else model_file.with_suffix(".png"))
    check_input(file)
    outputs = {"--out": model_file, "--report": page, "--png": png, "--save-schema": given["save_schema"]}
    check_outputs([file, *([given["schema"]] if given["schema"] else [])], outputs)
    with as_file(file, given["kind"]) as path, Meter(out) as meter:
        table = _read(path, given, out, meter)
        _tell_columns(file, table, out)
        outcome = _fit(file, table, given, png is not None, page is not None, meter)
    _tell(outcome, given["k"], out)
    out.result(_as_json(table, outcome))
    _write(file, table, outcome, given, png, out)


def _read(path: Path, given: dict[str, Any], out: Output, meter: Meter) -> Table:
    from skpursuit.tables import EncodingOptions, learn, read_columns

    kinds = {
        **dict.fromkeys(given["categorical"], "category"),
        **given["kinds"],
        **dict.fromkeys(given["drop"], "drop"),
    }
    schema = None if given["schema"] is None else _load_schema(given["schema"])
    columns = read_columns(path, reading(given, path, out, meter))
    meter("looking at columns", 0.0)
    return learn(columns, EncodingOptions(given["target"], kinds, given["impute"], given["decimal"]), schema)


def _load_schema(path: Path) -> Encoding:
    from skpursuit.tables import Encoding

    try:
        return Encoding.from_dict(json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise Refusal(
            f"{path}: cannot be read ({error.strerror}); give a file that --save-schema wrote"
        ) from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise Refusal(f"{path}: this is no schema; give a file that --save-schema wrote") from None


def _fit(
    file: Path, table: Table, given: dict[str, Any], drawn: bool, reported: bool, meter: Meter
) -> Outcome:
    from skpursuit.models.fitting import FitError, FitOptions, fit_table
    from skpursuit.selectors import NAMES

    for option, known in (("selector", tuple(NAMES)), ("solver", SolverName(()).choices)):
        if given[option] not in known:
            told = f"--{option} {given[option]!r} is not known; use one of {', '.join(known)}"
            raise Refusal(told, (), f"--{option}")
    names = ("k", "most", "task", "solver", "selector", "test_share", "seed")
    options = FitOptions(
        **{name: given[name] for name in names},
        normalize=not given["no_normalize"],
        drawn=drawn or reported,
        reported=reported,
        progress=meter,
    )
    try:
        return fit_table(table, options)
    except FitError as error:
        raise Refusal(f"{file}: {error}", error.fix, error.fix[0] if error.fix else "") from None
    except ValueError as error:
        raise Refusal(f"{file}: no model could be fitted: {' '.join(str(error).split())}") from None


def _tell_columns(file: Path, table: Table, out: Output) -> None:
    """Say what every column was taken for; of a wide table the ones that are not plain numbers."""
    rows = column_rows(table)
    counts = Counter(row["kind"] for row in rows)
    out.say(f"{file}: {table.X.shape[0]} rows, {len(rows)} columns beside the target")
    if table.dropped:
        out.say(f"{table.dropped} rows without a target are left out")
    odd = [row for row in rows if len(rows) <= SHOWN or row["taken for"] != "number"]
    lines = [[row["column"], row["taken for"], row["missing"]] for row in odd[:SHOWN]]
    out.table(["column", "taken for", "missing"], lines, left=3)
    if len(lines) < len(rows):
        kinds = ", ".join(f"{kind} {count}" for kind, count in counts.items())
        holes = sum(bool(row["missing"]) for row in rows)
        out.say(f"... in all: {kinds}; {holes} of them with missing cells; --save-schema writes them all")
    out.say()


def column_rows(table: Table) -> list[dict[str, str]]:
    """What each column was taken for, and what became of its missing cells, in words."""
    from skpursuit.tables.kinds import Found

    found = []
    for column in table.encoding.columns:
        met = table.found.get(column.name, Found())
        count = met.missing + met.strays
        missing = [f"{count} cell{'s' * (count > 1)}"] if count else []
        fill = getattr(column, "fill", None)
        if missing and column.kind == "number":
            missing.append(f"filled by {fill:.6g}")
        elif missing:
            missing.append("filled by the median date" if column.kind == "date" else "a level of their own")
        if missing and getattr(column, "flag", False):
            missing.append("and marked")
        if met.strays:
            missing.append(f"row {met.row} holds {met.cell[:20]!r}")
        found.append(
            {
                "column": column.name,
                "kind": column.kind,
                "taken for": column.words(),
                "missing": ", ".join(missing),
            }
        )
    return found


def _how(asked: int | None, k: int, outcome: Outcome) -> str:
    if asked is None:
        tried = f"best of 1 to {outcome.sizes[-1].k}" if len(outcome.sizes) > 1 else "the only one tried"
        each = " for each class" if len(outcome.model.coef) > 1 else ""
        return f"chosen by cross-validation, {tried}{each}"
    return "as asked" if k == asked else f"lowered from {asked}: there are no more features"


def _tell(outcome: Outcome, asked: int | None, out: Output) -> None:
    model, info = outcome.model, outcome.model.info
    out.say(
        f"{outcome.task} of {model.encoding.target!r}: "
        f"{len(model.features)} of {len(outcome.features)} features are used"
    )
    out.say(f"(k = {info['k']}, {_how(asked, info['k'], outcome)})")
    if outcome.at_limit:
        out.say(f"k is the largest number that was tried; --max-k {2 * info['k']} tries more")
    out.say()
    several = len(model.coef) > 1
    rows = []
    for effect in outcome.effects[:SHOWN]:
        cells = [effect.feature[:60], f"{effect.standardised:.4g}", f"{effect.raw[effect.output]:.5g}"]
        rows.append([*cells, str((model.classes or ())[effect.output])] if several else cells)
    out.table(["feature", "effect", "per unit", *(["for class"] if several else [])], rows)
    if len(outcome.effects) > SHOWN:
        out.say(f"... and {len(outcome.effects) - SHOWN} more; --json or --out has them all")
    what = (
        "the target"
        if outcome.task == "regression"
        else f"the log odds of {model.classes[-1]!r}"
        if not several and model.classes
        else "the log odds of the class"
    )
    out.say(f"effect: change of {what} where a feature is larger by its standard deviation")
    if not several:
        out.say(f"(intercept) {model.intercept[0]:.5g}")
    name = "R²" if outcome.task == "regression" else "accuracy"
    held = info["held_out_rows"]
    words = f"\n{name} on {held} held-out rows: {outcome.score:.4f} (best constant: {outcome.baseline:.4f}"
    out.say(words + (")" if outcome.everything is None else f", all features: {outcome.everything:.4f})"))


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
        "columns": column_rows(table),
        "rows_without_target": table.dropped,
        "k_is_the_largest_tried": outcome.at_limit,
        **model.info,
    }


def _write(
    file: Path, table: Table, outcome: Outcome, given: dict[str, Any], png: Path | None, out: Output
) -> None:
    from skpursuit.models.file import model_text

    files: list[tuple[Path, str, str | bytes]] = []
    said = []
    if png is not None and (picture := _picture(outcome, out)):
        files.append((png, "--png", picture))
        said.append(f"Path: {png}")
    if given["page"] is not None:
        from skpursuit.models.page import model_page

        html = model_page(file.name, table, outcome, column_rows(table), given["model_file"])
        files.append((given["page"], "--report", html))
        said.append(f"Page: {given['page']}")
    if given["save_schema"] is not None:
        schema = json.dumps(table.encoding.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)
        files.append((given["save_schema"], "--save-schema", schema + "\n"))
        said.append(f"Schema: {given['save_schema']}")
    if given["model_file"] is not None:
        files.append((given["model_file"], "--out", model_text(outcome.model)))
        said.append(f"Model: {given['model_file']}. Use it: skpursuit predict {given['model_file']} NEW_FILE")
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
    skpursuit predict model.json new_houses.csv --id address --out predictions.csv
    skpursuit predict model.json new.tsv --json
    """,
)
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("file", type=FILE)
@click.option("--out", "predictions", type=FILE, help="Write a CSV file instead of printing.")
@click.option(
    "--id", "ids", multiple=True, metavar="COLUMN", help="Put a column of FILE beside the predictions."
)
@click.option(
    "--interval", type=click.FloatRange(0.0, 1.0, min_open=True, max_open=True), default=0.9,
    show_default=True,
    help="Share of new rows that intervals of a regression should hold.",
)  # fmt: skip
@read_options
@output_options
def predict(model: Path, file: Path, out: Output, **given: Any) -> None:
    """Predict the rows of FILE by a MODEL that `skpursuit fit` wrote.

    Beside each prediction stand its interval, from cross-validated residuals, or the chances of all classes.
    """
    check_input(model)
    check_input(file)
    check_outputs([model, file], {"--out": given["predictions"]})
    with as_file(file, given["kind"]) as path, Meter(out) as meter:
        heads, rows = _predicted(model, path, given, out, meter)
    if given["predictions"] is None:
        out.result([dict(zip(heads, row)) for row in rows])
        out.say(_as_csv(heads, rows).rstrip("\n"))
        return
    write_all([(given["predictions"], "--out", _as_csv(heads, rows))])
    out.result({"predictions": str(given["predictions"]), "rows": len(rows)})
    out.say(f"{len(rows)} predictions: {given['predictions']}")


def _predicted(
    model: Path, path: Path, given: dict[str, Any], out: Output, meter: Meter
) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Read a file piece by piece and return the heads and rows of its predictions."""
    from skpursuit.models.file import load_model
    from skpursuit.tables import TableError, stream_columns
    from skpursuit.tables.columns import unknown_column
    from skpursuit.tables.errors import raise_all

    fitted = load_model(model)
    margins = fitted.margins(given["interval"])
    heads = [*given["ids"], "prediction"]
    if fitted.classes is not None:
        heads += [f"p({label})" for label in fitted.classes]
    elif margins is not None:
        heads += ["low", "high"]
    rows: list[tuple[Any, ...]] = []
    met: Counter[tuple[str, str]] = Counter()
    wanted = frozenset((*fitted.encoding.used, *given["ids"]))
    for columns in stream_columns(path, reading(given, path, out, meter, only=wanted)):
        raise_all(
            TableError(path, error.problem, error.remedy, error.fix, "--id")
            for name in given["ids"]
            if name not in columns.raw and (error := unknown_column(path, name, columns.all_names, "--id"))
        )
        table = fitted.encoding.apply(columns)
        for name, found in table.found.items():
            met[name, "hold categories the model does not know"] += found.unseen
            met[name, "hold no value of their kind, and are filled"] += found.missing + found.strays
        parts: list[Any] = [columns.raw[name].to_pylist() for name in given["ids"]]
        guesses = fitted.predict(table)
        parts.append(guesses.tolist())
        if fitted.classes is not None:
            parts += fitted.probabilities(table).T.round(6).tolist()
        elif margins is not None:
            parts += [(guesses + margin).tolist() for margin in margins]
        rows += zip(*parts)
    for (name, words), count in met.items():
        if count:
            out.note(f"{path.name}: {count} rows of column {name!r} {words}")
    return heads, rows


def _as_csv(heads: list[str], rows: list[tuple[Any, ...]]) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(heads)
    writer.writerows([repr(v) if isinstance(v, float) else v for v in row] for row in rows)
    return buffer.getvalue()
