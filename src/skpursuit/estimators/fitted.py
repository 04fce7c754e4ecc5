"""The attributes that a pursuit estimator has after `fit`."""

from __future__ import annotations

from typing import Any

import numpy as np

from skpursuit.data import Design
from skpursuit.estimators.folds import Model
from skpursuit.estimators.linear import LinearMixin, model_dtype, spread
from skpursuit.estimators.recipe import Fit
from skpursuit.problem.state import Record, Status


class FittedMixin(LinearMixin):
    """Coefficients and what is known of the runs: one for all targets, or one for each."""

    warm_start: bool
    support_: Any
    history_: list[Record] | list[list[Record]]
    n_iter_: int
    entries_read_: int

    @property
    def status_(self) -> Status | list[Status]:
        """Why the run stopped, or each of the runs."""
        stopped = self._stopped  # names, because files of other libraries know no enumerations
        return [Status[name] for name in stopped] if isinstance(stopped, list) else Status[stopped]

    def _keep(self, fits: list[Fit], base: Design, joint: bool) -> None:
        d, dtype = base.shape[1], model_dtype(base, [(fit.columns, fit.coef) for fit in fits])
        coefs = [spread(fit.columns, fit.coef, d, dtype) for fit in fits]
        results = [fit.result for fit in fits]
        self.coef_ = coefs[0] if joint else np.stack(coefs)
        self.intercept_ = fits[0].intercept if joint else np.array([fit.intercept for fit in fits])
        self.support_ = _one_or_all([fit.columns for fit in fits], joint)
        self._stopped = _one_or_all([result.status.name for result in results], joint)
        self.history_ = _one_or_all([result.history for result in results], joint)
        self.n_iter_ = max(result.n_iter for result in results)
        self.entries_read_ = sum(result.entries_read for result in results)

    def _starts(self, tasks: list[Any], shape: tuple[int, int]) -> list[Model | None]:
        """The last fit of each task, with `warm_start` and if it had coefficients of the same shape."""
        if not (self.warm_start and hasattr(self, "support_")):
            return [None] * len(tasks)
        supports = self.support_ if isinstance(self.support_, list) else [self.support_]
        coefs = np.atleast_2d(self.coef_)
        if len(supports) != len(tasks) or coefs.shape != shape:
            return [None] * len(tasks)
        if not isinstance(self.support_, list):
            alone = tasks[0].ndim == 1 and len(coefs) == 1
            coefs = coefs[0] if alone else coefs.T
            return [(self.support_, np.asarray(coefs[self.support_], dtype=np.float64), 0.0)]
        return [(s, np.asarray(c[s], dtype=np.float64), 0.0) for s, c in zip(supports, coefs)]


def _one_or_all(values: list[Any], joint: bool) -> Any:
    return values[0] if joint else values
