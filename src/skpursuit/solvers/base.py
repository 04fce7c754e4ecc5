"""What a solver is, and what all solvers share.

A solver is a frozen dataclass with two methods: `init` makes the first state, `step` makes the next one. It
holds no state of its own, so the loop can save, resume and repeat a run. Its class variables declare what it
can do, and estimators, `auto` and error messages read them instead of asking for its type. Parameters that
solvers share (`tol`, `ridge`, `n_nonzero_coefs`, ...) have one meaning and one check.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from math import sqrt
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.random import Generator

from skpursuit.data.design import Design
from skpursuit.data.options import column_indices
from skpursuit.numerics.arrays import Indices
from skpursuit.numerics.float_range import EPS
from skpursuit.numerics.sums import safe_norm
from skpursuit.parameters import (
    check_choice,
    check_columns,
    check_count,
    check_flag,
    check_groups,
    check_nonnegative,
)
from skpursuit.problem import default_sparsity as sparsity
from skpursuit.problem.column_groups import ColumnGroups, read_groups
from skpursuit.problem.problem import Problem
from skpursuit.problem.scores import Score, Signed
from skpursuit.problem.state import State, Status
from skpursuit.selectors.base import SelectionOracle
from skpursuit.selectors.contests import among
from skpursuit.selectors.query import Workload

NUMERIC_CHECKS: dict[str, Callable[..., None]] = {
    **dict.fromkeys(("n_nonzero_coefs", "max_iter", "batch_size", "atoms_per_step"), check_count),
    **dict.fromkeys(("tol", "rtol", "ridge", "step_size", "gap_tol"), check_nonnegative),
}
OTHER_CHECKS: dict[str, Callable[..., None]] = {
    **dict.fromkeys(("positive", "refit", "swaps", "lazy", "confirm"), check_flag),
    **dict.fromkeys(("always_include", "exclude"), check_columns),
    "feature_groups": check_groups,
    "score": partial(check_choice, known=("correlation", "gain")),
    "prune": partial(check_choice, known=("size", "gain")),
}


class Solver(ABC):
    """An outer algorithm: `init` makes a state, `step` makes the next one. The loop is elsewhere.

    Subclasses are frozen dataclasses. A step sets `state.status` when it is done.
    """

    max_iter: int | None
    n_nonzero_coefs: int | None = None
    ridge: float = 0.0
    feature_groups: Any = None
    always_include: Sequence[int | str] = ()
    exclude: Sequence[int | str] = ()
    positive: bool = False
    selects_many: ClassVar[bool] = False  # a query is for more than one column
    takes_sparsity: ClassVar[bool] = False  # parameter `n_nonzero_coefs`, the columns in the model
    nested_path: ClassVar[bool] = False  # one run passes through the models of all sizes
    supports_forced: ClassVar[bool] = False  # parameter `always_include`, columns that stay in the model
    supports_ridge: ClassVar[bool] = False  # parameter `ridge`: (ridge / 2) ||w||^2 beside the mean loss
    squared_loss_only: ClassVar[bool] = False  # serves squared loss alone

    def __post_init__(self) -> None:
        """Check the parameters that solvers share; None is allowed where it is the default."""
        for part in fields(self):  # type: ignore[arg-type]
            name, value = part.name, getattr(self, part.name)
            if name in NUMERIC_CHECKS:
                NUMERIC_CHECKS[name](name, value, optional=part.default is None)
            elif name in OTHER_CHECKS:
                OTHER_CHECKS[name](name, value)

    @classmethod
    def from_parameters(cls, **given: object) -> Self:
        """The solver of an estimator's parameters: those it has not are left out, None means its default."""
        known = {part.name for part in fields(cls)}  # type: ignore[arg-type]
        return cls(**{name: value for name, value in given.items() if name in known and value is not None})

    def for_design(self, design: Design) -> Self:
        """The same solver with numbers in place of names of columns, and groups that are known."""
        d, names, changes = design.shape[1], design.names, dict[str, Any]()
        for name in ("always_include", "exclude"):
            if len(given := getattr(self, name)):
                changes[name] = tuple(column_indices(name, given, d, names))
        if self.feature_groups is not None:
            changes["feature_groups"] = groups = read_groups(self.feature_groups, design)
            for name in changes.keys() & {"always_include", "exclude"}:  # whole groups
                more = groups.columns(groups.of(np.array(changes[name])))
                changes[name] = tuple(dict.fromkeys([*changes[name], *more.tolist()]))
        both = sorted({*changes.get("always_include", ())} & {*changes.get("exclude", ())})
        if both:
            raise ValueError(f"always_include and exclude both name column {both[0]} or its group; drop one")
        return replace(self, **changes) if changes else self  # type: ignore[type-var]

    @property
    def groups(self) -> ColumnGroups | None:
        """The groups of columns that enter together, of a solver that knows its design."""
        return cast("ColumnGroups | None", self.feature_groups)

    def size(self, columns: Indices) -> int:
        """What columns count for the number that a model may have: themselves, or their groups."""
        return len(columns) if self.groups is None else len(self.groups.of(columns))

    @property
    def included(self) -> Indices:
        """The columns that are in every model."""
        return np.array(self.always_include, dtype=np.intp)

    @property
    def n_included(self) -> int:
        """The number of them, or of their groups."""
        return self.size(self.included)

    def n_candidates(self, design: Design) -> int:
        """The number of columns that can be chosen, or of groups."""
        return design.shape[1] if self.groups is None else len(self.groups)

    def closed(self, columns: Indices) -> Indices:
        """Columns that a query must not answer with, those that are excluded from all models among them."""
        gone = np.array(self.exclude, dtype=np.intp)
        return np.union1d(columns, gone) if len(gone) else columns

    @property
    def chooses_freely(self) -> bool:
        """Whether each column may come or stay away on its own, with any coefficient."""
        bound = len(self.always_include) or len(self.exclude) or self.positive
        return self.feature_groups is None and not bound

    def column_score(self, problem: Problem) -> Score:
        """What "largest" means for the columns that a step asks for."""
        plain = Signed() if self.positive else problem.score
        return plain if self.feature_groups is None else among(plain, self.groups)

    @property
    def asks_for_many(self) -> bool:
        """Whether a query of this solver is for more than one column."""
        return self.selects_many

    @property
    def passes_all_sizes(self) -> bool:
        """Whether a run passes through the models of all sizes, one by one."""
        return self.nested_path

    @property
    def contest(self) -> str:
        """The parameter that makes scores a contest of more than single entries of X^T r; or nothing."""
        return "" if self.feature_groups is None else "feature_groups"

    @property
    def radius(self) -> float | None:
        """That of the set that iterates stay in, for duality gaps; None of most solvers."""
        return None

    @abstractmethod
    def init(self, problem: Problem) -> State:
        """Check the parameters against the problem and return the first state."""

    @abstractmethod
    def step(self, problem: Problem, state: State, select: SelectionOracle, rng: Generator) -> State:
        """One iteration."""

    def with_forced(self, columns: tuple[int, ...]) -> Self:
        """The same solver with these columns in the model beside those it may choose."""
        if not self.supports_forced:
            raise TypeError(f"{type(self).__name__} cannot force columns into the model")
        k = None if self.n_nonzero_coefs is None else self.n_nonzero_coefs + len(columns)
        included = (*columns, *self.always_include)
        return replace(self, always_include=included, n_nonzero_coefs=k)  # type: ignore[type-var]

    def fallback_state(self, problem: Problem, state: State) -> State:
        """The state to end with when a step from this one found numbers that are not finite."""
        return state

    def finalize(self, problem: Problem, state: State) -> State:
        """What a run that stopped with this state gives its caller."""
        return state

    def sparsity(self, problem: Problem) -> int:
        """The number of columns that the model may have, by default a tenth of those of X."""
        default = sparsity.for_solver(problem.design.shape[0], self.n_candidates(problem.design))
        return int(self.n_nonzero_coefs or max(default, self.n_included))

    def _check_sparsity(self, problem: Problem) -> None:
        """Refuse more non-zero coefficients than columns, or groups of them, and fewer than are included."""
        k, d = self.sparsity(problem), self.n_candidates(problem.design)
        if k > d:
            single = self.groups is None or problem.design.is_complex
            what = "X has {} columns" if single else "feature_groups makes {} groups"
            raise ValueError(f"n_nonzero_coefs is {k} but {what.format(d)}; use at most {d}")
        if (least := self.n_included) > k:
            raise ValueError(f"always_include names {least} columns but n_nonzero_coefs is {k}; raise it")

    def max_iterations(self, problem: Problem) -> int:
        """The most iterations the loop may make."""
        return self.max_iter or 100

    @property
    def n_updates(self) -> int | None:
        """Moves of the predictions, whose rounding they carry; None where `State.move` tells each of them."""
        return 0

    def workload(self, problem: Problem) -> Workload:
        """What a run will ask its selector for."""
        steps, visits = self.expected_queries(problem)
        return Workload(
            n_queries=steps,
            n_columns=visits,
            n_updates=self.n_updates,
            many_columns=self.asks_for_many,
            n_targets=max(1, *problem.target_shape) if problem.target_shape else 1,
            y=problem.y if problem.quadratic else None,
            contest=self.contest,
        )

    def expected_queries(self, problem: Problem) -> tuple[int, int]:
        """Selections a run is expected to ask for, and columns it is expected to visit, for `auto`."""
        steps = self.max_iterations(problem)
        return steps, min(steps, problem.design.shape[1])


