"""What the linear estimators share: checked data, centring and scaling, and how a run becomes a model."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from skpursuit.design import AffineDesign, Design, InterceptDesign, as_design, check_finite
from skpursuit.design.base import Floats, Indices
from skpursuit.losses import Loss, Squared
from skpursuit.problem import checked_weights
from skpursuit.state import dtype_for

FLOATS = (np.float64, np.float32)


class LinearMixin:
    """Predictions X w + b of a model with `coef_` and `intercept_`; sparse X is welcome."""

    coef_: Floats
    intercept_: Any

    def _linear(self, X: Any) -> Floats:
        check_is_fitted(self, "coef_")
        X = validate_data(self, X, accept_sparse=["csr", "csc", "coo"], dtype=FLOATS, reset=False)
        return np.asarray(X @ self.coef_.T) + self.intercept_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.sparse = True
        return tags


def read_data(
    estimator: Any, X: Any, y: Any, sample_weight: Any, **checks: Any
) -> tuple[Design, Any, Floats | None]:
    """Check the arguments of `fit` once; below it there are a design, an array and weights or None."""
    X, y = validate_data(
        estimator,
        X,
        y,
        accept_sparse=["csr", "csc"],
        dtype=FLOATS,
        ensure_all_finite=False,  # the column norms tell, and every method needs them anyway
        **checks,
    )
    design = as_design(X)
    if sample_weight is None:
        return design, y, None
    if isinstance(sample_weight, Real):
        sample_weight = np.full(design.shape[0], sample_weight)
    return design, y, checked_weights(sample_weight, design.shape[0])


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
    """Centre, scale and weight without touching X."""
    d = base.shape[1]
    check_finite(base)
    centred = fit_intercept and (isinstance(loss, Squared) or normalize)
    centre = base.means(weights) if centred else np.zeros(d)
    root = None if weights is None else np.sqrt(weights)
    scale = _scale(base, centre, root) if normalize else np.ones(d)
    if isinstance(loss, Squared):
        offset = np.average(y, axis=0, weights=weights) if fit_intercept else np.zeros(y.shape[1:])
        plain = not (fit_intercept or normalize) and root is None
        view = base if plain else AffineDesign(base, centre, scale, root)
        y = less_mean(np.asarray(y, dtype=np.float64), offset, weights)
        y = y if root is None else y * (root if y.ndim == 1 else root[:, None])
        return Frame(view, y, None, centre, scale, offset)
    view = AffineDesign(base, centre, scale) if normalize else base
    if not fit_intercept:
        return Frame(view, y, weights, centre, scale, 0.0)
    return Frame(InterceptDesign(view), y, weights, centre, scale, 0.0, forced=(d,))


def less_mean(y: Floats, offset: Any, weights: Floats | None) -> Floats:
    """Targets less their means; zero where nothing but the rounding of the mean would be left."""
    rest = y - offset
    tiny = 64 * np.finfo(np.float64).eps * np.abs(offset)
    counted = rest if weights is None else rest[weights > 0]
    return np.where(np.abs(counted).max(axis=0) > tiny, rest, 0.0)


def _scale(base: Design, centre: Floats, root: Floats | None) -> Floats:
    """Norms of the centred and weighted columns, 1 for those that are constant to working precision."""
    view = AffineDesign(base, centre, root=root)
    norms = view.norms(0)
    return np.where(norms > view.lost(np.arange(len(norms))), norms, 1.0)


def clipped(n_nonzero_coefs: int, limit: int) -> int:
    """The number of coefficients, not more than there are columns."""
    if n_nonzero_coefs <= limit:
        return int(n_nonzero_coefs)
    warnings.warn(
        f"n_nonzero_coefs is {n_nonzero_coefs} but X has {limit} columns; using {limit}",
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
