"""How panels of codes are made: one pass over X where that can be, two where it must be.

In F order a block of four columns stays in the first cache while its extremes are found and it is encoded. In
C order X is streamed once, with scales that are predicted from a sample of its rows. Where the prediction
failed for a column as a whole, the blocks that did it are encoded again with their extremes, a panel at a
time; where many did (heavy tails, drifts), all of X is, 512 columns of a block at a time. So is X of few
rows. A single entry beyond the prediction is cut off and costs its column a little, which is measured.
Columns whose largest entry is far from one are divided by a power of two and encoded again, so that scales
and errors stay within the range of float32. Threads take ranges of columns, or of blocks of whole rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skpursuit.kernels import panels as kernel
from skpursuit.kernels.panel_vectors import PANEL, QUAD
from skpursuit.kernels.rows import flat_rows
from skpursuit.numerics.arrays import Floats
from skpursuit.numerics.lent import lent
from skpursuit.numerics.threads import over_ranges

PREDICTED_ROWS = 4 * kernel.ROWS  # fewer rows are not worth a sample
TOLERATED = 1.5  # times the usual loss of a column up to which it may be due to entries that were cut off
FAILED = 0.25  # share of panels whose prediction fails from which all are encoded with their extremes


class PanelEncoder:
    """Arrays of codes while columns are encoded into them."""

    def __init__(self, X: Floats, fine: bool = False) -> None:
        n, d = X.shape
        self.X = X
        panels, blocks = -(-d // PANEL), -(-n // kernel.ROWS)
        wide = panels * PANEL
        shape = panels, -(-n // 16) * 4, PANEL, QUAD
        self.codes = lent(shape, np.uint8)
        self.fine = lent(shape, np.uint8) if fine else np.empty(0, bool)
        self.scale, self.error = (lent((k, blocks, wide), np.float32) for k in (1, 1 + fine))
        self.scale, (self.centre, self.squares) = self.scale[0], lent((2, blocks, wide), np.float64)
        for frame in (self.scale, self.centre, self.error, self.squares):
            frame.fill(0.0)
        self.peak, self.exponent = np.zeros(wide), np.zeros(d, np.intc)

    def build(self) -> dict[str, Any]:
        """The arrays of the codes, by name."""
        if self.X.size:
            self.encode_all()
        if not np.isfinite(self.peak).all():
            raise ValueError("matrix is not finite")
        low, high = kernel.PEAKS
        odd = (self.peak > 0.0) & ((self.peak < low) | (self.peak > high))
        if odd.any():
            self.encode_odd(odd)
        if not np.isfinite(self.error).all():  # a NaN is in no extremum, but in the sum of squares
            raise ValueError("matrix is not finite")
        d = self.X.shape[1]
        norms = np.sqrt(self.squares.sum(axis=0))[:d] * (1.0 + 2.0**-40)
        if self.fine.size:  # a second byte is up to half of a unit of the first
            norms += 0.5 * np.sqrt(kernel.ROWS * (self.scale[:, :d].astype(np.float64) ** 2).sum(axis=0))
        used = (self.scale.any(axis=0) | self.centre.any(axis=0))[:d]
        peak = float(np.ldexp(low, self.exponent[used].max())) if used.any() else 0.0
        frames = {"scale": self.scale, "centre": self.centre, "error": self.error, "norms": norms}
        codes = {"codes": self.codes, "fine": self.fine.view(np.uint8)}
        return codes | frames | {"exponent": self.exponent, "peak": peak}

    def encode_all(self) -> None:
        """Encode X as it lies in memory."""
        (n, d), by_columns, memory = self.X.shape, flat_rows(self.X.T), flat_rows(self.X)
        if by_columns is not None:
            self.by_columns(*by_columns)
            return
        even = 0 if memory is None else d - d % PANEL
        if memory is not None and even and (n < PREDICTED_ROWS or not self.predicted(memory, even)):
            self.with_extremes(self.every_block(0, even), *memory)
        for first in range(even, d, kernel.WIDTH):
            self.encode_copy(first, min(first + kernel.WIDTH, d))

    def by_columns(self, flat: Floats, stride: int) -> None:
        """Encode all columns, which are `stride` entries apart."""
        (n, d), frames = self.X.shape, self.frames(flat.dtype)
        outputs = self.scale, self.centre, self.error, self.squares, self.peak

        def task(lo: int, hi: int) -> None:
            copy = np.empty(QUAD * kernel.ROWS, flat.dtype)
            args: tuple[Any, ...] = (flat, stride, n, d, self.codes, self.fine, copy, *frames, *outputs)
            kernel.encode_by_columns(lo, hi, *args)

        over_ranges(task, len(self.peak), PANEL, self.X.size, ())

    def frames(self, dtype: Any) -> tuple[NDArray[Any], ...]:
        """Scratch, an entry for each column: centres, factors, sums of squares and extremes."""
        wide = len(self.peak)
        single = np.float32
        return (
            np.empty(wide, dtype),
            np.empty(wide, single),
            np.empty((3, wide), single),
            np.empty((2, wide), dtype),
        )

    def predicted(self, memory: tuple[Floats, int], even: int) -> bool:
        """Encode the columns up to `even` with predicted scales; False where too many would fail."""
        n, blocks = self.X.shape[0], len(self.scale)
        frame, factor, _, span = self.frames(self.X.dtype)
        block, moments = np.empty_like(span), np.empty((3, len(frame)))
        doubt = np.zeros((blocks, even // PANEL), bool)
        sizes = np.diff(np.append(np.arange(0, n, kernel.ROWS), n))
        sampled = 2 * int((-(-sizes // (2 * kernel.SAMPLED))).sum())

        def predict(lo: int, hi: int) -> None:
            kernel.sample_span(lo, hi, *memory, n, span, block, moments)
            outputs = frame, factor, self.scale, self.centre, self.peak, doubt
            kernel.predict(lo, hi, memory[0], span, moments, sampled, *outputs)

        def encode(first: int, last: int) -> None:
            tail, work = np.empty((QUAD, len(frame)), self.X.dtype), np.empty((3, len(frame)), np.float32)
            given = (*memory, n, first, last, frame, factor, self.codes, self.fine, tail, work)
            kernel.encode_stream(0, even, *given, self.scale, self.error, self.squares, doubt)

        over_ranges(predict, even, kernel.WIDTH, sampled * even, ())
        odd = doubt[0].copy()
        if odd.mean() > FAILED:
            return False
        encode(0, 1)  # heavy tails show in the first block
        if doubt[0].mean() > FAILED:
            return False
        over_ranges(lambda lo, hi: encode(lo + 1, hi + 1), blocks - 1, 1, self.X.size, ())  # whole rows
        usual = np.sqrt(sizes / 12.0) @ self.scale[:, :even]
        failed = self.error[0, :, :even].sum(axis=0) > TOLERATED * usual
        doubt &= odd | failed.reshape(-1, PANEL).any(axis=1)
        if doubt.mean() > FAILED:
            return False
        again = np.argwhere(doubt)
        listed = np.column_stack([again[:, 0], again[:, 1] * PANEL, np.full(len(again), PANEL)])
        self.with_extremes(listed, *memory)
        return True

    def every_block(self, first: int, last: int) -> NDArray[np.intp]:
        """All blocks of the columns from first to last."""
        starts = range(first, last, kernel.WIDTH)
        blocks = range(len(self.scale))
        return np.array([(b, j, min(kernel.WIDTH, last - j)) for b in blocks for j in starts], np.intp)

    def with_extremes(self, listed: NDArray[np.intp], flat: Floats, stride: int, shift: int = 0) -> None:
        """Encode some blocks with their own extremes, from memory whose rows are `stride` entries apart."""
        if not len(listed):
            return
        frames = self.frames(flat.dtype)
        tail = np.empty((QUAD, len(self.peak)), flat.dtype)
        outputs = self.scale, self.centre, self.error, self.squares, self.peak
        args = (listed, flat, stride, self.X.shape[0], shift, self.codes, self.fine, tail, *frames, *outputs)
        entries = int(listed[:, 2].sum()) * kernel.ROWS
        over_ranges(kernel.encode_blocks, len(self.peak), kernel.WIDTH, entries, args)

    def encode_copy(self, first: int, last: int) -> None:
        """Encode some columns, from the first of a panel on, from a copy of them in C order.

        Columns with an exponent are divided by two to that power. The last column fills up the last panel.
        """
        wide = -(-(last - first) // PANEL) * PANEL
        cols = np.minimum(np.arange(first, first + wide), self.X.shape[1] - 1)
        exponent = self.exponent[cols]
        copy = np.empty((self.X.shape[0], wide), np.float64 if exponent.any() else self.X.dtype)
        copy[:] = self.X[:, cols]
        if exponent.any():
            np.ldexp(copy, -exponent, out=copy)
        copy.flags.writeable = False  # as memory of X: or else the kernel is compiled for both
        self.with_extremes(self.every_block(first, first + wide), copy.ravel(), wide, first)

    def encode_odd(self, odd: NDArray[np.bool_]) -> None:
        """Encode panels with columns whose largest entries are far from one again, in other units."""
        d = self.X.shape[1]
        self.exponent[odd[:d]] = np.frexp(self.peak[:d][odd[:d]])[1]
        for panel in np.unique(np.flatnonzero(odd) // PANEL).tolist():
            self.encode_copy(panel * PANEL, min((panel + 1) * PANEL, d))
        # Entries that the scaling may have pushed below the smallest number are covered by a tiny error.
        flat = odd & (self.scale == 0.0)
        self.scale[flat] = kernel.LOW_SCALE
        self.error[:, flat] += 2.0**-100
