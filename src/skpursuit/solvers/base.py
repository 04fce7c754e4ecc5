"""What a solver is, and what all solvers share.

A solver is a frozen dataclass with two methods: `init` makes the first state, `step` makes the next one. It
holds no state of its own, so the loop can save, resume and repeat a run. Its class variables declare what it
can do, and estimators, `auto` and error messages read them instead of asking for its type. Parameters that
solvers share (`tol`, `ridge`, `n_nonzero_coefs`, ...) have one meaning and one check.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import fields, replace
from math import sqrt
from typing import Any, ClassVar, Protocol, Self, cast

import numpy as np

from skpursuit.numerics.estimate import Estimate
from skpursuit.numerics.sums import scaled_norm
from skpursuit.parameters import check_count, check_flag, check_indices, check_size
from skpursuit.problem import sparsity
from skpursuit.problem.problem import Problem
from skpursuit.problem.state import State, Status
from skpursuit.selectors.query import Expect, Query, Selection

EPS = float(np.finfo(np.float64).eps)
NUMBERS: dict[str, Callable[..., None]] = {
    **dict.fromkeys(("n_nonzero_coefs", "max_iter", "batch_size"), check_count),
    **dict.fromkeys(("tol", "rtol", "ridge", "step_size"), check_size),
}
OTHERS = {"positive": check_flag, "refit": check_flag, "swaps": check_flag, "forced": check_indices}


class Asks(Protocol):
    """How a step asks which columns to take."""

    def __call__(self, query: Query) -> Selection:
        """The selector's answer."""

    def exactly(self, query: Query) -> Selection:
        """The exact answer, where a solver has to be sure of it."""

    def look(self, query: Query) -> Estimate | None:
        """X^T r, where the selector knows it without reading X."""

    def counting(self, look: Callable[[], Any]) -> Any:
        """What a look at X outside a query gives, its reads counted like those of an answer."""


class Solver(ABC):
    """An outer algorithm: `init` makes a state, `step` makes the next one. The loop is elsewhere.

    Subclasses are frozen dataclasses. A step sets `state.status` when it is done.
    """

    max_iter: int | None
    n_nonzero_coefs: int | None = None
    ridge: float = 0.0
    asks_many: ClassVar[bool] = False  # a query is for more than one column
    has_sparsity: ClassVar[bool] = False  # parameter `n_nonzero_coefs`, the columns in the model
    nested_path: ClassVar[bool] = False  # one run passes through the models of all sizes
    can_force_columns: ClassVar[bool] = False  # parameter `forced`, columns that stay in the model
    can_ridge: ClassVar[bool] = False  # parameter `ridge`: (ridge / 2) ||w||^2 beside the mean loss
    quadratic_only: ClassVar[bool] = False  # serves squared loss alone

    def __post_init__(self) -> None:
        """Check the parameters that solvers share; None is allowed where it is the default."""
        for part in fields(cast(Any, self)):
            name, value = part.name, getattr(self, part.name)
            if name in NUMBERS:
                NUMBERS[name](name, value, optional=part.default is None)
            elif name in OTHERS:
                OTHERS[name](name, value)

    @classmethod
    def from_parameters(cls, **given: Any) -> Self:
        """The solver of an estimator's parameters: those it has not are left out, None means its default."""
        known = {part.name for part in fields(cls)}  # type: ignore[arg-type]
        return cls(**{name: value for name, value in given.items() if name in known and value is not None})

    @abstractmethod
    def init(self, problem: Problem) -> State:
        """Check the parameters against the problem and return the first state."""

    @abstractmethod
    def step(self, problem: Problem, state: State, select: Asks, rng: np.random.Generator) -> State:
        """One iteration."""

    def forcing(self, columns: tuple[int, ...]) -> Solver:
        """The same solver with these columns in the model beside those it may choose."""
        raise TypeError(f"{type(self).__name__} cannot force columns into the model")

    def retreat(self, problem: Problem, state: State) -> State:
        """The state to end with when a step from this one found numbers that are not finite."""
        return state

    def finish(self, problem: Problem, state: State) -> State:
        """What a run that stopped with this state gives its caller."""
        return state

    def sparsity(self, problem: Problem) -> int:
        """The number of columns that the model may have, by default a tenth of those of X."""
        return int(self.n_nonzero_coefs or sparsity.for_solver(*problem.design.shape))

    def _check_sparsity(self, problem: Problem) -> None:
        """Refuse more non-zero coefficients than columns."""
        k, d = self.sparsity(problem), problem.design.shape[1]
        if k > d:
            raise ValueError(f"n_nonzero_coefs is {k} but X has {d} columns; use at most {d}")

    def iterations(self, problem: Problem) -> int:
        """The most iterations the loop may make."""
        return self.max_iter or 100

    @property
    def roundings(self) -> int | None:
        """Moves of the predictions, whose rounding they carry; None where `State.move` tells each of them."""
        return 0

    def expect(self, problem: Problem) -> Expect:
        """What a run will ask its selector for."""
        steps, visits = self.work(problem)
        return Expect(
            steps=steps,
            visits=visits,
            limit=self.iterations(problem),
            roundings=self.roundings,
            asks_many=self.asks_many,
            targets=max(1, *problem.targets) if problem.targets else 1,
            y=problem.y if problem.quadratic else None,
        )

    def work(self, problem: Problem) -> tuple[int, int]:
        """Selections a run is expected to ask for, and columns it is expected to visit, for `auto`."""
        steps = self.iterations(problem)
        return steps, min(steps, problem.design.shape[1])


def residual_status(problem: Problem, state: State, tol: float | None, rtol: float | None) -> State:
    """Mark a squared-loss state whose residual is small enough, or one that is zero to working precision.

    The latter of any loss whose predictions have the units of y, without a penalty: what is left to fit is
    rounding alone.
    """
    zero = 8 * sqrt(len(state.z)) * EPS * problem.size
    if not problem.quadratic:
        if not problem.loss.predicts_targets or problem.size == 0.0 or problem.penalty:
            return state
        left = scaled_norm((state.z - problem.y).ravel())
        return replace(state, status=Status.ZERO_RESIDUAL) if left <= zero else state
    left = sqrt(2 * state.objective)  # ||r||
    if (rtol is not None and left <= sqrt(rtol) * problem.size) or (tol is not None and left <= sqrt(tol)):
        return replace(state, status=Status.CONVERGED)
    return replace(state, status=Status.ZERO_RESIDUAL) if left <= zero else state


def decrease_status(before: State, after: State, tol: float | None) -> State:
    """Mark a state of a general loss whose objective fell by a relative amount below tol."""
    if tol is None or after.status is not None:
        return after
    if before.objective - after.objective <= tol * abs(before.objective):
        return replace(after, status=Status.CONVERGED)
    return after
