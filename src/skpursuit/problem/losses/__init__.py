"""Losses on predictions z = Xw: value, slope and curvature, elementwise, never seeing X.

The gradient of sum_i loss(y_i, x_i . w) is X^T r with r = ``loss.residual(y, z)``, so r is all that a
selector needs of a loss. Values keep the precision of their arguments and never warn: a prediction
that is too large gives ``inf``, which a line search rejects. `base.Loss` says what a loss must give and what
it may give; a new loss is one file and one line in `LOSSES`.
"""

from difflib import get_close_matches

from skpursuit.problem.losses.base import REQUIRED_METHODS, Loss, UserLoss
from skpursuit.problem.losses.log_link import Gamma, Poisson, Tweedie
from skpursuit.problem.losses.logistic import Logistic, Multinomial
from skpursuit.problem.losses.quantile import Quantile
from skpursuit.problem.losses.squared import Huber, Squared

__all__ = ["LOSSES", "Gamma", "Huber", "Logistic", "Loss", "Multinomial", "Poisson", "Quantile"]
__all__ += ["Squared", "Tweedie", "as_loss"]

LOSSES: dict[str, type[Loss]] = {
    "squared": Squared,
    "logistic": Logistic,
    "huber": Huber,
    "poisson": Poisson,
    "multinomial": Multinomial,
    "quantile": Quantile,
    "gamma": Gamma,
    "tweedie": Tweedie,
}
SKLEARN_NAMES = {"log_loss": "logistic", "squared_error": "squared", "absolute_error": "quantile"}


def as_loss(loss: str | Loss) -> Loss:
    """The loss of that name, or of an object with ``value``, ``residual`` and ``curvature``; losses pass."""
    if isinstance(loss, Loss):
        return loss
    if isinstance(loss, str):
        if loss not in LOSSES:
            near = [SKLEARN_NAMES[loss]] if loss in SKLEARN_NAMES else get_close_matches(loss, LOSSES, 1)
            meant = f"did you mean {near[0]!r}? " if near else ""
            raise ValueError(f"unknown loss {loss!r}; {meant}known are {', '.join(LOSSES)}")
        return LOSSES[loss]()
    if isinstance(loss, type):
        name = loss.__name__
        raise TypeError(f"loss must be a name or an object, got the class {name}: write {name}()")
    missing = [name for name in REQUIRED_METHODS if not callable(getattr(loss, name, None))]
    if missing:
        raise TypeError(f"{type(loss).__name__} object is no loss: it lacks {', '.join(missing)}")
    return UserLoss(loss)
