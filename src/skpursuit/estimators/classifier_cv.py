"""`PursuitClassifierCV`: sparse classification that chooses its number of coefficients."""

from __future__ import annotations

from typing import Any, Self

from sklearn.base import BaseEstimator

from skpursuit.estimators.checks import PATH_SOLVERS, a_choice, check_parameters
from skpursuit.estimators.classifier import ClassifierPredictMixin, class_problems, class_recipe
from skpursuit.estimators.path_cv import PathCVMixin, Study
from skpursuit.loop.run import seed_of
from skpursuit.numerics.blas import one_thread
from skpursuit.problem.losses import Loss
from skpursuit.selectors import Selector


class PursuitClassifierCV(PathCVMixin, ClassifierPredictMixin, BaseEstimator):
    """Linear classification whose number of non-zero coefficients is chosen by the data.

    All numbers 1, 2, ..., K come from one run on each fold; the folds share one design (norms, twins).

    Parameters
    ----------
    solver : {"omp", "mp", "cosamp", "grasp"}
        The outer algorithm; the last two need a run for each number.
    selector : str or Selector
        How the best columns are found; see `minimize`.
    loss : {"logistic", "squared", "huber"} or Loss
    max_nonzero_coefs : int, optional
        K. Default: a tenth of the features, at least 10, at most all of them and half the samples.
    criterion : {"cv", "aic", "bic", "ebic"}
        What chooses: cross-validation, or an information criterion of one run on all samples.
    cv : int, splitter or iterable, optional
        Default: 5 stratified folds. It splits the samples with a weight above zero.
    scoring : str or callable, optional
        A scikit-learn scorer such as "accuracy", or a function ``scorer(estimator, X, y)``, that judges each
        number on the folds. It is given the test rows of X and an estimator fitted to the others, and the
        weights of the test rows as `sample_weight` if it has such a parameter. Default: minus the mean loss.
    fit_intercept, normalize : bool
        As in `PursuitClassifier`.
    max_iter : int, optional
        Limit on iterations of a run; the default is the solver's.
    multi_class, shared_support, ridge, class_weight
        As in `PursuitClassifier`; one number of coefficients serves all classes.
    n_jobs : int, optional
        Folds fitted at once, in threads.
    random_state : int, RandomState, Generator or None
        Seed of randomised selectors.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    n_nonzero_coefs_ : int
        The chosen number.
    scores_ : ndarray of shape (n_folds, K)
        The larger the better; for an information criterion one row, minus the criterion.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
    intercept_ : ndarray of shape (1,) or (n_classes,)
    support_ : ndarray of int, or list of them
        Features of the chosen model in order of selection; a list when each class has its own.
    path_features_ : ndarray of int
        All features that occur on the path of the whole data.
    coef_path_ : ndarray of shape (K, n_path_features) or (K, n_classes, n_path_features)
        Their coefficients for each number.
    n_iter_, status_, entries_read_, history_
        As in `PursuitClassifier`, of the runs on all samples.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only when X has column names.

    See Also
    --------
    PathDisplay : Draws the path, the scores and the choice.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from skpursuit import PursuitClassifierCV
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = PursuitClassifierCV(normalize=True, scoring="accuracy").fit(X, y)
    >>> model.n_nonzero_coefs_ == len(model.support_), model.score(X, y) > 0.95
    (True, True)
    """

    def __init__(
        self,
        *,
        solver: str = "omp",
        selector: str | Selector = "auto",
        loss: str | Loss = "logistic",
        max_nonzero_coefs: int | None = None,
        criterion: str = "cv",
        cv: Any = None,
        scoring: Any = None,
        fit_intercept: bool = True,
        normalize: bool = False,
        max_iter: int | None = None,
        multi_class: str = "ovr",
        shared_support: bool = False,
        ridge: float | None = None,
        class_weight: Any = None,
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
        self.multi_class = multi_class
        self.shared_support = shared_support
        self.ridge = ridge
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.random_state = random_state

    @one_thread()
    def fit(self, X: Any, y: Any, sample_weight: Any = None, **fit_params: Any) -> Self:
        """Choose the number of coefficients and fit it on all samples.

        Parameters
        ----------
        X : array-like or sparse array of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,), optional
        **fit_params : dict
            For the splitter; needs scikit-learn's metadata routing.
        """
        check_parameters(self, solver=a_choice(*PATH_SOLVERS))
        samples = self._read(X, y, sample_weight)
        base, codes, _, kept = samples
        recipe = class_recipe(self, len(self.classes_), random_state=seed_of(self.random_state))
        problems = class_problems(self, codes, len(self.classes_))
        labels = self.classes_[codes]
        joint = len(problems) == 1
        study = Study(X, samples, labels, problems, recipe, self._most(base), joint)
        splits = self._splits(labels, kept, fit_params, classifier=True) if self.criterion == "cv" else []
        self._choose(study, splits)
        return self
