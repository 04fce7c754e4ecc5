"""A sparse model of a table: the task, the number of features, and how far each can be trusted.

The number of features is chosen by cross-validation on a part of the rows. The scorer that the estimator
calls for every fold and size also keeps what was predicted there, so that one cross-validation gives the
choice, the scores in units people know, the residuals that intervals are made of, and the pictures of a
report. The rest of the rows gives one honest score; the model itself is fitted to all rows.
"""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.metrics import r2_score, roc_auc_score, root_mean_squared_error
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_predict, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import resample

import skpursuit
from skpursuit.models.file import LinearModel, linear_model
from skpursuit.problem.losses import LOSSES
from skpursuit.selectors import NAMES
from skpursuit.solvers import solver_names
from skpursuit.tables import Table
from skpursuit.tables.errors import Refused, naming

FEWEST_ROWS = 10
FEWEST_OF_A_CLASS = 4
FEWEST_HELD_OUT = 2  # R2 of one row is not defined
FOLDS = 5
LARGEST_TARGET = 1e75  # the spread of squared errors takes fourth powers, which overflow beyond
QUANTILES = (0.005, 0.025, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.975, 0.995)  # of residuals, kept
BOOTSTRAPS = 50
ALL_FEATURES_CELLS = 2e7  # of X, up to which a model of all features is fitted to compare with


@dataclass(frozen=True)
class FitOptions:
    """Choices of a fit."""

    k: int | None = None  # features in the model; None chooses by cross-validation
    most: int | None = None  # the largest number that cross-validation tries
    task: str = "auto"  # what the target is
    loss: str | None = None  # what is minimised; None: that of the task
    solver: str = "omp"  # see `PursuitRegressor`, as for the next
    selector: str = "auto"
    normalize: bool = True  # whether features compete as if all had the same spread
    test_share: float = 0.2  # share of the rows that are held out for the score
    seed: int = 0  # seed of the splits and of randomised selectors
    #: whether scores of all sizes are needed though k is given, because somebody draws them
    drawn: bool = True
    reported: bool = False  # whether bootstrap intervals and a model of all features are needed
    #: told what is being done, as (words, share done)
    progress: Callable[[str, float], None] = lambda words, share: None


@dataclass(frozen=True)
class Size:
    """A number of features and how good it is in cross-validation: R2 and RMSE, or accuracy and AUC."""

    k: int
    score: float
    other: float


@dataclass(frozen=True)
class Effect:
    """What one feature does."""

    feature: str  # its name
    raw: tuple[float, ...]  # the coefficient, one per output: what one unit more changes
    #: the coefficient times the standard deviation of the feature, of the output where it is largest
    standardised: float
    output: int = 0  # that output
    low: float | None = None  # the 5th percentile of `standardised` over bootstrap refits
    high: float | None = None  # the 95th percentile
    chosen: float | None = None  # share of the refits that chose the feature


@dataclass(frozen=True)
class Outcome:
    """A fitted table."""

    model: LinearModel  # fitted on all rows
    task: str  # "regression" or "classification"
    score: float  # R2 or accuracy on held-out rows, of a model of the other rows
    baseline: float  # that of the best constant
    everything: float | None  # that of a model of all features; None where none was fitted
    #: numbers of features that were tried, with their cross-validated scores; empty where k was given
    sizes: Sequence[Size]
    effects: list[Effect]  # the features of the model, the most important first
    path: Any  # the estimator whose path can be drawn
    features: tuple[str, ...]  # names of all columns of the path's X
    actual: np.ndarray  # targets
    predicted: np.ndarray  # by models that did not see them; of classes a table of chances
    at_limit: bool = False  # whether the largest number of features that was tried is the best


def task_of(y: np.ndarray) -> str:
    """Texts and two different numbers are classes; other numbers are quantities."""
    return "classification" if y.dtype.kind not in "fiub" or len(np.unique(y)) == 2 else "regression"


