"""Residuals divided by powers of two before they are multiplied with codes, and products scaled back."""

import numpy as np
from numpy.typing import NDArray

from skpursuit.kernels.code_encode import BLOCK_ROWS
from skpursuit.numerics.arrays import Floats
from skpursuit.numerics.error_bounds import guard_underflow
from skpursuit.numerics.float_range import NonFiniteError

SLACK_UNIT = 2.0**-51  # four rounding units of float64: room for what is not counted one by one
SQRT_BLOCK_ROWS = BLOCK_ROWS**0.5  # the 1-norm of a block is at most this times its 2-norm


def undo_normalization(
    g: Floats,
    bound: NDArray[np.float64],
    of_rows: NDArray[np.intc],
    of_columns: NDArray[np.intc],
    blocks: int,
) -> tuple[Floats, NDArray[np.float64]]:
    """Estimates and bounds times two to these powers; bounds wider by the rounding of their own sums."""
    wider = 1.0 + (blocks + 16) * SLACK_UNIT
    power = of_rows[:, None] + (of_columns if of_columns.any() else 0)
    if np.abs(power).max(initial=0) < 400:
        factor = np.ldexp(1.0, power)
        return g * factor, guard_underflow(bound * (factor * wider), bound)
    g, above = np.ldexp(g, power), guard_underflow(np.ldexp(bound * wider, power), bound)
    return g, np.where(np.isfinite(g), above, np.inf)


def normalize_residual(r: Floats, n: int) -> tuple[NDArray[np.float64], NDArray[np.intc]]:
    """The targets of r as rows, each divided by two to a power so that it is below one."""
    r = np.asarray(r, np.float64)
    if r.shape[0] != n:
        raise ValueError(f"residual has {r.shape[0]} rows, the codes {n}")
    columns = np.atleast_2d(r.T)
    top = np.abs(columns).max(axis=1, initial=0.0)
    if not np.isfinite(top).all():
        raise NonFiniteError("residual is not finite")
    exponent = np.frexp(top)[1]
    if np.abs(exponent).max(initial=0) < 1000:
        return columns * np.ldexp(1.0, -exponent)[:, None], exponent
    return np.ldexp(columns, -exponent[:, None]), exponent  # the power itself would leave the float range
