"""Residuals in few bits, for products with codes, and what that loses.

A product of int8 codes with a residual is exact in integers if the residual consists of integers too. So each
residual is divided by a power of two that brings it below one, and each block of 512 rows is rounded to
16-bit integers times a step of its own (`QuantizedResidual`). Sums over some rows only have the residual in
float32 instead (`RowWeights`). Both know upper bounds of what their rounding, and that of all sums made with
them, may lose: `scaled_up` returns estimates and bounds to the scale of the caller.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from skpursuit.kernels import quantized as kernel
from skpursuit.kernels.coded_rows import ROW_GROUP
from skpursuit.numerics.arrays import Floats
from skpursuit.numerics.estimate import raised
from skpursuit.numerics.finite import NotFinite
from skpursuit.numerics.scaling import VANISHED_SQUARES

UNIT = 2.0**-51  # four rounding units of float64: room for what is not counted one by one
FINE_LOSS = 1.01 / 256.0  # what two bytes leave of an entry, or dither of its mean, in scales
ROOT = kernel.ROWS**0.5  # the 1-norm of a block is at most this times its 2-norm


@dataclass(frozen=True)
class QuantizedResidual:
    """Residuals below one as 16-bit integers, with sums of each block; see `kernels.quantize_residual`."""

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
            kernel.quantize_residual(scaled[k], whole[k], head[k], sums[k])
        return cls(whole, head, sums, exponent, np.shape(r)[1:])

    def table(self, stochastic: bool, tail: bool) -> NDArray[np.float64]:
        """Coefficients of `estimate_columns`; with `tail` the loss of the codes is left to the variance."""
        one, two, rounding = self.sums[:, 0], self.sums[:, 1], self.sums[:, 2]
        slack = (one.shape[1] + 8) * UNIT * one
        table = self.head
        table[:, 4] = 127.0 * (rounding + 1.01 * slack)
        table[:, 5] = 2.0**-44 * one + slack
        table[:, 6] = two * two * (1.0 + 2.0**-40)
        if tail:
            table[:, 4] += FINE_LOSS * np.minimum(one, ROOT * two)
        else:
            table[:, 2] = two
            table[:, 3] = one if stochastic else 0.505 * one
        return table

    def restore(
        self, g: NDArray[np.float64], bound: NDArray[np.float64], exponent: NDArray[np.intc]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Undo the scaling of matrix and residual, see `scaled_up`."""
        g, bound = scaled_up(g, bound, self.exponent, exponent, self.sums.shape[2])
        return g.T.reshape(-1, *self.shape), bound.T.reshape(-1, *self.shape)


@dataclass(frozen=True)
class RowWeights:
    """Residuals on parts of the rows, for `add_rows`: segments are the rows of one part in one block.

    Attributes
    ----------
    rows, starts : the rows, segment by segment, each filled up to whole groups, and where segments start
    weights : (m, len(rows)) float32, divided by two to the power `exponent` of the residual; zero for fillers
    totals : (m, segments), sums of the weights
    loss : (2, m, parts), what sums up to the end of a part lose at most, per unit of scale and of centre
    """

    rows: NDArray[np.intp]
    starts: NDArray[np.intp]
    weights: NDArray[np.float32]
    totals: NDArray[np.float64]
    loss: NDArray[np.float64]
    exponent: NDArray[np.intc]

    @classmethod
    def of(cls, r: Floats, parts: Sequence[NDArray[np.integer]], n: int, blocks: int) -> Self:
        scaled, exponent = scaled_down(r, n)
        rows = np.concatenate(parts)
        segment = (
            np.repeat(np.arange(len(parts)) * blocks, [len(part) for part in parts]) + rows // kernel.ROWS
        )
        order = np.argsort(segment, kind="stable")
        rows, segment = rows[order], segment[order]
        sizes = np.bincount(segment, minlength=len(parts) * blocks)
        weights = scaled[:, rows]
        totals, one = (
            np.array([np.bincount(segment, w, len(sizes)) for w in some], np.float64)
            for some in (weights, np.abs(weights))
        )
        # Both bytes leave 1/256 of a scale; float32 sums of them lose at most a unit for each term.
        slack = (len(sizes) + 8) * UNIT
        of_scale = (FINE_LOSS + 127.0 * (2.0**-24 * (sizes + 8) + slack)) * one + 2.0**-100 * (sizes > 0)
        of_centre = (2.0**-44 + slack) * one + VANISHED_SQUARES * (sizes > 0)
        loss = np.stack([of_scale, of_centre]).reshape(2, len(weights), len(parts), blocks).sum(axis=3)
        places, starts = _filled_up(sizes)
        short = weights[:, places].astype(np.float32, order="C")
        short[:, 1:][:, places[1:] == places[:-1]] = 0.0
        return cls(rows[places], starts, short, totals, np.cumsum(loss, axis=2), exponent)


def _filled_up(sizes: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Places of the items of some segments, the last repeated up to a whole group; where segments start."""
    wide = -(-sizes // ROW_GROUP) * ROW_GROUP
    starts, first = (np.concatenate([[0], np.cumsum(some)]) for some in (wide, sizes))
    within = np.arange(starts[-1]) - np.repeat(starts[:-1], wide)
    return np.repeat(first[:-1], wide) + np.minimum(within, np.repeat(sizes - 1, wide)), starts


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
        return g * factor, raised(bound * (factor * wider), bound)
    g, above = np.ldexp(g, power), raised(np.ldexp(bound * wider, power), bound)
    return g, np.where(np.isfinite(g), above, np.inf)


def scaled_down(r: Floats, n: int, padded: int | None = None) -> tuple[NDArray[np.float64], NDArray[np.intc]]:
    """The targets of r as rows, padded by zeros, each divided by two to a power so that it is below one."""
    r = np.asarray(r, np.float64)
    if r.shape[0] != n:
        raise ValueError(f"residual has {r.shape[0]} rows, the codes {n}")
    columns = np.atleast_2d(r.T)
    top = np.abs(columns).max(axis=1, initial=0.0)
    if not np.isfinite(top).all():
        raise NotFinite("residual is not finite")
    exponent = np.frexp(top)[1]
    scaled = np.empty((len(columns), padded or n))
    scaled[:, n:] = 0.0
    if np.abs(exponent).max(initial=0) < 1000:
        np.multiply(columns, np.ldexp(1.0, -exponent)[:, None], out=scaled[:, :n])
    else:  # the power itself would leave the float range
        np.ldexp(columns, -exponent[:, None], out=scaled[:, :n])
    return scaled, exponent