@dataclass(frozen=True)
class SparseSolver(Solver):
    """A solver with a limit on the columns of its model, and on the residual that is left."""

    takes_sparsity: ClassVar[bool] = True
    n_nonzero_coefs: int | None = None
    tol: float | None = None
    rtol: float | None = None


def stop_on_residual(problem: Problem, state: State, tol: float | None, rtol: float | None) -> State:
    """Mark a squared-loss state whose residual is small enough, or one that is zero to working precision.

    The latter of any loss whose predictions have the units of y, without a penalty: what is left to fit is
    rounding alone.
    """
    zero = 8 * sqrt(len(state.z)) * EPS * problem.target_norm
    if not problem.quadratic:
        if not problem.loss.predicts_targets or problem.target_norm == 0.0 or problem.penalty:
            return state
        left = safe_norm((state.z - problem.y).ravel())
        return replace(state, status=Status.ZERO_RESIDUAL) if left <= zero else state
    left = sqrt(2 * state.objective)  # ||r||
    fits = rtol is not None and left <= sqrt(rtol) * problem.target_norm
    if fits or (tol is not None and left <= sqrt(tol)):
        return replace(state, status=Status.CONVERGED)
    return replace(state, status=Status.ZERO_RESIDUAL) if left <= zero else state


def stop_on_decrease(problem: Problem, before: State, after: State, tol: float | None) -> State:
    """Mark a state of a loss other than squared whose objective fell by a relative amount below tol."""
    if tol is None or problem.quadratic or after.status is not None:
        return after
    if before.objective - after.objective <= tol * abs(before.objective):
        return replace(after, status=Status.CONVERGED)
    return after