def losses_of(task: str) -> list[str]:
    """The losses that can fit a task, its own first: classes need one that gives their probabilities."""
    classes = task == "classification"
    alone = {name: loss for name, loss in LOSSES.items() if not loss.couples_targets}
    return [name for name, loss in alone.items() if loss.gives_probability == classes]


def fit_table(table: Table, options: FitOptions) -> Outcome:
    """Fit a sparse model to a table and judge it; TableError if it has too few rows, or a class has."""
    y = np.asarray(table.y)
    if options.task == "auto":
        options = replace(options, task=task_of(y))
    regression = options.task == "regression"
    options = replace(options, loss=options.loss or losses_of(options.task)[0])
    with naming(table.path):
        _check(y, options)
        train, test = _split(y, options)
    X_train, X_test = take_rows(table.X, train), take_rows(table.X, test)
    judged = _judge(X_train, y[train], options)
    k = min(options.k or judged.choice, table.X.shape[1])
    options.progress("fitting", 0.0)
    known = judged.path is not None and options.k is None  # the path ends in the model of that size
    score = (judged.path if known else _fitted(X_train, y[train], k, options)).score(X_test, y[test])
    if not np.isfinite(score):
        with naming(table.path):
            raise Refused("huge numbers")
    constant = DummyRegressor() if regression else DummyClassifier()
    baseline = constant.fit(X_train[:, :1], y[train]).score(X_test[:, :1], y[test])
    everything = _everything(X_train, y[train], X_test, y[test], options) if options.reported else None
    final = _fitted(table.X, y, k, options)
    actual, predicted = judged.at(k)
    info: dict[str, Any] = {
        "rows": len(y),
        "k": k,
        "loss": options.loss,
        "solver": options.solver,
        "selector": options.selector,
        "held_out_score": float(score),
        "held_out_rows": len(test),
        "score": "R2" if regression else "accuracy",
    }
    if regression:
        left = np.quantile(actual - predicted, QUANTILES)
        info["residuals"] = {str(place): value for place, value in zip(QUANTILES, left.tolist())}
    classes = None if regression else final.classes_
    sizes = judged.sizes(classes) if options.k is None or options.drawn else []
    return Outcome(
        model=linear_model(table, final.coef_, final.intercept_, classes, info),
        task=options.task,
        score=float(score),
        baseline=float(baseline),
        everything=everything,
        sizes=sizes,
        effects=_effects(table, y, k, np.atleast_2d(final.coef_), options),
        path=judged.path,
        features=table.features,
        actual=actual,
        predicted=predicted,
        at_limit=len(sizes) > 1 and k == sizes[-1].k and k < table.X.shape[1] and options.k is None,
    )


def take_rows(X: Any, rows: np.ndarray) -> Any:
    """Return some rows, column after column in memory if X is so: solvers gather columns."""
    fortran = isinstance(X, np.ndarray) and X.flags.f_contiguous and not X.flags.c_contiguous
    return np.take(X.T, rows, axis=1).T if fortran else X[rows]


def _check(y: np.ndarray, options: FitOptions) -> None:
    """Refuse what no model can be fitted to."""
    able = solver_names(lambda kind: kind.has_sparsity)
    for option, names in (("selector", NAMES), ("solver", able), ("loss", losses_of(options.task))):
        if (given := getattr(options, option)) not in names:
            raise Refused(f"unknown {option}", given=given, names=", ".join(names))
    if len(y) < FEWEST_ROWS:
        raise Refused("few rows", rows=len(y), least=FEWEST_ROWS)
    numbers = y.dtype.kind in "fiub"
    labels, counts = np.unique(y, return_counts=True)
    if options.task == "regression":
        if not numbers:
            raise Refused("texts")
        if len(labels) == 1:
            raise Refused("constant target")
        if np.abs(y).max() > LARGEST_TARGET:
            raise Refused("huge target", most=LARGEST_TARGET)
    elif len(labels) < 2:
        raise Refused("one class")
    elif len(labels) > len(y) // 2:
        raise Refused("a quantity" if numbers else "many classes", classes=len(labels), rows=len(y))
    elif counts.min() < FEWEST_OF_A_CLASS:
        rare = str(labels[int(np.argmin(counts))])
        raise Refused("rare class", label=rare, count=counts.min(), least=FEWEST_OF_A_CLASS)


