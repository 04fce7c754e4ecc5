"""The sketch of a dense matrix: two bits an entry, for a guess at X^T r that proves nothing."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from skpursuit.design.twin import SLAB, Cost, Floats
from skpursuit.kernels import bits as kernel
from skpursuit.kernels.encode import copy_columns
from skpursuit.kernels.threads import over_ranges

SAMPLE = 256  # rows from which thresholds and levels are taken


@dataclass(frozen=True)
class SketchTwin:
    """Two bits an entry and three levels a column.

    `estimate` reads the first bit of all columns, `refine` both bits of a few. On Gaussian data the error of
    an entry is about 0.8 and 0.4 standard deviations of X^T r over columns; skewed or
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
            edges = np.zeros((-(-(hi - lo) // kernel.WIDTH), 3 * kernel.WIDTH), X.dtype)
            for k, p in enumerate(range(lo, hi, kernel.WIDTH)):
                width = min(kernel.WIDTH, hi - p)
                kernel.fit_columns(panel, rows, first + p - lo, width, edges[k], fit[:, p : p + width])
            suspect = kernel.pack_columns(panel, first, hi - lo, edges, signs[lo:hi], sizes[lo:hi])
            if suspect and not np.isfinite(X[:, lo:hi]).all():
                raise ValueError("matrix is not finite")

        if n:
            over_ranges(task, d, kernel.WIDTH, X.size, ())
        return cls(signs, sizes, fit, (n, d))

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
        """Guess X^T r for r of shape (n,) from the first bits and a residual of seven levels."""
        everything = np.arange(self.shape[1])
        cut = _Cut.of(r, 2, self.signs.shape[1])
        return cut.total * self.fit[0] + cut.step * self.fit[1] * self._count(self.signs, everything, cut)

    def refine(self, r: Floats, cols: NDArray[np.intp]) -> NDArray[np.float64]:
        """Guess X[:, cols]^T r from both bits and a residual of fifteen levels."""
        cols = np.asarray(cols, np.intp)
        cut = _Cut.of(r, 3, self.signs.shape[1])
        one, two = self._count(self.signs, cols, cut), self._count(self.sizes, cols, cut)
        centre, _, outer, inner = self.fit[:, cols]
        return cut.total * centre + cut.step * (outer * one + inner * two)

    def _count(self, words: NDArray[np.uint64], cols: NDArray[np.intp], cut: "_Cut") -> NDArray[np.float64]:
        out = np.empty(cols.size)
        args = (words, cols, cut.bits, cut.levels, out)
        over_ranges(kernel.count_columns, cols.size, SLAB, cols.size * self.shape[0] // 16, args)
        return out


@dataclass(frozen=True)
class _Cut:
    """A residual in sign and magnitude bits, its step, the sum of its levels and its own sum."""

    bits: NDArray[np.uint64]
    step: float
    levels: int
    total: float

    @classmethod
    def of(cls, r: Floats, magnitudes: int, words: int) -> Self:
        r = np.ascontiguousarray(r, np.float64)
        bits = np.zeros((1 + magnitudes, words), np.uint64)
        power = np.frexp(np.abs(r).max(initial=0.0))[1]
        scaled = np.ldexp(r, -power)
        step = kernel.best_step(scaled, 2**magnitudes - 1) or 1.0
        return cls(bits, np.ldexp(step, power), kernel.cut_bits(scaled, step, bits), float(r.sum()))
