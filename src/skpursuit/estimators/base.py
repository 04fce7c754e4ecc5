"""What the linear estimators share: checked data, predictions, and the attributes that a fit leaves.

`LinearBase` serves every estimator with `coef_` and `intercept_`. `PursuitBase` adds what the pursuit
estimators have in common: `fit`, which solves one or several problems (targets or classes) that the estimator
makes of its data, and what is known of the runs afterwards.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import wraps
from numbers import Real
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_array, check_is_fitted, check_X_y, validate_data

from skpursuit.data import Design, drop_zero_weight_rows
from skpursuit.data.cluster import dask_source
from skpursuit.data.options import column_indices
from skpursuit.data.sources import is_design, is_out_of_core, make_design, split_target
from skpursuit.data.sparse_tile import validated_compressed
from skpursuit.estimators.display import SummaryMixin
from skpursuit.estimators.linear_fit import FitConfig, LinearFit, dense_coefs, fit_linear, standardized_run
from skpursuit.estimators.parameter_rules import check_parameters, check_values
from skpursuit.guarantees.audit import ModelPath
from skpursuit.numerics.arrays import Compressed, Floats, Indices
from skpursuit.numerics.blas import single_threaded_blas
from skpursuit.numerics.float_range import product_in_range
from skpursuit.parameters import RandomSource, check_unmasked
from skpursuit.problem.problem import check_targets_range, checked_weights
from skpursuit.problem.state import Record, Status
from skpursuit.progress import monitoring
from skpursuit.selectors import Selector
from skpursuit.solvers import Solver

FLOAT_DTYPES = (np.float64, np.float32)
Method = TypeVar("Method", bound=Callable[..., object])


@dataclass(kw_only=True, eq=False, repr=False)
class MonitoredParams:
    """The two parameters of every estimator: what it says and how long it may take."""

    verbose: bool | int | str = "auto"
    time_limit: float | None = None


def monitored(method: Method) -> Method:
    """Have a method of an estimator obey `verbose` and `time_limit`, on one thread of BLAS."""

    @wraps(method)
    def call(self: MonitoredParams, *args: object, **options: object) -> object:
        check_values({}, verbose=self.verbose, time_limit=self.time_limit)
        with single_threaded_blas(), monitoring(type(self).__name__, self.verbose, self.time_limit):
            return method(self, *args, **options)

    return call  # type: ignore[return-value]


def lazy_on_dask(method: Method) -> Method:
    """Let a method (self, X) that gives an array with a row for each of X take a Dask collection.

    It then works on each chunk of rows, and the result is lazy: nothing is computed before it is asked for.
    The estimator travels to the workers with every chunk; it holds coefficients, not data.
    """

    @wraps(method)
    def chosen(self: object, X: object, *more: object, **options: object) -> object:
        if not dask_source.accepts(X):
            return method(self, X, *more, **options)

        # Some rows like those of X: the method says at once what is wrong with them, and the form it gives.
        if dask_source.is_frame(X):
            sample = X._meta_nonempty.ffill().bfill()
        else:
            sample = np.zeros((2, *X.shape[1:]), X.dtype)
        return dask_source.map_row_blocks(lambda chunk: method(self, chunk, *more, **options), X, sample)

    return chosen  # type: ignore[return-value]


def with_checked_indices(X: object) -> object:
    """X for scikit-learn's checks, which follow the indices of a sparse matrix without looking at them."""
    check_unmasked(X=X)
    return validated_compressed(X) if issparse(X) and getattr(X, "ndim", 0) == 2 else X


@contextmanager
def naming_columns(X: Any, finite: bool = True) -> Iterator[None]:
    """Name the column in an error of scikit-learn's checks of a data frame: the first that gives it alone."""
    try:
        yield
    except (TypeError, ValueError) as error:
        told, kind = str(error).split("\n")[0], TypeError if isinstance(error, TypeError) else ValueError
        for name in getattr(X, "columns", ()):
            if np.asarray(X[name]).dtype.kind in "mM":
                raise kind(f"column {name!r} of X holds times; give numbers, such as days") from None
            try:
                check_array(X[[name]], dtype=FLOAT_DTYPES, ensure_all_finite=finite, input_name="X")
            except (TypeError, ValueError) as same:
                if str(same).split("\n")[0] == told:
                    raise kind(f"column {name!r} of X: {told}") from None
        raise


