"""The data of an estimator as the contests want them: rows that count, scaled columns, targets as a table."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse

from skpursuit.data import Design, check_finite
from skpursuit.estimators.base import Samples
from skpursuit.estimators.choice.squared_folds import ScaledData
from skpursuit.numerics.arrays import Floats
from skpursuit.numerics.tuning import SMALL_BLOCK


def scaled_data(samples: Samples, y: Any, scale: str, fit_intercept: bool) -> ScaledData:
    """X with what centres and scales its columns; targets of shape (n, m), less their means.

    A large sparse X is not centred, because it would not be sparse any more; each fold does it in formulas,
    which cost digits. A small one is made dense.
    """
    check_finite(samples.base)
    X = samples.X if samples.kept.all() else samples.X[samples.kept]
    if issparse(X) and X.shape[0] * X.shape[1] <= SMALL_BLOCK:
        X = X.toarray()
    d = X.shape[1]
    means = samples.base.means(samples.weights) if fit_intercept else np.zeros(d)
    table = np.asarray(y, dtype=np.float64)
    table = table[:, None] if table.ndim == 1 else table
    offset = np.average(table, axis=0, weights=samples.weights) if fit_intercept else np.zeros(table.shape[1])
    centre = np.zeros(d) if issparse(X) else means
    return ScaledData(X, table - offset, centre, column_scale(samples, means, scale), fit_intercept, offset)


def column_scale(samples: Samples, means: Floats, scale: str) -> Floats:
    """What divides the columns: their root mean squares, the mean of these, or ones.

    Columns that are constant are divided by 1.
    """
    d = len(means)
    if scale == "none":
        return np.ones(d)
    spreads = column_spreads(samples.base, means, samples.weights)
    if scale == "auto" and issparse(samples.X):
        used = spreads[spreads > 0]
        return np.full(d, np.sqrt(np.mean(used**2)) if len(used) else 1.0)
    return np.where(spreads > 0, spreads, 1.0)


def column_spreads(base: Design, means: Floats, weights: Floats | None) -> Floats:
    """Root mean squares of the centred columns, 0 for those that are constant to working precision."""
    total = base.shape[0] if weights is None else weights.sum()
    root = None if weights is None else np.sqrt(weights)
    view = base.with_view(base.view.then(centre=means, root=root))
    norms = view.norms(0)
    return np.where(norms > view.noise_floor(np.arange(len(norms))), norms / np.sqrt(total), 0.0)
