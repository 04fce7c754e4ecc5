"""Matching pursuit and orthogonal matching pursuit; with a general loss the latter is gradient pursuit.

Both take the column with the largest gradient entry. Matching pursuit moves its coefficient alone; orthogonal
matching pursuit adds it to the support and fits all coefficients again, so no column is ever taken twice. A
column that depends on the support cannot help. It is dropped, and after a few such columns in a row all that
depend are looked for at once (`dependent_columns`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import ceil
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.random import Generator

from skpursuit.fit.growing import add_columns, after_columns, dependent_columns, grows_from_zero, start_fit
from skpursuit.fit.newton import coordinate_step, fit_support
from skpursuit.fit.swaps import apply_swaps
from skpursuit.numerics.arrays import NO_COLUMNS, Floats, Indices
from skpursuit.numerics.error_bounds import rank_tolerance
from skpursuit.numerics.sums import safe_norm
from skpursuit.parameters import check_number
from skpursuit.problem.problem import Problem
from skpursuit.problem.scores import top_k
from skpursuit.problem.state import SparseUpdate, State, Status, empty_state
from skpursuit.selectors.base import SelectionOracle
from skpursuit.selectors.contests import Gain
from skpursuit.selectors.query import Query, Selection
from skpursuit.solvers.base import SparseSolver, stop_on_decrease, stop_on_residual

Made = TypeVar("Made")
MAX_REJECTIONS = 4  # columns rejected one after the other before all that depend are looked for


@dataclass(frozen=True)
class OMP(SparseSolver):
    """Orthogonal matching pursuit (algorithm "gradient pursuit" of the paper).

    Each step adds the column with the largest |gradient| and fits all coefficients again. Columns that depend
    on those chosen before are left out; the run ends with Status.OPTIMAL when no other is left.

    Parameters
    ----------
    n_nonzero_coefs : int, optional
        Columns in the final model, `always_include` included. Default: a tenth of the columns, at most as
        many as rows; no limit when `tol` or `rtol` is given.
    tol : float, optional
        Stop once the squared residual norm is at most this (squared loss), or once a step lowers the
        objective by at most this relative amount (other losses).
    rtol : float, optional
        As tol for squared loss, relative to ||y||^2.
    max_iter : int, optional
        Limit on steps.
    positive : bool
        Coefficients >= 0, by non-negative least squares. Squared loss, one target.
    always_include, exclude : sequence of int or str
        Columns in the model from the start, and columns that are never in it, by number or by name.
    ridge : float
        Penalty of (ridge / 2) ||w||^2 beside the mean loss, in the units of X, and never of the constant
        column of a design. It shrinks coefficients while columns are chosen and in the result.
    swaps : bool
        At the end exchange columns of the model for others, the best pair first, while the objective falls;
        `always_include` ones stay. An exchange costs about k^2 d operations and a Gram column. The path of
        sizes that an estimator takes from one run has exchanged models too, and a smaller one need not be
        part of a larger one.
    score : {"correlation", "gain"}
        Take the column with the largest |gradient|, or the one that lowers the loss most: its gradient is
        compared with what the support leaves of the column ("gain": orthogonal least squares, FROLS). That
        takes a Gram column a step, and squared loss without a ridge.
    atoms_per_step : int
        Columns taken from one gradient, the best first (generalised OMP). More than one saves gradients and
        fits where a model has hundreds of columns.
    feature_groups : array of labels or list of lists, optional
        Columns that enter together, as the levels of one variable: a label for each column, or lists of
        columns by number or by name, the others being alone. The group with the largest
        ||X_g^T r|| / sqrt(|g|) is taken, `n_nonzero_coefs` counts groups, and `always_include` and `exclude`
        take the whole group of a column.

    Examples
    --------
    >>> from skpursuit import OMP, datasets, minimize
    >>> X, y, w = datasets.make_sparse_signal(100, 200, 3, snr=20.0, random_state=0)
    >>> sorted(minimize(X, y, OMP(n_nonzero_coefs=3)).support) == sorted(w.nonzero()[0])
    True
    """

    nested_path: ClassVar[bool] = True
    supports_forced: ClassVar[bool] = True
    supports_ridge: ClassVar[bool] = True
    max_iter: int | None = None
    positive: bool = False
    always_include: Sequence[int | str] = ()
    ridge: float = 0.0
    swaps: bool = False
    score: str = "correlation"
    atoms_per_step: int = 1
    feature_groups: Any = None
    exclude: Sequence[int | str] = ()

    @property
    def asks_for_many(self) -> bool:
        return self.atoms_per_step > 1

    @property
    def passes_all_sizes(self) -> bool:
        return self.atoms_per_step == 1

    @property
    def contest(self) -> str:
        return "score='gain'" if self.score == "gain" else super().contest

    def sparsity(self, problem: Problem) -> int:
        """The number of columns this run may use."""
        if self.n_nonzero_coefs is not None:
            return int(self.n_nonzero_coefs)
        without_limit = self.tol is not None or self.rtol is not None
        return self.n_candidates(problem.design) if without_limit else super().sparsity(problem)

    def max_iterations(self, problem: Problem) -> int:
        """A step adds a column or drops a dependent one, and one more finds that none is left."""
        return self.max_iter or problem.design.shape[1] + 1

    def expected_queries(self, problem: Problem) -> tuple[int, int]:
        (n, d), each = problem.design.shape, self.atoms_per_step
        width = ceil(d / self.n_candidates(problem.design))
        count = min(self.sparsity(problem), ceil(min(n, d) / width))
        steps = min(ceil(count / each), self.max_iterations(problem))
        return steps, min(width * min(count, steps * each), d)

    def _try_columns(self, problem: Problem, state: State, r: Floats, answer: Selection) -> State | None:
        """The state with the columns found; None where none of them would improve it."""
        if self.positive:
            columns = [j for j in answer.columns.tolist() if grows_from_zero(problem, j, r)]
        else:
            helps = nonzero_gradients(problem, r, answer)
            helps |= self.feature_groups is not None and helps.any()  # which enter whole
            columns = answer.columns[helps].tolist()
        if not columns:
            return None
        if self.feature_groups is not None:
            columns = [j for j in columns if j not in state.dropped]
        return self._followed(problem, state, add_columns(problem, state, columns), answer)

    def _followed(
        self, problem: Problem, before: State, after: State, answer: Selection | None = None
    ) -> State:
        """The state, with what its support leaves of all columns where they are compared by it."""
        if self.score != "gain":
            return after

        def likely(count: int) -> Indices:
            known = None if answer is None else answer.full_gradient
            g = problem.design.product(problem.residual(before.z)) if known is None else known.value
            scores = problem.score.of(g)
            scores[list(problem.design.caches.gram_columns.arrays)] = -np.inf
            return top_k(scores, count)

        known = {name: before.memory[name] for name in before.memory.keys() & {"squares", "errors"}}
        after = replace(after, memory={**after.memory, **known})
        return after_columns(problem, after, len(before.support), likely)

    def finalize(self, problem: Problem, state: State) -> State:
        if self.swaps and len(state.support) > len(self.always_include):
            state = apply_swaps(problem, state, len(self.always_include), self.closed(NO_COLUMNS))
        if problem.quadratic or len(state.support) == 0:
            return state
        coef, z, objective = fit_support(problem, state.support, state.factorised.lines, state.coef)
        return replace(state, coef=coef, z=z, objective=objective)

    def init(self, problem: Problem) -> State:
        self._check_sparsity(problem)
        if self.positive and (not problem.quadratic or problem.target_shape):
            raise ValueError("positive=True needs squared loss and one target")
        if self.positive and self.swaps:
            raise ValueError("swaps=True needs coefficients of both signs; leave out positive=True")
        if self.groups is not None and (self.positive or self.swaps or self.score == "gain"):
            raise ValueError("feature_groups needs positive=False, swaps=False and score='correlation'")
        if self.score == "gain" and (not problem.quadratic or self.positive or self.ridge > 0):
            raise ValueError("score='gain' needs squared loss, without positive=True and without a ridge")
        first = state = start_fit(problem, self.positive)
        for j in self.included.tolist():
            state = add_columns(problem, state, [j])
        return self._with_status(problem, self._followed(problem, first, state))

    def step(self, problem: Problem, state: State, select: SelectionOracle, rng: Generator) -> State:
        score = problem.score
        if self.positive or self.feature_groups is not None:
            score = self.column_score(problem)
        elif self.score == "gain":
            score = Gain(score, state.factorised, state.memory["squares"], state.memory["errors"])
        left = self.sparsity(problem) - self.size(state.support)
        taken = np.concatenate([state.support, state.dropped])
        taken = self.closed(taken) if len(self.exclude) else taken
        count, r = min(self.atoms_per_step, left), problem.residual(state.z)
        query = Query(r, count, score, taken, rng, state=state, n_remaining=left)
        after = retry_exactly(select, query, partial(self._try_columns, problem, state, query.r))
        if after is None:
            return replace(state, status=Status.OPTIMAL)
        if len(after.support) > len(state.support):
            after = self._with_status(problem, after)
        else:
            after = after_rejection(problem, state, after, select)
        return after if self.tol is None else stop_on_decrease(problem, state, after, self.tol)

    def _with_status(self, problem: Problem, state: State) -> State:
        """The state, done if it fits well enough, has all its columns or spans all that can be spanned."""
        if problem.loss.predicts_targets:
            state = stop_on_residual(problem, state, self.tol, self.rtol)
        if state.status is None and self.size(state.support) >= self.sparsity(problem):
            return replace(state, status=Status.COMPLETE)
        spanned = len(state.support) >= problem.max_rank and not self.positive
        if state.status is None and spanned:
            return replace(state, status=Status.OPTIMAL)
        return state


def retry_exactly(
    select: SelectionOracle, query: Query, made: Callable[[Selection], Made | None]
) -> Made | None:
    """What is made of the column found, None where it does not improve.

    An answer that proves nothing is made sure of first.
    """
    answer = select(query)
    for _ in range(2):
        found = made(answer) if len(answer.columns) else None
        if found is not None or answer.certificate == "exact":
            return found
        answer = select.select_exactly(query)
    return None


def nonzero_gradients(problem: Problem, r: Floats, answer: Selection) -> np.ndarray:
    """Which of the columns have a gradient that is not zero; of an exact answer that is certain."""
    g = answer.gradient
    if answer.certificate != "exact":
        g = np.stack([line @ r for line in problem.design.columns(answer.columns)])
    return np.asarray(g.reshape(len(g), -1).any(axis=1))


def after_rejection(problem: Problem, before: State, after: State, select: SelectionOracle) -> State:
    """The state after a column was rejected; each time a few were in a row, all that depend go with it.

    Memory of the state: `rejected`, their number so far. It is forgotten when a column is added.
    """
    count = int(before.memory.get("rejected", 0)) + 1
    if count >= MAX_REJECTIONS:
        count = 0
        more = select.count_reads(lambda: dependent_columns(problem, after))
        after = replace(after, dropped=np.concatenate([after.dropped, more]))
    return replace(after, memory={**after.memory, "rejected": np.array(count)})


@dataclass(frozen=True)
class MatchingPursuit(SparseSolver):
    """Matching pursuit: move one coefficient a step, by g_j / ||x_j||^2 (squared loss).

    For other losses the step is a damped Newton step along the column. With a small `step_size` it is
    boosting by single columns (L2 boosting), whose models come close to those of the lasso.

    Parameters
    ----------
    n_nonzero_coefs : int, optional
        Stop before the model would use more columns than this.
    tol, rtol : float, optional
        As in `OMP`.
    max_iter : int
        Limit on steps; a column can be moved many times.
    step_size : float
        The share of each move that is made, above 0 and up to 1. Below 1 the gradient of squared loss follows
        the moves by Gram columns where the selector keeps them: d operations a step, whatever the support.
    feature_groups, exclude
        As in `OMP`. All coefficients of a group move at once, to their least squares (squared loss).
    positive : bool
        Coefficients >= 0, of one target: a column that is in the model may move down, no farther than to 0.

    Examples
    --------
    >>> from skpursuit import MatchingPursuit, datasets, metrics, minimize
    >>> X, y, w = datasets.make_sparse_signal(200, 100, 5, snr=20.0, random_state=0)
    >>> result = minimize(X, y, MatchingPursuit(step_size=0.1, max_iter=60), "gram")
    >>> metrics.f_measure(w, result.coef)
    1.0
    """

    nested_path: ClassVar[bool] = True
    max_iter: int = 1000
    step_size: float = 1.0
    feature_groups: Any = None
    exclude: Sequence[int | str] = ()
    positive: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("step_size", self.step_size, "(0, 1]")

    @property
    def n_updates(self) -> int | None:
        """Each move of a coefficient is rounded, and so is every later sum it is in."""
        return ceil(self.max_iter**1.5) if self.step_size == 1.0 else None

    def expected_queries(self, problem: Problem) -> tuple[int, int]:
        """With a small step columns are moved again and again."""
        repeats = ceil(1 / self.step_size)
        return self.max_iter, min(-(-self.max_iter // repeats), problem.design.shape[1])

    def init(self, problem: Problem) -> State:
        self._check_sparsity(problem)
        if self.groups is not None and not problem.quadratic:
            raise ValueError("feature_groups of MatchingPursuit need squared loss; use OMP or GraSP")
        if self.positive and (self.groups is not None or problem.target_shape):
            raise ValueError("positive=True needs one target and no feature_groups")
        return stop_on_residual(problem, empty_state(problem), self.tol, self.rtol)

    def step(self, problem: Problem, state: State, select: SelectionOracle, rng: Generator) -> State:
        gone = self.closed(state.dropped)
        query = Query(problem.residual(state.z), 1, self.column_score(problem), gone, rng, state=state)
        after = retry_exactly(select, query, partial(self._moved, problem, state, query.r))
        return replace(state, status=Status.OPTIMAL) if after is None else after

    def _moved(self, problem: Problem, state: State, r: Floats, answer: Selection) -> State | None:
        """The state with coefficients of a column or group moved; None where that would not improve it."""
        columns = self._moving_columns(problem, state, r, answer)
        support = np.concatenate([state.support, np.setdiff1d(columns, state.support)])
        if self.n_nonzero_coefs is not None and self.size(support) > self.n_nonzero_coefs:
            return replace(state, status=Status.COMPLETE)
        lines = problem.design.columns(columns)
        if self.groups is not None:
            taken = -np.linalg.lstsq(lines.T, r)[0], state.z, np.inf
        elif len(columns) == 0:
            return None
        elif safe_norm(lines[0]) <= problem.design.noise_floor(columns)[0]:
            return replace(state, dropped=np.append(state.dropped, columns))
        else:
            below = None if problem.quadratic else state.objective  # least squares is met in one step
            found = coordinate_step(problem, lines[0], state.z, below, np.asarray(lines[0] @ r))
            if found is None or not np.any(found[0]):
                return None
            taken = found[0][None], *found[1:]
        coef = np.concatenate([state.coef, np.zeros((len(support) - len(state.coef), *problem.target_shape))])
        order = np.argsort(support)
        places = order[np.searchsorted(support, columns, sorter=order)]
        whole, z, objective = taken
        move = self.step_size * whole
        if self.positive:
            move = np.maximum(move, -coef[places])
        if self.groups is not None or np.any(move != whole):
            z = state.z + (move.T @ lines).T
            objective = problem.value(z)
        if self.groups is not None and not objective < state.objective:
            return None
        coef[places] += move
        update = SparseUpdate(1.0, columns, move)
        after = replace(state, support=support, coef=coef, z=z, objective=objective, last_update=update)
        after = stop_on_residual(problem, after, self.tol, self.rtol)
        return stop_on_decrease(problem, state, after, self.tol)

    def _moving_columns(self, problem: Problem, state: State, r: Floats, answer: Selection) -> Indices:
        """The columns found, or a positive one whose coefficient falls faster; none without a gradient."""
        if not self.positive:
            helps = nonzero_gradients(problem, r, answer).any() or self.groups is not None
            return answer.columns if helps else NO_COLUMNS
        falling = state.support[state.coef > 0]
        columns = np.union1d(falling, answer.columns)
        g = problem.design.dots(columns, r)
        sizes = np.where(np.isin(columns, falling), np.abs(g), -g)
        best = columns[[np.argmax(sizes)]]
        least = rank_tolerance(len(r)) * safe_norm(problem.design.columns(best)[0]) * safe_norm(r)
        return best if sizes.max() > least else NO_COLUMNS
