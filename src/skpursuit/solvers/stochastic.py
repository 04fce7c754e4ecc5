"""The stochastic rivals of the paper: StoIHT and StoGradMP (Nguyen, Needell, Woolf).

A step looks at a few random rows only: the residual is set to zero on all others, and X^T r then reads those
rows alone. Selectors need to know nothing of this.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from skpursuit.numerics.arrays import Floats, Indices
from skpursuit.problem.problem import Problem
from skpursuit.problem.scores import top_k
from skpursuit.problem.state import State, Status
from skpursuit.selectors.base import SelectionOracle
from skpursuit.selectors.query import Query
from skpursuit.solvers.base import Solver, stop_on_residual
from skpursuit.solvers.cosamp import GraSP, best_iterate, track_best, zero_state


@dataclass(frozen=True)
class StoGradMP(GraSP):
    """Stochastic gradient matching pursuit: GraSP whose 2k columns come from the gradient of a few rows.

    Each step draws `batch_size` rows B without replacement, merges the support with the top 2k of
    |X_B^T r_B|, minimises the full objective on the merged columns and keeps the k largest coefficients.

    Parameters
    ----------
    n_nonzero_coefs, tol, rtol, max_iter, refit, ridge
        As in `GraSP`.
    batch_size : int, optional
        Rows in B. Default: k. 1 is the method of the paper's experiments, and needs far more steps.
    """

    batch_size: int | None = None

    def _select(self, problem: Problem, state: State, select: SelectionOracle, rng: Generator) -> Indices:
        r = batch_residual(problem, state, self.batch_size or self.sparsity(problem), rng)
        return select(Query(r, 2 * self.sparsity(problem), problem.score, rng=rng, ordered=False)).columns

    def expected_queries(self, problem: Problem) -> tuple[int, int]:
        return batch_queries(problem, self.max_iter, self.batch_size or self.sparsity(problem))


@dataclass(frozen=True)
class StoIHT(Solver):
    """Stochastic iterative hard thresholding: w <- H_k(w - step (n / b) X_B^T r_B).

    Each step draws b = `batch_size` rows B without replacement; H_k keeps the k largest entries.

    Parameters
    ----------
    n_nonzero_coefs : int, optional
        k. Default: a tenth of the columns, at most as many as rows.
    tol, rtol : float, optional
        Stop once the squared residual norm is at most tol, or rtol ||y||^2. Squared loss only: the objective
        of a stochastic run is too rough for a relative test, so with other losses `max_iter` stops it.
    max_iter : int
        Limit on steps.
    batch_size : int, optional
        b. Default: k.
    step_size : float, optional
        The step gamma. Default: b / n, for columns of unit norm.
    """

    takes_sparsity: ClassVar[bool] = True
    n_nonzero_coefs: int | None = None
    tol: float | None = None
    rtol: float | None = None
    max_iter: int = 1000
    batch_size: int | None = None
    step_size: float | None = None

    def expected_queries(self, problem: Problem) -> tuple[int, int]:
        return batch_queries(problem, self.max_iter, self.batch_size or self.sparsity(problem))

    def init(self, problem: Problem) -> State:
        self._check_sparsity(problem)
        return stop_on_residual(problem, zero_state(problem), self.tol, self.rtol)

    def fallback_state(self, problem: Problem, state: State) -> State:
        return best_iterate(problem, state, Status.DIVERGED)

    def step(self, problem: Problem, state: State, select: SelectionOracle, rng: Generator) -> State:
        k, n = self.sparsity(problem), problem.design.shape[0]
        b = min(self.batch_size or k, n)
        r = batch_residual(problem, state, b, rng)
        # Entries off the support are the gradient's alone, so the k largest of them are all H_k can keep.
        found = select(Query(r, k, problem.score, state.support, rng, ordered=False)).columns
        columns = np.concatenate([state.support, found])
        w = np.zeros((len(columns), *problem.target_shape))
        w[: len(state.support)] = state.coef
        step = (b / n if self.step_size is None else self.step_size) * n / b
        rows = np.flatnonzero(r if r.ndim == 1 else r.any(axis=1))
        w -= step * (problem.design.columns(columns)[:, rows] @ r[rows])
        order = np.argsort(columns)
        keep = np.sort(order[top_k(problem.score.of(w[order]), k)])
        keep = keep[problem.score.of(w[keep]) > 0]
        z = problem.design.predict(columns[keep], w[keep])
        after = replace(state, support=columns[keep], coef=w[keep], z=z, objective=problem.value(z))
        after = track_best(problem, state, after)
        return after if after.status else stop_on_residual(problem, after, self.tol, self.rtol)


def batch_residual(problem: Problem, state: State, b: int, rng: Generator) -> Floats:
    """The residual on b random rows, zero on the others: what X^T r then needs is those rows of X."""
    n = problem.design.shape[0]
    rows = rng.choice(n, size=min(b, n), replace=False)
    r = np.zeros((n, *problem.target_shape))
    r[rows] = problem.residual(state.z)[rows]
    return r


def batch_queries(problem: Problem, steps: int, b: int) -> tuple[int, int]:
    """Selections, in full readings of X, and all columns: a batch is cheap and unlike the last one."""
    n, d = problem.design.shape
    return max(1, steps * min(b, n) // n), d
