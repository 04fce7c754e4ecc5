"""Orthogonal matching pursuit on small problems, in loops of a few lines a step.

A new column is made orthogonal to those chosen before. The products of all columns with that direction take
the gradient one step on, and those with the support are a row of its triangular factor. `GramPursuit` has
them from X^T X (Rubinstein, Zibulevsky, Elad 2008), where that is all there is, or small. `ColumnPursuit`
orthogonalises the column itself and multiplies X with the residual, for an X that stays in the cache: there
a turn of the loop of `minimize` would cost more than reading X. A larger one is multiplied in float32, half
the bytes, and columns that this cannot tell apart are compared by products in float64.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from skpursuit.data.progress import current
from skpursuit.estimators.linear_fit import LinearFit
from skpursuit.fit.gram_schmidt import orthogonalise
from skpursuit.numerics.arrays import Floats, Indices
from skpursuit.numerics.remainder import smallest_remainder
from skpursuit.numerics.scaling import power_of
from skpursuit.numerics.sums import fixed_order_dot
from skpursuit.numerics.tuning import SINGLE_ENTRIES

EPS, SINGLE_EPS = (float(np.finfo(kind).eps) for kind in (np.float64, np.float32))


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


class SmallPursuit(ABC):
    """A pursuit of one target.

    Attributes
    ----------
    d : int
        Number of columns.
    energy : float
        Squared norm of the residual.
    noise : float
        What products with the residual may be wrong by, for a model without columns.
    support : list of int
    """

    energy: float
    noise: float

    def __init__(self, d: int) -> None:
        self.d = d
        self.support: list[int] = []

    @abstractmethod
    def scored(self, allowed: Floats) -> tuple[Floats, float, float]:
        """|products with the residual| times `allowed`, the largest, and what tells two of them apart."""

    @abstractmethod
    def add(self, j: int) -> bool:
        """Add a column to the support and fit again; False if it depends on those chosen before."""

    def first(self, close: Indices) -> int:
        """The winner among columns whose products are equal to rounding: that of the lowest index."""
        return int(close[0])

    @abstractmethod
    def factor(self) -> tuple[Floats, Floats]:
        """`L` and `half` of the path."""

    def path(self, k: int, tol: float | None) -> FactorPath:
        """Add columns until there are k of them or the energy is at most `tol`."""
        allowed, premature, watch = np.ones(self.d), False, current()
        while len(self.support) < k and not (tol is not None and self.energy <= tol) and not watch.over():
            scores, top, apart = self.scored(allowed)
            if not top > (1 + len(self.support)) * self.noise:  # NaN included
                premature = True
                break
            j = self.first(np.flatnonzero(scores >= top - apart))
            allowed[j] = 0.0
            if self.add(j):
                self.support.append(j)
        premature |= tol is not None and self.energy > tol
        return FactorPath(np.array(self.support, dtype=np.intp), *self.factor(), premature)


class GramPursuit(SmallPursuit):
    """A pursuit from X^T X and X^T y.

    Row i of V holds the products of all columns with the i-th direction.

    Parameters
    ----------
    gram : ndarray of shape (d, d)
    xty : ndarray of shape (d,)
    k : int
    energy : float
        ||y||^2, where it is known.
    noise_floor : ndarray of shape (d,), optional
        Norm below which a centred column is only rounding of its mean, one per column.
    """

    def __init__(
        self, gram: Floats, xty: Floats, k: int, energy: float = 0.0, noise_floor: Floats | None = None
    ) -> None:
        super().__init__(len(xty))
        self.gram, self.g, self.energy = gram, xty.copy(), energy
        self.noise_floor = np.zeros(len(xty)) if noise_floor is None else noise_floor
        self.V, self.half = np.empty((k, len(xty))), np.zeros(k)
        self.shares = np.zeros(k)  # fraction of each direction that is centring noise
        # Products with y are rounded relative to ||x_j|| ||y||, where that is known.
        widest = float(np.sqrt(np.abs(np.diag(gram)).max(initial=0.0)))
        self.noise = 64 * EPS * max(float(np.abs(xty).max(initial=0.0)), float(np.sqrt(energy)) * widest)

    def scored(self, allowed: Floats) -> tuple[Floats, float, float]:
        scores = np.abs(self.g) * allowed
        return scores, float(scores.max(initial=0.0)), self.noise

    def add(self, j: int) -> bool:
        size = len(self.support)
        row, shadow, before = self.gram[j], self.V[:size, j], float(self.noise_floor[j])
        square = float(row[j])
        left = square - float(shadow @ shadow)
        noise = self.shares[:size] * shadow
        if not left > max(16 * self.d * EPS * square, float(noise @ noise) + before * before):
            return False
        pivot = sqrt(left)
        direction = np.subtract(row, shadow @ self.V[:size], out=self.V[size])
        direction /= pivot
        step = float(self.g[j]) / pivot
        self.g -= step * direction
        self.energy -= step * step
        self.half[size], self.shares[size] = step, before / pivot
        return True

    def factor(self) -> tuple[Floats, Floats]:
        size = len(self.support)
        return np.tril(self.V[:size, self.support].T), self.half[:size]


def gram_omp(
    gram: Floats,
    xty: Floats,
    k: int,
    tol: float | None = None,
    energy: float = 0.0,
    noise_floor: Floats | None = None,
) -> FactorPath:
    """Pursue one target until k columns are chosen or ||y - X w||^2 <= tol; see `GramPursuit`."""
    return GramPursuit(gram, xty, k, energy, noise_floor).path(k, tol)


class ColumnPursuit(SmallPursuit):
    """A pursuit that multiplies X with each new residual.

    Parameters
    ----------
    columns : ndarray of shape (d, n)
        The columns of X.
    y : ndarray of shape (n,)
    k : int
    noise_floor : ndarray of shape (d,)
        As in `GramPursuit`.
    """

    def __init__(self, columns: Floats, y: Floats, k: int, noise_floor: Floats) -> None:
        d, n = columns.shape
        super().__init__(d)
        k = min(k, n, d)
        self.columns, self.residual, self.energy, self.noise_floor = columns, y, float(y @ y), noise_floor
        self.sizes = np.sqrt(np.einsum("ij,ij->i", columns, columns))
        self.widest = float(self.sizes.max())
        self.noise = 4 * (n + 2) * EPS * self.widest * sqrt(self.energy)
        self.unit, self.single = power_of(self.widest), None
        if columns.size >= SINGLE_ENTRIES and k > 8:  # else the copy does not pay
            self.single = np.empty_like(columns, np.float32)
            np.multiply(columns, 2.0**-self.unit, out=self.single, casting="same_kind")
        self.Q, self.L, self.half, self.shares = np.empty((k, n)), np.zeros((k, k)), np.zeros(k), np.zeros(k)

    def add(self, j: int) -> bool:
        size, floor = len(self.support), float(self.noise_floor[j])
        if size == len(self.Q):
            return False
        x, length = np.ascontiguousarray(self.columns[j]), float(self.sizes[j])
        tiny = smallest_remainder(len(x), length, floor)
        direction, row, _ = orthogonalise(self.Q[:size], x, length, tiny, self.shares[:size])
        if direction is None:
            return False
        step = float(direction @ self.residual)
        self.residual = self.residual - step * direction
        self.energy = float(self.residual @ self.residual)
        self.Q[size], self.L[size, : size + 1], self.half[size] = direction, row, step
        self.shares[size] = floor / row[-1]
        return True

    def scored(self, allowed: Floats) -> tuple[Floats, float, float]:
        if self.single is not None and self.energy > 0.0:
            norm = sqrt(self.energy)
            power = power_of(norm)
            g = self.single @ (self.residual * 2.0**-power).astype(np.float32)
            scores = np.abs(g) * allowed
            scores *= 2.0 ** (self.unit + power)
            top = float(scores.max())
            # Its own rounding, that of both factors, and as much again.
            margin = (self.residual.size + 8) * SINGLE_EPS * self.widest * norm
            if top > 4 * margin + (1 + len(self.support)) * self.noise:
                return scores, top, 2 * margin
        scores = np.abs(self.columns @ self.residual) * allowed
        return scores, float(scores.max()), self.noise

    def first(self, close: Indices) -> int:
        """The winner by products in a fixed order, whose bits are equal for equal columns alone."""
        if len(close) == 1:
            return int(close[0])
        return int(close[np.abs(fixed_order_dot(list(self.columns[close]), self.residual)).argmax()])

    def factor(self) -> tuple[Floats, Floats]:
        size = len(self.support)
        return self.L[:size, :size], self.half[:size]
