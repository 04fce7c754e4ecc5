"""Complex X as real numbers: two real rows for each of its rows, two real columns for each of its columns.

Row by row a complex column x is the real and imaginary parts of its entries, and its second column is i x. A
complex coefficient u + iv is then u of the first and v of the second, and x^H r of complex residuals has its
parts in their two entries of X^T r. So a complex column is a group of two real ones, and everything that is
known of groups holds: scores |x^H r|, bounds, proofs. The second columns are never stored. Where X is in
memory its real view serves both: in C order (n, 2 d), with residuals Re r and Im r; in F order (2 n, d), with
residuals r and -i r. A linear operator is called with complex vectors.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from skpursuit.data.dense_tile import MEAN_UNIT, DenseTile, check_shape, is_by_columns
from skpursuit.data.survey import Blocks
from skpursuit.data.tile import Cost, Sample, Tile
from skpursuit.numerics.arrays import Floats, Indices
from skpursuit.numerics.float_range import EPS
from skpursuit.numerics.tuning import GATHERED_ENTRIES

if TYPE_CHECKING:
    from scipy.sparse.linalg import LinearOperator


class ComplexTile(Tile):
    """A complex array of two dimensions behind its real view; copied only where it has gaps in memory."""

    is_complex = True
    mean_rounding_unit = MEAN_UNIT

    def __init__(self, X: np.ndarray) -> None:
        check_shape(X.shape)
        X = X.astype(np.complex64 if X.dtype.itemsize == 8 else np.complex128, copy=False)
        self.by_columns = is_by_columns(X)
        if not self.by_columns and X.strides[1] != X.itemsize:
            X = np.ascontiguousarray(X)
        part = np.finfo(X.dtype).dtype
        self.real = DenseTile(X.T.view(part).T if self.by_columns else X.view(part), self.by_columns)
        self.shape, self.dtype = (2 * len(X), 2 * X.shape[1]), part

    @property
    def rounding_unit(self) -> float:
        """That of the real view, and of a sum of two."""
        return self.real.rounding_unit + 2 * EPS

    def samples(self) -> list[Sample]:
        return self.real.samples()

    def cost(self, rows: Indices | None = None, cols: Indices | None = None) -> Cost:
        entries = self.shape[0] * (self.shape[1] // 2 if cols is None else len(np.unique(cols // 2)))
        return entries, entries * self.dtype.itemsize

    def product(self, r: Floats, rows: Indices | None = None) -> Floats:
        n, d = self.shape
        table = np.asarray(r, dtype=np.float64).reshape(n, -1)
        if self.by_columns:
            g = self._products(np.hstack([table, -times_i(table)]))
            return g.reshape(d // 2, 2, -1).reshape(d, *r.shape[1:])
        parts = self._products(table.reshape(n // 2, -1)).reshape(d // 2, 2, 2, -1)
        both = np.stack([parts[:, 0, 0] + parts[:, 1, 1], parts[:, 0, 1] - parts[:, 1, 0]], axis=1)
        return both.reshape(d, *r.shape[1:])

    def _products(self, table: Floats) -> Floats:
        """Products of the real view: two are made one by one, which BLAS does in a third of the time."""
        if table.shape[1] > 2:
            return self.real.product(table)
        return np.column_stack([self.real.product(np.ascontiguousarray(r)) for r in table.T])

    def add_rows(self, rows: Indices, weights: Floats, out: Floats, cols: Indices | None = None) -> None:
        r = np.zeros((self.shape[0], *weights.shape[1:]))
        np.add.at(r, rows, weights)
        out += self.product(r)[slice(None) if cols is None else cols]

    def take(self, cols: Indices) -> Floats:
        wanted, places = np.unique(cols // 2, return_inverse=True)
        lines = np.empty((len(wanted), self.shape[0]))
        if self.by_columns:
            lines[:] = self.real.take(wanted)
        else:
            lines[:, ::2], lines[:, 1::2] = self.real.take(2 * wanted), self.real.take(2 * wanted + 1)
        lines, second = lines[places], cols % 2 == 1
        lines[second] = times_i(lines[second].T).T
        return lines

    def survey(self, weights: list[Floats | None], spreads: bool) -> list[Blocks]:
        every, step = np.arange(self.shape[1]), 2 * max(1, GATHERED_ENTRIES // self.shape[0])
        parts = (self.take(every[j : j + step]).T for j in range(0, len(every), step))
        found = [DenseTile(part, by_columns=True).survey(weights, spreads) for part in parts]
        joined = ([np.hstack(kind) for kind in list(zip(*each))[1:]] for each in zip(*found))
        return [(found[0][k][0], sums, squares) for k, (sums, squares) in enumerate(joined)]


def times_i(table: Floats) -> Floats:
    """I times complex vectors whose parts take turns along the first axis."""
    turned = np.empty_like(table)
    turned[::2], turned[1::2] = -table[1::2], table[::2]
    return turned


def real_operator(X: LinearOperator) -> LinearOperator:
    """A complex operator as a real one of twice the size."""
    from scipy.sparse.linalg import LinearOperator

    part = np.finfo(X.dtype).dtype

    def called(verb: str, v: Floats) -> Floats:
        pairs = np.ascontiguousarray(v.reshape(len(v) // 2, 2, -1).transpose(0, 2, 1))
        vectors = pairs.view(np.complex128)[..., 0].astype(X.dtype, copy=False)
        found = np.asarray(getattr(X, verb)(vectors))
        parts = np.stack([found.real, found.imag], axis=1).reshape(2 * len(found), -1).astype(np.float64)
        return parts.reshape(len(parts), *v.shape[1:])

    one, many = partial(called, "matmat"), partial(called, "rmatmat")
    given = {"matvec": one, "matmat": one, "rmatvec": many, "rmatmat": many}
    return LinearOperator((2 * X.shape[0], 2 * X.shape[1]), dtype=part, **given)
