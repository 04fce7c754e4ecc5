"""`PursuitRegressor` and `PursuitRegressorCV`: sparse regression by any solver, selector and loss.

Several targets either share one set of features, found by one run on all of them, or each has its own run.
`fit` is that of `base.py` and `pursuit_cv.py`; here is what a regressor reads, solves and predicts.
"""

from dataclasses import dataclass

from sklearn.utils import Tags
from sklearn.utils.validation import column_or_1d

from skpursuit.estimators.base import (
    CheckedSamples,
    PursuitBase,
    PursuitParameters,
    Subproblems,
    lazy_on_dask,
)
from skpursuit.estimators.linear_fit import FitConfig
from skpursuit.estimators.pursuit_cv import PathCVMixin
from skpursuit.estimators.sklearn_types import BaseEstimator, MultiOutputMixin, RegressorMixin
from skpursuit.numerics.arrays import Floats
from skpursuit.problem.losses import Loss, as_loss


@dataclass(kw_only=True, eq=False, repr=False)
class PursuitRegressorMixin(PursuitBase, RegressorMixin):
    """Reading targets, and predictions of a regressor: the mean that its loss gives to X w + b."""

    loss: str | Loss = "squared"
    shared_support: bool = True
    positive: bool = False

    def _validate(self, X: object, y: object, sample_weight: object) -> CheckedSamples:
        """Checked data; one column of counts is a vector, as in scikit-learn's Poisson regression."""
        samples = self._check_samples(X, y, sample_weight, multi_output=True, y_numeric=True)
        if as_loss(self.loss).nonnegative_targets and samples.y.ndim == 2 and samples.y.shape[1] == 1:
            return samples._replace(y=column_or_1d(samples.y, warn=True))
        return samples

    def _subproblems(self, y: Floats, **changes: object) -> Subproblems:
        joint = y.ndim == 1 or self.shared_support
        return Subproblems(FitConfig.from_estimator(self, **changes), [y] if joint else list(y.T), joint)

    @lazy_on_dask
    def predict(self, X: object) -> Floats:
        """Predict the targets, shape (n_samples,) or (n_samples, n_targets)."""
        return as_loss(self.loss).mean(self._decision(X))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        try:
            tags.target_tags.positive_only = as_loss(self.loss).nonnegative_targets
        except (TypeError, ValueError):
            return tags  # `fit` says what is wrong with the loss
        if tags.target_tags.positive_only:
            # Several targets are fine, but to scikit-learn the tag means targets of any sign.
            tags.target_tags.multi_output = False
        return tags


