"""Damped Newton: minimise the loss of some samples over the coefficients of gathered columns.

A step goes along -H^-1 g, with the Hessian H of the loss on the support; it is halved until the objective
falls by enough. Where the loss has a parabola that touches it and lies above (`majorant`), its Hessian takes
over where that of the loss is singular or led nowhere: such steps gain from any distance, and are doubled
while they gain more. The Hessian is what costs, so it is kept from step to step while each leaves little to
gain (`KEEP_HESSIAN`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skpursuit.fit.curvature import Bend, hessian_of
from skpursuit.numerics.arrays import Floats
from skpursuit.numerics.scaling import NEARLY_ZERO
from skpursuit.problem.sample_losses import Derivatives, SampleLosses

FARTHEST = 2.0**20  # steps of a parabola above the loss that are tried at once
CREEPING = 2.0**-26  # a step that gets nowhere
COARSE = 1e-3  # of a coefficient, that a last step may move it without a gain to be seen
EPS = float(np.finfo(np.float64).eps)
HALVINGS = 60  # of a step before it is given up
KEEP_HESSIAN = 0.03  # while a step should gain at most this share of what the one before should have
TRUSTED_STEP = 0.25  # shorter steps show that curvature at z says little about the way to the minimum


class Point(NamedTuple):
    """A step along a direction: the objective with the penalty, the losses, coefficients, predictions."""

    step: float
    f: float
    at: Derivatives
    w: Floats
    z: Floats


def descend(
    A: Floats,
    samples: SampleLosses,
    w: Floats,
    z: Floats,
    penalty: Floats,
    precision: float,
    max_iter: int,
) -> tuple[Floats, Floats, float]:
    """Coefficients at the minimum, from w with predictions z; their predictions and the value of the loss.

    Columns are the rows of A. `penalty` is that of each coefficient, `precision` the relative decrease of the
    objective that is not worth a step.
    """
    hessian: Bend | None = None
    trusted, last = True, np.inf  # whether the Hessian at w is worth a try; the decrement of the last step
    now = _point(samples, penalty, w, z)
    for _ in range(max_iter):
        g, fresh = A @ now.at.residual + (penalty * now.w.T).T, hessian is None
        if hessian is None:
            hessian = hessian_of(samples, A, now.z, now.at.curvature, penalty, trusted)
        p = hessian.solve(g)
        decrement = float(np.sum(g * p))
        done = not decrement > precision * max(abs(now.f), NEARLY_ZERO)
        if done and not (decrement > 0 and np.any(np.abs(p) > COARSE * np.abs(now.w))):
            break
        dz = (p.T @ A).T
        if done:  # the objective shows no gain any more, but some coefficients have no digits yet
            last_step = _point(samples, penalty, now.w - p, now.z - dz)
            now = last_step if last_step.f <= now.f else now
            break
        if np.abs(dz).max() <= EPS * np.abs(now.z).max():  # lost in rounding, as where residuals vanish
            break
        found = _line_search(samples, penalty, now, p, dz, decrement, hessian.is_majorant)
        if found.step < CREEPING and fresh and not (trusted and samples.has_majorant):
            now = found
            break
        trusted = found.step >= TRUSTED_STEP or not trusted
        gains_little = decrement <= KEEP_HESSIAN * last
        if not (found.step > 0 and gains_little and trusted and not hessian.is_majorant):
            hessian = None
        now, last = found, decrement
    moved = now.w - w
    return now.w, z + (moved.T @ A).T if moved.any() else z, now.at.value


def _line_search(
    samples: SampleLosses, penalty: Floats, now: Point, p: Floats, dz: Floats, decrement: float, doubles: bool
) -> Point:
    """The first of the steps 1, 1/2, ... along -p that gains enough; the point itself if none does.

    A parabola above the loss is steeper than the loss: with it (`doubles`) longer steps come first.
    """

    def at(step: float) -> Point:
        return _point(samples, penalty, now.w - step * p, now.z - step * dz, step)

    point = at(1.0)
    while doubles and point.step < FARTHEST:
        further = at(2 * point.step)
        if not further.f < point.f:
            break
        point = further
    for _ in range(HALVINGS):
        if point.f <= now.f - 1e-4 * point.step * decrement:
            return point
        point = at(0.5 * point.step)
    return now._replace(step=0.0)


def _point(samples: SampleLosses, penalty: Floats, w: Floats, z: Floats, step: float = 0.0) -> Point:
    with np.errstate(over="ignore", invalid="ignore"):  # at steps that are too long
        at = samples.derivatives(z)
        shrinks = 0.5 * float(np.sum(penalty * (w * w).T)) if penalty.any() else 0.0
    return Point(step, at.value + shrinks, at, w, z)
