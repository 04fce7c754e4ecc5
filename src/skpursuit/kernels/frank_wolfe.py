# mypy: disable-error-code="no-untyped-def"
"""Plain Frank-Wolfe on columns of X and of X^T X that are at hand; see `selectors/gram_steps.py`."""

from typing import NamedTuple

import numpy as np
from numba import njit

EPS = float(np.finfo(np.float64).eps)


class Rules(NamedTuple):
    """What holds for all steps: an entry of X^T z is wrong by (unit + eps * roundings) * scale at most."""

    exact: bool  # steps to the minimum on the line, else 2 / (t + 2)
    signed: bool  # vertices have positive coefficients alone
    radius: float
    gap_tol: float
    reach: float  # the largest norm of predictions
    unit: float
    scale: float


@njit(cache=True, nogil=True)
def dot(a, b):
    """<a, b> in sixteen sums side by side: an order that depends on the length alone."""
    sums, whole = np.zeros(16), a.size - a.size % 16
    for i in range(0, whole, 16):
        for k in range(16):
            sums[k] += a[i + k] * b[i + k]
    for i in range(whole, a.size):
        sums[0] += a[i] * b[i]
    return sums.sum()


@njit(cache=True, nogil=True)
def largest(a):
    """The largest of some numbers."""
    tops, whole = np.full(16, a[0]), a.size - a.size % 16
    for i in range(0, whole, 16):
        for k in range(16):
            tops[k] = a[i + k] if a[i + k] > tops[k] else tops[k]
    return max(tops.max(), a[whole:].max()) if whole < a.size else tops.max()


@njit(cache=True, nogil=True, error_model="numpy")
def vanilla_steps(pick, t, rules, slots, atoms, targets, points, picks, numbers):
    """Steps from points[0], each to the next row of predictions z and X^T z; returns how many it could make.

    One ends them whose best column the bounds leave in doubt or is not in `slots`, unless it is the first and
    `pick` names it; and one with a gap so small that an exact answer has to confirm it. numbers[i] has the
    gap, the coefficient of the vertex, the step size, the new objective, and the roundings of X^T z before.
    """
    (columns, grams), (y, xty), (Z, Q) = atoms, targets, points
    scores, roundings = np.empty(xty.size), numbers[0, 4]
    for i in range(picks.size):
        z, q, j = Z[i], Q[i], pick if i == 0 else -1
        if j < 0:
            for a in range(q.size):
                scores[a] = xty[a] - q[a] if rules.signed else abs(xty[a] - q[a])
            top, close = largest(scores), 0
            margin = 2.5 * (rules.unit + EPS * roundings) * rules.scale + 4 * EPS * abs(top)
            for a in range(q.size):
                if not scores[a] < top - margin:  # NaN too
                    close, j = close + 1, a
            if close != 1:
                return i
        if slots[j] < 0:
            return i
        x, gram, r = columns[slots[j]], grams[slots[j]], z - y
        slope = dot(x, r)
        c = -rules.radius if slope > 0 and not rules.signed else rules.radius
        gap, dz = dot(r, z) - c * slope, c * x - z
        size = dot(dz, dz)
        floor = 4 * y.size * EPS * np.sqrt(dot(r, r)) * (np.sqrt(dot(z, z)) + rules.reach)
        if not (max(floor, rules.gap_tol) < gap < np.inf and size > 0.0):
            return i
        gamma = min(1.0, gap / size) if rules.exact else 2.0 / (t + i + 2.0)
        Z[i + 1], amount = z + gamma * dz, gamma * c
        for a in range(q.size):
            Q[i + 1, a] = (1.0 - gamma) * q[a] + amount * gram[a]
        r = Z[i + 1] - y
        picks[i], numbers[i] = j, np.array((gap, c, gamma, 0.5 * dot(r, r), roundings))
        roundings = (1.0 - gamma) * roundings + 4.0
    return picks.size
