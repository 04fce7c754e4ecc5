"""The gradient of squared loss from products of codes with columns, made ahead of the steps that need it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from skpursuit.data.base import Design, Floats, Indices
from skpursuit.data.kept import ColumnCache
from skpursuit.numerics.stack import Stack
from skpursuit.numerics.threads import helpers
from skpursuit.problem.score import Score, top

LEAST = 2**23  # codes times targets; fewer codes stay in the cache, and a pass over them costs little
WIDTH = 8  # products made in one pass over the codes, in half the time of as many passes
USED = 1.25  # products made for one that was used, up to which more are made before they are needed
TERM = 12  # rows of codes that are read in the time it takes to add one product
BESIDES = 40  # products that are added in the time that bounds and the rest of a sum take
SHARE = 0.25  # what sums may lose on top of what the codes lose, before they start again
EPS, SINGLE_EPS = (float(np.finfo(kind).eps) for kind in (np.float64, np.float32))


def pays(design: Design, targets: int, terms: float) -> bool:
    """Whether sums of this many terms cost less than a pass over the codes for each target."""
    n, d = design.shape
    return n * d * targets >= LEAST and TERM * (terms + BESIDES) <= n


class Start(NamedTuple):
    """What sums start with: products with the residual of some coefficients, and these, a row a target."""

    products: Floats
    coef: Floats


class Making(NamedTuple):
    """Products that are being made: of which columns, and what ends it."""

    block: list[int]
    finish: Callable[[], Floats]


class Ahead:
    """X^T (X_S w_S - y), with error bounds, as a sum of products of the codes of X with y and with columns.

    A pass over the codes for one residual waits for memory; for several it does not. So when a column of the
    support has no product yet, those that score next best get theirs in the same pass: a pursuit takes nearly
    all of them soon. Other threads, where there are some, begin with the next ones before they are needed:
    somewhat more may be read then, and the sums are the same.

    What the codes lose depends on the residual alone. What the sum loses besides grows with its terms: once
    that is noticed, sums start again with the residual of the moment. A twin that is made again, with its
    second bytes, may round otherwise: then products are made again too.

    Products are rows: an entry for each column of X, then their loss as `Twin.multiplying` gives it, then the
    norm of what was multiplied.

    Parameters
    ----------
    design : Design
    y : ndarray of shape (n,) or (n, m)
    """

    def __init__(self, design: Design, y: Floats) -> None:
        self.design = design
        self.y = y
        self.usable = _ordinary(y.reshape(len(y), -1).T)
        self.decoded: Any = None
        self.start: Start | None = None
        # Columns with a product, by place, and the products: one value, so that an interrupt leaves both.
        self.terms: tuple[dict[int, int], Stack] = {}, Stack(np.empty((0, 0)))
        self.made = 0
        self.last: list[int] = []  # columns of the block that was made last
        self.making: Making | None = None

    @cached_property
    def size(self) -> Floats:
        """||y|| of each target."""
        return np.linalg.norm(self.y, axis=0)

    def gradient(
        self,
        support: Indices,
        coef: Floats,
        r: Floats,
        score: Score,
        steps: int = 0,
        left: int | None = None,
    ) -> tuple[Floats, Floats] | None:
        """(g, bound) of X^T r for r = X_S w_S - y; None where a pass over the codes for r is cheaper.

        The bound covers the rounding of `steps` moves of the predictions. `left`: columns that the support
        may still gain; the product of the last one will not be asked for.
        """
        if not self.usable or not pays(self.design, self.y.size // len(self.y), len(support)):
            return None
        decoded = self.design.decoded()
        if decoded is None:
            return None
        if decoded is not self.decoded:
            self.start, self.made, self.last, self.making = None, 0, [], None
            self.factors = np.column_stack([decoded.factors, decoded.sizes])
            self.decoded = decoded
        if self.start is None:
            rows = -self.y.reshape(len(self.y), -1).T
            start = Start(self._products(rows)(), np.zeros((len(rows), 0)))
            self.terms = {}, Stack(np.empty((0, start.products.shape[1]), np.float32))
            self.start = start  # last: an interrupt before it leaves no start, and so starts again
        if not self._complete(support, coef, score, WIDTH if left is None else max(0, left - 1)):
            return None
        lost, weights = decoded.lost(r), self._weights(support, coef)
        g, bound = self._sum(weights, lost.shape, steps)
        if bound.sum() > SHARE * lost.sum() and weights.any():
            rows = r.reshape(len(r), -1).T
            if _ordinary(rows):
                self.start = Start(self._products(rows)(), weights)
                g, bound = self._sum(weights, lost.shape, steps)
        self._look_ahead(lambda: score.of(g), 2 * WIDTH if left is None else left - 1)
        bound = (bound + lost) * (1.0 + 2.0**-40)
        return (g, bound) if np.isfinite(bound).all() else None

    def _sum(self, weights: Floats, shape: tuple[int, ...], steps: int) -> tuple[Floats, Floats]:
        """The products with the residual of these coefficients, and what was lost in adding them up."""
        n, d = self.design.shape
        start, terms = self.start, self.terms[1].rows
        assert start is not None
        self.design.reads.stored_bytes += terms.nbytes + start.products.nbytes
        single = (weights.shape[1] + 16) * SINGLE_EPS  # terms are float32, to be read faster
        before = np.zeros_like(weights)
        before[:, : start.coef.shape[1]] = start.coef
        moves = weights - before
        largest = np.abs(moves).max(axis=1, initial=1e-200)[:, None]
        scaled = (moves / largest).astype(np.float32)
        g = start.products[:, :d] + largest * (scaled @ terms[:, :d])
        tails = np.ascontiguousarray(terms[:, d:])
        lost = largest * (np.abs(scaled) @ tails) * (1.0 + single)
        # The predictions are not to the last bit X_S w_S, neither now nor at the start.
        reach = self.size + (np.abs(weights) + 2 * np.abs(before)) @ tails[:, -1]
        unit = 4 * (n + weights.shape[1] + steps + 8) * EPS
        vanished = 2.0**-148 * largest[:, 0]  # what is below the range of float32, of a weight or of an entry
        norms = unit * reach + single * lost[:, -1] + vanished * tails[:, -1].sum()
        losses = np.column_stack([start.products[:, d:-1] + lost[:, :-1], norms])
        bound = self.factors @ losses.T
        bound += vanished * weights.shape[1]
        return g.T.reshape(shape), bound.reshape(shape)

    def _weights(self, support: Indices, coef: Floats) -> Floats:
        """Coefficients in the order of the products, a row for each target; zero for others."""
        places, terms = self.terms
        weights = np.zeros((self.y.size // len(self.y), len(terms.rows)))
        if len(support):
            weights[:, [places[j] for j in support.tolist()]] = coef.reshape(len(support), -1).T
        return weights

    def _complete(self, support: Indices, coef: Floats, score: Score, more: int) -> bool:
        """Make sure of a product for every column of the support; False if that does not pay.

        Where some have to be made, up to `more` others are made with them.
        """
        while missing := [j for j in support.tolist() if j not in self.terms[0]]:

            def scores() -> Floats:
                known = np.array([j in self.terms[0] for j in support.tolist()])
                shape = (self.design.shape[1], *self.y.shape[1:])
                weights = self._weights(support[known], coef[known])
                return score.of(self._sum(weights, shape, 0)[0])

            found = self._found(missing[:WIDTH], scores, more)
            if found is None:
                return False
            places, terms = self.terms
            rows = np.stack([found[j] for j in missing[:WIDTH]])
            new = {j: len(places) + i for i, j in enumerate(missing[:WIDTH])}
            self.terms = places | new, terms.extend(rows)
        return True

    def _look_ahead(self, scores: Callable[[], Floats], left: int) -> None:
        """Begin with the next products while the last ones are used, if other threads can."""
        n, d = self.design.shape
        guessed_well = self.made <= WIDTH + USED * len(self.terms[0])
        if self.last and guessed_well and self.making is None and helpers(n * d // WIDTH):
            more = left - sum(j not in self.terms[0] for j in self.last)
            if more > 0:
                self._begin([], scores(), more)

    def _found(self, wanted: list[int], scores: Callable[[], Floats], more: int) -> dict[int, Floats] | None:
        """Products of these columns; new ones are made with those of columns that score high."""
        cache = self._kept()
        found = {j: line for j in wanted if (line := cache.get(j)) is not None}
        while new := [j for j in wanted if j not in found]:
            if self.making is None:
                in_vain = self.made > 2 * (len(self.terms[0]) + WIDTH)
                if in_vain or not self._begin(new, scores(), more):
                    return None
            made = self._end()
            if made is None:
                return None
            found |= made
        return found

    def _begin(self, new: list[int], scores: Floats, more: int) -> bool:
        """Begin with the products of some columns, and of up to `more` others that score highest."""
        held = self._kept().held
        likely = [j for j in top(scores, 4 * WIDTH).tolist() if j not in held]
        block = list(dict.fromkeys(new + likely))[: min(WIDTH, len(new) + more)]
        if not block:  # all that score high are there
            return False
        columns = self.design.columns(np.array(block, dtype=np.intp))
        self.usable = _ordinary(columns, 1e-20, 1e18)
        if self.usable:
            self.making = Making(block, self._products(columns))
        return self.usable

    def _end(self) -> dict[int, Floats] | None:
        """The products that are being made; None where they are of no use."""
        making, self.making = self.making, None
        assert making is not None
        products = making.finish()
        self.usable = bool(np.abs(products).max() < 1e37)  # they will be float32
        if not self.usable:
            return None
        self._kept().put(making.block, products)
        self.made += len(making.block)
        self.last = making.block
        return dict(zip(making.block, products))

    def _kept(self) -> ColumnCache:
        """The products that are kept on the design, as long as its twin is the same."""
        n, d = self.design.shape
        decoded, cache = self.design.cache.get("products", (None, None))
        if decoded is not self.decoded:
            cache = ColumnCache(limit=n * d // 2)
            self.design.cache["products"] = self.decoded, cache
        return cache

    def _products(self, vectors: Floats) -> Callable[[], Floats]:
        """Begin with the products with the rows of an array; what ends it returns them as rows."""
        self.design.reads.add(*self.decoded.estimate_cost())
        end = self.decoded.multiplying(vectors.T)

        def finish() -> Floats:
            g, loss = end()
            norms = np.linalg.norm(vectors, axis=1)
            return np.column_stack([g, loss * (1.0 + SINGLE_EPS), norms * (1.0 + SINGLE_EPS)])

        return finish


def _ordinary(vectors: Floats, least: float = 1e-100, most: float = 1e100) -> bool:
    """Whether rows are of a size in which nothing that is made of them can overflow or vanish."""
    sizes = np.abs(vectors).max(axis=1, initial=0.0)
    return bool(((sizes == 0.0) | ((sizes > least) & (sizes < most))).all())
