"""Fits on a merged support: the old columns and many new ones at once, most of which are pruned again.

Least squares goes by normal equations, whose Gram matrix keeps the entries of columns that were merged
before. Other losses go by Newton. Both first look for columns that depend on others: a Cholesky factor of the
Gram matrix tells cheaply, to half the digits, that there is none. Where it does not, the columns are split by
Gram-Schmidt one after the other, and those that depend on earlier ones are dropped.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from skpursuit.data.design import Design
from skpursuit.fit.growing import QRFactor, add_columns, solve_factor, start_factor, start_fit
from skpursuit.fit.newton import both_triangles, fit_support, try_cholesky, weighted_gram
from skpursuit.numerics.arrays import Floats, Indices
from skpursuit.numerics.row_buffer import empty_in_temp_file
from skpursuit.problem.column_groups import ColumnGroups
from skpursuit.problem.problem import Problem
from skpursuit.problem.scores import top_k_by_index
from skpursuit.problem.state import State

MIN_GRAM_PIVOT = 1e-8  # squared share of a unit column left by the others, below which it may be rounding
NO_REFINEMENT_PIVOT = 1e-2  # above which plain normal equations lose no digits worth a refinement


class NormalEquations(NamedTuple):
    """Columns, ascending, their Gram matrix and their products with y; what a state remembers of a fit."""

    merged: Indices
    gram: Floats
    moments: Floats

    def some(self, keep: Indices) -> NormalEquations:
        """Those of some of the columns."""
        return NormalEquations(self.merged[keep], self.gram[np.ix_(keep, keep)], self.moments[keep])


class Pruning(NamedTuple):
    """Which coefficients of a merged fit are kept, and how.

    The k best, which are the largest, or `by` "gain" those without which the loss would rise most; of groups
    of columns, those with the largest mean of squares or of such losses. Columns that are `included` stay.
    """

    k: int
    refit: bool  # whether what is kept is fitted again
    by: str
    groups: ColumnGroups | None
    included: Indices
    positive: bool  # coefficients of at least zero, of squared loss


def fit_and_prune(problem: Problem, state: State, merged: Indices, rules: Pruning) -> State:
    """The best coefficients of a fit on the merged columns, which ascend.

    Columns that depend on others are dropped: on those that are included, and on earlier ones.
    """
    groups, first = rules.groups, np.argsort(~np.isin(merged, rules.included), kind="stable")
    if problem.quadratic and not rules.positive:
        equations, columns, order = normal_equations(problem, merged, state.memory)
        coef, dropped = solve_merged(problem, equations, columns, order, first)
        memory: Mapping[str, np.ndarray] = equations._asdict()
    else:
        columns, order, memory = gathered(problem.design, merged), np.arange(len(merged)), {}
        if rules.positive:
            coef, dropped = nonnegative_merged(problem, merged)
        else:
            coef, dropped = minimize_merged(problem, merged, columns, state, first)
    sizes = problem.score.of(coef)
    places = np.arange(len(merged))
    if groups is not None:
        places = np.searchsorted(groups.of(merged), groups.labels[merged])
    if rules.by == "gain":
        H = equations.gram if problem.quadratic else second_derivatives(problem, columns, coef)
        worth = losses_without(H + np.diag(problem.penalties(merged)), coef, sizes > 0, places)
        worth /= 1 if groups is None else groups.sizes[groups.of(merged)]
    else:
        worth = sizes if groups is None else groups.scores(sizes, merged)
    stays = np.isin(merged, np.setdiff1d(rules.included, dropped))
    worth[places[stays]] = np.inf
    keep = np.flatnonzero(np.isin(places, top_k_by_index(worth, rules.k)) & ((sizes > 0) | stays))
    kept, coef = coef[keep], np.zeros_like(coef)  # zeros are cheaper than copying the columns that are kept
    if rules.refit and len(keep):
        lines, every = columns[np.argsort(order)[keep]], np.arange(len(keep))
        if rules.positive:
            kept = nonnegative_merged(problem, merged[keep])[0]
        elif problem.quadratic:
            kept = solve_merged(problem, equations.some(keep), lines, every, every)[0]
        else:
            z = (kept.T @ lines).T
            if not problem.value(z) < problem.value(np.zeros_like(z)):  # what was pruned held it in balance
                kept, z = np.zeros_like(kept), np.zeros_like(z)
            kept = fit_support(problem, merged[keep], lines, kept, z)[0]
    coef[keep] = kept
    z = (coef[order].T @ columns).T
    return State(merged[keep], kept, z, problem.value(z), dropped, memory)


def losses_without(H: Floats, coef: Floats, used: np.ndarray, places: Indices) -> Floats:
    """Twice what the loss rises by without the coefficients of each place, the others being fitted again.

    H are the second derivatives; of coefficients w at a place that is w^T ((H^-1) there)^-1 w, among the
    columns that are `used`.
    """
    out, w = np.zeros(places.max(initial=-1) + 1), coef[used].reshape(np.count_nonzero(used), -1)
    sizes = np.sqrt(np.diag(H)[used])
    sizes[sizes == 0] = 1.0  # curvature that has gone
    factor, w = try_cholesky(H[np.ix_(used, used)] / np.multiply.outer(sizes, sizes)), w * sizes[:, None]
    if factor is None:  # nearly dependent columns: little is lost without one of them
        np.add.at(out, places[used], np.vecdot(w, w))
        return out
    half = solve_triangular(factor, np.eye(len(sizes)), lower=True, check_finite=False)
    order = np.argsort(places[used], kind="stable")
    for some in np.split(order, np.flatnonzero(np.diff(places[used][order])) + 1) if len(order) else ():
        block = half[:, some].T @ half[:, some]
        out[places[used][some[0]]] = np.sum(w[some] * np.linalg.solve(block, w[some]))
    return out


def second_derivatives(problem: Problem, columns: Floats, coef: Floats) -> Floats:
    """Those of the loss in the coefficients of columns, of several targets their mean."""
    curvature = problem.curvature((coef.T @ columns).T)
    return weighted_gram(columns, curvature if curvature.ndim == 1 else curvature.mean(axis=1))


def normal_equations(
    problem: Problem, merged: Indices, memory: Mapping[str, np.ndarray]
) -> tuple[NormalEquations, Floats, Indices]:
    """The equations, and the columns as rows of an array, those at the positions `order`.

    Entries of columns that were merged before are copied, so that an iteration pays for its new columns only.
    """
    before = memory.get("merged", merged[:0])
    _, at, was = np.intersect1d(merged, before, assume_unique=True, return_indices=True)
    new = np.setdiff1d(np.arange(len(merged)), at, assume_unique=True)
    order = np.concatenate([at, new])
    columns = gathered(problem.design, merged[order])
    gram = np.empty((len(merged), len(merged)))
    moments = np.empty((len(merged), *problem.target_shape))
    if len(at):
        gram[np.ix_(at, at)] = memory["gram"][np.ix_(was, was)]
        moments[at] = memory["moments"][was]
    old, fresh = columns[: len(at)], columns[len(at) :]
    gram[np.ix_(new, new)] = fresh @ fresh.T  # of one array twice BLAS does half the work
    gram[np.ix_(new, at)], moments[new] = fresh @ old.T, fresh @ problem.y
    gram[np.ix_(at, new)] = gram[np.ix_(new, at)].T
    return NormalEquations(merged, gram, moments), columns, order


def gathered(design: Design, cols: Indices) -> Floats:
    """Columns as the rows of an array, which is in a file where it is beyond the design's memory limit."""
    n, room = design.shape[0], design.limit.columns
    if 8 * n * len(cols) <= room:
        return design.columns(cols)
    lines, step = empty_in_temp_file((len(cols), n), np.dtype(np.float64)), max(1, int(room // (8 * n)))
    for start in range(0, len(cols), step):
        lines[start : start + step] = design.columns(cols[start : start + step], cache=False)
    return lines


def nonnegative_merged(problem: Problem, merged: Indices) -> tuple[Floats, Indices]:
    """As `solve_merged` for coefficients of at least zero, from a factor that grows column by column."""
    fitted, coef = add_columns(problem, start_fit(problem, True), merged.tolist()), np.zeros(len(merged))
    coef[np.searchsorted(merged, fitted.support)] = fitted.coef
    return coef, fitted.dropped


def solve_merged(
    problem: Problem, equations: NormalEquations, columns: Floats, order: Indices, first: Indices
) -> tuple[Floats, Indices]:
    """Coefficients of the merged columns, of which `columns` has those at `order`; and columns dropped.

    `first` are the positions of the merged columns, beginning with those that are not dropped for others.
    """
    merged, gram, moments = equations
    sizes, scaled, factor = scaled_cholesky(gram, problem.design.noise_floor(merged))
    if factor is None:
        rows, keep = grow_independent(problem, merged, first)
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


def minimize_merged(
    problem: Problem, merged: Indices, columns: Floats, state: State, first: Indices
) -> tuple[Floats, Indices]:
    """As `solve_merged` for any loss, by Newton from the coefficients of the last iterate."""
    floor = problem.design.noise_floor(merged) * np.sqrt(problem.row_weights.max())
    keep = np.arange(len(merged))
    if scaled_cholesky(weighted_gram(columns, problem.weights), floor)[2] is None:
        keep = np.sort(grow_independent(problem, merged, first)[1])
    coef = np.zeros((len(merged), *problem.target_shape))
    coef[np.searchsorted(merged, state.support)] = state.coef
    kept, start = columns if len(keep) == len(columns) else columns[keep], coef[keep]
    coef[:] = 0.0
    coef[keep] = fit_support(problem, merged[keep], kept, start)[0]
    return coef, np.delete(merged, keep)


def scaled_cholesky(gram: Floats, floor: Floats) -> tuple[Floats, Floats, Floats | None]:
    """Column norms, the Gram matrix divided by them, and its Cholesky factor; None where some may depend."""
    sizes = np.sqrt(np.diag(gram))
    if not (sizes > floor).all():
        return sizes, gram, None
    scaled = gram / np.multiply.outer(sizes, sizes)
    factor = try_cholesky(scaled)
    sure = factor is not None and np.diag(factor).min(initial=1.0) ** 2 > MIN_GRAM_PIVOT
    return sizes, scaled, factor if sure else None


def grow_independent(problem: Problem, merged: Indices, first: Indices) -> tuple[QRFactor, Indices]:
    """A factor of the columns that do not depend on earlier ones, and their positions: slow and sure."""
    factor, keep = start_factor(problem), list[int]()
    for i in first.tolist():
        grown = factor.add_column(problem, int(merged[i])) if len(keep) < problem.max_rank else None
        if grown is not None:
            factor = grown
            keep.append(i)
    return factor, np.array(keep, dtype=np.intp)
