"""Dense X in memory or memory-mapped: C order, F order or strided, float32 or float64."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from math import sqrt
from typing import Any

import numpy as np

from skpursuit.data.base import BLOCK_ENTRIES, MEAN_UNIT, Design, Floats, Indices
from skpursuit.data.witness import DenseWitness
from skpursuit.numerics.bounds import product_bound
from skpursuit.numerics.sums import PIECE, as_precision, fixed_order_dot, piece_squares, scaled_norm
from skpursuit.numerics.threads import share

FLOAT32_ROWS = 1024  # float32 sums are cut here and added in float64, which bounds their rounding at any n
GATHER_BLOCK = 2**14  # entries: copied rows of a few columns that stay in the cache until they are transposed
SMALL_BLOCK = 2**16  # entries: what stays in the cache while a block is looked at twice
SMALL_PRODUCT = 2**20  # entries: no kernel is loaded for a product of fewer
FEW_COLUMNS = 32  # up to here single columns are copied faster than blocks of them
FEW_FOR_KERNEL = 1  # up to here a kernel would save nothing
PIECE_ENTRIES = 2**21  # entries of a product that one thread takes at a time, about a millisecond
SWEEP = 16  # columns that are gathered with others that are needed
UNIT = {4: float(np.finfo(np.float32).eps), 8: float(np.finfo(np.float64).eps)}  # by bytes an entry
TILE = (128, 2048)  # rows and columns of the tiles of norms: their sums stay in the first cache
MEAN_ROWS = (PIECE, 128)  # rows of the pieces of means in F and C order, as fast as one product
LINE_BLOCK = 2**20  # entries of whole lines whose norms one call makes


class DenseDesign(Design):
    """A validated two-dimensional float array, never copied."""

    def __init__(self, X: Floats) -> None:
        super().__init__(X.shape, X.dtype)
        self.X = X
        self.blas_ready = X.strides[1] == X.itemsize or X.strides[0] == X.itemsize
        self.fast_axis = 0 if X.strides[0] == X.itemsize and X.shape[0] > 1 else 1

    def cost(self, rows: Indices | None = None, cols: Indices | None = None) -> tuple[int, int]:
        n, d = self.shape
        height, width = n if rows is None else len(rows), d if cols is None else len(cols)
        if rows is not None and cols is not None:
            if self.fast_axis == 0:
                height = n
            elif self._whole_rows_pay(width):
                width = d
        return height * width, height * width * self.dtype.itemsize

    def _whole_rows_pay(self, width: int) -> bool:
        """Whether this many listed columns touch so many cache lines that whole rows are read instead."""
        from skpursuit.kernels.columns import crowded

        return not self.blas_ready or crowded(self.X, width)

    def prepare_rows(self) -> None:
        super().prepare_rows()
        if self.fast_axis == 0 and "rows" not in self.cache:
            from skpursuit.kernels.columns import transposed

            self.reads.prepare(*self.cost())
            self.cache["rows"] = transposed(self.X.T)

    def row_layout_bytes(self) -> int:
        return self.shape[0] * self.shape[1] * self.dtype.itemsize if self.fast_axis == 0 else 0

    def _blocks(self, rows_per_block: int) -> Iterator[tuple[slice, Floats]]:
        for start in range(0, self.shape[0], rows_per_block):
            rows = slice(start, start + rows_per_block)
            block = self.X[rows]
            yield rows, block if self.blas_ready else np.ascontiguousarray(block)

    def _piece(self, residuals: int) -> tuple[int, int]:
        """Rows and columns of the pieces of a product, whole lines in memory; threads play no part in them.

        With several residuals pieces are larger: each has sums of its own for all of them.
        """
        n, d = self.shape
        if self.fast_axis == 0:
            return n, max(1, PIECE_ENTRIES // n)
        return max(64, residuals * PIECE_ENTRIES // d), d

    def _product_rows(self) -> int:
        """The most rows of one BLAS product."""
        return FLOAT32_ROWS if self.dtype == np.float32 else max(64, BLOCK_ENTRIES // self.shape[1])

    def _correlate(self, r: Floats) -> Floats:
        """X^T r in pieces that threads share; sums over pieces of rows are added in order."""
        r, exponent = as_precision(r, self.dtype)
        (n, d), (tall, wide) = self.shape, self._piece(r.size // len(r))
        pieces = [(i, j) for i in range(0, n, tall) for j in range(0, d, wide)]
        if len(pieces) == 1:
            out = self._piece_product(r, slice(None), slice(None))
        else:
            sums = np.empty((-(-n // tall), *r.shape[1:], d))

            def fill(i: int, j: int) -> None:
                part = self._piece_product(r, slice(i, i + tall), slice(j, j + wide))
                sums[i // tall, ..., j : j + wide] = part.T

            share(fill, pieces, n * d * (r.size // n))
            out = sums[0].T
            for part in sums[1:]:
                out += part.T
        return np.ldexp(out, exponent) if np.any(exponent) else out

    def _piece_product(self, r: Floats, rows: slice, cols: slice) -> Floats:
        """X[rows, cols]^T r[rows], in float64 sums of BLAS products."""
        X, r, step = self.X[rows, cols], r[rows], self._product_rows()
        out: Floats | None = None
        for start in range(0, len(r), step):
            block = X[start : start + step]
            block = block if self.blas_ready else np.ascontiguousarray(block)
            # (r^T X)^T: with few targets BLAS is faster this way round than with X^T r.
            part = (r[start : start + step].T @ block).T
            out = part.astype(np.float64, copy=False) if out is None else out + part
        assert out is not None
        return out

    def _weighted_sums(self, weights: Floats) -> Floats:
        """Sums of short pieces, added with more digits: a centred column may be small beside its mean."""
        total = np.zeros(self.shape[1], dtype=np.longdouble)
        for rows, block in self._blocks(MEAN_ROWS[self.fast_axis]):
            part, w = block.astype(np.float64, copy=False), weights[rows]
            # Not by BLAS, whose sums of equal columns differ.
            total += np.vecdot(part.T, w) if self.fast_axis == 0 else np.einsum("i,ij->j", w, part)
        return total.astype(np.float64)

    def mean_unit(self) -> float:
        return MEAN_UNIT

    def squares_fit(self) -> bool:
        return self.dtype == np.float32 or super().squares_fit()  # those of float32 always do

    def _correlate_rows(self, r: Floats, rows: Indices) -> Floats:
        if len(rows) * self.shape[1] > SMALL_PRODUCT:
            return super()._correlate_rows(r, rows)
        return self.X[rows].T.astype(np.float64, copy=False) @ r[rows]

    def product_unit(self) -> float:
        """gamma_b, b the rows of one product, doubled for summing blocks and casting r."""
        b = min(self._product_rows(), self.shape[0])
        blocks = -(-self.shape[0] // b)
        return 2 * ((b + 2) * UNIT[self.dtype.itemsize] + (blocks + 2) * UNIT[8])

    def correlate_error(self, r: Floats) -> Floats:
        return self._for_all(product_bound(self.product_unit(), self._column_sizes(), r, self.dtype))

    def accumulate_error(self, r: Floats) -> Floats:
        return self._for_all(self._sum_error(r, self._column_sizes(coarse=True)))

    def norm_range(self) -> tuple[float, float]:
        """From norms or codes that are there, else from the norms that cost least."""
        n, d = self.shape
        if self.dtype == np.float32:  # whatever the numbers are
            return 2.0**-149, 2.0**128 * sqrt(n)
        codes = [held for key, held in self.cache.items() if key[0] in ("twin", "sketch")]
        made = [axis for axis in (0, 1) if ("norms", axis, 2) in self.cache]
        if codes and not made:
            peak = codes[0].peak
            return peak, peak * 2.0**80 * sqrt(n)
        axis = made[0] if made else self.fast_axis
        largest = float(self.norms(axis).max())
        return (largest, largest) if axis == 0 else (largest / sqrt(d), largest * sqrt(n))

    def column_sizes(self) -> Floats:
        return self._for_all(self._column_sizes())

    def _column_sizes(self, coarse: bool = False) -> Floats:
        """The column norms; where they would cost a pass, ||X||_F alone, close enough for float64."""
        if ("norms", 0, 2) in self.cache or (self.dtype == np.float32 and not coarse):
            return self.norms(0)
        if "size" not in self.cache:
            self.cache["size"] = np.array([scaled_norm(self.norms(1))])
        return self.cache["size"]

    def _for_all(self, bound: Floats) -> Floats:
        """One bound for each column, without copies of one that is for all."""
        return np.broadcast_to(bound, (self.shape[1], *bound.shape[1:]))

    def _gather(self, cols: Indices) -> Floats:
        out = np.empty((len(cols), self.shape[0]))
        kernels = sys.modules.get("skpursuit.kernels.columns")
        suits = self.dtype == np.float64 and type(self.X) is np.ndarray and len(cols) > FEW_FOR_KERNEL
        if kernels is not None and suits:  # loaded already, so that no small problem waits for it
            kernels.gather_columns(self.X, np.asarray(cols, dtype=np.int64), out)
            return out
        if len(cols) <= FEW_COLUMNS:
            for line, j in zip(out, cols):
                line[:] = self.X[:, j]
            return out
        step = max(1, GATHER_BLOCK // max(1, len(cols)))
        for start in range(0, self.shape[0], step):
            out[:, start : start + step] = self.X[start : start + step, cols].T
        return out

    def fetch(self, cols: Indices, likely: Callable[[], Indices]) -> None:
        """In C order a sweep over the rows costs as much as ten columns more, whichever they are."""
        held = self.column_cache.held
        if self.fast_axis == 0 or all(j in held for j in cols.tolist()):
            return
        if self.shape[0] * 8 * SWEEP > self.column_cache.limit // 8:  # so long that none would stay
            return
        wanted = dict.fromkeys(cols.tolist() + [j for j in likely().tolist() if j not in held])
        self._lines(np.array(list(wanted)[: len(cols) + SWEEP]))
        self.reads.prepare(*self.cost(cols=np.array(list(wanted)[len(cols) : len(cols) + SWEEP])))

    def _correlate_columns(self, r: Floats, cols: Indices) -> Floats:
        # Through the cache: columns that were close to the top once are close again.
        return fixed_order_dot(self._lines(cols)[0], np.asarray(r, dtype=np.float64))

    def has_twin(self) -> bool:
        return True

    def twin(self, seed: int | None = None, fine: bool = False, steps: bool = False) -> Any:
        key = ("twin", seed)
        held = self.cache.get(key)
        if held is None or (fine and not held.has_fine) or (steps and not held.has_steps):
            from skpursuit.data.twin import Twin

            self.reads.prepare(*self.cost())
            rng = None if seed is None else np.random.default_rng(seed)
            if held is not None:  # what it has is not lost
                fine, steps = fine or held.has_fine, steps or held.has_steps
            elif seed is not None:  # one at a time is kept
                for other in [name for name in self.cache if name[0] == "twin" and name[1] is not None]:
                    del self.cache[other]
            built = self.cache[key] = Twin.build(self.X, rng, fine, steps)
            if built.row_squares is not None:  # came along for next to nothing
                self.cache.setdefault(("norms", 1, 2), self._safe_root(built.row_squares, 1))
            self.cache["finite"] = True  # it refuses anything else
        return self.cache[key]

    def decoded(self) -> Any:
        twin = self.twin()
        if not twin.plain:
            return None
        if not twin.measured:
            self.reads.prepare(*twin.estimate_cost())
            twin.measure()
        return twin

    def sketch(self) -> Any:
        key = ("sketch", None)
        if key not in self.cache:
            from skpursuit.data.sketch_twin import SketchTwin

            self.reads.prepare(*self.cost())
            self.cache[key] = SketchTwin.build(self.X)
            self.cache["finite"] = True  # as the twin
        return self.cache[key]

    def _accumulate(self, rows: Indices, weights: Floats, out: Floats, cols: Indices | None) -> None:
        from skpursuit.kernels.columns import accumulate_dense_columns
        from skpursuit.kernels.rows import accumulate_dense

        rows, weights = np.asarray(rows, dtype=np.int64), np.ascontiguousarray(weights, dtype=np.float64)
        sums = np.ascontiguousarray(out.T)  # out itself where each target is contiguous already
        if cols is None:
            self.prepare_rows()
            accumulate_dense(self.cache.get("rows", self.X), rows, weights, sums)
        else:
            accumulate_dense_columns(self.X, rows, weights, np.asarray(cols, dtype=np.int64), sums)
        if not np.shares_memory(sums, out):
            out[...] = sums.T

    def pick_cost(self, rows: Indices, cols: Indices) -> tuple[int, int]:
        return len(rows), len(rows) * self.dtype.itemsize

    def _pick(self, rows: Indices, cols: Indices) -> Floats:
        return self.X[rows, cols].astype(np.float64, copy=False)

    def _norms(self, axis: int, order: float) -> Floats:
        self.reads.prepare(*self.cost())
        out = np.zeros(self.shape[1 - axis])
        if order != np.inf and axis == self.fast_axis and self.blas_ready:
            step = max(1, LINE_BLOCK // self.shape[axis])
            for start in range(0, len(out), step):
                some = slice(start, start + step)
                lines = self.X[some] if axis == 1 else self.X[:, some].T
                out[some] = piece_squares(lines.astype(np.float64, copy=False))
            return self._safe_root(out, axis)
        add = np.maximum if order == np.inf else np.add
        tall, wide = TILE if self.fast_axis == 1 else TILE[::-1]
        if axis == self.fast_axis and self.dtype == np.float64:  # whole lines stream, nothing is kept
            tall, wide = (tall, self.shape[1]) if axis == 1 else (self.shape[0], wide)
        for rows in range(0, self.shape[0], tall):
            for cols in range(0, self.shape[1], wide):
                block = self.X[rows : rows + tall, cols : cols + wide]
                start = cols if axis == 0 else rows
                part = out[start : start + block.shape[1 - axis]]
                add(part, block_norms(block, axis, order), out=part)
        return out if order == np.inf else self._safe_root(out, axis)

    def _safe_root(self, squares: Floats, axis: int) -> Floats:
        """Square roots of sums of squares, recomputed with scaling where the squares left the float range."""
        norms = np.sqrt(squares)
        bad = np.flatnonzero(~((squares > 1e-280) & (squares < np.inf)) & ~np.isnan(squares))
        for j in bad.tolist():
            line = np.asarray(self.X[:, j] if axis == 0 else self.X[j], dtype=np.float64)
            top = np.abs(line).max(initial=0.0)
            if top > 0:
                norms[j] = float(top) * float(np.linalg.norm(line / top)) if np.isfinite(top) else np.inf
        return norms

    def watch(self) -> None:
        self.cache["witness"] = DenseWitness(self.X)

    def _digest(self, digest: Any) -> None:
        self.reads.prepare(*self.cost())
        for _, block in self._blocks(max(1, SMALL_BLOCK // max(1, self.shape[1]))):
            digest.update(np.ascontiguousarray(block).data)


def block_norms(block: Floats, axis: int, order: float) -> Floats:
    """Sums of squares, or maxima of |x|, of a block's columns (axis 0) or rows (axis 1), in float64."""
    if order == np.inf:
        return np.maximum(block.max(axis=axis), -block.min(axis=axis)).astype(np.float64)
    lines = block.astype(np.float64, copy=False)
    lines = lines.T if axis == 0 else lines
    with np.errstate(over="ignore", invalid="ignore"):
        return np.einsum("ij,ij->i", lines, lines)
