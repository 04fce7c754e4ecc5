"""Lower bounds of the objective of every model with at most k columns.

The objective of coefficients w is f(w) + sum_j r_j w_j^2 / 2 with a convex f. Let a model use a share z_j of
column j, sum z_j <= k, and pay r_j w_j^2 / (2 z_j) for it: a convex problem, in which the models of k columns
are those with whole shares (the perspective relaxation). A bound does not need its minimum. As f is convex,
every model of k columns has, at any point u with g the gradient of f there,

    objective >= f(u) - g.u - (the k largest g_j^2 / r_j, summed) / 2,

and the best u is the minimum of the relaxation, towards which accelerated proximal gradient steps go.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, sqrt

import numpy as np
from scipy.special import entr

from skpursuit.fit.newton import fit_outputs
from skpursuit.numerics.arrays import Floats, Indices
from skpursuit.numerics.float_range import EPS
from skpursuit.problem.sample_losses import SampleLosses

BOUND_EVERY = 5  # steps between two looks at the bound
CLOSE = 1e-7  # relative distance of bound and relaxation at which steps end
SAFETY = 1e-6  # share of the largest diagonal that stays in f, for rounding


@dataclass(frozen=True)
class ConvexPart:
    """f(u) = losses of u.A - sum_j D_j u_j^2 / 2, where r = ridge + D; rows of A have unit norm.

    D is what the squared loss can spare and stay convex. A column with r = 0 is in every model.
    """

    A: Floats
    samples: SampleLosses
    ridge: Floats
    D: Floats
    lipschitz: float  # constant of the gradient

    def slopes(self, u: Floats) -> Floats:
        """Slopes of the losses; u has few entries that are not zero."""
        used = np.flatnonzero(u)
        return self.samples.residual(u[used] @ self.A[used])

    def bound_parts(self, u: Floats) -> tuple[float, Floats]:
        """f(u) - g.u, rounded down, and |g|, rounded up."""
        s, free, y = self.slopes(u), self.ridge + self.D > 0, self.samples.y
        unit = 4 * (self.A.shape[1] + 8) * EPS
        if self.samples.loss.quadratic:
            constant, size = -0.5 * float(s @ s) - float(s @ y), float(y @ y + s @ s)
        else:  # any slopes give a bound; beside a constant column those whose sum is zero
            up, down = s[s > 0].sum(), -s[s < 0].sum()
            s = s if free.all() else s * np.where(s > 0, min(1.0, down / up), min(1.0, up / down))
            weights = np.ones(len(y)) if self.samples.weights is None else self.samples.weights
            p = np.abs(s) / weights
            constant = size = float(weights @ (entr(p) + entr(1.0 - p)))
        g = np.abs(self.A @ s - self.D * u) + unit * sqrt(float(s @ s))
        return constant + 0.5 * float(self.D @ (u * u)) - unit * size, g * free

    def objective(self, columns: Indices) -> float:
        """The least objective of models of these columns."""
        ridge, start = self.ridge[columns], np.zeros(len(columns))
        w, _, value = fit_outputs(self.A[columns], [self.samples], start, None, ridge, 1e-15, 300)
        return value + 0.5 * float(ridge @ (w * w))


def largest_diagonal(G: Floats) -> Floats:
    """D_j = c / (G^-1)_jj with nearly the largest c that keeps G - D positive semidefinite, or zeros."""
    values, vectors = np.linalg.eigh(G)
    if values[0] <= 64 * len(G) * EPS * values[-1]:
        return np.zeros(len(G))
    scale = np.sqrt((vectors**2 / values).sum(axis=1))
    least, *_, most = np.linalg.eigvalsh(G * np.outer(scale, scale))
    return max(0.0, least * (1.0 - SAFETY) - 64 * len(G) * EPS * most) / scale**2


def relax(
    f: ConvexPart, k: int, inside: np.ndarray, free: np.ndarray, u: Floats, goal: float, steps: int
) -> tuple[float, Floats, Floats, Floats]:
    """The best bound on the way from u to the minimum, for k of the free columns beside those inside.

    Returns the bound, the point and the shares it was found at, and what each column takes off. The way ends
    early when the bound reaches the goal or is as good as it gets.
    """
    r, before, ahead, momentum, best = f.ridge + f.D, u, u, 1.0, (-inf, u, u, u)
    for step in range(steps):
        point = ahead - (f.A @ f.slopes(ahead) - f.D * ahead) / f.lipschitz
        z = shares(point, r / f.lipschitz, k, inside, free)
        u = np.divide(point * z, z + r / f.lipschitz, out=np.zeros_like(z), where=z > 0)
        if step % BOUND_EVERY == 0:
            constant, g = f.bound_parts(u)
            gains = np.divide(0.5 * g * g, r, out=np.zeros_like(g), where=r > 0)
            bound = constant - float(gains[inside].sum()) - float(np.sort(gains[free])[-k:].sum())
            best = (bound, u, z, gains) if bound > best[0] else best
            paid = float(np.divide(0.5 * r * u * u, z, out=np.zeros_like(z), where=z > 0).sum())
            value = f.samples.value(u @ f.A) - 0.5 * float(f.D @ (u * u)) + paid
            if best[0] >= goal or value - best[0] <= CLOSE * value:
                break
        momentum = 1.0 if (ahead - u) @ (u - before) > 0 else momentum  # a restart
        faster = 0.5 * (1.0 + sqrt(1.0 + 4.0 * momentum * momentum))
        ahead, before, momentum = u + (momentum - 1.0) / faster * (u - before), u, faster
    return best


def shares(u: Floats, t: Floats, k: int, inside: np.ndarray, free: np.ndarray) -> Floats:
    """The z that minimise sum_j u_j^2 t_j / (z_j + t_j), 0 <= z <= 1, sum <= k over the free ones.

    They are |u_j| sqrt(t_j) x - t_j cut to [0, 1], and their sum is piecewise linear in x.
    """
    z, slope = inside.astype(float), np.abs(u) * np.sqrt(t)
    some = np.flatnonzero(free & (slope > 1e-12 * slope.max()))
    if len(some) <= k:
        z[some] = 1.0
        return z
    a, begin = slope[some], t[some]
    ends = np.concatenate([begin / a, (1.0 + begin) / a])
    order = np.argsort(ends)
    rises, ends = np.cumsum(np.concatenate([a, -a])[order]), ends[order]
    sums = np.concatenate([[0.0], np.cumsum(rises[:-1] * np.diff(ends))])
    at = max(1, int(np.searchsorted(sums, k))) - 1
    z[some] = np.clip(a * (ends[at] + (k - sums[at]) / rises[at]) - begin, 0.0, 1.0)
    return z