def validated(estimator: object, X: object, *y: object, finite: bool = True, **checks: Any) -> Any:
    """What scikit-learn's `validate_data` gives for X, dense or sparse, of which messages name the column."""
    checks |= {"accept_sparse": ["csr", "csc"], "dtype": FLOAT_DTYPES, "ensure_all_finite": finite}
    with naming_columns(X, finite):
        return validate_data(estimator, with_checked_indices(X), *y, **checks)


def select_rows(X: Any, rows: Indices) -> Any:
    """Rows of a list, an array, a sparse array or a data frame, as one of the same kind."""
    if isinstance(X, (list, tuple)):
        return [X[i] for i in rows]
    if dask_source.is_frame(X):
        raise TypeError(
            "rows of a Dask data frame have no numbers; use a Dask array, or for cross-validation the name "
            "of a scorer: folds are then weights of the rows"
        )
    return X.tocsr()[rows] if issparse(X) else getattr(X, "iloc", X)[rows]


def _as_numbers(y: object) -> np.ndarray:
    """Targets of a regression, text of numbers included."""
    y = np.asarray(y)
    try:
        return y.astype(np.float64) if y.dtype.kind in "USO" else y
    except ValueError as error:
        raise ValueError(f"y must be numbers ({error}); for classes use a classifier") from None


def _needs_no_checks(X: object, y: object, features: int) -> bool:
    """Whether scikit-learn's checks, which take as long as a small fit, would find nothing to do."""
    return (
        type(X) is type(y) is np.ndarray
        and (X.ndim, y.ndim) == (2, 1)
        and X.dtype in FLOAT_DTYPES
        and y.dtype in FLOAT_DTYPES
        and X.shape[0] > 0
        and X.shape[1] >= features
        and len(X) == len(y)
        and bool(np.isfinite(y).all())
    )


def match_columns(design: Design, model: LinearBase, features: Indices) -> Indices:
    """Columns of a design that are features of a fitted model, by their names where both have names."""
    names, fitted = design.names, vars(model)
    if names is not None and "feature_names_in_" in fitted:
        wanted = fitted["feature_names_in_"][features]
        return np.array(column_indices("the model", wanted, len(names), names), dtype=np.intp)
    if design.shape[1] != model.n_features_in_:
        raise ValueError(
            f"X has {design.shape[1]} features, but {type(model).__name__} is expecting "
            f"{model.n_features_in_} features as input" + f"; {design.access.hint}" * bool(design.access.hint)
        )
    return features


class CheckedSamples(NamedTuple):
    """Checked samples with a weight above zero."""

    base: Design
    y: np.ndarray
    weights: Floats | None
    kept: NDArray[np.bool_]  # which rows of X they are
    X: Floats | Compressed | None  # with all rows; None where it is no array or sparse matrix in memory

    def weighted(self, weights: Floats) -> CheckedSamples:
        """The samples with these weights; those of weight zero are left out."""
        kept = self.kept.copy()
        kept[kept] = weights > 0
        return CheckedSamples(*drop_zero_weight_rows(self.base, self.y, weights), kept, self.X)


class Subproblems(NamedTuple):
    """What an estimator solves: one run for each of the targets; `joint` if one run serves them all."""

    config: FitConfig
    targets: list[Floats]
    joint: bool


