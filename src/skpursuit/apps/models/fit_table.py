"""Fit a sparse model to a table in memory, and evaluate it.

Cross-validation on all rows chooses the model and its number of features; its held-out predictions give the
figures of a report and the intervals. The same on a training part gives one score on rows that nothing saw.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from scipy.sparse import csr_array
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.metrics import confusion_matrix, r2_score, roc_auc_score, root_mean_squared_error
from sklearn.model_selection import KFold, StratifiedKFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import resample

import skpursuit
from skpursuit.apps.models.alerts import data_alerts
from skpursuit.apps.models.model_file import LinearModel, linear_model
from skpursuit.apps.tables import EncodedTable
from skpursuit.apps.tables.columns import Matrix
from skpursuit.apps.tables.errors import TableProblem, attach_path
from skpursuit.apps.tables.parsing import BOOLEAN_WORDS
from skpursuit.problem.losses import LOSSES
from skpursuit.progress import current_monitor
from skpursuit.selectors import SELECTORS
from skpursuit.solvers import solver_names

MIN_ROWS = 10
MIN_CLASS_ROWS = 4
RARE_ROWS = 0.05  # share of the rows up to which those of rarer classes are left out
RARE_CLASS = 0.2  # share of the rows below which a class is rare
MIN_HELD_OUT = 2  # R2 of one row is not defined
FOLDS = 5
MAX_TARGET = 1e75  # the spread of squared errors takes fourth powers, which overflow beyond
QUANTILES = (0.005, 0.025, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.975, 0.995)  # of residuals, kept
BOOTSTRAPS = 50
SMALL_EFFECT = 0.05  # coefficient below which odds are multiplied by 1.0 and little more
ALL_FEATURES_CELLS = 2e7  # of X, up to which a model of all features is fitted to compare with
#: The targets of each fold, and predictions by all models of a path.
FoldPredictions: TypeAlias = Sequence[tuple[np.ndarray, list[np.ndarray]]]


@dataclass(frozen=True)
class FitOptions:
    """Choices of a fit."""

    k: int | None = None  # features in the model; None chooses by cross-validation
    most: int | None = None  # the largest number that cross-validation tries
    selection: str = "one_se"  # see `PursuitRegressorCV`: the fewest features that are as good, or "best"
    task: str = "auto"  # what the target is
    loss: str | None = None  # what is minimised; None: that of the task
    solver: str = "auto"  # see `PursuitRegressorCV`, as for the next; where k is given, "auto" is "omp"
    selector: str = "auto"
    ridge: float | None = None  # where k is chosen; None tries several, on folds that are drawn twice
    test_share: float = 0.2  # share of the rows that are held out for the score
    seed: int = 0  # seed of the splits and of randomised selectors
    needs_report: bool = False  # whether bootstrap intervals and a model of all features are needed


@dataclass(frozen=True)
class PathScore:
    """A number of features and how good it is in cross-validation: R2 and RMSE, or accuracy and AUC."""

    k: int
    score: float
    other: float
    errors: tuple[float, float]  # standard errors of both, from the folds
    columns: tuple[int, ...] = ()  # places of its features


@dataclass(frozen=True)
class FeatureEffect:
    """What one feature does."""

    feature: str  # its name
    raw: tuple[float, ...]  # the coefficient, one per output: what one unit more changes
    #: the coefficient times the standard deviation of the feature, of the output where it is largest
    standardised: float
    output: int = 0  # that output
    low: float | None = None  # the 5th percentile of `standardised` over bootstrap refits
    high: float | None = None  # the 95th percentile
    chosen: float | None = None  # share of the refits that chose a feature of its column
    column: str = ""  # its column
    level: str = ""  # of yes/no and categories: the level it is about,
    against: tuple[str, ...] = ()  # and those that it is compared with

    @classmethod
    def of(cls, feature: str, coef: np.ndarray, scale: float, **more: Any) -> FeatureEffect:
        """Return the effect of a feature with these coefficients, one per output, and standard deviation."""
        output = int(np.argmax(np.abs(coef)))
        return cls(feature, tuple(coef.tolist()), scale * float(coef[output]), output, **more)

    @property
    def step(self) -> int:
        """What is added where its factor is said: 1, or a round amount if the factor of 1 is nearly 1."""
        raw = abs(self.raw[self.output])
        plain = raw >= SMALL_EFFECT or not self.standardised
        return 1 if plain else 10 ** max(0, math.floor(math.log10(abs(self.standardised) / raw)))


@dataclass(frozen=True)
class FitReport:
    """A fitted table."""

    model: LinearModel  # fitted on all rows
    baseline: float  # R2 or accuracy of the best constant on held-out rows
    effects: list[FeatureEffect]  # the features of the model, the most important first
    features: tuple[str, ...]  # names of all features that the model could choose
    actual: np.ndarray  # targets
    predicted: np.ndarray  # by models that did not see them; of classes a table of chances
    rows: np.ndarray  # the number of each of these rows in the file
    full_model_score: float | None = None  # on held-out rows, of a model of all features if one was fitted
    sizes: Sequence[PathScore] = ()  # numbers of features that were tried, with cross-validated scores
    chosen: bool = True  # whether the number of features was chosen, not given
    at_limit: bool = False  # whether the largest number of features that was tried is the best
    alerts: Sequence[str] = ()  # what is suspicious about the table

    @property
    def is_useless(self) -> bool:
        """Whether it is no better than a constant, nor puts two classes into the right order."""
        if self.model.classes is not None and len(self.model.classes) == 2:
            truth = self.actual == self.labels[1]
            fewer = min(int(truth.sum()), int((~truth).sum()))
            if roc_auc_score(truth, self.predicted[:, 1]) > 0.5 + 3 / math.sqrt(12 * fewer):
                return False
        return bool(self.model.info["held_out_score"] <= self.baseline)

    @property
    def rarest(self) -> dict[str, Any]:
        """The smallest class if it is rare: its label, rows, those found, and all that are called so."""
        table = self.confusion if self.labels else np.zeros((1, 1))
        rows = table.sum(axis=1)
        if not rows.any() or rows.min() >= RARE_CLASS * rows.sum():
            return {}
        place = int(np.argmin(rows))
        counts = rows[place], table[place, place], table[:, place].sum()
        return {"label": self.labels[place], **dict(zip(("rows", "found", "called"), map(int, counts)))}

    @property
    def labels(self) -> list[Any]:
        """The classes, as they are spelled in `actual`."""
        return np.array(self.model.classes or ()).astype(self.actual.dtype).tolist()

    @property
    def called(self) -> np.ndarray:
        """What was said of each row, of classes the likeliest."""
        likeliest = self.predicted if self.model.classes is None else np.argmax(self.predicted, axis=1)
        return np.array(self.labels)[likeliest] if self.labels else likeliest

    @property
    def confusion(self) -> np.ndarray:
        """For every class how often each was said."""
        return confusion_matrix(self.actual, self.called, labels=self.labels)


def task_of(y: np.ndarray) -> str:
    """Texts and two different numbers are classes; other numbers are quantities."""
    return "classification" if y.dtype.kind not in "fiub" or len(np.unique(y)) == 2 else "regression"


def drop_rare_classes(table: EncodedTable, options: FitOptions) -> tuple[EncodedTable, dict[str, int]]:
    """Leave out rows of classes that are too rare to learn, where they are few; tell how many of each."""
    y = np.asarray(table.y)
    if (task_of(y) if options.task == "auto" else options.task) == "regression":
        return table, {}
    labels, places, counts = np.unique(y, return_inverse=True, return_counts=True)
    few = counts < MIN_CLASS_ROWS
    if not few.any() or counts[few].sum() > RARE_ROWS * len(y) or (~few).sum() < 2:
        return table, {}
    rare = dict(zip(map(str, labels[few].tolist()), counts[few].tolist()))
    return table.take(np.flatnonzero(~few[places])), rare


def losses_of(task: str) -> list[str]:
    """The losses that can fit a task, its own first: classes need one that gives their probabilities."""
    classes = task == "classification"
    alone = {name: loss for name, loss in LOSSES.items() if not loss.couples_targets}
    return [name for name, loss in alone.items() if loss.gives_probability == classes]


def fit_table(table: EncodedTable, options: FitOptions) -> FitReport:
    """Fit a sparse model to a table and evaluate it; TableError if it has too few rows, or a class has."""
    table, rare = drop_rare_classes(table, options)
    y = np.asarray(table.y)
    with attach_path(table.path):
        options = resolve_options(y, table.X.shape[1], options)
        train, test = split_rows(y, options)
    regression, labels = options.task == "regression", np.unique(y)
    if not regression and len(labels) == 2 and BOOLEAN_WORDS.get(str(labels[0]).casefold()):
        labels = labels[::-1]  # effects are those on yes, whatever the order of letters
        y = (y == labels[1]).astype(int)
    X_train, X_test = (table.take(rows).X for rows in (train, test))
    current_monitor().set_message("fitting to {:.0%} of the rows", 1 - options.test_share)
    score = fit_estimator(X_train, y[train], options).score(X_test, y[test])
    if not np.isfinite(score):
        with attach_path(table.path):
            raise TableProblem("huge numbers")
    constant = DummyRegressor() if regression else DummyClassifier()
    baseline = constant.fit(X_train[:, :1], y[train]).score(X_test[:, :1], y[test])
    parts = X_train, y[train], X_test, y[test]
    full_score = _full_model_score(*parts, options) if options.needs_report else None
    current_monitor().set_message("cross-validation on all rows")
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):
        path = make_estimator(y, options, recording=True).fit(table.X, y)
    path.recorded = path.recorded[: _folds(y, options).n_splits]  # of few rows folds are drawn twice
    place = path.chosen if options.k is None else options.k - 1
    final = path if options.k is None else fit_estimator(table.X, y, options)
    actual, predicted = path.held_out(place)
    info = model_info(final, options, actual, predicted) | {"rows": len(y), "held_out_rows": len(test)}
    info |= {"held_out_score": float(score), "rare_classes": rare}
    effects = _effects(table, y, final.coef_, replace(options, ridge=info["ridge"] or None))
    rows = np.concatenate(path.tests[: len(path.recorded)])
    return FitReport(
        model=linear_model(table, final.coef_, final.intercept_, None if regression else labels, info),
        baseline=float(baseline),
        full_model_score=full_score,
        sizes=path.sizes(place, None if regression else final.classes_),
        effects=effects,
        features=table.features,
        actual=labels[actual] if y.dtype.kind == "i" else actual,
        predicted=predicted,
        chosen=options.k is None,
        at_limit=options.k is None and info["k"] == options.most,
        rows=rows + 1 if table.rows is None else table.rows[rows] + 1,
        alerts=data_alerts(table, y, regression, list(dict.fromkeys(one.column for one in effects))),
    )


def model_info(final: Any, options: FitOptions, actual: np.ndarray, predicted: np.ndarray) -> dict[str, Any]:
    """Return what a model's file keeps of a fit: how it was made, and quantiles of residuals."""
    choice: Any = {"family": final.solver, "ridge": 0.0} if options.k else final.choice_
    score = "R2" if options.task == "regression" else "accuracy"
    info = {name: getattr(options, name) for name in ("loss", "solver", "selector", "selection")}
    info |= {"k": options.k or final.n_nonzero_coefs_, "score": score}
    info |= {name: choice[name] for name in ("family", "ridge")}
    if getattr(final, "multi_class_", "") == "multinomial":
        info["loss"] = "multinomial"
    if options.task == "regression":
        left = np.quantile(actual - predicted, QUANTILES)
        info["residuals"] = {str(place): value for place, value in zip(QUANTILES, left.tolist())}
        info["rmse"] = float(root_mean_squared_error(actual, predicted))
    return info


