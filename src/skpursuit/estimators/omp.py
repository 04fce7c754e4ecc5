"""`OrthogonalMatchingPursuit` and `OrthogonalMatchingPursuitCV`, used as scikit-learn's.

Both standardize the data and leave the pursuit to `omp_functions.py`. Where X^T X is small, one pass over the
rows gives it together with the means, and those of the training parts of a cross-validation follow by
subtraction (`gram_data.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils.parallel import Parallel, delayed

from skpursuit.data import Design
from skpursuit.data.progress import current
from skpursuit.estimators.base import LinearBase, SummaryMixin, watched
from skpursuit.estimators.checks import COUNT_OR_ZERO, check_parameters
from skpursuit.estimators.folds import SplitterRoutingMixin, fold_weights
from skpursuit.estimators.gram_data import Moments
from skpursuit.estimators.gram_omp import FactorPath, GramPursuit
from skpursuit.estimators.lazy import lazy_on_dask
from skpursuit.estimators.linear_fit import full_coefs, predictions
from skpursuit.estimators.omp_functions import (
    expected_steps,
    omp_sparsity,
    pursue_targets,
    warn_if_premature,
    way_to_pursue,
)
from skpursuit.estimators.sklearn_types import BaseEstimator, MultiOutputMixin, RegressorMixin
from skpursuit.estimators.standardized import SQUARED, codes_of_run, standardize
from skpursuit.numerics.arrays import Floats, Indices
from skpursuit.numerics.threads import limited
from skpursuit.problem import sparsity
from skpursuit.selectors import Selector
from skpursuit.solvers.pursuit import OMP


class OMPBase(LinearBase, SummaryMixin, RegressorMixin):
    """Predictions, and the fit to all samples, of both estimators."""

    fit_intercept: bool
    selector: str | Selector

    @lazy_on_dask
    def predict(self, X: Any) -> Floats:
        """Predict the targets, shape (n_samples,) or (n_samples, n_targets)."""
        return self._linear(X)

    def _fit_design(
        self,
        base: Design,
        y: Floats,
        weights: Floats | None,
        k: int,
        tol: float | None = None,
        precompute: bool | str = "auto",
        moments: Moments | None = None,
    ) -> None:
        way = way_to_pursue(
            base, expected_steps(base, y.reshape(len(y), -1), k, tol), precompute, self.selector
        )
        if way == "gram" and moments is None and isinstance(base.whole, np.ndarray):
            moments = Moments(base, y, weights, self.fit_intercept)
        if moments is None:
            solver = OMP(base.shape[1] if tol is not None else k, tol)
            fine = codes_of_run(base, y.reshape(len(y), -1)[:, 0], SQUARED, weights, solver, self.selector)
            data = standardize(
                base, y, weights=weights, fit_intercept=self.fit_intercept, fine=fine
            ).weighted()
            design, targets, centre, offset = (
                data.design,
                data.y.reshape(len(y), -1),
                data.centre,
                data.offset,
            )
            paths = pursue_targets(design, targets, k, tol, way, self.selector)
        else:
            equations = moments.equations()
            root = None if weights is None else np.sqrt(weights)
            design = base.with_view(base.view.then(centre=equations.centre, root=root))
            targets = moments.y if root is None else moments.y * root[:, None]
            paths = pursue_targets(design, targets, k, tol, "gram", equations=equations)
            centre, offset = equations.centre, equations.offset if y.ndim == 2 else equations.offset[0]
        self._keep(base, paths, centre, offset)

    def _keep(self, base: Design, paths: list[FactorPath], centre: Floats, offset: Any) -> None:
        """Set the attributes of a fit from its paths and the means of X and y."""
        warn_if_premature(paths)
        coefs = full_coefs(base, [path.fit(len(path)) for path in paths])
        sizes = [len(path) for path in paths]
        one = len(paths) == 1
        self.coef_ = coefs[0] if one else np.stack(coefs)
        self.n_iter_ = sizes[0] if one else sizes
        self.intercept_ = offset - self.coef_ @ centre if self.fit_intercept else 0.0


@dataclass(kw_only=True, eq=False, repr=False)
class OrthogonalMatchingPursuit(MultiOutputMixin, OMPBase, BaseEstimator):
    """Orthogonal matching pursuit, a drop-in for `sklearn.linear_model.OrthogonalMatchingPursuit`.

    Same results as scikit-learn's class. Adds `selector`, sparse X and sample weights; clips a number of
    coefficients beyond the number of columns, with a warning; skips a dependent atom where scikit-learn
    stops; keeps atoms that it loses when y is small.

    Parameters
    ----------
    n_nonzero_coefs : int, optional
        Default: a tenth of the features, at least 1. Ignored with `tol`.
    tol : float, optional
        Largest squared norm of the residual.
    fit_intercept : bool
    precompute : "auto" or bool
        True: work on the Gram matrix, which pays with many targets. "auto": do so when it is cheaper.
    selector : str or Selector
        How the best atom is found; see `minimize`.
    verbose : bool, int or "auto"
        Whether to say what is done, from the third second on. "auto": in a terminal or a notebook.
    time_limit : float, optional
        Seconds after which `fit` ends with what it has.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_targets, n_features)
    intercept_ : float or ndarray of shape (n_targets,)
    n_iter_ : int or list of int
        Active features of each target.
    n_nonzero_coefs_ : int or None
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only when X has column names.

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> from skpursuit import OrthogonalMatchingPursuit
    >>> X, y = make_regression(noise=4, random_state=0)
    >>> round(OrthogonalMatchingPursuit().fit(X, y).score(X, y), 4)
    0.9992
    """

    n_nonzero_coefs: int | None = None
    tol: float | None = None
    fit_intercept: bool = True
    precompute: bool | str = "auto"
    selector: str | Selector = "auto"
    verbose: bool | int | str = False

    @watched
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse array of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array-like of shape (n_samples,), optional
        """
        check_parameters(self)
        base, y, weights, *_ = self._check_samples(X, y, sample_weight, multi_output=True, y_numeric=True)
        k = base.shape[1] if self.tol is not None else omp_sparsity(self.n_nonzero_coefs, base.shape[1])
        self.n_nonzero_coefs_ = k if self.tol is None else None
        self._fit_design(base, y, weights, k, self.tol, self.precompute)
        return self


