"""Audits: how much of the best score each step of a path took.

Weak greedy and Frank-Wolfe algorithms do not need the best column, only one whose score is at least rho times
the best, and their guarantees say how the error falls with that rho. A heuristic does not know its rho. It is
cheap to find out afterwards: the fits on the path's columns give the residuals of all steps, and one product
of X with them has the scores of all columns at all steps.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from skpursuit.data import Design, split_target
from skpursuit.fit.growing import add_columns, start_fit
from skpursuit.numerics.arrays import NO_COLUMNS, Floats, Indices
from skpursuit.numerics.blas import single_threaded_blas
from skpursuit.numerics.error_bounds import Estimate
from skpursuit.parameters import check_flag, check_indices, check_nonnegative
from skpursuit.problem.losses import Loss, as_loss
from skpursuit.problem.problem import Problem, check_targets_range, checked_targets, make_problem
from skpursuit.problem.state import Audit, Record
from skpursuit.selectors.query import Query
from skpursuit.selectors.top_k import resolve_top_k

MAX_PENDING_BYTES = 2**28  # residuals and products of steps that wait for the pass over X
SAME_OBJECTIVE = 1e-6  # of the objective of the zero model
NOT_OF_THIS_DATA = (
    "the path does not lead to its own objectives on this X and y: they are other data, or its solver is not "
    "OMP by single columns, or it had weights, a ridge or always_include; use minimize(..., audit=True)"
)


class ModelPath(NamedTuple):
    """A problem, and columns in the order in which a pursuit took them."""

    problem: Problem
    columns: Indices
    forced: Sequence[int] = ()  # that were there before
    objectives: Floats | None = None  # after each step, where a run recorded them


def audit(
    X: object,
    y: object,
    path: object,
    *,
    loss: str | Loss = "squared",
    ridge: float = 0.0,
    fit_intercept: bool = False,
) -> Audit:
    """Say how close each choice of a path came to the best one, by any selector or library.

    The path's columns are fitted again, one after the other, as `OMP` fits them, and one pass over X weighs
    the residuals of all steps. Runs of other solvers are weighed by ``minimize(..., audit=True)``.

    Parameters
    ----------
    X, y
        As in `minimize`.
    path : Result, fitted estimator or list of int
        What `minimize` returned for `OMP`; an estimator of this library, which brings its own loss, ridge,
        scaling and intercept; or columns in the order in which any library took them. Each choice is compared
        with all columns, also with those that a solver was to exclude.
    loss, ridge, fit_intercept
        Those that the path was found with; `ridge` as in `OMP`.

    Returns
    -------
    Audit

    Examples
    --------
    >>> from skpursuit import OMP, audit, datasets, minimize
    >>> X, y, w = datasets.make_sparse_signal(200, 400, 5, snr=10.0, random_state=0)
    >>> found = audit(X, y, minimize(X, y, OMP(n_nonzero_coefs=5), "halving"))
    >>> found.rho_min, found.exact_until
    (1.0, 5)
    """
    with single_threaded_blas():
        problem, columns, forced, objectives = read_path(X, y, path, loss, ridge, fit_intercept)
        weigher, state = StepWeigher(problem.design), start_fit(problem)
        for j in forced:
            state = add_columns(problem, state, [j])
        problem.design.columns(columns)  # gathered together
        slack = SAME_OBJECTIVE * problem.value(np.zeros_like(state.z))
        for t, j in enumerate(columns.tolist()):
            gone = np.concatenate([state.support, state.dropped])
            weigher.add(Query(problem.residual(state.z), score=problem.score, exclude=gone), j)
            state = add_columns(problem, state, [j])
            if objectives is not None and not abs(state.objective - objectives[t]) <= slack:
                raise ValueError(NOT_OF_THIS_DATA)
        return weigher.audit()


class StepWeigher:
    """Collects the questions of a run with the columns it took, and weighs many in one pass over X."""

    def __init__(self, design: Design) -> None:
        self.design = design.for_run()  # whose reads are not those of the run
        self.pending: list[tuple[Query, int]] = []
        self.weighed: list[tuple[int, int, float, int, float]] = []

    def add(self, query: Query, column: int) -> None:
        """One step: what was asked, and the column that was taken."""
        self.pending.append((query, column))
        n, d = self.design.shape
        if len(self.pending) * 8 * (n + 3 * d) * (query.r.size // n) > MAX_PENDING_BYTES:
            self._weigh()

    def audit(self, history: list[Record] | None = None, radius: float | None = None) -> Audit:
        """All steps; with the history of a run on a set of this radius also the duality gaps."""
        if self.pending:
            self._weigh()
        if not self.weighed:
            return Audit(NO_COLUMNS, NO_COLUMNS, np.empty(0), NO_COLUMNS)
        taken, best, rho, rank, short = (np.array(part) for part in zip(*self.weighed))
        if history is None or radius is None:
            return Audit(taken, best, rho, rank)
        believed = np.array([record.gap for record in history if record.gap is not None])
        return Audit(taken, best, rho, rank, believed + radius * short, believed)

    def _weigh(self) -> None:
        design, R = self.design, np.stack([query.r for query, _ in self.pending], axis=1)
        flat = R.reshape(len(R), -1)
        error, g = design.rounding(flat), design.product(flat)
        tables = (g, np.zeros_like(g) if error is None else error)
        values, errors = (np.moveaxis(table.reshape(-1, *R.shape[1:]), 1, 0).copy() for table in tables)
        for (query, taken), g, e in zip(self.pending, values, errors):
            answer, scores = resolve_top_k(design, query, Estimate(g, e)), query.scores(g)
            best = int(answer.columns[0]) if len(answer.columns) else taken
            pair = np.array([taken, best])
            exact = design.dots(pair, query.r) if answer.n_recomputed and best != taken else g[pair]
            mine, most = query.score.of(exact).tolist()
            tied = taken == best or mine == most
            rank = 0 if tied else int(np.count_nonzero(scores > scores[taken]))
            self.weighed.append((taken, best, 1.0 if tied else mine / most, rank, most - mine))
        self.pending = []


def read_path(
    X: object, y: object, path: object, loss: str | Loss, ridge: float, fit_intercept: bool
) -> ModelPath:
    """The path of a `Result`, a fitted estimator or a list of columns, checked against X and y."""
    check_nonnegative("ridge", ridge, optional=False)
    check_flag("fit_intercept", fit_intercept)
    of_estimator = getattr(path, "model_path", None)
    if of_estimator is not None:
        return of_estimator(X, y)
    design, y = split_target(X, y)
    y, loss = checked_targets(y, design.shape[0]), as_loss(loss)
    check_targets_range(y)
    history, objectives, d = getattr(path, "history", None), None, design.shape[1]
    if history is not None:
        steps = [record for record in history if record.selected]
        path, objectives = [one.selected[-1] for one in steps], np.array([one.objective for one in steps])
        if len(set(path)) < len(path) or any(one.gap is not None for one in steps):
            raise ValueError(NOT_OF_THIS_DATA)
    elif getattr(path, "get_params", None) is not None:
        name = type(path).__name__
        raise TypeError(f"{name} does not say in which order it took its columns; give them as a list")
    check_indices("path", path)
    columns = np.asarray(path, dtype=np.intp)
    if not len(columns):
        raise ValueError("path has no columns; give at least one")
    if columns.max() >= d:
        raise ValueError(f"path names column {columns.max()}, but X has {d} columns, from 0 to {d - 1}")
    view = design.view
    if fit_intercept and loss.quadratic:
        view, y = view.compose(centre=design.survey(spreads=False).means), y - y.mean(axis=0)
    elif fit_intercept:
        view = view.compose(constant=True)
    problem = make_problem(design.with_view(view), y, loss, None, ridge)
    forced = () if problem.design.constant is None else (problem.design.constant,)
    return ModelPath(problem, columns, forced, objectives)
