"""Convex sets that Frank-Wolfe works on: the hull of a few signed, scaled unit vectors per column.

A Frank-Wolfe step goes towards the vertex with the smallest <gradient, vertex>. On the l1 ball that is
-radius sign(g_j) e_j for the column of largest |g_j|, on the simplex radius e_j for the smallest signed g_j.
So a set tells which score a selector should look for, and which vertex of the column that was found to take.
"""

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from skpursuit.numerics.arrays import Floats, Indices
from skpursuit.parameters import check_number
from skpursuit.problem.scores import Absolute, Score, Signed

SET_METHODS = ("radius", "score", "vertex", "start", "origin_weight")  # of a ConvexSet


class ConvexSet(Protocol):
    """A set whose vertices are c e_j: what Frank-Wolfe needs to know about it."""

    @property
    def radius(self) -> float:
        """The l1 norm of every vertex."""

    @property
    def score(self) -> Score:
        """Whose largest entry names the best vertex's column."""

    def vertex(self, slope: float) -> float:
        """The coefficient c of the vertex c e_j that minimises c * slope."""

    def start(self) -> tuple[Indices, Floats]:
        """Columns and coefficients of a point of the set."""

    def origin_weight(self, coef: Floats) -> float:
        """Share of the origin in a point, seen as a mean of the vertices it uses and the origin."""


@dataclass(frozen=True)
class ScaledSet:
    """What the sets here share: a radius, and steps of plain Frank-Wolfe in compiled code."""

    radius: float = 1.0
    has_compiled_steps: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_number("radius", self.radius, "(0, inf)")


@dataclass(frozen=True)
class L1Ball(ScaledSet):
    """{w : ||w||_1 <= radius}.

    Parameters
    ----------
    radius : float

    Examples
    --------
    >>> from skpursuit import L1Ball
    >>> L1Ball(2.0).vertex(slope=-3.0)
    2.0
    """

    @property
    def score(self) -> Score:
        """|g_j|."""
        return Absolute()

    def vertex(self, slope: float) -> float:
        """-radius sign(g_j)."""
        return -self.radius if slope > 0 else self.radius

    def start(self) -> tuple[Indices, Floats]:
        """The origin."""
        return np.empty(0, dtype=np.intp), np.empty(0)

    def origin_weight(self, coef: Floats) -> float:
        """1 - ||w||_1 / radius."""
        return max(0.0, 1.0 - float(np.abs(coef).sum()) / self.radius)


@dataclass(frozen=True)
class Simplex(ScaledSet):
    """{w : w >= 0, sum w = radius}.

    Parameters
    ----------
    radius : float
    """

    @property
    def score(self) -> Score:
        """-g_j."""
        return Signed()

    def vertex(self, slope: float) -> float:
        """Every vertex is +radius e_j."""
        return self.radius

    def start(self) -> tuple[Indices, Floats]:
        """The first vertex: any will do, since Frank-Wolfe forgets it."""
        return np.zeros(1, dtype=np.intp), np.array([float(self.radius)])

    def origin_weight(self, coef: Floats) -> float:
        """The origin is outside."""
        return 0.0
