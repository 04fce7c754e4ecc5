"""All models with 1, 2, ... coefficients, and what each of them is worth."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy.special import gammaln

from skpursuit.data import Design
from skpursuit.estimators.linear_fit import FitConfig, LinearFit, fit_linear, growing_fits
from skpursuit.numerics.arrays import Floats
from skpursuit.numerics.scaling import NEARLY_ZERO
from skpursuit.problem.losses import Loss


def fits_by_size(
    config: FitConfig, base: Design, y: Any, weights: Floats | None, most: int
) -> Iterator[LinearFit]:
    """Models with 1 to `most` columns, as they are asked for: of one run that passes through all sizes."""
    if config.kind.nested_path:
        return growing_fits(config.sized(most), base, y, weights)
    return (fit_linear(config.sized(k), base, y, weights) for k in range(1, most + 1))


def side_by_side(paths: Sequence[Iterator[LinearFit]]) -> Iterator[list[LinearFit]]:
    """The models of all problems size by size; a path that ends early repeats its last."""
    models = [next(path) for path in paths]
    while True:
        yield models
        after = [next(path, None) for path in paths]
        if all(fit is None for fit in after):
            return
        models = [last if fit is None else fit for last, fit in zip(models, after)]


def fits_of_problems(
    config: FitConfig, base: Design, targets: Sequence[Any], weights: Floats | None, most: int
) -> list[list[LinearFit]]:
    """Models of all problems, size by size; all have the result of the run that gave the largest."""
    models = list(side_by_side([fits_by_size(config, base, y, weights, most) for y in targets]))
    return [[fit._replace(result=last.result) for fit, last in zip(each, models[-1])] for each in models]


def mean_loss(loss: Loss, y: Any, z: Floats, weights: Floats | None = None) -> float:
    """(Weighted) mean over the samples of their loss, summed over targets."""
    losses = loss.value(y, z)
    losses = losses if losses.ndim == 1 else losses.sum(axis=1)
    return float(np.average(losses, weights=weights))


def information(
    criterion: str, loss: Loss, problem: tuple[Any, Floats | None], z: Floats, sizes: tuple[int, int]
) -> float:
    """AIC, BIC or EBIC of predictions z, the smaller the better.

    Squared loss counts as normal errors of unknown variance, other losses as negative log-likelihoods.
    `sizes` are the number of columns used and the number there are. EBIC (Chen, Chen 2008, gamma = 1) adds
    twice the logarithm of the number of models of that size.
    """
    y, weights = problem
    used, d = sizes
    n = float(len(z) if weights is None else weights.sum())
    targets = int(np.prod(z.shape[1:], dtype=int))
    total = n * mean_loss(loss, y, z, weights)
    if loss.quadratic:
        floor = np.finfo(float).eps * n * max(mean_loss(loss, y, np.zeros_like(z), weights), NEARLY_ZERO)
        deviance = n * targets * np.log(2 * max(total, floor) / (n * targets))
    else:
        deviance = 2 * total
    free = used * targets
    if criterion == "aic":
        return float(deviance + 2 * free)
    bic = deviance + np.log(n) * free
    models = gammaln(d + 1) - gammaln(used + 1) - gammaln(d - used + 1)
    return float(bic if criterion == "bic" else bic + 2 * models)