@dataclass(kw_only=True, eq=False, repr=False)
class PursuitRegressor(PursuitParameters, PursuitRegressorMixin, MultiOutputMixin, BaseEstimator):
    """Linear regression with few non-zero coefficients.

    Parameters
    ----------
    solver : {"omp", "mp", "cosamp", "grasp", "fw", "sp"} or Solver
        The outer algorithm. A `Solver` object brings its own limits, and those given beside it are refused.
        "fw" bounds the l1 norm of the coefficients, of the scaled ones with `scale`, by 1;
        ``FrankWolfe(L1Ball(2.0))`` by 2.
    selector : str or Selector
        How the best columns are found; see `minimize`.
    loss : {"squared", "huber", "quantile", "poisson", "gamma", "tweedie"} or Loss
    n_nonzero_coefs : int, optional
        Default: ``min(n_samples, n_features, max(10, n_features // 10))``, or ``min(n_samples, n_features)``
        with `tol`. More than there are features is clipped with a warning; refused with "fw".
    tol : float, optional
        Largest squared norm of the residual for squared loss; smallest relative decrease of the objective
        for others; duality gap for "fw".
    fit_intercept : bool
        Whether to fit an intercept, which is never penalised.
    scale : {"auto", "column", "none"}
        What makes features compete on equal terms: "column" divides each by its spread, "auto" does it for
        dense X and divides a sparse X by one number, because rare words are not as good as common ones.
        Coefficients are always those of the features as given.
    max_iter : int, optional
        Limit on iterations; the default is the solver's.
    shared_support : bool
        With several targets: one set of features for all, or one for each.
    ridge : float, optional
        (ridge / 2) ||w||^2 is added to the mean loss, with w the coefficients of the scaled features
        (`scale`) and never the intercept, while features are chosen and while they are fitted. For "omp",
        "cosamp", "grasp" and "sp"; refused elsewhere. Default: 0.03 (with ``scale="none"`` 0.03 / n_samples)
        for losses that give probabilities, which keeps separable classes finite; else 0.
    feature_groups : array of labels or list of lists, optional
        Features that enter together, as the levels of one variable: a label for each feature, or lists of
        features by number or by name, the others being alone. `n_nonzero_coefs` counts groups. Not for "fw";
        the CV estimator needs a solver by name.
    always_include, exclude : sequence of int or str
        Features that are in every model (not of "mp"), counted by `n_nonzero_coefs`, and features that are in
        none, by number or by name, with `feature_groups` the whole group of each; "fw" takes neither.
    positive : bool
        Coefficients of at least 0, with squared loss and one target; not for "fw".
    random_state : int, RandomState, Generator or None
        Seed of randomised selectors.
    verbose : bool, int or "auto"
        Whether to say what is done, from the third second on. "auto": in a terminal or a notebook.
    time_limit : float, optional
        Seconds after which `fit` ends with what it has.

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


@dataclass(kw_only=True, eq=False, repr=False)
class PursuitRegressorCV(PathCVMixin, PursuitRegressorMixin, MultiOutputMixin, BaseEstimator):
    """Linear regression whose features, and how many, are chosen by the data.

    Parameters
    ----------
    solver : "auto", {"omp", "mp", "cosamp", "grasp", "sp"}, Solver or list of them
        "auto": boosted models, greedy ridge models and, for squared loss, ridge models with exchanges compete
        on the same folds (see Notes).
        Solvers by name, as objects or in a list compete instead, each with 1 to K coefficients; "cosamp",
        "grasp" and "sp" need a run for each number. Without `scoring` they end before K, on all folds
        together, once 8 numbers brought no new best and the loss has risen by a standard error.
        An object brings its own limits, except for the number.
        "auto" stands for "omp", with a warning, for the loss "quantile", with an information criterion, and
        where X is not a plain array in memory (a large file, a Dask collection, a view).
    selector : str or Selector
        How solvers by name find the best columns; see `minimize`. The models of "auto" ask none, so it is
        refused there: name ``solver="omp"``.
    loss : {"squared", "huber", "quantile", "poisson", "gamma", "tweedie"} or Loss
    max_nonzero_coefs : int, optional
        K. Default: ``min(n_features, n_samples // 2, 2000)``, with a criterion ``n_samples // 4``, beyond
        which it is not valid. Solvers by name begin with at most ``max(10, n_features // 10)`` and try twice
        as many as long as the largest number is the best.
    cv : int, splitter or iterable, optional
        Default: 5 folds. It splits the samples with a weight above zero. With ``solver="auto"`` a number of
        folds is drawn at random, twice for up to 1000 samples; ``RepeatedKFold`` repeats as often as it is
        told.
    scoring : str or callable, optional
        "aic", "bic" or "ebic": an information criterion of one run on all samples chooses, without folds.
        "loo", with ``solver="omp"``: the leave-one-out error of its least squares does, exact for features
        of each model, times the correction for few samples that polynomial chaos expansions are chosen by.
        Equal samples are predicted from each other: where samples belong together, choose by folds of groups.
        Else a scikit-learn scorer, or a function ``scorer(estimator, X, y)``, that evaluates each number on
        the folds. It is given the test rows of X and an estimator fitted to the others, and the weights of
        the test rows as `sample_weight` if it has such a parameter. Default: minus the mean loss.
    fit_intercept, scale, verbose
        As in `PursuitRegressor`.
    feature_groups, always_include, exclude, positive
        As in `PursuitRegressor`, for solvers by name.
    ridges : "auto", float or list of float
        Ridges that compete: penalties of ridge / 2 times the squared coefficients of the scaled features
        beside the mean loss, never of the intercept. "auto" searches with ``solver="auto"``; solvers by name
        take the default of `PursuitRegressor`.
    selection : {"best", "one_se"}
        "best": the model with the best score; with ``solver="auto"`` one of its family and ridge with fewer
        features whose score is worse by at most a quarter of a standard error and, without `scoring`,
        0.35 % of what the best gains over a constant. "one_se": of all models the one with the fewest
        features whose score is within one standard error of the best. The standard error is that of the best
        model's mean score over the folds.
    shared_support : bool
        With several targets: one set of features for all, or one for each; one number of coefficients serves
        all targets.
    null_test : bool
        Whether the model has no features unless it beats the best constant on the rows held out: by 3
        standard errors (1.6 where X is not in memory), or if targets that are permuted over the rows look as
        related to X in at most 8 % of the permutations, or a share of 9 / n_samples if that is more. A choice
        by `scoring` is not tested.
    n_jobs : int, optional
        Folds that solvers by name fit at once, in threads, with the same bits. It is not used by
        ``solver="auto"``, which makes the products of all folds together, on one thread.
    random_state : int, RandomState, Generator or None
        Seed of the folds and of randomised selectors.
    time_limit : float, optional
        Seconds after which no more models are tried; the chosen one is still fitted on all samples.

    Attributes
    ----------
    n_nonzero_coefs_ : int
        The chosen number of features, 0 where nothing can be predicted.
    choice_ : dict
        What was chosen: "family", "ridge", "k", and how many standard errors it is better than the runner-up
        ("t_runner_up") and than nothing ("t_null"), and the share of permutations of `null_test` ("p_null";
        NaN if there were none).
    cv_losses_ : dict of ndarrays
        Every model that competed: "family", "ridge", "size" (coefficients, or steps of boosting),
        "n_features" (mean over the folds) and "loss" (mean over the rows held out).
    scores_ : ndarray of shape (n_folds, n_path)
        Scores of the models of the chosen family and ridge, the larger the better; where a mean was chosen,
        of its sparse member's family up to that member, and of the mean. For an information criterion one
        row, minus the criterion.
    path_sizes_ : ndarray of shape (n_path,)
        Their numbers of features, on all samples.
    path_features_ : ndarray of int
        All features that occur on the path of the whole data.
    coef_path_ : ndarray of shape (n_path, n_path_features) or (n_path, n_targets, n_path_features)
        Their coefficients in each model of the path.
    path_scales_ : ndarray of shape (n_path_features,)
        Their standard deviations.
    coef_, intercept_, support_, n_features_in_, feature_names_in_
        As in `PursuitRegressor`, of the chosen model.
    n_iter_, status_, entries_read_, history_
        As in `PursuitRegressor`, of the run on all samples.

    Notes
    -----
    ``solver="auto"`` standardises the features and lets three families of models compete on the same folds.
    Boosting moves the best feature by a tenth of its least-squares step, up to 1000 times; greedy models take
    features one by one (several at a time beyond 20) and fit them with a ridge; models with exchanges replace
    a feature by another while the ridge objective falls ("relaxed" ones drop the ridge then). With other
    losses boosted and greedy models compete as in `PursuitClassifierCV`; boosting needs a bound on the
    curvature, which Poisson, gamma and Tweedie losses do not have. A path ends once its held-out loss has
    clearly turned. The best boosted model and the best other one are compared by
    their paired difference: one that is better by 1.5 standard errors is taken, else the mean of both
    ("mean"), which predicts better than either where they err in different ways. Folds are drawn in
    the same way at every fit; a number for `random_state` draws others.

    See Also
    --------
    PathDisplay : Draws the path, the scores and the choice.

    Examples
    --------
    >>> from skpursuit import PursuitRegressorCV, datasets
    >>> X, y, w = datasets.make_sparse_signal(200, 400, 5, snr=20.0, random_state=0)
    >>> model = PursuitRegressorCV().fit(X, y)
    >>> model.n_nonzero_coefs_, model.choice_["family"]
    (5, 'relaxed')
    """
