"""Codes of a complex tile: those of its real view, whose estimates are joined as products are.

The real view of X serves both real columns of each complex one: in C order (n, 2 d), with residuals Re r and
Im r; in F order (2 n, d), with residuals r and -i r. A complex column is a group of two real ones, and groups
are not drafted ahead, so that no products of decoded columns are made.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from skpursuit.data.codes.coded_tile import CodedTile
from skpursuit.data.complex_tile import as_complex, as_real
from skpursuit.numerics.arrays import Floats, Indices
from skpursuit.numerics.float_range import EPS


@dataclass(frozen=True)
class ComplexCodes(CodedTile):
    """Codes of the real view of a complex tile, by columns or by rows."""

    by_columns: bool = False
    needs_no_rescaling = False  # which products of decoded columns ask for

    @staticmethod
    def of(real_view: Floats, by_columns: bool, fine: bool) -> ComplexCodes:
        """Encode the real view."""
        return ComplexCodes(**vars(CodedTile.build(real_view, fine=fine)), by_columns=by_columns)

    def estimate(
        self, r: Floats, fine: bool = False, cols: Indices | None = None
    ) -> tuple[Floats, NDArray[np.float64]]:
        table, used, shape = r.reshape(len(r), -1), cols, (-1, *r.shape[1:])
        at: Indices | slice = slice(None)
        if self.by_columns:
            table = np.hstack([table, as_real(-1j * as_complex(table))])
        else:
            table = table.reshape(len(r) // 2, -1)
        if cols is not None:
            wanted, places = np.unique(cols // 2, return_inverse=True)
            used = wanted if self.by_columns else np.ravel(2 * wanted[:, None] + np.arange(2))
            at = 2 * places + cols % 2
        g, bound = super().estimate(table, fine, used)
        bound = (bound + EPS * np.abs(g)) * (1 + 4 * EPS)  # the sum of two is rounded
        value = self._joined(np.asarray(g, np.float64), -1.0).reshape(shape)[at]
        return value, self._joined(bound, 1.0).reshape(shape)[at]

    def _joined(self, g: NDArray[np.float64], sign: float) -> NDArray[np.float64]:
        """Products as entries of X^T r; with `sign` 1 their bounds."""
        if self.by_columns:
            return g
        parts = g.reshape(len(g) // 2, 2, 2, -1)
        return np.stack([parts[:, 0, 0] + parts[:, 1, 1], parts[:, 0, 1] + sign * parts[:, 1, 0]], axis=1)

    @cached_property
    def norm_bounds(self) -> NDArray[np.float64]:
        parts = super().norm_bounds.reshape(-1, 1 if self.by_columns else 2)
        return np.repeat(np.hypot.reduce(parts, axis=1) * (1 + 4 * EPS), 2)
