"""A sparse model of a table: the task, the number of features, and how far each can be trusted.

The number of features is chosen by cross-validation on a part of the rows. The scorer that the estimator
calls for every fold and size also keeps what was predicted there, so that one cross-validation gives the
choice, the scores in units people know, the residuals that intervals are made of, and the pictures of a
report. The rest of the rows gives one honest score; the model itself is fitted to all rows.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_predict, train_test_split

import skpursuit
from skpursuit.models.file import LinearModel, linear_model
from skpursuit.tables import Table

FEWEST_ROWS = 10
FEWEST_OF_A_CLASS = 4
FEWEST_HELD_OUT = 2  # R2 of one row is not defined
FOLDS = 5
LARGEST_TARGET = 1e75  # the spread of squared errors takes fourth powers, which overflow beyond
QUANTILES = (0.005, 0.025, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.975, 0.995)  # of residuals, kept
BOOTSTRAPS = 50
ALL_FEATURES_CELLS = 2e7  # of X, up to which a model of all features is fitted to compare with


class FitError(ValueError):
    """A table that no model can be fitted to; the message says why, ``fix`` holds an option that helps."""

    def __init__(self, message: str, fix: Sequence[str] = ()):
        super().__init__(message)
        self.fix = tuple(fix)


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
        Whether scores of all sizes are needed though k is given, because somebody draws them.
    reported : bool
        Whether bootstrap intervals and a model of all features are needed.
    progress : callable
        Told what is being done, as (words, share done).
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
    reported: bool = False
    progress: Callable[[str, float], None] = lambda words, share: None


@dataclass(frozen=True)
class Size:
    """A number of features and how good it is in cross-validation: R2 and RMSE, or accuracy and AUC."""

    k: int
    score: float
    other: float


@dataclass(frozen=True)
class Effect:
    """What one feature does.

    Attributes
    ----------
    feature : str
        Its name.
    raw : tuple of float
        The coefficient, one per output: what one unit more changes.
    standardised : float
        The coefficient times the standard deviation of the feature, of the output where it is largest.
    output : int
        That output.
    low, high : float or None
        The 5th and the 95th percentile of `standardised` over bootstrap refits.
    chosen : float or None
        Share of the refits that chose the feature.
    """

    feature: str
    raw: tuple[float, ...]
    standardised: float
    output: int = 0
    low: float | None = None
    high: float | None = None
    chosen: float | None = None


@dataclass(frozen=True)
class Outcome:
    """A fitted table.

    Attributes
    ----------
    model : LinearModel
        Fitted on all rows.
    task : str
        "regression" or "classification".
    score, baseline, everything : float
        R2 or accuracy on held-out rows: of a model of the other rows, of the best constant, and of a model
        of all features (None where none was fitted).
    sizes : sequence of Size
        Numbers of features that were tried, with their cross-validated scores; empty where k was given.
    effects : list of Effect
        The features of the model, the most important first.
    path : estimator or None
        The estimator whose path can be drawn.
    features : tuple of str
        Names of all columns of the path's X.
    actual, predicted : ndarray
        Targets, and their predictions by models that did not see them; of classes a table of chances.
    at_limit : bool
        Whether the largest number of features that was tried is the best.
    """

    model: LinearModel
    task: str
    score: float
    baseline: float
    everything: float | None
    sizes: Sequence[Size]
    effects: list[Effect]
    path: Any
    features: tuple[str, ...]
    actual: np.ndarray
    predicted: np.ndarray
    at_limit: bool = False


def task_of(y: np.ndarray) -> str:
    """Texts and two different numbers are classes; other numbers are quantities."""
    return "classification" if y.dtype.kind not in "fiub" or len(np.unique(y)) == 2 else "regression"


def fit_table(table: Table, options: FitOptions) -> Outcome:
    """Fit a sparse model to a table and judge it.

    Raises
    ------
    FitError
        If the table has too few rows, or classes of too few.
    """
    y = np.asarray(table.y)
    task = task_of(y) if options.task == "auto" else options.task
    _check_target(y, task, table.X.shape)
    train, test = _split(y, task, options)
    X_train, X_test = take_rows(table.X, train), take_rows(table.X, test)
    judged = _judge(X_train, y[train], task, options)
    k = min(options.k or judged.choice, table.X.shape[1])
    options.progress("fitting", 0.0)
    score = _fixed(X_train, y[train], task, k, options).score(X_test, y[test])
    if not np.isfinite(score):
        raise FitError("its numbers are too large to compute with; give columns in larger units")
    everything = _everything(table.X, y, train, test, task) if options.reported else None
    final = _fixed(table.X, y, task, k, options)
    actual, predicted = judged.at(k)
    info: dict[str, Any] = {
        "rows": len(y),
        "k": k,
        "solver": options.solver,
        "selector": options.selector,
        "held_out_score": float(score),
        "held_out_rows": len(test),
        "score": "R2" if task == "regression" else "accuracy",
    }
    if task == "regression":
        left = np.quantile(actual - predicted, QUANTILES)
        info["residuals"] = {str(place): value for place, value in zip(QUANTILES, left.tolist())}
    classes = None if task == "regression" else final.classes_
    model = linear_model(table, final.coef_, final.intercept_, classes, info)
    effects = _effects(table, y, task, k, np.atleast_2d(final.coef_), options)
    sizes = (
        []
        if options.k and not options.drawn
        else judged.sizes(task, None if classes is None else list(classes))
    )
    limit = len(sizes) > 1 and k == sizes[-1].k and k < table.X.shape[1] and options.k is None
    return Outcome(
        model,
        task,
        float(score),
        _constant(y, train, test, task),
        everything,
        sizes,
        effects,
        judged.path,
        table.features,
        actual,
        predicted,
        limit,
    )


def take_rows(X: Any, rows: np.ndarray) -> Any:
    """Return some rows, column after column in memory if X is so: solvers gather columns."""
    fortran = isinstance(X, np.ndarray) and X.flags.f_contiguous and not X.flags.c_contiguous
    return np.take(X.T, rows, axis=1).T if fortran else X[rows]


def _check_target(y: np.ndarray, task: str, shape: tuple[int, int]) -> None:
    if shape[0] < FEWEST_ROWS:
        raise FitError(f"it has {shape[0]} rows; a model needs at least {FEWEST_ROWS}: add rows")
    if task == "regression":
        if y.dtype.kind not in "fiub":
            raise FitError("the target holds texts, not numbers", ("--task", "classification"))
        if np.all(y == y[0]):
            raise FitError("the target has the same value in every row; give another one (--target)")
        if np.abs(y).max() > LARGEST_TARGET:
            raise FitError(f"the target goes beyond {LARGEST_TARGET:g}; give it in a larger unit")
        return
    labels, counts = np.unique(y, return_counts=True)
    if len(labels) < 2:
        raise FitError("the target has one class only; give another one (--target)")
    if len(labels) > len(y) // 2:
        numbers = y.dtype.kind in "fiub"
        advice = "it may be a quantity" if numbers else "give a target with fewer classes (--target)"
        fix = ("--task", "regression") if numbers else ()
        raise FitError(f"the target has {len(labels)} classes in {len(y)} rows; {advice}", fix)
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
    return np.sort(train), np.sort(test)


def _check_share(n: int, share: float, fewest: int, kept: int) -> None:
    """Refuse a share that holds out fewer rows than `fewest`, or leaves fewer than `kept`."""
    held = math.ceil(share * n)
    if held < fewest or n - held < kept:
        low, high = math.ceil(100 * fewest / n) / 100, min(0.9, math.floor(100 * (n - kept) / n) / 100)
        raise FitError(
            f"of its {n} rows {held} would be held out; use a --test-share from {low:g} to {high:g}, "
            f"so that at least {fewest} are held out and {kept} are not",
            ("--test-share", f"{(low + high) / 2:.2g}"),
        )


@dataclass
class _Judged:
    """Cross-validated predictions for numbers of features from 1 on, fold by fold."""

    path: Any = None
    choice: int = 1
    folds: list[tuple[np.ndarray, list[np.ndarray]]] = field(default_factory=list)

    def record(self, actual: np.ndarray, predicted: np.ndarray) -> None:
        """Keep the predictions of one fold and size; sizes of a fold come one after the other."""
        if not self.folds or self.folds[-1][0] is not actual:
            same = self.folds and np.array_equal(self.folds[-1][0], actual)
            if not same:
                self.folds.append((actual, []))
        self.folds[-1][1].append(predicted)

    def at(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return targets and predictions of all folds; a path that ended early repeats its last size."""
        actual = np.concatenate([one for one, _ in self.folds])
        return actual, np.concatenate([sizes[min(k, len(sizes)) - 1] for _, sizes in self.folds])

    def sizes(self, task: str, classes: list[Any] | None) -> list[Size]:
        """Return every size with its scores."""
        length = min(len(sizes) for _, sizes in self.folds)
        return [Size(k, *_scores(*self.at(k), task, classes)) for k in range(1, length + 1)]


