"""From the parameters of an estimator to a run, and from the run to a linear model, or to those of all sizes.

`fit_linear` gives one `LinearFit`: coefficients of X as it was given. `path_fits` gives the models with 1, 2,
... columns, of one run where the solver passes through them. What a solver does once it has stopped
(exchanges, the last digits of Newton) is left to the model that is chosen (`LinearFit.finished`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np

from skpursuit.data import Design
from skpursuit.estimators.standardized import StandardizedData, codes_of_run, standardize
from skpursuit.loop.run import Run, make_run
from skpursuit.numerics.arrays import Floats, FloatType, Indices
from skpursuit.numerics.blas import single_threaded_blas
from skpursuit.numerics.sums import safe_norm
from skpursuit.parameters import RandomSource
from skpursuit.problem import default_sparsity as sparsity
from skpursuit.problem.losses import Loss, Squared, as_loss
from skpursuit.problem.state import Result, State
from skpursuit.selectors import Selector
from skpursuit.solvers import Solver, solver_class

DEFAULT_CLASS_RIDGE = 0.03  # chosen on text collections, see the README


class LinearFit(NamedTuple):
    """A linear model: columns in order of selection, their coefficients, intercept, and the run's result.

    A model that its run passed on the way has `finish`, which makes it what the run would have ended with.
    """

    columns: Indices
    coef: Floats
    intercept: Floats | float
    result: Result | None = None
    finish: Callable[[], tuple[Indices, Floats, Floats | float]] | None = None

    def finished(self) -> LinearFit:
        """The model as its solver leaves it at the end of a run."""
        return self if self.finish is None else LinearFit(*self.finish(), self.result)


def average_fits(fits: list[LinearFit]) -> LinearFit:
    """The model that predicts the mean of what models predict."""
    used = np.unique(np.concatenate([fit.columns for fit in fits])).astype(np.intp)
    coef = np.zeros((len(used), *fits[0].coef.shape[1:]))
    for fit in fits:
        coef[np.searchsorted(used, fit.columns)] += fit.coef / len(fits)
    return LinearFit(used, coef, sum(fit.intercept for fit in fits) / len(fits))


@dataclass(frozen=True)
class FitConfig:
    """What the pursuit estimators are asked to do, whatever the data. The values are checked before."""

    solver: str | Solver = "omp"
    selector: str | Selector = "auto"
    loss: Loss = field(default_factory=Squared)
    n_nonzero_coefs: int | None = None
    tol: float | None = None
    fit_intercept: bool = True
    scale: str = "none"
    max_iter: int | None = None
    ridge: float | None = None
    random_state: RandomSource = None

    @classmethod
    def from_estimator(cls, estimator: Any, **changes: object) -> Self:
        """Take the parameters an estimator has under these names."""
        given = estimator.get_params(deep=False) | changes
        given["loss"] = as_loss(given["loss"])
        return cls(**{part.name: given[part.name] for part in fields(cls) if part.name in given})

    @property
    def name(self) -> str:
        """The name of the solver, or of the class of a solver object."""
        return self.solver if isinstance(self.solver, str) else type(self.solver).__name__

    @property
    def passes_all_sizes(self) -> bool:
        """Whether one run gives the models of all sizes."""
        solver = self.solver
        return solver_class(solver).nested_path if isinstance(solver, str) else solver.passes_all_sizes

    def with_size(self, k: int) -> FitConfig:
        """The same for k coefficients; a solver object then has this limit instead of its own."""
        if isinstance(self.solver, Solver):
            return replace(self, solver=replace(self.solver, n_nonzero_coefs=k))  # type: ignore[type-var]
        return replace(self, n_nonzero_coefs=k)

    def make_solver(self, base: Design, weights: Floats | None) -> Solver:
        """The solver object for these data."""
        if isinstance(self.solver, Solver):
            return self.solver
        (n, d), k, ridge = base.shape, self.n_nonzero_coefs, self.ridge or 0.0
        if k is None:
            k = sparsity.for_pursuit(n, d, self.tol is not None, weights)
        k = sparsity.clip_to_available("n_nonzero_coefs", k, d)
        if self.ridge is None and self.loss.gives_probability:  # classes may be separable
            total = float(n if weights is None else weights.sum())
            ridge = DEFAULT_CLASS_RIDGE / (total if self.scale == "none" else 1.0)
        given = {"n_nonzero_coefs": k, "tol": self.tol, "max_iter": self.max_iter, "ridge": ridge}
        return solver_class(self.solver).from_parameters(**given)


def fit_linear(config: FitConfig, base: Design, y: Floats, weights: Floats | None = None) -> LinearFit:
    """Fit one problem."""
    run, data = standardized_run(config, base, y, weights)
    run.execute()
    return LinearFit(*data.to_original(run.state), run.result())


def path_fits(
    config: FitConfig, base: Design, targets: Sequence[Floats], weights: Floats | None, most: int
) -> Iterator[list[LinearFit]]:
    """Models of all problems with 1 to `most` columns, size by size as they are asked for.

    A path that ends early repeats its last model.
    """
    paths = [_growing_fits(config, base, y, weights, most) for y in targets]
    models = [next(path) for path in paths]
    while True:
        yield models
        after = [next(path, None) for path in paths]
        if all(fit is None for fit in after):
            return
        models = [last if fit is None else fit for last, fit in zip(models, after)]


def fitted_path(
    config: FitConfig, base: Design, targets: Sequence[Floats], weights: Floats | None, most: int
) -> list[list[LinearFit]]:
    """All models of `path_fits`; each has the result of the run that gave the largest."""
    models = list(path_fits(config, base, targets, weights, most))
    return [[fit._replace(result=last.result) for fit, last in zip(each, models[-1])] for each in models]


def _growing_fits(
    config: FitConfig, base: Design, y: Floats, weights: Floats | None, most: int
) -> Iterator[LinearFit]:
    """The models of one problem; a run goes on until it has the next one, so only the last has its result."""
    if not config.passes_all_sizes:
        yield from (fit_linear(config.with_size(k), base, y, weights) for k in range(1, most + 1))
        return
    (run, data), last = standardized_run(config.with_size(most), base, y, weights), None

    def finish(state: State) -> tuple[Indices, Floats, Floats | float]:
        with single_threaded_blas():
            return data.to_original(run.solver.finalize(run.problem, state))

    states = run.iterate()
    while True:
        with single_threaded_blas():
            state = next(states, None)
        if state is None:
            break
        fit = LinearFit(*data.to_original(state), finish=partial(finish, state))
        if last is not None and len(fit.columns) > len(last.columns):
            yield last
        last = fit if len(fit.columns) else None
    if last is None:
        last = LinearFit(*data.to_original(run.state))
    yield last._replace(result=run.result())


def standardized_run(
    config: FitConfig, base: Design, y: Floats, weights: Floats | None
) -> tuple[Run, StandardizedData]:
    """A run that is ready to go, and the way back from what it will find."""
    loss, intercept = config.loss.resolved(y), config.fit_intercept
    solver = config.make_solver(base, weights)
    fine = codes_of_run(base, y, loss, weights, solver, config.selector)
    can_force = solver_class(config.solver).supports_forced
    data = standardize(base, y, loss, weights, intercept, config.scale, can_force, fine)
    solver = solver.with_forced(data.forced) if data.forced else solver
    run = make_run(data.design, data.y, solver, config.selector, data.loss, data.weights, config.random_state)
    return run, data


def coef_dtype(base: Design, fits: list[LinearFit]) -> FloatType:
    """The dtype of X if predictions made in it agree with those in float64 to 1e-5, else float64."""
    if base.dtype == np.float64:
        return base.dtype
    for fit in fits:
        lines = base.columns(fit.columns)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):  # what is not finite differs
            z = fit.coef.T @ lines
            rounded = fit.coef.T.astype(base.dtype) @ lines.astype(base.dtype)
            whole = z.T + fit.intercept
            same = safe_norm((rounded - z).ravel()) <= 1e-5 * safe_norm(whole.ravel())
        if not same:
            return np.dtype(np.float64)
    return base.dtype


def dense_coefs(base: Design, fits: list[LinearFit]) -> list[Floats]:
    """Coefficients of all d columns, shape (d,) or (targets, d), of each fit; all of one dtype."""
    d, dtype, coefs = base.shape[1], coef_dtype(base, fits), []
    for fit in fits:
        full = np.zeros((d, *fit.coef.shape[1:]), dtype=dtype)
        full[fit.columns] = fit.coef
        coefs.append(np.ascontiguousarray(full.T))
    return coefs


def predict_rows(base: Design, fits: list[LinearFit], rows: Indices) -> list[Floats]:
    """X w + b of each fit on some rows; X is read once for all of them."""
    used = np.unique(np.concatenate([fit.columns for fit in fits])).astype(np.intp)
    if len(used) == 0:
        return [np.zeros((len(rows), *fit.coef.shape[1:])) + fit.intercept for fit in fits]
    gathered = base.columns(used)[:, rows].T
    return [gathered[:, np.searchsorted(used, fit.columns)] @ fit.coef + fit.intercept for fit in fits]
