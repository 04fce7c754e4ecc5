"""`PursuitRegressor` and `PursuitRegressorCV`: sparse regression by any solver, selector and loss.

Several targets either share one set of features, found by one run on all of them, or each has its own run.
`fit` is that of `base.py` and `path_cv.py`; here is what a regressor reads, solves and predicts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sklearn.utils.validation import column_or_1d

from skpursuit.estimators.base import Problems, PursuitBase, Samples
from skpursuit.estimators.lazy import lazy_on_dask
from skpursuit.estimators.linear_fit import FitConfig
from skpursuit.estimators.path_cv import PathCVMixin
from skpursuit.estimators.sklearn_types import BaseEstimator, MultiOutputMixin, RegressorMixin
from skpursuit.numerics.arrays import Floats
from skpursuit.problem.losses import Loss, as_loss
from skpursuit.selectors import Selector
from skpursuit.solvers import Solver


class PursuitRegressorMixin(PursuitBase, RegressorMixin):
    """Reading targets, and predictions of a regressor: the mean that its loss gives to X w + b."""

    loss: str | Loss
    shared_support: bool = True

    def _read(self, X: Any, y: Any, sample_weight: Any) -> Samples:
        """Checked data; one column of counts is a vector, as in scikit-learn's Poisson regression."""
        samples = self._check_samples(X, y, sample_weight, multi_output=True, y_numeric=True)
        if as_loss(self.loss).positive_targets and samples.y.ndim == 2 and samples.y.shape[1] == 1:
            return samples._replace(y=column_or_1d(samples.y, warn=True))
        return samples

    def _problems(self, y: Any, **changes: Any) -> Problems:
        joint = y.ndim == 1 or self.shared_support
        return Problems(FitConfig.of(self, **changes), [y] if joint else list(y.T), joint)

    @lazy_on_dask
    def predict(self, X: Any) -> Floats:
        """Predict the targets, shape (n_samples,) or (n_samples, n_targets)."""
        return as_loss(self.loss).mean(self._linear(X))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        try:
            tags.target_tags.positive_only = as_loss(self.loss).positive_targets
        except (TypeError, ValueError):
            return tags  # `fit` says what is wrong with the loss
        if tags.target_tags.positive_only:
            # Several targets are fine, but to scikit-learn the tag means targets of any sign.
            tags.target_tags.multi_output = False
        return tags


@dataclass(kw_only=True, eq=False, repr=False)
class PursuitRegressor(PursuitRegressorMixin, MultiOutputMixin, BaseEstimator):
    """Linear regression with few non-zero coefficients.

    Parameters
    ----------
    solver : {"omp", "mp", "cosamp", "grasp", "fw", "sp"} or Solver
        The outer algorithm. A `Solver` object brings its own limits.
    selector : str or Selector
        How the best columns are found; see `minimize`.
    loss : {"squared", "huber", "poisson", "quantile"} or Loss
    n_nonzero_coefs : int, optional
        Default: ``min(n_samples, n_features, max(10, n_features // 10))``, or ``min(n_samples, n_features)``
        with `tol`. More than there are features is clipped with a warning.
    tol : float, optional
        Largest squared norm of the residual for squared loss; smallest relative decrease of the objective
        for others; duality gap for "fw".
    fit_intercept : bool
    normalize : bool
        Whether features compete as if all had the same norm (after centring, with an intercept).
        Coefficients are always those of the features as given.
    max_iter : int, optional
        Limit on iterations; the default is the solver's.
    shared_support : bool
        With several targets: one set of features for all, or one for each.
    radius : float
        Bound on the l1 norm of the coefficients, for "fw" only; of the scaled ones with `normalize`.
    ridge : float, optional
        Penalty of ridge / 2 times the squared coefficients, with `normalize` those of the scaled features,
        and never of the intercept. For "omp" and "grasp" with other losses than squared; refused where it
        would have no effect. Default: 0.03 for losses that give probabilities, where it keeps separable
        classes finite, else none.
    random_state : int, RandomState, Generator or None
        Seed of randomised selectors.
    warm_start : bool
        Begin with the features ("omp") or coefficients (others) of the last fit.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_targets, n_features)
    intercept_ : float or ndarray of shape (n_targets,)
    support_ : ndarray of int, or list of them
        Features in order of selection; a list when each target has its own.
    n_iter_ : int
        The largest number of iterations of a target.
    status_ : Status or list of Status
        Why the run stopped.
    entries_read_ : int
        Entries of X that selection has read.
    history_ : list of Record, or list of such lists
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only when X has column names.

    Examples
    --------
    >>> from skpursuit import PursuitRegressor, datasets
    >>> X, y, w = datasets.make_sparse_signal(200, 400, 5, snr=20.0, random_state=0)
    >>> model = PursuitRegressor(n_nonzero_coefs=5).fit(X, y)
    >>> sorted(model.support_.tolist()) == w.nonzero()[0].tolist()
    True
    """

    solver: str | Solver = "omp"
    selector: str | Selector = "auto"
    loss: str | Loss = "squared"
    n_nonzero_coefs: int | None = None
    tol: float | None = None
    fit_intercept: bool = True
    normalize: bool = False
    max_iter: int | None = None
    shared_support: bool = False
    radius: float = 1.0
    ridge: float | None = None
    random_state: Any = None
    warm_start: bool = False


