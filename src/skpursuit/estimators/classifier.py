"""`PursuitClassifier`: sparse linear classification, two classes or many."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets

from skpursuit.data.base import Design, Floats, Indices
from skpursuit.estimators.checks import check_parameters
from skpursuit.estimators.fitted import FittedMixin
from skpursuit.estimators.linear import Samples, read_data
from skpursuit.estimators.recipe import Fit, Recipe
from skpursuit.numerics.blas import one_thread
from skpursuit.problem.losses import Logistic, Loss, as_loss
from skpursuit.problem.losses.multinomial import Multinomial
from skpursuit.selectors import Selector
from skpursuit.solvers.base import Solver


def _has_probabilities(estimator: Any) -> bool:
    """Whether the loss is one that gives probabilities; raises AttributeError otherwise."""
    if not hasattr(as_loss(estimator.loss), "probability"):
        raise AttributeError(f"predict_proba needs loss='logistic'; loss {estimator.loss!r} gives no chances")
    return True


class ClassifierPredictMixin(FittedMixin, ClassifierMixin):
    """Reading labels, and predictions of a classifier."""

    loss: str | Loss
    multi_class: str
    class_weight: Any
    classes_: Any

    def _read(self, X: Any, y: Any, sample_weight: Any) -> Samples:
        """Checked data, with class codes 0, 1, ... for y and the class weights in the sample weights."""
        samples = read_data(self, X, y, sample_weight)
        check_classification_targets(samples.y)
        if self.class_weight is not None:
            balance = compute_sample_weight(self.class_weight, samples.y)
            weights = samples.weights
            samples = samples.weighted(balance if weights is None else weights * balance)
        self.classes_, codes = np.unique(samples.y, return_inverse=True)
        if len(self.classes_) < 2:
            weighted = "" if samples.weights is None else " with a weight above zero"
            raise ValueError(f"y has one class only{weighted}; a classifier needs at least two")
        return samples._replace(y=codes)

    def _keep(self, fits: list[Fit], base: Design, joint: bool) -> None:
        super()._keep(fits, base, joint)
        self.coef_, self.intercept_ = np.atleast_2d(self.coef_), np.atleast_1d(self.intercept_)

    def decision_function(self, X: Any) -> Floats:
        """X w + b: positive for the second of two classes, else one column per class."""
        z = self._linear(X)
        return z[:, 0] if z.shape[1] == 1 else z

    def predict(self, X: Any) -> Any:
        """Predict class labels."""
        z = self.decision_function(X)
        return self.classes_[(z > 0).astype(np.intp) if z.ndim == 1 else z.argmax(axis=1)]

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> Floats:
        """Class probabilities, shape (n_samples, n_classes); one-vs-rest chances are made to sum to one."""
        z = self._linear(X)
        if z.shape[1] > 1 and self.multi_class == "multinomial":
            return Multinomial().probabilities(z)
        loss: Any = as_loss(self.loss)
        p = loss.probability(z)
        if p.shape[1] == 1:
            return np.hstack([1.0 - p, p])
        total = p.sum(axis=1, keepdims=True)
        return np.where(total > 0, p, 1.0) / np.where(total > 0, total, p.shape[1])

    @available_if(_has_probabilities)
    def predict_log_proba(self, X: Any) -> Floats:
        """Logarithms of the class probabilities."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))


