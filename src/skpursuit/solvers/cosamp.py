"""Merge, fit, prune: CoSaMP for squared loss and GraSP for any, and the stochastic rivals of the paper.

Each step merges the support with the 2k most promising columns, fits all of them and keeps the k largest
coefficients. Nothing forces the objective down, so the state remembers the best iterate, to which a run goes
back when it blows up, and the merged sets it has seen: a step depends on its merged set alone, so one that
comes again means that the iterates repeat for ever.

A step of StoGradMP and StoIHT (Nguyen, Needell, Woolf) looks at a few random rows only: the residual is set
to zero on all others, and X^T r then reads those rows alone. Selectors need to know nothing of this.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator

from skpursuit.fit.merged import Pruning, fit_and_prune
from skpursuit.numerics.arrays import NO_COLUMNS, Floats, Indices
from skpursuit.problem.problem import Problem
from skpursuit.problem.scores import top_k
from skpursuit.problem.state import State, Status, empty_state
from skpursuit.selectors.base import SelectionOracle
from skpursuit.selectors.query import Query
from skpursuit.solvers.base import SparseSolver, stop_on_decrease, stop_on_residual

DIVERGENCE_FACTOR = 100.0  # times the objective of the zero model: what no useful iterate reaches


@dataclass(frozen=True)
class MergingSolver(SparseSolver):
    """What CoSaMP, GraSP and subspace pursuit share: new columns are merged, all are fitted, k stay."""

    selects_many: ClassVar[bool] = True
    supports_ridge: ClassVar[bool] = True
    supports_forced: ClassVar[bool] = True
    squared_loss_only: ClassVar[bool] = True
    merged_share: ClassVar[int] = 2  # new columns of a step, as a multiple of k
    max_iter: int = 100
    ridge: float = 0.0
    prune: str = "size"
    feature_groups: Any = None
    exclude: Sequence[int | str] = ()
    always_include: Sequence[int | str] = ()
    positive: bool = False

    def expected_queries(self, problem: Problem) -> tuple[int, int]:
        """A few iterations settle it; each visits its columns, many of them again."""
        share = min(1.0, 2 * self.merged_share * self.sparsity(problem) / self.n_candidates(problem.design))
        return min(self.max_iter, 4), ceil(share * problem.design.shape[1])

    def init(self, problem: Problem) -> State:
        """The fit of the columns that are always included."""
        if self.squared_loss_only and not problem.quadratic:
            name = type(self).__name__
            raise ValueError(f"{name} is least squares; use GraSP for other losses than squared")
        if self.positive and (not problem.quadratic or problem.target_shape):
            raise ValueError("positive=True needs squared loss and one target")
        if self.positive and (self.groups is not None or self.prune == "gain"):
            raise ValueError("positive=True needs prune='size' and no feature_groups")
        self._check_sparsity(problem)
        state = empty_state(problem)
        if len(self.included):
            state = self._pruned(problem, state, np.sort(self.included), refit=False)
            if self.n_included == self.sparsity(problem):
                state = replace(state, status=Status.COMPLETE)
        return stop_on_residual(problem, state, self.tol, self.rtol)

    def _query(self, problem: Problem, r: Floats, taken: Indices, rng: Generator, at: State | None) -> Query:
        """The question for the columns to merge, without those that are `taken`; r is the residual `at`."""
        count = self.merged_share * (self.sparsity(problem) - self.n_included)
        gone = self.closed(np.union1d(taken, self.included))
        return Query(r, count, self.column_score(problem), gone, rng, state=at, ordered=False)

    def _pruned(self, problem: Problem, state: State, merged: Indices, refit: bool) -> State:
        """The best model with some of the merged columns."""
        rules = Pruning(self.sparsity(problem), refit, self.prune, self.groups, self.included, self.positive)
        return fit_and_prune(problem, state, merged, rules)

    def _merged(self, state: State, found: Indices) -> Indices:
        return np.unique(np.concatenate([state.support, self.included, found]))


@dataclass(frozen=True)
class CoSaMP(MergingSolver):
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
    prune : {"size", "gain"}
        Keep the largest coefficients, or those without which the loss would rise most: w_j^2 / (G^-1)_jj,
        with G the second derivatives on the merged columns. Size is the better rule where columns near each
        other are alike, gain among near copies.
    feature_groups, exclude, always_include
        As in `OMP`. The groups that stay have the largest mean square of coefficients, or lose most; columns
        that are always included are fitted with all others and never pruned.
    positive : bool
        Coefficients >= 0, by non-negative least squares on the merged columns: those of the most negative
        gradients. Squared loss, one target, ``prune="size"``.

    Examples
    --------
    >>> from skpursuit import CoSaMP, datasets, metrics, minimize
    >>> X, y, w = datasets.make_sparse_signal(200, 400, 5, snr=20.0, random_state=0)
    >>> metrics.f_measure(w, minimize(X, y, CoSaMP(n_nonzero_coefs=5)).coef)
    1.0
    """

    refit: bool = False

    def init(self, problem: Problem) -> State:
        return remembering(problem, super().init(problem))

    def step(self, problem: Problem, state: State, select: SelectionOracle, rng: Generator) -> State:
        before = rng.bit_generator.state
        found = self._select(problem, state, select, rng)
        random = rng.bit_generator.state != before
        merged = self._merged(state, found)
        if len(merged) == 0:  # all columns are excluded, or the gradient is not finite
            return best_iterate(problem, state, Status.OPTIMAL if len(self.exclude) else Status.DIVERGED)
        digest = hashlib.blake2b(merged.astype(np.int64).tobytes(), digest_size=8).digest()
        key = int(np.frombuffer(digest, dtype=np.int64)[0])  # a name for the set
        seen = state.memory["seen"]
        if key in seen and not random:
            # What follows depends on the merged columns alone, so the iterates would repeat for ever.
            if key == seen[-1]:
                return replace(state, status=Status.STALLED)
            return best_iterate(problem, state, Status.CYCLING)
        after = self._pruned(problem, state, merged, self.refit)
        memory = {**state.memory, **after.memory, "seen": np.append(seen, key)}
        after = track_best(problem, state, replace(after, memory=memory))
        after = stop_on_residual(problem, after, self.tol, self.rtol) if after.status is None else after
        return stop_on_decrease(problem, state, after, self.tol)

    def fallback_state(self, problem: Problem, state: State) -> State:
        return best_iterate(problem, state, Status.DIVERGED)

    def _select(self, problem: Problem, state: State, select: SelectionOracle, rng: Generator) -> Indices:
        """The columns to merge: the top 2k, those of the support not excluded."""
        return select(self._query(problem, problem.residual(state.z), NO_COLUMNS, rng, state)).columns


