"""Orthogonal matching pursuit when only X^T X and X^T y are known (Rubinstein, Zibulevsky, Elad 2008).

There is no X to make a design of, so this is a small loop of its own: a Cholesky factor that grows. On small
X it is also the fastest way, above all in cross-validation: the Gram matrix of a training part is that of all
rows less that of the test part (`FoldGrams`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from skpursuit.data import Design
from skpursuit.estimators.linear_fit import LinearFit
from skpursuit.estimators.standardized import standardize
from skpursuit.numerics.arrays import Floats, Indices

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

    def fit(self, k: int, centre: Floats | None = None, offset: Any = 0.0) -> LinearFit:
        """The model of the first k columns, for an X with means `centre` and a y with mean `offset`."""
        columns, coef = self.support[:k], self.coef(k)
        return LinearFit(columns, coef, offset if centre is None else offset - centre[columns] @ coef)


def gram_omp(
    gram: Floats,
    xty: Floats,
    k: int,
    tol: float | None = None,
    energy: float = 0.0,
    noise_floor: Floats | None = None,
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
    noise_floor : ndarray of shape (d,), optional
        Norm below which a centred column is only rounding of its mean, one per column.
    """
    noise_floor = np.zeros(len(xty)) if noise_floor is None else noise_floor
    V, half, support = np.empty((k, len(xty))), np.zeros(k), np.empty(k, dtype=np.intp)
    shares = np.zeros(k)  # fraction of each direction that is centring noise
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
        rounding = float(np.sum((shares[:size] * shadow) ** 2)) + noise_floor[j] ** 2
        if not pivot > max(16 * len(xty) * EPS * row[j], rounding):
            continue  # depends on the columns chosen before
        pivot = np.sqrt(pivot)
        direction = (row - shadow @ V[:size]) / pivot
        step = g[j] / pivot
        g -= step * direction
        energy -= float(step) * float(step)
        V[size], half[size], support[size], shares[size] = direction, step, j, noise_floor[j] / pivot
        size += 1
    premature |= tol is not None and energy > tol
    return FactorPath(support[:size], np.tril(V[:size, support[:size]].T), half[:size], premature)


class FoldGrams:
    """X^T X and X^T y of training parts: those of all rows less those of the test rows.

    Everything is centred at the means of the whole data, so that the means of a training part, which are
    taken out afterwards, are small and cost no digits.
    """

    def __init__(self, base: Design, y: Floats, weights: Floats | None, fit_intercept: bool) -> None:
        data = standardize(base, y, weights=weights, fit_intercept=fit_intercept).weighted()
        self.fit_intercept = fit_intercept
        self.centre, self.offset, self.y = data.centre, data.offset, data.y
        self.root = np.ones(len(y)) if weights is None else np.sqrt(weights)
        self.columns = data.design.columns(np.arange(base.shape[1]), keep=False)
        self.gram = self.columns @ self.columns.T
        self.noise_floor = data.design.noise_floor(np.arange(base.shape[1]))
        self.products = self.columns @ np.column_stack([self.y, self.root])

    def is_complement(self, train: Any, test: Any) -> bool:
        """Whether train is the complement of test and has over a quarter of the weight."""
        n = len(self.y)
        parts = np.concatenate([np.asarray(train), np.asarray(test)])
        whole = parts.dtype != bool and len(parts) == n and np.array_equal(np.sort(parts), np.arange(n))
        weight = self.root @ self.root
        return bool(whole and self.root[train] @ self.root[train] > 0.25 * weight)

    def path(self, test: Any, most: int) -> tuple[FactorPath, Floats, Any]:
        """The path without the test rows, and the means of X and y on the others."""
        columns, y, root = self.columns[:, test], self.y[test], self.root[test]
        gram = self.gram - columns @ columns.T
        xty, sums = (self.products - columns @ np.column_stack([y, root])).T
        if not self.fit_intercept:
            return gram_omp(gram, xty, most, noise_floor=self.noise_floor), self.centre, self.offset
        weight = self.root @ self.root - root @ root
        mean, y_mean = sums / weight, (self.y @ self.root - y @ root) / weight
        gram -= np.outer(sums, mean)
        path = gram_omp(gram, xty - sums * y_mean, most, noise_floor=self.noise_floor)
        return path, self.centre + mean, self.offset + y_mean
