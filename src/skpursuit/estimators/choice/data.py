"""The data of an estimator as the contests want them: rows that count, scaled columns, targets as a table."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse

from skpursuit.data import check_finite
from skpursuit.estimators.base import Samples
from skpursuit.estimators.choice.squared_folds import ScaledData
from skpursuit.estimators.standardized import column_scale
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
    factors = column_scale(samples.base, means, samples.weights, scale)
    return ScaledData(X, table - offset, centre, factors, fit_intercept, offset)
