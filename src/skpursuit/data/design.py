"""A design: X as a solver sees it, behind a dozen verbs, and the one place where reading is counted.

A design is put together from four parts: a store of tiles (X itself), a view (rows, centring, scaling,
weights, a constant column), a counter, and what is kept for that view. A verb takes the residual down through
the view, asks the store, and corrects what comes up; no other code knows views.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property, partial
from math import sqrt

import numpy as np

from skpursuit.data.caches import ColumnCache
from skpursuit.data.codes.coded_matrix import ViewCodes, survey_with_codes
from skpursuit.data.read_counter import ReadCounter
from skpursuit.data.store import Access, TileStore
from skpursuit.data.survey import Survey
from skpursuit.data.tile import Cost
from skpursuit.data.view import View, constant_bound
from skpursuit.numerics.arrays import Compressed, Floats, Indices
from skpursuit.numerics.error_bounds import product_error_bound
from skpursuit.numerics.float_range import EPS
from skpursuit.numerics.sums import safe_norm, scaled_rows


class Design:
    """A data matrix X (n rows, d columns) behind a view, with a counter that all views of it share."""

    def __init__(self, store: TileStore, view: View | None = None, reads: ReadCounter | None = None) -> None:
        self.store = store
        self.access: Access = store  # where X is, and what it costs to read it
        self.view = View() if view is None else view
        self.reads = ReadCounter() if reads is None else reads
        self.shape, self.dtype = self.view.shape(store.shape), store.dtype
        self.limit = store.memory_budget  # of what is kept beside X
        self.names = store.names  # of the columns of X, where its source has them
        self.on_disk = store.on_disk  # whether X is read from files, tile by tile
        self.in_memory = store.in_memory  # whether X is at hand, so that layouts of it can be kept
        self.is_complex = store.is_complex  # whether pairs of rows and columns stand for complex ones
        self.has_codes = store.first.can_encode  # without them the exact product is cheap, or all there is
        self.column_costs_full_pass = store.column_costs_full_pass  # so likely ones come with it
        self.constant = store.shape[1] if self.view.constant else None  # the view's column of ones
        # What was derived for this view; that of X itself where the view is plain.
        self.caches = store.caches if self.view.is_identity else store.new_caches()

    def with_view(self, view: View) -> Design:
        """The same X behind another view, with the same counter."""
        return Design(self.store, view, self.reads)

    def for_run(self, private: bool = False) -> Design:
        """The same design, sharing what is kept, with a counter of its own; `private` for one thread's use.

        Columns gathered for a private design are its own, so that threads do not push out each other's.
        """
        other = Design.__new__(Design)
        other.__dict__.update(self.__dict__)
        other.reads = ReadCounter()
        if private:
            other.caches = replace(self.caches, columns=ColumnCache(), gram_columns=ColumnCache())
        return other

    @property
    def in_memory_matrix(self) -> Floats | Compressed | None:
        """X as one array or sparse matrix, where it is that in memory and is seen as it is; else None."""
        return self.store.in_memory_matrix if self.view.is_identity else None

    # -- products ---------------------------------------------------------------------------------------

    def product(self, r: Floats, rows: Indices | None = None) -> Floats:
        """V^T r as float64, for r of shape (n,) or (n, m), in any order of summation.

        Equal columns may differ in their last bits. `rows` are those where r is not zero, when they are few:
        only they are read.
        """
        view = self.view
        if rows is not None:
            rows = view.rows_of_x(rows)
            tile = self.store.first
            if len(rows) * tile.shape[1] > tile.small_product:
                self.store.ensure_layout("rows", self.reads)
        self.reads.add(*self.store.cost(rows))
        if view.is_identity:
            return self.store.product(r, rows)
        u = view.scale_rows(r)
        g = self.store.product(view.scatter_rows(u, self.store.shape[0]), rows)
        g = view.correct_product(g, u.sum(axis=0))
        return g if self.constant is None else self._join_constant(g, r.sum(axis=0, dtype=np.float64))

    def rounding(self, r: Floats, any_order: bool = False) -> Floats | None:
        """Bound on the rounding of `product`, one per column; None where it is a fixed-order product.

        With `any_order` that of a float64 sum over all rows in any order, as `add_rows` makes it.
        """
        view, store = self.view, self.store
        if view.is_identity and not any_order:
            return store.product_error(r, self.reads)
        u = view.scale_rows(r)
        spread = view.scatter_rows(u, store.shape[0])
        error = None if any_order else store.product_error(spread, self.reads)
        if error is None and (any_order or view.is_centred):
            sizes, unit = store.norm_bounds(self.reads), 2 * (len(spread) + 8) * EPS
            error = product_error_bound(unit, sizes, spread, np.dtype(np.float64))
        if error is None:
            return None
        if view.is_centred:
            unit = 4 * (len(u) + 8) if any_order else 2 * (len(u) + 2)
            error = error + view.centring_error_bound(unit * EPS, u)
        error = view.bound_per_scale(error)
        return error if self.constant is None else self._join_constant(error, constant_bound(r))

    def dots(
        self, cols: Indices, r: Floats, prefetch_candidates: Callable[[int], Indices] | None = None
    ) -> Floats:
        """Entries of V^T r at `cols` by a fixed-order product: equal columns have equal bits.

        `prefetch_candidates(count)` are columns that may be asked for soon: gathered too where that is cheap.
        """
        cols = np.asarray(cols)
        real = self._without_constant(cols)
        if prefetch_candidates is not None:
            self._gather_ahead(real, prefetch_candidates)
        self.reads.add(*self._column_cost(real))
        g, r = self._real_dots(real, r), np.asarray(r)
        return g if len(real) == len(cols) else self._join_constant(g, r.sum(axis=0, dtype=np.float64), cols)

    def _real_dots(self, cols: Indices, r: Floats) -> Floats:
        """From columns less an entry of their own, which leaves no more of a large mean than centring does.

        Subtracting the centres themselves would tell equal columns apart by the rounding of their means.
        """
        view = self.view
        u = view.scale_rows(np.asarray(r, dtype=np.float64))
        anchor_row = view.anchor_row if view.is_centred else None
        g, first = self.store.dots(cols, view.scatter_rows(u, self.store.shape[0]), anchor_row)
        if view.centre is not None and first is not None:
            g = g - np.multiply.outer(view.centre[cols] - first, u.sum(axis=0))
        return view.divide_by_scale(g, cols)

    def add_rows(self, rows: Indices, weights: Floats, out: Floats, cols: Indices | None = None) -> None:
        """out[j] += sum over rows of weights[i] * V[rows[i], j], for all j or those in `cols`.

        `out` is float64 of shape (d,) or (len(cols),), with a trailing m when weights is (len(rows), m).
        """
        view = self.view
        self.store.ensure_layout("rows", self.reads)
        self.reads.add(*self.cost(rows, cols))
        if view.is_identity:
            self.store.add_rows(rows, weights, out, cols)
            return
        u = weights if view.row_scale is None else scaled_rows(weights, view.row_scale[rows])
        real = None if cols is None else self._without_constant(np.asarray(cols))
        part = np.zeros((*out.shape[1:], self.store.shape[1] if real is None else len(real))).T
        self.store.add_rows(view.rows_of_x(rows), u, part, real)
        part = view.correct_product(part, u.sum(axis=0), slice(None) if real is None else real)
        out += part if self.constant is None else self._join_constant(part, weights.sum(axis=0), cols)

    def _without_constant(self, cols: Indices) -> Indices:
        """The columns that are X's, without the constant one."""
        return cols if self.constant is None else cols[cols != self.constant]

    def _join_constant(self, g: Floats, last: float | Floats, cols: Indices | None = None) -> Floats:
        """Numbers for columns (default: all) from those for columns of X and that for the constant one."""
        constant = (np.arange(self.shape[1]) if cols is None else cols) == self.constant
        out = np.empty((len(constant), *g.shape[1:]))
        out[~constant], out[constant] = g, last
        return out

    # -- columns and entries ------------------------------------------------------------------------------

    def columns(
        self, cols: Indices, cache: bool = True, prefetch_candidates: Callable[[int], Indices] | None = None
    ) -> Floats:
        """Gather columns as the rows of a C-contiguous float64 array of shape (len(cols), n).

        Kept, because a pursuit comes back to them: not to be written to. Not counted as selection. Without
        `cache` they are for one use, and counted. `prefetch_candidates` as in `dots`.
        """
        cols = np.asarray(cols)
        if prefetch_candidates is not None:
            self._gather_ahead(self._without_constant(cols), prefetch_candidates)
        if not cache and not self.column_costs_full_pass:
            return self._gather(cols, self.reads.add)
        gather = partial(self._gather, count=self.reads.add_prepared)
        lines, gathered = self.caches.columns.lines(cols.tolist(), gather)
        if gathered is not None and len(gathered) == len(lines):
            return gathered
        if len(lines) <= 1:
            return lines[0][None] if lines else np.empty((0, self.shape[0]))
        return np.stack(lines)

    def _gather(self, cols: Indices, count: Callable[[int, int], None]) -> Floats:
        """Columns of the view as a new array; columns of X that are kept are not read again."""
        view, store, real = self.view, self.store, self._without_constant(cols)
        new = [j for j in real.tolist() if j not in store.caches.columns.arrays]
        count(*self._column_cost(np.array(new, dtype=np.intp)))
        if len(new) == len(real):
            lines = store.take(real) if len(real) else np.empty((0, store.shape[0]))
        else:
            lines = np.stack(store.lines(real))
        lines = view.columns(lines, real)
        return lines if len(real) == len(cols) else self._join_constant(lines, 1.0, cols)

    def _gather_ahead(self, cols: Indices, prefetch_candidates: Callable[[int], Indices]) -> None:
        """Gather columns of X together with likely ones, where a sweep over the rows costs as much as one."""
        held, width = self.store.caches.columns.arrays, self.store.gather_ahead_width()
        if not width or all(j in held for j in cols.tolist()):
            return
        likely = self._without_constant(prefetch_candidates(width)).tolist()
        wanted = dict.fromkeys([*cols.tolist(), *(j for j in likely if j not in held)])
        some = np.array(list(wanted)[: len(cols) + width], dtype=np.intp)
        self.reads.add_prepared(*self.store.cost(cols=some[len(cols) :]))
        self.store.lines(some)

    def entries(self, rows: Indices, cols: Indices) -> Floats:
        """Single entries V[rows[i], cols[i]]: the pulls of a bandit."""
        asked = cols
        if self.constant is not None:
            rows, cols = rows[asked != self.constant], asked[asked != self.constant]
        store, at = self.store, self.view.rows_of_x(rows)
        store.ensure_layout("entries", self.reads)
        values = store.entries(at, cols)
        self.reads.add(len(cols), len(cols) * self.dtype.itemsize)
        if not self.view.has_raw_entries:
            values = self.view.entries(values, rows, cols)
        return values if len(cols) == len(asked) else self._join_constant(values, 1.0, asked)

    def predict(self, support: Indices, coef: Floats) -> Floats:
        """V_S w_S, for coef of shape (len(support),) or (len(support), m)."""
        coef, view = np.asarray(coef, dtype=np.float64), self.view
        if not self.store.sums_in_place(support):
            return np.einsum("kn,k...->n...", self.columns(support), coef)
        real = support < self.store.shape[1]
        cols = support[real]
        self.reads.add_prepared(*self._column_cost(cols))
        centre = None if view.centre is None else view.centre[cols]
        z = self.store.combine_columns(cols, centre, view.divide_by_scale(coef[real], cols))
        z = view.scale_rows(z if view.rows is None else z[view.rows])
        return z + coef[~real].sum(axis=0)

    # -- norms, means and bounds ---------------------------------------------------------------------------

    def norms(self, axis: int, order: float = 2) -> Floats:
        """2-norms of the columns (axis 0), or norms of the rows (axis 1) of order 2 or infinity. Kept."""
        key = (axis, order)
        if key not in self.caches.norms:
            norms = self._column_norms() if axis == 0 else self._row_norms(order)
            if self.constant is not None and axis == 0:
                norms = self._join_constant(norms, sqrt(self.shape[0]))
            elif self.constant is not None:
                norms = np.maximum(norms, 1.0) if order == np.inf else np.hypot(norms, 1.0)
            self.caches.norms[key] = norms
        return self.caches.norms[key]

    def _column_norms(self) -> Floats:
        view, root = self.view, None
        if view.row_scale is not None or view.rows is not None:
            root = view.scatter_rows(view.scale_rows(np.ones(self.shape[0])), self.store.shape[0])
        survey = self.store.survey(self.reads, None if root is None else root * root)
        norms = survey.sizes if view.centre is None else survey.norms(view.centre)
        return norms if view.scale is None else norms / np.abs(view.scale)

    def _row_norms(self, order: float) -> Floats:
        view, d = self.view, self.store.shape[1]
        if not view.is_centred and view.scale is None:
            norms = self.store.row_norms(order, self.reads)
            norms = norms if view.rows is None else norms[view.rows]
            return norms if view.row_scale is None else norms * np.abs(view.row_scale)
        out = np.zeros(self.shape[0])
        self.store.ensure_layout("columns", self.reads)
        step = max(1, 2**20 // self.shape[0])
        for start in range(0, d, step):
            cols = np.arange(start, min(start + step, d))
            self.reads.add_prepared(*self.store.cost(cols=cols))
            block = view.columns(self.store.take(cols), cols)
            some = np.linalg.norm(block, order, axis=0)
            out = np.maximum(out, some) if order == np.inf else np.hypot(out, some)
        return out

    def survey(self, weights: Floats | None = None, fine: bool | None = None, spreads: bool = True) -> Survey:
        """Weight, means and spreads of the columns, with these weights of rows or without, from one pass.

        Of the columns of X behind the view, without row factors and without the constant column. `fine` says
        that codes will be needed, with a second byte or without: X on disk is read once for both.
        """
        view, n = self.view, self.store.shape[0]
        if view.rows is not None:
            weights = view.scatter_rows(np.ones(self.shape[0]) if weights is None else weights, n)
        if fine is not None:
            survey_with_codes(self.store, self.reads, fine, weights, spreads)
        survey = self.store.survey(self.reads, weights, spreads)
        if view.centre is None and view.scale is None:
            return survey
        means = view.correct_product(survey.means, 1.0)
        squares = view.divide_by_scale(view.divide_by_scale(survey.squares))
        return Survey(survey.weight, means, squares, survey.unit, survey.has_spreads)

    @property
    def norm_bounds(self) -> Floats:
        """Upper bounds of the column norms, for at most one pass over X."""
        # They bound the columns before centring too: that is what rounding is relative to.
        sizes = self.store.norm_bounds(self.reads)
        if self.view.is_identity:
            return sizes
        sizes = self.view.norm_bounds(sizes, self.shape[0])
        return sizes if self.constant is None else self._join_constant(sizes, sqrt(self.shape[0]))

    @cached_property
    def rounding_unit(self) -> float:
        """Bound on the rounding of an entry of `product`, relative to its size and ||r||."""
        unit = self.store.rounding_unit if self.view.has_raw_entries else 2 * self.store.rounding_unit
        return max(unit, (self.shape[0] + 8) * EPS) if self.constant is not None else unit

    def noise_floor(self, cols: Indices) -> Floats:
        """Norm below which a centred column is only rounding of its mean, one per column."""
        view, real = self.view, self._without_constant(np.asarray(cols))
        if view.centre is None:
            return np.zeros(len(cols))
        size = sqrt(self.shape[0]) if view.row_scale is None else safe_norm(view.row_scale)
        taken = np.abs(view.divide_by_scale(view.centre[real] * size, real))  # norms of the means
        floor = self.store.first.mean_rounding_unit * taken
        return floor if len(real) == len(cols) else self._join_constant(floor, 0.0, cols)

    # -- codes ----------------------------------------------------------------------------------------------

    def codes(self, fine: bool = False) -> ViewCodes:
        """X in one byte an entry, or two (`fine`), behind the same view; kept."""
        return ViewCodes(self, fine)

    # -- counting and identity ------------------------------------------------------------------------------

    def cost(self, rows: Indices | None = None, cols: Indices | None = None) -> Cost:
        """Entries and bytes touched when reading these rows and columns."""
        rows = None if rows is None else self.view.rows_of_x(rows)
        return self.store.cost(rows, None if cols is None else self._without_constant(np.asarray(cols)))

    def _column_cost(self, cols: Indices) -> Cost:
        """What reading whole columns of X costs, whose layout is made first."""
        self.store.ensure_layout("columns", self.reads)
        return self.store.cost(cols=cols)

    def prepare_access(self, what: str) -> None:
        """Make what reading "rows" needs, their norms and layout; refuse "rows" or "entries" on disk."""
        self.store.check_random_access(what)
        if what == "rows":
            self.norms(1)
            self.store.ensure_layout("rows", self.reads)

    def data_fingerprint(self) -> str:
        """Hex digest of X and of the view, for checkpoints."""
        form = repr((self.store.shape, str(self.dtype))).encode()
        return hashlib.sha256(form + self.store.fingerprint(self.reads) + self.view.fingerprint()).hexdigest()


def drop_zero_weight_rows(
    design: Design, y: np.ndarray, weights: Floats | None
) -> tuple[Design, np.ndarray, Floats | None]:
    """The same problem without its rows of weight zero."""
    # A weight of zero must mean that the row is not there: not in a fit, a norm or a draw, nor in a rule that
    # uses the number of rows. A factor of zero is not enough, because zero times an infinite loss is NaN.
    if weights is None or weights.all():
        return design, y, weights
    rows = np.flatnonzero(weights)
    return design.with_view(design.view.compose(rows=rows)), y[rows], weights[rows]
