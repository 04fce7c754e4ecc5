"""Dense X in memory or memory-mapped: C order, F order or strided, float32 or float64.

Products go through BLAS in pieces that X alone fixes, which threads share: neither the number of threads nor
what else runs plays a part in the bits. Columns of a C-ordered X are gathered in blocks that stay in the
cache, rows of an F-ordered one are read from a transposed copy.

As a source this module takes whatever NumPy makes an array of, arrays mapped from a file among it.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from skpursuit.data.survey import Blocks, block_sums
from skpursuit.data.tile import Cost, Sample, Tile, scattered_indices
from skpursuit.kernels import imported_module
from skpursuit.numerics import tuning
from skpursuit.numerics.arrays import Floats, FloatType, Indices
from skpursuit.numerics.float_range import EPS
from skpursuit.numerics.sums import BLOCK_ROWS, block_sums_of_squares, cast_residual
from skpursuit.numerics.threads import parallel_for, run_tasks
from skpursuit.parameters import as_array

if TYPE_CHECKING:
    from skpursuit.data.codes.coded_tile import CodedTile

FLOAT32_ROWS = 1024  # float32 sums are cut here and added in float64, which bounds their rounding at any n
SURVEYED = (64, 512)  # columns of the blocks of 512 rows that are surveyed in the cache, in F and C order
MEAN_UNIT = 256 * EPS  # rounding of means: at most 62 eps were seen


class DenseTile(Tile):
    """A validated two-dimensional float array, never copied; products are those of a complex one too.

    `by_columns` says whether X counts as F-ordered, by default as it lies in memory: an array of one column
    can be either. `made_of` are the caller's arrays whose rows X was copied together from, where it was.
    """

    can_encode = True
    small_product = tuning.SMALL_PRODUCT
    mean_rounding_unit = MEAN_UNIT

    def __init__(
        self, X: Floats, by_columns: bool | None = None, made_of: list[Floats] | None = None
    ) -> None:
        self.X = self.in_memory_matrix = X
        self.source_arrays = [X] if made_of is None else made_of
        self.shape, self.dtype, self.sum_dtype = X.shape, X.dtype, np.result_type(X.dtype, np.float64)
        self.blas_ready = X.strides[1] == X.itemsize or X.strides[0] == X.itemsize
        by_columns = is_by_columns(X) if by_columns is None else by_columns
        self.fast_axis = 0 if by_columns else 1
        self.c_order_copy: Floats | None = None  # a row-major copy of an F-ordered X

    def cost(self, rows: Indices | None = None, cols: Indices | None = None) -> Cost:
        n, d = self.shape
        width = d if cols is None or (rows is not None and self._reads_whole_rows(cols)) else len(cols)
        entries = (n if rows is None else len(rows)) * width
        return entries, entries * self.dtype.itemsize

    # -- products ---------------------------------------------------------------------------------------

    @property
    def rounding_unit(self) -> float:
        """gamma_b, b the rows of one product, doubled for summing blocks and casting r."""
        b = min(self._product_rows(), self.shape[0])
        blocks = -(-self.shape[0] // b)
        return 2 * ((b + 2) * float(np.finfo(self.dtype).eps) + (blocks + 2) * EPS)

    def _product_rows(self) -> int:
        """The most rows of one BLAS product."""
        single = self.dtype in (np.float32, np.complex64)
        return FLOAT32_ROWS if single else max(64, tuning.BLOCK_ENTRIES // self.shape[1])

    def product(self, r: Floats, rows: Indices | None = None) -> Floats:
        """X^T r in pieces that threads share; sums over pieces of rows are added in order."""
        if rows is not None:
            if len(rows) * self.shape[1] <= self.small_product:
                return self.X[rows].T.astype(np.float64, copy=False) @ r[rows]
            out = np.zeros((*r.shape[1:], self.shape[1])).T
            self.add_rows(rows, r[rows], out)
            return out
        ready = r.dtype == self.dtype != np.float32
        r, exponent = (r, 0) if ready else cast_residual(r, self.dtype)
        (n, d), pieces_of = self.shape, max(1, r.size // len(r) // tuning.PIECE_RESIDUALS)
        # Whole lines in memory; threads play no part. Each piece has sums of its own for all residuals: many
        # make it larger.
        tall, wide = max(64, pieces_of * tuning.PIECE_ENTRIES // d), d
        if self.fast_axis == 0:
            tall, wide = n, max(1, tuning.PIECE_ENTRIES // n)
        pieces = [(i, j) for i in range(0, n, tall) for j in range(0, d, wide)]
        if len(pieces) == 1:
            out = self._piece_product(r, slice(None), slice(None))
        else:
            sums = np.empty((-(-n // tall), *r.shape[1:], d), self.sum_dtype)

            def fill(i: int, j: int) -> None:
                part = self._piece_product(r, slice(i, i + tall), slice(j, j + wide))
                sums[i // tall, ..., j : j + wide] = part.T

            run_tasks(fill, pieces, n * d * (r.size // n))
            out = sums[0].T
            for part in sums[1:]:
                out += part.T
        return np.ldexp(out, exponent) if self.dtype == np.float32 else out

    def _piece_product(self, r: Floats, rows: slice, cols: slice) -> Floats:
        """X[rows, cols]^T r[rows], in float64 sums of BLAS products."""
        X, r, step = self.X[rows, cols], r[rows], self._product_rows()
        out: Floats | None = None
        for start in range(0, len(r), step):
            block = X[start : start + step]
            block = block if self.blas_ready else np.ascontiguousarray(block)
            # (r^T X)^T: with few targets BLAS is faster this way round than with X^T r.
            part = (r[start : start + step].T @ block).T
            out = part.astype(self.sum_dtype, copy=False) if out is None else out + part
        assert out is not None
        return out

    # -- columns, rows and entries ------------------------------------------------------------------------

    def take(self, cols: Indices) -> Floats:
        if tuning.MAX_SINGLE_COPIES < len(cols) == self.shape[1] and (cols == np.arange(len(cols))).all():
            return np.array(self.X.T, dtype=np.float64, order="C")
        out = np.empty((len(cols), self.shape[0]), np.float64)
        kernels = imported_module("skpursuit.kernels.lines")
        suits = self.dtype == np.float64 and type(self.X) is np.ndarray and len(cols) > 1
        if kernels is not None and suits:  # loaded already, so that no small problem waits for it
            kernels.gather_columns(self.X, np.asarray(cols, dtype=np.int64), out)
            return out
        if len(cols) <= tuning.MAX_SINGLE_COPIES:
            for line, j in zip(out, cols):
                line[:] = self.X[:, j]
            return out
        step = max(1, tuning.GATHER_BLOCK // max(1, len(cols)))
        for start in range(0, self.shape[0], step):
            out[:, start : start + step] = self.X[start : start + step, cols].T
        return out

    @property
    def has_fast_rows(self) -> bool:  # type: ignore[override]
        return self.fast_axis == 1 or self.c_order_copy is not None

    def ensure_layout(self, what: str) -> Cost:
        if what != "rows" or self.has_fast_rows:
            return 0, 0
        from skpursuit.kernels.lines import transposed

        self.c_order_copy = transposed(self.X.T)
        return self.cost()

    def add_rows(self, rows: Indices, weights: Floats, out: Floats, cols: Indices | None = None) -> None:
        if cols is not None and self._reads_whole_rows(cols):
            total = np.zeros((*out.shape[1:], self.shape[1])).T
            self.add_rows(rows, weights, total)
            out += total[cols]
            return
        if cols is not None:
            step = max(1, tuning.SMALL_BLOCK // max(1, len(rows)))
            for start in range(0, len(cols), step):
                lines = self.X[rows, cols[start : start + step, None]].astype(np.float64, copy=False)
                out[start : start + step] += np.einsum("ji,i...->j...", lines, weights)
            return
        from skpursuit.kernels.lines import accumulate_dense

        rows, weights = np.asarray(rows, dtype=np.int64), np.ascontiguousarray(weights, dtype=np.float64)
        sums = np.ascontiguousarray(out.T)  # out itself where each target is contiguous already
        accumulate_dense(self.X if self.c_order_copy is None else self.c_order_copy, rows, weights, sums)
        if not np.shares_memory(sums, out):
            out[...] = sums.T

    def _reads_whole_rows(self, cols: Indices) -> bool:
        """Whether so many columns of a C-ordered X touch nearly every cache line of a row."""
        return self.fast_axis == 1 and 20 * len(cols) > self.shape[1]

    def entries(self, rows: Indices, cols: Indices) -> Floats:
        return self.X[rows, cols].astype(np.float64, copy=False)

    def encode(self, fine: bool, totals: Floats | None = None) -> CodedTile:
        from skpursuit.data.codes.coded_tile import CodedTile

        return CodedTile.build(self.X, fine=fine, totals=totals)

    # -- norms and statistics -------------------------------------------------------------------------------

    def norm_parts(self, axis: int, order: float = 2) -> Floats:
        # lines read from end to end: twice as fast as blocks
        if axis == self.fast_axis and self.blas_ready and order == 2:
            length, count = self.shape[axis], self.shape[1 - axis]
            out, step = np.empty(count), max(1, tuning.LINE_BLOCK // length)

            def fill_squares(lo: int, hi: int) -> None:
                for start in range(lo, hi, step):
                    part = slice(start, min(start + step, hi))
                    lines = (self.X[part] if axis == 1 else self.X[:, part].T).astype(np.float64, copy=False)
                    out[part] = block_sums_of_squares(lines).sum(axis=0)

            parallel_for(fill_squares, count, step, self.X.size, ())
            return out
        out, step = np.zeros(self.shape[0]), max(1, tuning.GATHERED_ENTRIES // self.shape[0])
        for j in range(0, self.shape[1], step):
            block = self.X[:, j : j + step]
            if order == 2:
                lines = block.astype(np.float64, copy=False)
                out += np.einsum("ij,ij->i", lines, lines)
            else:
                np.maximum(out, np.maximum(block.max(axis=1), -block.min(axis=1)), out=out)
        return out

    def survey(self, weights: list[Floats | None], spreads: bool) -> list[Blocks]:
        starts, by_columns = range(0, self.shape[0], BLOCK_ROWS), self.fast_axis == 0
        wide = SURVEYED[self.fast_axis] if spreads or by_columns else self.shape[1]
        found = [(np.empty(len(starts)), *np.empty((2, len(starts), self.shape[1]))) for _ in weights]

        @np.errstate(all="ignore")
        def fill(lo: int, hi: int) -> None:
            for b, j in product(range(lo, hi), range(0, self.shape[1], wide)):
                rows, at = slice(starts[b], starts[b] + BLOCK_ROWS), slice(j, j + wide)
                block = self.X[rows, at]
                block = block if self.blas_ready else np.ascontiguousarray(block)
                for (weight, sums, squares), w in zip(found, weights):
                    given = None if w is None else w[rows]
                    weight[b], sums[b, at], squares[b, at] = block_sums(block, given, by_columns, spreads)

        parallel_for(fill, len(starts), 1, self.X.size * len(weights), ())
        return found

    def samples(self) -> list[Sample]:
        found: list[Sample] = []
        for X in self.source_arrays:
            n, d = X.shape
            rows = np.append(np.arange(n), scattered_indices(d, n))
            found.append((X, (rows, np.append(scattered_indices(n, d), np.arange(d)))))
        return found


def is_by_columns(X: Floats) -> bool:
    """Whether the entries of a column lie next to each other."""
    return X.strides[0] == X.itemsize and len(X) > 1


def accepts(X: object) -> bool:
    """Whatever no other source takes."""
    return True


def make_tiles(X: object) -> list[list[Tile]]:
    """One tile: the array as it is, or converted to floats once."""
    array = as_array("X", X, is_real=False)
    if array.dtype.kind == "c":
        from skpursuit.data.complex_tile import ComplexTile

        return [[ComplexTile(array)]]
    return [[DenseTile(checked_array(array))]]


def checked_array(X: object) -> Floats:
    """X as a two-dimensional array of float32 or float64."""
    X = as_array("X", X)
    wanted = float_dtype(X.dtype)
    check_shape(X.shape)
    return X.astype(wanted, copy=False)


def check_shape(shape: tuple[int, ...]) -> None:
    """Refuse what is not two-dimensional, and what is empty."""
    if len(shape) != 2:
        raise ValueError(
            f"X must be two-dimensional, got {len(shape)} dimension(s); use X.reshape(-1, 1) for one column"
        )
    if min(shape) < 1:
        raise ValueError(f"X is empty: shape {tuple(shape)}; it needs at least one row and one column")


def float_dtype(dtype: np.dtype) -> FloatType:
    """The dtype X is kept in: float32 and float64 as they are, other real numbers as float64."""
    if dtype.kind == "c":
        raise TypeError("X is complex; give it as an array in memory or a LinearOperator, to minimize")
    if dtype.kind not in "fiub":
        raise TypeError(f"X has dtype {dtype}; it needs numbers: encode text or object columns first")
    if dtype.kind == "f" and dtype.itemsize in (4, 8):
        return dtype.newbyteorder("=")
    return np.dtype(np.float32) if dtype == np.float16 else np.dtype(np.float64)
