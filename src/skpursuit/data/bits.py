"""The sketch of a dense matrix: two bits an entry, for a guess at X^T r that proves nothing.

The first bit of an entry tells on which side of its column's centre it lies, the second whether it is near or
far. Sums of signs are population counts of an exclusive-or, so a guess reads a 64th of the bytes that an
exact product reads. Levels are fitted to a sample of rows and to the mean deviation of all.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from skpursuit.data.quantized import SLAB, Cost
from skpursuit.kernels import bits as kernel
from skpursuit.kernels.encode import copy_columns
from skpursuit.numerics.arrays import Floats
from skpursuit.numerics.threads import over_ranges

SAMPLE = 128  # rows from which thresholds and levels are taken


@dataclass(frozen=True)
class PackedBits:
    """Two bits an entry and three levels a column.

    `estimate` reads the first bit of all columns, `refine` both bits of a few. On Gaussian data the error of
    an entry is about 0.65 and 0.4 standard deviations of X^T r over columns; skewed or
    heavy-tailed columns do worse.

    Attributes
    ----------
    signs, sizes : (columns, words) uint64, the first and the second bits
    fit : (4, columns); x is about fit[0] + fit[1] s1, or fit[0] + fit[2] s1 + fit[3] s2
    shape : (rows, columns) of the matrix
    """

    signs: NDArray[np.uint64]
    sizes: NDArray[np.uint64]
    fit: NDArray[np.float64]
    shape: tuple[int, int]

    @classmethod
    def build(cls, X: Floats) -> Self:
        """Pack a finite 2-D float32 or float64 array of any layout, reading it once."""
        n, d = X.shape
        words = -(-n // kernel.ALIGN) * kernel.ALIGN // kernel.WORD
        signs, sizes = np.zeros((2, d, words), np.uint64)
        fit = np.zeros((4, d))
        rows = np.unique(np.linspace(0, max(n - 1, 0), SAMPLE).astype(np.intp))

        def task(lo: int, hi: int) -> None:
            panel, first = X, lo
            if not X.flags.c_contiguous:
                panel, first = np.empty((n, hi - lo), X.dtype), 0
                copy_columns(X, lo, hi - lo, panel)
            edges, totals = np.empty((2, hi - lo), X.dtype), np.zeros(hi - lo, X.dtype)
            for p in range(0, hi - lo, kernel.WIDTH):
                part = slice(p, min(p + kernel.WIDTH, hi - lo))
                kernel.fit_columns(panel, rows, first + p, edges[:, part], fit[:, lo:hi][:, part])
            kernel.pack_columns(panel, first, edges, signs[lo:hi], sizes[lo:hi], totals)
            if not np.isfinite(totals).all() and not np.isfinite(X[:, lo:hi]).all():
                raise ValueError("matrix is not finite")
            # The mean deviation of all rows is known now, and closer than that of the sample.
            known = np.isfinite(totals) & (fit[1, lo:hi] > 0)
            fit[1:, lo:hi] *= np.divide(totals / n, fit[1, lo:hi], out=np.ones(hi - lo), where=known)

        if n:
            over_ranges(task, d, kernel.WIDTH, X.size, ())
        return cls(signs, sizes, fit, (n, d))

    @classmethod
    def joined(cls, parts: list[Self]) -> Self:
        """The sketch of matrices side by side, from theirs."""
        signs, sizes = (
            np.concatenate([getattr(part, name) for part in parts]) for name in ("signs", "sizes")
        )
        fit = np.concatenate([part.fit for part in parts], axis=1)
        return cls(signs, sizes, fit, (parts[0].shape[0], fit.shape[1]))

    @property
    def peak(self) -> float:
        """A guess at the size of the largest entries."""
        return float(np.abs(self.fit).max(initial=0.0))

    @property
    def nbytes(self) -> int:
        """Memory held: a quarter of a byte an entry and 32 bytes a column."""
        return self.signs.nbytes + self.sizes.nbytes + self.fit.nbytes

    @property
    def estimate_cost(self) -> Cost:
        """What `estimate` reads."""
        n, d = self.shape
        return Cost(n * d, self.signs.nbytes + 2 * self.fit[0].nbytes)

    def refine_cost(self, columns: int) -> Cost:
        """What `refine` reads for this many columns."""
        words = 2 * self.signs.itemsize * self.signs.shape[1]
        return Cost(self.shape[0] * columns, columns * (words + 3 * self.fit.itemsize))

    def estimate(self, r: Floats) -> NDArray[np.float64]:
        """Guess X^T r for r of shape (n,) from the first bits."""
        n, d = self.shape
        out = np.empty(d)
        args = (self.signs, self.fit, *self._packed(r), out)
        over_ranges(kernel.guess_all, d, SLAB, n * d // 32, args)
        return out

    def refine(self, r: Floats, cols: NDArray[np.intp]) -> NDArray[np.float64]:
        """Guess X[:, cols]^T r from both bits."""
        cols = np.asarray(cols, np.intp)
        out = np.empty(cols.size)
        args = (cols, self.signs, self.sizes, self.fit, *self._packed(r), out)
        over_ranges(kernel.guess_some, cols.size, SLAB, cols.size * self.shape[0] // 8, args)
        return out

    def _packed(self, r: Floats) -> tuple[NDArray[np.uint64], float, int, float]:
        """A residual in sign and magnitude bits, its step, the sum of its levels and its own sum."""
        bits = np.empty((1 + kernel.MAGNITUDES, self.signs.shape[1]), np.uint64)
        return bits, *kernel.quantize(np.ascontiguousarray(r, np.float64), bits)
