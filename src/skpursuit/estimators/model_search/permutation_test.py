"""Whether the targets depend on X at all: a permutation test that needs no model.

The held-out loss of the best of many models is smaller than that of a constant by luck alone, the more so the
fewer the rows. So the residuals of the constant are dealt out to the rows anew, many times, and two numbers
say how much X has to say about them. The largest product of a column with the residuals is large where few
columns matter. The leave-one-out error of ridge regression, for the best of some ridges, is small where many
columns do, or several only together. The share of permutations that look as related as the data is the
chance to see such a relation where there is none, at any number of rows, columns and classes.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import issparse

from skpursuit.estimators.model_search.fold_least_squares import column_blocks
from skpursuit.estimators.model_search.search import ScaledData
from skpursuit.numerics.arrays import Floats

N_PERMUTATIONS = 99
CLIP_LIMIT = 3.0  # mean absolute residuals beyond which a residual counts as this many
MAX_RIDGE_RANK = 1000  # rows or columns, whichever are fewer, up to which ridge regression is tried
LOO_RIDGES = (0.01, 0.1, 1.0, 10.0, 100.0)  # in units of the mean eigenvalue


def permutation_p_value(data: ScaledData, residuals: Floats, rows: slice) -> float:
    """Chance that unrelated targets look as related to X as these, from some rows.

    Residuals (n, m), slopes of the losses at the best constants, are permuted. Without an intercept their
    means count, so that they change signs instead.
    """
    r = residuals[rows] / (np.abs(residuals).max(axis=0) + np.finfo(float).tiny)
    most = CLIP_LIMIT * np.abs(r).mean(axis=0)
    r = np.clip(r, -most, most)
    rng, lines = np.random.default_rng(0), np.arange(len(residuals))[rows]
    signs = rng.choice([-1.0, 1.0], (N_PERMUTATIONS, len(r), 1))
    permutations = [rng.permutation(r) if data.fit_intercept else r * sign for sign in signs]
    table = np.stack([r, *permutations], axis=1).reshape(len(r), -1)  # (n, permutations * m)
    X = data.block(lines)
    columns, largest = X.T.tocsr() if issparse(X) else X.T, np.zeros(table.shape[1])
    for some in column_blocks(table.shape[1], X.shape[1]):
        np.maximum(largest, np.abs(np.asarray(columns[some] @ table)).max(axis=0), out=largest)
    evidence = [largest.reshape(N_PERMUTATIONS + 1, -1).max(axis=1)]
    if not issparse(X) and min(X.shape) <= MAX_RIDGE_RANK:
        evidence.append(-_left_out_error(X, table, data.fit_intercept))
    ranks = [np.count_nonzero(line >= line[:, None], axis=1) for line in evidence]
    best = np.min(ranks, axis=0)  # a permutation has the better rank of both, as the data have
    return float(np.mean(best <= best[0]))


def _left_out_error(X: Floats, table: Floats, fit_intercept: bool) -> Floats:
    """Squared errors of predictions of each row by ridge regression on the others, with the best ridge."""
    n = len(X)
    X, table = (part - part.mean(axis=0) * fit_intercept for part in (X, table))
    if X.shape[1] < n:
        values, vectors = np.linalg.eigh(X.T @ X)
        basis = X @ vectors / np.sqrt(np.maximum(values, np.finfo(float).tiny))
    else:
        values, basis = np.linalg.eigh(X @ X.T)
    real = values > 1e-9 * values[-1]
    values, basis = values[real], basis[:, real]
    coef, errors, typical = basis.T @ table, [], values.sum() / max(1, len(values))
    for ridge in LOO_RIDGES:
        shrunk = values / (values + ridge * typical)
        left = np.maximum(1 - basis**2 @ shrunk - fit_intercept / n, 1e-6)
        wrong = (table - basis @ (shrunk[:, None] * coef)) / left[:, None]
        errors.append((wrong**2).sum(axis=0).reshape(N_PERMUTATIONS + 1, -1).sum(axis=1))
    return np.min(errors, axis=0)
