"""`PursuitClassifier` and `PursuitClassifierCV`: sparse linear classification, two classes or many.

Two classes are one problem with labels -1 and +1. Three or more become one such problem for each class
against the rest, or one multinomial problem of all classes, which then share their features.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets

from skpursuit.data.design import Design
from skpursuit.estimators.base import (
    CheckedSamples,
    PursuitBase,
    PursuitParameters,
    Subproblems,
    lazy_on_dask,
)
from skpursuit.estimators.linear_fit import FitConfig, LinearFit
from skpursuit.estimators.parameter_rules import criterion_of, is_auto
from skpursuit.estimators.pursuit_cv import PathCVMixin
from skpursuit.estimators.sklearn_types import BaseEstimator, ClassifierMixin
from skpursuit.numerics.arrays import Floats
from skpursuit.problem.losses import Loss, as_loss
from skpursuit.solvers import solver_class, solver_names

FEW_SAMPLES, FEWER = 150, 100  # samples up to which 10 folds pay, and below which 20 do


def _has_probabilities(estimator: PursuitClassifierMixin) -> bool:
    """Whether the loss is one that gives probabilities; raises AttributeError otherwise."""
    if not as_loss(estimator.loss).gives_probability:
        told = f"loss {estimator.loss!r} defines no probabilities"
        raise AttributeError(f"predict_proba needs loss='logistic'; {told}")
    return True


@dataclass(kw_only=True, eq=False, repr=False)
class PursuitClassifierMixin(PursuitBase, ClassifierMixin):
    """Reading labels, and predictions of a classifier."""

    loss: str | Loss = "logistic"
    multi_class: str = "auto"
    class_weight: object = None

    def _validate(self, X: object, y: object, sample_weight: object) -> CheckedSamples:
        """Checked data, with class codes 0, 1, ... for y and the class weights in the sample weights."""
        samples = self._check_samples(X, y, sample_weight)
        check_classification_targets(samples.y)
        if self.class_weight is not None:
            balance = compute_sample_weight(self.class_weight, samples.y)
            weights = samples.weights
            samples = samples.weighted(balance if weights is None else weights * balance)
        self.classes_, codes = np.unique(samples.y, return_inverse=True)
        if len(self.classes_) < 2:
            weighted = "" if samples.weights is None else " with a weight above zero"
            raise ValueError(f"y has one class only{weighted}; a classifier needs at least two")
        self.multi_class_ = self._class_strategy(samples.X is not None)
        return samples._replace(y=codes)

    def _class_strategy(self, in_memory: bool) -> str:
        """`multi_class`, where "auto" is multinomial if the families of `model_search/` compete."""
        if len(self.classes_) == 2:
            return "ovr"
        if not is_auto(self.multi_class):
            return self.multi_class
        given = vars(self)
        competes = is_auto(given["solver"]) and is_auto(given["selector"]) and not criterion_of(given)
        joint = competes and in_memory and as_loss(self.loss).for_classes() is not None
        return "multinomial" if joint else "ovr"

    def _subproblems(self, y: Floats, **changes: object) -> Subproblems:
        """Targets are labels -1 and +1 of one class or of all, or class numbers."""
        n_classes = len(self.classes_)
        config = FitConfig.from_estimator(self, loss=self._loss(), **changes)
        if n_classes == 2:
            return Subproblems(config, [2.0 * y - 1.0], joint=True)
        if self.multi_class_ == "multinomial":
            given = "omp" if is_auto(config.solver) else config.solver
            if solver_class(given).squared_loss_only or not solver_class(given).supports_forced:
                able = solver_names(lambda kind: kind.supports_forced and not kind.squared_loss_only)
                listed, rest = " or ".join(map(repr, able)), "use 'ovr' with other solvers"
                raise ValueError(f"multi_class='multinomial' needs solver={listed}; {rest}")
            return Subproblems(config, [y], joint=True)
        signs = np.where(y[:, None] == np.arange(n_classes), 1.0, -1.0)
        shared = self.multi_class_ == "ovr_shared"
        return Subproblems(config, [signs] if shared else list(signs.T), shared)

    def _loss(self) -> Loss:
        """The loss of the problems: that of two labels, or the one of all classes that extends it."""
        loss = as_loss(self.loss)
        if self.multi_class_ != "multinomial":
            return loss
        together = loss.for_classes()
        if together is None:
            raise ValueError("multi_class='multinomial' needs loss='logistic'; use 'ovr' with other losses")
        return together

    def _set_fitted(self, fits: list[LinearFit], base: Design, joint: bool) -> None:
        super()._set_fitted(fits, base, joint)
        self.coef_, self.intercept_ = np.atleast_2d(self.coef_), np.atleast_1d(self.intercept_)

    @lazy_on_dask
    def decision_function(self, X: object) -> Floats:
        """X w + b: positive for the second of two classes, else one column per class."""
        z = self._decision(X)
        return z[:, 0] if z.shape[1] == 1 else z

    @lazy_on_dask
    def predict(self, X: object) -> np.ndarray:
        """Predict class labels."""
        z = self.decision_function(X)
        return self.classes_[(z > 0).astype(np.intp) if z.ndim == 1 else z.argmax(axis=1)]

    @available_if(_has_probabilities)
    @lazy_on_dask
    def predict_proba(self, X: object) -> Floats:
        """Class probabilities, shape (n_samples, n_classes); those of one-vs-rest are made to sum to one."""
        z = self._decision(X)
        loss = self._loss()
        if loss.couples_targets:
            return loss.probabilities(z)
        p = loss.probability(z)
        if p.shape[1] == 1:
            return np.hstack([1.0 - p, p])
        total = p.sum(axis=1, keepdims=True)
        return np.where(total > 0, p, 1.0) / np.where(total > 0, total, p.shape[1])

    @available_if(_has_probabilities)
    @lazy_on_dask
    def predict_log_proba(self, X: object) -> Floats:
        """Logarithms of the class probabilities."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))


