"""A sparse model of Parquet files that need not fit in memory.

X stays in its files, which are read tile by tile, and its columns must be numbers without missing values. In
memory are vectors of one number per row: target, weights (zero for rows that do not count) and predictions.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.metrics import accuracy_score, r2_score
from sklearn.preprocessing import StandardScaler

from skpursuit.data import Design
from skpursuit.data.disk.parquet_source import is_numeric
from skpursuit.progress import current_monitor

from ..tables import (
    EncodedTable,
    EncodingOptions,
    RawTable,
    ReadOptions,
    is_parquet,
    read_columns,
    stream_columns,
)
from ..tables.column_kinds import AnyKind, Number, YesNo
from ..tables.encoding import TableEncoding, extract_target, unknown_names
from ..tables.errors import TableProblem, attach_path, raise_problems
from ..tables.infer_kinds import infer_kinds
from ..tables.readers import columns_with_nulls, parquet_types
from .fit_table import (
    FeatureEffect,
    FitOptions,
    FitReport,
    fit_estimator,
    model_info,
    resolve_options,
    split_rows,
)
from .model_file import LinearModel, linear_model

MIN_FEATURES_TRIED = 50  # features that are tried at least, if there are as many


def fit_out_of_core(
    path: Path, said: EncodingOptions, options: FitOptions, source: Callable[..., Design], read: ReadOptions
) -> tuple[EncodedTable, FitReport]:
    """Fit a model to a Parquet file or a folder of them; the table that is returned holds no X.

    ``source`` returns the design of some columns, given as ``columns``.
    """
    table, keep = _read_target(path, said, read)
    y = np.asarray(table.y)
    with attach_path(path):
        options, d = resolve_options(y[keep], len(table.features), options), len(table.features)
        if options.solver == "auto":
            most = options.most or min(d, max(MIN_FEATURES_TRIED, d // 10), max(1, int(keep.sum()) // 2))
            options = replace(options, solver="omp", most=most)
        train, test = (np.flatnonzero(keep)[rows] for rows in split_rows(y[keep], options))
    current_monitor().set_message("fitting")
    names, weights = [kind.name for kind in table.encoding.columns], np.zeros(len(y))
    weights[train] = 1.0
    try:
        X = source(columns=names)
        trial = fit_estimator(X, y, options, weights)
        final = fit_estimator(X, y, options, None if keep.all() else keep.astype(float))
    except ValueError as error:  # of a column that X knows by its number
        said_better = re.sub(r"column (\d+)", lambda found: f"column {names[int(found[1])]!r}", str(error))
        raise ValueError(said_better) from None
    current_monitor().set_message("evaluating")
    classes = None if options.task == "regression" else final.classes_
    tried, fitted = (linear_model(table, one.coef_, one.intercept_, classes) for one in (trial, final))
    guesses, _ = _predict_streaming(path, tried, read, keep)
    _, moments = _predict_streaming(path, fitted, read, keep)
    said_classes = guesses[test] if classes is None else classes[np.argmax(guesses[test], axis=1)]
    constant = (DummyRegressor() if classes is None else DummyClassifier()).fit(y[train, None], y[train])
    score = r2_score if classes is None else accuracy_score
    info = model_info(final, options, y[test], guesses[test])
    info |= {"rows": int(keep.sum()), "held_out_rows": len(test), "rare_classes": {}}
    info["held_out_score"] = float(score(y[test], said_classes))
    filled = tuple(
        Number(kind.name, moments.get(kind.name, (None,))[0]) if isinstance(kind, Number) else kind
        for kind in table.encoding.columns
    )
    encoding = TableEncoding(table.encoding.target, filled, table.encoding.target_kind)
    table = replace(table, encoding=encoding, dropped=int((~keep).sum()))
    model = linear_model(table, final.coef_, final.intercept_, classes, info)
    effects = [
        FeatureEffect.of(feature, coef, moments[kind.name][1], column=kind.name)
        for kind in model.encoding.columns
        for feature, coef in zip(model.features, model.coef.T)
        if feature in kind.features
    ]
    report = FitReport(
        model=model,
        baseline=float(score(y[test], constant.predict(y[test, None]))),
        effects=sorted(effects, key=lambda effect: -abs(effect.standardised)),
        features=table.features,
        actual=y[test],
        predicted=guesses[test],
        evaluated_by="rows held out",
        chosen=options.k is None,
        at_limit=options.k is None and info["k"] == int(final.path_sizes_.max()) < d,
    )
    return table, report


def _read_target(path: Path, said: EncodingOptions, read: ReadOptions) -> tuple[EncodedTable, np.ndarray]:
    """Return a table with all rows of the target but no X, and which rows have one."""
    target = str(said.target)
    with attach_path(path):
        if not is_parquet(path, read):
            raise TableProblem("not Parquet")
        if set(said.kinds.values()) - {"drop"}:
            raise TableProblem("kinds of large tables")
        types = parquet_types(path)
        names_alone = RawTable.of(path, types, [pyarrow.nulls(1, pyarrow.string())] * len(types))
        raise_problems(unknown_names(names_alone, said))
        left_out = {target, *(name for name, kind in said.kinds.items() if kind == "drop")}
        types = {name: kind for name, kind in types.items() if name not in left_out}
        words, nulls = {n for n, kind in types.items() if not is_numeric(kind)}, columns_with_nulls(path)
        for problem, found in (("not numeric", words), ("nulls on the disk", nulls)):
            if bad := [name for name in types if name in found]:
                raise TableProblem(problem, *(part for name in bad for part in ("--drop", name)), names=bad)
        kinds: list[AnyKind] = [YesNo(n, "true") if str(t) == "bool" else Number(n) for n, t in types.items()]
        columns = read_columns(path, replace(read, only=frozenset([target])))
        kind = infer_kinds(columns.raw, said)[target]
        y, keep = extract_target(columns, target, kind, target in said.kinds)
    encoding = TableEncoding(target, tuple(kinds), kind)
    y = np.where(keep, y, y[keep][0])  # a row of no weight may have any target, but none that is missing
    return EncodedTable(np.empty((len(y), 0)), y, encoding.features, encoding, path=str(path)), keep


def _predict_streaming(
    path: Path, model: LinearModel, read: ReadOptions, keep: np.ndarray
) -> tuple[np.ndarray, dict[str, tuple[float, float]]]:
    """Return predictions (of classes: chances) of all rows, and mean and spread of the model's columns.

    Only rows that are kept count in the latter.
    """
    guesses: list[np.ndarray] = []
    scaler, rows = StandardScaler(), 0
    for columns in stream_columns(path, replace(read, only=frozenset(model.encoding.used))):
        table = model.encoding.apply(columns)
        with attach_path(path):
            guesses.append(model.predict(table) if model.classes is None else model.probabilities(table))
        if (part := table.X[keep[rows : rows + columns.n_rows]]).size:
            scaler.partial_fit(part)
        rows += columns.n_rows
    moments = zip(scaler.mean_.tolist(), np.sqrt(scaler.var_).tolist()) if model.encoding.used else ()
    return np.concatenate(guesses), dict(zip(model.encoding.used, moments))
