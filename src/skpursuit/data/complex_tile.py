"""Complex X as real numbers: two real rows for each of its rows, two real columns for each of its columns.

Row by row a complex column x is the real and imaginary parts of its entries, and its second column is i x. A
complex coefficient u + iv is then u of the first and v of the second, and x^H r of complex residuals has its
parts in their two entries of X^T r. So a complex column is a group of two real ones, and everything that is
known of groups holds: scores |x^H r|, bounds, proofs. The second columns are never stored: products are made
of complex numbers, and codes of the real view of X (`codes/complex_codes.py`). A linear operator is called
with complex vectors.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from skpursuit.data.dense_tile import MEAN_UNIT, DenseTile, check_shape, is_by_columns
from skpursuit.data.survey import Blocks
from skpursuit.data.tile import Cost, Sample, Tile
from skpursuit.numerics.arrays import Floats, Indices
from skpursuit.numerics.sums import BLOCK_ROWS, cast_residual
from skpursuit.numerics.tuning import GATHERED_ENTRIES

if TYPE_CHECKING:
    from scipy.sparse.linalg import LinearOperator

    from skpursuit.data.codes.coded_tile import CodedTile


class ComplexTile(Tile):
    """A complex array of two dimensions; copied only where it has gaps in memory."""

    is_complex = can_encode = True
    mean_rounding_unit = MEAN_UNIT

    def __init__(self, X: np.ndarray) -> None:
        check_shape(X.shape)
        X = X.astype(np.complex64 if X.dtype.itemsize == 8 else np.complex128, copy=False)
        by_columns = is_by_columns(X)
        if not by_columns and X.strides[1] != X.itemsize:
            X = np.ascontiguousarray(X)
        part = np.finfo(X.dtype).dtype
        self.whole = DenseTile(X, by_columns)
        self.real = DenseTile(X.T.view(part).T if by_columns else X.view(part), by_columns)
        self.shape, self.dtype, self.fast_axis = (2 * len(X), 2 * X.shape[1]), part, self.real.fast_axis

    @property
    def rounding_unit(self) -> float:
        """Twice that of the complex product: a part of it is a sum of twice as many terms."""
        return 2 * self.whole.rounding_unit

    @property
    def has_fast_rows(self) -> bool:  # type: ignore[override]
        return self.whole.has_fast_rows

    def ensure_layout(self, what: str) -> Cost:
        return self.whole.ensure_layout(what)

    def samples(self) -> list[Sample]:
        return self.real.samples()

    def cost(self, rows: Indices | None = None, cols: Indices | None = None) -> Cost:
        tall = self.shape[0] if rows is None else 2 * len(np.unique(rows // 2))
        entries = tall * (self.shape[1] // 2 if cols is None else len(np.unique(cols // 2)))
        return entries, entries * self.dtype.itemsize

    def product(self, r: Floats, rows: Indices | None = None) -> Floats:
        if rows is not None:
            out = np.zeros((self.shape[1], *r.shape[1:]))
            self.add_rows(rows, r[rows], out)
            return out
        cast, exponent = cast_residual(r, self.dtype)
        g = as_real(self.whole.product(as_complex(cast).conj()).conj())
        return g if self.dtype == np.float64 else np.ldexp(g, exponent)

    def add_rows(self, rows: Indices, weights: Floats, out: Floats, cols: Indices | None = None) -> None:
        pairs, places = np.unique(rows // 2, return_inverse=True)
        table = np.zeros((2 * len(pairs), *weights.shape[1:]))
        np.add.at(table, 2 * places + rows % 2, weights)
        z = as_complex(table).conj()
        wanted: Indices | slice = slice(None)
        at: Indices | slice = slice(None)
        if cols is not None:
            wanted, places = np.unique(cols // 2, return_inverse=True)
            at = 2 * places + cols % 2
        X = self.whole.X if self.whole.c_order_copy is None else self.whole.c_order_copy
        step = max(1, GATHERED_ENTRIES // self.shape[1])
        for start in range(0, len(pairs), step):
            block = X[pairs[start : start + step]][:, wanted]
            out += as_real((z[start : start + step].T @ block).T.conj())[at]

    def take(self, cols: Indices) -> Floats:
        wanted, places = np.unique(cols // 2, return_inverse=True)
        lines = np.array(self.whole.X[:, wanted].T, dtype=np.complex128, order="C")[places]
        lines[cols % 2 == 1] *= 1j
        return lines.view(np.float64)

    def encode(self, fine: bool, totals: Floats | None = None) -> CodedTile:
        from skpursuit.data.codes.complex_codes import ComplexCodes

        return ComplexCodes.of(self.real.X, self.fast_axis == 0, fine)

    def norm_parts(self, axis: int, order: float = 2) -> Floats:
        parts = self.real.norm_parts(axis, order)
        if axis == 1 and self.fast_axis == 0:
            join = np.add if order == 2 else np.maximum
            parts = join.reduce(parts.reshape(-1, 2), axis=1)
        return np.repeat(parts, 2)

    @np.errstate(all="ignore")
    def survey(self, weights: list[Floats | None], spreads: bool) -> list[Blocks]:
        starts = range(0, self.shape[0], BLOCK_ROWS)
        found = [(np.empty(len(starts)), *np.empty((2, len(starts), self.shape[1]))) for _ in weights]
        for b, start in enumerate(starts):
            block = self.whole.X[start // 2 : (start + BLOCK_ROWS) // 2].astype(np.complex128)
            re, im = block.real**2, block.imag**2
            for (weight, sums, squares), w in zip(found, weights):
                z = as_complex(np.ones(2 * len(block)) if w is None else w[start : start + BLOCK_ROWS])
                weight[b] = z.real.sum() + z.imag.sum()
                sums[b] = as_real(np.einsum("i,ij->j", z, block.conj()))  # of x, and of i x
                of = [np.einsum("i,ij->j", w, part) for part in (re, im) for w in (z.real, z.imag)]
                total = np.stack([of[0] + of[3], of[2] + of[1]], axis=1).ravel()
                squares[b] = total - sums[b] ** 2 / (weight[b] or 1.0)
        return found


def as_complex(table: Floats) -> Any:
    """Complex vectors from their parts, which take turns along the first axis."""
    z = np.empty((len(table) // 2, *table.shape[1:]), np.result_type(table.dtype, np.complex64))
    z.real, z.imag = table[::2], table[1::2]
    return z


def as_real(z: Any) -> Floats:
    """The parts of complex vectors, which take turns along the first axis."""
    return np.stack([z.real, z.imag], axis=1).reshape(2 * len(z), *z.shape[1:])


def real_operator(X: LinearOperator) -> LinearOperator:
    """A complex operator as a real one of twice the size."""
    from scipy.sparse.linalg import LinearOperator

    def called(verb: str, v: Floats) -> Floats:
        vectors = as_complex(v.reshape(len(v), -1)).astype(X.dtype, copy=False)
        parts = as_real(np.asarray(getattr(X, verb)(vectors))).astype(np.float64)
        return parts.reshape(len(parts), *v.shape[1:])

    one, many = partial(called, "matmat"), partial(called, "rmatmat")
    given = {"matvec": one, "matmat": one, "rmatvec": many, "rmatmat": many}
    part = np.finfo(X.dtype).dtype
    return LinearOperator((2 * X.shape[0], 2 * X.shape[1]), dtype=part, **given)
