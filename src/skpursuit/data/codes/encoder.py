"""How panels of codes are made: one pass over X where that can be, two where it must be.

In F order a block of four columns stays in the first cache while its extremes are found and it is encoded. In
C order X is streamed once, with scales that are predicted from every 32nd row. The range that the sample has
in a block of 512 rows tells how far entries reach: for a bell-shaped column well beyond the sample. Where the
range of the whole sample is hardly wider (uniform, binary columns) they end just beyond it; where it is much
wider the column drifts. Where the prediction failed for a column as a whole, the blocks that did it are
encoded again with their extremes, a panel at a time; where many did (heavy tails, drifts), all of X is, some
columns of a block at a time. So is X of few rows. A single entry beyond the prediction is cut off and costs
its column a little, which is measured. Columns whose largest entry is far from one are divided by a power of
two and encoded again, so that scales and errors stay within the range of float32. Threads take blocks, or in
F order ranges of columns.
"""

import numpy as np
from numpy.typing import NDArray

from skpursuit.kernels import codes as kernel
from skpursuit.kernels.codes import BLOCK_ROWS, LOW_SCALE
from skpursuit.kernels.lines import flat_rows
from skpursuit.kernels.llvm import PANEL_COLUMNS, QUAD_ROWS
from skpursuit.numerics.arrays import Floats
from skpursuit.numerics.threads import parallel_for

ENCODE_COLUMNS = 512  # of a block whose extremes are found before it is encoded, while it is in the cache
STREAMED = 2**16  # columns of a block that one call of the kernel streams
SAMPLE_STRIDE = 32  # every so many rows are in the sample: 16 of a block
PREDICTED_ROWS = 4 * BLOCK_ROWS  # fewer rows are not worth a sample
BELL_RATIO = 1.15  # times the range of a block's sample, from which that of all is as of a bell-shaped column
BELL_RANGE = 1.15  # times that range, on both sides, up to which entries have codes then: 4 deviations
MIN_BLOCK_RANGE = 0.4  # least share of a column's range that samples of a block span, if it does not drift
CLIPPED_BLOCK_RATIO = 4.0  # times the square that rounding loses, from which entries of a block were cut off
MAX_COLUMN_RATIO = 2.0  # times that square, up to which a column as a whole is good enough
MAX_FAILED_PANELS = 0.25  # share of failed predictions from which all panels are encoded with extremes
# Columns whose largest entry is not in between are encoded in other units.
ENCODABLE_RANGE = 2.0**-20, 2.0**60

Item = tuple[int, int, int]  # a block, its first column, and the number of columns


