"""One power of two for X and one for y, chosen before a run and undone in its result.

Newton steps, line searches and Gram matrices multiply columns with columns and residuals with residuals, and
squares of numbers beyond 1e154 or below 1e-154 leave the range of floats. So a run whose columns or targets
are beyond 1e100 or below 1e-100 works in other units: X / 2^x and y / 2^y have their largest column and their
largest target near one. A power of two changes no digit, and one for all columns changes no choice between
them. X is not copied: a view multiplies residuals and gathered columns.

What may be scaled depends on the loss. X always may: coefficients are then those of X / 2^x. Where the loss
has a method `scaled` (squared, Huber), y and the predictions may be scaled too, and the objective goes by
4^y. Other losses fix the size of their predictions. The solver is told by `Solver.scaled`, since tolerances,
penalties and radii have units; one that does not know its units gets the problem as it is. The radius of
Frank-Wolfe fixes the size of predictions as well: 2^y then lies half-way between the two, so that neither
square is lost.

All other runs have Units(0, 0) and are not touched.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skpursuit.numerics.arrays import Floats
from skpursuit.numerics.scaling import LEAST_NORMAL, ORDINARY_POWER, is_ordinary, power_of, power_of_both
from skpursuit.problem.losses import Loss
from skpursuit.problem.problem import Problem
from skpursuit.problem.state import Record, State


@dataclass(frozen=True)
class Units:
    """The run's X is X / 2^x, its y is y / 2^y; the constant column, if there is one, is left as it is."""

    x: int = 0
    y: int = 0
    constant: int | None = None

    def __bool__(self) -> bool:
        return bool(self.x or self.y)

    def problem(self, problem: Problem) -> Problem:
        """The same problem in these units."""
        loss = problem.loss.scaled(self.y) if self.y else problem.loss
        assert loss is not None  # `choose_units` leaves y as it is where the loss cannot be scaled
        design = problem.design
        if self.x:  # X / 2^x by a factor of its rows: residuals are divided, so that no product overflows
            root = np.full(design.shape[0], 2.0**-self.x)
            view = replace(design.view, constant=False).then(root=root)
            design = design.with_view(replace(view, constant=design.view.constant))
        return replace(
            problem,
            design=design,
            y=np.ldexp(problem.y, -self.y) if self.y else problem.y,
            loss=loss,
            penalty=scaled_ridge(problem.penalty, -2 * self.x),
        )

    def coef(self, support: Any, coef: Floats, back: bool = True) -> Floats:
        """Coefficients of the run as those of X, or the other way round."""
        exponent = np.where(np.asarray(support) == self.constant, self.y, self.y - self.x)
        exponent = exponent if back else -exponent
        with np.errstate(over="ignore", under="ignore"):
            out = np.ldexp(coef, exponent if coef.ndim == 1 else exponent[:, None])
        if coef.any() and not LEAST_NORMAL <= np.abs(out).max() < np.inf:
            raise ValueError(
                f"coefficients of size 2^{self.y - self.x} are beyond the range of floats; "
                "multiply X or y by a constant"
            )
        return out

    def state(self, state: State) -> State:
        """A state of the run as one of the problem that was given."""
        if not self:
            return state
        with np.errstate(over="ignore", under="ignore"):
            z, objective = np.ldexp(state.z, self.y), float(np.ldexp(state.objective, 2 * self.y))
        return replace(state, coef=self.coef(state.support, state.coef), z=z, objective=objective)

    def record(self, record: Record) -> Record:
        """A record of the run as one of the problem that was given."""
        if not self.y:
            return record
        with np.errstate(over="ignore", under="ignore"):
            objective = float(np.ldexp(record.objective, 2 * self.y))
            gap = None if record.gap is None else float(np.ldexp(record.gap, 2 * self.y))
        return replace(record, objective=objective, gap=gap)


def scaled_size(name: str, value: float, exponent: int) -> float:
    """A parameter in other units; refused where it would be beyond all numbers."""
    with np.errstate(over="ignore", under="ignore"):
        scaled = float(np.ldexp(float(value), exponent))
    if value > 0 and not 0 < scaled < np.inf:
        much = "large" if scaled else "small"
        raise ValueError(
            f"{name} is {value:g}, too {much} beside numbers of the size that X and y have; "
            "divide X and y by their largest entries, and choose it again"
        )
    return scaled


def scaled_ridge(ridge: float, exponent: int) -> float:
    """A penalty in other units; refused where it would be beyond all numbers, 0 where it is below them."""
    if exponent <= 0:
        return float(np.ldexp(float(ridge), exponent))
    return scaled_size("ridge", ridge, exponent)


def choose_units(problem: Problem, solver: Any) -> Units:
    """Units in which X, y and predictions are ordinary; X has none alone, or products with y may vanish."""
    design, columns, reach = problem.design, 0, solver.reach(problem)
    if not all(is_ordinary(size) for size in design.size_range):  # cheap bounds leave it open
        widest = float(design.norms(0)[: design.constant].max())
        columns = 0 if is_ordinary(widest) else power_of(widest)
    return Units(columns, _exponent_of_targets(problem, reach, columns != 0), design.constant)


def _exponent_of_targets(problem: Problem, reach: int | None, always: bool) -> int:
    """The power of two for y; `reach` is that of predictions a constraint allows, `always` if X has one."""
    if problem.loss.scaled(0) is None:
        if power_of_both(0.0, reach) == 0:
            return 0
        raise ValueError(
            f"the constraint allows predictions of size 2^{reach}, at which this loss cannot be fitted; "
            "choose a radius near 1 / (the largest entry of X)"
        )
    counted = problem.y if problem.weights is None else problem.y[problem.weights > 0]
    peak = float(np.abs(counted).max(initial=0.0))
    exponent = power_of_both(peak, reach, always)
    if exponent is None:
        raise ValueError(
            f"the constraint allows predictions of size 2^{reach}, but y is of size {peak:.2g}; "
            "choose a radius near (the largest entry of y) / (the largest entry of X)"
        )
    return exponent


def exponent_of(loss: Loss, y: Floats, most: float = 2.0**ORDINARY_POWER) -> int:
    """The power of two for y alone; 0 for sizes between 1 / most and most, and where the loss fixes it."""
    peak = float(np.abs(y).max(initial=0.0))
    return 0 if 1 / most <= peak <= most or loss.scaled(0) is None else power_of(peak)
