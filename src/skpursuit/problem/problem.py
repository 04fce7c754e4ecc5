"""A problem: a design, targets, a loss and weights, checked once."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from scipy.linalg.blas import daxpy

from skpursuit.data import AffineDesign, Design, rows_that_count
from skpursuit.data.base import Floats, Indices
from skpursuit.data.grams import GRAM_WIDTH
from skpursuit.numerics.bounds import outer_bound
from skpursuit.numerics.sums import dot, scaled_norm
from skpursuit.problem.losses import Loss, Squared, as_loss
from skpursuit.problem.score import Absolute, Group, Score, top
from skpursuit.problem.state import State
from skpursuit.problem.targets import checked_targets, checked_weights
from skpursuit.selectors.ahead import Ahead
from skpursuit.selectors.base import Query, exclude


@dataclass(frozen=True)
class Problem:
    """Minimise sum_i weight_i * loss(y_i, x_i . w); all weights are positive.

    Weights of squared loss are already in the design, and rows of weight zero are not in it.

    `targets` is the trailing shape of predictions: () for one target, (m,) for several.
    """

    design: Design
    y: Floats
    loss: Loss
    weights: Floats | None = None
    score: Score = field(default_factory=Absolute)
    targets: tuple[int, ...] = ()

    @cached_property
    def quadratic(self) -> bool:
        """Whether the loss is squared, so that least squares and Gram columns apply."""
        return self.loss.quadratic

    def value(self, z: Floats) -> float:
        """The objective at predictions z; +inf where the loss overflows."""
        with np.errstate(over="ignore"):
            if type(self.loss) is Squared:
                r = z - self.y
                return 0.5 * dot(r.ravel(), r.ravel())
            losses = self.loss.value(self.y, z)
            return float(np.sum(losses if self.weights is None else _scaled(losses, self.weights)))

    def residual(self, z: Floats) -> Floats:
        """R with X^T r the gradient."""
        r = self.loss.residual(self.y, z)
        return r if self.weights is None else _scaled(r, self.weights)

    def curvature(self, z: Floats) -> Floats:
        """Second derivatives of the weighted losses."""
        c = self.loss.curvature(self.y, z)
        return c if self.weights is None else _scaled(c, self.weights)

    def majorant(self, z: Floats) -> Floats | None:
        """Curvature of a parabola above the losses that touches them at z; None where the loss has none."""
        c = self.loss.majorant(self.y, z)
        return c if c is None or self.weights is None else _scaled(c, self.weights)

    def single_targets(self) -> list[Problem]:
        """One problem for each target, for losses that do not couple them."""
        return [
            replace(
                self, y=np.ascontiguousarray(y), loss=self.loss.for_target(t), targets=(), score=Absolute()
            )
            for t, y in enumerate(self.y.T)
        ]

    @cached_property
    def size(self) -> float:
        """||y||, what residuals of squared loss are compared with."""
        return scaled_norm(self.y.ravel(order="K"))

    @cached_property
    def peak(self) -> float:
        """The largest |y|."""
        return float(np.abs(self.y).max(initial=0.0))

    @cached_property
    def relative_size(self) -> float:
        """||y|| in units of the largest |y|, which neither overflows nor underflows."""
        return float(np.linalg.norm(self.y / self.peak)) if self.peak > 0 else 1.0

    @cached_property
    def row_weights(self) -> Floats:
        """Weights of the rows; those that are in the design already count as ones."""
        return np.ones(self.design.shape[0]) if self.weights is None else self.weights

    @cached_property
    def most_independent(self) -> int:
        """The most columns that can be independent: rows with a weight."""
        return min(self.design.shape[1], int(np.count_nonzero(self.row_weights)))

    @cached_property
    def xty(self) -> Floats:
        """X^T y."""
        return self.design.correlate(self.y)

    @cached_property
    def widest(self) -> float:
        """The largest column norm."""
        return float(self.design.norms(0).max())

    @cached_property
    def ahead(self) -> Ahead:
        """Products of the codes of X, for certified selection."""
        return Ahead(self.design, self.y)

    def query(
        self,
        state: State,
        k: int = 1,
        score: Score | None = None,
        steps: int = 0,
        left: int | None = None,
        **given: Any,
    ) -> Query:
        """The question a pursuit asks: top k off the support, after `steps` moves of the predictions.

        `left`: columns that it may still take.
        """
        r, score = self.residual(state.z), score or self.score
        if self.quadratic and "known" not in given:
            given["known"] = lambda: self.gram_gradient(state.support, state.coef, steps)
            if k == 1:  # one new column a step, or products are made in vain
                given["coded"] = lambda: self.ahead.gradient(state.support, state.coef, r, score, steps, left)
        off = given.pop("exclude", None)
        if off is None:  # distinct as they are
            off = exclude(state.support, state.dropped) if len(state.dropped) else state.support
        return Query(r, k, score, off, **given)

    def gram_gradient(self, support: Indices, coef: Floats, steps: int = 0) -> tuple[Floats, Floats]:
        """X^T (X_S w_S - y) by Gram columns, with a bound on its rounding and that of `steps` moves of z."""
        g = -self.xty
        for j, amount in zip(support.tolist(), coef):
            line = self.design.gram_column(j, partial(self._likely, g, support))
            g = daxpy(line, g, a=amount) if g.ndim == 1 else g + np.multiply.outer(line, amount)
        design, sizes = self.design, self.design.column_sizes()
        reach = self.size + float((np.abs(coef.T) * sizes[support]).sum())
        unit = design.product_unit() + (len(support) + steps + 8) * np.finfo(np.float64).eps
        error = outer_bound(4 * unit, sizes, reach)
        return g, error if g.ndim == 1 else np.repeat(error[:, None], g.shape[1], axis=1)

    def _likely(self, g: Floats, support: Indices) -> Indices:
        """Columns whose Gram column will soon be asked for: the support's own, and those that score high."""
        return np.append(support, top(self.score.of(g), 2 * GRAM_WIDTH))


def _scaled(values: Floats, weights: Floats) -> Floats:
    return values * (weights if values.ndim == 1 else weights[:, None])


def make_problem(design: Design, y: Any, loss: str | Loss, sample_weight: Any = None) -> Problem:
    """Check y, loss and weights against the design."""
    loss = as_loss(loss)
    y = checked_targets(y, design.shape[0])
    weights = None if sample_weight is None else checked_weights(sample_weight, design.shape[0])
    design, y, weights = rows_that_count(design, y, weights)
    y = loss.check_targets(y)
    if weights is not None and loss.quadratic:
        root = np.sqrt(weights)
        design, y, weights = AffineDesign(design, root=root), _scaled(y, root), None
    targets = loss.outputs(y)
    return Problem(design, y, loss, weights, Group() if targets else Absolute(), targets)
