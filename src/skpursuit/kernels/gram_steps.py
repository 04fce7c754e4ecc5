# mypy: disable-error-code="no-untyped-def"
"""Steps on columns of X and of X^T X that are at hand: plain Frank-Wolfe, and pursuit among some columns."""

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


fast = njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})


@fast
def clear_best(q, targets, signed, error, scores):
    """The column whose score is the largest, whatever X^T z is wrong by; -1 where that leaves several."""
    tops, top, whole = np.full(16, -np.inf), -np.inf, q.size - q.size % 16
    for i in range(0, whole, 16):
        for k in range(16):
            score = targets[i + k] - q[i + k]
            score = score if signed else abs(score)
            scores[i + k], tops[k] = score, score if score > tops[k] else tops[k]
    for a in range(whole, q.size):
        scores[a] = targets[a] - q[a] if signed else abs(targets[a] - q[a])
        top = scores[a] if scores[a] > top else top
    top = max(top, tops.max())
    least, close, sum_of_close = top - error - 4 * EPS * abs(top), 0, 0
    for a in range(q.size):  # a sum and no branch, for vectors of columns
        near = not scores[a] < least  # NaN too
        close += near
        sum_of_close += a if near else 0
    return sum_of_close if close == 1 else -1


@fast
def vanilla_steps(pick, t, rules, slots, atoms, targets, points, picks, numbers):
    """Steps from points[0], each to the next row of predictions z and X^T z; returns how many it could make.

    One ends them whose best column the bounds leave in doubt or is not in `slots`, unless it is the first and
    `pick` names it; and one with a gap so small that an exact answer has to confirm it. numbers[i] has the
    gap, the coefficient of the vertex, the step size, the new objective, and the roundings of X^T z before.
    Each loop stands once, so that a step has the same bits wherever in a batch it is made.
    """
    (columns, grams), (y, xty), (Z, Q) = atoms, targets, points
    scores, dz, roundings = np.empty(xty.size), np.empty(y.size), numbers[0, 4]
    for i in range(picks.size + 1):
        z, q, r_r, r_z, z_z = Z[i], Q[i], 0.0, 0.0, 0.0
        for a in range(y.size):
            r_r += (z[a] - y[a]) * (z[a] - y[a])
            r_z += (z[a] - y[a]) * z[a]
            z_z += z[a] * z[a]
        if i > 0:
            numbers[i - 1, 3] = 0.5 * r_r
        if i == picks.size:
            return i
        j = pick if i == 0 else -1
        if j < 0:
            j = clear_best(q, xty, rules.signed, 2.5 * (rules.unit + EPS * roundings) * rules.scale, scores)
        if j < 0 or slots[j] < 0:
            return i
        x, gram, slope, size = columns[slots[j]], grams[slots[j]], 0.0, 0.0
        for a in range(y.size):
            slope += x[a] * (z[a] - y[a])
        c = -rules.radius if slope > 0 and not rules.signed else rules.radius
        for a in range(y.size):
            dz[a] = c * x[a] - z[a]
            size += dz[a] * dz[a]
        gap, floor = r_z - c * slope, 4 * y.size * EPS * np.sqrt(r_r) * (np.sqrt(z_z) + rules.reach)
        if not (max(floor, rules.gap_tol) < gap < np.inf and size > 0.0):
            return i
        gamma = min(1.0, gap / size) if rules.exact else 2.0 / (t + i + 2.0)
        for a in range(y.size):
            Z[i + 1, a] = z[a] + gamma * dz[a]
        for a in range(q.size):
            Q[i + 1, a] = (1.0 - gamma) * q[a] + gamma * c * gram[a]
        picks[i], numbers[i, 0], numbers[i, 1], numbers[i, 2], numbers[i, 4] = j, gap, c, gamma, roundings
        roundings = (1.0 - gamma) * roundings + 4.0
    return picks.size


@njit(cache=True, nogil=True, error_model="numpy")
def omp_on_gram(gram, c, sizes, least, order, rows, amounts):
    """Greedy least squares on columns with products `gram`, from their products `c` with the residual.

    Stops after ``len(order)`` columns, where no product reaches `least`, or where a column leaves less than
    a thousandth of its squared norm (`sizes`) beside those before it. Returns how many columns it took.
    order[t] is the t-th of them, rows[t] the products of all columns with the t-th orthonormal direction, and
    amounts[t] that of the residual with it; c is changed to the products with what is left.
    """
    count = c.shape[0]
    for t in range(order.shape[0]):
        best, most = -1, 0.0
        for a in range(count):
            taken = False
            for s in range(t):
                taken |= order[s] == a
            if abs(c[a]) > most and not taken:
                best, most = a, abs(c[a])
        if best < 0 or most < least:
            return t
        row = rows[t]
        for a in range(count):  # assigning the slice would compile for two seconds
            row[a] = gram[best, a]
        for s in range(t):
            share = rows[s, best]
            for a in range(count):
                row[a] -= share * rows[s, a]
        if not row[best] > 1e-3 * sizes[best]:
            return t
        norm = np.sqrt(row[best])
        amount = c[best] / norm
        for a in range(count):
            row[a] /= norm
            c[a] -= amount * row[a]
        order[t], amounts[t] = best, amount
    return order.shape[0]
