"""`OrthogonalMatchingPursuit` and `OrthogonalMatchingPursuitCV`, used as scikit-learn's.

Both standardize the data and leave the pursuit to `omp_functions.py`. Where X^T X is small, the training
parts of a cross-validation have theirs from the Gram matrices of all folds (`fold_least_squares.py`).
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from sklearn.utils.parallel import Parallel, delayed

from skpursuit.data import Design, check_finite
from skpursuit.estimators.base import CheckedSamples, LinearBase, SummaryMixin, lazy_on_dask, monitored
from skpursuit.estimators.cross_validation import Folds, SplitterRoutingMixin
from skpursuit.estimators.linear_fit import SQUARED, centred_targets, codes_of_run, dense_coefs, standardize
from skpursuit.estimators.model_search.fold_least_squares import MAX_GRAM_ENTRIES, GramLeastSquares
from skpursuit.estimators.model_search.search import ScaledData
from skpursuit.estimators.omp_functions import (
    OMPPath,
    choose_backend,
    expected_steps,
    gram_paths,
    omp_paths,
    omp_sparsity,
    refine_path,
    warn_if_premature,
)
from skpursuit.estimators.parameter_rules import COUNT_OR_ZERO, check_parameters, or_none
from skpursuit.estimators.sklearn_types import BaseEstimator, MultiOutputMixin, RegressorMixin
from skpursuit.numerics.arrays import Floats
from skpursuit.numerics.threads import respect_n_jobs
from skpursuit.problem import default_sparsity as sparsity
from skpursuit.progress import current_monitor
from skpursuit.selectors import Selector
from skpursuit.solvers.matching_pursuit import OMP

Limits = tuple[int, float | None]  # most columns, and the tolerance
Paths = tuple[list[OMPPath], Floats, Floats]  # the path of each target, and the means of X and y
SAMPLED_ROWS = 64  # in which a column has an entry near its mean


class OMPBase(LinearBase, SummaryMixin, RegressorMixin):
    """Predictions, and the fit to all samples, of both estimators."""

    fit_intercept: bool
    selector: str | Selector

    @lazy_on_dask
    def predict(self, X: object) -> Floats:
        """Predict the targets, shape (n_samples,) or (n_samples, n_targets)."""
        return self._decision(X)

    def _grams(self, samples: CheckedSamples, folds: Folds, backend: str) -> GramLeastSquares | None:
        """Gram matrices of all folds, where the pursuit uses them and a dense X is in memory."""
        base, X = samples.base, samples.base.in_memory_matrix
        n, d = base.shape
        if backend != "gram" or 2 * folds.shape[0] * d**2 > MAX_GRAM_ENTRIES or not isinstance(X, np.ndarray):
            return None
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused
            y, offset = centred_targets(samples.y.reshape(n, -1), samples.weights, self.fit_intercept)
            # Sums about an entry near the mean lose no digits, and a constant column is zero.
            sample = X[:: -(-n // SAMPLED_ROWS)].astype(np.float64) * self.fit_intercept
            centre = sample[np.abs(sample - sample.mean(axis=0)).argmin(axis=0), np.arange(d)]
            noise = base.with_view(base.view.compose(centre=centre)).noise_floor(np.arange(d))
            data = ScaledData(X, y, centre, np.ones(d), self.fit_intercept, offset, noise)
            grams = GramLeastSquares(data, folds)
            sums = 2 * grams.total[:d, -1] + n * centre
            norm = np.sqrt(np.diag(grams.total)[:d].sum() + centre @ sums)
        check_finite(samples.base, None if samples.weights is not None else norm)
        return grams

    def _paths(self, base: Design, y: Floats, weights: Floats | None, limits: Limits, backend: str) -> Paths:
        """The paths on the rows with a weight above zero, standardised for them alone."""
        solver = OMP(limits[0] if limits[1] is None else base.shape[1], limits[1])
        given = y.reshape(len(y), -1)[:, 0], SQUARED, weights, solver, self.selector
        fine = codes_of_run(base, *given) if backend == "loop" else None
        data = standardize(base, y, weights=weights, fit_intercept=self.fit_intercept, fine=fine)
        targets, design = data.y.reshape(len(data.y), -1), data.design
        if data.weights is not None:
            root = np.sqrt(data.weights)
            targets, design = targets * root[:, None], design.with_view(design.view.compose(root=root))
        paths = omp_paths(design, targets, *limits, backend, self.selector)
        return paths, data.centre, np.asarray(data.offset)

    def _fit_all_rows(
        self, samples: CheckedSamples, limits: Limits, backend: str, grams: GramLeastSquares | None
    ) -> None:
        base, y, weights, *_ = samples
        if grams is None:
            self._keep(base, *self._paths(base, y, weights, limits, backend))
            return
        paths, centre, offset = paths_of_grams(grams, 0, limits)
        root = np.ones(len(y)) if weights is None else np.sqrt(weights)
        view = base.with_view(base.view.compose(centre=centre, root=None if weights is None else root))
        targets = (grams.data.y - grams.mean_y[0]) * root[:, None]
        paths = [refine_path(path, view, target) for path, target in zip(paths, targets.T)]
        self._keep(base, paths, centre, offset if y.ndim == 2 else offset[0])

    def _keep(self, base: Design, paths: list[OMPPath], centre: Floats, offset: Floats) -> None:
        """Set the attributes of a fit from its paths and the means of X and y."""
        warn_if_premature(paths)
        coefs = dense_coefs(base, [path.fit(len(path)) for path in paths])
        sizes, one = [len(path) for path in paths], len(paths) == 1
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
    verbose, time_limit
        As in `PursuitRegressor`.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_targets, n_features)
    intercept_ : float or ndarray of shape (n_targets,)
    n_iter_ : int or list of int
        Active features of each target.
    n_nonzero_coefs_ : int or None
    n_features_in_, feature_names_in_
        As in `PursuitRegressor`.

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

    @monitored
    def fit(self, X: object, y: object, sample_weight: object = None) -> Self:
        check_parameters(self)
        samples = self._check_samples(X, y, sample_weight, multi_output=True, y_numeric=True)
        base, y, weights, *_ = samples
        k = base.shape[1] if self.tol is not None else omp_sparsity(self.n_nonzero_coefs, base.shape[1])
        self.n_nonzero_coefs_ = k if self.tol is None else None
        steps = expected_steps(base, y.reshape(len(y), -1), k, self.tol)
        backend = choose_backend(base, steps, self.precompute, self.selector)
        every = np.ones(len(y)) if weights is None else weights
        grams = self._grams(samples, Folds.of_all_rows(every), backend)
        self._fit_all_rows(samples, (k, self.tol), backend, grams)
        return self


@dataclass(kw_only=True, eq=False, repr=False)
class OrthogonalMatchingPursuitCV(SplitterRoutingMixin, OMPBase, BaseEstimator):
    """Cross-validated orthogonal matching pursuit, a drop-in for scikit-learn's class of the same name.

    One run per fold gives all numbers of coefficients. All folds share one design.

    Parameters
    ----------
    copy : bool
        Of no effect: X is never changed nor copied.
    fit_intercept, verbose, selector
        As in `OrthogonalMatchingPursuit`.
    max_iter : int, optional
        The largest number of coefficients tried. Default, and 0:
        ``min(n_features, max(5, n_features // 10))``.
    cv : int, splitter or iterable, optional
        Default: 5 folds. It splits the samples with a weight above zero.
    n_jobs : int, optional
        Folds fitted at once, in threads.
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
    n_features_in_, feature_names_in_
        As in `OrthogonalMatchingPursuit`.

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> from skpursuit import OrthogonalMatchingPursuitCV
    >>> X, y = make_regression(n_features=100, n_informative=10, noise=4, random_state=0)
    >>> int(OrthogonalMatchingPursuitCV(cv=5).fit(X, y).n_nonzero_coefs_)
    10
    """

    path_scores = "mean squared error"
    copy: bool = True
    fit_intercept: bool = True
    max_iter: int | None = None
    cv: object = None
    n_jobs: int | None = None
    verbose: bool | int | str = False
    selector: str | Selector = "auto"

    @monitored
    def fit(self, X: object, y: object, sample_weight: object = None, **fit_params: object) -> Self:
        check_parameters(self, max_iter=or_none(COUNT_OR_ZERO))
        samples = self._check_samples(X, y, sample_weight, y_numeric=True, ensure_min_features=2)
        base, y, weights, kept, _ = samples
        n, d = base.shape
        given = self.max_iter
        most = sparsity.clip_to_available("max_iter", given, d) if given else sparsity.for_omp_cv(d)
        splits = self._splits(y, kept, fit_params)
        folds, watch = Folds.of(splits, n, weights), current_monitor()
        watch.set_total(len(splits))
        with respect_n_jobs(self.n_jobs):
            steps = min(most, n) * len(splits)
            backend = choose_backend(base, steps, "auto", self.selector, len(splits))
            grams = self._grams(samples, folds, backend)

            def errors_of(fold: int) -> Floats:
                left, (_, test) = len(splits) - fold, splits[fold]
                inner = base.for_run(private=True)
                watch.set_message("{} folds left", left)
                with watch.time_share(1 / left):
                    if grams is None:
                        found = self._paths(inner, y, folds.train[fold], (most, None), backend)
                    else:
                        found = paths_of_grams(grams, fold, (most, None))
                watch.advance_by()
                (path,), centre, offset = found
                warn_if_premature([path])
                columns = inner.columns(path.support)[:, test] - centre[path.support, None]
                squares = (y[test] - np.ravel(offset)[0] - path.all_coefs() @ columns) ** 2
                return np.average(squares, axis=1, weights=None if weights is None else weights[test])

            run = Parallel(n_jobs=self.n_jobs, require="sharedmem")
            errors = run(delayed(errors_of)(fold) for fold in range(len(splits)))
        shortest = min(len(fold) for fold in errors)
        self.scores_ = -np.array([fold[:shortest] for fold in errors])
        self.n_nonzero_coefs_ = np.argmax(self.scores_.mean(axis=0)) + 1
        k = int(self.n_nonzero_coefs_)
        with watch.time_share(None):
            if grams is None:
                backend = choose_backend(base, k, "auto", self.selector)
            self._fit_all_rows(samples, (k, None), backend, grams and grams.all_rows())
        return self

    def _keep(self, base: Design, paths: list[OMPPath], centre: Floats, offset: Floats) -> None:
        super()._keep(base, paths, centre, offset)
        (path,) = paths
        self.path_features_, self.coef_path_ = path.support, path.all_coefs()[: len(path)]
        self.path_scales_ = base.columns(path.support).std(axis=1)


def paths_of_grams(grams: GramLeastSquares, fold: int, limits: Limits) -> Paths:
    """The paths on the training rows of a fold from their Gram matrix."""
    centre, offset = grams.data.centre + grams.mean_x[fold], grams.data.offset + grams.mean_y[fold]
    energies = grams.folds.train[fold] @ (grams.data.y - grams.mean_y[fold]) ** 2
    paths = gram_paths(grams.gram[fold], grams.xy[fold], *limits, energies, grams.noise[fold])
    return paths, centre, offset
