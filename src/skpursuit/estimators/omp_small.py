"""Orthogonal matching pursuit on small problems, in loops of a few lines a step.

A new column is made orthogonal to those chosen before. The products of all columns with that direction take
the gradient one step on, and those with the support are a row of its triangular factor. `GramPursuit` has
them from X^T X (Rubinstein, Zibulevsky, Elad 2008), where that is all there is, or small. `ColumnPursuit`
orthogonalises the column itself and multiplies X with the residual, for an X that stays in the cache: there
a turn of the loop of `minimize` would cost more than reading X. A larger one is multiplied in float32, half
the bytes, and columns that this cannot tell apart are compared by products in float64.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
from scipy.linalg.lapack import dtrtrs

from skpursuit.estimators.linear_fit import LinearFit
from skpursuit.fit.gram_schmidt import orthogonalise
from skpursuit.numerics.arrays import Floats, Indices
from skpursuit.numerics.error_bounds import dependence_threshold
from skpursuit.numerics.float_range import power_of
from skpursuit.numerics.sums import fixed_order_dot
from skpursuit.numerics.tuning import SINGLE_ENTRIES
from skpursuit.progress import current_monitor

EPS, SINGLE_EPS = (float(np.finfo(kind).eps) for kind in (np.float64, np.float32))


@dataclass(frozen=True)
class OMPPath:
    """The least-squares models of all prefixes of a support, kept as a factor: L L^T = X_S^T X_S.

    `projections` is L^-1 X_S^T y. `ended_early` says that no independent column was left that helps, or that
    all of them were not enough for `tol`.
    """

    support: Indices
    L: Floats
    projections: Floats
    ended_early: bool = False

    def __len__(self) -> int:
        return len(self.support)

    def coef(self, k: int) -> Floats:
        """Least-squares coefficients of the first k columns."""
        return dtrtrs(self.L[:k, :k].T, self.projections[:k])[0] if k else self.projections[:0]

    def all_coefs(self) -> Floats:
        """Those of the first 1, 2, ... columns, one model a row; of an empty path one row of nothing."""
        coefs = np.zeros((max(1, len(self)), len(self)))
        for k in range(1, len(self) + 1):
            coefs[k - 1, :k] = self.coef(k)
        return coefs

    def fit(self, k: int) -> LinearFit:
        """The model of the first k columns, of centred data."""
        return LinearFit(self.support[:k], self.coef(k), 0.0)


class SmallPursuit:
    """What a pursuit of one target knows: its columns, and products of directions with the target.

    `noise` bounds the error of products with y, and `noise_floor` has the norm below which a centred column
    is only rounding of its mean.
    """

    squared_residual: float
    noise: float

    def __init__(self, d: int, k: int, noise_floor: Floats | None) -> None:
        self.support: list[int] = []
        self.allowed = np.ones(d)  # 0 for columns that were tried
        self.noise_floor = np.zeros(d) if noise_floor is None else noise_floor
        self.projections, self.shares = np.zeros(k), np.zeros(k)  # shares: of directions, centring noise


class GramPursuit(SmallPursuit):
    """A pursuit from X^T X and X^T y: row i of V holds the products of all columns with the i-th direction.

    `energy` is ||y||^2, where it is known.
    """

    def __init__(
        self, gram: Floats, xty: Floats, k: int, energy: float = 0.0, noise_floor: Floats | None = None
    ) -> None:
        super().__init__(len(xty), k, noise_floor)
        self.gram, self.g, self.squared_residual, self.V = gram, xty.copy(), energy, np.empty((k, len(xty)))
        # Products with y are rounded relative to ||x_j|| ||y||, where that is known.
        widest = float(np.sqrt(np.abs(np.diag(gram)).max(initial=0.0)))
        self.noise = 64 * EPS * max(float(np.abs(xty).max(initial=0.0)), float(np.sqrt(energy)) * widest)

    def best(self, least: float) -> int | None:
        """The allowed column with the largest product with the residual; None if it is not above `least`."""
        scores = np.abs(self.g) * self.allowed
        top = float(scores.max(initial=0.0))
        return int((scores >= top - self.noise).argmax()) if top > least else None  # NaN is not above

    def add(self, j: int) -> bool:
        """Add a column to the support and fit again; False if it depends on those chosen before."""
        size = len(self.support)
        row, shadow, before = self.gram[j], self.V[:size, j], float(self.noise_floor[j])
        square = float(row[j])
        left = square - float(shadow @ shadow)
        noise = self.shares[:size] * shadow
        if not left > max(16 * len(row) * EPS * square, float(noise @ noise) + before * before):
            return False
        pivot = sqrt(left)
        direction = np.subtract(row, shadow @ self.V[:size], out=self.V[size])
        direction /= pivot
        step = float(self.g[j]) / pivot
        self.g -= step * direction
        self.squared_residual -= step * step
        self.projections[size], self.shares[size] = step, before / pivot
        return True

    def triangle(self) -> Floats:
        """`L` of the path."""
        return np.tril(self.V[: len(self.support), self.support].T)


class ColumnPursuit(SmallPursuit):
    """A pursuit that multiplies the columns of X, the rows of an array, with each new residual."""

    def __init__(self, columns: Floats, y: Floats, k: int, noise_floor: Floats | None = None) -> None:
        d, n = columns.shape
        super().__init__(d, k, noise_floor)
        self.columns, self.residual, self.squared_residual = columns, y, float(y @ y)
        self.sizes = np.sqrt(np.einsum("ij,ij->i", columns, columns))
        self.widest = float(self.sizes.max())
        self.noise = 4 * (n + 2) * EPS * self.widest * sqrt(self.squared_residual)
        self.unit, self.single = power_of(self.widest), None
        if columns.size >= SINGLE_ENTRIES and k > 8:  # else the copy does not pay
            self.single = np.empty_like(columns, np.float32)
            np.multiply(columns, 2.0**-self.unit, out=self.single, casting="same_kind")
        most = min(k, n, d)
        self.Q, self.L = np.empty((most, n)), np.zeros((most, most))

    def best(self, least: float) -> int | None:
        found = None
        if self.single is not None and self.squared_residual > 0.0:
            norm = sqrt(self.squared_residual)
            power = power_of(norm)
            g = self.single @ (self.residual * 2.0**-power).astype(np.float32)
            scores = np.abs(g) * self.allowed
            scores *= 2.0 ** (self.unit + power)
            # Its own rounding, that of both factors, and as much again.
            margin = (self.residual.size + 8) * SINGLE_EPS * self.widest * norm
            found = self._winner(scores, 4 * margin + least, 2 * margin)
        if found is None:
            found = self._winner(np.abs(self.columns @ self.residual) * self.allowed, least, self.noise)
        return found

    def _winner(self, scores: Floats, least: float, apart: float) -> int | None:
        """The winner by products in a fixed order, whose bits are equal for equal columns alone."""
        top = float(scores.max())
        if not top > least:
            return None
        (close,) = (scores >= top - apart).nonzero()
        if len(close) == 1:
            return int(close[0])
        return int(close[np.abs(fixed_order_dot(list(self.columns[close]), self.residual)).argmax()])

    def add(self, j: int) -> bool:
        size, floor = len(self.support), float(self.noise_floor[j])
        if size == len(self.Q):
            return False
        x, length = np.ascontiguousarray(self.columns[j]), float(self.sizes[j])
        tiny = dependence_threshold(len(x), length, floor)
        direction, row = orthogonalise(self.Q[:size], x, length, tiny, self.shares[:size])
        if direction is None:
            return False
        step = float(direction @ self.residual)
        self.residual = self.residual - step * direction
        self.squared_residual = float(self.residual @ self.residual)
        self.Q[size], self.L[size, : size + 1], self.projections[size] = direction, row, step
        self.shares[size] = floor / row[-1]
        return True

    def triangle(self) -> Floats:
        return self.L[: len(self.support), : len(self.support)]


def omp_path(pursuit: GramPursuit | ColumnPursuit, tol: float | None = None) -> OMPPath:
    """Models of 1, 2, ... columns, until there are k of them or the energy is at most `tol`."""
    support, premature, watch, k = pursuit.support, False, current_monitor(), len(pursuit.projections)
    while (
        len(support) < k
        and not (tol is not None and pursuit.squared_residual <= tol)
        and not watch.out_of_time()
    ):
        j = pursuit.best((1 + len(support)) * pursuit.noise)
        if j is None:
            premature = True
            break
        pursuit.allowed[j] = 0.0
        if pursuit.add(j):
            support.append(j)
    premature |= tol is not None and pursuit.squared_residual > tol
    half = pursuit.projections[: len(support)]
    return OMPPath(np.array(support, dtype=np.intp), pursuit.triangle(), half, premature)
