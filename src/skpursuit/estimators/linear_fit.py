"""From the parameters of an estimator to a run, and from the run to a linear model, or to those of all sizes.

Users give X, y, weights and wish for an intercept or for columns of equal norm. A solver knows nothing of
that: it gets a view of X that is centred, scaled and weighted without being copied, targets to match, and a
loss. `StandardizedData` holds these, and turns what the solver found into coefficients of X as it was given.

The intercept is kept in one of three ways. Squared loss needs none once X and y are centred. With other
losses a last column of ones is always in the model, where the solver can force columns into it. Else the best
constant prediction is found first, the solver minimises the loss of predictions that are all moved by it
(`ShiftedLoss`), and once it is done the constant is fitted again beside its model.

`fit_linear` gives one `LinearFit`. `path_fits` gives the models with 1, 2, ... columns, of one run where the
solver passes through them. What a solver does once it has stopped (exchanges, the last digits of Newton) is
left to the model that is chosen (`LinearFit.finished`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from skpursuit.data import Design, Survey, drop_zero_weight_rows
from skpursuit.estimators.parameter_rules import COLUMN_RULES
from skpursuit.fit.newton import minimize_convex_1d
from skpursuit.loop.run import Run, make_run
from skpursuit.numerics.arrays import Floats, FloatType, Indices
from skpursuit.numerics.blas import single_threaded_blas
from skpursuit.numerics.sums import safe_norm
from skpursuit.numerics.tuning import GATHERED_ENTRIES
from skpursuit.parameters import RandomSource
from skpursuit.problem import default_sparsity as sparsity
from skpursuit.problem.losses import Loss, Squared, as_loss
from skpursuit.problem.problem import make_problem
from skpursuit.problem.state import Result, State
from skpursuit.selectors import Selector, as_selector
from skpursuit.solvers import Solver, solver_class

DEFAULT_CLASS_RIDGE = 0.03  # chosen on text collections, see docs/performance.md
SQUARED = Squared()
MAX_BRACKET = 2.0**60  # from where the search for a constant starts


class LinearFit(NamedTuple):
    """A linear model: columns in order of selection, their coefficients, intercept, and the run's result."""

    columns: Indices
    coef: Floats
    intercept: Floats | float
    result: Result | None = None
    #: makes a model that its run passed on the way what the run would have ended with
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
    feature_groups: object = None
    always_include: Sequence[int | str] = ()
    exclude: Sequence[int | str] = ()
    positive: bool = False

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

    def plain_solver(self, base: Design) -> Solver:
        """The solver as far as these columns are concerned: which it has to choose among."""
        if isinstance(self.solver, Solver):
            return self.solver.for_design(base)
        columns = {name: getattr(self, name) for name in COLUMN_RULES}
        return solver_class(self.solver).from_parameters(**columns).for_design(base)

    def make_solver(self, base: Design, weights: Floats | None) -> Solver:
        """The solver object for these data."""
        plain = self.plain_solver(base)
        if isinstance(self.solver, Solver):
            return plain
        n, d, ridge = base.shape[0], plain.n_candidates(base), self.ridge or 0.0
        k, least = self.n_nonzero_coefs, plain.n_included
        if k is None:
            k = max(sparsity.for_pursuit(n, d, self.tol is not None, weights), least)
        of = ("X", "columns") if plain.groups is None else ("feature_groups", "groups")
        k = sparsity.clip_to_available("n_nonzero_coefs", k, d, *of, least)
        if self.ridge is None and self.loss.gives_probability:  # classes may be separable
            total = float(n if weights is None else weights.sum())
            ridge = DEFAULT_CLASS_RIDGE / (total if self.scale == "none" else 1.0)
        given = {"n_nonzero_coefs": k, "tol": self.tol, "max_iter": self.max_iter, "ridge": ridge}
        known = {name: getattr(plain, name) for name in COLUMN_RULES}
        return solver_class(self.solver).from_parameters(**given, **known)


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
    solver = config.make_solver(base, weights)
    least = solver.n_included
    if not config.passes_all_sizes:
        sizes = (max(k, least) for k in range(1, most + 1))
        yield from (fit_linear(config.with_size(k), base, y, weights) for k in sizes)
        return
    (run, data), last = standardized_run(config.with_size(max(most, least)), base, y, weights), None

    def finish(state: State) -> tuple[Indices, Floats, Floats | float]:
        with single_threaded_blas():
            return data.to_original(run.solver.finalize(run.problem, state))

    if least:
        last = LinearFit(*data.to_original(run.state), finish=partial(finish, run.state))
        yield from [last] * (min(least, most) - 1)
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
    kind = solver_class(config.solver)
    can_force = kind.supports_forced
    data = standardize(base, y, loss, weights, intercept, config.scale, can_force, fine)
    if data.forced:
        solver, data = solver.with_forced(data.forced), replace(data, prunes=kind.selects_many)
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


