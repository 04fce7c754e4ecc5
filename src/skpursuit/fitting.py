"""A sparse model of a table: the task, the number of features, a held-out score, and what is kept."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold, train_test_split

from skpursuit.model_file import LinearModel, linear_model
from skpursuit.tables import Table

FEWEST_ROWS = 10
FEWEST_OF_A_CLASS = 4
FEWEST_HELD_OUT = 2  # R2 of one row is not defined
FOLDS = 5
LARGEST_TARGET = 1e75  # the spread of squared errors takes fourth powers, which overflow beyond


class FitError(ValueError):
    """A table that no model can be fitted to; the message says why and what to do."""


@dataclass(frozen=True)
class FitOptions:
    """Choices of a fit.

    Attributes
    ----------
    k : int or None
        Features in the model; None chooses by cross-validation.
    most : int or None
        The largest number that cross-validation tries.
    task : {"auto", "regression", "classification"}
        What the target is.
    solver, selector : str
        See `PursuitRegressor`.
    normalize : bool
        Whether features compete as if all had the same spread.
    test_share : float
        Share of the rows that are held out for the score.
    seed : int
        Seed of the splits and of randomised selectors.
    drawn : bool
        Whether a path is needed though k is given, because somebody draws it.
    """

    k: int | None = None
    most: int | None = None
    task: str = "auto"
    solver: str = "omp"
    selector: str = "auto"
    normalize: bool = True
    test_share: float = 0.2
    seed: int = 0
    drawn: bool = True


@dataclass(frozen=True)
class Outcome:
    """A fitted table.

    Attributes
    ----------
    model : LinearModel
        Fitted on all rows.
    task : str
        "regression" or "classification".
    score, baseline : float
        R² or accuracy on held-out rows, of a model of the other rows; and of the best constant.
    path : estimator or None
        The estimator whose path can be drawn; None where k was given and nobody draws one.
    features : tuple of str
        Names of all columns of the path's X.
    sizes : sequence of (int, float)
        Numbers of features tried, and their cross-validated scores; empty when k was given.
    """

    model: LinearModel
    task: str
    score: float
    baseline: float
    path: Any
    features: tuple[str, ...]
    sizes: Sequence[tuple[int, float]] = field(default_factory=tuple)


def task_of(y: np.ndarray) -> str:
    """Texts and two different numbers are classes; other numbers are quantities."""
    return "classification" if y.dtype.kind not in "fiub" or len(np.unique(y)) == 2 else "regression"


def fit_table(table: Table, options: FitOptions) -> Outcome:
    """Fit a sparse model to a table and score it on held-out rows.

    Raises
    ------
    FitError
        If the table has too few rows, or classes of too few.
    """
    y = np.asarray(table.y)
    task = task_of(y) if options.task == "auto" else options.task
    _check_target(y, task, table.X.shape)
    train, test = _split(y, task, options)
    judged: Any = None
    if options.k is None or options.drawn:
        judged = _path(table.X[train], y[train], task, options)
    k = min(options.k or int(judged.n_nonzero_coefs_), table.X.shape[1])
    score = _fixed(table.X[train], y[train], task, k, options).score(table.X[test], y[test])
    if not np.isfinite(score):
        raise FitError("its numbers are too large to compute with; give columns in larger units")
    final = _fixed(table.X, y, task, k, options)
    info = {
        "rows": len(y),
        "k": k,
        "solver": options.solver,
        "selector": options.selector,
        "held_out_score": float(score),
        "held_out_rows": len(test),
        "score": "R2" if task == "regression" else "accuracy",
    }
    classes = None if task == "regression" else final.classes_
    model = linear_model(table, final.coef_, final.intercept_, classes, info)
    sizes = () if options.k else tuple(enumerate(judged.scores_.mean(axis=0).tolist(), start=1))
    return Outcome(model, task, float(score), _constant(y, train, test, task), judged, table.features, sizes)


def _check_target(y: np.ndarray, task: str, shape: tuple[int, int]) -> None:
    if shape[0] < FEWEST_ROWS:
        raise FitError(f"it has {shape[0]} rows; a model needs at least {FEWEST_ROWS}: add rows")
    if task == "regression":
        if y.dtype.kind not in "fiub":
            raise FitError("the target holds texts, not numbers; use --task classification")
        if np.all(y == y[0]):
            raise FitError("the target has the same value in every row; give another one (--target)")
        if np.abs(y).max() > LARGEST_TARGET:
            raise FitError(f"the target goes beyond {LARGEST_TARGET:g}; give it in a larger unit")
        return
    labels, counts = np.unique(y, return_counts=True)
    if len(labels) < 2:
        raise FitError("the target has one class only; give another one (--target)")
    if len(labels) > len(y) // 2:
        raise FitError(f"the target has {len(labels)} classes in {len(y)} rows; use --task regression")
    if counts.min() < FEWEST_OF_A_CLASS:
        rare = labels[int(np.argmin(counts))]
        raise FitError(
            f"class {str(rare)!r} has {counts.min()} row(s); give every class at least {FEWEST_OF_A_CLASS}, "
            "or remove its rows"
        )


def _split(y: np.ndarray, task: str, options: FitOptions) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows to fit and those held out, of every class as large a share."""
    labels, codes = np.unique(y, return_inverse=True)
    classes = task == "classification"
    fewest, kept = (len(labels), 2 * len(labels)) if classes else (FEWEST_HELD_OUT, FOLDS)
    _check_share(len(y), options.test_share, fewest, kept)
    stratify = codes if classes else None
    train, test = train_test_split(
        np.arange(len(y)), test_size=options.test_share, random_state=options.seed, stratify=stratify
    )
    if classes and np.bincount(codes[train], minlength=len(labels)).min() < 2:
        raise FitError("a class is left with fewer than 2 rows to learn from; hold out less (--test-share)")
    return train, test


