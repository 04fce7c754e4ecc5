"""`PursuitRegressor`: sparse regression by any solver, selector and loss of the library."""

from __future__ import annotations

from typing import Any, Self

from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import column_or_1d

from skpursuit.data.base import Floats
from skpursuit.estimators.checks import check_parameters
from skpursuit.estimators.fitted import FittedMixin
from skpursuit.estimators.linear import Samples, read_data
from skpursuit.estimators.recipe import Recipe
from skpursuit.numerics.blas import one_thread
from skpursuit.problem.losses import Loss, Poisson, as_loss
from skpursuit.selectors import Selector
from skpursuit.solvers.base import Solver


class RegressorPredictMixin(FittedMixin, RegressorMixin):
    """Reading targets, and predictions of a regressor: the mean that its loss gives to X w + b."""

    loss: str | Loss

    def _read(self, X: Any, y: Any, sample_weight: Any) -> Samples:
        """Checked data; one column of counts is a vector, as in scikit-learn's Poisson regression."""
        samples = read_data(self, X, y, sample_weight, multi_output=True, y_numeric=True)
        if _counts(self.loss) and samples.y.ndim == 2 and samples.y.shape[1] == 1:
            return samples._replace(y=column_or_1d(samples.y, warn=True))
        return samples

    def predict(self, X: Any) -> Floats:
        """Predict the targets, shape (n_samples,) or (n_samples, n_targets)."""
        z = self._linear(X)
        loss = as_loss(self.loss)
        return loss.mean(z) if hasattr(loss, "mean") else z

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if _counts(self.loss):
            tags.target_tags.positive_only = True
            # Several targets are fine, but to scikit-learn the tag means targets of any sign.
            tags.target_tags.multi_output = False
        return tags


def _counts(loss: Any) -> bool:
    return loss == "poisson" or isinstance(loss, Poisson)


class PursuitRegressor(RegressorPredictMixin, MultiOutputMixin, BaseEstimator):
    """Linear regression with few non-zero coefficients.

    Parameters
    ----------
    solver : {"omp", "mp", "cosamp", "grasp", "fw"} or Solver
        The outer algorithm. A `Solver` object brings its own limits.
    selector : str or Selector
        How the best columns are found; see `minimize`.
    loss : {"squared", "huber", "poisson"} or Loss
    n_nonzero_coefs : int, optional
        Default: a tenth of the features or 10, whichever is more, but not more than there are samples or
        features, which is the limit with `tol`. More than there are features is clipped with a warning.
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

    def __init__(
        self,
        *,
        solver: str | Solver = "omp",
        selector: str | Selector = "auto",
        loss: str | Loss = "squared",
        n_nonzero_coefs: int | None = None,
        tol: float | None = None,
        fit_intercept: bool = True,
        normalize: bool = False,
        max_iter: int | None = None,
        shared_support: bool = False,
        radius: float = 1.0,
        ridge: float | None = None,
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
        self.shared_support = shared_support
        self.radius = radius
        self.ridge = ridge
        self.random_state = random_state
        self.warm_start = warm_start

    @one_thread()
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse array of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array-like of shape (n_samples,), optional
        """
        check_parameters(self)
        recipe = Recipe.of(self)
        base, y, weights, _ = self._read(X, y, sample_weight)
        targets = [y] if y.ndim == 1 or self.shared_support else list(y.T)
        starts = self._starts(targets, (y.size // len(y), base.shape[1]))
        fits = [recipe.fit(base, t, weights, start) for t, start in zip(targets, starts)]
        self._keep(fits, base, joint=targets[0] is y)
        return self
