"""Newton directions on gathered columns: a factor per target, or one for all where a loss couples them.

With the columns as rows of A, the second derivatives of the objective are A diag(c) A^T, c being the
curvature of the loss at each sample. Multinomial loss couples the classes of a sample, so its matrix has a
block for each pair of classes. All of them are factorised by Cholesky, damped as little as it takes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skpursuit.numerics.arrays import Floats
from skpursuit.numerics.sums import BLOCK_ROWS
from skpursuit.numerics.tuning import CURVATURES_HELD, GRAM_ENTRIES
from skpursuit.problem.sample_losses import SampleLosses


@dataclass(frozen=True, eq=False)
class HessianFactor:
    """Second derivatives in coefficients, as the Cholesky factor of them divided by sizes; a value.

    Where there is no factor, there is no direction. `is_majorant` if they are those of a parabola above.
    """

    lower: Floats | None
    diagonal_scale: Floats
    is_majorant: bool

    def solve(self, g: Floats) -> Floats:
        """The direction p with (second derivatives) p = g, of shape (k,), or (k, m) for coupled targets."""
        if self.lower is None:
            return np.zeros_like(g)
        p = both_triangles(self.lower, g.T.ravel() / self.diagonal_scale) / self.diagonal_scale
        return p.reshape(g.T.shape).T


def hessian_of(
    samples: SampleLosses, A: Floats, z: Floats, curvature: Floats, penalty: Floats, trusted: bool
) -> HessianFactor:
    """The factorised Hessian of the loss, or of the parabola above it where that one does not serve."""
    if trusted or not samples.has_majorant:
        hessian, damping = factorize_hessian(second_derivatives(samples, A, z, curvature), penalty)
        if not (damping and samples.has_majorant):
            return hessian
    return factorize_hessian(
        second_derivatives(samples, A, z, samples.majorant(z)), penalty, is_majorant=True
    )[0]


def second_derivatives(samples: SampleLosses, A: Floats, z: Floats, curvature: Floats | None) -> Floats:
    """Those of losses at z with this curvature in z, in the coefficients of the rows of A."""
    if samples.loss.couples_targets:
        return coupled_hessian(A, samples.loss.probabilities(z), samples.weights)
    return weighted_gram(A, curvature)


def weighted_gram(A: Floats, weights: Floats | None) -> Floats:
    """A diag(weights) A^T, from so few samples at a time that weighted ones stay in the cache."""
    step, total = max(BLOCK_ROWS, GRAM_ENTRIES // len(A)), np.zeros((len(A), len(A)))
    room = np.empty((len(A), min(step, A.shape[1])))
    for start in range(0, A.shape[1], step):
        part = weighted = A[:, start : start + step]
        if weights is not None:
            weighted = np.multiply(part, weights[start : start + step], out=room[:, : part.shape[1]])
        total += weighted @ part.T
    return total


def coupled_hessian(A: Floats, p: Floats, weights: Floats | None) -> Floats:
    """Where the loss couples m targets: A (diag(p) - p p^T) A^T, of shape (m, k, m, k).

    Block (i, j) of two columns is a sum over the samples that have both, for all pairs of classes at once:
    the price follows the non-zeros of the sparser column.
    """
    m, k = p.shape[1], len(A)
    first, second = np.triu_indices(m)
    blocks = np.zeros((len(first), k, k))
    step = max(1, CURVATURES_HELD // len(first))
    for start in range(0, len(p), step):
        rows = slice(start, start + step)
        q = np.ascontiguousarray(p[rows].T)
        found = q[first] * ((first == second)[:, None] - q[second])  # of diag(p) - p p^T of each row
        found = found if weights is None else found * weights[rows]
        blocks += pair_products(A[:, rows], np.ascontiguousarray(found.T))
    H = np.empty((m, k, m, k))
    for a, b, block in zip(first, second, blocks):
        H[a, :, b] = H[b, :, a] = block
    return H


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


def centre_over_classes(w: Floats, penalty: Floats) -> Floats:
    """Coefficients of coupled classes, less their mean over the classes where nothing else determines it."""
    return np.where((penalty == 0)[:, None], w - w.mean(axis=1, keepdims=True), w)


def factorize_hessian(H: Floats, penalty: Floats, is_majorant: bool = False) -> tuple[HessianFactor, float]:
    """Factorised second derivatives with a penalty of each column, and their damping relative to H.

    They are damped as little as Cholesky needs, in units of each column, so that neither the range of floats
    nor columns of very different sizes play a part. Where no damping helps, H is not finite or zero. H is
    overwritten.

    Adding one number to the coefficients of a column in all coupled classes changes nothing, so that without
    a penalty the matrix is singular in that direction. There it gets the curvature of the square of their
    mean, which is zero where `centred` coefficients start, and so stays zero.
    """
    if H.ndim == 4:
        m, k = H.shape[:2]
        for i in np.flatnonzero(penalty == 0):
            H[:, i, :, i] += np.trace(H[:, i, :, i]) / m**2
        H, penalty = H.reshape(m * k, -1), np.tile(penalty, m)
    H.flat[:: len(H) + 1] += penalty
    sizes = np.sqrt(np.diag(H))
    if not (np.isfinite(sizes).all() and sizes.any()):
        return HessianFactor(None, sizes, is_majorant), np.inf
    sizes[sizes == 0.0] = 1.0
    H /= sizes
    H /= sizes[:, None]
    lower, damping = try_cholesky(H), 0.0
    while lower is None and damping < 1.0:
        damping = max(10 * damping, 1e-14)
        lower = try_cholesky(H + damping * np.eye(len(H)))
    return HessianFactor(lower, sizes, is_majorant), np.inf if lower is None else damping


def try_cholesky(H: Floats) -> Floats | None:
    """The lower factor of H; None where it has none."""
    from scipy.linalg.lapack import dpotrf

    lower, failed = dpotrf(H, lower=True)
    return None if failed else lower


def both_triangles(lower: Floats, b: Floats) -> Floats:
    """Solve L L^T x = b."""
    from scipy.linalg.lapack import dpotrs

    return dpotrs(lower, b, lower=True)[0]