@dataclass(frozen=True)
class GraSP(CoSaMP):
    """Gradient support pursuit: CoSaMP for any loss (Bahmani, Raj, Boufounos).

    Each step merges the support with the 2k columns of largest |gradient|, fits on the merged columns and
    keeps the k largest coefficients. With squared loss it is CoSaMP.

    Parameters
    ----------
    n_nonzero_coefs, max_iter, refit, ridge, prune, feature_groups, exclude, always_include, positive
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


@dataclass(frozen=True)
class StoGradMP(GraSP):
    """Stochastic gradient matching pursuit: GraSP whose 2k columns come from the gradient of a few rows.

    Each step draws `batch_size` rows B without replacement, merges the support with the top 2k of
    |X_B^T r_B|, minimises the full objective on the merged columns and keeps the k largest coefficients.

    Parameters
    ----------
    n_nonzero_coefs, tol, rtol, max_iter, refit, ridge, prune
        As in `GraSP`.
    feature_groups, exclude, always_include, positive
        As in `GraSP`.
    batch_size : int, optional
        Rows in B. Default: k. 1 is the method of the paper's experiments, and needs far more steps.
    """

    batch_size: int | None = None

    def _select(self, problem: Problem, state: State, select: SelectionOracle, rng: Generator) -> Indices:
        r = batch_residual(problem, state, self.batch_size or self.sparsity(problem), rng)
        return select(self._query(problem, r, NO_COLUMNS, rng, None)).columns

    def expected_queries(self, problem: Problem) -> tuple[int, int]:
        return batch_queries(problem, self.max_iter, self.batch_size or self.sparsity(problem))


@dataclass(frozen=True)
class StoIHT(SparseSolver):
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

    max_iter: int = 1000
    batch_size: int | None = None
    step_size: float | None = None

    def expected_queries(self, problem: Problem) -> tuple[int, int]:
        return batch_queries(problem, self.max_iter, self.batch_size or self.sparsity(problem))

    def init(self, problem: Problem) -> State:
        self._check_sparsity(problem)
        return stop_on_residual(problem, remembering(problem, empty_state(problem)), self.tol, self.rtol)

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


def remembering(problem: Problem, state: State) -> State:
    """A first state as the best one so far."""
    start = np.array(problem.value(np.zeros_like(state.z)))
    memory = {**state.memory, "seen": np.empty(0, dtype=np.int64), "start": start}
    return replace(state, memory=memory | best_iterate_memory(problem, state))


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
