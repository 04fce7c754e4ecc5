"""Merge, fit, prune: CoSaMP for squared loss and GraSP for any.

Each step merges the support with the 2k most promising columns, fits all of them and keeps the k largest
coefficients. Nothing forces the objective down, so the state remembers the best iterate, to which a run goes
back when it blows up, and the merged sets it has seen: a step depends on its merged set alone, so one that
comes again means that the iterates repeat for ever.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from skpursuit.fit.merged import fit_and_prune
from skpursuit.numerics.arrays import Indices
from skpursuit.problem.problem import Problem
from skpursuit.problem.state import State, Status, empty_state
from skpursuit.selectors.base import SelectionOracle
from skpursuit.selectors.query import Query
from skpursuit.solvers.base import Solver, stop_on_decrease, stop_on_residual

DIVERGENCE_FACTOR = 100.0  # times the objective of the zero model: what no useful iterate reaches


@dataclass(frozen=True)
class CoSaMP(Solver):
    """Compressive sampling matching pursuit (Needell, Tropp), for squared loss.

    Each step merges the support with the 2k columns of largest |gradient|, solves least squares on the merged
    columns and keeps the k largest coefficients, without fitting again unless `refit` is given. Columns that
    depend on others of the merged support are dropped by a relative test.

    Parameters
    ----------
    n_nonzero_coefs : int, optional
        k, the columns in the model. Default: a tenth of the columns, at most as many as rows.
    tol : float, optional
        Stop once the squared residual norm is at most this.
    rtol : float, optional
        As tol, relative to ||y||^2.
    max_iter : int
        Limit on steps. The run also stops when the iterates stand still, and when they repeat or blow up:
        then the best one is returned.
    refit : bool
        Fit the kept coefficients again after pruning (debiasing).
    ridge : float
        Penalty of (ridge / 2) ||w||^2 beside the mean loss, in the units of X, and never of the constant
        column of a design. It shrinks coefficients while columns are chosen and in the result.

    Examples
    --------
    >>> from skpursuit import CoSaMP, datasets, metrics, minimize
    >>> X, y, w = datasets.make_sparse_signal(200, 400, 5, snr=20.0, random_state=0)
    >>> metrics.f_measure(w, minimize(X, y, CoSaMP(n_nonzero_coefs=5)).coef)
    1.0
    """

    selects_many: ClassVar[bool] = True
    takes_sparsity: ClassVar[bool] = True
    supports_ridge: ClassVar[bool] = True
    squared_loss_only: ClassVar[bool] = True
    n_nonzero_coefs: int | None = None
    tol: float | None = None
    rtol: float | None = None
    max_iter: int = 100
    refit: bool = False
    ridge: float = 0.0

    def expected_queries(self, problem: Problem) -> tuple[int, int]:
        """A few iterations settle it; each visits 2k columns, many of them again."""
        steps = min(self.max_iter, 4)
        return steps, min(4 * self.sparsity(problem), problem.design.shape[1])

    def init(self, problem: Problem) -> State:
        if self.squared_loss_only and not problem.quadratic:
            raise ValueError("CoSaMP is least squares; use GraSP for other losses than squared")
        self._check_sparsity(problem)
        return stop_on_residual(problem, zero_state(problem), self.tol, self.rtol)

    def step(self, problem: Problem, state: State, select: SelectionOracle, rng: Generator) -> State:
        before = rng.bit_generator.state
        found = self._select(problem, state, select, rng)
        random = rng.bit_generator.state != before
        merged = np.union1d(state.support, found)
        if len(merged) == 0:  # no column is excluded, so the gradient is not finite
            return best_iterate(problem, state, Status.DIVERGED)
        key = support_hash(merged)
        seen = state.memory["seen"]
        if key in seen and not random:
            # What follows depends on the merged columns alone, so the iterates would repeat for ever.
            if key == seen[-1]:
                return replace(state, status=Status.STALLED)
            return best_iterate(problem, state, Status.CYCLING)
        after = fit_and_prune(problem, state, merged, self.sparsity(problem), self.refit)
        memory = {**state.memory, **after.memory, "seen": np.append(seen, key)}
        after = track_best(problem, state, replace(after, memory=memory))
        after = stop_on_residual(problem, after, self.tol, self.rtol) if after.status is None else after
        return stop_on_decrease(problem, state, after, self.tol)

    def fallback_state(self, problem: Problem, state: State) -> State:
        return best_iterate(problem, state, Status.DIVERGED)

    def _select(self, problem: Problem, state: State, select: SelectionOracle, rng: Generator) -> Indices:
        """The columns to merge: the top 2k, those of the support not excluded."""
        k = 2 * self.sparsity(problem)
        r = problem.residual(state.z)
        return select(Query(r, k, problem.score, rng=rng, state=state, ordered=False)).columns


@dataclass(frozen=True)
class GraSP(CoSaMP):
    """Gradient support pursuit: CoSaMP for any loss (Bahmani, Raj, Boufounos).

    Each step merges the support with the 2k columns of largest |gradient|, fits on the merged columns and
    keeps the k largest coefficients. With squared loss it is CoSaMP.

    Parameters
    ----------
    n_nonzero_coefs, max_iter, refit, ridge
        As in `CoSaMP`.
    tol, rtol : float, optional
        As in `CoSaMP` for squared loss. With others, stop once a step lowers the objective by at most this
        relative amount (tol alone).

    Examples
    --------
    >>> from skpursuit import GraSP, datasets, metrics, minimize
    >>> X, y, w = datasets.make_logistic_signal(2000, 50, 3, random_state=0)
    >>> metrics.f_measure(w, minimize(X, y, GraSP(n_nonzero_coefs=3), loss="logistic").coef)
    1.0
    """

    squared_loss_only: ClassVar[bool] = False


def zero_state(problem: Problem) -> State:
    """The zero model, which is the best one so far."""
    state = empty_state(problem, seen=np.empty(0, dtype=np.int64))
    start = {"start": np.array(state.objective)}
    return replace(state, memory={**state.memory, **best_iterate_memory(problem, state), **start})


def best_iterate_memory(problem: Problem, state: State) -> dict[str, np.ndarray]:
    """What is kept of the best iterate; its objective is that with the penalty."""
    objective = problem.penalized_objective(state)
    return {"best_support": state.support, "best_coef": state.coef, "best_objective": np.array(objective)}


def track_best(problem: Problem, before: State, after: State) -> State:
    """Remember the best iterate; go back to it when this one has blown up."""
    limit = DIVERGENCE_FACTOR * float(before.memory["start"])
    if not after.objective <= limit or not np.isfinite(after.coef).all():
        return best_iterate(problem, before, Status.DIVERGED)
    found = best_iterate_memory(problem, after)
    if found["best_objective"] < float(before.memory["best_objective"]):
        return replace(after, memory={**after.memory, **found})
    return after


def best_iterate(problem: Problem, state: State, status: Status) -> State:
    """The best iterate so far, as the last one."""
    support, coef = state.memory["best_support"], state.memory["best_coef"]
    z = problem.design.predict(support, coef)
    dropped = np.setdiff1d(state.dropped, support)
    return State(support, coef, z, problem.value(z), dropped, state.memory, status)


def support_hash(columns: Indices) -> int:
    """A 64-bit name for a set of columns."""
    name = hashlib.blake2b(columns.astype(np.int64).tobytes(), digest_size=8).digest()
    return int(np.frombuffer(name, dtype=np.int64)[0])
