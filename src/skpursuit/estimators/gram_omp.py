"""Orthogonal matching pursuit when only X^T X and X^T y are known (Rubinstein, Zibulevsky, Elad 2008).

There is no X to make a design of, so this is a small loop of its own: a Cholesky factor that grows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from skpursuit.data.base import Floats, Indices

EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class FactorPath:
    """The least-squares models of all prefixes of a support, kept as a factor: L L^T = X_S^T X_S.

    `half` is L^-1 X_S^T y. `premature` tells that no independent column was left that helps, or that all
    of them were not enough for `tol`.
    """

    support: Indices
    L: Floats
    half: Floats
    premature: bool = False

    def __len__(self) -> int:
        return len(self.support)

    def coef(self, k: int) -> Floats:
        """Least-squares coefficients of the first k columns."""
        return solve_triangular(self.L[:k, :k], self.half[:k], trans=1, lower=True, check_finite=False)


def gram_omp(
    gram: Floats,
    xty: Floats,
    k: int,
    tol: float | None = None,
    energy: float = 0.0,
    lost: Floats | None = None,
) -> FactorPath:
    """Pursue one target until k columns are chosen or ||y - X w||^2 <= tol.

    Row i of V holds the products of all columns with the i-th direction of the orthonormalised support. Its
    entries at the support are a column of the Cholesky factor, and it takes the gradient one step on.

    Parameters
    ----------
    gram : ndarray of shape (d, d)
    xty : ndarray of shape (d,)
    k : int
    tol : float, optional
    energy : float
        ||y||^2; needed with `tol`.
    lost : ndarray of shape (d,), optional
        Norms below which a column, or what is left of it, is rounding alone.
    """
    lost = np.zeros(len(xty)) if lost is None else lost
    V, half, support = np.empty((k, len(xty))), np.zeros(k), np.empty(k, dtype=np.intp)
    shares = np.zeros(k)  # of the directions that are rounding their columns had before
    closed: list[int] = []
    g, size, premature = xty.copy(), 0, False
    # Products with y are rounded relative to ||x_j|| ||y||, where that is known.
    size_of_y, widest = float(np.sqrt(energy)), float(np.sqrt(np.abs(np.diag(gram)).max(initial=0.0)))
    noise = 64 * EPS * max(float(np.abs(xty).max(initial=0.0)), size_of_y * widest)
    while size < k and not (tol is not None and energy <= tol):
        scores = np.abs(g)
        scores[closed] = 0.0
        top = float(scores.max(initial=0.0))
        if not top > (1 + size) * noise:  # NaN included
            premature = True
            break
        j = int(np.argmax(scores >= top - noise))  # equal to rounding: the lowest index wins
        closed.append(j)
        row, shadow = gram[j], V[:size, j]
        pivot = float(row[j] - shadow @ shadow)
        rounding = float(np.sum((shares[:size] * shadow) ** 2)) + lost[j] ** 2
        if not pivot > max(16 * len(xty) * EPS * row[j], rounding):
            continue  # depends on the columns chosen before
        pivot = np.sqrt(pivot)
        direction = (row - shadow @ V[:size]) / pivot
        step = g[j] / pivot
        g -= step * direction
        energy -= float(step) * float(step)
        V[size], half[size], support[size], shares[size] = direction, step, j, lost[j] / pivot
        size += 1
    premature |= tol is not None and energy > tol
    return FactorPath(support[:size], np.tril(V[:size, support[:size]].T), half[:size], premature)
