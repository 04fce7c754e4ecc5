"""Damped Newton as looks at the samples with decisions between them.

A step goes along -H^-1 g, with the curvature H of the loss on the support; it is halved until the objective
falls by enough. Where the loss has a parabola that touches it and lies above (`majorant`), its curvature
takes over where that of the loss is singular or led nowhere: such steps gain from any distance.

What needs all samples is one kind of look: the value of the objective at w - t p and its gradient there, and
where it is wanted the curvature. These are sums over samples, which are made range by range, here or on the
workers of a cluster (`Rows.descend`). Everything between two looks is a decision on a few numbers: whether
to take the step t, to shorten it, or to turn into another direction p. So a `Descent` is a small value: it
says what to look at next, and is followed by another when the sums of a look are there. Predictions are not
carried along: those of any w are the predictions at the start and what the change of w adds to them.

The usual descent looks once at its start and once for each step, because a whole step is nearly always taken:
its gradient, which the next direction needs, comes with its value. Curvature is what costs. It is kept from
step to step while each leaves little to gain (`KEEP_CURVATURE`), and comes with a look only if it will be
needed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from skpursuit.fit.curvature import bend_of, derivatives
from skpursuit.numerics.arrays import Floats
from skpursuit.numerics.scaling import NEARLY_ZERO
from skpursuit.numerics.stack import added
from skpursuit.problem.sample_losses import SampleLosses

FARTHEST = 2.0**20  # steps of a parabola above the loss that are tried at once
CREEPING = 2.0**-26  # a step that gets nowhere
EPS = float(np.finfo(np.float64).eps)
HALVINGS = 60  # of a step before it is given up
KEEP_CURVATURE = 0.03  # while a step should gain at most this share of what the one before should have
TRUSTED_STEP = 0.25  # shorter steps show that curvature at z says little about the way to the minimum


Told = tuple[float, float, float, tuple[Floats, ...]]  # what a look at a range tells


class Point(NamedTuple):
    """A step that was looked at, with the objective there; with the penalty, and without."""

    step: float
    f: float
    value: float


class Descent(NamedTuple):
    """Where a descent is, and what it looks at next.

    Attributes
    ----------
    origin : ndarray of shape (k,) or (k, m)
        Coefficients whose predictions are known, z.
    w : ndarray of shape (k,) or (k, m)
        Coefficients, of which `value` and `f` are the objective without and with the penalty.
    penalty : ndarray of shape (k,)
    precision : float
        The relative decrease of the objective that is not worth a step.
    has_majorant : bool
        Whether there is a parabola above the loss.
    left : int
        Directions that may still be taken.
    p : ndarray
        The direction.
    step : float
        The next look is at w - step p.
    curved : str or None
        Second derivatives that come with the gradient of the next look: "curvature", "majorant", or "" for
        none. None: neither.
    bend : Bend or None
        Second derivatives that p was made of; `fresh` if they are those at w.
    trusted : bool
        Whether a step by the curvature at w is worth a try.
    decrement, last : float
        What a whole step along p, and along the direction before, should gain, twice.
    best : Point or None
        The farthest step so far that still gained, while steps are doubled.
    halvings : int
        Of the step along p so far.
    done : bool
    """

    origin: Floats
    w: Floats
    penalty: Floats
    precision: float
    has_majorant: bool
    left: int
    value: float = np.inf
    f: float = np.inf
    p: Any = None
    step: float = 0.0
    curved: str | None = "curvature"
    bend: Any = None
    fresh: bool = True
    trusted: bool = True
    decrement: float = np.inf
    last: float = np.inf
    best: Point | None = None
    halvings: int = 0
    done: bool = False

    @property
    def to_all_digits(self) -> bool:
        """Whether it ends at the minimum to rounding, and not near it."""
        return self.precision < 1e-12

    # -- in a range of samples ------------------------------------------------------------------------

    def end(self, z: Floats | None, A: Floats) -> Floats:
        """The predictions of w, from those of the origin, which is zero where there are none."""
        change = self.w - self.origin
        if z is not None and not change.any():
            return z
        moved = (change.T @ A).T
        return moved if z is None else z + moved

    def look(self, z: Floats | None, A: Floats, samples: SampleLosses) -> Told:
        """The value at w - step p; for a step the largest change by p, and prediction of w; derivatives."""
        z, sizes = self.end(z, A), (0.0, 0.0)
        if self.step:
            dz = (self.p.T @ A).T
            sizes, z = (float(np.abs(dz).max()), float(np.abs(z).max())), z - self.step * dz
        with np.errstate(over="ignore", invalid="ignore"):  # at steps that are too long
            return samples.value(z), *sizes, derivatives(samples, A, z, self.curved)

    # -- between looks --------------------------------------------------------------------------------

    def after(self, told: list[Told]) -> Descent:
        """The descent after looks at all ranges."""
        values, changes, sizes, found = zip(*told)
        value, sums = float(np.add.reduce(values)), added(list(found))
        point = Point(self.step, value + self._penalty_at(self.step), value)
        if not self.step:
            return self._replace(value=value, f=point.f)._turned(*sums)
        if max(changes) <= EPS * max(sizes):  # lost in rounding, as where residuals vanish
            return self._replace(done=True)
        if self.best is None and not (self.bend.is_majorant and self.halvings == 0):
            return self._judged(point, *sums)
        # A parabola above the loss bends more than the loss: longer steps are tried while they gain.
        if self.best is None or point.f < self.best.f:
            if self.step < FARTHEST:
                return self._replace(best=point, step=2 * self.step)
            return self._judged(point)
        return self._judged(self.best)

    def _penalty_at(self, step: float) -> float:
        """The penalty at w - step p."""
        if not self.penalty.any():
            return 0.0
        w = self.w - step * self.p if step else self.w
        return 0.5 * float(np.sum(self.penalty * (w * w).T))

    def _judged(self, point: Point, *found: Floats) -> Descent:
        """After a look at a step, with the derivatives there: take it, or look at half of it."""
        step = point.step
        if not point.f <= self.f - 1e-4 * step * self.decrement:
            if self.halvings + 1 < HALVINGS:
                return self._replace(step=0.5 * step, halvings=self.halvings + 1, best=None, curved=None)
            point, step, found = Point(0.0, self.f, self.value), 0.0, ()
        trusted = step >= TRUSTED_STEP or not self.trusted
        gains = self.decrement <= KEEP_CURVATURE * self.last
        keep = step > 0 and gains and trusted and not self.bend.is_majorant
        now = self._replace(
            w=self.w - step * self.p if step else self.w,
            value=point.value,
            f=point.f,
            step=0.0,
            curved="" if keep else "curvature" if trusted or not self.has_majorant else "majorant",
            bend=self.bend if keep else None,
            trusted=trusted,
            last=self.decrement,
            left=self.left - 1,
        )
        creeps = step < CREEPING and self.fresh and not (self.trusted and self.has_majorant)
        if creeps or now.left <= 0:
            return now._replace(done=True)
        known = len(found) == (1 if keep else 2) and (keep or now.curved == self.curved)
        return now._turned(*found) if known else now

    def _turned(self, g: Floats, H: Any = None) -> Descent:
        """The descent in a new direction, from the gradient of the loss at w, and second derivatives."""
        bend, fresh = self.bend, self.bend is None
        if bend is None:
            bend, damping = bend_of(H, self.penalty, self.curved == "majorant")
            if damping and self.has_majorant and not bend.is_majorant:
                return self._replace(step=0.0, curved="majorant")
        g = g + (self.penalty * self.w.T).T
        p = bend.solve(g)
        decrement = float(np.sum(g * p))
        if not decrement > self.precision * max(abs(self.f), NEARLY_ZERO):
            return self._replace(done=True)
        again = "curvature" if decrement > KEEP_CURVATURE * self.last else ""
        return self._replace(
            bend=bend,
            fresh=fresh,
            p=p,
            decrement=decrement,
            step=1.0,
            curved=None if bend.is_majorant else again,
            best=None,
            halvings=0,
        )