class LinearBase(MonitoredParams):
    """Predictions X w + b of a model with `coef_` and `intercept_`; sparse X is welcome."""

    coef_: Floats
    intercept_: Floats | float
    n_features_in_: int

    @abstractmethod
    def fit(self, X: object, y: object, sample_weight: object = None) -> Self:
        """Fit the estimator.

        Parameters
        ----------
        X : array-like or sparse array of shape (n_samples, n_features), a path or a Design
            `as_design` says what it may be.
        y : array-like of shape (n_samples,) or (n_samples, n_targets), or str
            Targets, or labels of classes; or the name of a column of X on disk.
        sample_weight : array-like of shape (n_samples,), optional
        **fit_params : dict
            Cross-validated estimators hand them to the splitter; needs scikit-learn's metadata routing.
        """

    def _check_samples(self, X: Any, y: Any, sample_weight: object, **checks: Any) -> CheckedSamples:
        """Check the arguments of `fit` once; below it there are a design, an array and weights or None."""
        # Whether X is finite shows in what a fit needs to know of X anyway: every run asks `check_finite`.
        check_unmasked(y=y)
        if is_out_of_core(X):
            design, y = self._design_and_target(X, y, **checks)
            X = design.in_memory_matrix
        elif _needs_no_checks(X, y, checks.get("ensure_min_features", 1)):
            self.n_features_in_ = X.shape[1]
            vars(self).pop("feature_names_in_", None)
            design = make_design(X, check=False)
        else:
            X, y = validated(self, X, y, finite=False, **checks)
            y = _as_numbers(y) if checks.get("y_numeric") else y
            names = vars(self).get("feature_names_in_")
            design = make_design(X, check=False, names=None if names is None else names.tolist())
        if y.dtype.kind == "f":
            check_targets_range(y)
        samples = CheckedSamples(design, y, None, np.ones(design.shape[0], dtype=bool), X)
        if sample_weight is None:
            return samples
        if isinstance(sample_weight, Real):
            sample_weight = np.full(design.shape[0], sample_weight)
        return samples.weighted(checked_weights(sample_weight, design.shape[0]))

    def _design_and_target(self, X: object, y: object, **checks: object) -> tuple[Design, np.ndarray]:
        """A design, or data on disk as one, and its targets, which may be the name of a column."""
        design, y = split_target(X, y)
        y = _as_numbers(y) if checks.get("y_numeric") and y is not None else y
        n, self.n_features_in_ = design.shape
        _, checked = check_X_y(np.broadcast_to(0.0, (n, min(2, design.shape[1]))), y, **checks)
        vars(self).pop("feature_names_in_", None)
        if design.names is not None:
            self.feature_names_in_ = np.array(design.names, dtype=object)
        return design, checked

    def _decision(self, X: object) -> Floats:
        check_is_fitted(self, "coef_")
        if is_out_of_core(X):
            return self._linear_of_design(make_design(X))
        return product_in_range(validated(self, X, reset=False), self.coef_.T) + self.intercept_

    def _linear_of_design(self, design: Design) -> Floats:
        """Predictions that read the columns with coefficients alone, by their names where X has names."""
        used = np.flatnonzero(np.atleast_2d(self.coef_).any(axis=0))
        coef, names = np.asarray(self.coef_)[..., used].T, design.names
        used = match_columns(design, self, used)
        found = design.predict(used, coef) + self.intercept_
        if not np.isfinite(found).all():
            for some in np.split(used, range(16, len(used), 16)):
                bad = some[~np.isfinite(design.columns(some, cache=False)).all(axis=1)]
                if len(bad):
                    column = bad[0] if names is None else repr(names[bad[0]])
                    raise ValueError(f"X contains NaN or infinity in column {column}, which the model uses")
        return found

    def score(self, X: object, y: object, sample_weight: Any = None) -> float:
        """Score as scikit-learn's estimators of this kind do; samples of weight zero are ignored.

        Parameters
        ----------
        X : array-like or sparse array of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets), or str
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        score : float
            R squared of a regressor, accuracy of a classifier.
        """
        if isinstance(y, str) or dask_source.is_frame(X):  # of which nobody knows the number of rows
            X, y = split_target(X, y)
        if np.ndim(sample_weight) == 1 and not np.all(sample_weight) and not is_design(X):
            rows = np.flatnonzero(sample_weight)
            X, y, sample_weight = (select_rows(part, rows) for part in (X, y, sample_weight))
        return super().score(X, y, sample_weight)  # type: ignore[misc]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.sparse = True
        return tags


