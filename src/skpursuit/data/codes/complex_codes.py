"""Codes of a complex tile: those of its real view, whose estimates are joined as its products are.

A complex column is a group of two real ones, and no group is drafted ahead, so that there are no products of
decoded columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from skpursuit.data.codes.coded_tile import CodedTile
from skpursuit.data.complex_tile import columns_of_real_view, from_real_view, to_real_view
from skpursuit.numerics.arrays import Floats, Indices
from skpursuit.numerics.float_range import EPS

Bounded = tuple[Floats, NDArray[np.float64]]  # an estimate and a bound on its error


@dataclass(frozen=True)
class ComplexCodes(CodedTile):
    """Codes of the real view of a complex tile, by columns or by rows."""

    by_columns: bool = False

    @staticmethod
    def of(real_view: Floats, by_columns: bool, fine: bool) -> ComplexCodes:
        """Encode the real view."""
        return ComplexCodes(**vars(CodedTile.build(real_view, fine=fine)), by_columns=by_columns)

    def estimate(self, r: Floats, fine: bool = False, cols: Indices | None = None) -> Bounded:
        used, at = None, None
        if cols is not None:
            used, at = columns_of_real_view(cols, self.by_columns)
        g, bound = super().estimate(to_real_view(r, self.by_columns), fine, used)
        wider = (bound + EPS * np.abs(g)) * (1 + 4 * EPS)  # the sum of two is rounded
        joined = from_real_view(g, self.by_columns), from_real_view(wider, self.by_columns, 1.0)
        value, error = (part.astype(np.float64, copy=False).reshape(-1, *r.shape[1:]) for part in joined)
        return (value, error) if at is None else (value[at], error[at])

    @cached_property
    def needs_no_rescaling(self) -> bool:
        """False: decoded columns are not multiplied."""
        return False

    @cached_property
    def norm_bounds(self) -> NDArray[np.float64]:
        parts = super().norm_bounds.reshape(-1, 1 if self.by_columns else 2)
        return np.repeat(np.hypot.reduce(parts, axis=1) * (1 + 4 * EPS), 2)