def _scores(
    actual: np.ndarray, predicted: np.ndarray, task: str, classes: list[Any] | None
) -> tuple[float, float]:
    """R2 and RMSE, or accuracy and (for two classes) AUC."""
    if classes is None:
        left = float(np.mean((actual - predicted) ** 2))
        spread = float(np.var(actual))
        return (1 - left / spread if spread > 0 else 0.0), math.sqrt(left)
    accuracy = float(np.mean(np.asarray(classes)[np.argmax(predicted, axis=1)] == actual))
    return accuracy, (roc_auc_score(actual == classes[1], predicted[:, 1]) if len(classes) == 2 else math.nan)


def _judge(X: Any, y: np.ndarray, task: str, options: FitOptions) -> _Judged:
    """Cross-validate all numbers of features up to a limit; only k where it is given and nothing is drawn."""
    judged = _Judged()
    folds = _folds(y, task, options)
    if options.k is not None and not options.drawn:
        estimator = _estimator(task, min(options.k, X.shape[1]), options)
        method = "predict" if task == "regression" else "predict_proba"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            judged.record(y, cross_val_predict(estimator, X, y, cv=folds, method=method))
        return judged
    calls = 0

    def scorer(model: Any, rows: Any, actual: np.ndarray, **given: Any) -> float:
        nonlocal calls
        calls += 1
        guess = model.predict(rows) if task == "regression" else model.predict_proba(rows)
        judged.record(actual, np.array(guess))
        options.progress("cross-validation", len(judged.folds) / (folds.n_splits + 1))
        if task == "regression":
            return -float(np.mean((actual - guess) ** 2))
        return float(np.mean(model.classes_[np.argmax(guess, axis=1)] == actual))

    most = options.k or options.most
    kind = skpursuit.PursuitRegressorCV if task == "regression" else skpursuit.PursuitClassifierCV
    estimator = kind(
        cv=folds,
        scoring=scorer,
        max_nonzero_coefs=None if most is None else min(most, X.shape[1]),
        **_common(options),
    )
    judged.path = _quietly(estimator, X, y)
    judged.choice = int(judged.path.n_nonzero_coefs_)
    return judged