@dataclass(kw_only=True, eq=False, repr=False)
class PursuitClassifier(PursuitParameters, PursuitClassifierMixin, BaseEstimator):
    """Linear classification with few non-zero coefficients.

    Parameters
    ----------
    solver, selector, n_nonzero_coefs, fit_intercept, scale, max_iter, ridge
        As in `PursuitRegressor`.
    feature_groups, always_include, exclude
        As in `PursuitRegressor`.
    loss : {"logistic", "squared", "huber", "quantile"} or Loss
        A loss of labels -1 and +1.
    tol : float, optional
        Smallest relative decrease of the objective; for squared loss the largest squared norm of the
        residual; duality gap for "fw".
    multi_class : {"auto", "ovr", "ovr_shared", "multinomial"}
        With three classes or more: one problem for each class against the rest, each with its own features or
        with features that all share; or one multinomial logistic problem, whose classes share their features
        ("omp" or an `OMP` object). "auto" is "ovr": each class has its own features.
    class_weight : dict, "balanced" or None
        Weights by class label; "balanced": inversely proportional to class frequencies; None: all 1.
    random_state, verbose, time_limit
        As in `PursuitRegressor`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    multi_class_ : {"ovr", "ovr_shared", "multinomial"}
        What "auto" was; "ovr" for two classes.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
    intercept_ : ndarray of shape (1,) or (n_classes,)
    support_ : ndarray of int, or list of them
        Features in order of selection; a list when each class has its own.
    n_iter_, status_, entries_read_, history_, n_features_in_, feature_names_in_
        As in `PursuitRegressor`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skpursuit import PursuitClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = PursuitClassifier(n_nonzero_coefs=2, scale="none", multi_class="multinomial").fit(X, y)
    >>> model.coef_.shape, len(model.support_), model.score(X, y) > 0.9
    ((3, 4), 2, True)
    """


@dataclass(kw_only=True, eq=False, repr=False)
class PursuitClassifierCV(PathCVMixin, PursuitClassifierMixin, BaseEstimator):
    """Linear classification whose features, and how many, are chosen by the data.

    Parameters
    ----------
    solver : "auto", {"omp", "mp", "cosamp", "grasp", "sp"}, Solver or list of them
        "auto": boosted and greedy ridge models compete on the same folds (see Notes).
        Others as in `PursuitRegressorCV`.
    selector, scoring, fit_intercept, scale, ridges, selection
        As in `PursuitRegressorCV`.
    feature_groups, always_include, exclude
        As in `PursuitRegressor`, for solvers by name.
    loss : {"logistic", "squared", "huber", "quantile"} or Loss
    max_nonzero_coefs : int, optional
        K. Default as in `PursuitRegressorCV`, but with ``solver="auto"``
        ``min(n_features, 2 * n_samples, 2000)``.
    cv : int, splitter or iterable, optional
        Default: 5 folds; with ``solver="auto"`` 10 up to 150 samples, 20 below 100. Folds are stratified.
        With ``solver="auto"`` a number of folds is drawn at random, twice for 150 to 500 samples.
    multi_class : {"auto", "ovr", "ovr_shared", "multinomial"}
        As in `PursuitClassifier`, but "auto" is "multinomial" with ``solver="auto"`` and logistic loss: its
        probabilities are better, and it takes less time. It is "ovr" with other solvers and losses, with a
        selector or an information criterion, and where X is not a plain array in memory. One number of
        coefficients serves all classes.
    class_weight
        As in `PursuitClassifier`.
    null_test, n_jobs, random_state, verbose, time_limit
        As in `PursuitRegressorCV`.

    Attributes
    ----------
    classes_, multi_class_, coef_, intercept_, support_
        As in `PursuitClassifier`, of the chosen model.
    n_nonzero_coefs_, choice_, cv_losses_, scores_, path_sizes_, path_features_, coef_path_, path_scales_
        As in `PursuitRegressorCV`.
    n_iter_, status_, entries_read_, history_, n_features_in_, feature_names_in_
        As in `PursuitClassifier`, of the runs on all samples.

    Notes
    -----
    ``solver="auto"`` scales the features (`scale`) and grows models on all folds together. Greedy models: the
    features with the largest gradients join, one by one up to 10 and then more at a time, and a few Newton
    steps with a ridge fit their coefficients; ridges are tried from 0.1 downwards while the held-out loss
    falls, else upwards. Boosted models, on dense X of moderate size: the feature with the largest gradient
    moves by a fifth of a safe step, up to 1000 times. The best greedy and the best boosted model, or the mean
    of both, are chosen as in `PursuitRegressorCV`, and fitted on all samples by the same steps.

    See Also
    --------
    PathDisplay : Draws the path, the scores and the choice.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from skpursuit import PursuitClassifierCV
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = PursuitClassifierCV().fit(X, y)
    >>> model.n_nonzero_coefs_ == len(model.support_), model.score(X, y) > 0.95
    (True, True)
    """

    def _default_folds(self, rows: float, labels: np.ndarray) -> tuple[int, int]:
        """With few samples more folds, so that each leaves nearly all of them to learn from."""
        if rows <= FEW_SAMPLES:
            most = 10 if rows >= FEWER else 20
            return max(5, min(most, int(np.unique(labels, return_counts=True)[1].min()))), 1
        return 5, 2 if rows <= 500 else 1
