"""Audits: how much of the best score each step of a path took.

Weak greedy and Frank-Wolfe algorithms do not need the best column, only one whose score is at least rho times
the best, and their guarantees say how the error falls with that rho. A heuristic does not know its rho. It is
cheap to find out afterwards: the fits on the path's columns give the residuals of all steps, and one product
of X with them has the scores of all columns at all steps.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from skpursuit.data import Design
from skpursuit.fit.least_squares import add_least_squares, start_least_squares
from skpursuit.fit.newton import Newton
from skpursuit.guarantees.model_path import NOT_OF_THIS_DATA, ModelPath, read_path
from skpursuit.numerics.arrays import Floats
from skpursuit.numerics.blas import single_threaded_blas
from skpursuit.numerics.error_bounds import Estimate
from skpursuit.problem.audit import Audit
from skpursuit.problem.losses import Loss
from skpursuit.problem.problem import Problem
from skpursuit.problem.state import Record, State
from skpursuit.selectors.query import Query
from skpursuit.selectors.top_k import resolve_top_k

MAX_PENDING_BYTES = 2**28  # residuals and products of steps that wait for the pass over X
SAME_OBJECTIVE = 1e-6  # of the objective of the zero model


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

    def _weigh(self) -> None:
        if not self.pending:
            return
        design, R = self.design, np.stack([query.r for query, _ in self.pending], axis=1)
        flat = R.reshape(len(R), -1)
        error = design.rounding(flat)
        G = _by_step(design.product(flat), R.shape[1:])
        errors = [None] * len(G) if error is None else _by_step(error, R.shape[1:])
        for (query, taken), g, e in zip(self.pending, G, errors):
            answer = resolve_top_k(design, query, Estimate(g, e))
            best = int(answer.columns[0]) if len(answer.columns) else taken
            pair, scores = np.array([taken, best]), query.scores(g)
            in_doubt = answer.n_recomputed and best != taken
            mine, most = query.score.of(design.dots(pair, query.r) if in_doubt else g[pair]).tolist()
            rho = 1.0 if taken == best or mine == most else mine / most
            rank = int(np.count_nonzero(scores > scores[taken])) if rho < 1.0 else 0
            self.weighed.append((taken, best, rho, rank, most - mine if rho < 1.0 else 0.0))
        self.pending = []

    def audit(self, history: list[Record] | None = None, radius: float | None = None) -> Audit:
        """All steps so far; with the history of a run on a set of this radius also the gaps."""
        self._weigh()
        taken, best, rho, rank, short = (np.array(part) for part in zip(*self.weighed) or [()] * 5)
        gap = believed = None
        if history is not None and radius is not None:
            believed = np.array([record.gap for record in history if record.gap is not None])
            gap = believed + radius * short
        return Audit(taken, best, rho, rank, gap, believed)


def _by_step(table: Floats, trailing: tuple[int, ...]) -> Floats:
    """Rows of products of all steps as one contiguous table for each step."""
    return np.ascontiguousarray(np.moveaxis(table.reshape(len(table), *trailing), 1, 0))


def audit(
    X: Any,
    y: Any,
    path: Any,
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
    X : array-like, sparse array, LinearOperator, path or Design of shape (n, d)
        See `as_design` for what it may be.
    y : array-like of shape (n,) or (n, targets), or str
    path : Result, fitted estimator or list of int
        What `minimize` returned for `OMP`; an estimator of this library, which brings its own loss, ridge,
        scaling and intercept; or columns in the order in which any library took them.
    loss : str or Loss
        That of the path.
    ridge : float
        As in `OMP`: (ridge / 2) ||w||^2 beside the mean loss.
    fit_intercept : bool
        Whether the path was found with an intercept.

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
        return _weighed(read_path(X, y, path, loss, ridge, fit_intercept))


def _weighed(path: ModelPath) -> Audit:
    """The audit of a path whose models are fitted as OMP does; refused if they are not the recorded ones."""
    problem, (state, add) = path.problem, _start(path)
    problem.design.columns(path.columns)  # gathered together
    weigher = StepWeigher(problem.design)
    slack = SAME_OBJECTIVE * problem.value(np.zeros_like(state.z))
    for t, j in enumerate(path.columns.tolist()):
        gone = np.concatenate([state.support, state.dropped])
        weigher.add(Query(problem.residual(state.z), score=problem.score, exclude=gone), j)
        state = add(problem, state, j)
        if path.objectives is not None and not abs(state.objective - path.objectives[t]) <= slack:
            raise ValueError(NOT_OF_THIS_DATA)
    return weigher.audit()


def _start(path: ModelPath) -> Any:
    """The model before the first step, and what adds a column to it."""
    problem, newton = path.problem, Newton(precision=1e-6)
    add = add_least_squares if problem.quadratic else newton.add
    state = start_least_squares(problem) if problem.quadratic else newton.start(problem)
    for j in path.forced:
        state = add(problem, state, j)
    return state, add
