"""Damped Newton: minimise the loss of some samples over the coefficients of gathered columns.

A step goes along -H^-1 g, with the Hessian H of the loss on the support; it is halved until the objective
falls by enough. Where the loss has a parabola that touches it and lies above (`majorant`), its Hessian takes
over where that of the loss is singular or led nowhere: such steps gain from any distance, and are doubled
while they gain more. The Hessian is what costs, so it is kept from step to step while each leaves little to
gain (`KEEP_HESSIAN`). For sparse columns, and for many, it is not formed: conjugate gradients give the
direction from products with the columns (`Products`), in the same loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse

from skpursuit.fit.hessian import HessianFactor, centre_over_classes, hessian_of
from skpursuit.numerics.arrays import Floats
from skpursuit.numerics.float_range import TINY_POSITIVE
from skpursuit.problem.sample_losses import Derivatives, SampleLosses

MAX_EXPANSION = 2.0**20  # steps of a parabola above the loss that are tried at once
MIN_STEP = 2.0**-26  # a step that gets nowhere
COARSE = 1e-3  # of a coefficient, that a last step may move it without a gain to be seen
EPS = float(np.finfo(np.float64).eps)
MAX_BACKTRACKS = 60  # of a step before it is given up
KEEP_HESSIAN = 0.03  # while a step should gain at most this share of what the one before should have
MAX_CG, CG_TOL = 25, 1e-2  # steps of conjugate gradients; the squared size of what they leave
LEAST_CURVATURE = 1e-4  # of the loss of a sample: it keeps conjugate gradients from going too far
MIN_TRUSTED_STEP = 0.25  # shorter steps show that curvature at z says little about the way to the minimum


class TrialStep(NamedTuple):
    """A step along a direction: the objective with the penalty, the losses, coefficients, predictions."""

    step: float
    f: float
    at: Derivatives
    w: Floats
    z: Floats


def fit_outputs(
    A: Any,
    samples: Sequence[SampleLosses],
    w: Floats,
    z: Floats | None,
    penalty: Floats,
    precision: float,
    max_iter: int,
    by_products: bool = False,
) -> tuple[Floats, Floats, float]:
    """As `descend` for samples of one or several outputs, z being optional.

    Outputs that do not depend on each other are fitted one by one, each to its own end: there is one of
    `samples` for each. `by_products` asks for conjugate gradients.
    """
    coupled = samples[0].loss.couples_targets
    if coupled:
        start = centre_over_classes(w, penalty)
        w, z = start, z if np.array_equal(start, w) else None
    z = (w.T @ A).T if z is None else z
    rules = penalty, precision, max_iter, by_products
    if coupled or w.ndim == 1:
        return descend(A, samples[0], w, z, *rules)
    fits = [descend(A, some, w[:, i], z[:, i], *rules) for i, some in enumerate(samples)]
    coefs, lines, values = zip(*fits)
    return np.stack(coefs, axis=1), np.stack(lines, axis=1), sum(values)


@np.errstate(over="ignore", invalid="ignore")  # at steps that are too long
def descend(
    A: Any,
    samples: SampleLosses,
    w: Floats,
    z: Floats,
    penalty: Floats,
    precision: float,
    max_iter: int,
    by_products: bool = False,
) -> tuple[Floats, Floats, float]:
    """Coefficients at the minimum, from w with predictions z; their predictions and the value of the loss.

    Columns are the rows of A. `penalty` is that of each coefficient, `precision` the relative decrease of the
    objective that is not worth a step.
    """
    hessian: HessianFactor | Products | None = None
    has_majorant = samples.has_majorant and not by_products
    trusted, last = True, np.inf  # whether the Hessian at w is worth a try; the decrement of the last step
    now = _point(samples, penalty, w, z)
    for _ in range(max_iter):
        g, fresh = A @ now.at.residual + (penalty * now.w.T).T, hessian is None
        if hessian is None:
            hessian = (
                Products(A, samples, now, penalty)
                if by_products
                else hessian_of(samples, A, now.z, now.at.curvature, penalty, trusted)
            )
        p = hessian.solve(g)
        decrement = float(np.sum(g * p))
        done = not decrement > precision * max(abs(now.f), TINY_POSITIVE)
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
        if found.step < MIN_STEP and fresh and not (trusted and has_majorant):
            now = found
            break
        trusted = found.step >= MIN_TRUSTED_STEP or not trusted
        gains_little = decrement <= KEEP_HESSIAN * last
        if not (found.step > 0 and gains_little and trusted and not hessian.is_majorant):
            hessian = None
        now, last = found, decrement
    moved = now.w - w
    return now.w, z + (moved.T @ A).T if moved.any() else z, now.at.value


class Products:
    """The Hessian of the loss at z by its products with vectors; columns may be sparse."""

    is_majorant = False

    def __init__(self, A: Any, samples: SampleLosses, now: TrialStep, penalty: Floats) -> None:
        self.A, self.samples = A, samples
        floor = LEAST_CURVATURE if samples.weights is None else LEAST_CURVATURE * samples.weights
        self.curvature = np.maximum(now.at.curvature.T, floor).T
        self.p = samples.loss.probabilities(now.z) if samples.loss.couples_targets else None
        squares = A.power(2) if issparse(A) else A * A
        self.penalty = penalty if now.z.ndim == 1 else penalty[:, None]
        self.diagonal = squares @ self.curvature + self.penalty

    def times(self, v: Floats) -> Floats:
        """The Hessian times v."""
        shift = (v.T @ self.A).T
        if self.p is None:
            bent = self.curvature * shift
        else:
            bent = self.p * (shift - np.vecdot(self.p, shift)[:, None])
            bent = bent if self.samples.weights is None else bent * self.samples.weights[:, None]
        return self.A @ bent + self.penalty * v

    def solve(self, g: Floats) -> Floats:
        """Nearly the direction p with (Hessian) p = g: conjugate gradients, in units of the diagonal."""
        p, left = np.zeros_like(g), g
        ahead = left / self.diagonal
        size = first = float(np.sum(left * ahead))
        for _ in range(MAX_CG):
            if size <= CG_TOL * first:
                break
            turned = self.times(ahead)
            bend = float(np.sum(ahead * turned))
            if bend <= 0:  # a constant for all classes changes no probability
                break
            p, left = p + size / bend * ahead, left - size / bend * turned
            scaled, last = left / self.diagonal, size
            size = float(np.sum(left * scaled))
            ahead = scaled + size / last * ahead
        return p


def _line_search(
    samples: SampleLosses,
    penalty: Floats,
    now: TrialStep,
    p: Floats,
    dz: Floats,
    decrement: float,
    doubles: bool,
) -> TrialStep:
    """The first of the steps 1, 1/2, ... along -p that gains enough; the point itself if none does.

    A parabola above the loss is steeper than the loss: with it (`doubles`) longer steps come first.
    """

    def at(step: float) -> TrialStep:
        return _point(samples, penalty, now.w - step * p, now.z - step * dz, step)

    point = at(1.0)
    while doubles and point.step < MAX_EXPANSION:
        further = at(2 * point.step)
        if not further.f < point.f:
            break
        point = further
    for _ in range(MAX_BACKTRACKS):
        if point.f <= now.f - 1e-4 * point.step * decrement:
            return point
        point = at(0.5 * point.step)
    return now._replace(step=0.0)


def _point(samples: SampleLosses, penalty: Floats, w: Floats, z: Floats, step: float = 0.0) -> TrialStep:
    at = samples.derivatives(z)
    shrinks = 0.5 * float(np.sum(penalty * (w * w).T)) if penalty.any() else 0.0
    return TrialStep(step, at.value + shrinks, at, w, z)
