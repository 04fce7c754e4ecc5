"""The data as a solver sees them, and the way back.

Users give X, y, weights and wish for an intercept or for columns of equal norm. A solver knows nothing of
that: it gets a view of X that is centred, scaled and weighted without being copied, targets to match, and a
loss. `StandardizedData` holds these, and turns what the solver found into coefficients of X as it was given.

The intercept is kept in one of three ways. Squared loss needs none once X and y are centred. With other
losses a last column of ones is always in the model, where the solver can force columns into it. Else the best
constant prediction is found first, the solver minimises the loss of predictions that are all moved by it
(`ShiftedLoss`), and once it is done the constant is fitted again beside its model.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from skpursuit.data import Design, Survey, drop_zero_weight_rows
from skpursuit.numerics.arrays import Floats, Indices
from skpursuit.numerics.convex_1d import minimize_convex_1d
from skpursuit.numerics.tuning import GATHERED_ENTRIES
from skpursuit.problem.losses import Loss, Squared
from skpursuit.problem.problem import make_problem
from skpursuit.problem.state import State
from skpursuit.selectors import Selector, as_selector
from skpursuit.solvers import Solver

SQUARED = Squared()
MAX_BRACKET = 2.0**60  # from where the search for a constant starts


@dataclass(frozen=True)
class StandardizedData:
    """Design, targets, loss and weights of a run; means, norms and offset that lead back to X and y.

    Scaled columns have a mean square of one, after centring where there is an intercept. `forced` has the
    column of ones, if there is one.
    """

    design: Design
    y: Floats
    loss: Loss
    weights: Floats | None
    centre: Floats
    scale: Floats
    offset: Floats | float
    forced: tuple[int, ...] = ()

    def to_original(self, state: State) -> tuple[Indices, Floats, Floats | float]:
        """Columns of X in order of selection, their coefficients, and the intercept."""
        real = np.asarray(state.support) < len(self.centre)
        columns, constant = state.support[real], state.coef[~real]
        coef = (state.coef[real].T / self.scale[columns]).T
        intercept = self.offset - self.centre[columns] @ coef + constant.sum(axis=0)
        if isinstance(self.loss, ShiftedLoss):
            loss, shift = self.loss.loss, self.loss.shift
            intercept += optimal_intercept(loss, self.y, self.weights, state.z, shift)
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
        targets = zip(y.T, z.T, start)
        found = [
            optimal_intercept(loss.for_target(t), one[0], weights, *one[1:]) for t, one in enumerate(targets)
        ]
        return np.array(found)
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
