"""Codes of one or two bytes of a dense tile, for products with all of its columns at once, with a proof.

In blocks of 512 rows ``x = c + s q + error``. Codes lie in panels of 16 columns, the way that instructions
for products of bytes want them (`kernels/codes.py`), so a vector that is multiplied becomes bytes too, in one
cut or two. A second byte, in panels of its own, has 256ths of a unit of the first: where one byte leaves many
columns, products of both are added.

What is lost has two parts. That of the codes depends on the vector alone and on the norms of the errors of
each block (`CodedTile.block_errors`). That of the product is relative to the norm of the decoded column. With
a vector w that consists of cuts, a sum over a block is an integer below 2**24, so it is exact, also in
float32; its products with unit and scale, and their sum over B blocks, round by 2**-24 each:

    |g - <s q, w>| <= (B + 3) 2**-23 sum over b of ||s q_b|| ||w_b|| <= (B + 3) 2**-23 ||s q|| ||w||

and a vector v that is represented up to v - w loses ||s q|| ||v - w|| besides. Sums over cuts and vectors are
float64, as are the products of centres with sums of v.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

from skpursuit.data.codes.coded_matrix import PathProducts
from skpursuit.data.codes.encoder import CodeEncoder
from skpursuit.kernels import codes as kernel
from skpursuit.kernels.llvm import PANEL_COLUMNS, SECOND_BYTE_SCALE
from skpursuit.numerics.arrays import Floats, Indices
from skpursuit.numerics.error_bounds import guard_underflow
from skpursuit.numerics.float_range import UNDERFLOW_NORM_BOUND, NonFiniteError
from skpursuit.numerics.threads import parallel_for

SLACK_UNIT = 2.0**-51  # four rounding units of float64: room for what is not counted one by one
SQRT_BLOCK_ROWS = kernel.BLOCK_ROWS**0.5  # the 1-norm of a block is at most this times its 2-norm
SLAB = 4 * PANEL_COLUMNS  # ranges of columns given to a thread start at multiples of this
Cut: TypeAlias = "tuple[float, QuantizedVectors]"  # a power of two, and what was divided by it


class QuantizedVectors(NamedTuple):
    """Vectors as bytes, and what is known of them; see `kernel.quantize_vectors`."""

    vectors: kernel.VectorBytes  # (m, rows) bytes with offsets and units
    sums: NDArray[np.float64]  # (vectors, 5, blocks)
    totals: NDArray[np.float64]  # (vectors, 5), sums of all blocks
    each: int  # cuts per vector


class PathState(NamedTuple):
    """A residual of X that products of codes stand for, to go on from."""

    u: Floats  # (rows,), the residual
    g: Floats  # (columns,), products of the codes with it, without centres and powers of two
    lost: float  # what rounding lost of these, to be multiplied by the norms of the codes


@dataclass(frozen=True)
class CodedTile:
    """One-byte codes of the columns of a dense matrix, in panels, with error bounds.

    Columns of `scale`, `centre` and `error` are padded to a multiple of 16.
    """

    codes: NDArray[np.uint8]  # (panels of 16 columns, rows / 4, 16, 4), codes plus 128
    second_byte: NDArray[np.uint8]  # the same, or empty
    scale: NDArray[np.float32]  # (blocks, columns)
    centre: NDArray[np.float64]  # (blocks, columns)
    error: NDArray[np.float32]  # (1 or 2, blocks, columns), bounds of what one byte and both lose, 2-norms
    norms: NDArray[np.float64]  # (columns,), upper bounds of the 2-norms of scale * code, with second bytes
    exponent: NDArray[np.intc]  # (columns,), the codes are those of columns divided by two to this power
    shape: tuple[int, int]  # of the matrix
    form: str | None = None  # one of `kernel.ISA_TAGS`; None: the processor that makes products decides

    @staticmethod
    def build(
        X: Floats, form: str | None = None, fine: bool = False, totals: Floats | None = None
    ) -> CodedTile:
        """Encode a finite 2-D float32 or float64 array of any layout, with a second byte an entry if `fine`.

        `totals` (blocks, d) is where the sums of the columns of each block of rows go, of X in C order.
        """
        encoder = CodeEncoder(X, fine, totals is not None)
        coded = CodedTile(**encoder.build(), shape=X.shape, form=form)
        if totals is not None:
            np.ldexp(encoder.totals[:, : X.shape[1]], encoder.exponent, out=totals)
        return coded

    @property
    def nbytes(self) -> int:
        """Memory held: one or two bytes an entry and sixteen or twenty for each column of a block."""
        frames = self.scale, self.centre, self.error, self.norms, self.exponent
        return sum(a.nbytes for a in (self.codes, self.second_byte, *frames))

    def __sizeof__(self) -> int:  # Dask asks how much it keeps
        return self.nbytes

    def cost(self, fine: bool = False) -> tuple[int, int]:
        """Entries and bytes that a product with any number of vectors reads; both bytes are of one entry."""
        n, d = self.shape
        frames = sum(len(a) * a.itemsize for a in (self.scale, self.centre, self.error[0]))
        return n * d, d * ((1 + fine) * self.codes.shape[1] * 4 + frames)

    # -- vectors as bytes -------------------------------------------------------------------------------

    def _quantize(self, rows: Floats, before: Floats | None, count: int) -> QuantizedVectors:
        """Cut vectors that are below one, along a path from `before`, or each by itself."""
        form = self.form or kernel.DEFAULT_ISA
        m, blocks, group = len(rows), len(self.scale), int(kernel.ISA_TAGS[form])
        full = -(-m * count // group) * group
        moving = np.zeros(self.codes.shape[1] * 4)
        if before is not None:
            moving[: self.shape[0]] = before
        whole = np.empty((full, len(moving)), np.int8)
        whole[m * count :] = 0
        offsets, units = np.zeros((blocks, full), np.int32), np.zeros((blocks, full), np.float32)
        vectors = kernel.VectorBytes(whole, offsets, units)
        sums = np.empty((m, 5, blocks))
        rows = np.ascontiguousarray(rows)
        kernel.quantize_vectors(form == "avx2", before is None, rows, moving, count, vectors, sums)
        return QuantizedVectors(vectors, sums, sums.sum(axis=2), count)

    def _products(
        self, cuts: QuantizedVectors, fine: bool, panels: Indices | None = None
    ) -> NDArray[np.float32]:
        """Products of the codes with cuts, of one byte or both, of all panels or some."""
        panels = np.arange(len(self.codes)) if panels is None else panels
        m, vectors = len(cuts.vectors.digits), cuts.vectors
        vectors = vectors._replace(digits=vectors.digits.view(np.int32))
        planes, width = [(self.codes, self.scale)], len(panels) * PANEL_COLUMNS
        if fine:  # which may have to be read from disk
            planes.append((self.second_byte, self.scale * np.float32(1.0 / SECOND_BYTE_SCALE)))
        made = [np.empty((m, width), np.float32) for _ in planes]
        for out, (codes, scale) in zip(made, planes):
            args = (kernel.ISA_TAGS[self.form or kernel.DEFAULT_ISA], panels, codes, scale, vectors, out)
            parallel_for(kernel.multiply, width, SLAB, m * codes.shape[1] * width // 4, args)
        return np.add(made[0], made[1], out=made[0]) if fine else made[0]

    def _rounding(self, cuts: QuantizedVectors) -> NDArray[np.float64]:
        """For each vector, what the sums of its products lose, to be multiplied by the norms of codes."""
        one, made, blocks = cuts.totals[:, 1], np.sqrt(cuts.totals[:, 3]), len(self.scale)
        vanished = 2.0**-44 * blocks * cuts.each * (one > 0.0)  # what is below the range of float32
        return (blocks + 4) * 2.0**-23 * made + 2.0**-48 * one + vanished

    def _loss(self, cuts: QuantizedVectors, rounding: NDArray[np.float64]) -> NDArray[np.float64]:
        """(vectors, 2): what products lose for a unit of each factor."""
        loss = np.empty((len(rounding), 2))
        loss[:, 0] = np.sqrt(cuts.totals[:, 2]) * (1.0 + 2.0**-40) + rounding
        one = cuts.sums[:, 1].max(axis=1, initial=0.0)
        loss[:, 1] = (2.0**-43 + 2 * (len(self.scale) + 8) * SLACK_UNIT) * one
        return loss

    @staticmethod
    def _norms(cuts: QuantizedVectors) -> NDArray[np.float64]:
        """(vectors, blocks): upper bounds of the norms of vectors in blocks of rows."""
        return np.sqrt(cuts.sums[:, 4]) * (1.0 + 2.0**-40) + UNDERFLOW_NORM_BOUND * (cuts.sums[:, 1] > 0.0)

    def _accumulate(
        self,
        cuts: QuantizedVectors,
        products: NDArray[np.float32],
        centre: Floats,
        before: Floats | None = None,
        unit: float = 1.0,
        dtype: DTypeLike = np.float64,
    ) -> Floats:
        """(vectors, columns): sums of products and of the products of these centres, in this unit.

        Running ones with `before`; the first vector stands twice in these cuts if `before` is of no entries.
        """
        first = int(before is not None and not before.size)
        totals = cuts.sums[first:, 0]
        g = totals @ centre
        if before is None:
            for k in range(cuts.each):
                g += products[k : len(totals) * cuts.each : cuts.each]
        else:
            total = products[0].astype(np.float64) if first else before / unit
            for row, more in zip(g, products[first:]):
                total += more
                row += total
        if dtype == g.dtype and unit == 1.0:
            return g
        return np.multiply(g, unit, dtype=dtype, casting="same_kind")

    # -- products ---------------------------------------------------------------------------------------

    def path_products(
        self,
        R: Floats,
        before: PathState | None = None,
        dtype: DTypeLike = np.float64,
        fine: bool = False,
        cut: list[Cut] | None = None,
    ) -> PathProducts:
        """Products of the decoded columns with consecutive vectors, the rows of R.

        From `before` on, only the way from what is represented so far to the next vector is multiplied, in
        one cut, so that what a cut leaves is in the next one. Without it the first vector is cut twice.
        Vectors and columns are of ordinary size (`coded_matrix.F32_SAFE_NORMS`). Columns are decoded by both
        bytes where `fine` is asked for, as it then was for `before`. Tiles of the same rows share what is in
        `cut`.
        """
        (n, d), first = self.shape, int(before is None)
        start = PathState(np.zeros(n), np.empty(0), 0.0) if before is None else before
        cut = [] if cut is None else cut
        if not cut:
            ends = R.max(initial=0.0), -R.min(initial=0.0), np.abs(start.u).max(initial=0.0)
            power = float(np.ldexp(1.0, np.frexp(float(max(ends)))[1]))
            rows = np.empty((first + len(R), n), np.float64)
            np.multiply(R, 1.0 / power, out=rows[first:])
            rows[:first] = rows[first : 2 * first]
            cut.append((power, self._quantize(rows, start.u * (1.0 / power), 1)))
        power, cuts = cut[0]
        products, centre = self._products(cuts, fine)[:, :d], self.centre[:, :d]
        rounding = np.cumsum(self._rounding(cuts)) + start.lost / power
        loss = self._loss(cuts, rounding)[first:] * power
        if self._exponent.any():
            g = (self._accumulate(cuts, products, centre, start.g, power) * self._powers).astype(dtype)
        else:
            g = self._accumulate(cuts, products, centre, start.g, power, dtype)

        def represented(t: int) -> PathState:
            steps, (digits, _, units) = (t if t >= 0 else t + len(R)) + 1 + first, cuts.vectors
            of_rows = np.repeat(units[:, :steps].astype(np.float64), kernel.BLOCK_ROWS, axis=0)[:n]
            u = start.u + power * np.einsum("ik,ki->i", of_rows, digits[:steps, :n])
            codes = power * products[:steps].sum(axis=0, dtype=np.float64)
            codes = codes + start.g if start.g.size else codes
            return PathState(u, codes, float(rounding[steps - 1] * power))

        norms = self._norms(cuts)[first:] * (power * (1.0 + self._slack))
        return PathProducts(g, loss, norms, represented)

    # -- bounds -----------------------------------------------------------------------------------------

    def estimate(
        self, r: Floats, fine: bool = False, cols: Indices | None = None
    ) -> tuple[Floats, NDArray[np.float64]]:
        """Estimate X^T r for r of shape (n,) or (n, m), with error bounds that hold, rounding included.

        From one byte or both; all of it, or the entries at `cols`, for which their panels are read.
        """
        rows, exponent = normalize_residual(r, self.shape[0])
        # A single residual has room for a third cut: the kernel takes up to four vectors in the same time.
        cuts = self._quantize(rows, None, 2 + (fine and len(rows) == 1))
        centre, frame, powers = self.centre[:, : self.shape[1]], self._frames[int(fine)], self._exponent
        if cols is None:
            products = self._products(cuts, fine)[:, : self.shape[1]]
        else:
            used, place = np.unique(cols // PANEL_COLUMNS, return_inverse=True)
            places = place * PANEL_COLUMNS + cols % PANEL_COLUMNS
            products = self._products(cuts, fine, used)[:, places]
            centre, frame, powers = centre[:, cols], frame[:, cols], self.exponent[cols]
        g, loss = self._accumulate(cuts, products, centre), self._loss(cuts, self._rounding(cuts))
        bound = np.hstack([loss, self._norms(cuts)]) @ frame
        power = exponent[:, None] + (powers if powers.any() else 0)
        g, bound = undo_normalization(g, bound, power, len(self.scale))
        return g.T.reshape(-1, *r.shape[1:]), bound.T.reshape(-1, *r.shape[1:])

    @cached_property
    def _powers(self) -> NDArray[np.float64]:
        return np.ldexp(1.0, self.exponent)

    @cached_property
    def _factors(self) -> NDArray[np.float64]:
        """`column_factors` divided by their powers of two."""
        centres = np.abs(self.centre[:, : self.shape[1]]).sum(axis=0)
        return np.stack([self.norms, centres], axis=1) * (1.0 + self._slack)

    @cached_property
    def _frames(self) -> list[NDArray[np.float64]]:
        """(2 + blocks, columns): `_factors`, then what one byte loses in a block; the same for both bytes."""
        return [np.vstack([self._factors.T, error[:, : self.shape[1]]]) for error in self.error]

    @cached_property
    def _exponent(self) -> NDArray[np.intc]:
        """`exponent`, or one zero where all of them are zero."""
        return self.exponent if self.exponent.any() else self.exponent[:1]

    @cached_property
    def column_factors(self) -> NDArray[np.float64]:
        """(columns, 2): the norm of the decoded column without its centres, and their sum, rounded up."""
        return self._factors * self._powers[:, None]

    @property
    def _slack(self) -> float:
        """Room for the rounding of a sum over blocks."""
        return (len(self.scale) + 16) * SLACK_UNIT

    @cached_property
    def norm_bounds(self) -> NDArray[np.float64]:
        """Upper bounds of the column norms."""
        centres = SQRT_BLOCK_ROWS * np.sqrt((self.centre[:, : self.shape[1]] ** 2).sum(axis=0)) * self._powers
        errors = np.linalg.norm(self.error[0, :, : self.shape[1]].astype(np.float64), axis=0) * self._powers
        return (self.column_factors[:, 0] + centres + errors) * (1.0 + self._slack)

    @cached_property
    def block_errors(self) -> NDArray[np.float64]:
        """(1 or 2, blocks, columns): bounds of the 2-norm of what one byte and both lose in a block."""
        return self.error[:, :, : self.shape[1]] * self._powers

    def decoded(self, cols: NDArray[np.integer], fine: bool = False) -> NDArray[np.float32]:
        """Columns as one byte has them, or both, the rows of an array; without bounds."""
        cols, n = np.asarray(cols), self.shape[0]
        out = np.empty((len(cols), len(self.scale), kernel.BLOCK_ROWS), np.float32)
        lines, rest = np.split(out.reshape(len(cols), -1), [n], axis=1)
        lines[:], rest[:] = self._bytes(self.codes, cols), 0.0
        if fine:
            besides = self._bytes(self.second_byte, cols) - np.float32(128.0)
            lines += besides * np.float32(1.0 / SECOND_BYTE_SCALE)
        scale = self.scale[:, cols].T[..., None]
        out *= scale
        out += self.centre[:, cols].T[..., None].astype(np.float32) - np.float32(128.0) * scale
        return lines if not self.exponent[cols].any() else lines * self._powers[cols, None].astype(np.float32)

    def _bytes(self, codes: NDArray[np.uint8], cols: NDArray[np.integer]) -> NDArray[np.uint8]:
        """The bytes of some columns, the rows of an array."""
        quads = codes.view(np.uint32)[cols // PANEL_COLUMNS, :, cols % PANEL_COLUMNS, 0]
        return quads.view(np.uint8)[:, : self.shape[0]]


def undo_normalization(
    g: Floats, bound: Floats, power: NDArray[np.intc], blocks: int
) -> tuple[Floats, NDArray[np.float64]]:
    """Estimates and bounds times two to these powers; bounds wider by the rounding of their own sums."""
    wider = 1.0 + (blocks + 16) * SLACK_UNIT
    if np.abs(power).max(initial=0) < 400:
        factor = np.ldexp(1.0, power)
        return g * factor, guard_underflow(bound * (factor * wider), bound)
    g, above = np.ldexp(g, power), guard_underflow(np.ldexp(bound * wider, power), bound)
    return g, np.where(np.isfinite(g), above, np.inf)


def normalize_residual(r: Floats, n: int) -> tuple[NDArray[np.float64], NDArray[np.intc]]:
    """The targets of r as rows, each divided by two to a power so that it is below one."""
    r = np.asarray(r, np.float64)
    if r.shape[0] != n:
        raise ValueError(f"residual has {r.shape[0]} rows, the codes {n}")
    columns = np.atleast_2d(r.T)
    top = np.abs(columns).max(axis=1, initial=0.0)
    if not np.isfinite(top).all():
        raise NonFiniteError("residual is not finite")
    exponent = np.frexp(top)[1]
    if np.abs(exponent).max(initial=0) < 1000:
        return columns * np.ldexp(1.0, -exponent)[:, None], exponent
    return np.ldexp(columns, -exponent[:, None]), exponent  # the power itself would leave the float range