@dataclass(frozen=True)
class StandardizedData:
    """Design, targets, loss and weights of a run; means, norms and offset that lead back to X and y."""

    design: Design
    y: Floats
    loss: Loss
    weights: Floats | None
    centre: Floats
    scale: Floats  # columns by it have a mean square of one, after centring where there is an intercept
    offset: Floats | float
    forced: tuple[int, ...] = ()  # the column of ones, if there is one
    prunes: bool = False  # whether its coefficient is that of a fit to more columns

    def to_original(self, state: State) -> tuple[Indices, Floats, Floats | float]:
        """Columns of X in order of selection, their coefficients, and the intercept."""
        real = np.asarray(state.support) < len(self.centre)
        columns, constant = state.support[real], state.coef[~real]
        coef = (state.coef[real].T / self.scale[columns]).T
        intercept = self.offset - self.centre[columns] @ coef + constant.sum(axis=0)
        if isinstance(self.loss, ShiftedLoss):
            loss, shift = self.loss.loss, self.loss.shift
            intercept += optimal_intercept(loss, self.y, self.weights, state.z, shift)
        elif self.prunes and not self.loss.couples_targets:
            intercept += optimal_intercept(self.loss, self.y, self.weights, state.z)
        return columns, coef, intercept


def standardize(
    base: Design,
    y: Floats,
    loss: Loss = SQUARED,
    weights: Floats | None = None,
    fit_intercept: bool = True,
    scale: str = "none",
    can_force: bool = True,
    fine: bool | None = None,
) -> StandardizedData:
    """Centre, scale (see `column_scale`) and weight without touching X; rows of weight zero are left out.

    `fine` is of the codes that the selector will make (`codes_of_run`): where that can be, X is read once.
    """
    d, scales = base.shape[1], scale != "none"
    if scale == "auto":
        scale = "one" if base.access.is_sparse else "column"
    base, y, weights = drop_zero_weight_rows(base, y, weights)
    has_column = fit_intercept and can_force and not loss.quadratic
    centred = (fit_intercept and loss.quadratic) or (has_column and scales)
    survey = base.survey(weights, fine, spreads=scales) if centred or scales else None
    centre = survey.means if survey is not None and centred else np.zeros(d)
    factors = np.ones(d) if survey is None else column_scale(survey, centre, scale)
    if loss.quadratic:
        plain = not (fit_intercept or scales)
        view = base if plain else base.with_view(base.view.compose(centre=centre, scale=factors))
        y, offset = centred_targets(y, weights, fit_intercept)
        return StandardizedData(view, y, loss, weights, centre, factors, offset)
    view = base.with_view(base.view.compose(centre=centre, scale=factors)) if scales else base
    if has_column:
        view = view.with_view(view.view.compose(constant=True))
    elif fit_intercept:
        loss = ShiftedLoss(loss, optimal_intercept(loss, y, weights))
    forced = (d,) if has_column else ()
    return StandardizedData(view, y, loss, weights, centre, factors, 0.0, forced)


