"""A view of X as data: some rows of it, centred, scaled and weighted, and perhaps a constant column.

    V = [ diag(row_scale) (X[rows] - 1 centre^T) diag(1 / scale),  1 ]

No view is ever formed. A residual r of the view becomes a residual of X: multiplied by `row_scale`, and
spread over all rows with zeros in those that are left out (X is finite, so these add exactly nothing). What
X^T gives for it is then corrected: less `centre` times the sum of the residual, divided by `scale`. Sparse X
stays sparse, and norms, layouts and codes of X serve every view, those of all folds among them.

All parts may be missing. Views compose (`View.compose`), except centring after weights, which would be the
centring of other columns, and anything but fewer rows after the constant column.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from skpursuit.numerics.arrays import Floats, Indices
from skpursuit.numerics.error_bounds import guard_underflow, sum_error_bound
from skpursuit.numerics.float_range import EPS
from skpursuit.numerics.sums import scaled_rows

ColumnKey = Indices | slice
ALL_COLUMNS = slice(None)


@dataclass(frozen=True, eq=False)
class View:
    """What a solver sees of X."""

    rows: Indices | None = None  # that are there, ascending
    centre: Floats | None = None  # (d,), subtracted from each column
    scale: Floats | None = None  # (d,), then divided into each
    row_scale: Floats | None = None  # (rows,), multiplied into each row: the square root of sample weights
    constant: bool = False  # whether a last column of ones is added, which the other parts do not touch

    def compose(
        self,
        rows: Indices | None = None,
        centre: Floats | None = None,
        scale: Floats | None = None,
        root: Floats | None = None,
        constant: bool = False,
    ) -> View:
        """The view that sees this one through another."""
        if self.constant and not (centre is None and scale is None and root is None and not constant):
            raise ValueError("a view with a constant column is the last one; add that column at the end")
        if centre is not None and self.row_scale is not None:
            raise ValueError("columns are centred before rows are weighted; centre the first view")
        kept, moved, unit, factors = self.rows, self.centre, self.scale, self.row_scale
        if rows is not None:
            kept = rows if kept is None else kept[rows]
            factors = None if factors is None else factors[rows]
        if centre is not None:
            centre = centre if unit is None else centre * unit
            moved = centre if moved is None else moved + centre
        if scale is not None:
            unit = scale if unit is None else unit * scale
        if root is not None:
            factors = root if factors is None else factors * root
        return View(kept, moved, unit, factors, constant or self.constant)

    @cached_property
    def is_identity(self) -> bool:
        """Whether X is seen as it is."""
        return self.rows is None and self.has_raw_entries and not self.constant

    @cached_property
    def has_raw_entries(self) -> bool:
        """Whether entries are those of X."""
        return self.centre is None and self.scale is None and self.row_scale is None

    @cached_property
    def is_centred(self) -> bool:
        """Whether anything is subtracted from the columns."""
        return self.centre is not None and bool(self.centre.any())

    def shape(self, of_x: tuple[int, int]) -> tuple[int, int]:
        """The shape of the view of an X of that shape."""
        return len(self.rows) if self.rows is not None else of_x[0], of_x[1] + self.constant

    # -- residuals go down ----------------------------------------------------------------------------

    def scale_rows(self, r: Floats) -> Floats:
        """Residuals times the row factors."""
        return r if self.row_scale is None else scaled_rows(r, self.row_scale)

    def scatter_rows(self, u: Floats, n: int) -> Floats:
        """Residuals of some rows as residuals of all n rows of X."""
        if self.rows is None:
            return u
        out = np.zeros((n, *u.shape[1:]))
        out[self.rows] = u
        return out

    def rows_of_x(self, rows: Indices) -> Indices:
        """Rows of the view by their numbers in X."""
        return rows if self.rows is None else self.rows[rows]

    @cached_property
    def anchor_row(self) -> int:
        """The first row of X that counts."""
        first = 0 if self.row_scale is None else int(np.argmax(self.row_scale != 0))
        return first if self.rows is None else int(self.rows[first])

    # -- products come up -----------------------------------------------------------------------------

    def correct_product(self, g: Floats, total: Floats | float, cols: ColumnKey = ALL_COLUMNS) -> Floats:
        """Entries of X^T u as entries of the view's product, given sum(u)."""
        if self.centre is not None:
            g = g - np.multiply.outer(self.centre[cols], total)
        return self.divide_by_scale(g, cols)

    def divide_by_scale(self, g: Floats, cols: ColumnKey = ALL_COLUMNS) -> Floats:
        """Entries for each column, divided by its scale."""
        return g if self.scale is None else (g.T / self.scale[cols]).T

    def bound_per_scale(self, bound: Floats, cols: ColumnKey = ALL_COLUMNS) -> Floats:
        """Error bounds for each column, divided by its scale and rounded up."""
        below = self.divide_by_scale(bound, cols)
        return bound if self.scale is None else guard_underflow(np.abs(below), bound)

    def centring_error_bound(self, unit: float, u: Floats, cols: ColumnKey = ALL_COLUMNS) -> Floats | float:
        """Rounding of centre * sum(u), relative to `unit`."""
        return 0.0 if self.centre is None else sum_error_bound(unit, self.centre[cols], u)

    def correct_estimate(
        self, u: Floats, g: Floats, bound: Floats, sizes: Floats, cols: ColumnKey
    ) -> tuple[Floats, Floats]:
        """Estimates of the view from those of X; the bound grows by the rounding of this."""
        # The rounding of u itself moves an entry by at most eps ||x_j||_inf sum|u|.
        unit = 4 * (len(u) + 8) * EPS
        error = unit * (np.abs(g) + bound) + self.centring_error_bound(unit, u, cols)
        error = error + sum_error_bound(4 * EPS, sizes[cols], u)
        return self.correct_product(g, u.sum(axis=0), cols), self.bound_per_scale(bound + error, cols)

    # -- columns ----------------------------------------------------------------------------------------

    def columns(self, lines: Floats, cols: Indices) -> Floats:
        """Columns of the view from those of X, the rows of a new array that is written to."""
        if self.rows is not None:
            lines = np.take(lines, self.rows, axis=1)
        if self.centre is not None:
            lines -= self.centre[cols, None]
        if self.scale is not None:
            lines /= self.scale[cols, None]
        if self.row_scale is not None:
            lines *= self.row_scale
        return lines

    def entries(self, values: Floats, rows: Indices, cols: Indices) -> Floats:
        """Single entries of the view from those of X."""
        if self.centre is not None:
            values = values - self.centre[cols]
        values = self.divide_by_scale(values, cols)
        return values if self.row_scale is None else values * self.row_scale[rows]

    def norm_bounds(self, sizes: Floats, n: int) -> Floats:
        """Upper bounds of column norms, of the columns before centring too."""
        # That is what the rounding of a product is relative to.
        if self.centre is not None:
            sizes = sizes + np.abs(self.centre) * np.sqrt(n)
        if self.row_scale is not None:
            sizes = sizes * np.abs(self.row_scale).max(initial=0.0)
        return sizes if self.scale is None else sizes / np.abs(self.scale)

    def fingerprint(self) -> bytes:
        """What tells this view from others."""
        parts = {"rows": self.rows, "centre": self.centre, "scale": self.scale, "root": self.row_scale}
        given = [name.encode() + part.tobytes() for name, part in parts.items() if part is not None]
        return repr(self.constant).encode() + b"".join(given)


def constant_bound(r: Floats) -> Floats:
    """Bound on the rounding of the sums of residuals."""
    return sum_error_bound(2 * len(r) * EPS, np.ones(1), r)[0]
