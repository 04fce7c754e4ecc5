"""Fits on a merged support: the old columns and many new ones at once, most of which will be pruned.

Least squares goes by normal equations, whose Gram matrix keeps the entries of columns that were merged
before. Other losses go by Newton. Both first look for columns that depend on others. A Cholesky factor of the
Gram matrix tells cheaply, to half the digits, which are surely independent; the few others are projected, and
judged by the rule of `numerics/remainder.py`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from skpursuit.fit.least_squares import add_least_squares, start_least_squares
from skpursuit.fit.newton import Newton
from skpursuit.numerics.arrays import Floats, Indices
from skpursuit.numerics.remainder import NORMAL_EQUATIONS, remainder_unit
from skpursuit.numerics.scaling import LEAST_NORM, MOST_NORM
from skpursuit.numerics.sums import row_norms
from skpursuit.numerics.tuning import SCRATCH_NUMBERS
from skpursuit.problem.problem import Problem
from skpursuit.problem.state import State

DOUBT = 1e-8  # squared share of a unit column left over by the others, below which its Gram entry is noise
SHARP = 1e-2  # above which plain normal equations lose no digits worth a refinement


@dataclass(frozen=True)
class GatheredColumns:
    """The gathered columns of a merged support in parts (positions, rows), not copied together."""

    parts: tuple[tuple[Indices, Floats], ...]

    def combined(self, coef: Floats) -> Floats:
        """X_T b."""
        return np.sum([(coef[at].T @ rows).T for at, rows in self.parts], axis=0)

    def correlated(self, r: Floats) -> Floats:
        """X_T^T r."""
        out = np.empty((sum(len(at) for at, _ in self.parts), *r.shape[1:]))
        for at, rows in self.parts:
            out[at] = rows @ r
        return out


@dataclass(frozen=True)
class MergedFit:
    """Coefficients on a merged support, zero where a column was dropped, and what the next fit can reuse."""

    columns: GatheredColumns
    coef: Floats
    dropped: Indices
    memory: Mapping[str, Any]


class NormalEquations:
    """Solve (X_T^T X_T + penalty) b = X_T^T y by Cholesky; columns that depend on earlier ones are dropped.

    Memory of the state: `merged` (the columns T), `gram` (their Gram matrix) and `moments` (X_T^T y). Entries
    of columns that were merged before are copied, so that an iteration pays for its new columns only.
    """

    def fit(self, problem: Problem, merged: Indices, state: State) -> MergedFit:
        """Fit on the columns `merged`, which ascend."""
        before = np.asarray(state.memory.get("merged", merged[:0]))
        _, at, was = np.intersect1d(merged, before, assume_unique=True, return_indices=True)
        new = np.setdiff1d(np.arange(len(merged)), at, assume_unique=True)
        design = problem.design
        room = scratch(len(merged), design.shape[0])
        old = design.columns(merged[at], None if room is None else room[: len(at)])
        fresh = design.columns(merged[new], None if room is None else room[len(at) :])
        gram = np.empty((len(merged), len(merged)))
        moments = np.empty((len(merged), *problem.targets))
        if len(at):
            gram[np.ix_(at, at)] = np.asarray(state.memory["gram"])[np.ix_(was, was)]
            moments[at] = np.asarray(state.memory["moments"])[was]
        with np.errstate(over="ignore", invalid="ignore"):  # `solve` looks at the sizes
            gram[np.ix_(new, new)] = fresh @ fresh.T  # one array twice: BLAS does half the work
            gram[np.ix_(new, at)] = fresh @ old.T
            gram[np.ix_(at, new)] = gram[np.ix_(new, at)].T
            moments[new] = fresh @ problem.y
            columns = GatheredColumns(((at, old), (new, fresh)))
            coef, dropped = solve(problem, merged, columns, gram, moments)
        return MergedFit(columns, coef, dropped, {"merged": merged, "gram": gram, "moments": moments})

    def again(self, problem: Problem, fit: MergedFit, keep: Indices) -> Floats:
        """Coefficients fitted on some of the merged columns only (positions), from the same products."""
        gram, moments = fit.memory["gram"][np.ix_(keep, keep)], fit.memory["moments"][keep]
        merged = fit.memory["merged"][keep]
        columns = GatheredColumns(((np.arange(len(keep)), problem.design.columns(merged)),))
        return solve(problem, merged, columns, gram, moments)[0]


class NewtonMerged:
    """Minimise any loss on a merged support by Newton, from the coefficients of the last iterate."""

    def fit(self, problem: Problem, merged: Indices, state: State) -> MergedFit:
        """Fit on the columns `merged`, which ascend."""
        A = problem.design.columns(merged)
        weighted, floor = A, problem.design.noise_floor(merged)
        if problem.weights is not None:
            root = np.sqrt(problem.weights)
            weighted, floor = A * root, floor * root.max()
        sizes = row_norms(weighted)
        alive = np.flatnonzero(sizes > floor)
        unit = weighted[alive] / sizes[alive, None]
        keep, near = sort_out(unit @ unit.T, lambda some: unit[some])[:2]
        keep = alive[np.sort(np.concatenate([keep, near]))]
        start = np.zeros((len(merged), *problem.targets))
        start[np.searchsorted(merged, state.support)] = state.coef
        coef = np.zeros_like(start)
        coef[keep] = Newton().fit(problem, merged[keep], A[keep], start[keep])[0]
        columns = GatheredColumns(((np.arange(len(merged)), A),))
        return MergedFit(columns, coef, np.delete(merged, keep), {"merged": merged})

    def again(self, problem: Problem, fit: MergedFit, keep: Indices) -> Floats:
        """Coefficients fitted on some of the merged columns only (positions)."""
        columns = fit.memory["merged"][keep]
        return Newton().fit(problem, columns, problem.design.columns(columns), fit.coef[keep])[0]


_mine = threading.local()


def scratch(rows: int, n: int) -> Floats | None:
    """Memory of this thread for columns that one step alone looks at; none where keeping it would be much."""
    if rows * n > SCRATCH_NUMBERS:
        return None
    held = getattr(_mine, "held", None)
    if held is None or held.shape[1] != n or len(held) < rows:
        held = _mine.held = np.empty((rows, n))
    return held


def solve(
    problem: Problem, merged: Indices, columns: GatheredColumns, gram: Floats, moments: Floats
) -> tuple[Floats, Indices]:
    """Coefficients of the merged columns, and the columns that were dropped."""
    sizes = np.sqrt(np.diag(gram))
    fits = sizes.min() > LEAST_NORM and sizes.max() < MOST_NORM
    if not (fits and (sizes > problem.design.noise_floor(merged)).all()):
        return careful(problem, merged)
    scaled = gram / np.multiply.outer(sizes, sizes)
    keep, near, doubtful, factor = sort_out(scaled, lambda some: problem.design.columns(merged[some]), sizes)
    if len(near):
        return careful(problem, merged)
    coef, penalty = np.zeros(moments.shape), problem.penalties(merged[keep])
    if problem.penalty:
        factor = np.linalg.cholesky(scaled[np.ix_(keep, keep)] + np.diag(penalty / sizes[keep] ** 2))
    size = sizes[keep].reshape(-1, *[1] * len(problem.targets))
    coef[keep] = both_triangles(factor, moments[keep] / size) / size
    # Columns that depend on others often span y: then only a refined fit is recognised as exact.
    if len(doubtful) or np.diag(factor).min() ** 2 < SHARP:
        rest = columns.correlated(problem.y - columns.combined(coef))[keep] - (penalty * coef[keep].T).T
        coef[keep] += both_triangles(factor, rest / size) / size
    return coef, merged[doubtful]


def sort_out(
    scaled: Floats, gather: Callable[[Indices], Floats], sizes: Floats | None = None
) -> tuple[Indices, Indices, Indices, Floats]:
    """Which columns depend on others, from the Gram matrix of the columns divided by their sizes.

    `gather` gives the columns at some positions, which have yet to be divided by `sizes`, if those are given.
    Returns the columns that are independent beyond doubt; of the others those that are further from a
    combination of them than rounding; all others; and the Cholesky factor of the first.
    """
    keep, factor = independent(scaled)
    doubtful = np.setdiff1d(np.arange(len(scaled)), keep, assume_unique=True)
    near = doubtful
    if len(doubtful):
        kept = np.ones(len(keep)) if sizes is None else sizes[keep]
        near = doubtful[~dependent(gather(doubtful), gather(keep), factor, kept)]
    return keep, near, doubtful, factor


def independent(scaled: Floats) -> tuple[Indices, Floats]:
    """The first columns that do not depend on earlier ones, and the Cholesky factor of their Gram matrix."""
    try:
        factor = np.linalg.cholesky(scaled)
        if np.diag(factor).min(initial=1.0) ** 2 > DOUBT:
            return np.arange(len(scaled)), factor
    except np.linalg.LinAlgError:
        pass
    return skipping_cholesky(scaled)


def skipping_cholesky(scaled: Floats) -> tuple[Indices, Floats]:
    """Cholesky row by row, leaving out rows whose pivot is only rounding."""
    from scipy.linalg import solve_triangular

    keep: list[int] = []
    factor = np.zeros_like(scaled)
    for j in range(len(scaled)):
        k = len(keep)
        row = solve_triangular(factor[:k, :k], scaled[keep, j], lower=True, check_finite=False)
        pivot = scaled[j, j] - row @ row
        if pivot > DOUBT:
            factor[k, :k], factor[k, k] = row, np.sqrt(pivot)
            keep.append(j)
    k = len(keep)
    return np.array(keep, dtype=np.intp), factor[:k, :k]


def dependent(doubtful: Floats, kept: Floats, factor: Floats, sizes: Floats) -> np.ndarray:
    """Whether each doubtful column is a combination of the kept ones, by its remainder after projection."""
    rest = doubtful
    for _ in range(3):
        share = both_triangles(factor, (kept @ rest.T) / sizes[:, None]) / sizes[:, None]
        rest = rest - share.T @ kept
    tiny = NORMAL_EQUATIONS * remainder_unit(kept.shape[1])
    return np.linalg.norm(rest, axis=1) <= tiny * np.linalg.norm(doubtful, axis=1)


def careful(problem: Problem, merged: Indices) -> tuple[Floats, Indices]:
    """Grow an orthogonal factorisation column by column: slower, for what normal equations cannot resolve."""
    state = start_least_squares(problem)
    for j in merged.tolist():
        state = add_least_squares(problem, state, j)
    coef = np.zeros((len(merged), *problem.targets))
    coef[np.searchsorted(merged, state.support)] = state.coef
    return coef, state.dropped


def both_triangles(factor: Floats, b: Floats) -> Floats:
    """Solve L L^T x = b."""
    from scipy.linalg import cho_solve

    return cho_solve((factor, True), b, check_finite=False)
