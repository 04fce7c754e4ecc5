"""The sketch of a dense matrix: two bits an entry, for a guess at X^T r that proves nothing."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from skpursuit.design.twin import Cost, Floats, Run, serial
from skpursuit.kernels import bits as kernel
from skpursuit.kernels.quantized import copy_columns

SAMPLE = 256  # rows from which thresholds and levels are taken
SLAB = 2048  # columns of one task
STEPS = (0.5, 0.65, 0.8, 1.0, 1.3, 1.8)  # tried steps of the residual, in mean magnitudes


@dataclass(frozen=True)
class SketchTwin:
    """Two bits an entry and three levels a column.

    `estimate` reads the first bit of all columns, `refine` both bits of a few. On Gaussian data the error of an
    entry has 0.8 and 0.4 standard deviations of X^T r over columns; columns far from symmetric do worse.

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
    def build(cls, X: Floats, run: Run = serial) -> Self:
        """Pack a finite 2-D float32 or float64 array of any layout, reading it once."""
        n, d = X.shape
        words = -(-n // (kernel.WORD * kernel.LANES)) * kernel.LANES
        signs, sizes = np.zeros((2, d, words), np.uint64)
        fit = np.zeros((4, d))
        rows = np.unique(np.linspace(0, max(n - 1, 0), SAMPLE).astype(np.intp))

        def task(first: int) -> None:
            width = min(kernel.WIDTH, d - first)
            some = slice(first, first + width)
            panel, start = X, first
            if not X.flags.c_contiguous:
                panel, start = np.empty((n, width), X.dtype), 0
                copy_columns(X, first, width, panel)
            thresholds = np.zeros(3 * kernel.WIDTH, X.dtype)
            kernel.fit_columns(panel, rows, start, width, thresholds, fit[:, some])
            kernel.pack_columns(panel, start, width, thresholds, signs[some], sizes[some])

        if n:
            run(task, range(0, d, kernel.WIDTH))
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

    def estimate(self, r: Floats, run: Run = serial) -> NDArray[np.float64]:
        """Guess X^T r for r of shape (n,) from the first bits and a residual of seven levels."""
        everything = np.arange(self.shape[1])
        cut = _Cut.of(r, 2, self.signs.shape[1])
        return cut.total * self.fit[0] + cut.step * self.fit[1] * self._count(self.signs, everything, cut, run)

    def refine(self, r: Floats, cols: NDArray[np.integer], run: Run = serial) -> NDArray[np.float64]:
        """Guess X[:, cols]^T r from both bits and a residual of fifteen levels."""
        cols = np.asarray(cols, np.intp)
        cut = _Cut.of(r, 3, self.signs.shape[1])
        one, two = self._count(self.signs, cols, cut, run), self._count(self.sizes, cols, cut, run)
        centre, _, outer, inner = self.fit[:, cols]
        return cut.total * centre + cut.step * (outer * one + inner * two)

    def _count(
        self, words: NDArray[np.uint64], cols: NDArray[np.intp], cut: "_Cut", run: Run
    ) -> NDArray[np.float64]:
        out = np.empty(cols.size)

        def task(first: int) -> None:
            some = slice(first, first + SLAB)
            kernel.count_columns(words, cols[some], cut.bits, cut.levels, out[some])

        run(task, range(0, cols.size, SLAB))
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
        size = np.abs(r).mean() if r.size else 0.0
        if size == 0.0:
            return cls(bits, 0.0, 0, 0.0)
        # The best step grows with the tails, and shrinks as there are more levels.
        unit = size * 2.0 ** (2 - magnitudes)
        most = 2**magnitudes - 1
        step = min((unit * s for s in STEPS), key=lambda step: kernel.lost_by_step(r, step, most))
        return cls(bits, step, kernel.cut_bits(r, step, bits), float(r.sum()))