def _split(y: np.ndarray, options: FitOptions) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows to fit and those held out, of every class as large a share."""
    classes = None if options.task == "regression" else np.unique(y, return_inverse=True)[1]
    fewest, kept = (FEWEST_HELD_OUT, FOLDS) if classes is None else (classes.max() + 1, 2 * classes.max() + 2)
    n, held = len(y), math.ceil(options.test_share * len(y))
    if held < fewest or n - held < kept:
        low, high = math.ceil(100 * fewest / n) / 100, min(0.9, math.floor(100 * (n - kept) / n) / 100)
        ends = {"low": low, "high": high, "between": (low + high) / 2}
        raise Refused("test share", rows=n, held=held, fewest=fewest, kept=kept, **ends)
    train, test = train_test_split(
        np.arange(n), test_size=options.test_share, random_state=options.seed, stratify=classes
    )
    if classes is not None and np.bincount(classes[train], minlength=fewest).min() < 2:
        raise Refused("small share")
    return np.sort(train), np.sort(test)


@dataclass
class _Judged:
    """Cross-validated predictions for numbers of features from 1 on, fold by fold."""

    path: Any = None
    choice: int = 1
    folds: list[tuple[np.ndarray, list[np.ndarray]]] = field(default_factory=list)

    def record(self, actual: np.ndarray, predicted: np.ndarray) -> None:
        """Keep the predictions of one fold and size; sizes of a fold come one after the other."""
        if not self.folds or not np.array_equal(self.folds[-1][0], actual):
            self.folds.append((actual, []))
        self.folds[-1][1].append(predicted)

    def at(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return targets and predictions of all folds; a path that ended early repeats its last size."""
        actual = np.concatenate([one for one, _ in self.folds])
        return actual, np.concatenate([sizes[min(k, len(sizes)) - 1] for _, sizes in self.folds])

    def sizes(self, classes: np.ndarray | None) -> list[Size]:
        """Return every size with its scores: R2 and RMSE, or accuracy and (for two classes) AUC."""
        found = []
        for k in range(1, 1 + min(len(sizes) for _, sizes in self.folds)):
            actual, predicted = self.at(k)
            if classes is None:
                scores = r2_score(actual, predicted), root_mean_squared_error(actual, predicted)
            else:
                right = classes[np.argmax(predicted, axis=1)] == actual
                two = len(classes) == 2
                area = roc_auc_score(actual == classes[1], predicted[:, 1]) if two else math.nan
                scores = np.mean(right), area
            found.append(Size(k, *map(float, scores)))
        return found


def _judge(X: Any, y: np.ndarray, options: FitOptions) -> _Judged:
    """Cross-validate all numbers of features up to a limit; only k where it is given and nothing is drawn."""
    judged = _Judged()
    regression = options.task == "regression"
    fewest = FOLDS if regression else int(np.unique(y, return_counts=True)[1].min())
    kind = KFold if regression else StratifiedKFold
    folds = kind(max(2, min(FOLDS, fewest)), shuffle=True, random_state=options.seed)
    if options.k is not None and not options.drawn:
        method = "predict" if regression else "predict_proba"
        with quiet():
            fixed = _estimator(min(options.k, X.shape[1]), options)
            judged.record(y, cross_val_predict(fixed, X, y, cv=folds, method=method))
        return judged

    def scorer(model: Any, rows: Any, actual: np.ndarray, **given: Any) -> float:
        guess = model.predict(rows) if regression else model.predict_proba(rows)
        judged.record(actual, np.array(guess))
        options.progress("cross-validation", len(judged.folds) / (folds.n_splits + 1))
        if regression:
            return -float(np.mean((actual - guess) ** 2))
        return float(np.mean(model.classes_[np.argmax(guess, axis=1)] == actual))

    most = options.k or options.most
    make = skpursuit.PursuitRegressorCV if regression else skpursuit.PursuitClassifierCV
    limit = None if most is None else min(most, X.shape[1])
    with quiet():
        judged.path = make(cv=folds, scoring=scorer, max_nonzero_coefs=limit, **_common(options)).fit(X, y)
    judged.choice = int(judged.path.n_nonzero_coefs_)
    return judged


