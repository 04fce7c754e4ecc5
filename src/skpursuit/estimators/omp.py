"""`OrthogonalMatchingPursuit`, used as scikit-learn's."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin

from skpursuit.data import Design
from skpursuit.data.base import Floats
from skpursuit.estimators.checks import check_parameters
from skpursuit.estimators.gram_omp import FactorPath
from skpursuit.estimators.linear import LinearMixin, clipped, make_frame, model_dtype, read_data
from skpursuit.estimators.omp_functions import default_sparsity, pursue_targets, warn_if_premature
from skpursuit.numerics.blas import one_thread
from skpursuit.problem.losses import Squared
from skpursuit.selectors import Selector


class OrthogonalMatchingPursuit(MultiOutputMixin, LinearMixin, RegressorMixin, BaseEstimator):
    """Orthogonal matching pursuit, a drop-in for `sklearn.linear_model.OrthogonalMatchingPursuit`.

    The same parameters, attributes and coefficients, and beside them: `selector`, sparse X, sample
    weights, and a number of coefficients beyond the number of columns is clipped with a warning. Atoms are
    not lost when y is small, and a dependent atom is skipped where scikit-learn stops.

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

    def __init__(
        self,
        *,
        n_nonzero_coefs: int | None = None,
        tol: float | None = None,
        fit_intercept: bool = True,
        precompute: bool | str = "auto",
        selector: str | Selector = "auto",
    ) -> None:
        self.n_nonzero_coefs = n_nonzero_coefs
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.precompute = precompute
        self.selector = selector

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
        base, y, weights, _ = read_data(self, X, y, sample_weight, multi_output=True, y_numeric=True)
        return self._fit_design(base, y, weights)

    def _fit_design(self, base: Design, y: Floats, weights: Floats | None) -> Self:
        self.n_nonzero_coefs_ = self._sparsity(base.shape[1])
        frame = make_frame(base, y, Squared(), weights, self.fit_intercept)
        columns = frame.y.reshape(len(frame.y), -1)
        paths = pursue_targets(
            frame.design, columns, self.n_nonzero_coefs_, self.tol, self.precompute, self.selector
        )
        warn_if_premature(paths)
        self._set(paths, base, frame.centre, frame.offset)
        return self

    def _sparsity(self, d: int) -> int | None:
        if self.tol is not None:
            return None
        if self.n_nonzero_coefs is None:
            return default_sparsity(d)
        return clipped("n_nonzero_coefs", self.n_nonzero_coefs, d)

    def _set(self, paths: list[FactorPath], base: Design, centre: Floats, offset: Floats) -> None:
        models = [(path.support, path.coef(len(path))) for path in paths]
        coef = np.zeros((len(paths), base.shape[1]), dtype=model_dtype(base, models))
        for row, (support, some) in zip(coef, models):
            row[support] = some
        sizes = [len(path) for path in paths]
        one = len(paths) == 1
        self.coef_ = coef[0] if one else coef
        self.n_iter_ = sizes[0] if one else sizes
        self.intercept_ = offset - self.coef_ @ centre if self.fit_intercept else 0.0

    def predict(self, X: Any) -> Floats:
        """Predict the targets, shape (n_samples,) or (n_samples, n_targets)."""
        return self._linear(X)
