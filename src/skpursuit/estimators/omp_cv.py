"""`OrthogonalMatchingPursuitCV`, used as scikit-learn's."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.parallel import Parallel, delayed

from skpursuit.data import Design
from skpursuit.data.base import Floats
from skpursuit.data.grams import GATHERED_ENTRIES
from skpursuit.estimators.checks import check_parameters
from skpursuit.estimators.fold_gram import FoldGrams
from skpursuit.estimators.folds import SplitterRoutingMixin, alone, fold_weights, predictions
from skpursuit.estimators.linear import LinearMixin, clipped, make_frame, read_data
from skpursuit.estimators.omp import OrthogonalMatchingPursuit
from skpursuit.estimators.omp_functions import PREMATURE, gram_is_cheaper, pursue_targets
from skpursuit.numerics.blas import one_thread
from skpursuit.numerics.threads import limited
from skpursuit.parameters import check_count
from skpursuit.problem.losses import Squared
from skpursuit.selectors import Selector


class OrthogonalMatchingPursuitCV(SplitterRoutingMixin, LinearMixin, RegressorMixin, BaseEstimator):
    """Cross-validated orthogonal matching pursuit, a drop-in for scikit-learn's class of the same name.

    One run per fold gives all numbers of coefficients. All folds share one design.

    Parameters
    ----------
    copy : bool
        Of no effect: X is never changed nor copied.
    fit_intercept : bool
    max_iter : int, optional
        The largest number of coefficients tried. Default, and 0: a tenth of the features, at least 5 if there
        are.
    cv : int, splitter or iterable, optional
        Default: 5 folds. It splits the samples with a weight above zero.
    n_jobs : int, optional
        Folds fitted at once, in threads.
    verbose : bool or int
    selector : str or Selector
        How the best atom is found; see `minimize`.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
    intercept_ : float
    n_nonzero_coefs_ : int
        The number of coefficients with the smallest mean squared error over the folds.
    n_iter_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only when X has column names.

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> from skpursuit import OrthogonalMatchingPursuitCV
    >>> X, y = make_regression(n_features=100, n_informative=10, noise=4, random_state=0)
    >>> int(OrthogonalMatchingPursuitCV(cv=5).fit(X, y).n_nonzero_coefs_)
    10
    """

    def __init__(
        self,
        *,
        copy: bool = True,
        fit_intercept: bool = True,
        max_iter: int | None = None,
        cv: Any = None,
        n_jobs: int | None = None,
        verbose: bool | int = False,
        selector: str | Selector = "auto",
    ) -> None:
        self.copy = copy
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.cv = cv
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.selector = selector

    @one_thread()
    def fit(self, X: Any, y: Any, sample_weight: Any = None, **fit_params: Any) -> Self:
        """Choose the number of coefficients by cross-validation, then fit on all rows.

        Parameters
        ----------
        X : array-like or sparse array of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
        **fit_params : dict
            For the splitter; needs scikit-learn's metadata routing.
        """
        check_parameters(self, max_iter=partial(check_count, least=0))
        base, y, weights, kept = read_data(self, X, y, sample_weight, y_numeric=True, ensure_min_features=2)
        d = base.shape[1]
        most = clipped("max_iter", self.max_iter, d) if self.max_iter else min(max(int(0.1 * d), 5), d)
        splits = self._splits(y, kept, fit_params)
        with limited(self.n_jobs):
            grams = self._grams(base, y, weights, most * len(splits))
            errors = Parallel(n_jobs=self.n_jobs, verbose=int(self.verbose), require="sharedmem")(
                delayed(self._errors)(alone(base), y, weights, (*split, grams), most) for split in splits
            )
        shortest = min(len(fold) for fold in errors)
        mean = np.mean([fold[:shortest] for fold in errors], axis=0)
        self.n_nonzero_coefs_ = np.argmin(mean) + 1
        final = OrthogonalMatchingPursuit(
            n_nonzero_coefs=int(self.n_nonzero_coefs_),
            fit_intercept=self.fit_intercept,
            selector=self.selector,
        )
        final._fit_design(base, y, weights)
        self.coef_, self.intercept_, self.n_iter_ = final.coef_, final.intercept_, final.n_iter_
        return self

    def _grams(self, base: Design, y: Floats, weights: Floats | None, steps: int) -> FoldGrams | None:
        """Gram matrices of the folds, where X is small and they are cheaper than products with X."""
        small = base.shape[0] * base.shape[1] <= GATHERED_ENTRIES
        cheaper = small and gram_is_cheaper(base, steps // 2, self.selector)
        if not (cheaper and base.squares_fit()):
            return None
        return FoldGrams(base, y, weights, self.fit_intercept)

    def _errors(self, base: Design, y: Floats, weights: Floats | None, split: Any, most: int) -> Floats:
        """Mean squared error on the test part, for 1, 2, ... coefficients."""
        train, test, grams = split
        if grams is not None and grams.serves(train, test):
            path, centre, offset = grams.path(test, most)
        else:
            frame = make_frame(base, y, Squared(), fold_weights(train, len(y), weights), self.fit_intercept)
            path = pursue_targets(frame.design, frame.y[:, None], most, None, selector=self.selector)[0]
            centre, offset = frame.centre, frame.offset
        if path.premature:
            warnings.warn(PREMATURE, RuntimeWarning, stacklevel=2)
        models = []
        for k in range(min(1, len(path)), len(path) + 1):
            columns, coef = path.support[:k], path.coef(k)
            models.append((columns, coef, offset - centre[columns] @ coef))
        part = None if weights is None else weights[test]
        return np.array(
            [np.average((y[test] - z) ** 2, weights=part) for z in predictions(base, models, test)]
        )

    def predict(self, X: Any) -> Floats:
        """Predict the target, shape (n_samples,)."""
        return self._linear(X)
