"""Fits on a merged support: the old columns and many new ones at once, most of which will be pruned.

Least squares goes by normal equations, whose Gram matrix keeps the entries of columns that were merged
before. Other losses go by Newton. Both first look for columns that depend on others. A Cholesky factor of the
Gram matrix tells cheaply, to half the digits, which are surely independent; the few others are projected, and
judged by the rule of `numerics/rank_tolerance.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from skpursuit.data.design import Design
from skpursuit.fit.least_squares import add_least_squares, start_least_squares
from skpursuit.fit.newton import Newton
from skpursuit.fit.newton_loop import both_triangles, weighted_gram
from skpursuit.numerics.arrays import Floats, Indices
from skpursuit.numerics.rank_tolerance import GRAM_TOLERANCE_FACTOR, rank_tolerance
from skpursuit.numerics.row_buffer import empty_in_temp_file
from skpursuit.numerics.sums import safe_norms_per_row
from skpursuit.problem.problem import Problem
from skpursuit.problem.state import State

MIN_GRAM_PIVOT = (
    1e-8  # squared share of a unit column left over by the others, below which its Gram entry is noise
)
NO_REFINEMENT_PIVOT = 1e-2  # above which plain normal equations lose no digits worth a refinement


@dataclass(frozen=True)
class MergedFit:
    """Coefficients on a merged support, zero where a column was dropped, and what the next fit can reuse.

    Rows of `columns` are the merged columns at the positions `order`. A fit that comes with predictions z,
    which are those of its k largest coefficients, has zeros for the others.
    """

    columns: Floats
    order: Indices
    coef: Floats
    dropped: Indices
    memory: Mapping[str, Any]
    z: Floats | None = None


class MergedLeastSquares:
    """Solve (X_T^T X_T + penalty) b = X_T^T y by Cholesky; columns that depend on earlier ones are dropped.

    Memory of the state: `merged` (the columns T), `gram` (their Gram matrix) and `moments` (X_T^T y). Entries
    of columns that were merged before are copied, so that an iteration pays for its new columns only.
    """

    def fit(self, problem: Problem, merged: Indices, state: State, k: int) -> MergedFit:
        """Fit on the columns `merged`, which ascend; k coefficients are to be kept."""
        before = np.asarray(state.memory.get("merged", merged[:0]))
        _, at, was = np.intersect1d(merged, before, assume_unique=True, return_indices=True)
        new = np.setdiff1d(np.arange(len(merged)), at, assume_unique=True)
        order = np.concatenate([at, new])
        columns = gathered(problem.design, merged[order])
        gram = np.empty((len(merged), len(merged)))
        moments = np.empty((len(merged), *problem.target_shape))
        if len(at):
            gram[np.ix_(at, at)] = np.asarray(state.memory["gram"])[np.ix_(was, was)]
            moments[at] = np.asarray(state.memory["moments"])[was]
        old, fresh = columns[: len(at)], columns[len(at) :]
        gram[np.ix_(new, new)] = fresh @ fresh.T  # of one array twice BLAS does half the work
        gram[np.ix_(new, at)], moments[new] = fresh @ old.T, fresh @ problem.y
        gram[np.ix_(at, new)] = gram[np.ix_(new, at)].T
        memory = {"merged": merged, "gram": gram, "moments": moments}
        return MergedFit(columns, order, *solve_merged(problem, memory, columns, order), memory)

    def fit_subset(self, problem: Problem, fit: MergedFit, keep: Indices) -> tuple[Floats, Floats | None]:
        """Coefficients fitted on some of the merged columns only (positions), from the same products."""
        memory = {name: fit.memory[name][keep] for name in ("merged", "moments")}
        memory["gram"] = fit.memory["gram"][np.ix_(keep, keep)]
        columns = fit.columns[np.argsort(fit.order)[keep]]
        return solve_merged(problem, memory, columns, np.arange(len(keep)))[0], None


def gathered(design: Design, cols: Indices) -> Floats:
    """Columns as the rows of an array, which is in a file where it is beyond the design's memory limit."""
    n, room = design.shape[0], design.limit.columns
    if 8 * n * len(cols) <= room:
        return design.columns(cols)
    lines, step = empty_in_temp_file((len(cols), n), np.dtype(np.float64)), max(1, int(room // (8 * n)))
    for start in range(0, len(cols), step):
        lines[start : start + step] = design.columns(cols[start : start + step], cache=False)
    return lines


class MergedNewton:
    """Minimise any loss on a merged support by Newton, from the coefficients of the last iterate."""

    def fit(self, problem: Problem, merged: Indices, state: State, k: int) -> MergedFit:
        """Fit on the columns `merged`, which ascend, and keep k coefficients."""
        A, weights = gathered(problem.design, merged), problem.weights
        gram = weighted_gram(A, weights)
        sizes, floor = np.sqrt(np.diag(gram)), problem.design.noise_floor(merged)
        floor = floor * np.sqrt(problem.row_weights.max())
        alive = np.flatnonzero(sizes > floor)
        scaled = gram[np.ix_(alive, alive)] / np.multiply.outer(sizes[alive], sizes[alive])
        keep, near = classify_dependence(scaled, lambda some: A[alive[some]], sizes[alive], weights)[:2]
        keep = alive[np.sort(np.concatenate([keep, near]))]
        start = np.zeros((len(merged), *problem.target_shape))
        start[np.searchsorted(merged, state.support)] = state.coef
        coef, kept = np.zeros_like(start), A if len(keep) == len(A) else A[keep]
        coef[keep], z, _ = Newton().fit(problem, merged[keep], kept, start[keep], most=k)
        dropped, memory = np.delete(merged, keep), {"merged": merged}
        return MergedFit(A, np.arange(len(merged)), coef, dropped, memory, z)

    def fit_subset(self, problem: Problem, fit: MergedFit, keep: Indices) -> tuple[Floats, Floats | None]:
        """Coefficients fitted on some of the merged columns only (positions), and their predictions."""
        columns, start, z = fit.memory["merged"][keep], fit.coef[keep], fit.z
        assert z is not None  # Newton gives them
        zero = np.zeros_like(z)
        with np.errstate(over="ignore", invalid="ignore"):
            if not problem.value(z) < problem.value(zero):  # what was pruned held the others in balance
                start, z = np.zeros_like(start), zero
        return Newton().fit(problem, columns, fit.columns[keep], start, z)[:2]


def solve_merged(
    problem: Problem, memory: Mapping[str, Any], columns: Floats, order: Indices
) -> tuple[Floats, Indices]:
    """Coefficients of the merged columns, whose order in `columns` is told, and those that were dropped."""
    merged, gram, moments = memory["merged"], memory["gram"], memory["moments"]
    place = np.argsort(order)
    sizes = np.sqrt(np.diag(gram))
    if not (sizes > problem.design.noise_floor(merged)).all():
        return solve_by_gram_schmidt(problem, merged)
    scaled = gram / np.multiply.outer(sizes, sizes)
    keep, near, doubtful, factor = classify_dependence(scaled, lambda some: columns[place[some]], sizes)
    if len(near):
        return solve_by_gram_schmidt(problem, merged)
    coef, penalty = np.zeros(moments.shape), problem.penalties(merged[keep])
    if problem.penalty:
        factor = np.linalg.cholesky(scaled[np.ix_(keep, keep)] + np.diag(penalty / sizes[keep] ** 2))
    size = sizes[keep].reshape(-1, *[1] * len(problem.target_shape))
    coef[keep] = both_triangles(factor, moments[keep] / size) / size
    # Columns that depend on others often span y: then only a refined fit is recognised as exact.
    if len(doubtful) or np.diag(factor).min() ** 2 < NO_REFINEMENT_PIVOT:
        rest = (columns @ (problem.y - (coef[order].T @ columns).T))[place[keep]]
        rest -= (penalty * coef[keep].T).T
        coef[keep] += both_triangles(factor, rest / size) / size
    return coef, merged[doubtful]


def classify_dependence(
    scaled: Floats, gather: Callable[[Indices], Floats], sizes: Floats, weights: Floats | None = None
) -> tuple[Indices, Indices, Indices, Floats]:
    """Which columns depend on others, from the weighted Gram matrix of the columns divided by their sizes.

    `gather` gives the columns at some positions, which have yet to be divided by `sizes`. Returns the columns
    that are independent beyond doubt; of the others those that are further from a combination of them than
    rounding; all others; and the Cholesky factor of the first.
    """
    keep, factor = independent(scaled)
    doubtful = np.setdiff1d(np.arange(len(scaled)), keep, assume_unique=True)
    near = doubtful
    if len(doubtful):
        near = doubtful[~dependent(gather(doubtful), gather(keep), factor, sizes[keep], weights)]
    return keep, near, doubtful, factor


def independent(scaled: Floats) -> tuple[Indices, Floats]:
    """The first columns that do not depend on earlier ones, and the Cholesky factor of their Gram matrix."""
    try:
        factor = np.linalg.cholesky(scaled)
        if np.diag(factor).min(initial=1.0) ** 2 > MIN_GRAM_PIVOT:
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
        if pivot > MIN_GRAM_PIVOT:
            factor[k, :k], factor[k, k] = row, np.sqrt(pivot)
            keep.append(j)
    k = len(keep)
    return np.array(keep, dtype=np.intp), factor[:k, :k]


def dependent(
    doubtful: Floats, kept: Floats, factor: Floats, sizes: Floats, weights: Floats | None
) -> np.ndarray:
    """Whether each doubtful column is a combination of the kept ones, by its remainder after projection."""
    rest, weights = doubtful, np.ones(doubtful.shape[1]) if weights is None else weights
    for _ in range(3):
        share = both_triangles(factor, kept @ (rest * weights).T / sizes[:, None]) / sizes[:, None]
        rest = rest - share.T @ kept
    tiny, root = GRAM_TOLERANCE_FACTOR * rank_tolerance(doubtful.shape[1]), np.sqrt(weights)
    return safe_norms_per_row(rest * root) <= tiny * safe_norms_per_row(doubtful * root)


def solve_by_gram_schmidt(problem: Problem, merged: Indices) -> tuple[Floats, Indices]:
    """Grow an orthogonal factorisation column by column: slower, for what normal equations cannot resolve."""
    state = start_least_squares(problem)
    for j in merged.tolist():
        state = add_least_squares(problem, state, j)
    coef = np.zeros((len(merged), *problem.target_shape))
    coef[np.searchsorted(merged, state.support)] = state.coef
    return coef, state.dropped
