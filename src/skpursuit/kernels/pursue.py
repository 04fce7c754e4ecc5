"""Pursuit on a Gram matrix, and which columns it may have overlooked; see `selectors/speculation.py`."""

from typing import Any

import numpy as np
from numba import njit

WIDTH = 256  # columns that are looked at together: their numbers stay in the first cache


@njit(cache=True, nogil=True)
def pursue(gram: Any, c: Any, sizes: Any, least: float, order: Any, rows: Any, amounts: Any) -> Any:
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


@njit(cache=True, nogil=True)
def overlooked(lo, hi, g, norms, errors, wide, loss, factors, limits, first):  # type: ignore[no-untyped-def]
    """Lower first[j], for columns lo to hi, to the first step at which |x_j . r_t| may reach limits[t].

    The product lies within ``norms[t] . errors[:, j] + loss[t] . factors[:, j]`` of g[t, j]. `wide` has the
    sum of the errors of each column: with the largest of norms[t] it gives a bound that is not as tight but
    takes one multiplication, and the tight one is made only where that does not do. All numbers are float32;
    comparisons are written so that NaN counts as reaching the limit.
    """
    reach = np.empty(WIDTH, np.float32)
    for start in range(lo, hi, WIDTH):
        # Lines that begin at start: LLVM makes vectors of loops over them, but not of loops from start on.
        stop = min(start + WIDTH, hi)
        most = wide[start:stop]
        for t in range(g.shape[0]):
            limit, top, near, products = limits[t], norms[t].max(), 0, g[t, start:stop]
            for a in range(most.size):
                reach[a] = abs(products[a]) + top * most[a]
            for p in range(loss.shape[1]):
                amount, part = loss[t, p], factors[p, start:stop]
                for a in range(most.size):
                    reach[a] += amount * part[a]
            for a in range(most.size):
                near += not (reach[a] < limit)
            if near == 0:
                continue
            for a in range(most.size):
                if not (reach[a] < limit) and first[start + a] > t:
                    bound = reach[a] - top * most[a]
                    for b in range(errors.shape[0]):
                        bound += norms[t, b] * errors[b, start + a]
                    if not (bound < limit):
                        first[start + a] = t
