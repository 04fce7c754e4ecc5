"""All models with 1, 2, ... coefficients, from one run, and what each of them is worth."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import gammaln

from skpursuit.data import Design
from skpursuit.data.base import Floats
from skpursuit.estimators.folds import Model
from skpursuit.estimators.recipe import Fit, Recipe
from skpursuit.problem.losses import Squared
from skpursuit.problem.state import Result


@dataclass(frozen=True)
class Path:
    """Models of one problem by their number of columns, from 1, and the run that gave the largest."""

    models: list[Model]
    result: Result

    def fit(self, k: int) -> Fit:
        """The model with k columns, or the largest if there are fewer."""
        return Fit(*self.models[min(k, len(self.models)) - 1], self.result)


def find_path(recipe: Recipe, base: Design, y: Any, weights: Floats | None, most: int) -> Path:
    """Models with 1 to `most` columns: one run of a pursuit, or one run for each size of other solvers."""
    if recipe.solver not in ("omp", "mp"):
        fits = [replace(recipe, n_nonzero_coefs=k).fit(base, y, weights) for k in range(1, most + 1)]
        return Path([(fit.columns, fit.coef, fit.intercept) for fit in fits], fits[-1].result)
    steps: list[Model] = []
    fit = replace(recipe, n_nonzero_coefs=most).fit(base, y, weights, steps=steps)
    by_size = {len(model[0]): model for model in steps if len(model[0])}
    last = (fit.columns, fit.coef, fit.intercept)
    return Path([by_size[k] for k in sorted(by_size)] or [last], fit.result)


def mean_loss(loss: Any, y: Any, z: Floats, weights: Floats | None = None) -> float:
    """(Weighted) mean over the samples of their loss, summed over targets."""
    losses = loss.value(y, z)
    losses = losses if losses.ndim == 1 else losses.sum(axis=1)
    return float(np.average(losses, weights=weights))


def information(
    criterion: str, loss: Any, problem: tuple[Any, Floats | None], z: Floats, sizes: tuple[int, int]
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
    if isinstance(loss, Squared):
        floor = np.finfo(float).eps * n * max(mean_loss(loss, y, np.zeros_like(z), weights), 1e-300)
        deviance = n * targets * np.log(2 * max(total, floor) / (n * targets))
    else:
        deviance = 2 * total
    free = used * targets
    if criterion == "aic":
        return float(deviance + 2 * free)
    bic = deviance + np.log(n) * free
    models = gammaln(d + 1) - gammaln(used + 1) - gammaln(d - used + 1)
    return float(bic if criterion == "bic" else bic + 2 * models)