def _check_share(n: int, share: float, fewest: int, kept: int) -> None:
    """Refuse a share that holds out fewer rows than `fewest`, or leaves fewer than `kept`."""
    held = math.ceil(share * n)
    if held < fewest or n - held < kept:
        low, high = math.ceil(100 * fewest / n) / 100, min(0.9, math.floor(100 * (n - kept) / n) / 100)
        raise FitError(
            f"of its {n} rows {held} would be held out; use a --test-share from {low:g} to {high:g}, "
            f"so that at least {fewest} are held out and {kept} are not"
        )


def _path(X: Any, y: np.ndarray, task: str, options: FitOptions) -> Any:
    """All numbers of features up to a limit; cross-validated unless k is given."""
    import skpursuit

    most = options.k or options.most
    given: dict[str, Any] = {
        "solver": options.solver,
        "selector": options.selector,
        "normalize": options.normalize,
        "random_state": options.seed,
        "max_nonzero_coefs": None if most is None else min(most, X.shape[1]),
        "criterion": "bic" if options.k else "cv",
    }
    if task == "regression":
        folds = KFold(FOLDS, shuffle=True, random_state=options.seed)
        return _quietly(skpursuit.PursuitRegressorCV(cv=folds, **given), X, y)
    fewest = int(np.unique(y, return_counts=True)[1].min())
    stratified = StratifiedKFold(max(2, min(FOLDS, fewest)), shuffle=True, random_state=options.seed)
    return _quietly(skpursuit.PursuitClassifierCV(cv=stratified, scoring="accuracy", **given), X, y)


def _fixed(X: Any, y: np.ndarray, task: str, k: int, options: FitOptions) -> Any:
    """A model of k features."""
    import skpursuit

    kind = skpursuit.PursuitRegressor if task == "regression" else skpursuit.PursuitClassifier
    estimator = kind(
        solver=options.solver,
        selector=options.selector,
        n_nonzero_coefs=k,
        normalize=options.normalize,
        random_state=options.seed,
    )
    return _quietly(estimator, X, y)


def _quietly(estimator: Any, X: Any, y: np.ndarray) -> Any:
    """Fit; that columns depend on each other is usual in tables (indicators) and no news."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return estimator.fit(X, y)


def _constant(y: np.ndarray, train: np.ndarray, test: np.ndarray, task: str) -> float:
    """The score of the best constant."""
    if task == "classification":
        labels, counts = np.unique(y[train], return_counts=True)
        return float(np.mean(y[test] == labels[int(np.argmax(counts))]))
    total = float(np.sum((y[test] - y[test].mean()) ** 2))
    return 1.0 - float(np.sum((y[test] - y[train].mean()) ** 2)) / total if total > 0 else 0.0