def centred_targets(y: Floats, weights: Floats | None, fit_intercept: bool) -> tuple[Floats, Floats]:
    """Targets less their means, where there is an intercept, and what was subtracted."""
    y = np.asarray(y, dtype=np.float64)
    mean = y.mean(axis=0) if weights is None else np.average(y, axis=0, weights=weights)
    offset = mean if fit_intercept else np.zeros(y.shape[1:])
    y = y - offset
    tiny = 64 * np.finfo(np.float64).eps * np.abs(offset)  # a constant target is one of zeros
    return np.where(np.abs(y).max(axis=0) > tiny, y, 0.0), offset


def codes_of_run(
    base: Design, y: Floats, loss: Loss, weights: Floats | None, solver: Solver, selector: str | Selector
) -> bool | None:
    """Whether a run will make codes, and with a second byte; None: it makes none, or X is small."""
    if not base.on_disk and base.cost()[0] <= GATHERED_ENTRIES:
        return None
    expect = solver.workload(make_problem(base, y, loss, weights, solver.ridge))
    return as_selector(selector).encodes(base, expect)


def column_scale(survey: Survey, centre: Floats, scale: str) -> Floats:
    """What divides the columns: their spreads ("column"), the root mean square of these ("one"), or ones.

    Rare words are not as good as common ones, so sparse columns get one number. Columns that are constant are
    divided by 1.
    """
    if scale == "none":
        return np.ones(len(centre))
    spreads = survey.spreads(centre)
    used = spreads[spreads > 0]
    if scale == "one":
        return np.full(len(centre), np.sqrt(np.mean(used**2)) if len(used) else 1.0)
    return np.where(spreads > 0, spreads, 1.0)


@dataclass(frozen=True)
class ShiftedLoss(Loss):
    """A loss of predictions that are all moved by a constant, one per target."""

    loss: Loss
    shift: Floats | float

    @property
    def smoothness(self) -> float | None:  # type: ignore[override]
        return self.loss.smoothness

    def derivatives(self, y: Floats, z: Floats) -> tuple[Floats, Floats, Floats]:
        return self.loss.derivatives(y, z + self.shift)

    def majorant(self, y: Floats, z: Floats) -> Floats | None:
        return self.loss.majorant(y, z + self.shift)

    @property
    def predicts_targets(self) -> bool:  # type: ignore[override]
        return self.loss.predicts_targets

    def for_target(self, t: int) -> ShiftedLoss:
        return ShiftedLoss(self.loss, np.ravel(self.shift)[t])

    def check_targets(self, y: ArrayLike) -> Floats:
        return self.loss.check_targets(y)


def optimal_intercept(
    loss: Loss, y: Floats, weights: Floats | None = None, z: Floats | float = 0.0, start: Floats | float = 0.0
) -> Floats | float:
    """The b (one per target) that minimises the sum of weighted losses at z + b.

    It is found by `minimize_convex_1d` in a bracket that is opened from `start`. Where predictions have the
    units of y, its first end is beyond every target.
    """
    y = np.asarray(y, dtype=np.float64)
    z, start = np.broadcast_to(z, y.shape), np.broadcast_to(start, y.shape[1:])
    if y.ndim == 2:
        each = enumerate(zip(y.T, z.T, start))
        found = (optimal_intercept(loss.for_target(t), y, weights, *more) for t, (y, *more) in each)
        return np.array(list(found))
    w = np.ones(len(y)) if weights is None else weights

    def slopes(t: float) -> tuple[float, float]:
        b = start + way * t
        return way * float(w @ loss.residual(y, z + b)), float(w @ loss.curvature(y, z + b))

    slope = w * loss.residual(y, z + start)
    way, rounding = float(-np.sign(slope.sum())), 1e-16 * float(np.abs(slope).sum())
    limit = float(np.abs(y - z - start).max()) if loss.predicts_targets else 1.0
    farthest = MAX_BRACKET * limit
    while limit < farthest and slopes(limit)[0] < -rounding:
        limit *= 2.0
    return float(start) + way * minimize_convex_1d(slopes, limit, rounding)
