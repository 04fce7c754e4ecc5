"""Degenerate tables (X, y), and the forms in which X is handed over."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator

import skpursuit


@dataclass
class Table:
    """X as the library will see its values, y, and what may be expected of them."""

    X: np.ndarray
    y: np.ndarray
    family: str = ""
    source: str = "c"
    given: Any = None  # X as it is handed over
    weights: np.ndarray | None = None
    extreme: bool = False  # scales at which a refusal in words is right as well
    notes: dict[str, Any] = field(default_factory=dict)


# -- sizes -------------------------------------------------------------------------------------------------


def draw_shape(rng):
    """Mostly tiny, sometimes wide or tall, rarely beyond one block of 512 rows."""
    kind = rng.choice(["tiny", "small", "wide", "tall", "blocks"], p=[0.3, 0.36, 0.2, 0.11, 0.03])
    low, high = {
        "tiny": ((1, 1), (8, 8)),
        "small": ((2, 2), (24, 24)),
        "wide": ((4, 20), (20, 60)),
        "tall": ((30, 2), (80, 14)),
        "blocks": ((500, 3), (1100, 10)),
    }[kind]
    return int(rng.integers(low[0], high[0] + 1)), int(rng.integers(low[1], high[1] + 1))


def signal(rng, X, noise=None):
    """y of a few columns and some noise."""
    n, d = X.shape
    w = np.zeros(d)
    chosen = rng.choice(d, size=min(d, int(rng.integers(1, 6))), replace=False)
    w[chosen] = rng.standard_normal(len(chosen)) + 0.1
    noise = rng.choice([0.0, 0.1, 1.0]) if noise is None else noise
    with np.errstate(all="ignore"):
        y = X @ w
        size = np.abs(y).max(initial=0.0)
        return y + noise * (size if 0 < size < np.inf else 1.0) * rng.standard_normal(n)


# -- families: functions of (rng, n, d) that return X, y and, where they have it, extreme ------------------


def plain(rng, n, d):
    X = rng.standard_normal((n, d))
    return X, signal(rng, X)


def zero_columns(rng, n, d):
    X = rng.standard_normal((n, d)) * (rng.random(d) < 0.5)
    return X, rng.standard_normal(n)


def all_zero(rng, n, d):
    return np.zeros((n, d)), rng.standard_normal(n)


def duplicates(rng, n, d):
    X = rng.standard_normal((n, d))[:, rng.integers(0, max(1, d // 2), d)]
    return X, signal(rng, X)


def negated(rng, n, d):
    X = rng.standard_normal((n, d))[:, rng.integers(0, max(1, d // 2), d)] * rng.choice([-1.0, 1.0], d)
    return X, signal(rng, X)


def collinear(rng, n, d):
    """Sums and differences of a few columns of small integers: exactly dependent."""
    base = rng.integers(-9, 10, (n, max(1, d // 3))).astype(float)
    X = base @ rng.integers(-1, 2, (base.shape[1], d))
    return X, signal(rng, X)


def near_collinear(rng, n, d):
    base = rng.standard_normal((n, max(1, d // 3)))
    X = base @ rng.standard_normal((base.shape[1], d))
    return X + 10.0 ** rng.uniform(-16, -4) * rng.standard_normal((n, d)), signal(rng, X)


def constant_columns(rng, n, d):
    X = rng.standard_normal((n, d))
    X[:, rng.random(d) < 0.5] = rng.choice([1.0, 0.1, -3.0, 1e6 + 0.1])
    return X, signal(rng, X)


def constant_y(rng, n, d):
    return rng.standard_normal((n, d)), np.full(n, rng.choice([1.0, 0.1, -7.0, 1e9, 1e-9]))


def zero_y(rng, n, d):
    return rng.standard_normal((n, d)), np.zeros(n)


def ties(rng, n, d):
    X = rng.integers(-1, 2, (n, d)).astype(float)
    return X, rng.integers(-2, 3, n).astype(float)


def orthogonal(rng, n, d):
    size = max(n, d)
    X = np.eye(size)[:n, :d][:, rng.permutation(d)] * rng.choice([1.0, 1.0, 3.0, 2.0**-30])
    return X, rng.integers(-3, 4, n).astype(float)


def low_rank(rng, n, d):
    rank = int(rng.integers(1, max(2, min(n, d) // 2)))
    X = rng.standard_normal((n, rank)) @ rng.standard_normal((rank, d))
    return X, signal(rng, X)


def in_the_span(rng, n, d):
    X = rng.standard_normal((n, d))
    return X, signal(rng, X, noise=0.0)


def one_row(rng, n, d):
    X = rng.standard_normal((1, d)) * rng.choice([1.0, 1.0, 0.0])
    return X, rng.standard_normal(1)


def one_column(rng, n, d):
    X = rng.standard_normal((n, 1))
    return X, signal(rng, X)


def scaled_x(rng, n, d):
    power = int(rng.integers(-300, 300))
    return np.ldexp(rng.standard_normal((n, d)), power), rng.standard_normal(n), abs(power) > 200


def scaled_y(rng, n, d):
    X, power = rng.standard_normal((n, d)), int(rng.integers(-300, 300))
    return X, np.ldexp(signal(rng, X), power), abs(power) > 200


def scaled_columns(rng, n, d):
    most = int(rng.choice([20, 60, 200, 290]))
    powers = rng.integers(-most, most + 1, d)
    X = np.ldexp(rng.standard_normal((n, d)), powers)
    return X, rng.standard_normal(n) * 2.0 ** int(rng.integers(-most, most)), most > 100


def far_means(rng, n, d):
    means = 10.0 ** rng.uniform(0, 12.5, d) * rng.choice([-1.0, 1.0, 0.0], d)
    Z = rng.standard_normal((n, d))
    return Z + means, signal(rng, Z) + rng.choice([0.0, 1.0, 1e6])


def far_twins(rng, n, d):
    """Columns that hardly differ, less their means, which are far away."""
    Z = rng.standard_normal((n, max(1, d // 4)))[:, rng.integers(0, max(1, d // 4), d)]
    Z = Z + 10.0 ** rng.uniform(-9, -3) * rng.standard_normal((n, d))
    return Z + 10.0 ** rng.uniform(0, 12, d) * rng.choice([-1.0, 1.0, 0.0], d), signal(rng, Z)


def heavy_tails(rng, n, d):
    X = rng.standard_t(4, (n, d))
    return X, rng.standard_t(4, n)


def cauchy(rng, n, d):
    X = rng.standard_cauchy((n, d))
    return X, X[:, 0] + rng.standard_cauchy(n)


def binary(rng, n, d):
    X = (rng.random((n, d)) < rng.uniform(0.05, 0.6)).astype(float)
    return X, (rng.random(n) < 0.5).astype(float)


def counts(rng, n, d):
    X = rng.poisson(rng.uniform(0.05, 2.0), (n, d)).astype(float)
    return X, rng.poisson(2.0, n).astype(float)


def exploding(rng, n, d):
    """Predictions of a count that overflow exp, and separable classes."""
    X = rng.standard_normal((n, d)) * rng.choice([10.0, 100.0, 1000.0])
    return X, X[:, int(rng.integers(d))] + rng.choice([0.0, 1e5])


def one_spike(rng, n, d):
    X = rng.standard_normal((n, d))
    X[int(rng.integers(n))] *= 10.0 ** rng.uniform(3, 12)
    return X, signal(rng, X)


FAMILIES = {
    f.__name__: f
    for f in (
        *(plain, zero_columns, all_zero, duplicates, negated, collinear, near_collinear),
        *(constant_columns, constant_y, zero_y, ties, orthogonal, low_rank, in_the_span, one_row),
        *(one_column, scaled_x, scaled_y, scaled_columns, far_means, far_twins, heavy_tails, cauchy, binary),
        *(counts, exploding, one_spike),
    )
}


def draw_table(rng, family):
    """X and y of a family, its y an array of float64."""
    X, y, *extreme = FAMILIES[family](rng, *draw_shape(rng))
    return Table(np.ascontiguousarray(X), np.asarray(y, float), family, extreme=bool(extreme and extreme[0]))


# -- sources: ways to hand X over; each sets `given`, and X where values change ----------------------------


def c_order(rng, table):
    table.given = table.X.copy()


def f_order(rng, table):
    table.given = np.asfortranarray(table.X)


def strided(rng, table):
    n, d = table.X.shape
    wide = rng.standard_normal((2 * n, 3 * d))
    view = wide[::2, ::3]
    view[...] = table.X
    table.given = view[::-1][::-1] if rng.random() < 0.5 else view


def read_only(rng, table):
    table.given = table.X.copy()
    table.given.flags.writeable = False


def float32(rng, table):
    with np.errstate(all="ignore"):
        given = table.X.astype(np.float32)
    if not np.isfinite(given).all():  # beyond its range: the largest that fits
        given = np.ldexp(table.X, -int(np.frexp(np.abs(table.X).max())[1])).astype(np.float32)
    table.given, table.X = given, given.astype(np.float64)
    if rng.random() < 0.5:
        table.given = np.asfortranarray(given)


def csr(rng, table):
    table.given = sp.csr_array(table.X)


def csc(rng, table):
    table.given = sp.csc_matrix(table.X)


def csr32(rng, table):
    float32(rng, table)
    table.given = sp.csr_array(np.ascontiguousarray(table.given))


def coo(rng, table):
    """Each entry stored twice, as halves."""
    whole = sp.coo_array(table.X / 2)
    twice = [np.concatenate([part, part]) for part in (whole.data, whole.row, whole.col)]
    given = sp.coo_array((twice[0], (twice[1], twice[2])), shape=table.X.shape)
    table.given, table.X = given, given.toarray()


def operator(rng, table):
    X = table.X
    table.given = LinearOperator(X.shape, matvec=lambda v: X @ v, rmatvec=lambda v: X.T @ v, dtype=float)


def design(rng, table):
    """A design; `used_again` was used before by other runs."""
    table.given = skpursuit.as_design(table.X.copy(order=rng.choice(["C", "F"])))


def used_again(rng, table):
    design(rng, table)
    before = Table(table.X, table.y)
    for selector in rng.choice(["exact", "gram", "certified", "halving", "greedy", "quantized"], 2):
        try:
            y = np.nan_to_num(before.y) + rng.standard_normal(len(before.y))
            skpursuit.minimize(table.given, y, skpursuit.OMP(1), str(selector), random_state=0)
        except ValueError:  # the case itself will tell
            pass


DENSE = (c_order, f_order, strided, read_only, float32, design, used_again)
SPARSE = (csr, csc, csr32, coo)
SOURCES = {f.__name__: f for f in (*DENSE, *SPARSE, operator)}
ARRAYS = {f.__name__: f for f in (c_order, f_order, strided, read_only, float32, *SPARSE)}


def hand_over(rng, table, sources=SOURCES):
    """Choose the form in which X is handed over."""
    table.source = str(rng.choice(list(sources)))
    sources[table.source](rng, table)
    return table


def draw_weights(rng, table):
    """Sample weights, none in two of three cases; often with zeros, on rows whose entries are wild."""
    n = len(table.y)
    if rng.random() < 0.66:
        return
    weights = rng.choice([1.0, 2.0, 0.25], n) if rng.random() < 0.5 else rng.random(n) + 0.01
    if rng.random() < 0.6:
        weights[rng.random(n) < 0.3] = 0.0
    weights[int(rng.integers(n))] = 1.0
    table.weights = weights


def spoil_unweighted_rows(rng, table):
    """Rows of weight zero must not matter: give them large entries (before X is handed over)."""
    if table.weights is not None and not table.extreme:
        table.X[table.weights == 0] *= float(rng.choice([1.0, 1e3, 1e6]))
