"""The codes of a dense tile: products with a residual from one byte an entry, with a proof.

In blocks of 512 rows ``x = c + s (q + l / 128) + error``: `QuantizedTile.estimate` reads the bytes q of all
columns or some, `refine` both bytes of a few, `estimate_rows` both bytes of whole rows, where these were
kept. All return intervals that hold for the product in real numbers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skpursuit.data.encoder import TileEncoder
from skpursuit.data.residual import UNIT, QuantizedResidual, RowWeights, scaled_up
from skpursuit.kernels import coded_rows
from skpursuit.kernels import quantized as kernel
from skpursuit.numerics.arrays import Floats
from skpursuit.numerics.blas import one_thread
from skpursuit.numerics.threads import over_ranges

SLAB = 64  # ranges of columns given to a thread start at multiples of this


class Cost(NamedTuple):
    """What one call reads of the stored matrix."""

    entries: int
    bytes: int


@dataclass(frozen=True)
class QuantizedTile:
    """Affine int8 codes of the columns of a dense matrix, with error bounds.

    Attributes
    ----------
    codes : (columns padded to 16, rows padded to 64) int8
    steps : (rows, columns padded to 16) int16, in 1/128 of the scale; empty unless asked for
    scale, centre, error : (columns, blocks); error bounds the 2-norm of what the codes lose in a block
    exponent : (columns,) int; the codes are those of the column divided by two to this power
    row_squares : (rows,) sums of squares, where they came with the steps
    shape : (rows, columns) of the matrix
    stochastic : whether the codes were rounded at random, which `log_delta` needs
    """

    codes: NDArray[np.int8]
    steps: NDArray[np.int16]
    scale: NDArray[np.float32]
    centre: NDArray[np.float64]
    error: NDArray[np.float32]
    exponent: NDArray[np.intc]
    row_squares: NDArray[np.float64] | None
    shape: tuple[int, int]
    stochastic: bool

    @staticmethod
    def build(X: Floats, rng: np.random.Generator | None = None, steps: bool = False) -> "QuantizedTile":
        """Encode a finite 2-D float32 or float64 array of any layout, reading it once.

        Parameters
        ----------
        X : (n, d) array
        rng : Generator, optional
            Round at random, unbiased and independently, instead of to nearest.
        steps : bool, default False
            Keep two bytes of each entry by rows, for `estimate_rows`.
        """
        return QuantizedTile(**TileEncoder(X, rng, steps).build(), shape=X.shape, stochastic=rng is not None)

    @property
    def has_steps(self) -> bool:
        """Whether two bytes were kept by rows, which `estimate_rows` needs."""
        return bool(self.steps.size)

    @property
    def nbytes(self) -> int:
        """Memory held: one or three bytes an entry and sixteen for each column of a block."""
        arrays = (self.codes, self.steps, self.scale, self.centre, self.error, self.exponent)
        return sum(a.nbytes for a in arrays)

    @property
    def _frame_bytes(self) -> int:
        """Bytes of the scales, centres and errors of one column."""
        return self.scale.shape[1] * (self.scale.itemsize + self.centre.itemsize + self.error.itemsize)

    def estimate_cost(self, columns: int | None = None) -> Cost:
        """What `estimate` reads for all columns or this many, whatever the number of residuals."""
        count = self.shape[1] if columns is None else columns
        return Cost(self.shape[0] * count, count * (self.codes.shape[1] + self._frame_bytes))

    def rows_cost(self, rows: int) -> Cost:
        """What `estimate_rows` reads for this many rows in all."""
        d = self.shape[1]
        return Cost(rows * d, d * (rows * self.steps.itemsize + self._frame_bytes))

    def estimate(
        self, r: Floats, log_delta: float | None = None, cols: NDArray[np.integer] | None = None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Estimate X^T r, or its entries at `cols`, for r of shape (n,) or (n, m), with error bounds.

        Without `log_delta`, |g - X^T r| <= bound always, rounding included. With it, each entry of the bound
        holds with probability at least 1 - exp(log_delta) over the random rounding, for r that does not
        depend on that rounding (Hoeffding: P(|error| > t) <= 2 exp(-2 t^2 / sum s_i^2 r_i^2)).
        """
        if log_delta is not None and not self.stochastic:
            raise ValueError(
                "log_delta needs codes with stochastic rounding: QuantizedTile.build(X, rng=...)"
            )
        residual = QuantizedResidual.of(r, self.codes.shape[1], self.shape[0])
        table = residual.table(self.stochastic, log_delta is not None)
        cols = np.arange(self.shape[1]) if cols is None else np.asarray(cols, np.intp)
        out = np.empty((table.shape[0], 3, cols.size))
        args = (self.codes, self.scale, self.centre, self.error, cols, residual.whole, table, out)
        work = residual.whole.size * cols.size // 4  # four codes take the time of one float64
        over_ranges(kernel.estimate_columns, cols.size, SLAB, work, args)
        bound = out[:, 1]
        if log_delta is not None:
            bound = bound + np.sqrt(0.5 * (np.log(2.0) - log_delta) * out[:, 2])
        return residual.restore(out[:, 0], bound, self.exponent[cols])

    def estimate_rows(
        self, r: Floats, parts: Sequence[NDArray[np.integer]]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Estimate sums of X[i] r[i] over the rows up to the end of each part, with error bounds.

        Returns two arrays of shape (parts, columns[, m]).
        """
        if not self.has_steps:
            raise ValueError("estimate_rows needs codes by rows: QuantizedTile.build(X, steps=True)")
        d, blocks = self.shape[1], self.scale.shape[1]
        weighted = RowWeights.of(r, parts, self.shape[0], blocks)
        plain = np.abs(weighted.exponent).max() < 400 and not self.exponent.any()
        units = np.ldexp(1.0, weighted.exponent if plain else 0 * weighted.exponent)
        out = np.empty((len(units), len(parts), d))
        out[:, 0] = 0.0
        scale, centre, most = self._by_blocks
        segments = weighted.rows, weighted.starts, weighted.weights
        args = (self.steps, scale, centre, *segments, units, weighted.totals, out)
        over_ranges(coded_rows.add_rows, d, coded_rows.ALIGN, weighted.weights.size * d // 2, args)
        loss = weighted.loss * (units * (1.0 + self._slack))[:, None]
        with one_thread():
            g, bound = out.reshape(-1, d), loss.reshape(2, -1).T @ most
        if not plain:
            g, bound = scaled_up(g, bound, np.repeat(weighted.exponent, len(parts)), self.exponent, blocks)
        shape = (len(parts), d, *r.shape[1:])
        return _targets_last(g, shape), _targets_last(bound, shape)

    @cached_property
    def _by_blocks(self) -> tuple[NDArray[np.float32], NDArray[np.float64], NDArray[np.float64]]:
        """Scales per step and centres, a row for each block; and the largest scale and centre of a column."""
        scale, centre = np.ascontiguousarray(self.scale.T), np.ascontiguousarray(self.centre.T)
        most = np.stack([scale.max(axis=0), np.abs(centre).max(axis=0)]).astype(np.float64)
        return scale / np.float32(kernel.FINE), centre, most

    @cached_property
    def peak(self) -> float:
        """A number with peak <= the largest |entry| <= 2^80 peak."""
        used = self.scale.any(axis=1) | self.centre.any(axis=1)
        return float(np.ldexp(2.0**-20, self.exponent[used].max())) if used.any() else 0.0

    @property
    def _slack(self) -> float:
        """Room for the rounding of a sum over blocks."""
        return (self.scale.shape[1] + 16) * UNIT


def _targets_last(rows: NDArray[np.float64], shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Rows for each target and part as (parts, columns[, targets])."""
    return np.moveaxis(rows.reshape(-1, *shape[:2]), 0, -1).reshape(shape)