@dataclass(kw_only=True, eq=False, repr=False)
class OrthogonalMatchingPursuitCV(SplitterRoutingMixin, OMPBase, BaseEstimator):
    """Cross-validated orthogonal matching pursuit, a drop-in for scikit-learn's class of the same name.

    One run per fold gives all numbers of coefficients. All folds share one design.

    Parameters
    ----------
    copy : bool
        Of no effect: X is never changed nor copied.
    fit_intercept : bool
    max_iter : int, optional
        The largest number of coefficients tried. Default, and 0:
        ``min(n_features, max(5, n_features // 10))``.
    cv : int, splitter or iterable, optional
        Default: 5 folds. It splits the samples with a weight above zero.
    n_jobs : int, optional
        Folds fitted at once, in threads.
    verbose : bool, int or "auto"
        Whether to say what is done, from the third second on. "auto": in a terminal or a notebook.
    selector : str or Selector
        How the best atom is found; see `minimize`.
    time_limit : float, optional
        Seconds after which no more folds or coefficients are tried.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
    intercept_ : float
    n_nonzero_coefs_ : int
        The number of coefficients with the smallest mean squared error over the folds.
    scores_ : ndarray of shape (n_folds, n_sizes)
        Minus the mean squared error on each fold of the models with 1, 2, ... coefficients.
    path_features_ : ndarray of int
        The features of the model, in order of selection.
    coef_path_ : ndarray of shape (n_path_features, n_path_features)
        Their coefficients in the models with 1, 2, ... of them.
    path_scales_ : ndarray of shape (n_path_features,)
        Their standard deviations.
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

    copy: bool = True
    fit_intercept: bool = True
    max_iter: int | None = None
    cv: Any = None
    n_jobs: int | None = None
    verbose: bool | int | str = False
    selector: str | Selector = "auto"

    @watched
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
        check_parameters(self, max_iter=[COUNT_OR_ZERO, None])
        samples = self._check_samples(X, y, sample_weight, y_numeric=True, ensure_min_features=2)
        base, y, weights, kept, _ = samples
        d = base.shape[1]
        most = sparsity.clipped("max_iter", self.max_iter, d) if self.max_iter else sparsity.for_omp_cv(d)
        splits = self._splits(y, kept, fit_params)
        watch, moments = current(), None
        watch.expect(len(splits))
        with limited(self.n_jobs):
            way = way_to_pursue(base, most * len(splits), "auto", self.selector)
            if way == "gram" and isinstance(base.whole, np.ndarray):
                moments = Moments(base, y, weights, self.fit_intercept)

            def errors_of(fold: int) -> Floats:
                left = len(splits) - fold
                watch.note("{} folds left", left)
                with watch.part(1 / left):
                    return self._errors(
                        base.for_run(private=True), y, weights, splits[fold], most, way, moments
                    )

            run = Parallel(n_jobs=self.n_jobs, require="sharedmem")
            errors = run(delayed(errors_of)(fold) for fold in range(len(splits)))
        shortest = min(len(fold) for fold in errors)
        self.scores_ = -np.array([fold[:shortest] for fold in errors])
        self.n_nonzero_coefs_ = np.argmax(self.scores_.mean(axis=0)) + 1
        with watch.part(None):
            self._fit_design(base, y, weights, int(self.n_nonzero_coefs_), moments=moments)
        return self

    def _keep(self, base: Design, paths: list[FactorPath], centre: Floats, offset: Any) -> None:
        super()._keep(base, paths, centre, offset)
        (path,) = paths
        self.path_features_, self.coef_path_ = path.support, np.zeros((len(path), len(path)))
        for k, line in enumerate(self.coef_path_, start=1):
            line[:k] = path.fit(k).coef
        self.path_scales_ = base.columns(path.support).std(axis=1)

    def _errors(
        self,
        base: Design,
        y: Floats,
        weights: Floats | None,
        split: tuple[Indices, Indices],
        most: int,
        way: str,
        moments: Moments | None,
    ) -> Floats:
        """Mean squared error on the test part, for 1, 2, ... coefficients."""
        train, test = split
        if moments is None:
            inside = fold_weights(train, len(y), weights)
            data = standardize(base, y, weights=inside, fit_intercept=self.fit_intercept).weighted()
            (path,) = pursue_targets(data.design, data.y[:, None], most, None, way, self.selector)
            centre, offset = data.centre, data.offset
        else:
            equations = moments.of_training(train, test)
            path = GramPursuit(equations.gram, equations.xty[:, 0], most, 0.0, equations.noise_floor).path()
            centre, offset = equations.centre, equations.offset[0]
        current().count()
        warn_if_premature([path])
        fits = [path.fit(k, centre, offset) for k in range(min(1, len(path)), len(path) + 1)]
        part = None if weights is None else weights[test]
        return np.array([np.average((y[test] - z) ** 2, weights=part) for z in predictions(base, fits, test)])
