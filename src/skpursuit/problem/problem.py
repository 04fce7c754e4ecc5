"""A problem: a design, targets, a loss and weights, checked once.

This is where X and the loss meet. A solver asks a problem for the objective, the residual and the curvature
at predictions z = X w, and none of them reads X: predictions are all that a loss sees. Weights of squared
loss become factors of the rows of X and y, so that everything below works on plain least squares; with other
losses they multiply values, residuals and curvatures. Rows of weight zero are left out before anything else.

A ridge adds (ridge / 2) ||w||^2 to the mean of the losses, whatever the loss, and spares the constant column
of the design. The objective is a sum over rows: the penalty beside it is ridge times the sum of the weights.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skpursuit.data import Design, drop_zero_weight_rows
from skpursuit.numerics.arrays import Floats, Indices
from skpursuit.numerics.float_range import check_range
from skpursuit.numerics.sums import fixed_order_vdot, safe_norm, scaled_rows
from skpursuit.parameters import as_array, short_repr
from skpursuit.problem.losses import Loss, Squared, as_loss
from skpursuit.problem.scores import Absolute, GroupNorm, Score
from skpursuit.problem.state import State

LOSS_BLOCK_ROWS = 2**13  # samples that losses are made of at a time
MOST_CLASSES, ROWS_OF_A_CLASS = 20, 2  # integers are classes: so many, with so many rows each on average


class Derivatives(NamedTuple):
    """The sum of the losses at some predictions, with the residual and the curvature there."""

    value: float
    residual: Floats
    curvature: Floats


@dataclass(frozen=True)
class SampleLosses:
    """Targets y, the loss of predictions of them, and positive weights of the samples, if they have some."""

    y: Floats
    loss: Loss
    weights: Floats | None = None

    def subset(self, rows: Indices | slice) -> SampleLosses:
        """Some of the samples."""
        return SampleLosses(self.y[rows], self.loss, None if self.weights is None else self.weights[rows])

    def target(self, t: int) -> SampleLosses:
        """One of several targets, for losses that do not couple them."""
        return SampleLosses(np.ascontiguousarray(self.y[:, t]), self.loss.for_target(t), self.weights)

    def value(self, z: Floats) -> float:
        """The sum of the losses at predictions z; +inf where the loss overflows."""
        if type(self.loss) is Squared:
            with np.errstate(over="ignore"):
                r = z - self.y
                return 0.5 * fixed_order_vdot(r.ravel(), r.ravel())
        return self.derivatives(z).value

    def residual(self, z: Floats) -> Floats:
        """The residual r such that X^T r is the gradient."""
        if type(self.loss) is Squared:
            return z - self.y
        return self.derivatives(z).residual

    def curvature(self, z: Floats) -> Floats:
        """Second derivatives of the weighted losses."""
        return self.derivatives(z).curvature

    def derivatives(self, z: Floats) -> Derivatives:
        """Value, residual and curvature at z; by blocks, whose temporary arrays stay in the cache."""
        step = LOSS_BLOCK_ROWS if self.loss.prefers_blocks else max(1, len(z))
        with np.errstate(over="ignore", invalid="ignore"):
            if len(z) <= step:
                found: tuple[Floats, ...] = self.loss.derivatives(self.y, z)
            else:
                parts = [slice(start, start + step) for start in range(0, len(z), step)]
                blocks = [self.loss.derivatives(self.y[part], z[part]) for part in parts]
                found = tuple(map(np.concatenate, zip(*blocks)))
            values, residual, curvature = map(self._weighted, found)
            return Derivatives(float(np.sum(values)), residual, curvature)

    @cached_property
    def has_majorant(self) -> bool:
        """Whether there is a parabola above the losses; not of coupled targets."""
        first = SampleLosses(self.y[:1], self.loss)
        return not self.loss.couples_targets and first.majorant(np.zeros(1)) is not None

    def majorant(self, z: Floats) -> Floats | None:
        """Curvature of a parabola above the losses that touches them at z; None where the loss has none."""
        c = self.loss.majorant(self.y, z)
        return None if c is None else self._weighted(c)

    def _weighted(self, values: Floats) -> Floats:
        return values if self.weights is None else scaled_rows(values, self.weights)


@dataclass(frozen=True, kw_only=True)
class Problem(SampleLosses):
    """Minimise sum_i weight_i * loss(y_i, x_i . w) + (penalty / 2) ||w||^2; all weights are positive.

    Weights of squared loss are already in the design, and rows of weight zero are not in it. The `value` of a
    problem is the objective without the penalty.

    `targets` is the trailing shape of predictions: () for one target, (m,) for several.
    """

    design: Design
    score: Score = field(default_factory=Absolute)
    target_shape: tuple[int, ...] = ()
    penalty: float = 0.0

    @cached_property
    def quadratic(self) -> bool:
        """Whether the loss is squared, so that least squares and Gram columns apply."""
        return self.loss.quadratic

    @cached_property
    def per_target_losses(self) -> list[SampleLosses]:
        """The samples by targets, which are fitted one by one, or of all targets that a loss couples."""
        if self.target_shape and not self.loss.couples_targets:
            return [self.target(t) for t in range(*self.target_shape)]
        return [self.subset(slice(None))]

    def penalties(self, columns: Indices) -> Floats:
        """The penalty of each of some columns: zero for the constant one."""
        return np.where(columns == self.design.constant, 0.0, self.penalty)

    def penalized_objective(self, state: State) -> float:
        """The objective of a state with the penalty of its coefficients."""
        if not self.penalty:
            return state.objective
        with np.errstate(over="ignore", under="ignore"):
            squares = (state.coef * state.coef).T
            return state.objective + 0.5 * float(np.sum(self.penalties(state.support) * squares))

    @cached_property
    def target_norm(self) -> float:
        """||y||, what residuals of squared loss are compared with."""
        return safe_norm(self.y.ravel(order="K"))

    @cached_property
    def xty(self) -> Floats:
        """X^T y."""
        return self.design.product(self.y)

    @cached_property
    def row_weights(self) -> Floats:
        """Weights of the rows; those that are in the design already count as ones."""
        return np.ones(self.design.shape[0]) if self.weights is None else self.weights

    @cached_property
    def max_rank(self) -> int:
        """The most columns that can be independent: rows with a weight."""
        return min(self.design.shape[1], int(np.count_nonzero(self.row_weights)))

    @cached_property
    def max_column_norm(self) -> float:
        """The largest column norm."""
        return float(self.design.norms(0).max())


def make_problem(
    design: Design, y: object, loss: str | Loss, sample_weight: object = None, ridge: float = 0.0
) -> Problem:
    """Check y, loss and weights against the design."""
    loss = as_loss(loss)
    y = checked_targets(y, design.shape[0])
    weights = None if sample_weight is None else checked_weights(sample_weight, design.shape[0])
    design, y, weights = drop_zero_weight_rows(design, y, weights)
    y = loss.check_targets(y)
    loss = loss.resolved(y)
    penalty = float(ridge) * float(len(y) if weights is None else weights.sum())
    if weights is not None and loss.quadratic:
        root = np.sqrt(weights)
        design, y, weights = design.with_view(design.view.compose(root=root)), scaled_rows(y, root), None
    targets = loss.prediction_shape(y)
    score = GroupNorm() if targets else Absolute()
    return Problem(y, loss, weights, design=design, score=score, target_shape=targets, penalty=penalty)


def checked_targets(y: object, n: int) -> Floats:
    """Targets of n samples as float64, one or several for each: finite numbers."""
    y = as_array("y", y)
    if y.dtype.kind not in "fiub":
        raise TypeError(f"y has dtype {y.dtype}; it needs numbers: encode labels first")
    if y.ndim not in (1, 2) or y.size == 0:
        raise ValueError(f"y must have shape (n,) or (n, targets), got {y.shape}")
    if len(y) != n:
        raise ValueError(f"y has {len(y)} rows and X has {n}; they must be the same samples")
    targets: Floats = y.astype(np.float64)
    if not np.isfinite(targets).all():
        raise ValueError("y contains NaN or infinity; drop those samples")
    return targets


def check_targets_range(y: Floats) -> None:
    """Refuse targets, as the caller gave them, whose squares leave the range of floats."""
    check_range(np.abs(y).max(initial=0.0, keepdims=True).ravel(), lambda _: "y")


def guess_classes(y: NDArray[Any]) -> tuple[bool, str]:
    """Whether y holds classes, and a sentence about it where that is doubtful, else an empty one.

    Text, truth values, and whole numbers of an integer type with few distinct values are classes: with two,
    or with up to `MOST_CLASSES` that occur `ROWS_OF_A_CLASS` times or more on average. Floats are numbers. It
    is doubtful within a factor of two of these limits, and of whole floats with a quarter of so many values.
    """
    if y.ndim != 1 or y.dtype.kind not in "iuf":
        return y.ndim == 1 and y.dtype.kind in "bUS", ""
    values = np.unique(y)
    count, limit = len(values), min(MOST_CLASSES, len(y) / ROWS_OF_A_CLASS)
    classes, doubtful = count == 2 or 2 < count <= limit, limit < 2 * count <= 4 * limit and count > 2
    if y.dtype.kind == "f":
        classes, doubtful = False, 2 <= count <= limit / 4 and bool((values == np.floor(values)).all())
    doubt = (
        f"y is of type {y.dtype} with {count} distinct whole numbers, taken as "
        f'{"classes" if classes else "numbers"}; loss="squared" takes them as numbers, "logistic" as classes'
    )
    return classes, doubt * doubtful


def checked_weights(sample_weight: object, n: int) -> Floats:
    """Sample weights as float64: finite, not negative, not all zero."""
    weights = as_array("sample_weight", sample_weight)
    try:
        weights = weights.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        given = short_repr(sample_weight)
        raise TypeError(f"sample_weight must be an array of numbers, got {given}") from None
    if weights.shape != (n,):
        raise ValueError(f"sample_weight must have shape ({n},), got {weights.shape}")
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise ValueError("sample_weight must be finite and not negative")
    if not weights.any():
        raise ValueError("sample_weight is zero for every sample; give at least one a positive weight")
    check_range(weights.max(keepdims=True), lambda _: "sample_weight")
    return weights
