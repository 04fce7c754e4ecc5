"""Newton directions on gathered columns: a factor per target, or one for all where a loss couples them."""

from __future__ import annotations

from typing import Any

import numpy as np

from skpursuit.design.base import Floats, Indices
from skpursuit.problem import Problem

SLICE_ENTRIES = 2**22  # curvatures of rows held at a time, all pairs of classes


class Curvature:
    """Second derivatives of a loss of one target at predictions z, in the coefficients of the rows of A."""

    def __init__(self, problem: Problem, A: Floats, z: Floats, penalty: Floats) -> None:
        self.factor = factor((A * problem.curvature(z)) @ A.T, penalty)

    def solve(self, g: Floats) -> Floats:
        """The direction p with (curvature) p = g."""
        return self.factor(g)


class CoupledCurvature:
    """Where the loss couples the targets: the whole k m x k m matrix of diag(p) - p p^T in each row.

    Adding one number to the coefficients of a column in all classes changes nothing, so that without a
    penalty the matrix is singular in that direction. There it gets the curvature of the square of their mean,
    which is zero where `centred` coefficients start, and so stays zero.

    Block (i, j) of two columns is a sum over the samples that have both, for all pairs of classes at once:
    the price follows the non-zeros of the sparser column.
    """

    def __init__(self, problem: Problem, A: Floats, z: Floats, penalty: Floats) -> None:
        loss: Any = problem.loss
        p = loss.probabilities(z)
        m = p.shape[1]
        self.shape = (m, len(A))
        first, second = np.triu_indices(m)
        blocks = np.zeros((len(first), len(A), len(A)))
        step = max(1, SLICE_ENTRIES // len(first))
        for start in range(0, len(p), step):
            rows = slice(start, start + step)
            weights = None if problem.weights is None else problem.weights[rows]
            blocks += pair_products(A[:, rows], row_curvatures(p[rows], weights, first, second))
        H = np.empty((*self.shape, *self.shape))
        for a, b, block in zip(first, second, blocks):
            H[a, :, b] = H[b, :, a] = block
        for i in np.flatnonzero(penalty == 0):
            H[:, i, :, i] += np.trace(H[:, i, :, i]) / m**2
        self.factor = factor(H.reshape(m * len(A), -1), np.tile(penalty, m))

    def solve(self, g: Floats) -> Floats:
        """The direction p with (curvature) p = g."""
        return self.factor(g.T.ravel()).reshape(self.shape).T


def row_curvatures(p: Floats, weights: Floats | None, first: Indices, second: Indices) -> Floats:
    """Entries (first, second) of the weighted diag(p) - p p^T of each row, shape (n, pairs)."""
    q = np.ascontiguousarray(p.T)
    found = q[first] * ((first == second)[:, None] - q[second])
    return np.ascontiguousarray((found if weights is None else found * weights).T)


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


def curvature_at(problem: Problem, A: Floats, z: Floats, penalty: Floats) -> Curvature | CoupledCurvature:
    """The curvature in the form the loss allows."""
    kind = CoupledCurvature if couples(problem) else Curvature
    return kind(problem, A, z, penalty)


def centred(w: Floats, penalty: Floats) -> Floats:
    """Coefficients of coupled classes, less their mean over the classes where nothing else determines it."""
    return np.where((penalty == 0)[:, None], w - w.mean(axis=1, keepdims=True), w)


def couples(problem: Problem) -> bool:
    """Whether the loss of a sample depends on several predictions at once, as multinomial loss does."""
    return hasattr(problem.loss, "probabilities")


def factor(H: Floats, penalty: Floats) -> Any:
    """A solver of (H + diag(penalty)) p = g for a positive semi-definite H, damped as Cholesky needs."""
    from scipy.linalg import LinAlgError, cho_factor, cho_solve

    H.flat[:: len(H) + 1] += penalty
    scale = float(np.trace(H)) / len(H)
    if not scale > 0:
        return lambda g: g
    damping = 0.0
    while True:
        try:
            done = cho_factor(H, lower=True, check_finite=False)
            return lambda g: cho_solve(done, g, check_finite=False)
        except LinAlgError:
            more = max(10 * damping, 1e-14 * scale)
            H.flat[:: len(H) + 1] += more - damping
            damping = more