class PursuitBase(LinearBase, SummaryMixin):
    """Coefficients and what is known of the runs: one for all targets, or one for each."""

    support_: Indices | list[Indices]
    history_: list[Record] | list[list[Record]]
    n_iter_: int
    entries_read_: int

    @abstractmethod
    def _validate(self, X: object, y: object, sample_weight: object) -> CheckedSamples:
        """Checked data, with targets as numbers."""

    @abstractmethod
    def _subproblems(self, y: Floats, **changes: object) -> Subproblems:
        """The problems to solve for these targets; `changes` of parameters go into the config."""

    @monitored
    def fit(self, X: object, y: object, sample_weight: object = None) -> Self:
        check_parameters(self)
        base, checked, weights, *_ = self._validate(X, y, sample_weight)
        problems = self._subproblems(checked)
        fits = [fit_linear(problems.config, base, target, weights) for target in problems.targets]
        self._set_fitted(fits, base, problems.joint)
        return self

    def _set_fitted(self, fits: list[LinearFit], base: Design, joint: bool) -> None:
        coefs, results = dense_coefs(base, fits), [fit.result for fit in fits if fit.result is not None]
        intercepts, supports = [fit.intercept for fit in fits], [fit.columns for fit in fits]
        stopped = [one.status.name for one in results] or [Status.COMPLETE.name] * len(fits)
        histories = [one.history for one in results] or [[] for _ in fits]
        self.coef_ = coefs[0] if joint else np.stack(coefs)
        self.intercept_ = intercepts[0] if joint else np.array(intercepts)
        self.support_ = supports[0] if joint else supports
        self._stopped = stopped[0] if joint else stopped
        self.history_ = histories[0] if joint else histories
        self.n_iter_ = max((result.n_iter for result in results), default=0)
        self.entries_read_ = sum(result.entries_read for result in results)

    def model_path(self, X: object, y: object) -> ModelPath:
        """The problem that was fitted and the features in order of selection, for `audit` and `certify`."""
        check_is_fitted(self, "coef_")
        base, targets, weights, *_ = clone(self)._validate(X, y, None)
        problems = self._subproblems(targets)
        if len(problems.targets) > 1:
            raise ValueError("the model has a path for each target or class; audit one at a time")
        config = replace(problems.config, selector="exact")
        if "choice_" in vars(self):  # of cross-validation
            config = replace(config, solver="omp", ridge=vars(self)["choice_"]["ridge"])
        run, data = standardized_run(config, base, problems.targets[0], weights)
        own = run.solver
        if own.groups or own.positive or len(own.exclude) or len(own.always_include) > len(data.forced):
            raise ValueError("audit and certify know no feature_groups, always_include, exclude, positive")
        return ModelPath(run.problem, match_columns(base, self, np.asarray(self.support_)), data.forced)

    @property
    def status_(self) -> Status | list[Status]:
        """Why the run stopped, or each of the runs."""
        stopped = self._stopped  # stored as strings because skops cannot store Enum members
        return [Status[name] for name in stopped] if isinstance(stopped, list) else Status[stopped]


@dataclass(kw_only=True, eq=False, repr=False)
class ColumnParameters(MonitoredParams):
    """The parameters that say which features may be in a model, and which only together."""

    feature_groups: object = None
    always_include: Sequence[int | str] = ()
    exclude: Sequence[int | str] = ()


@dataclass(kw_only=True, eq=False, repr=False)
class PursuitParameters(ColumnParameters):
    """The parameters that `PursuitRegressor` and `PursuitClassifier` share."""

    solver: str | Solver = "omp"
    selector: str | Selector = "auto"
    n_nonzero_coefs: int | None = None
    tol: float | None = None
    fit_intercept: bool = True
    scale: str = "auto"
    max_iter: int | None = None
    ridge: float | None = None
    random_state: RandomSource = None
