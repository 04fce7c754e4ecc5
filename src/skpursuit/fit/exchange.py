"""Exchanges: one column of the support for one outside it, as long as the objective falls.

A pursuit never takes back a column, and among correlated ones its early choices are often neighbours of the
right ones. Both halves of an exchange have a price in closed form. Let H be the matrix of second derivatives
on the support, penalties included, A its inverse, G the rows of X^T C X that belong to the support (C the
curvatures of the loss; ones for squared loss), h_ij = (A G)_ij and d_j what the support leaves of the
curvature along column j. Dropping column i costs w_i^2 / A_ii, and adding j afterwards gains

    (g_j + w_i h_ij / A_ii)^2 / (d_j + h_ij^2 / A_ii),

both twice the change of the objective. For squared loss this is exact, and the rows of G are Gram columns,
which are kept: a look at all k d pairs reads nothing of X. For other losses it is Newton's model of the
objective. Either way it is a proposal: the new support is fitted, and taken only if the objective is lower.
So exchanges end.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from skpursuit.data.grams import GRAM_WIDTH, gram_column
from skpursuit.fit.least_squares import refit_least_squares
from skpursuit.fit.newton import Newton
from skpursuit.numerics.arrays import Floats, Indices
from skpursuit.problem.problem import Problem
from skpursuit.problem.score import top
from skpursuit.problem.state import State

WORTH = 1e-7  # of the objective of the zero model: the least gain of an exchange
DEPENDENT = 1e-9  # of the square of a column: what is left of one that is as good as a combination
MOST = 100  # exchanges in a row
CHUNK = 2**20  # pairs that are looked at together


class Model(NamedTuple):
    """The objective around a fit: rows of X^T C X, its diagonal, minus the gradient, and the penalties."""

    rows: Floats
    diagonal: Floats
    g: Floats
    penalties: Floats


class Pair(NamedTuple):
    """Twice the gain of an exchange, the position of the column that goes, the one that comes, and rivals."""

    gain: float
    gone: int
    come: int
    likely: Indices


def exchanged(problem: Problem, state: State, fixed: int = 0) -> State:
    """The state after all exchanges that pay; the first `fixed` columns of the support stay."""
    if problem.quadratic:
        return _exchanged_squared(problem, state, fixed)
    least = WORTH * abs(problem.value(np.zeros_like(state.z)))
    for _ in range(MOST):
        pair = _best_by_newton(problem, state, fixed)
        if pair is None or not pair.gain > 2 * least:
            return state
        after = Newton().exchange(problem, state, pair.gone, pair.come)
        if after is None or not _value(problem, after) < _value(problem, state) - least:
            return state
        state = replace(after, memory=state.memory, status=state.status)
    return state


def _best_by_newton(problem: Problem, state: State, fixed: int) -> Pair | None:
    """The best exchange by Newton's model of the objective.

    Curvatures along all columns would take the squares of X: norms guess them, for a short list.
    """
    design, curvature = problem.design, problem.curvature(state.z)
    curvature = curvature if curvature.ndim == 1 else curvature.mean(axis=1)
    rows = design.product((design.columns(state.support) * curvature).T).T
    g, penalties = -design.product(problem.residual(state.z)), problem.penalties(np.arange(len(rows.T)))
    guessed = design.norms(0) ** 2 * (curvature.sum() / problem.row_weights.sum())
    pair = best_pair(Model(rows, guessed, g, penalties), state.support, state.coef, fixed)
    if pair is None:
        return None
    short = np.union1d(state.support, pair.likely)
    columns = design.columns(short, keep=False)
    model = Model(rows[:, short], (columns * columns) @ curvature, g[short], penalties[short])
    pair = best_pair(model, np.searchsorted(short, state.support), state.coef, fixed)
    return None if pair is None else pair._replace(come=int(short[pair.come]))


def _exchanged_squared(problem: Problem, state: State, fixed: int) -> State:
    """Exchanges by Gram columns alone, and one fit at the end."""
    design, support, least = problem.design, state.support, WORTH * 0.5 * problem.size**2
    diagonal, penalties = design.norms(0) ** 2, problem.penalties(np.arange(design.shape[1]))
    rows, coef = _gram_rows(problem, support, state.z), state.coef
    for _ in range(MOST):
        g = problem.xty - (coef.T @ rows).T
        pair = best_pair(Model(rows, diagonal, g, penalties), support, coef, fixed)
        if pair is None or not pair.gain > 2 * least:
            break
        support = np.append(np.delete(support, pair.gone), pair.come)
        new = gram_column(design, pair.come, partial(np.asarray, pair.likely))
        rows = np.vstack([np.delete(rows, pair.gone, axis=0), new])
        coef = np.linalg.solve(rows[:, support] + np.diag(penalties[support]), problem.xty[support])
    if support is state.support:
        return state
    after = refit_least_squares(problem, state, support)
    if after is None or not _value(problem, after) < _value(problem, state):
        return state
    return replace(after, memory=state.memory, status=state.status)


def _gram_rows(problem: Problem, support: Indices, z: Floats) -> Floats:
    """The Gram columns of the support; missing ones are made with those that may come next."""
    design = problem.design

    def likely() -> Indices:
        scores = problem.score.of(design.product(problem.residual(z)))
        scores[list(design.kept.gram_columns.held)] = -np.inf
        return np.append(support, top(scores, GRAM_WIDTH))

    return np.stack([gram_column(design, j, likely) for j in support.tolist()])


def best_pair(model: Model, support: Indices, coef: Floats, fixed: int) -> Pair | None:
    """The best exchange; None where the support cannot be told apart or no column may go."""
    rows, diagonal, g, penalties = model
    try:
        A = np.linalg.inv(rows[:, support] + np.diag(penalties[support]))
    except np.linalg.LinAlgError:
        return None
    H, a = A @ rows, np.diag(A)
    w, g = coef.reshape(len(coef), -1), g.reshape(len(g), -1)
    left = diagonal + penalties - np.einsum("ij,ij->j", rows, H)
    floor = np.where(diagonal > 0, DEPENDENT * diagonal, 1.0)
    best: Pair | None = None
    step = max(1, CHUNK // len(diagonal))
    for start in range(fixed, len(support), step):
        part = slice(start, start + step)
        gain = _gains(H[part], a[part], w[part], g, np.maximum(left, 0.0), floor)
        gain[:, support] = -np.inf
        i, j = np.unravel_index(np.argmax(gain), gain.shape)
        if best is None or gain[i, j] > best.gain:
            rivals = gain.argmax(axis=1)[np.argsort(-gain.max(axis=1), kind="stable")]
            best = Pair(float(gain[i, j]), start + int(i), int(j), rivals[:GRAM_WIDTH])
    return best if best is not None and np.isfinite(best.gain) else None


def _gains(H: Floats, a: Floats, w: Floats, g: Floats, left: Floats, floor: Floats) -> Floats:
    """Twice the gain of each pair; a row for each column that goes."""
    share = H / a[:, None]
    room = H * share
    room += left
    np.maximum(room, floor, out=room)
    if g.shape[1] == 1:
        share *= w
        share += g[:, 0]
        share *= share
    else:
        share = np.vecdot(g, g) + share * (2 * (w @ g.T)) + share * share * np.vecdot(w, w)[:, None]
    share /= room
    share -= (np.vecdot(w, w) / a)[:, None]
    return share


def _value(problem: Problem, state: State) -> float:
    return problem.penalised(state.objective, state.support, state.coef)
