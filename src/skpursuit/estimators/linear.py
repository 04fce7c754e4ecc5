"""What the linear estimators share: checked data, centring and scaling, and how a run becomes a model."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted, validate_data

from skpursuit.data import AffineDesign, Design, InterceptDesign, check_finite, make_design, rows_that_count
from skpursuit.data.base import Floats, Indices
from skpursuit.data.sparse_input import compressed
from skpursuit.parameters import check_unmasked
from skpursuit.problem.losses import Loss, Squared
from skpursuit.problem.problem import checked_weights
from skpursuit.problem.state import dtype_for

FLOATS = (np.float64, np.float32)


def trusted(X: Any) -> Any:
    """X for scikit-learn's checks, which follow the indices of a sparse matrix without looking at them."""
    check_unmasked(X=X)
    return compressed(X) if issparse(X) and X.ndim == 2 else X


class LinearMixin:
    """Predictions X w + b of a model with `coef_` and `intercept_`; sparse X is welcome."""

    coef_: Floats
    intercept_: Any

    def _linear(self, X: Any) -> Floats:
        check_is_fitted(self, "coef_")
        X = validate_data(self, trusted(X), accept_sparse=["csr", "csc"], dtype=FLOATS, reset=False)
        return np.asarray(X @ self.coef_.T) + self.intercept_

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Score as scikit-learn's estimators of this kind do; samples of weight zero are not looked at.

        Parameters
        ----------
        X : array-like or sparse array of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        score : float
            R squared of a regressor, accuracy of a classifier.
        """
        if sample_weight is not None and np.ndim(sample_weight) == 1 and not np.all(sample_weight):
            rows = np.flatnonzero(sample_weight)
            X, y, sample_weight = (some_rows(part, rows) for part in (X, y, sample_weight))
        return super().score(X, y, sample_weight)  # type: ignore[misc]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.sparse = True
        return tags


class Samples(NamedTuple):
    """Checked samples with a weight above zero; `kept` marks the rows of the X given that they are."""

    base: Design
    y: Any
    weights: Floats | None
    kept: NDArray[np.bool_]

    def weighted(self, weights: Floats) -> Samples:
        """The samples with these weights; those of weight zero are left out."""
        kept = self.kept.copy()
        kept[kept] = weights > 0
        return Samples(*rows_that_count(self.base, self.y, weights), kept)


def some_rows(X: Any, rows: Indices) -> Any:
    """Rows of anything that scikit-learn takes for data."""
    return _safe_indexing(X.tocsr() if hasattr(X, "tocsr") else X, rows)


def read_data(estimator: Any, X: Any, y: Any, sample_weight: Any, **checks: Any) -> Samples:
    """Check the arguments of `fit` once; below it there are a design, an array and weights or None."""
    check_unmasked(y=y)
    X, y = validate_data(
        estimator,
        trusted(X),
        y,
        accept_sparse=["csr", "csc"],
        dtype=FLOATS,
        ensure_all_finite=False,  # the column norms tell, and every method needs them anyway
        **checks,
    )
    design = make_design(X)
    samples = Samples(design, y, None, np.ones(design.shape[0], dtype=bool))
    if sample_weight is None:
        return samples
    if isinstance(sample_weight, Real):
        sample_weight = np.full(design.shape[0], sample_weight)
    return samples.weighted(checked_weights(sample_weight, design.shape[0]))


@dataclass(frozen=True)
class Frame:
    """The view of X and y a solver works on, and the way back to coefficients of X.

    With squared loss the intercept is had by centring; other losses get a last column of ones that is
    always in the model (`forced`).
    """

    design: Design
    y: Any
    weights: Floats | None
    centre: Floats
    scale: Floats
    offset: Any
    forced: tuple[int, ...] = ()

    def model(self, support: Indices, coef: Floats) -> tuple[Indices, Floats, Any]:
        """Columns of X in order of selection, their coefficients, and the intercept."""
        real = np.asarray(support) < len(self.centre)
        columns, coef, constant = support[real], coef[real], coef[~real]
        scale = self.scale[columns]
        coef = coef / (scale if coef.ndim == 1 else scale[:, None])
        intercept = self.offset - self.centre[columns] @ coef + constant.sum(axis=0)
        return columns, coef, intercept

    def scaled(self, columns: Indices, coef: Floats) -> Floats:
        """Coefficients of X as coefficients of the view."""
        scale = self.scale[columns]
        return coef * (scale if coef.ndim == 1 else scale[:, None])


def make_frame(
    base: Design,
    y: Any,
    loss: Loss,
    weights: Floats | None = None,
    fit_intercept: bool = True,
    normalize: bool = False,
) -> Frame:
    """Centre, scale and weight without touching X; rows of weight zero are left out."""
    d = base.shape[1]
    check_finite(base)
    base, y, weights = rows_that_count(base, y, weights)
    centred = fit_intercept and (isinstance(loss, Squared) or normalize)
    centre = base.means(weights) if centred else np.zeros(d)
    root = None if weights is None else np.sqrt(weights)
    scale = _scale(base, centre, root) if normalize else np.ones(d)
    if isinstance(loss, Squared):
        offset = np.average(y, axis=0, weights=weights) if fit_intercept else np.zeros(y.shape[1:])
        plain = not (fit_intercept or normalize) and root is None
        view = base if plain else AffineDesign(base, centre, scale, root)
        y = less_mean(np.asarray(y, dtype=np.float64), offset)
        y = y if root is None else y * (root if y.ndim == 1 else root[:, None])
        return Frame(view, y, None, centre, scale, offset)
    view = AffineDesign(base, centre, scale) if normalize else base
    if not fit_intercept:
        return Frame(view, y, weights, centre, scale, 0.0)
    return Frame(InterceptDesign(view), y, weights, centre, scale, 0.0, forced=(d,))


def less_mean(y: Floats, offset: Any) -> Floats:
    """Targets less their means; zero where nothing but the rounding of the mean would be left."""
    rest = y - offset
    tiny = 64 * np.finfo(np.float64).eps * np.abs(offset)
    return np.where(np.abs(rest).max(axis=0) > tiny, rest, 0.0)


def _scale(base: Design, centre: Floats, root: Floats | None) -> Floats:
    """Norms of the centred and weighted columns, 1 for those that are constant to working precision."""
    view = AffineDesign(base, centre, root=root)
    norms = view.norms(0)
    return np.where(norms > view.lost(np.arange(len(norms))), norms, 1.0)


def clipped(name: str, wanted: int, limit: int) -> int:
    """The number of coefficients that a parameter asks for, not more than there are columns."""
    if wanted <= limit:
        return int(wanted)
    warnings.warn(
        f"{name} is {wanted} but X has {limit} columns; using {limit}",
        UserWarning,
        stacklevel=3,
    )
    return limit


def model_dtype(base: Design, models: list[tuple[Indices, Floats]]) -> np.dtype[Any]:
    """The dtype of X if it keeps all its digits in coefficients and predictions, else float64."""
    if base.dtype == np.float64:
        return base.dtype
    eps = float(np.finfo(base.dtype).eps)
    for columns, coef in models:
        sizes = np.abs(base.columns(columns)).max(axis=1, initial=0.0)
        parts = np.abs(coef.T) * sizes
        reach = [eps * parts.max(initial=0.0), parts.sum()]
        if dtype_for(np.append(coef, reach), base.dtype) != base.dtype:
            return np.dtype(np.float64)
    return base.dtype


def spread(columns: Indices, coef: Floats, d: int, dtype: Any) -> Floats:
    """Coefficients of all d columns, shape (d,) or (targets, d)."""
    full = np.zeros((d, *coef.shape[1:]), dtype=dtype)
    full[columns] = coef
    return np.ascontiguousarray(full.T)
