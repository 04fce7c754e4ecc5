"""Sparse X in CSR or CSC form. On sparse X the exact product is cheap, and is its own fixed-order product."""

from __future__ import annotations

from typing import Any

import numpy as np

from skpursuit.data.base import MEAN_UNIT, Design, Floats, Indices
from skpursuit.data.grams import GATHERED_ENTRIES
from skpursuit.data.witness import SparseWitness
from skpursuit.numerics.bounds import product_bound
from skpursuit.numerics.sums import as_precision


class SparseDesign(Design):
    """A checked scipy CSR or CSC matrix; the other layout is made when a verb needs it, and kept."""

    def __init__(self, matrix: Any) -> None:
        super().__init__(matrix.shape, matrix.dtype)
        self.matrix = matrix
        self.transposed = matrix.T

    def layout(self, form: str) -> Any:
        """Return X as "csr" or "csc"; a second layout is kept."""
        if self.matrix.format == form:
            return self.matrix
        if form not in self.cache:
            self.reads.prepare(*self.cost())
            self.cache[form] = self.matrix.asformat(form)
        return self.cache[form]

    def cost(self, rows: Indices | None = None, cols: Indices | None = None) -> tuple[int, int]:
        """Stored entries touched: whole rows when rows are asked for, else whole columns."""
        if rows is not None:
            entries = int(self._stored("csr")[rows].sum())
        elif cols is not None:
            entries = int(self._stored("csc")[cols].sum())
        else:
            entries = self.matrix.nnz
        return entries, entries * (self.dtype.itemsize + self.matrix.indices.itemsize)

    def _stored(self, form: str) -> Floats:
        """Stored entries in each row ("csr") or column ("csc")."""
        key = ("stored", form)
        if key not in self.cache:
            if self.matrix.format == form:
                self.cache[key] = np.diff(self.matrix.indptr)
            else:
                self.reads.prepare(0, self.matrix.indices.nbytes)
                lines = self.shape[0] if form == "csr" else self.shape[1]
                self.cache[key] = np.bincount(self.matrix.indices, minlength=lines)
        return self.cache[key]

    def _correlate(self, r: Floats) -> Floats:
        r, exponent = as_precision(r, self.dtype)
        return np.ldexp(np.asarray(self.transposed @ r, dtype=np.float64), exponent)

    def _weighted_sums(self, weights: Floats) -> Floats:
        sums = np.asarray(self.transposed @ weights, dtype=np.float64)
        full = np.flatnonzero(2 * self._stored("csc") > self.shape[0])
        step = max(1, GATHERED_ENTRIES // self.shape[0])
        for start in range(0, len(full), step):  # those whose mean may be large beside what it leaves
            some = full[start : start + step]
            sums[some] = (self._gather(some) * weights).sum(axis=1)
        return sums

    def mean_unit(self) -> float:
        return MEAN_UNIT

    def _correlate_rows(self, r: Floats, rows: Indices) -> Floats:
        return np.asarray(self.layout("csr")[rows].T @ r[rows], dtype=np.float64)

    def correlate_error(self, r: Floats) -> Floats | None:
        if self.dtype == np.float64:
            return None
        terms = (self._stored("csc") + 2) * self.norms(0)
        return product_bound(2 * float(np.finfo(self.dtype).eps), terms, r, self.dtype)

    def _correlate_columns(self, r: Floats, cols: Indices) -> Floats:
        part = self.layout("csc")[:, cols].astype(np.float64, copy=False)
        return np.asarray(part.T @ np.asarray(r, dtype=np.float64))

    def _accumulate(self, rows: Indices, weights: Floats, out: Floats, cols: Indices | None) -> None:
        from skpursuit.kernels.columns import pick_csr
        from skpursuit.kernels.rows import accumulate_csr, targets

        csr = self.layout("csr")
        sums = np.ascontiguousarray(out.T)
        weights, by_target = targets(np.ascontiguousarray(weights, dtype=np.float64), sums)
        rows = np.asarray(rows, dtype=np.int64)
        if cols is None:
            accumulate_csr(csr.indptr, csr.indices, csr.data, rows, weights, by_target)
        else:
            place = np.full(self.shape[1], -1)
            place[cols] = np.arange(len(cols))
            pick_csr(csr.indptr, csr.indices, csr.data, rows, weights, place, by_target)
        if not np.shares_memory(sums, out):
            out[...] = sums.T

    def pick_cost(self, rows: Indices, cols: Indices) -> tuple[int, int]:
        return len(rows), len(rows) * self.dtype.itemsize

    def _pick(self, rows: Indices, cols: Indices) -> Floats:
        return np.asarray(self.layout("csr")[rows, cols], dtype=np.float64).ravel()

    def prepare_rows(self) -> None:
        super().prepare_rows()
        self.layout("csr")

    def row_layout_bytes(self) -> int:
        if self.matrix.format == "csr":
            return 0
        return int(self.matrix.data.nbytes + self.matrix.indices.nbytes + 8 * (self.shape[0] + 1))

    def _gather(self, cols: Indices) -> Floats:
        return np.ascontiguousarray(self.layout("csc")[:, cols].toarray().T, dtype=np.float64)

    def _norms(self, axis: int, order: float) -> Floats:
        self.reads.prepare(*self.cost())
        form = "csc" if axis == 0 else "csr"
        lines = self._line_of_entry(form)
        values = np.abs(self.matrix.data.astype(np.float64, copy=False))
        top = np.zeros(self.shape[1 - axis])
        with np.errstate(invalid="ignore"):
            np.maximum.at(top, lines, values)
        if order == np.inf:
            return top
        safe = np.where((top > 0) & np.isfinite(top), top, 1.0)
        squares = np.bincount(lines, weights=(values / safe[lines]) ** 2, minlength=len(top))
        return safe * np.sqrt(squares)

    def _line_of_entry(self, form: str) -> Indices:
        """Column ("csc") or row ("csr") number of each stored entry, in stored order."""
        if self.matrix.format == form:
            return np.repeat(np.arange(len(self.matrix.indptr) - 1), np.diff(self.matrix.indptr))
        return self.matrix.indices

    def watch(self) -> None:
        self.cache["witness"] = SparseWitness(self.matrix)

    def _digest(self, digest: Any) -> None:
        self.reads.prepare(*self.cost())
        csr = self.layout("csr")
        for part in (csr.indptr.astype(np.int64), csr.indices.astype(np.int64), csr.data):
            digest.update(np.ascontiguousarray(part).data)
