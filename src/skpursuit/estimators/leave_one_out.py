"""The corrected leave-one-out error of least-squares models, from one fit of each.

Without row i a model predicts y_i with the error e_i / (1 - h_i), where h_i is the i-th entry of the diagonal
of the hat matrix: the sum of the squares of row i of an orthonormal basis of the columns. Along a path that
grows by one column a model the basis grows by one as well. What few rows hide is made up for by the factor of
Chapelle, Vapnik and Bengio (2002), which polynomial chaos expansions are chosen by (Blatman, Sudret, 2011):
n / (n - P) (1 + tr(C^-1) / n), with C the mean squares and products of the P columns, divided by their sizes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from skpursuit.data import Design
from skpursuit.estimators.cross_validation import effective_rows
from skpursuit.estimators.linear_fit import FitConfig, LinearFit, predict_rows
from skpursuit.fit.growing import QRFactor, empty_factor
from skpursuit.numerics.arrays import Floats

UNDECIDED = 1e-10  # 1 - h of a row without which the columns depend on each other


def check_least_squares(config: FitConfig) -> None:
    """Refuse what is not fitted by least squares alone."""
    given = {**vars(config), **({} if isinstance(config.solver, str) else vars(config.solver))}
    bound = given["ridge"] or given.get("positive") or not config.loss.quadratic
    if config.name not in ("omp", "OMP") or bound:
        raise ValueError('scoring="loo" is of least squares: use "omp", squared loss, no ridge or positive')


def corrected_errors(
    base: Design, fits: Sequence[LinearFit], y: Floats, weights: Floats | None, fit_intercept: bool
) -> Iterator[float]:
    """The error of each model of a path, a mean over rows, summed over targets; infinite where undefined."""
    weights = np.ones(len(y)) if weights is None else weights
    total, n, root = float(weights.sum()), effective_rows(weights), np.sqrt(weights)
    factor: QRFactor | None = empty_factor(np.empty((len(y), 0)))
    taken: list[int] = []
    sizes: list[float] = []
    for fit, z in zip(fits, predict_rows(base, list(fits), np.arange(len(y)))):
        columns = fit.columns.tolist()
        same = next((i for i, pair in enumerate(zip(columns, taken)) if pair[0] != pair[1]), len(taken))
        factor, sizes, taken = factor and factor.first(same), sizes[:same], columns
        for line in base.columns(np.array(columns[same:], dtype=np.intp)):
            line = root * (line - weights @ line / total if fit_intercept else line)
            sizes.append(float(line @ line))
            factor = factor and factor.add(line, 0.0)
        used = len(columns) + fit_intercept
        if factor is None or n <= used:
            yield np.inf
            continue
        left = 1.0 - np.square(factor.Q.rows).sum(axis=0) - fit_intercept * weights / total
        if left[weights > 0].min() < UNDECIDED:
            yield np.inf
            continue
        errors = np.square((y - z).T / left) @ weights / total
        inverse = np.linalg.inv(factor.triangle())
        trace = np.square(inverse).sum(axis=1) @ np.array(sizes) + fit_intercept
        yield float(np.sum(errors)) * n / (n - used) * (1.0 + trace / n)
