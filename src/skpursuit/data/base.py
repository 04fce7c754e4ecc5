"""What every data source offers, and the one place where reading is counted."""

from __future__ import annotations

import copy
import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from skpursuit.data.grams import Grams
from skpursuit.data.kept import ColumnCache, Floats, Indices, ProductCache, Reads
from skpursuit.numerics.blas import one_thread
from skpursuit.numerics.bounds import EPS, product_bound

MEAN_UNIT = 256 * float(np.finfo(np.float64).eps)  # rounding of means: at most 62 eps were seen
BLOCK_ENTRIES = 2**26  # one BLAS call reads at most this many entries, so that Ctrl-C is prompt
LOOK_ENTRIES = 2**20  # of a block of columns that are looked at once


class Design(Grams, ABC):
    """A data matrix X (n rows, d columns) behind a handful of verbs.

    Public verbs count what they read in `reads` and call the underscored methods a data source gives.
    Whatever is a pure function of X (norms, gathered columns, twins) is kept in `cache`.
    """

    fast_axis = 0  # along which norms cost least: 0 columns, 1 rows

    def __init__(self, shape: tuple[int, int], dtype: np.dtype[Any], reads: Reads | None = None) -> None:
        self.shape = shape
        self.dtype = dtype
        self.reads = Reads() if reads is None else reads
        self.cache: dict[Any, Any] = {}
        self.column_cache = ColumnCache()
        self.gram_cache = ColumnCache(limit=2**30)
        self.code_products = ProductCache()

    def counted(self) -> Self:
        """Return the same design, sharing its caches, with a counter of its own."""
        other = copy.copy(self)
        other.reads = Reads()
        return other

    # -- the verbs ---------------------------------------------------------------------------------

    def correlate(self, r: Floats, cols: Indices | None = None, rows: Indices | None = None) -> Floats:
        """X^T r as float64, or only its entries at `cols`, those by one fixed-order product.

        Parameters
        ----------
        r : ndarray of shape (n,) or (n, m)
        cols : ndarray of int, optional
            Equal columns give equal bits only with `cols`: BLAS does not promise that.
        rows : ndarray of int, optional
            The rows where r is not zero, when they are few: only they are read.
        """
        self.reads.add(*self.cost(rows, cols))
        if cols is not None:
            return self._correlate_columns(r, cols)
        return self._correlate(r) if rows is None else self._correlate_rows(r, rows)

    def accumulate(self, rows: Indices, weights: Floats, out: Floats, cols: Indices | None = None) -> None:
        """out[j] += sum over rows of weights[i] * X[rows[i], j], for all j or those in `cols`.

        `out` is float64 of shape (d,) or (len(cols),), with a trailing m when weights is (len(rows), m).
        """
        self.reads.add(*self.cost(rows=rows, cols=cols))
        self._accumulate(rows, weights, out, cols)

    def pick(self, rows: Indices, cols: Indices) -> Floats:
        """Single entries X[rows[i], cols[i]]: the pulls of a bandit."""
        self.reads.add(*self.pick_cost(rows, cols))
        return self._pick(rows, cols)

    def pick_cost(self, rows: Indices, cols: Indices) -> tuple[int, int]:
        """Entries and bytes touched by `pick`: whole columns where a source can read nothing else."""
        return self.cost(cols=cols)

    def has_twin(self) -> bool:
        """Whether there is a quantised twin; without one the exact product is cheap, or all there is."""
        return False

    def twin(self, seed: int | None = None, fine: bool = False, steps: bool = False) -> Any:
        """The quantised twin, rounded to nearest or, with a seed, at random. Kept.

        `fine` for `refine`, `steps` for `estimate_rows`.
        """
        raise TypeError(f"{type(self).__name__} has no quantised twin; use exact selection")

    def sketch(self) -> Any:
        """The sketch of X, two bits an entry. Kept."""
        raise TypeError(f"{type(self).__name__} has no sketch; use exact selection")

    def is_prepared(self, kind: str) -> bool:
        """Whether the "twin" or the "sketch" is there already."""
        return (kind, None) in self.cache

    def sketch_estimate(self, r: Floats) -> Floats:
        """A guess at X^T r from one bit an entry."""
        self.reads.add(*self.sketch().estimate_cost)
        return self._sketch_guess(r, None)

    def sketch_refine(self, r: Floats, cols: Indices) -> Floats:
        """A better guess at the entries at `cols`, from two bits an entry."""
        self.reads.add(*self.sketch().refine_cost(len(cols)))
        return self._sketch_guess(r, cols)

    def estimate(
        self,
        r: Floats,
        seed: int | None = None,
        log_delta: float | None = None,
        cols: Indices | None = None,
    ) -> tuple[Floats, Floats]:
        """(g, bound) with |g - X^T r| <= bound, or at `cols`, from one byte an entry; see `Twin.estimate`."""
        self.reads.add(*self.twin(seed).estimate_cost(None if cols is None else len(cols)))
        return self._estimate(r, seed, log_delta, cols)

    def estimate_rows(self, r: Floats, parts: list[Indices]) -> tuple[Floats, Floats]:
        """(g, bound) of the sums over the rows up to the end of each part, from two bytes an entry."""
        self.reads.add(*self.twin(steps=True).rows_cost(sum(len(part) for part in parts)))
        return self._estimate_rows(r, parts)

    def refine(self, r: Floats, cols: Indices, seed: int | None = None) -> tuple[Floats, Floats]:
        """(g, bound) for the entries at `cols`, from two bytes an entry."""
        self.reads.add(*self.twin(seed, fine=True).refine_cost(len(cols)))
        return self._refine(r, cols, seed)

    def decoded(self) -> Any:
        """What multiplies the decoded columns of the twin, see `Twin.multiplying`; None: nothing."""
        return None

    def columns(self, cols: Indices, scratch: Floats | None = None) -> Floats:
        """Gather columns as the rows of a C-contiguous float64 array of shape (len(cols), n).

        Kept, because a pursuit comes back to them: not to be written to. Not counted as selection. Columns
        that are kept already are copied together in `scratch`, when given: memory that was used before is
        several times as fast to write to as new memory.
        """
        lines, fresh, gathered = self._lines(cols, count=True)
        if len(fresh) == len(lines):
            return gathered
        if len(lines) == 1:
            return lines[0][None]
        return np.stack(lines, out=None if scratch is None else scratch[: len(lines)])

    def blocks(self, cols: Indices) -> Iterator[tuple[Indices, Floats]]:
        """Gather many columns for one look, some at a time: (columns, rows of float64). Counted, not kept."""
        step = max(1, LOOK_ENTRIES // self.shape[0])
        for start in range(0, len(cols), step):
            part = cols[start : start + step]
            self.reads.add(*self.cost(cols=part))
            yield part, self._gather(part)

    def _lines(self, cols: Indices, count: bool = False) -> tuple[list[Floats], Indices, Floats]:
        """Columns as one-dimensional arrays; which of them had to be gathered into the cache, and those.

        `count`: as preparation, where the caller has not counted them otherwise.
        """
        wanted = np.asarray(cols).tolist()
        found = {j: self.column_cache.get(j) for j in wanted}
        fresh = [j for j, line in found.items() if line is None]
        names = np.array(fresh, dtype=np.intp)
        gathered: Floats = np.empty((0, self.shape[0]))
        if fresh:
            if count:
                self.reads.prepare(*self.cost(cols=names))
            gathered = self._gather(names)
            self.column_cache.put(fresh, gathered)
            found.update(zip(fresh, gathered))
        return [found[j] for j in wanted], names, gathered  # type: ignore[misc]

    def fetch(self, cols: Indices, likely: Callable[[], Indices]) -> None:
        """Columns are about to be asked for, and some may be soon: gathered together where that pays."""

    def predict(self, support: Indices, coef: Floats) -> Floats:
        """X_S w_S, for coef of shape (len(support),) or (len(support), m)."""
        if len(support) == 0:
            return np.zeros((self.shape[0], *coef.shape[1:]))
        return np.einsum("kn,k...->n...", self.columns(support), np.asarray(coef, dtype=np.float64))

    def norms(self, axis: int, order: float = 2) -> Floats:
        """Norms of the columns (axis 0) or of the rows (axis 1); order 2 or infinity. Kept."""
        key = ("norms", axis, order)
        if key not in self.cache:
            self.cache[key] = self._norms(axis, order)
        return self.cache[key]

    def means(self, weights: Floats | None = None) -> Floats:
        """(Weighted) column means, counted as preparation."""
        weights = np.ones(self.shape[0]) if weights is None else weights
        self.reads.prepare(*self.cost())
        with one_thread():
            return self._weighted_sums(weights / weights.sum())

    def correlate_error(self, r: Floats) -> Floats | None:
        """Bound on the rounding of `correlate(r)`, one per column; None where it is a fixed-order product."""
        return None

    def norm_range(self) -> tuple[float, float]:
        """Bounds of the largest column norm, from norms that finite checks make anyway."""
        largest = float(self.norms(0).max())
        return largest, largest

    def column_sizes(self) -> Floats:
        """Upper bounds of the column norms, no dearer than one pass over X."""
        return self.norms(0)

    def offsets(self, cols: Indices) -> Floats:
        """Norms of what was taken out of columns by centring, which their rounding is relative to as well."""
        return np.zeros(len(cols))

    def is_intercept(self, cols: Indices) -> NDArray[np.bool_]:
        """Which of these columns are the constant one that a view has added."""
        return np.zeros(len(cols), dtype=bool)

    def lost(self, cols: Indices) -> Floats:
        """Norms below which what is left of centred columns is the rounding of their means."""
        return self.mean_unit() * self.offsets(cols)

    def mean_unit(self) -> float:
        """Bound on the rounding of `means`, relative to them."""
        return 8 * max(16, self.shape[0]) * float(np.finfo(np.float64).eps)

    def product_unit(self) -> float:
        """Bound on the rounding of an entry of `correlate(r)`, relative to ||x_j|| ||r||."""
        return (self.shape[0] + 8) * float(np.finfo(self.dtype).eps)

    def accumulate_error(self, r: Floats) -> Floats:
        """Bound on the rounding of a float64 sum over all rows in any order, one per column."""
        return self._sum_error(r, self.column_sizes())

    def _sum_error(self, r: Floats, sizes: Floats) -> Floats:
        return product_bound(2 * (self.shape[0] + 8) * EPS, sizes, r, np.dtype(np.float64))

    def prepare_rows(self) -> None:
        """Make what row-wise reading needs: row norms, and a row-major layout where X has none."""
        self.norms(1)

    def prepare_entries(self) -> None:
        """Make what reading single entries needs, where it is worth it."""

    def row_layout_bytes(self) -> int:
        """Bytes of the layout that `prepare_rows` keeps beside X."""
        return 0

    def memory_estimate(self, selector: Any = "auto") -> int:
        """Bytes a selector would keep beside X on this design."""
        from skpursuit.selectors import as_selector

        return as_selector(selector).nbytes(self)

    def watch(self) -> None:
        """Remember one entry of every row and of every column; an operator has none to look at."""

    def check_unchanged(self) -> None:
        """Raise ValueError if X was changed in place since `watch` (see `witness.py` for what is noticed)."""
        witness = self.cache.get("witness")
        if witness is not None:
            witness.compare()

    def fingerprint(self) -> str:
        """Hex digest of the entries of X, for checkpoints."""
        digest = hashlib.sha256(repr((type(self).__name__, self.shape, str(self.dtype))).encode())
        self._digest(digest)
        return digest.hexdigest()

    # -- what a data source gives -------------------------------------------------------------------

    @abstractmethod
    def cost(self, rows: Indices | None = None, cols: Indices | None = None) -> tuple[int, int]:
        """Entries and bytes touched when reading these rows and columns."""

    @abstractmethod
    def _correlate(self, r: Floats) -> Floats: ...

    @abstractmethod
    def _correlate_columns(self, r: Floats, cols: Indices) -> Floats: ...

    @abstractmethod
    def _accumulate(self, rows: Indices, weights: Floats, out: Floats, cols: Indices | None) -> None: ...

    @abstractmethod
    def _gather(self, cols: Indices) -> Floats: ...

    @abstractmethod
    def _norms(self, axis: int, order: float) -> Floats:
        """The norms, counting what is read for them: those of a view may follow from others."""

    @abstractmethod
    def _digest(self, digest: Any) -> None:
        """Feed all of X to a digest, counting what is read."""

    def _weighted_sums(self, weights: Floats) -> Floats:
        return self._correlate(weights)

    def _correlate_rows(self, r: Floats, rows: Indices) -> Floats:
        out = np.zeros((*r.shape[1:], self.shape[1])).T
        self._accumulate(rows, r[rows], out, None)
        return out

    def _sketch_guess(self, r: Floats, cols: Indices | None) -> Floats:
        sketch = self.sketch()
        guesses = [
            sketch.estimate(part) if cols is None else sketch.refine(part, cols)
            for part in r.reshape(len(r), -1).T
        ]
        return guesses[0] if r.ndim == 1 else np.stack(guesses, axis=1)

    def _estimate(
        self, r: Floats, seed: int | None, log_delta: float | None, cols: Indices | None
    ) -> tuple[Floats, Floats]:
        return self.twin(seed).estimate(r, log_delta, cols)

    def _estimate_rows(self, r: Floats, parts: list[Indices]) -> tuple[Floats, Floats]:
        return self.twin(steps=True).estimate_rows(r, parts)

    def _refine(self, r: Floats, cols: Indices, seed: int | None) -> tuple[Floats, Floats]:
        return self.twin(seed, fine=True).refine(r, cols)

    def _pick(self, rows: Indices, cols: Indices) -> Floats:
        return np.array([line[i] for line, i in zip(self._lines(cols)[0], rows.tolist())])