def resolve_options(y: np.ndarray, features: int, options: FitOptions) -> FitOptions:
    """Return options with what the target decides; refuse what no model can be fitted to."""
    task = task_of(y) if options.task == "auto" else options.task
    k = options.k and min(options.k, features)
    options = replace(options, task=task, loss=options.loss or losses_of(task)[0], k=k)
    able = ["auto", *solver_names(lambda kind: kind.takes_sparsity)]
    for option, names in (("selector", SELECTORS), ("solver", able), ("loss", losses_of(options.task))):
        if (given := getattr(options, option)) not in names:
            raise TableProblem(f"unknown {option}", given=given, names=", ".join(names))
    if len(y) < MIN_ROWS:
        raise TableProblem("few rows", rows=len(y), least=MIN_ROWS)
    numbers = y.dtype.kind in "fiub"
    labels, counts = np.unique(y, return_counts=True)
    if options.task == "regression":
        if not numbers:
            raise TableProblem("texts")
        if len(labels) == 1:
            raise TableProblem("constant target")
        if np.abs(y).max() > MAX_TARGET:
            raise TableProblem("huge target", most=MAX_TARGET)
    elif len(labels) < 2:
        raise TableProblem("one class")
    elif len(labels) > len(y) // 2:
        raise TableProblem("a quantity" if numbers else "many classes", classes=len(labels), rows=len(y))
    elif counts.min() < MIN_CLASS_ROWS:
        rare = str(labels[int(np.argmin(counts))])
        raise TableProblem("rare class", label=rare, count=counts.min(), least=MIN_CLASS_ROWS)
    return options