@dataclass(kw_only=True, eq=False, repr=False)
class PursuitRegressorCV(PathCVMixin, PursuitRegressorMixin, MultiOutputMixin, BaseEstimator):
    """Linear regression whose number of non-zero coefficients is chosen by the data.

    All numbers 1, 2, ..., K come from one run on each fold; the folds share one design (norms, codes).

    Parameters
    ----------
    solver : {"omp", "mp", "cosamp", "grasp", "sp"} or Solver
        The outer algorithm; the last two need a run for each number. A `Solver` object brings its own limits,
        except for the number of coefficients.
    selector : str or Selector
        How the best columns are found; see `minimize`.
    loss : {"squared", "huber", "poisson", "quantile"} or Loss
    max_nonzero_coefs : int, optional
        K. Default: ``min(n_features, max(10, n_features // 10), max(1, n_samples // 2))``.
    criterion : {"cv", "aic", "bic", "ebic"}
        What chooses: cross-validation, or an information criterion of one run on all samples.
    cv : int, splitter or iterable, optional
        Default: 5 folds. It splits the samples with a weight above zero.
    scoring : str or callable, optional
        A scikit-learn scorer, or a function ``scorer(estimator, X, y)``, that judges each number on the
        folds. It is given the test rows of X and an estimator fitted to the others, and the weights of the
        test rows as `sample_weight` if it has such a parameter. Default: minus the mean loss.
    fit_intercept, normalize : bool
        As in `PursuitRegressor`.
    max_iter : int, optional
        Limit on iterations of a run; the default is the solver's.
    ridge : float, optional
        Penalty of ridge / 2 times the squared coefficients, with `normalize` those of the scaled features,
        and never of the intercept. For "omp" and "grasp" with other losses than squared; refused where it
        would have no effect. Default: 0.03 for losses that give probabilities, where it keeps separable
        classes finite, else none.
    n_jobs : int, optional
        Folds fitted at once, in threads.
    random_state : int, RandomState, Generator or None
        Seed of randomised selectors.

    Attributes
    ----------
    n_nonzero_coefs_ : int
        The chosen number.
    scores_ : ndarray of shape (n_folds, K)
        The larger the better; for an information criterion one row, minus the criterion.
    coef_ : ndarray of shape (n_features,) or (n_targets, n_features)
        Several targets share their features.
    intercept_ : float or ndarray of shape (n_targets,)
    support_ : ndarray of int
        Features of the chosen model in order of selection.
    path_features_ : ndarray of int
        All features that occur on the path of the whole data.
    coef_path_ : ndarray of shape (K, n_path_features) or (K, n_targets, n_path_features)
        Their coefficients for each number.
    n_iter_, status_, entries_read_, history_
        As in `PursuitRegressor`, of the run on all samples.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only when X has column names.

    See Also
    --------
    PathDisplay : Draws the path, the scores and the choice.

    Examples
    --------
    >>> from skpursuit import PursuitRegressorCV, datasets
    >>> X, y, w = datasets.make_sparse_signal(200, 400, 5, snr=20.0, random_state=0)
    >>> PursuitRegressorCV(criterion="ebic").fit(X, y).n_nonzero_coefs_
    5
    """

    solver: str | Solver = "omp"
    selector: str | Selector = "auto"
    loss: str | Loss = "squared"
    max_nonzero_coefs: int | None = None
    criterion: str = "cv"
    cv: Any = None
    scoring: Any = None
    fit_intercept: bool = True
    normalize: bool = False
    max_iter: int | None = None
    ridge: float | None = None
    n_jobs: int | None = None
    random_state: Any = None
