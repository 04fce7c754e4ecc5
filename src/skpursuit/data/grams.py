"""Columns of X^T X: made in blocks, kept, and all of them once many were asked for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from skpursuit.data.kept import ColumnCache
from skpursuit.data.reads import Reads
from skpursuit.numerics.arrays import Floats, Indices

GRAM_SHARE = 3  # d / 3 columns of X^T X, made ahead in blocks, cost as much as all of it in one product
GRAM_WIDTH = 16  # columns of X^T X made in one product: as cheap as four by single products
GATHERED_ENTRIES = 2**22  # up to here all columns may be gathered at once


class Grams(ABC):
    """The verbs of a design that multiply columns with each other."""

    shape: tuple[int, int]
    dtype: np.dtype[Any]
    reads: Reads

    @property
    @abstractmethod
    def cache(self) -> dict[Any, Any]: ...

    @property
    @abstractmethod
    def gram_cache(self) -> ColumnCache: ...

    @abstractmethod
    def cost(self, rows: Indices | None = None, cols: Indices | None = None) -> tuple[int, int]: ...

    @abstractmethod
    def correlate(self, r: Floats, cols: Indices | None = None, rows: Indices | None = None) -> Floats: ...

    @abstractmethod
    def columns(self, cols: Indices, scratch: Floats | None = None) -> Floats: ...

    @abstractmethod
    def column_sizes(self) -> Floats: ...

    @abstractmethod
    def _gather_columns(self, cols: Indices) -> Floats: ...

    def gram_matrix(self) -> Floats:
        """X^T X, in one symmetric product where X is small, else in blocks of columns. Kept."""
        if "gram" not in self.cache and self.shape[0] * self.shape[1] <= GATHERED_ENTRIES:
            self.reads.add(*self.cost())
            columns = self._gather_columns(np.arange(self.shape[1]))
            self.cache["gram"] = columns @ columns.T
        if "gram" not in self.cache:
            matrix = np.empty((self.shape[1], self.shape[1]))
            for start in range(0, self.shape[1], 128):
                cols = np.arange(start, min(start + 128, self.shape[1]))
                self.reads.add(*self.cost(cols=cols))
                matrix[:, cols] = self.correlate(np.ascontiguousarray(self._gather_columns(cols).T))
            self.cache["gram"] = matrix
        return self.cache["gram"]

    def squares_fit(self) -> bool:
        """Whether products of columns stay within the range of float64."""
        me: Any = self
        if self.dtype == np.float32 and me.view.is_unmoved:  # those of float32 always do
            return True
        view = me.view
        factors = np.abs(
            np.concatenate([part for part in (view.scale, view.root) if part is not None] or [[1.0]])
        )
        factors = factors[factors != 0]
        tame = factors.size > 0 and 1e-10 < factors.min() <= factors.max() < 1e10
        if self.dtype == np.float32 and tame:
            return True
        largest = float(np.max(self.column_sizes()))
        return largest == 0.0 or 1e-140 < largest < 1e140

    def gram_column(self, j: int, guesses: Callable[[], Indices]) -> Floats:
        """X^T x_j. Kept; when it has to be made, so are those of the columns guessed to be asked for next.

        All in one product of `GRAM_WIDTH` columns, fewer of them being filled up with zeros, so that the bits
        of a column do not depend on the others.
        """
        held = self.gram_cache.get(j)
        self.reads.stored_bytes += 8 * self.shape[1]
        if "gram" in self.cache or (held is None and self._gram_pays()):
            return self.gram_matrix()[j]
        if held is None:
            new = dict.fromkeys([j, *(i for i in guesses().tolist() if i not in self.gram_cache.held)])
            block = np.array(list(new)[:GRAM_WIDTH], dtype=np.intp)
            columns = np.zeros((GRAM_WIDTH, self.shape[0]))
            columns[: len(block)] = self.columns(block)
            products = np.ascontiguousarray(self.correlate(columns.T).T[: len(block)])
            self.gram_cache.put(block.tolist(), products)
            held = products[0]
        return held

    def gram_held(self) -> Indices:
        """The columns whose column of X^T X is kept."""
        return np.fromiter(self.gram_cache.held, dtype=np.intp)

    def _gram_pays(self) -> bool:
        """Whether so many columns of X^T X were asked for, and fit, that all of them had better be made."""
        many = len(self.gram_cache.held) + 1 >= self.shape[1] // GRAM_SHARE
        return many and self.shape[1] ** 2 * 8 <= self.gram_cache.limit