class PursuitClassifier(ClassifierPredictMixin, BaseEstimator):
    """Linear classification with few non-zero coefficients.

    Parameters
    ----------
    solver : {"omp", "mp", "cosamp", "grasp", "fw"} or Solver
        The outer algorithm. A `Solver` object brings its own limits.
    selector : str or Selector
        How the best columns are found; see `minimize`.
    loss : {"logistic", "squared", "huber"} or Loss
        A loss of labels -1 and +1.
    n_nonzero_coefs : int, optional
        Features of each support. Default: a tenth of the features or 10, whichever is more, but not more than
        there are samples or features, which is the limit with `tol`. More than there are features is clipped
        with a warning.
    tol : float, optional
        Smallest relative decrease of the objective; for squared loss the largest squared norm of the
        residual; duality gap for "fw".
    fit_intercept : bool
    normalize : bool
        Whether features compete as if all had the same norm (after centring, with an intercept).
        Coefficients are always those of the features as given.
    max_iter : int, optional
        Limit on iterations; the default is the solver's.
    multi_class : {"ovr", "multinomial"}
        With three classes or more: one problem for each class against the rest, or one multinomial logistic
        problem, whose classes share their features ("omp" only).
    shared_support : bool
        Whether the problems of "ovr" share their features.
    radius : float
        Bound on the l1 norm of the coefficients, for "fw" only; of the scaled ones with `normalize`.
    ridge : float, optional
        Penalty of ridge / 2 times the squared coefficients, with `normalize` those of the scaled features,
        and never of the intercept. For "omp" and "grasp" with other losses than squared; refused where it
        would have no effect. Default: 0.03 for losses that give probabilities, where it keeps separable
        classes finite, else none.
    class_weight : dict, "balanced" or None
    random_state : int, RandomState, Generator or None
        Seed of randomised selectors.
    warm_start : bool
        Begin with the features ("omp") or coefficients (others) of the last fit.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
    intercept_ : ndarray of shape (1,) or (n_classes,)
    support_ : ndarray of int, or list of them
        Features in order of selection; a list when each class has its own.
    n_iter_ : int
        The largest number of iterations of a problem.
    status_ : Status or list of Status
    entries_read_ : int
        Entries of X that selection has read.
    history_ : list of Record, or list of such lists
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only when X has column names.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skpursuit import PursuitClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = PursuitClassifier(n_nonzero_coefs=2, multi_class="multinomial").fit(X, y)
    >>> model.coef_.shape, len(model.support_), model.score(X, y) > 0.9
    ((3, 4), 2, True)
    """

    def __init__(
        self,
        *,
        solver: str | Solver = "omp",
        selector: str | Selector = "auto",
        loss: str | Loss = "logistic",
        n_nonzero_coefs: int | None = None,
        tol: float | None = None,
        fit_intercept: bool = True,
        normalize: bool = False,
        max_iter: int | None = None,
        multi_class: str = "ovr",
        shared_support: bool = False,
        radius: float = 1.0,
        ridge: float | None = None,
        class_weight: Any = None,
        random_state: Any = None,
        warm_start: bool = False,
    ) -> None:
        self.solver = solver
        self.selector = selector
        self.loss = loss
        self.n_nonzero_coefs = n_nonzero_coefs
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.normalize = normalize
        self.max_iter = max_iter
        self.multi_class = multi_class
        self.shared_support = shared_support
        self.radius = radius
        self.ridge = ridge
        self.class_weight = class_weight
        self.random_state = random_state
        self.warm_start = warm_start

    @one_thread()
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse array of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,), optional
        """
        check_parameters(self)
        base, codes, weights, _ = self._read(X, y, sample_weight)
        recipe = class_recipe(self, len(self.classes_))
        problems = class_problems(self, codes, len(self.classes_))
        starts = self._starts(problems, (1 if len(self.classes_) == 2 else len(self.classes_), base.shape[1]))
        fits = [recipe.fit(base, target, weights, start) for target, start in zip(problems, starts)]
        self._keep(fits, base, joint=len(problems) == 1)
        return self


def class_recipe(estimator: Any, n_classes: int, **changes: Any) -> Recipe:
    """The recipe for one of the problems a classifier solves."""
    if n_classes > 2 and estimator.multi_class == "multinomial":
        if estimator.solver != "omp":
            raise ValueError("multi_class='multinomial' needs solver='omp'; use 'ovr' with other solvers")
        if not isinstance(as_loss(estimator.loss), Logistic):
            raise ValueError("multi_class='multinomial' needs loss='logistic'; use 'ovr' with other losses")
        return Recipe.of(estimator, loss=Multinomial(), **changes)
    return Recipe.of(estimator, **changes)


def class_problems(estimator: Any, codes: Indices, n_classes: int) -> list[Any]:
    """Targets of the problems: labels -1 and +1 of one class or of all, or class numbers."""
    if n_classes == 2:
        return [2.0 * codes - 1.0]
    if estimator.multi_class == "multinomial":
        return [codes]
    signs = np.where(codes[:, None] == np.arange(n_classes), 1.0, -1.0)
    return [signs] if estimator.shared_support else list(signs.T)
