"""`PursuitRegressorCV`: sparse regression that chooses its number of coefficients."""

from __future__ import annotations

from typing import Any, Self

from sklearn.base import BaseEstimator, MultiOutputMixin

from skpursuit.estimators.checks import PATH_SOLVERS, a_choice, check_parameters
from skpursuit.estimators.path_cv import PathCVMixin, Study
from skpursuit.estimators.recipe import Recipe
from skpursuit.estimators.regressor import RegressorPredictMixin
from skpursuit.loop.run import seed_of
from skpursuit.numerics.blas import one_thread
from skpursuit.problem.losses import Loss
from skpursuit.selectors import Selector


class PursuitRegressorCV(PathCVMixin, RegressorPredictMixin, MultiOutputMixin, BaseEstimator):
    """Linear regression whose number of non-zero coefficients is chosen by the data.

    All numbers 1, 2, ..., K come from one run on each fold; the folds share one design (norms, twins).

    Parameters
    ----------
    solver : {"omp", "mp", "cosamp", "grasp"}
        The outer algorithm; the last two need a run for each number.
    selector : str or Selector
        How the best columns are found; see `minimize`.
    loss : {"squared", "huber", "poisson"} or Loss
    max_nonzero_coefs : int, optional
        K. Default: a tenth of the features, at least 10, at most all of them and half the samples.
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

    def __init__(
        self,
        *,
        solver: str = "omp",
        selector: str | Selector = "auto",
        loss: str | Loss = "squared",
        max_nonzero_coefs: int | None = None,
        criterion: str = "cv",
        cv: Any = None,
        scoring: Any = None,
        fit_intercept: bool = True,
        normalize: bool = False,
        max_iter: int | None = None,
        ridge: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.solver = solver
        self.selector = selector
        self.loss = loss
        self.max_nonzero_coefs = max_nonzero_coefs
        self.criterion = criterion
        self.cv = cv
        self.scoring = scoring
        self.fit_intercept = fit_intercept
        self.normalize = normalize
        self.max_iter = max_iter
        self.ridge = ridge
        self.n_jobs = n_jobs
        self.random_state = random_state

    @one_thread()
    def fit(self, X: Any, y: Any, sample_weight: Any = None, **fit_params: Any) -> Self:
        """Choose the number of coefficients and fit it on all samples.

        Parameters
        ----------
        X : array-like or sparse array of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array-like of shape (n_samples,), optional
        **fit_params : dict
            For the splitter; needs scikit-learn's metadata routing.
        """
        check_parameters(self, solver=a_choice(*PATH_SOLVERS))
        recipe = Recipe.of(self, random_state=seed_of(self.random_state))
        samples = self._read(X, y, sample_weight)
        base, y, _, kept = samples
        study = Study(X, samples, y, [y], recipe, self._most(base), joint=True)
        splits = self._splits(y, kept, fit_params) if self.criterion == "cv" else []
        self._choose(study, splits)
        return self