def _folds(y: np.ndarray, task: str, options: FitOptions) -> Any:
    if task == "regression":
        return KFold(FOLDS, shuffle=True, random_state=options.seed)
    fewest = int(np.unique(y, return_counts=True)[1].min())
    return StratifiedKFold(max(2, min(FOLDS, fewest)), shuffle=True, random_state=options.seed)


def _common(options: FitOptions) -> dict[str, Any]:
    return {
        "solver": options.solver,
        "selector": options.selector,
        "normalize": options.normalize,
        "random_state": options.seed,
    }


def _estimator(task: str, k: int, options: FitOptions) -> Any:
    kind = skpursuit.PursuitRegressor if task == "regression" else skpursuit.PursuitClassifier
    return kind(n_nonzero_coefs=k, **_common(options))


def _fixed(X: Any, y: np.ndarray, task: str, k: int, options: FitOptions) -> Any:
    """A model of k features."""
    return _quietly(_estimator(task, k, options), X, y)


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


def _everything(X: Any, y: np.ndarray, train: np.ndarray, test: np.ndarray, task: str) -> float | None:
    """The score of a model of all features, lightly ridged; None where X is large."""
    from sklearn.linear_model import LogisticRegression, RidgeCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    if X.shape[0] * X.shape[1] > ALL_FEATURES_CELLS:
        return None
    model = RidgeCV(np.logspace(-3, 3, 7)) if task == "regression" else LogisticRegression(max_iter=300)
    whole = make_pipeline(StandardScaler(with_mean=not isinstance(X, csr_array)), model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it has not converged to the last digit does not matter here
        return float(whole.fit(X[train], y[train]).score(X[test], y[test]))


def _effects(
    table: Table, y: np.ndarray, task: str, k: int, coef: np.ndarray, options: FitOptions
) -> list[Effect]:
    """Return the features of a model, the most important first, with bootstrap intervals where wanted."""
    used = np.flatnonzero(np.any(coef != 0, axis=0))
    X = table.X[:, used]
    X = X.toarray() if isinstance(X, csr_array) else X
    scale = X.std(axis=0)
    effects = coef[:, used] * scale
    outputs = np.argmax(np.abs(effects), axis=0)
    every = _bootstrap(table, y, task, k, options) if options.reported else None
    found = []
    for i, j in enumerate(used.tolist()):
        output = int(outputs[i])
        band: dict[str, Any] = {}
        if every is not None:
            values = every[:, output, j] * scale[i]
            low, high = np.percentile(values, [5, 95])
            chosen = float(np.mean(np.any(every[:, :, j] != 0, axis=1)))
            band = {"low": float(low), "high": float(high), "chosen": chosen}
        raw = tuple(coef[:, j].tolist())
        found.append(Effect(table.features[j], raw, float(effects[output, i]), output, **band))
    return sorted(found, key=lambda effect: -abs(effect.standardised))


def _bootstrap(table: Table, y: np.ndarray, task: str, k: int, options: FitOptions) -> np.ndarray:
    """Return the coefficients of models of drawn rows, each with its features selected anew."""
    rng = np.random.default_rng([options.seed, 1])
    found: list[np.ndarray] = []
    while len(found) < BOOTSTRAPS:
        options.progress("bootstrap", len(found) / BOOTSTRAPS)
        rows = rng.integers(len(y), size=len(y))
        if task == "classification":  # a class that was not drawn would have no coefficients
            rows = np.concatenate(
                [rng.choice(np.flatnonzero(y == label), (y == label).sum()) for label in np.unique(y)]
            )
        found.append(np.atleast_2d(_fixed(take_rows(table.X, rows), y[rows], task, k, options).coef_))
    return np.array(found)
