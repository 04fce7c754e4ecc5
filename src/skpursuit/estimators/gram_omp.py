"""Orthogonal matching pursuit when only X^T X and X^T y are known (Rubinstein, Zibulevsky, Elad 2008).

There is no X to make a design of, so this is a small loop of its own: a Cholesky factor that grows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from skpursuit.design.base import Floats, Indices

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


def gram_omp(gram: Floats, xty: Floats, k: int, tol: float | None = None, energy: float = 0.0) -> FactorPath:
    """Pursue one target until k columns are chosen or ||y - X w||^2 <= tol.

    Parameters
    ----------
    gram : ndarray of shape (d, d)
    xty : ndarray of shape (d,)
    k : int
    tol : float, optional
    energy : float
        ||y||^2; needed with `tol`.
    """
    sizes = np.sqrt(np.maximum(np.diagonal(gram), 0.0))
    L, half, support = np.zeros((k, k)), np.zeros(k), np.empty(k, dtype=np.intp)
    rows = np.empty((k, len(xty)))
    closed = np.zeros(len(xty), dtype=bool)
    g, size, premature = xty.copy(), 0, False
    while size < k and not (tol is not None and energy - half[:size] @ half[:size] <= tol):
        scores = np.where(closed, 0.0, np.abs(g))
        noise = 8 * EPS * (np.abs(xty) + np.abs(g - xty)).max(initial=0.0)
        if scores.max(initial=0.0) <= noise:
            premature = True
            break
        j = int(np.argmax(scores >= scores.max() - noise))  # equal to rounding: the lowest index wins
        closed[j] = True
        row = gram[j]
        L[size, :size] = solve_triangular(
            L[:size, :size], row[support[:size]], lower=True, check_finite=False
        )
        pivot = row[j] - L[size, :size] @ L[size, :size]
        if not pivot > 16 * len(xty) * EPS * sizes[j] ** 2:
            continue  # depends on the columns chosen before
        L[size, size] = np.sqrt(pivot)
        half[size] = (xty[j] - L[size, :size] @ half[:size]) / L[size, size]
        support[size], rows[size] = j, row
        size += 1
        w = solve_triangular(L[:size, :size], half[:size], trans=1, lower=True, check_finite=False)
        g = xty - w @ rows[:size]
    premature |= tol is not None and bool(energy - half[:size] @ half[:size] > tol)
    return FactorPath(support[:size], L[:size, :size], half[:size], premature)
