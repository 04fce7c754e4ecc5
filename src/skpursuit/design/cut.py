"""Residuals cut into 16-bit integers, block by block, and what that and all later rounding may lose."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from skpursuit.kernels import quantized as kernel

Floats = NDArray[np.floating]

UNIT = 2.0**-51  # four rounding units of float64: room for what is not counted one by one
FINE_LOSS = 1.01 / 256.0  # what both bytes leave of an entry, in scales
ROOT = kernel.ROWS**0.5  # the 1-norm of a block is at most this times its 2-norm
TINY = 1e-323


@dataclass(frozen=True)
class Cut:
    """Residuals scaled below one, cut into 16-bit integers, with sums of each block; see `cut_residual`."""

    whole: NDArray[np.int16]
    head: NDArray[np.float64]
    sums: NDArray[np.float64]
    exponent: NDArray[np.intc]
    shape: tuple[int, ...]

    @classmethod
    def of(cls, r: Floats, rows: int, n: int) -> Self:
        scaled, exponent = scaled_down(r, n, rows)
        m = len(scaled)
        blocks = -(-rows // kernel.ROWS)
        whole = np.empty((m, rows), np.int16)
        head = np.zeros((m, kernel.TABLE, blocks))
        sums = np.zeros((m, 3, blocks))
        for k in range(m):
            kernel.cut_residual(scaled[k], whole[k], head[k], sums[k])
        return cls(whole, head, sums, exponent, np.shape(r)[1:])

    def table(self, stochastic: bool, tail: bool) -> NDArray[np.float64]:
        """Coefficients of `estimate_columns`; with `tail` the loss of the codes is left to the variance."""
        one, two, lost = self.sums[:, 0], self.sums[:, 1], self.sums[:, 2]
        slack = (one.shape[1] + 8) * UNIT * one
        table = self.head
        table[:, 4] = 127.0 * (lost + 1.01 * slack)
        table[:, 5] = 2.0**-44 * one + slack
        table[:, 6] = two * two * (1.0 + 2.0**-40)
        if tail:
            table[:, 4] += FINE_LOSS * np.minimum(one, ROOT * two)
        else:
            table[:, 2] = two
            table[:, 3] = one if stochastic else 0.505 * one
        return table

    def fine_table(self) -> NDArray[np.float64]:
        """Coefficients of `refine_columns`."""
        one, two, lost = self.sums[:, 0], self.sums[:, 1], self.sums[:, 2]
        slack = (one.shape[1] + 8) * UNIT * one
        table = self.head
        table[:, 4] = FINE_LOSS * np.minimum(one, ROOT * two) + 128.0 * (lost + 1.01 * slack)
        table[:, 5] = 2.0**-44 * one + slack
        return table

    def multiplying_loss(self) -> NDArray[np.float64]:
        """For each residual, what sums of codes and of centres lose a unit of theirs; see `Twin.multiply`."""
        one, two, lost = self.sums[:, 0], self.sums[:, 1], self.sums[:, 2]
        blocks = one.shape[1]
        cut = np.sqrt((0.51 * self.head[:, 0] * lost).sum(axis=1))  # integers are off by half a step at most
        norm = np.sqrt((two * two).sum(axis=1)) + cut
        added = 2.0**-23 * norm  # in float32, once a block in each of eight lanes
        vanished = 2.0**-40 * (norm > 0.0)  # what is below the range of float32
        of_codes = cut + (blocks + 8) * (added + vanished)
        of_centres = (2.0**-43 + 2 * (blocks + 8) * UNIT) * one.max(axis=1)
        return np.stack([of_codes, of_centres], axis=1)

    def restore(
        self, g: NDArray[np.float64], bound: NDArray[np.float64], exponent: NDArray[np.intc]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Undo the scaling of matrix and residual, see `scaled_up`."""
        g, bound = scaled_up(g, bound, self.exponent, exponent, self.sums.shape[2])
        return g.T.reshape(-1, *self.shape), bound.T.reshape(-1, *self.shape)


def scaled_up(
    g: NDArray[np.float64],
    bound: NDArray[np.float64],
    of_rows: NDArray[np.intc],
    of_columns: NDArray[np.intc],
    blocks: int,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Estimates and bounds times two to these powers; bounds wider by the rounding of their own sums."""
    wider = 1.0 + (blocks + 16) * UNIT
    power = of_rows[:, None] + (of_columns if of_columns.any() else 0)
    if np.abs(power).max(initial=0) < 400:
        factor = np.ldexp(1.0, power)
        return g * factor, bound * (factor * wider)
    loose = bound > 0.0  # results may underflow or overflow
    g, bound = np.ldexp(g, power), np.ldexp(bound * wider, power)
    return g, np.where(np.isfinite(g), bound + TINY * loose, np.inf)


def scaled_down(r: Floats, n: int, padded: int | None = None) -> tuple[NDArray[np.float64], NDArray[np.intc]]:
    """The targets of r as rows, padded by zeros, each divided by two to a power so that it is below one."""
    r = np.asarray(r, np.float64)
    if r.shape[0] != n:
        raise ValueError(f"residual has {r.shape[0]} rows, the twin {n}")
    columns = np.atleast_2d(r.T)
    top = np.abs(columns).max(axis=1, initial=0.0)
    if not np.isfinite(top).all():
        raise ValueError("residual is not finite")
    exponent = np.frexp(top)[1]
    scaled = np.empty((len(columns), padded or n))
    scaled[:, n:] = 0.0
    if np.abs(exponent).max(initial=0) < 1000:
        np.multiply(columns, np.ldexp(1.0, -exponent)[:, None], out=scaled[:, :n])
    else:  # the power itself would leave the float range
        np.ldexp(columns, -exponent[:, None], out=scaled[:, :n])
    return scaled, exponent
