"""Damped Newton on a support, for losses other than squared.

A step goes along -H^-1 g, with the Hessian H of the loss on the support; it is halved until the objective
falls by enough. Where the loss has a parabola that touches it and lies above (`majorant`), its Hessian takes
over where that of the loss is singular or led nowhere: such steps gain from any distance, and are doubled
while they gain more. The Hessian is what costs, so it is kept from step to step while each leaves little to
gain (`KEEP_HESSIAN`). For sparse columns, and for many, it is not formed: conjugate gradients give the
direction from products with the columns (`Products`), in the same loop.

With the columns as rows of A, the Hessian is A diag(c) A^T, c being the curvature of the loss at each sample.
Multinomial loss couples the classes of a sample, so its Hessian has a block for each pair of classes. It is
factorised by Cholesky, damped as little as it takes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import NamedTuple

import numpy as np

from skpursuit.numerics.arrays import Compressed, Floats, Indices
from skpursuit.numerics.float_range import EPS, TINY_POSITIVE
from skpursuit.numerics.sums import BLOCK_ROWS
from skpursuit.numerics.tuning import CURVATURES_HELD, GRAM_ENTRIES
from skpursuit.problem.problem import Derivatives, Problem, SampleLosses

FULL_PRECISION, MAX_STEPS = 1e-15, 300  # relative decrease of the objective that is not worth a step; steps
Columns = Floats | Compressed  # as rows
MAX_EXPANSION = 2.0**20  # steps of a parabola above the loss that are tried at once
MIN_STEP = 2.0**-26  # a step that gets nowhere
COARSE = 1e-3  # of a coefficient, that a last step may move it without a gain to be seen
MAX_BACKTRACKS = 60  # of a step before it is given up
KEEP_HESSIAN = 0.03  # while a step should gain at most this share of what the one before should have
MAX_CG, CG_TOL = 25, 1e-2  # steps of conjugate gradients; the squared size of what they leave
MAX_BISECTIONS = 1100  # of a bracket, which reach the smallest step of all
LEAST_CURVATURE = 1e-4  # of the loss of a sample: it keeps conjugate gradients from going too far
MIN_TRUSTED_STEP = 0.25  # shorter steps show that curvature at z says little about the way to the minimum


def fit_support(
    problem: Problem,
    support: Indices,
    A: Floats,
    w: Floats,
    z: Floats | None = None,
    precision: float = FULL_PRECISION,
) -> tuple[Floats, Floats, float]:
    """Minimise over the coefficients of the columns `support`, gathered as the rows of A, from w.

    z are the predictions of w, if they are known. The problem's penalty keeps separable classes finite.
    Returns coefficients, their predictions, and the objective at the minimum.
    """
    if len(w) == 0:
        z = np.zeros((problem.design.shape[0], *problem.target_shape))
        return w, z, problem.value(z)
    rules = problem.penalties(support), precision, MAX_STEPS
    w, z, losses = fit_outputs(A, problem.per_target_losses, w, z, *rules)
    return w, z, sum(at.value for at in losses)


def initial_coefficient(problem: Problem, column: Floats, z: Floats, penalty: float) -> Floats:
    """A good first coefficient for a new column, the others held: far steps cost one column, not all."""
    samples, rows = problem.per_target_losses, np.flatnonzero(column)
    if len(rows) < len(column):  # predictions elsewhere do not move
        samples, column, z = [some.subset(rows) for some in samples], column[rows], z[rows]
    start, rules = np.zeros((1, *problem.target_shape)), (np.array([penalty]), 1e-4, 10)
    return fit_outputs(column[None], samples, start, z, *rules)[0][0]


def coordinate_step(
    samples: SampleLosses, column: Floats, z: Floats, f: float | None, g: Floats
) -> tuple[Floats, Floats, float] | None:
    """A Newton step in one coefficient, halved until the objective is at most f; None if none helps.

    z are the predictions, g is the gradient in the coefficient. Without f the whole step is taken.
    """
    if not column.any():
        return None
    square = column * column
    bend = np.asarray(square @ samples.curvature(z))
    move = -g / np.where(bend > 0, bend, square.sum())  # no curvature: as if each sample had one
    for halved in range(MAX_BACKTRACKS):
        part = move * 0.5**halved
        there = z + np.multiply.outer(column, part)
        value = samples.value(there)
        if f is None or (value <= f and np.any(part)):
            return part, there, value
    return None


class TrialStep(NamedTuple):
    """A step along a direction: the objective with the penalty, the losses, coefficients, predictions."""

    step: float
    f: float
    at: Derivatives
    w: Floats
    z: Floats


def fit_outputs(
    A: Columns,
    samples: Sequence[SampleLosses],
    w: Floats,
    z: Floats | None,
    penalty: Floats,
    precision: float,
    max_iter: int,
    by_products: bool = False,
    known: Sequence[Derivatives | None] = (),
) -> tuple[Floats, Floats, list[Derivatives]]:
    """As `descend` for several outputs: those not coupled have samples each, and are fitted one by one.

    `known` are the losses of each at z, as an earlier fit gave them.
    """
    coupled = samples[0].loss.couples_targets
    if coupled:
        # Less their mean over the classes, where nothing else determines it.
        start = np.where((penalty == 0)[:, None], w - w.mean(axis=1, keepdims=True), w)
        w, z = start, z if np.array_equal(start, w) else None
    z = (w.T @ A).T if z is None else z
    rules = penalty, precision, max_iter, by_products
    if coupled or w.ndim == 1:
        w, z, at = descend(A, samples[0], w, z, *rules)
        return w, z, [at]
    each = zip(samples, w.T, z.T, known or [None] * len(samples))
    coefs, lines, ats = zip(*(descend(A, some, w, z, *rules, at) for some, w, z, at in each))
    return np.stack(coefs, axis=1), np.stack(lines, axis=1), list(ats)


@np.errstate(over="ignore", invalid="ignore")  # at steps that are too long
def descend(
    A: Columns,
    samples: SampleLosses,
    w: Floats,
    z: Floats,
    penalty: Floats,
    precision: float,
    max_iter: int,
    by_products: bool = False,
    known: Derivatives | None = None,
) -> tuple[Floats, Floats, Derivatives]:
    """Coefficients at the minimum, from w with predictions z; their predictions and the losses there.

    Columns are the rows of A. `penalty` is that of each coefficient, `precision` the relative decrease of the
    objective that is not worth a step.
    """
    hessian: HessianFactor | Products | None = None
    has_majorant = samples.has_majorant and not by_products
    trusted, last = True, np.inf  # whether the Hessian at w is worth a try; the decrement of the last step
    now = _point(samples, penalty, w, z, 0.0, known)
    for _ in range(max_iter):
        g, fresh = A @ now.at.residual + (penalty * now.w.T).T, hessian is None
        if hessian is None:
            if by_products:
                hessian = Products(A, samples, now, penalty)
            else:
                hessian = hessian_of(samples, A, now.z, now.at.curvature, penalty, trusted)
        p = hessian.solve(g)
        decrement = float((g * p).sum())
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
    return now.w, z + (moved.T @ A).T if moved.any() else z, now.at


class Products:
    """The Hessian of the loss at z by its products with vectors; columns may be sparse."""

    is_majorant = False

    def __init__(self, A: Columns, samples: SampleLosses, now: TrialStep, penalty: Floats) -> None:
        self.A, self.samples = A, samples
        floor = LEAST_CURVATURE if samples.weights is None else LEAST_CURVATURE * samples.weights
        self.curvature = np.maximum(now.at.curvature.T, floor).T
        self.p = samples.loss.probabilities(now.z) if samples.loss.couples_targets else None
        self.penalty = penalty if now.z.ndim == 1 else penalty[:, None]
        self.diagonal = (A * A) @ self.curvature + self.penalty

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
    """The first of the steps 1, 1/2, ... along -p that gains enough; the point itself if none does."""

    # A parabola above the loss is steeper than the loss: with it (`doubles`) longer steps come first.
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


def _point(
    samples: SampleLosses,
    penalty: Floats,
    w: Floats,
    z: Floats,
    step: float = 0.0,
    known: Derivatives | None = None,
) -> TrialStep:
    at = samples.derivatives(z) if known is None else known
    shrinks = 0.5 * float((penalty * (w * w).T).sum()) if penalty.any() else 0.0
    return TrialStep(step, at.value + shrinks, at, w, z)


@dataclass(frozen=True, eq=False)
class HessianFactor:
    """Second derivatives in coefficients, as the Cholesky factor of them divided by sizes; a value."""

    lower: Floats | None  # without it there is no direction
    diagonal_scale: Floats
    is_majorant: bool  # whether they are those of a parabola above

    def solve(self, g: Floats) -> Floats:
        """The direction p with (second derivatives) p = g, of shape (k,), or (k, m) for coupled targets."""
        if self.lower is None:
            return np.zeros_like(g)
        p = both_triangles(self.lower, g.T.ravel() / self.diagonal_scale) / self.diagonal_scale
        return p.reshape(g.T.shape).T


def hessian_of(
    samples: SampleLosses, A: Floats, z: Floats, curvature: Floats, penalty: Floats, trusted: bool
) -> HessianFactor:
    """The factorised Hessian of the loss, or of the parabola above it where that one does not serve."""
    if trusted or not samples.has_majorant:
        hessian, damping = factorize_hessian(second_derivatives(samples, A, z, curvature), penalty)
        if not (damping and samples.has_majorant):
            return hessian
    H = second_derivatives(samples, A, z, samples.majorant(z))
    return factorize_hessian(H, penalty, is_majorant=True)[0]


def second_derivatives(samples: SampleLosses, A: Floats, z: Floats, curvature: Floats | None) -> Floats:
    """Those of losses at z with this curvature in z, in the coefficients of the rows of A."""
    if samples.loss.couples_targets:
        return coupled_hessian(A, samples.loss.probabilities(z), samples.weights)
    return weighted_gram(A, curvature)


def weighted_gram(A: Floats, weights: Floats | None) -> Floats:
    """A diag(weights) A^T, from so few samples at a time that weighted ones stay in the cache."""
    step, total = max(BLOCK_ROWS, GRAM_ENTRIES // len(A)), np.zeros((len(A), len(A)))
    room = np.empty((len(A), min(step, A.shape[1])))
    for start in range(0, A.shape[1], step):
        part = weighted = A[:, start : start + step]
        if weights is not None:
            weighted = np.multiply(part, weights[start : start + step], out=room[:, : part.shape[1]])
        total += weighted @ part.T
    return total


def coupled_hessian(A: Floats, p: Floats, weights: Floats | None) -> Floats:
    """Where the loss couples m targets: A (diag(p) - p p^T) A^T, of shape (m, k, m, k)."""
    # Block (i, j) of two columns is a sum over the samples that have both, for all pairs of classes at once:
    # the price follows the non-zeros of the sparser column.
    m, k = p.shape[1], len(A)
    first, second = np.triu_indices(m)
    blocks = np.zeros((len(first), k, k))
    step = max(1, CURVATURES_HELD // len(first))
    for start in range(0, len(p), step):
        rows = slice(start, start + step)
        q = np.ascontiguousarray(p[rows].T)
        found = q[first] * ((first == second)[:, None] - q[second])  # of diag(p) - p p^T of each row
        found = found if weights is None else found * weights[rows]
        blocks += pair_products(A[:, rows], np.ascontiguousarray(found.T))
    H = np.empty((m, k, m, k))
    for a, b, block in zip(first, second, blocks):
        H[a, :, b] = H[b, :, a] = block
    return H


def pair_products(A: Floats, D: Floats) -> Floats:
    """A diag(D[:, q]) A^T for each column q of D, shape (q, k, k)."""
    present = A != 0
    counts = present.sum(axis=1)
    order = np.argsort(-counts, kind="stable")
    blocks = np.empty((D.shape[1], len(A), len(A)))
    for t, j in enumerate(order):
        fuller = order[: t + 1]
        if counts[j] < A.shape[1]:
            rows = np.flatnonzero(present[j])
            found = (A[np.ix_(fuller, rows)] * A[j, rows]) @ D[rows]
        else:
            found = (A[fuller] * A[j]) @ D
        blocks[:, fuller, j] = blocks[:, j, fuller] = found.T
    return blocks


def factorize_hessian(H: Floats, penalty: Floats, is_majorant: bool = False) -> tuple[HessianFactor, float]:
    """Factorised second derivatives with a penalty of each column, and their damping relative to H.

    They are damped as little as Cholesky needs, in units of each column, so that neither the range of floats
    nor columns of very different sizes play a part. Where no damping helps, H is not finite or zero. H is
    overwritten.

    Adding one number to the coefficients of a column in all coupled classes changes nothing, so that without
    a penalty the matrix is singular in that direction. There it gets the curvature of the square of their
    mean, which is zero where `fit_outputs` starts, and so stays zero.
    """
    if H.ndim == 4:
        m, k = H.shape[:2]
        for i in np.flatnonzero(penalty == 0):
            H[:, i, :, i] += np.trace(H[:, i, :, i]) / m**2
        H, penalty = H.reshape(m * k, -1), np.tile(penalty, m)
    H.flat[:: len(H) + 1] += penalty
    sizes = np.sqrt(np.diag(H))
    if not (np.isfinite(sizes).all() and sizes.any()):
        return HessianFactor(None, sizes, is_majorant), np.inf
    sizes[sizes == 0.0] = 1.0
    H /= sizes
    H /= sizes[:, None]
    lower, damping = try_cholesky(H), 0.0
    while lower is None and damping < 1.0:
        damping = max(10 * damping, 1e-14)
        lower = try_cholesky(H + damping * np.eye(len(H)))
    return HessianFactor(lower, sizes, is_majorant), np.inf if lower is None else damping


def try_cholesky(H: Floats) -> Floats | None:
    """The lower factor of H; None where it has none."""
    from scipy.linalg.lapack import dpotrf

    lower, failed = dpotrf(H, lower=True)
    return None if failed else lower


def both_triangles(lower: Floats, b: Floats) -> Floats:
    """Solve L L^T x = b."""
    from scipy.linalg.lapack import dpotrs

    return dpotrs(lower, b, lower=True)[0]


def minimize_convex_1d(
    slopes: Callable[[float], tuple[float, float]], limit: float, tolerance: float
) -> float:
    """The t in [0, limit] where a convex function that falls at 0 is least.

    `slopes(t)` gives its first and second derivative. A slope of at most `tolerance` is a minimum. The sign
    of the slope tells on which side the minimum lies, so that a bracket around it shrinks at every look, and
    Newton's steps are taken as long as they stay inside. The function itself is never asked for: near its
    minimum it is flat to half of the digits, and a search that compares its values ends there. Flat pieces
    and infinite values do no harm either; they cost some bisections.
    """
    low, high = 0.0, limit
    first, second = slopes(high)
    if first <= 0.0:
        return high
    t = 0.0
    first, second = slopes(t)
    for _ in range(MAX_BISECTIONS):
        t = t - first / second if second > 0 and isfinite(first / second) else low
        if not low < t < high:
            t = 0.5 * (low + high)
        first, second = slopes(t)
        low, high = (t, high) if first < 0 else (low, t)
        if abs(first) <= tolerance:
            return t
        if high - low <= 1e-15 * high:
            break
    return low  # where the function still falls; it may be infinite at the other end
