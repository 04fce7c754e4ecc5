"""Lower bounds of the objective of every model with at most k columns.

The objective of coefficients w is f(w) + sum_j r_j w_j^2 / 2 with a convex f. Let a model use a share z_j of
column j, sum z_j <= k, and pay r_j w_j^2 / (2 z_j) for it: a convex problem, in which the models of k columns
are those with whole shares (the perspective relaxation). A bound does not need its minimum. As f is convex,
every model of k columns has, at any point u with g the gradient of f there,

    objective >= f(u) - g.u - (the k largest g_j^2 / r_j, summed) / 2,

and the best u is the minimum of the relaxation, towards which accelerated proximal gradient steps go.

Squared loss does without a ridge: of G = X^T X a diagonal D can be taken away while G - D stays positive
semidefinite, and r = ridge + D. With logistic loss r is the ridge, and f(u) - g.u the sum of the entropies of
predicted chances. A column with r = 0 is in every model: the constant one. Columns have unit norm, and all
arithmetic is float64.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt
from typing import NamedTuple

import numpy as np
from scipy.special import entr

from skpursuit.fit.newton_loop import fit_outputs
from skpursuit.numerics.arrays import Floats, Indices
from skpursuit.numerics.float_range import EPS
from skpursuit.problem.sample_losses import SampleLosses

BOUND_EVERY = 5  # steps between two looks at the bound
CLOSE = 1e-7  # relative distance of bound and relaxation at which steps end
SAFETY = 1e-6  # share of D that stays in G, for rounding


@dataclass(frozen=True)
class SquaredPart:
    """f(u) = half - b.u + u.Q.u / 2 with Q = G - D; `lipschitz` is the constant of its gradient."""

    Q: Floats
    b: Floats
    half: float
    r: Floats
    lipschitz: float

    def gradient(self, u: Floats) -> Floats:
        return self.Q @ u - self.b

    def bound_parts(self, u: Floats) -> tuple[float, Floats, float]:
        """f(u) - g.u, rounded down, g, and a bound on the rounding of its entries."""
        Qu, size, unit = self.Q @ u, float(np.abs(u).sum()), 2 * (len(u) + 8) * EPS
        constant = self.half - 0.5 * float(u @ Qu) - unit * (self.half + size * size)
        return constant, Qu - self.b, unit * (sqrt(2 * self.half) + size)  # entries of Q are at most 1

    def restricted(self, columns: Indices) -> SquaredPart:
        """The same on some columns alone."""
        return replace(self, Q=self.Q[np.ix_(columns, columns)], b=self.b[columns], r=self.r[columns])

    def objective(self, columns: Indices) -> float:
        """The least objective of models of these columns."""
        A = self.Q[np.ix_(columns, columns)] + np.diag(self.r[columns])
        w = np.linalg.solve(A, self.b[columns])
        return self.half - float(self.b[columns] @ w) + 0.5 * float(w @ A @ w)


@dataclass(frozen=True)
class LogisticPart:
    """f(u) = the logistic losses of X u, with the same methods."""

    X: Floats
    samples: SampleLosses
    weights: Floats
    r: Floats
    lipschitz: float

    def gradient(self, u: Floats) -> Floats:
        return self.X.T @ self.samples.residual(self.X @ u)

    def bound_parts(self, u: Floats) -> tuple[float, Floats, float]:
        """Any slopes of the losses give a bound; beside a constant column those whose sum is zero."""
        slopes, free = self.samples.residual(self.X @ u), self.r > 0
        if not free.all():
            up, down = slopes[slopes > 0].sum(), -slopes[slopes < 0].sum()
            slopes = slopes * np.where(slopes > 0, min(1.0, down / up), min(1.0, up / down))
        p, unit = np.abs(slopes) / self.weights, 4 * (len(slopes) + 8) * EPS
        entropies = float(self.weights @ (entr(p) + entr(1.0 - p)))
        return entropies * (1.0 - unit), (self.X.T @ slopes) * free, unit * float(np.linalg.norm(slopes))

    def restricted(self, columns: Indices) -> LogisticPart:
        return replace(self, X=np.ascontiguousarray(self.X[:, columns]), r=self.r[columns])

    def objective(self, columns: Indices) -> float:
        r, start = self.r[columns], np.zeros(len(columns))
        w, _, value = fit_outputs(self.X.T[columns], [self.samples], start, None, r, 1e-15, 300)
        return value + 0.5 * float(r @ (w * w))


ConvexPart = SquaredPart | LogisticPart


def largest_diagonal(G: Floats) -> Floats:
    """D_j = c / (G^-1)_jj with nearly the largest c that keeps G - D positive semidefinite, or zeros."""
    values, vectors = np.linalg.eigh(G)
    if values[0] <= 64 * len(G) * EPS * values[-1]:
        return np.zeros(len(G))
    scale = np.sqrt((vectors**2 / values).sum(axis=1))
    least, *_, most = np.linalg.eigvalsh(G * np.outer(scale, scale))
    return max(0.0, least * (1.0 - SAFETY) - 64 * len(G) * EPS * most) / scale**2


class Relaxed(NamedTuple):
    """A bound, the point and the shares it was found at, the bound of no free column, what each takes off."""

    bound: float
    u: Floats
    shares: Floats
    without: float
    gains: Floats


def relax(f: ConvexPart, k: int, inside: np.ndarray, u: Floats, target: float, steps: int) -> Relaxed:
    """The best bound on the way from u to the minimum, for k columns beside those `inside`.

    The way ends early when the bound reaches `target` or is as good as it gets.
    """
    t, before, ahead, momentum = f.r / f.lipschitz, u, u, 1.0
    best = _bound_at(f, k, inside, u, shares(u, t, k, inside))[0]
    for step in range(1, steps + 1):
        point = ahead - f.gradient(ahead) / f.lipschitz
        z = shares(point, t, k, inside)
        u = point * np.divide(z, z + t, out=np.zeros_like(z), where=z > 0)
        momentum = 1.0 if (ahead - u) @ (u - before) > 0 else momentum  # a restart
        faster = 0.5 * (1.0 + sqrt(1.0 + 4.0 * momentum * momentum))
        ahead, before, momentum = u + (momentum - 1.0) / faster * (u - before), u, faster
        if step % BOUND_EVERY == 0:
            found, value = _bound_at(f, k, inside, u, z)
            best = found if found.bound > best.bound else best
            if best.bound >= target or value - best.bound <= CLOSE * value:
                break
    return best


def _bound_at(f: ConvexPart, k: int, inside: np.ndarray, u: Floats, z: Floats) -> tuple[Relaxed, float]:
    """The bound at u, and the value of the relaxation there."""
    constant, g, rounding = f.bound_parts(u)
    gains = np.divide(0.5 * (np.abs(g) + rounding) ** 2, f.r, out=np.zeros_like(g), where=f.r > 0)
    without, free = constant - float(gains[inside].sum()), gains[~inside]
    most = np.partition(free, len(free) - k)[len(free) - k :]
    paid = np.divide(0.5 * f.r * u * u, z, out=np.zeros_like(z), where=z > 0)
    return Relaxed(without - float(most.sum()), u, z, without, gains), constant + float(g @ u + paid.sum())


def shares(u: Floats, t: Floats, k: int, inside: np.ndarray) -> Floats:
    """The z that minimise sum_j u_j^2 t_j / (z_j + t_j), 0 <= z <= 1, sum <= k beside those inside.

    They are |u_j| sqrt(t_j) x - t_j cut to [0, 1], and their sum is piecewise linear in x.
    """
    z, slope = inside.astype(float), np.abs(u) * np.sqrt(t)
    free = np.flatnonzero(~inside & (slope > 1e-12 * slope.max(initial=0.0)))
    if len(free) <= k:
        z[free] = 1.0
        return z
    a, begin = slope[free], t[free]
    ends = np.concatenate([begin / a, (1.0 + begin) / a])
    order = np.argsort(ends)
    rises, ends = np.cumsum(np.concatenate([a, -a])[order]), ends[order]
    sums = np.concatenate([[0.0], np.cumsum(rises[:-1] * np.diff(ends))])
    at = max(1, int(np.searchsorted(sums, k))) - 1
    z[free] = np.clip(a * (ends[at] + (k - sums[at]) / rises[at]) - begin, 0.0, 1.0)
    return z
