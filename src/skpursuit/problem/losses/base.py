"""What a loss is, and what it can do.

A loss must give its value, its slope (`residual`) and its curvature in the predictions, all at once, because
they share work. Everything else has a default here that says "no": a loss that can do more overrides it, and
code that needs it asks the loss, never for its class or its name. `UserLoss` makes a loss of any object that
has a method for each of the three.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import ArrayLike

from skpursuit.numerics.arrays import Floats
from skpursuit.parameters import as_array

REQUIRED_METHODS = ("value", "residual", "curvature")


class Loss(ABC):
    """A loss of predictions z for targets y: the base class of all losses."""

    smoothness: float | None = None  # the constant c with loss'' <= c everywhere, where there is one
    quadratic: bool = False  # it is the squared loss: least squares and Gram columns apply
    couples_targets: bool = False  # the loss of a sample depends on several predictions at once
    gives_probability: bool = False  # predictions stand for probabilities of classes
    predicts_targets: bool = False  # predictions have the units of y, and a perfect one is y itself
    has_entropy_bound: bool = False  # it is the logistic loss, whose conjugate is an entropy
    nonnegative_targets: bool = False  # targets must not be negative
    has_flat_pieces: bool = False  # its curvature is zero but near a kink: few Newton steps do not fit it
    prefers_blocks: bool = False  # of many samples it is faster by blocks: it makes many temporary arrays

    @abstractmethod
    def derivatives(self, y: Floats, z: Floats) -> tuple[Floats, Floats, Floats]:
        """Value, residual and curvature."""

    def value(self, y: Floats, z: Floats) -> Floats:
        """Loss of each prediction."""
        return self.derivatives(y, z)[0]

    def residual(self, y: Floats, z: Floats) -> Floats:
        """Slope of the loss in z."""
        return self.derivatives(y, z)[1]

    def curvature(self, y: Floats, z: Floats) -> Floats:
        """Second derivative of the loss in z."""
        return self.derivatives(y, z)[2]

    def check_targets(self, y: ArrayLike) -> Floats:
        """Return y as a float array, or raise ValueError if it is no target of this loss."""
        return finite_targets(y)

    def resolved(self, y: Floats) -> Loss:
        """The loss with the parameters that were left to the targets y; folds share that of all samples."""
        return self

    def prediction_shape(self, y: Floats) -> tuple[int, ...]:
        """Trailing shape of the predictions for targets y: () for one target, (m,) for several."""
        return tuple(y.shape[1:])

    def mean(self, z: Floats) -> Floats:
        """The expected target at prediction z."""
        return z

    def probability(self, z: Floats) -> Floats:
        """Probability of the label +1 at prediction z, where the loss `gives_probability`."""
        raise TypeError(f"{self!r} defines no probability of the label +1")

    def probabilities(self, z: Floats) -> Floats:
        """Probabilities of all classes, one row for each sample, where the loss `couples_targets`."""
        raise TypeError(f"{self!r} defines no probabilities of several classes")

    def for_classes(self) -> Loss | None:
        """The loss that fits three classes or more together; None where there is none."""
        return None

    def for_target(self, t: int) -> Loss:
        """The loss of one of several targets."""
        return self

    def majorant(self, y: Floats, z: Floats) -> Floats | None:
        """Curvature of a parabola that touches the loss at z and lies above it; None where it has none."""
        return None


class UserLoss(Loss):
    """A loss made of an object with `value`, `residual` and `curvature`, and what else of a loss it has."""

    def __init__(self, loss: object) -> None:
        self.loss = loss
        given = {name for name in dir(Loss) if not name.startswith("_")} & set(dir(loss))
        self.couples_targets = "probabilities" in given
        self.gives_probability = bool(given & {"probability", "probabilities"})
        for name in given:
            setattr(self, name, getattr(loss, name))

    def __repr__(self) -> str:
        return f"UserLoss({self.loss!r})"

    def derivatives(self, y: Floats, z: Floats) -> tuple[Floats, Floats, Floats]:
        return self.value(y, z), self.residual(y, z), self.curvature(y, z)


def finite_targets(y: ArrayLike) -> Floats:
    """Return y as float32 (if it is) or float64, refusing what is not a finite number."""
    checked = as_array("y", y)
    if checked.dtype not in (np.float32, np.float64):
        try:
            checked = checked.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"y must be numeric, got dtype {checked.dtype}") from error
    if not np.isfinite(checked).all():
        raise ValueError("y contains NaN or infinity")
    return checked
