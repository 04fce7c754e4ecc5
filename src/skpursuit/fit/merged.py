"""Fits on a merged support: the old columns and many new ones at once, most of which will be pruned.

Least squares goes by normal equations, whose Gram matrix keeps the entries of columns that were merged
before. Other losses go by Newton. Both first look for columns that depend on others: a Cholesky factor of the
Gram matrix tells cheaply, to half the digits, that there is none. Where it does not, the columns are split by
Gram-Schmidt one after the other, and those that depend on earlier ones are dropped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from skpursuit.data.design import Design
from skpursuit.fit.gram_schmidt import QRFactor
from skpursuit.fit.growing import solve_factor, start_factor
from skpursuit.fit.newton import both_triangles, fit_support, try_cholesky, weighted_gram
from skpursuit.numerics.arrays import Floats, Indices
from skpursuit.numerics.row_buffer import empty_in_temp_file
from skpursuit.problem.problem import Problem
from skpursuit.problem.state import State

MIN_GRAM_PIVOT = 1e-8  # squared share of a unit column left by the others, below which it may be rounding
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
        A, design = gathered(problem.design, merged), problem.design
        floor = design.noise_floor(merged) * np.sqrt(problem.row_weights.max())
        keep = np.arange(len(merged))
        if scaled_cholesky(weighted_gram(A, problem.weights), floor)[2] is None:
            keep = grow_independent(problem, merged)[1]
        start = np.zeros((len(merged), *problem.target_shape))
        start[np.searchsorted(merged, state.support)] = state.coef
        coef, kept = np.zeros_like(start), A if len(keep) == len(A) else A[keep]
        coef[keep], z, _ = fit_support(problem, merged[keep], kept, start[keep], most=k)
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
        return fit_support(problem, columns, fit.columns[keep], start, z)[:2]


def solve_merged(
    problem: Problem, memory: Mapping[str, Any], columns: Floats, order: Indices
) -> tuple[Floats, Indices]:
    """Coefficients of the merged columns, of which `columns` has those at `order`; and columns dropped."""
    merged, gram, moments = memory["merged"], memory["gram"], memory["moments"]
    sizes, scaled, factor = scaled_cholesky(gram, problem.design.noise_floor(merged))
    if factor is None:
        rows, keep = grow_independent(problem, merged)
        coef = np.zeros(moments.shape)
        coef[keep] = solve_factor(rows)
        return coef, np.delete(merged, keep)
    penalty = problem.penalties(merged)
    if problem.penalty:
        factor = np.linalg.cholesky(scaled + np.diag(penalty / sizes**2))
    size = sizes.reshape(-1, *[1] * len(problem.target_shape))
    coef = both_triangles(factor, moments / size) / size
    if np.diag(factor).min() ** 2 < NO_REFINEMENT_PIVOT:
        rest = (columns @ (problem.y - (coef[order].T @ columns).T))[np.argsort(order)]
        coef += both_triangles(factor, (rest - (penalty * coef.T).T) / size) / size
    return coef, merged[:0]


def scaled_cholesky(gram: Floats, floor: Floats) -> tuple[Floats, Floats, Floats | None]:
    """Column norms, the Gram matrix divided by them, and its Cholesky factor; None where some may depend."""
    sizes = np.sqrt(np.diag(gram))
    if not (sizes > floor).all():
        return sizes, gram, None
    scaled = gram / np.multiply.outer(sizes, sizes)
    factor = try_cholesky(scaled)
    sure = factor is not None and np.diag(factor).min(initial=1.0) ** 2 > MIN_GRAM_PIVOT
    return sizes, scaled, factor if sure else None


def grow_independent(problem: Problem, merged: Indices) -> tuple[QRFactor, Indices]:
    """A factor of the columns that do not depend on earlier ones, and their positions: slow and sure."""
    factor, keep = start_factor(problem), list[int]()
    for i, j in enumerate(merged.tolist()):
        grown = factor.add_column(problem, j) if len(keep) < problem.max_rank else None
        if grown is not None:
            factor = grown
            keep.append(i)
    return factor, np.array(keep, dtype=np.intp)
