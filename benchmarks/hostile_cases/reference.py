"""The algebra of the references, in long double: losses, products, least squares, and judging a choice.

Bounds are stated in units of float64 rounding (EPS): what a careful float64 computation may lose, times a
small factor. Long double has 11 bits more and a range of 1e+-4932, so that nothing overflows here.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

LD = np.longdouble
EPS = 2.0**-52
TINY = LD(2.0) ** -1074  # what underflow may take from a product
HUBER_DELTA = LD(1.35)


def _logistic(y, z):
    e = np.exp(-np.abs(z))
    margin = y * z
    value = np.maximum(-margin, 0) + np.log1p(e)
    chance = np.where(margin > 0, e, 1) / (1 + e)
    return value, -y * chance, e / (1 + e) ** 2


def _huber(y, z):
    a = np.abs(z - y)
    c = np.minimum(a, HUBER_DELTA)
    return c * (a - c / 2), np.clip(z - y, -HUBER_DELTA, HUBER_DELTA), (a <= HUBER_DELTA).astype(LD)


def _poisson(y, z):
    e = np.exp(np.minimum(z, LD(11000)))
    logs = np.where(y > 0, np.log(np.where(y > 0, y, 1)), 0)
    near = np.abs(z - logs) < 1e-3  # where exp(z) - y (1 + z - log y) cancels
    u = np.where(near, z - logs, 0)
    series = y * u * u / 2 * (1 + u / 3 * (1 + u / 4 * (1 + u / 5)))
    value = np.where(near & (y > 0), series, e - y * (1 + z - logs))
    return np.where(y > 0, value, e), e - y, e


def _squared(y, z):
    return (z - y) ** 2 / 2, z - y, np.ones_like(z)


LOSSES = {"squared": _squared, "logistic": _logistic, "huber": _huber, "poisson": _poisson}
SMOOTHNESS = {"squared": 1.0, "logistic": 0.25, "huber": 1.0}


class Reference:
    """A problem on the rows of positive weight. `r` is such that X^T r is the gradient."""

    def __init__(self, table, loss="squared"):
        rows = slice(None) if table.weights is None else table.weights > 0
        self.X = table.X[rows].astype(LD)
        self.y = table.y[rows].astype(LD)
        self.weights = np.ones(len(self.X), LD) if table.weights is None else table.weights[rows].astype(LD)
        self.loss, self.rows = loss, len(table.X)
        self.n, self.d = self.X.shape
        self.plain = self.X.astype(float)  # as it was given: columns that are equal here tie

    def _per_row(self, values):
        return values * (self.weights if values.ndim == 1 else self.weights[:, None])

    def predict(self, coef):
        return self.X @ np.asarray(coef).astype(LD)

    def values(self, z):
        return self._per_row(LOSSES[self.loss](self.y, z)[0])

    def objective(self, z):
        return self.values(z).sum()

    def residual(self, z):
        return self._per_row(LOSSES[self.loss](self.y, z)[1])

    def curvature(self, z):
        return self._per_row(LOSSES[self.loss](self.y, z)[2])

    def centred(self, centre=True, scale=False):
        """The same problem as estimators pose it: less the weighted means, per norm of the columns.

        Remembers the norm of what is rounding in each column (`noise`) and in y (`y_noise`).
        """
        share = self.weights / self.weights.sum()
        means, y_mean = share @ self.X, share @ self.y
        self.means, self.y_mean = (means, y_mean) if centre else (0 * means, 0 * y_mean)
        self.mean_sizes, self.y_size = share @ np.abs(self.X), share @ np.abs(self.y)
        self.X, self.y = self.X - self.means, self.y - self.y_mean
        self.noise = 256 * EPS * np.abs(self.means) * norm(self.root)
        self.y_noise = 256 * EPS * norm(self.y_mean) * norm(self.root)
        self.scale = np.ones(self.d, LD)
        if scale:
            sizes = np.sqrt((self.X**2 * self.weights[:, None]).sum(axis=0))
            self.scale = np.where(sizes > self.noise, sizes, 1)
            self.X, self.noise = self.X / self.scale, self.noise / self.scale
        return self

    @cached_property
    def root(self):
        return np.sqrt(self.weights)

    def rooted(self, values):
        """Times the square roots of the weights: the r of X^T r from the residual of the weighted problem."""
        return values * (self.root if values.ndim == 1 else self.root[:, None])

    @cached_property
    def A(self):
        """Rows times the square roots of their weights: least squares on A and b is the weighted problem."""
        return self.X * self.root[:, None]

    @cached_property
    def b(self):
        return self.rooted(self.y)

    @cached_property
    def sizes(self):
        """Norms of the weighted columns."""
        return np.sqrt((self.A**2).sum(axis=0))

    @cached_property
    def zero(self):
        return np.zeros_like(self.y)

    def groups(self, signed=False):
        """A number for each column, the same for columns that are equal (up to sign, unless `signed`)."""
        X = self.plain + 0.0
        if not signed:
            first = X[np.argmax(X != 0, axis=0), np.arange(self.d)]
            X = X * np.where(first < 0, -1.0, 1.0) + 0.0
        return np.unique(X.T, axis=0, return_inverse=True)[1].ravel()

    def gradient(self, r):
        return self.X.T @ r

    def product_error(self, r):
        """What a float64 product may lose of each entry of X^T r."""
        return 4 * (self.rows + 8) * EPS * (np.abs(self.X).T @ np.abs(r)) + self.rows * TINY


def norm(x):
    """Euclidean norm."""
    return np.sqrt((np.asarray(x) ** 2).sum())


def norm_rows(x):
    return np.sqrt((x * x).sum(axis=1))


# -- choices -----------------------------------------------------------------------------------------------

SCORES = {"absolute": np.abs, "signed": lambda g: -g, "group": norm_rows}


def judge_choice(ref, r, chosen, allowed=None, k=1, score="absolute", slack=0.0, extra=0.0, step=None):
    """What is wrong with calling `chosen` the k best entries of X^T r among `allowed`, as (check, message).

    `slack` is an error of the residual, as a norm of weighted predictions, `extra` one of the entries.
    Entries that are closer than the rounding of a float64 product may come in any order, except those of
    equal columns: the lowest comes first. Where all numbers are small integers no product is rounded, and
    every tie goes to the lowest index.
    """
    allowed = np.arange(ref.d) if allowed is None else np.asarray(allowed, dtype=int)
    chosen, at = [int(j) for j in chosen], "" if step is None else f"step {step}: "
    if len(set(chosen)) < len(chosen) or not set(chosen) <= set(allowed.tolist()):
        return [("choice", f"{at}chose {chosen}, repeated or not allowed")]
    if len(chosen) != min(k, len(allowed)):
        return [("choice", f"{at}chose {len(chosen)} columns of {len(allowed)} where {k} were asked for")]
    left = np.setdiff1d(allowed, chosen)
    if len(left) == 0:
        return []
    g = ref.gradient(r)
    error = ref.product_error(r)
    error = norm_rows(error) if error.ndim == 2 else error
    error = error + ref.sizes * LD(slack) + extra
    scores = SCORES[score](g)
    if score == "group":
        error = error + 8 * EPS * scores
    wrong = []
    low, high = scores[chosen] + error[chosen], scores[left] - error[left]
    if low.min() < high.max():
        worst, better = chosen[int(np.argmin(low))], int(left[int(np.argmax(high))])
        told = f"column {worst} scores {scores[worst]:.17g}, column {better} {scores[better]:.17g}"
        wrong.append(("choice", at + told))
    groups = ref.groups(score == "signed")
    if slack == 0 and all_integers(ref.X, r):
        groups = np.unique(scores.astype(float), return_inverse=True)[1]
    late = [(c, u) for c in chosen for u in left.tolist() if u < c and groups[u] == groups[c]]
    if late:
        told = f"column {late[0][0]} was chosen before column {late[0][1]}, which ties with it"
        wrong.append(("choice", at + told))
    return wrong


def all_integers(X, r):
    """Whether products are sums of small integers."""
    small = np.abs(X).max(initial=0) * np.abs(r).max(initial=0) * len(X) < 2**50
    return bool(small and (np.rint(X) == X).all() and (np.rint(r) == r).all())


# -- least squares -----------------------------------------------------------------------------------------


class Span:
    """Columns of A made orthonormal one by one, in long double."""

    def __init__(self, n):
        self.Q = np.empty((0, n), LD)
        self.R: list[np.ndarray] = []
        self.columns: list[np.ndarray] = []
        self.noise: list[np.ndarray] = []  # of each direction, the share that is rounding of its column

    def share(self, x):
        """Norm of what the span leaves of x, relative to x, with its coefficients; x is not added."""
        size, v, h = norm(x), x, np.zeros(len(self.Q), LD)
        for _ in range(3):
            part = self.Q @ v
            v, h = v - part @ self.Q, h + part
        return (norm(v) / size if size > 0 else LD(0)), v, h

    def add(self, x, noise=0.0):
        share, v, h = self.share(x)
        left = norm(v)
        if left > 0:
            self.Q = np.vstack([self.Q, v / left])
            self.R.append(np.append(h, left))
            self.columns.append(x)
            inherited = norm(h * np.array(self.noise, LD))
            self.noise.append((noise + inherited) / left)
        return share

    def fit(self, b):
        """Predictions and coefficients of the least-squares fit of b."""
        c = self.Q @ b
        z = (c.T @ self.Q).T
        w = np.array(c)
        for i in reversed(range(len(w))):
            w[i] = w[i] / self.R[i][i]
            for j in range(i):
                w[j] = w[j] - self.R[i][j] * w[i]
        return z, w

    def condition(self):
        """Of the columns scaled to unit norm."""
        if not self.columns:
            return 1.0
        unit = np.array([(x / norm(x)).astype(float) for x in self.columns])
        return 1.0 / max(1e-18, float(np.linalg.svd(unit, compute_uv=False)[-1]))

    def rounding(self, b, z, w):
        """What a backward stable fit in float64 may lose of z, as a norm."""
        sizes = [norm(x) for x in self.columns]
        reach = norm(b) + sum((norm(wi) * s for wi, s in zip(w, sizes)), LD(0))
        steps = 8 * (self.Q.shape[1] + len(self.columns) + 16) * EPS
        return steps * (reach + self.condition() * norm(b - z)) + self.Q.shape[1] * TINY
