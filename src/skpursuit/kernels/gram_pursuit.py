"""Pursuit on a Gram matrix; see `selectors/speculation.py`."""

import numpy as np
from numba import njit

from skpursuit.numerics.arrays import Floats, Indices


@njit(cache=True, nogil=True, error_model="numpy")
def omp_on_gram(
    gram: Floats, c: Floats, sizes: Floats, least: float, order: Indices, rows: Floats, amounts: Floats
) -> int:
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