def split_rows(y: np.ndarray, options: FitOptions) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows to fit and those held out, of every class as large a share."""
    classes = None if options.task == "regression" else np.unique(y, return_inverse=True)[1]
    fewest, kept = (MIN_HELD_OUT, FOLDS) if classes is None else (classes.max() + 1, 2 * classes.max() + 2)
    n, held = len(y), math.ceil(options.test_share * len(y))
    if held < fewest or n - held < kept:
        low, high = math.ceil(100 * fewest / n) / 100, min(0.9, math.floor(100 * (n - kept) / n) / 100)
        raise TableProblem("test share", rows=n, held=held, low=low, high=high, between=(low + high) / 2)
    train, test = train_test_split(
        np.arange(n), test_size=options.test_share, random_state=options.seed, stratify=classes
    )
    if classes is not None and np.bincount(classes[train], minlength=fewest).min() < 2:
        raise TableProblem("small share")
    return np.sort(train), np.sort(test)


class KeepsFoldPredictions:
    """A cross-validated estimator that keeps what models of its path predict for rows they had not seen."""

    recorded: FoldPredictions = ()
    tests: Sequence[np.ndarray] = ()  # the rows of each fold
    chosen = 0  # the place of the chosen model on the path
    path_sizes_: np.ndarray
    path_features_: np.ndarray
    coef_path_: np.ndarray
    n_nonzero_coefs_: int

    def _on_chosen(self, place: int, held_out: Callable[[], FoldPredictions]) -> None:
        self.chosen, self.recorded = place, held_out()

    def _held_out(self, data: Any, *models: Any) -> FoldPredictions:
        self.tests = [test for _, test in data.splits]
        return super()._held_out(data, *models)  # type: ignore[misc]

    def held_out(self, place: int) -> tuple[np.ndarray, np.ndarray]:
        """Return targets and predictions of all folds; a path that ended early repeats its last model."""
        actual = np.concatenate([one for one, _ in self.recorded])
        return actual, np.concatenate([models[min(place, len(models) - 1)] for _, models in self.recorded])

    def sizes(self, chosen: int, classes: np.ndarray | None) -> list[PathScore]:
        """Return every size with its scores: R2 and RMSE, or accuracy and (for two classes) AUC.

        Of several models of one size the chosen one counts, or the last.
        """
        found: dict[int, PathScore] = {}
        places = list(range(min(len(models) for _, models in self.recorded)))
        for place in [*places, min(chosen, places[-1])]:
            k = int(self.path_sizes_[place]) if len(places) > 1 else self.n_nonzero_coefs_
            folds = [_scores(actual, models[place], classes) for actual, models in self.recorded]
            errors = np.std(folds, axis=0, ddof=1) / math.sqrt(len(folds))
            used = np.atleast_2d(self.coef_path_[place]).any(axis=0)
            columns = tuple(self.path_features_[used].tolist())
            found[k] = PathScore(k, *_scores(*self.held_out(place), classes), tuple(errors.tolist()), columns)
        return sorted(found.values(), key=lambda size: size.k)


def _scores(actual: np.ndarray, predicted: np.ndarray, classes: np.ndarray | None) -> tuple[float, float]:
    """R2 and RMSE, or accuracy and (of two classes) AUC."""
    if classes is None:
        return float(r2_score(actual, predicted)), float(root_mean_squared_error(actual, predicted))
    right = float(np.mean(classes[np.argmax(predicted, axis=1)] == actual))
    two = len(classes) == 2 and len(np.unique(actual)) == 2
    return right, float(roc_auc_score(actual == classes[1], predicted[:, 1])) if two else math.nan


def _folds(y: np.ndarray, options: FitOptions) -> KFold | StratifiedKFold:
    fewest = FOLDS if options.task == "regression" else int(np.unique(y, return_counts=True)[1].min())
    kind = KFold if options.task == "regression" else StratifiedKFold
    return kind(max(2, min(FOLDS, fewest)), shuffle=True, random_state=options.seed)


def make_estimator(y: np.ndarray, options: FitOptions, recording: bool = False) -> Any:
    """The estimator of k features, or one that chooses among models of up to `most`.

    One that records its predictions on folds chooses, up to k features where k is given.
    """
    regression, search = options.task == "regression", recording or options.k is None
    plain = options.k is not None or options.selector != "auto" or options.loss == "quantile"
    solver = "omp" if options.solver == "auto" and plain else options.solver
    common = {"solver": solver, "random_state": options.seed}
    common |= {name: getattr(options, name) for name in ("selector", "loss")}
    scale = "auto" if search else "column"
    kind: Any = skpursuit.PursuitRegressor if regression else skpursuit.PursuitClassifier
    if not search:
        return kind(n_nonzero_coefs=options.k, scale=scale, **common)
    kind = skpursuit.PursuitRegressorCV if regression else skpursuit.PursuitClassifierCV
    folds = _folds(y, options)
    drawn = solver == "auto" and options.ridge is None  # by the estimator, twice for few rows
    return (type(kind.__name__, (KeepsFoldPredictions, kind), {}) if recording else kind)(
        **common,
        scale=scale,
        max_nonzero_coefs=options.k or options.most,
        cv=folds.n_splits if drawn else folds,
        ridges="auto" if options.ridge is None else options.ridge,
        selection=options.selection,
    )


def fit_estimator(X: Matrix, y: np.ndarray, options: FitOptions, weights: np.ndarray | None = None) -> Any:
    """A model of k features, or one whose number of features is chosen."""
    # That columns depend on each other is usual in tables (indicators) and no news.
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):
        known = y if weights is None else y[weights > 0]
        return make_estimator(known, options).fit(X, y, sample_weight=weights)


def _full_model_score(
    X: Matrix, y: np.ndarray, X_test: Matrix, y_test: np.ndarray, options: FitOptions
) -> float | None:
    """The score of a model of all features, lightly ridged; None where X is large."""
    if X.shape[0] * X.shape[1] > ALL_FEATURES_CELLS:
        return None
    regression = options.task == "regression"
    model = RidgeCV(np.logspace(-3, 3, 7)) if regression else LogisticRegression(max_iter=300)
    whole = make_pipeline(StandardScaler(with_mean=not isinstance(X, csr_array)), model)
    with warnings.catch_warnings(action="ignore"):  # the last digit does not matter here
        return float(whole.fit(X, y).score(X_test, y_test))


def _effects(
    table: EncodedTable, y: np.ndarray, coef: np.ndarray, options: FitOptions
) -> list[FeatureEffect]:
    """Return the features of a model, the most important first, with bootstrap intervals where wanted."""
    coef = np.atleast_2d(coef)
    every = _bootstrap(table, y, options) if options.needs_report and coef.any() else None
    place = {feature: j for j, feature in enumerate(table.features)}
    found: list[list[FeatureEffect]] = []
    for kind in table.encoding.columns:
        own = [j for feature in kind.features if coef[:, j := place[feature]].any()]
        band: dict[str, float] = {}
        if every is not None and own:
            band = {
                "chosen": float(np.mean(every[:, :, [place[one] for one in kind.features]].any(axis=(1, 2))))
            }
        effects = []
        for j in own:
            scale = float(table.dense([j]).std())
            if every is not None:
                output = int(np.argmax(np.abs(coef[:, j])))
                low, high = np.percentile(every[:, output, j] * scale, [5, 95])
                band |= {"low": float(low), "high": float(high)}
            names = kind.name, *kind.compare(table.features[j], [table.features[i] for i in own])
            about = dict(zip(("column", "level", "against"), names))
            effects.append(FeatureEffect.of(table.features[j], coef[:, j], scale, **band, **about))
        found += [sorted(effects, key=lambda effect: -abs(effect.standardised))] if own else []
    found.sort(key=lambda effects: -abs(effects[0].standardised))
    return [effect for effects in found for effect in effects]


def _bootstrap(table: EncodedTable, y: np.ndarray, options: FitOptions) -> np.ndarray:
    """Return the coefficients of models of drawn rows, each with its features selected anew.

    A row counts as often as it is drawn, in one fold only, so that no model is evaluated on its own rows.
    The ridge stays that of the model, which saves most of the time.
    """
    classes = y if options.task == "classification" else np.zeros(len(y))  # drawn as often as they are in y
    drawing = np.random.RandomState(options.seed)
    found: list[np.ndarray] = []
    current_monitor().set_total(BOOTSTRAPS)
    while len(found) < BOOTSTRAPS:
        current_monitor().set_message("refit {} of {} to rows drawn anew", len(found) + 1, BOOTSTRAPS)
        rows = resample(np.arange(len(y)), stratify=classes, random_state=drawing)
        if np.unique(classes[np.unique(rows)], return_counts=True)[1].min() > 1:  # to learn from and to test
            weights = np.bincount(rows, minlength=len(y)).astype(float)
            found.append(np.atleast_2d(fit_estimator(table.X, y, options, weights).coef_))
            current_monitor().advance_by()
    return np.array(found)
