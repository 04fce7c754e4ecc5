"""Newton directions on gathered columns: a factor per target, or one for all where a loss couples them.

With the columns as rows of A, the second derivatives of the objective are A diag(c) A^T, c being the
curvature of the loss at each sample. Multinomial loss couples the classes of a sample, so its matrix has a
block for each pair of classes. All of them are factorised by Cholesky, damped as little as it takes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from skpursuit.numerics.arrays import Floats, Indices
from skpursuit.numerics.stack import Rows
from skpursuit.numerics.tuning import CURVATURES_HELD, GRAM_ENTRIES
from skpursuit.problem.problem import Problem


class Curvature(NamedTuple):
    """Second derivatives in coefficients: `solve` gives the direction p with (curvature) p = g."""

    solve: Callable[[Floats], Floats]
    is_majorant: bool = False


def curvature_at(
    problem: Problem, A: Rows, z: Floats, penalty: Floats, trusted: bool = True
) -> tuple[Floats, Curvature]:
    """Gradient and curvature of a loss at predictions z, in the coefficients of the rows of A.

    Both come from one look at A. Where curvature is singular, as that of Huber loss far from its minimum, or
    not `trusted` because a step by it led nowhere, the parabola above the loss is used, if it has one.
    """
    if problem.loss.couples_targets:
        return coupled_curvature(problem, A, z, penalty)
    r, above = problem.residual(z), None if trusted else problem.majorant(z)
    g, H = A.sums(gradient_and_gram, r, problem.curvature(z) if above is None else above)
    solve, damping = factor(H, penalty)
    if damping and above is None and (above := problem.majorant(z)) is not None:
        solve, _ = factor(A.sums(gradient_and_gram, r, above)[1], penalty)
    return g, Curvature(solve, above is not None)


def gradient_and_gram(A: Floats, r: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """A r and A diag(weights) A^T."""
    return A @ r, *weighted_gram(A, weights)


def weighted_gram(A: Floats, weights: Floats | None) -> tuple[Floats]:
    """A diag(weights) A^T, from some samples at a time: A may have most of the memory there is."""
    step, total = max(1, GRAM_ENTRIES // len(A)), np.zeros((len(A), len(A)))
    for start in range(0, A.shape[1], step):
        part = A[:, start : start + step]
        total += (part if weights is None else part * weights[start : start + step]) @ part.T
    return (total,)


def coupled_curvature(problem: Problem, A: Rows, z: Floats, penalty: Floats) -> tuple[Floats, Curvature]:
    """Where the loss couples the targets: the whole k m x k m matrix of diag(p) - p p^T in each row.

    Adding one number to the coefficients of a column in all classes changes nothing, so that without a
    penalty the matrix is singular in that direction. There it gets the curvature of the square of their mean,
    which is zero where `centred` coefficients start, and so stays zero.

    Block (i, j) of two columns is a sum over the samples that have both, for all pairs of classes at once:
    the price follows the non-zeros of the sparser column.
    """
    p = problem.loss.probabilities(z)
    shape = m, k = p.shape[1], len(penalty)
    first, second = np.triu_indices(m)
    g, blocks = A.sums(partial(coupled_products, first, second), problem.residual(z), p, problem.weights)
    H = np.empty((*shape, *shape))
    for a, b, block in zip(first, second, blocks):
        H[a, :, b] = H[b, :, a] = block
    for i in np.flatnonzero(penalty == 0):
        H[:, i, :, i] += np.trace(H[:, i, :, i]) / m**2
    solve, _ = factor(H.reshape(m * k, -1), np.tile(penalty, m))
    return g, Curvature(lambda g: solve(g.T.ravel()).reshape(shape).T)


def coupled_products(
    first: Indices, second: Indices, A: Floats, r: Floats, p: Floats, weights: Floats | None
) -> tuple[Floats, Floats]:
    """A r, and the blocks of the curvature for pairs (first, second) of classes."""
    blocks = np.zeros((len(first), len(A), len(A)))
    step = max(1, CURVATURES_HELD // len(first))
    for start in range(0, len(p), step):
        rows = slice(start, start + step)
        q = np.ascontiguousarray(p[rows].T)
        found = q[first] * ((first == second)[:, None] - q[second])  # of diag(p) - p p^T of each row
        found = found if weights is None else found * weights[rows]
        blocks += pair_products(A[:, rows], np.ascontiguousarray(found.T))
    return A @ r, blocks


def pair_products(A: Floats, D: Floats) -> Floats:
    """A diag(D[:, q]) A^T for each column q of D, shape (q, k, k)."""
    present = A != 0
    counts = present.sum(axis=1)
    order = np.argsort(-counts, kind="stable")
    blocks = np.empty((D.shape[1], len(A), len(A)))
    for t, j in enumerate(order):
        fuller = order[: t + 1]
        if counts[j] < A.shape[1]:
            rows = np.flatnonzero(present[j])
            found = (A[np.ix_(fuller, rows)] * A[j, rows]) @ D[rows]
        else:
            found = (A[fuller] * A[j]) @ D
        blocks[:, fuller, j] = blocks[:, j, fuller] = found.T
    return blocks


def centred(w: Floats, penalty: Floats) -> Floats:
    """Coefficients of coupled classes, less their mean over the classes where nothing else determines it."""
    return np.where((penalty == 0)[:, None], w - w.mean(axis=1, keepdims=True), w)


def factor(H: Floats, penalty: Floats) -> tuple[Callable[[Floats], Floats], float]:
    """A solver of (H + diag(penalty)) p = g for a positive semi-definite H, and its damping relative to H.

    It is damped as little as Cholesky needs, in units of each column, so that neither the range of floats nor
    columns of very different sizes play a part. Where no damping helps, H is not finite or zero: there is no
    direction.
    """
    from scipy.linalg import cho_solve

    H.flat[:: len(H) + 1] += penalty
    sizes = np.sqrt(np.diag(H))
    if not (np.isfinite(sizes).all() and sizes.any()):
        return np.zeros_like, np.inf
    sizes[sizes == 0.0] = 1.0
    H /= sizes
    H /= sizes[:, None]
    lower, damping = cholesky(H), 0.0
    while lower is None and damping < 1.0:
        damping = max(10 * damping, 1e-14)
        lower = cholesky(H + damping * np.eye(len(H)))
    if lower is None:
        return np.zeros_like, np.inf
    return lambda g: cho_solve((lower, True), g / sizes, check_finite=False) / sizes, damping


def cholesky(H: Floats) -> Floats | None:
    """The lower factor of H; None where it has none."""
    from scipy.linalg import LinAlgError, cho_factor

    try:
        return cho_factor(H, lower=True, check_finite=False)[0]
    except LinAlgError:
        return None