class CodeEncoder:
    """Arrays of codes while columns are encoded into them."""

    def __init__(self, X: Floats, fine: bool = False, with_totals: bool = False) -> None:
        n, d = X.shape
        self.X = X
        panels, blocks = -(-d // PANEL_COLUMNS), -(-n // BLOCK_ROWS)
        wide = panels * PANEL_COLUMNS
        shape = panels, -(-n // 16) * 4, PANEL_COLUMNS, QUAD_ROWS
        self.codes = np.empty(shape, np.uint8)
        self.fine = np.empty(shape, np.uint8) if fine else np.empty(0, bool)
        self.scale, self.inverse_scale = (np.zeros((blocks, wide), np.float32) for _ in range(2))
        self.centre, self.peak = (np.zeros((blocks, wide)) for _ in range(2))
        self.sums = np.zeros((2 + fine, blocks, wide), np.float32)  # see `EncoderArrays`
        self.totals = np.zeros((blocks, wide) if with_totals else (0, 0))
        frames = self.scale, self.centre, self.inverse_scale, self.peak, self.sums
        self.arrays = kernel.EncoderArrays(*frames, self.codes, self.fine, self.totals)
        self.exponent = np.zeros(d, np.intc)
        self.rows = np.diff(np.append(np.arange(0, n, BLOCK_ROWS), n))  # of the blocks

    def build(self) -> dict[str, np.ndarray]:
        """The arrays of the codes, by name."""
        if self.X.size:
            self.encode_all()
        d, peak = self.X.shape[1], self.peak.max(axis=0, initial=0.0)
        if not np.isfinite(peak).all():
            raise ValueError("matrix is not finite")
        odd = (peak > 0.0) & ((peak < ENCODABLE_RANGE[0]) | (peak > ENCODABLE_RANGE[1]))
        if odd.any():  # encode panels with such columns again, in other units
            self.exponent[odd[:d]] = np.frexp(peak[:d][odd[:d]])[1]
            for first in np.unique(np.flatnonzero(odd[:d]) // PANEL_COLUMNS * PANEL_COLUMNS).tolist():
                self.encode_copy(first, min(first + PANEL_COLUMNS, d))
        error = self.errors()
        if not np.isfinite(error).all():  # a NaN is in no extremum, but in the sum of squares
            raise ValueError("matrix is not finite")
        if odd.any():  # entries that other units may have pushed below the smallest number
            flat = odd & (self.scale == 0.0)
            self.scale[flat] = LOW_SCALE
            error[:, flat] += 2.0**-100
        squares = self.scale[:, :d].astype(np.float64) ** 2
        norms = np.sqrt((squares * self.sums[1, :, :d]).sum(axis=0)) * (1.0 + 2.0**-40)
        if self.fine.size:  # a second byte is up to half of a unit of the first
            norms += 0.5 * np.sqrt(BLOCK_ROWS * squares.sum(axis=0))
        frames = {"scale": self.scale, "centre": self.centre, "error": error, "norms": norms}
        codes = {"codes": self.codes, "second_byte": self.fine.view(np.uint8)}
        return codes | frames | {"exponent": self.exponent}

    @np.errstate(all="ignore")
    def errors(self) -> NDArray[np.float32]:
        """(1 or 2, blocks, columns): bounds of what one byte and both lose, wide enough for float32 here."""
        error = np.sqrt(self.sums[::2])
        error[1:] += np.float32(2.0**-19) * error[0]
        error *= np.float32(1.0 + 2.0**-13)
        error += np.sqrt(self.rows, dtype=np.float32)[:, None] * np.float32(2.0**-14 * (1.0 + 2.0**-10))
        error *= self.scale
        return error

    def encode_all(self) -> None:
        """Encode X as it lies in memory."""
        (n, d), by_columns = self.X.shape, flat_rows(self.X.T)
        if by_columns is not None:
            flat, stride = by_columns

            def task(lo: int, hi: int) -> None:
                copy, span = (
                    np.empty(QUAD_ROWS * BLOCK_ROWS, flat.dtype),
                    np.empty((2, QUAD_ROWS), flat.dtype),
                )
                held = copy.view()
                held.flags.writeable = False  # as memory of X: one compiled kernel for both
                kernel.encode_f_order(lo, hi, flat, stride, self.X.shape, (copy, held, span), self.arrays)

            parallel_for(task, self.scale.shape[1], PANEL_COLUMNS, self.X.size, ())
            return
        even = 0 if flat_rows(self.X) is None else d - d % PANEL_COLUMNS
        if even and (n < PREDICTED_ROWS or not self.encode_predicted(even)):
            self.encode(self.every_block(0, even, ENCODE_COLUMNS), self.X, extremes=True)
        for first in range(even, d, ENCODE_COLUMNS):
            self.encode_copy(first, min(first + ENCODE_COLUMNS, d))

    def every_block(self, first: int, last: int, width: int) -> list[Item]:
        """All blocks of the columns from first to last, by block."""
        starts = range(first, last, width)
        return [(b, j, min(width, last - j)) for b in range(len(self.rows)) for j in starts]

    def encode_predicted(self, even: int) -> bool:
        """Encode the columns up to `even` with predicted scales; False where too many would fail."""
        odd, items = self.predict(even), self.every_block(0, even, STREAMED)
        first = items[: len(items) // len(self.rows)]
        loss = self.sums[0, :, :even]
        limits = self.rows[:, None].astype(np.float32) * (CLIPPED_BLOCK_RATIO / 12.0)
        self.encode(first, self.X)
        tails = panels_of(odd | ~(loss[:1] <= limits[:1]))
        if len(tails) > MAX_FAILED_PANELS * (even // PANEL_COLUMNS):  # they show at once
            return False
        self.encode(items[len(first) :], self.X)
        failed = ~(loss.sum(axis=0) <= MAX_COLUMN_RATIO * limits.sum())
        listed = panels_of(odd | (failed & ~(loss <= limits)))
        if len(listed) > MAX_FAILED_PANELS * loss.size / PANEL_COLUMNS:
            return False
        self.encode(listed, self.X, extremes=True)
        return True

    @np.errstate(all="ignore")
    def predict(self, even: int) -> NDArray[np.bool_]:
        """Frames of the columns up to `even` from a sample of rows; those that drift or have odd sizes."""
        # Scales are such that the extremes of the sample, and values that cut the range between them into 2,
        # 3, 4, 6 or 12 equal parts, have codes without error.
        span = np.empty((2, len(self.rows), even), self.X.dtype)
        for b, (low, high) in enumerate(zip(*span)):
            rows = self.X[b * BLOCK_ROWS : (b + 1) * BLOCK_ROWS : SAMPLE_STRIDE, :even]
            rows.min(axis=0, out=low)
            rows.max(axis=0, out=high)
        peak = np.maximum(-span[0], span[1], out=self.peak[:, :even]).max(axis=0)
        full = self.X.shape[0] // BLOCK_ROWS
        below, above = span[:, :full].mean(axis=1, dtype=np.float64)
        low, high = span[0].min(axis=0).astype(np.float64), span[1].max(axis=0).astype(np.float64)
        wide, usual = high - low, above - below
        bell = wide > BELL_RATIO * usual
        c = 0.5 * np.where(bell, below + above, low + high)
        reach = np.maximum(high - c, c - low)
        reach = np.where(bell, np.maximum(BELL_RANGE * usual, 1.05 * reach), 1.1 * reach)
        steps = 12.0 * np.maximum(np.floor(wide / reach * (127.0 / 12.0)), 1.0)
        s = np.fmax((wide / steps).astype(np.float32), np.float32(LOW_SCALE))
        self.centre[:, :even] = (low + np.rint((c - low) / s) * s).astype(self.X.dtype)
        self.scale[:, :even], self.inverse_scale[:, :even] = s, 1.0 / s
        ordinary = ((ENCODABLE_RANGE[0] < peak) & (peak < ENCODABLE_RANGE[1] / 16.0)) | (peak == 0.0)
        return ~(ordinary & (usual >= MIN_BLOCK_RANGE * wide))

    def encode(self, items: list[Item], X: Floats, shift: int = 0, extremes: bool = False) -> None:
        """Encode some blocks in the frames that they have, or in those of their extremes.

        Column j of the codes is column j - shift of X, whose columns are adjacent in memory.
        """
        memory = flat_rows(X)
        assert memory is not None
        flat, stride = memory

        def task(lo: int, hi: int) -> None:
            for b, first, count in items[lo:hi]:
                at = b * BLOCK_ROWS * stride + first - shift
                if extremes:
                    span = np.empty((2, count), X.dtype)
                    kernel.min_max_of_rows(flat, at, stride, self.rows[b], *span)
                    self.set_affine(b, slice(first, first + count), *span)
                kernel.encode_block(b, first, count, flat, at, stride, len(X), self.arrays)

        parallel_for(task, len(items), 1, BLOCK_ROWS * sum(count for _, _, count in items), ())

    @np.errstate(all="ignore")
    def set_affine(self, b: int, at: slice, low: Floats, high: Floats) -> None:
        """From the extremes, the centre and scale of some columns of a block; 0 for constant ones."""
        c = 0.5 * (low + high).astype(np.float64)  # numbers of the type of X
        half = np.maximum(high - c, c - low)
        s = np.maximum((half * ((1.0 + 2.0**-20) / 127.0)).astype(np.float32), np.float32(LOW_SCALE))
        self.centre[b, at], self.peak[b, at], self.sums[:, b, at] = c, np.maximum(-low, high), 0.0
        self.scale[b, at] = np.where(half > 0.0, s, 0.0)
        self.totals[b : b + 1, at] = 0.0
        self.inverse_scale[b, at] = np.where(half > 0.0, 1.0 / s, 0.0)

    def encode_copy(self, first: int, last: int) -> None:
        """Encode some columns, from the first of a panel on, from a copy of them in C order."""
        # Columns with an exponent are divided by two to that power. The last column fills up the last panel.
        wide = -(-(last - first) // PANEL_COLUMNS) * PANEL_COLUMNS
        cols = np.minimum(np.arange(first, first + wide), self.X.shape[1] - 1)
        exponent = self.exponent[cols]
        copy = np.empty((self.X.shape[0], wide), np.float64 if exponent.any() else self.X.dtype)
        copy[:] = self.X[:, cols]
        if exponent.any():
            np.ldexp(copy, -exponent, out=copy)
        self.encode(self.every_block(first, first + wide, ENCODE_COLUMNS), copy, first, extremes=True)


def panels_of(found: NDArray[np.bool_]) -> list[Item]:
    """The panels of blocks, (blocks, columns), in which a column is marked."""
    places = np.unique(np.flatnonzero(found) // PANEL_COLUMNS) * PANEL_COLUMNS
    return [(*divmod(place, found.shape[1]), PANEL_COLUMNS) for place in places.tolist()]
