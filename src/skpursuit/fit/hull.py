"""Least squares over the hull of a few vertices: what corrective Frank-Wolfe does between two of them.

Coefficients keep their signs and the sum of their sizes is bounded, or fixed. From a feasible point the way
goes to the minimum on the vertices that have weight, and no farther than to where the first of them has none
left, which is then left out (the minor cycles of Wolfe's minimum-norm point). The origin is one too where
the set contains it: without weight on it the sum stays what it is.
"""

from __future__ import annotations

import numpy as np

from skpursuit.fit.merged import scaled_cholesky
from skpursuit.fit.newton import both_triangles, try_cholesky
from skpursuit.numerics.arrays import Floats
from skpursuit.numerics.float_range import NonFiniteError

CYCLES = 3  # for each vertex, at most
DAMPING = 1e-14  # of directions that nothing bends, which then lead to where a vertex has no weight left
NO_WEIGHT = 1e-14  # share of the radius that the origin may have by rounding


def minimize_in_hull(
    gram: Floats, slope: Floats, coef: Floats, signs: Floats, radius: float, has_origin: bool
) -> Floats:
    """Coefficients of the least squares over the hull of signed vertices, from those of a point in it.

    `gram` has the products of the columns with each other, `slope` theirs with the residual of the point.
    Where the first vertex would stop the way soon, all of the way is tried, without those that it leaves no
    weight to, and taken if that is lower.
    """
    H, g, w = gram * np.multiply.outer(signs, signs), slope * signs, coef * signs
    left, free, releases = np.arange(len(w)), has_origin and w.sum() < radius * (1 - NO_WEIGHT), has_origin
    for _ in range(CYCLES * len(w)):
        here, inner = w[left], H[np.ix_(left, left)]
        way = direction(inner, g[left], free)
        with np.errstate(divide="ignore", invalid="ignore"):
            ends = np.where(way < 0, here / -way, np.inf)
        rise, room = float(way.sum()), max(0.0, radius - float(w.sum()))
        t = min(1.0, float(ends.min()), room / rise if free and rise > 0 else np.inf)
        there, stay = np.where(ends > t, here + t * way, 0.0), ends > t
        if t < 1.0:
            bold = np.maximum(here + way, 0.0)
            bold *= radius / bold.sum() if not free or bold.sum() > radius else 1.0
            if rise_of(inner, g[left], bold - here) < rise_of(inner, g[left], there - here):
                there, stay = bold, bold > 0
        w[left], g = there, g + H[:, left] @ (there - here)
        if t == 1.0 and (free or not releases or g[left].mean() <= 0):
            break
        releases &= t > 0.0 or not free or not stay.all()  # else by rounding alone
        free = has_origin and (t == 1.0 or w.sum() < radius * (1 - NO_WEIGHT))
        left = left[stay]
        if len(left) == 0:
            break
    total = float(w.sum())
    return signs * w * (radius / total if total > radius or not has_origin else 1.0)


def rise_of(H: Floats, g: Floats, move: Floats) -> float:
    """How far a move raises the objective."""
    return float(g @ move + 0.5 * move @ (H @ move))


def direction(H: Floats, g: Floats, free: bool) -> Floats:
    """From a point with gradient g to the minimum; unless it is `free`, along moves whose sum is zero."""
    shifted = H if free else H + H.diagonal().mean()  # that adds a constant where sums do not change
    sizes, scaled, factor = scaled_cholesky(shifted, np.zeros(len(g)))
    if factor is None:
        sizes = np.where(sizes > 0, sizes, 1.0)
        scaled, damping = shifted / np.multiply.outer(sizes, sizes), DAMPING
    while factor is None:
        factor = try_cholesky(scaled + damping * np.eye(len(g)))
        damping *= 10.0
        if not damping < 1.0:
            raise NonFiniteError("the products of active columns are not finite")
    u, v = (both_triangles(factor, np.column_stack([g, np.ones(len(g))]) / sizes[:, None]) / sizes[:, None]).T
    return -u if free else v * (u.sum() / v.sum()) - u
