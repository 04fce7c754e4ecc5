"""Exchanges: one column of the support for one outside it, as long as the objective falls.

A pursuit never takes back a column, and among correlated ones its early choices are often neighbours of the
right ones. Both halves of an exchange have a price in closed form. Let H be the matrix of second derivatives
on the support, penalties included, A its inverse, G the rows of X^T C X that belong to the support (C the
curvatures of the loss; ones for squared loss), h_ij = (A G)_ij and d_j what the support leaves of the
curvature along column j. Dropping column i costs w_i^2 / A_ii, and adding j afterwards gains

    (g_j + w_i h_ij / A_ii)^2 / (d_j + h_ij^2 / A_ii),

both twice the change of the objective. For squared loss this is exact, and the rows of G are Gram columns,
which are kept: a look at all k d pairs reads nothing of X. The search for default models uses the formula
(`gains`) on all folds at once. For other losses both are Newton's models of the objective, and the second is
far off where curvature changes fast, as that of Poisson does: there the columns that are cheap to drop are
dropped one by one, and g is the gradient of the model without. Either way it is a proposal: the new support
is fitted, and taken only if the objective is lower. So exchanges end.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from skpursuit.data.caches import gram_column
from skpursuit.fit.growing import STEP_PRECISION, refit
from skpursuit.fit.newton import fit_support
from skpursuit.numerics.arrays import NO_COLUMNS, Floats, Indices
from skpursuit.problem.problem import Problem
from skpursuit.problem.scores import top_k
from skpursuit.problem.state import State

MIN_RELATIVE_SWAP_GAIN = 1e-7  # of the objective of the zero model: the least gain of an exchange
DEPENDENT = 1e-9  # of the square of a column: what is left of one that is as good as a combination
MAX_SWAPS_PER_FIT = 100  # exchanges in a row
MAX_PAIRS_AT_ONCE = 2**20  # pairs that are looked at together
MAX_DROP_TRIALS = 8  # columns that are dropped to see whether another is better, with other losses
SHORT_LIST = 16  # columns whose curvature is computed before one of them comes

QuadraticModel = tuple[Floats, Floats, Floats]  # rows of X^T C X, its diagonal, and the penalties


class Swaps(NamedTuple):
    """Exchanges, the best first, one for each position whose column may go, and the columns that come."""

    gain: Floats  # twice what the objective falls
    gone: Indices
    come: Indices


def apply_swaps(problem: Problem, state: State, fixed: int, closed: Indices) -> State:
    """The state after all exchanges that pay; the first `fixed` columns of the support stay.

    Those that are `closed` do not come.
    """
    if problem.quadratic:
        return _exchanged_squared(problem, state, fixed, closed)
    least = MIN_RELATIVE_SWAP_GAIN * abs(problem.value(np.zeros_like(state.z)))
    for _ in range(MAX_SWAPS_PER_FIT):
        after = _after_exchange(problem, state, fixed, least, closed)
        if after is None:
            break
        state = replace(after, memory=state.memory, status=state.status)
    return state


def _after_exchange(
    problem: Problem, state: State, fixed: int, least: float, closed: Indices
) -> State | None:
    """The state after the first exchange that pays, of the columns that cost least to drop."""
    # Newton's model says what dropping costs. Then the model without the column is fitted, and its gradient
    # and the curvature that it leaves say which column is to come.
    design, bound = problem.design, problem.penalized_objective(state) - least
    curvature = problem.curvature(state.z)
    curvature = curvature if curvature.ndim == 1 else curvature.mean(axis=1)
    guessed = design.norms(0) ** 2 * (curvature.sum() / problem.row_weights.sum())
    # Rows of X^T diag(curvature) X that belong to the support, as many at a time as there is room for.
    k, columns = len(state.support), state.factorised.lines
    step = max(1, min(k, design.limit.columns // (8 * design.shape[0])))
    parts = (columns[start : start + step] for start in range(0, k, step))
    rows = np.vstack([design.product((part * curvature).T).T for part in parts])
    penalties = problem.penalties(np.arange(len(guessed)))
    known = _inverse((rows, guessed, penalties), state.support)
    if known is None or len(state.support) == len(guessed):
        return None
    H, a, left, floor = known
    w = state.coef.reshape(len(state.coef), -1)
    costs = np.vecdot(w, w)[fixed:] / a[fixed:]
    for gone in (fixed + np.argsort(costs, kind="stable")[:MAX_DROP_TRIALS]).tolist():
        rest, coef = np.delete(state.support, gone), np.delete(state.coef, gone, axis=0)
        _, z, _ = fit_support(problem, rest, np.delete(columns, gone, 0), coef, precision=STEP_PRECISION)
        g = problem.design.product(problem.residual(z))
        g = np.vecdot(g, g) if g.ndim == 2 else g * g  # of the model without the column, over the targets
        room = left + H[gone] ** 2 / a[gone]
        scores = g / np.maximum(room, floor)
        scores[state.support] = scores[closed] = -np.inf
        short = top_k(scores, SHORT_LIST)  # norms guess curvatures, which would take the squares of X
        block = design.columns(short, cache=False)
        room = room[short] + (block * block) @ curvature - guessed[short]
        come = int(short[np.argmax(g[short] / np.maximum(room, floor[short]))])
        after = refit(problem, state, np.append(rest, come))
        if after is not None and problem.penalized_objective(after) < bound:
            return after
    return None


def _exchanged_squared(problem: Problem, state: State, fixed: int, closed: Indices) -> State:
    """Exchanges by Gram columns alone, and one fit at the end."""
    design, support = problem.design, state.support
    least = MIN_RELATIVE_SWAP_GAIN * 0.5 * problem.target_norm**2
    diagonal, penalties = design.norms(0) ** 2, problem.penalties(np.arange(design.shape[1]))
    rows, coef = _gram_rows(problem, support, state.z), state.coef
    for _ in range(MAX_SWAPS_PER_FIT):
        g = problem.xty - (coef.T @ rows).T
        pairs = best_swaps((rows, diagonal, penalties), g, support, coef, fixed, closed)
        if not (len(pairs.gain) and pairs.gain[0] > 2 * least):
            break
        support = np.append(np.delete(support, pairs.gone[0]), pairs.come[0])
        new = gram_column(design, int(pairs.come[0]), lambda count: pairs.come[:count])  # noqa: B023
        rows = np.vstack([np.delete(rows, pairs.gone[0], axis=0), new])
        coef = np.linalg.solve(rows[:, support] + np.diag(penalties[support]), problem.xty[support])
    if support is state.support:
        return state
    after = refit(problem, state, support)
    if after is None or not problem.penalized_objective(after) < problem.penalized_objective(state):
        return state
    return replace(after, memory=state.memory, status=state.status)


def _gram_rows(problem: Problem, support: Indices, z: Floats) -> Floats:
    """The Gram columns of the support; missing ones are made with those that may come next."""
    design = problem.design

    def likely(count: int) -> Indices:
        scores = problem.score.of(design.product(problem.residual(z)))
        scores[list(design.caches.gram_columns.arrays)] = -np.inf
        return np.append(support, top_k(scores, count))

    return np.stack([gram_column(design, j, likely) for j in support.tolist()])


def _inverse(model: QuadraticModel, support: Indices) -> tuple[Floats, Floats, Floats, Floats] | None:
    """A G, the diagonal of A, what the support leaves of curvatures and the least of it that counts.

    None where columns of the support cannot be told apart.
    """
    rows, diagonal, penalties = model
    try:
        A = np.linalg.inv(rows[:, support] + np.diag(penalties[support]))
    except np.linalg.LinAlgError:
        return None
    H = A @ rows
    left = np.maximum(diagonal + penalties - np.einsum("ij,ij->j", rows, H), 0.0)
    return H, np.diag(A), left, np.where(diagonal > 0, DEPENDENT * diagonal, 1.0)


def best_swaps(
    model: QuadraticModel, g: Floats, support: Indices, coef: Floats, fixed: int, closed: Indices
) -> Swaps:
    """The best exchange of each column that may go; g is minus the gradient."""
    known = _inverse(model, support)
    if known is None:
        return Swaps(np.empty(0), NO_COLUMNS, NO_COLUMNS)
    H, a, left, floor = known
    w, g = coef.reshape(len(coef), -1), g.reshape(len(g), -1)
    most, come = np.full(len(support), -np.inf), np.zeros(len(support), dtype=np.intp)
    step = max(1, MAX_PAIRS_AT_ONCE // len(left))
    for start in range(fixed, len(support), step):
        part = slice(start, start + step)
        gain = gains(H[part], a[part], w[part], g, left, floor)
        gain[:, support] = gain[:, closed] = -np.inf
        most[part], come[part] = gain.max(axis=1), gain.argmax(axis=1)
    order = np.argsort(-most, kind="stable")
    order = order[np.isfinite(most[order])]
    return Swaps(most[order], order, come[order])


def gains(H: Floats, a: Floats, w: Floats, g: Floats, left: Floats, floor: Floats) -> Floats:
    """Twice the gain of each pair, (..., k, d): a row for each column that goes.

    H (..., k, d) is A G and a (..., k) the diagonal of A; w (..., k, m) are the coefficients, g (..., d, m)
    is minus the gradient, and `left` (..., d) the curvature that the support leaves, at least `floor`.
    """
    share = H / a[..., None]
    room = H * share
    room += left[..., None, :]
    np.maximum(room, floor[..., None, :], out=room)
    total: Floats = np.zeros(())
    for t in reversed(range(w.shape[-1])):
        part = np.multiply(share, w[..., t, None], out=None if t else share)
        part += g[..., None, :, t]
        part *= part
        part += total
        total = part
    total /= room
    total -= (np.vecdot(w, w) / a)[..., None]
    return total
