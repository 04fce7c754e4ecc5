"""The gradient of squared loss from products of codes with columns, made ahead of the steps that need it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from skpursuit.design.base import Design, Floats, Indices
from skpursuit.design.kept import ColumnCache
from skpursuit.selectors.score import Score, top
from skpursuit.state import Stack

WIDTH = 8  # products made in one pass over the codes, in half the time of as many passes
FEW = 4  # columns without a product up to which they are made; for a support that is all new it does not pay
TERM = 12  # rows of codes that are read in the time it takes to add one product
EPS = float(np.finfo(np.float64).eps)


class Ahead:
    """X^T (X_S w_S - y), with error bounds, as a sum of products of the codes of X with y and with columns.

    A pass over the codes for one residual waits for memory; for several it does not. So when a column of the
    support has no product yet, those that score next best get theirs in the same pass: a pursuit takes nearly
    all of them soon. The codes lose of the sum only what they would lose of the residual itself.

    Products are rows: an entry for each column of X, then their loss as `Twin.multiply` gives it, then the
    norm of what was multiplied.

    Parameters
    ----------
    design : Design
    y : ndarray of shape (n,) or (n, m)
    """

    def __init__(self, design: Design, y: Floats) -> None:
        self.design = design
        self.y = y
        self.codes: Any = design.codes() if _ordinary(y.reshape(len(y), -1).T) else None
        self.places: dict[int, int] = {}  # of columns in `lines`
        self.made = 0

    def gradient(
        self, support: Indices, coef: Floats, r: Floats, score: Score, steps: int = 0
    ) -> tuple[Floats, Floats] | None:
        """(g, bound) of X^T r for r = X_S w_S - y; None where a pass over the codes for r is cheaper.

        The bound covers the rounding of `steps` moves of the predictions.
        """
        n, d = self.design.shape
        names = support.tolist()
        missing = [j for j in names if j not in self.places]
        if self.codes is None or len(missing) > FEW or TERM * len(names) > n:
            return None
        if missing:
            known = [i for i, j in enumerate(names) if j in self.places]

            def scores() -> Floats:
                g = self._sum([names[i] for i in known], coef[known])[0]
                return score.of(g.T.reshape(d, *self.y.shape[1:]))

            if not self._find(missing, scores):
                return None
        g, loss = self._sum(names, coef)
        unit = 4 * (n + len(names) + steps + 8) * EPS
        bound = self.codes.factors @ loss[:, :-1].T + np.multiply.outer(self.codes.sizes, unit * loss[:, -1])
        bound = bound.reshape(d, *self.y.shape[1:]) + self.codes.lost(r)
        return g.T.reshape(bound.shape), bound * (1.0 + 2.0**-40)

    @cached_property
    def start(self) -> Floats:
        """The products with y."""
        return self._products(self.y.reshape(len(self.y), -1).T)

    @cached_property
    def lines(self) -> Stack:
        """The products with columns of the support."""
        return Stack(np.empty((0, self.start.shape[1])))

    def _sum(self, names: list[int], coef: Floats) -> tuple[Floats, Floats]:
        """Products with X_S w_S - y and what they may have lost, a row for each target."""
        d = self.design.shape[1]
        weights = np.zeros((len(self.start), len(self.lines.rows)))
        if names:
            weights[:, [self.places[j] for j in names]] = coef.reshape(len(names), -1).T
        lines, start = self.lines.rows, self.start
        return weights @ lines[:, :d] - start[:, :d], np.abs(weights) @ lines[:, d:] + start[:, d:]

    def _find(self, missing: list[int], scores: Callable[[], Floats]) -> bool:
        """Get the products of these columns, made with those that score high; False if it does not pay."""
        cache = self.design.cache.setdefault("products", ColumnCache())
        found = {j: cache.get(j) for j in missing}
        new = [j for j, line in found.items() if line is None]
        if new and self.made > 2 * (len(self.places) + WIDTH):  # most were made in vain
            return False
        if new:
            likely = [j for j in top(scores(), 4 * WIDTH).tolist() if j not in cache.held]
            block = list(dict.fromkeys(new + likely))[:WIDTH]
            columns = self.design.columns(np.array(block, dtype=np.intp))
            if not _ordinary(columns):
                self.codes = None
                return False
            products = self._products(columns)
            cache.put(block, products)
            found.update((j, line) for j, line in zip(block, products) if j in found)
            self.made += len(block)
        for j in missing:
            self.places[j] = len(self.places)
        self.lines = self.lines.extend(np.stack([found[j] for j in missing]))
        return True

    def _products(self, vectors: Floats) -> Floats:
        """Products with the rows of an array, as rows."""
        self.design.reads.add(*self.codes.estimate_cost)
        g, loss = self.codes.multiply(vectors.T)
        return np.column_stack([g, loss, np.linalg.norm(vectors, axis=1) * (1.0 + 2.0**-30)])


def _ordinary(vectors: Floats) -> bool:
    """Whether nothing that is made of these rows can overflow or vanish."""
    sizes = np.abs(vectors).max(axis=1, initial=0.0)
    return bool(((sizes == 0.0) | ((sizes > 1e-100) & (sizes < 1e100))).all())
