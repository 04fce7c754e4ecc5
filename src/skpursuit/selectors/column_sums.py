"""Gradients of squared loss as sums of products with columns, known more cheaply than by reading X.

With r = X_S w_S - y the gradient is X^T r = sum of w_j X^T x_j, less X^T y: a sum of one product for each
column of the support. A product is a pure function of X, so the design keeps it, and it serves every later
step and every later y. One product alone costs as much as X^T r itself, but several cost little more, because
they read X once. So when one is missing it is made together with those of the columns that score next best: a
pursuit takes nearly all of them soon.

Two kinds of products are behind the one interface `ColumnSums`. `GramSums` adds columns of X^T X in float64.
`CodeSums` adds float32 products of the codes of X; what the codes lose depends on the residual alone, and
with the bound on that and on the rounding of the sum, `settle` gives the exact answer either way.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.linalg.blas import daxpy

from skpursuit.data.codes import Codes
from skpursuit.data.design import Design
from skpursuit.data.grams import gram_column, gram_matrix
from skpursuit.numerics import tuning
from skpursuit.numerics.arrays import Floats, Indices
from skpursuit.numerics.estimate import EPS, LEAST, Estimate, outer_bound
from skpursuit.numerics.finite import LEAST_WEIGHT, MOST, are_ordinary
from skpursuit.numerics.stack import Stack
from skpursuit.numerics.sums import scaled_norm
from skpursuit.numerics.threads import helpers
from skpursuit.problem.score import Score, top
from skpursuit.problem.state import State
from skpursuit.selectors.query import NOTHING, Memory, Query

SINGLE_EPS = float(np.finfo(np.float32).eps)


class Known(NamedTuple):
    """X^T r for all columns, and what the sums want to be given with the next query."""

    estimate: Estimate
    memory: Memory = NOTHING


class ColumnSums(ABC):
    """X^T r from products with columns, for one design and y."""

    @abstractmethod
    def gradient(self, query: Query, memory: Memory) -> Known | None:
        """X^T r at the state of the query; None where reading X is cheaper.

        `memory` is that of the state before, from which `State.move` led to this one.
        """


class GramSums(ColumnSums):
    """X^T (X_S w_S - y) by columns of X^T X.

    A solver that moves its predictions step by step (`roundings` None) has its gradient followed: X^T z comes
    from that of the state before and the move between them, in d numbers for each column of the move, however
    many columns the support has. Memory: `xtz`; the `roundings` it has gone through; `reach`, the largest sum
    of |w_j| ||x_j|| of a state on the way.

    Parameters
    ----------
    design : Design
    y : ndarray of shape (n,) or (n, m)
    roundings : int, optional
        As in `Expect`.
    whole : bool
        Whether X^T X is formed at once.
    """

    def __init__(self, design: Design, y: Floats, roundings: int | None, whole: bool = False) -> None:
        self.design, self.y, self.roundings = design, y, roundings
        self.whole = whole
        self.last: tuple[State | None, Known | None] = None, None

    @cached_property
    def xty(self) -> Floats:
        """X^T y."""
        return self.design.product(self.y)

    @cached_property
    def ends(self) -> tuple[float, float]:
        """||y||, and the size of the smallest column that is not zero."""
        sizes = self.design.sizes
        return scaled_norm(self.y.ravel(order="K")), float(sizes[sizes > 0].min(initial=MOST))

    def gradient(self, query: Query, memory: Memory) -> Known | None:
        at = query.at
        if at is None:
            return None
        if self.last[0] is at:  # a step that looked first
            return self.last[1]
        if self.whole:
            gram_matrix(self.design)
        sizes = self.design.sizes
        reach = float((np.abs(at.coef.T) * sizes[at.support]).sum())
        if self.roundings is None and at.move and "xtz" in memory and memory["roundings"] <= tuning.WORN:
            factor, columns, amounts = at.move
            xtz = self._added(factor * memory["xtz"], columns, amounts, query.score, memory["xtz"])
            roundings = abs(factor) * float(memory["roundings"]) + 4.0 * max(1.0, abs(factor))
            reach = max(reach, float(memory["reach"]))
        else:
            nothing = np.zeros((len(sizes), *at.coef.shape[1:]))
            xtz = self._added(nothing, at.support, at.coef, query.score)
            roundings = len(at.support) + (self.roundings or 0.0)
        unit = self.design.unit + EPS * (roundings + 8)
        # Coefficients multiply what Gram columns lost to underflow, and tiny columns have large ones.
        (size, least), lost = self.ends, 4 * len(self.y) * (roundings + 1) * LEAST
        error = outer_bound(4 * unit, sizes, size + reach, lost * min(MOST, 1.0 + reach / least))
        if xtz.ndim == 2:
            error = np.repeat(error[:, None], xtz.shape[1], axis=1)
        memory = {"xtz": xtz, "roundings": np.array(roundings), "reach": np.array(reach)}
        known = Known(Estimate(xtz - self.xty, error), memory if self.roundings is None else NOTHING)
        self.last = at, known
        return known

    def _added(
        self, xtz: Floats, columns: Indices, amounts: Floats, score: Score, before: Floats | None = None
    ) -> Floats:
        """The sum, and Gram columns times amounts.

        A missing one is made with those of columns that scored high `before`, or by the sum so far.
        """

        def likely(count: int) -> Indices:
            scores = score.of((xtz if before is None else before) - self.xty)
            scores[list(self.design.kept.gram_columns.held)] = -np.inf
            return np.append(columns, top(scores, count))

        for j, amount in zip(columns.tolist(), amounts):
            line = gram_column(self.design, j, likely)
            xtz = daxpy(line, xtz, a=amount) if xtz.ndim == 1 else xtz + np.multiply.outer(line, amount)
        return xtz


def codes_pay(design: Design, targets: int, terms: float) -> bool:
    """Whether sums of this many products cost less than a pass over the codes for each target."""
    n, d = design.shape
    return n * d * targets >= tuning.CODES_WORTH and tuning.TERM_ROWS * (terms + tuning.SUM_TERMS) <= n


class Start(NamedTuple):
    """What sums start with: products with the residual of some coefficients, and these, a row a target."""

    products: Floats
    coef: Floats


class Making(NamedTuple):
    """Products that are being made: of which columns, and what ends it."""

    block: list[int]
    finish: Callable[[], Floats]


class CodeSums(ColumnSums):
    """X^T (X_S w_S - y) by products of the codes of X with y and with columns.

    A pass over the codes for one residual waits for memory; for several it does not. Other threads, where
    there are some, begin with the next products before they are needed: somewhat more may be read then, and
    the sums are the same.

    What the codes lose depends on the residual alone. What the sum loses besides grows with its terms: once
    that is noticed, sums start again with the residual of the moment. Codes that are made again, with their
    second bytes, may round otherwise: then products are made again too.

    Products are rows: an entry for each column of X, then their loss as `Codes.multiplying` gives it, then
    the norm of what was multiplied.

    Parameters
    ----------
    design : Design
    y : ndarray of shape (n,) or (n, m)
    roundings : int
        Moves of the predictions, whose rounding they carry.
    """

    def __init__(self, design: Design, y: Floats, roundings: int = 0) -> None:
        self.design, self.y, self.roundings = design, y, roundings
        self.usable = are_ordinary(y.reshape(len(y), -1).T)
        self.codes: Codes | None = None
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

    def gradient(self, query: Query, memory: Memory) -> Known | None:
        """X^T r from codes; None where a pass over the codes for r is cheaper, and for many columns at once.

        One new column a step is what products can be made ahead for. That of the last column which the
        support may gain (`query.left`) will not be asked for.
        """
        at, r, left = query.at, query.r, query.left
        if at is None or query.k > 1 or not self.usable:
            return None
        if not codes_pay(self.design, self.y.size // len(self.y), len(at.support)):
            return None
        if self.codes is None or self.codes.coded is not self.design.store.kept.codes.get(None):
            self._restart()
        codes = self.codes
        if codes is None:
            return None
        if self.start is None:
            rows = -self.y.reshape(len(self.y), -1).T
            start = Start(self._products(rows)(), np.zeros((len(rows), 0)))
            self.terms = {}, Stack(np.empty((0, start.products.shape[1]), np.float32))
            self.start = start  # last: an interrupt before it leaves no start, and so starts again
        more = tuning.CODES_WIDTH if left is None else max(0, left - 1)
        if not self._complete(at.support, at.coef, query.score, more):
            return None
        lost, weights = codes.code_loss(r), self._weights(at.support, at.coef)
        g, bound = self._sum(weights, lost.shape)
        if bound.sum() > tuning.RESTART * lost.sum() and weights.any():
            rows = r.reshape(len(r), -1).T
            if are_ordinary(rows):
                self.start = Start(self._products(rows)(), weights)
                g, bound = self._sum(weights, lost.shape)
        self._look_ahead(g, query.score, 2 * tuning.CODES_WIDTH if left is None else left - 1)
        bound = (bound + lost) * (1.0 + 2.0**-40)
        return Known(Estimate(g, bound)) if np.isfinite(bound).all() else None

    def _restart(self) -> None:
        """Begin with the codes that are there now; without them where their columns cannot be multiplied."""
        (n, d), codes = self.design.shape, self.design.codes()
        self.codes = None
        if codes.can_multiply:
            self.start, self.made, self.last, self.making = None, 0, [], None
            self.factors = np.column_stack([codes.factors, codes.sizes])
            limit = min(n * d // 2, self.design.store.limit.products)
            self.kept = self.design.kept.products.made_of(codes.coded, limit=limit)
            self.has_helpers = helpers(n * d // tuning.CODES_WIDTH) > 0
            self.codes = codes  # last: an interrupt before it leaves none, and so begins again

    def _sum(self, weights: Floats, shape: tuple[int, ...]) -> tuple[Floats, Floats]:
        """The products with the residual of these coefficients, and what was lost in adding them up."""
        n, d = self.design.shape
        start, terms = self.start, self.terms[1].rows
        assert start is not None
        self.design.reads.stored_bytes += terms.nbytes + start.products.nbytes
        single = (weights.shape[1] + 16) * SINGLE_EPS  # terms are float32, to be read faster
        before = np.zeros_like(weights)
        before[:, : start.coef.shape[1]] = start.coef
        moves = weights - before
        largest = np.abs(moves).max(axis=1, initial=LEAST_WEIGHT)[:, None]
        scaled = (moves / largest).astype(np.float32)
        g = start.products[:, :d] + largest * (scaled @ terms[:, :d])
        tails = np.ascontiguousarray(terms[:, d:])
        lost = largest * (np.abs(scaled) @ tails) * (1.0 + single)
        # The predictions are not to the last bit X_S w_S, neither now nor at the start.
        reach = self.size + (np.abs(weights) + 2 * np.abs(before)) @ tails[:, -1]
        unit = 4 * (n + weights.shape[1] + self.roundings + 8) * EPS
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
                return score.of(self._sum(self._weights(support[known], coef[known]), shape)[0])

            found = self._found(missing[: tuning.CODES_WIDTH], scores, more)
            if found is None:
                return False
            places, terms = self.terms
            rows = np.stack([found[j] for j in missing[: tuning.CODES_WIDTH]])
            new = {j: len(places) + i for i, j in enumerate(missing[: tuning.CODES_WIDTH])}
            self.terms = places | new, terms.extend(rows)
        return True

    def _look_ahead(self, g: Floats, score: Score, left: int) -> None:
        """Begin with the next products while the last ones are used, if other threads can."""
        guessed_well = self.made <= tuning.CODES_WIDTH + tuning.PREFETCH * len(self.terms[0])
        if self.last and guessed_well and self.making is None and self.has_helpers:
            more = left - sum(j not in self.terms[0] for j in self.last)
            if more > 0:
                self._begin([], score.of(g), more)

    def _found(self, wanted: list[int], scores: Callable[[], Floats], more: int) -> dict[int, Floats] | None:
        """Products of these columns; new ones are made with those of columns that score high."""
        cache = self.kept
        found = {j: line for j in wanted if (line := cache.get(j)) is not None}
        while new := [j for j in wanted if j not in found]:
            if self.making is None:
                in_vain = self.made > 2 * (len(self.terms[0]) + tuning.CODES_WIDTH)
                if in_vain or not self._begin(new, scores(), more):
                    return None
            made = self._end()
            if made is None:
                return None
            found |= made
        return found

    def _begin(self, new: list[int], scores: Floats, more: int) -> bool:
        """Begin with the products of some columns, and of up to `more` others that score highest."""
        held = self.kept.held
        likely = [j for j in top(scores, 4 * tuning.CODES_WIDTH).tolist() if j not in held]
        block = list(dict.fromkeys(new + likely))[: min(tuning.CODES_WIDTH, len(new) + more)]
        if not block:  # all that score high are there
            return False
        dear = self.design.columns_are_dear
        likely_too = (lambda count: top(scores, count)) if dear else None
        columns = self.design.columns(np.array(block, dtype=np.intp), likely=likely_too)
        self.usable = are_ordinary(columns, 1e-20, 1e18)
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
        self.kept.put(making.block, products)
        self.made += len(making.block)
        self.last = making.block
        return dict(zip(making.block, products))

    def _products(self, vectors: Floats) -> Callable[[], Floats]:
        """Begin with the products with the rows of an array; what ends it returns them as rows."""
        assert self.codes is not None
        end = self.codes.multiplying(vectors.T)

        def finish() -> Floats:
            g, loss = end()
            norms = np.linalg.norm(vectors, axis=1)
            return np.column_stack([g, loss * (1.0 + SINGLE_EPS), norms * (1.0 + SINGLE_EPS)])

        return finish