def _common(options: FitOptions) -> dict[str, Any]:
    how = {name: getattr(options, name) for name in ("loss", "solver", "selector", "normalize")}
    return {**how, "random_state": options.seed}


def _estimator(k: int, options: FitOptions) -> Any:
    regression = options.task == "regression"
    kind = skpursuit.PursuitRegressor if regression else skpursuit.PursuitClassifier
    return kind(n_nonzero_coefs=k, **_common(options))


def _fitted(X: Any, y: np.ndarray, k: int, options: FitOptions) -> Any:
    """A model of k features."""
    with quiet():
        return _estimator(k, options).fit(X, y)


@contextlib.contextmanager
def quiet(kind: type[Warning] = RuntimeWarning) -> Iterator[None]:
    """Hide warnings: that columns depend on each other is usual in tables (indicators) and no news."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", kind)
        yield


def _everything(X: Any, y: np.ndarray, X_test: Any, y_test: np.ndarray, options: FitOptions) -> float | None:
    """The score of a model of all features, lightly ridged; None where X is large."""
    if X.shape[0] * X.shape[1] > ALL_FEATURES_CELLS:
        return None
    regression = options.task == "regression"
    model = RidgeCV(np.logspace(-3, 3, 7)) if regression else LogisticRegression(max_iter=300)
    whole = make_pipeline(StandardScaler(with_mean=not isinstance(X, csr_array)), model)
    with quiet(Warning):  # that it has not converged to the last digit does not matter here
        return float(whole.fit(X, y).score(X_test, y_test))


def _effects(table: Table, y: np.ndarray, k: int, coef: np.ndarray, options: FitOptions) -> list[Effect]:
    """Return the features of a model, the most important first, with bootstrap intervals where wanted."""
    every = _bootstrap(table, y, k, options) if options.reported else None
    found = []
    for j in np.flatnonzero(np.any(coef != 0, axis=0)).tolist():
        column = table.X[:, [j]]
        scale = float((column.toarray() if isinstance(column, csr_array) else column).std())
        output = int(np.argmax(np.abs(coef[:, j])))
        band: dict[str, Any] = {}
        if every is not None:
            low, high = np.percentile(every[:, output, j] * scale, [5, 95])
            chosen = float(np.mean(np.any(every[:, :, j] != 0, axis=1)))
            band = {"low": float(low), "high": float(high), "chosen": chosen}
        raw = tuple(coef[:, j].tolist())
        found.append(Effect(table.features[j], raw, scale * raw[output], output, **band))
    return sorted(found, key=lambda effect: -abs(effect.standardised))


def _bootstrap(table: Table, y: np.ndarray, k: int, options: FitOptions) -> np.ndarray:
    """Return the coefficients of models of drawn rows, each with its features selected anew."""
    classes = y if options.task == "classification" else None  # each is drawn as often as it is in y
    drawing = np.random.RandomState(options.seed)
    found = []
    for i in range(BOOTSTRAPS):
        options.progress("bootstrap", i / BOOTSTRAPS)
        rows = resample(np.arange(len(y)), stratify=classes, random_state=drawing)
        found.append(np.atleast_2d(_fitted(take_rows(table.X, rows), y[rows], k, options).coef_))
    return np.array(found)
