"""Degenerate tables (X, y), and the forms in which X is handed over."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator

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


#: Shares of the cases, rows and columns, at least and at most: the last are beyond one block of 512 rows.
SHAPES = (
    *((0.3, (1, 8), (1, 8)), (0.36, (2, 24), (2, 24)), (0.2, (4, 20), (20, 60))),
    *((0.11, (30, 80), (2, 14)), (0.03, (500, 1100), (3, 10))),
)


def draw_shape(rng):
    _, rows, columns = SHAPES[rng.choice(len(SHAPES), p=[share for share, *_ in SHAPES])]
    return int(rng.integers(*rows, endpoint=True)), int(rng.integers(*columns, endpoint=True))


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


# -- families ----------------------------------------------------------------------------------------------


def normal(rng, n, d):
    return rng.standard_normal((n, d))


def collinear(rng, n, d):
    """Sums and differences of a few columns of small integers: exactly dependent."""
    few = rng.integers(-9, 10, (n, max(1, d // 3))).astype(float)
    return few @ rng.integers(-1, 2, (few.shape[1], d))


def near_collinear(rng, n, d):
    X = normal(rng, n, max(1, d // 3)) @ normal(rng, max(1, d // 3), d)
    return X + 10.0 ** rng.uniform(-16, -4) * normal(rng, n, d), signal(rng, X)


def constant_columns(rng, n, d):
    X = normal(rng, n, d)
    X[:, rng.random(d) < 0.5] = rng.choice([1.0, 0.1, -3.0, 1e6 + 0.1])
    return X


def low_rank(rng, n, d):
    rank = int(rng.integers(1, max(2, min(n, d) // 2)))
    return normal(rng, n, rank) @ normal(rng, rank, d)


def one_spike(rng, n, d):
    X = normal(rng, n, d)
    X[int(rng.integers(n))] *= 10.0 ** rng.uniform(3, 12)
    return X


def scaled_x(rng, n, d):
    power = int(rng.integers(-300, 300))
    return np.ldexp(normal(rng, n, d), power), rng.standard_normal(n), abs(power) > 200


def scaled_y(rng, n, d):
    X, power = normal(rng, n, d), int(rng.integers(-300, 300))
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


def exploding(rng, n, d):
    """Predictions of a count that overflow exp, and separable classes."""
    X = normal(rng, n, d) * rng.choice([10.0, 100.0, 1000.0])
    return X, X[:, int(rng.integers(d))] + rng.choice([0.0, 1e5])


def cauchy(rng, n, d):
    X = rng.standard_cauchy((n, d))
    return X, X[:, 0] + rng.standard_cauchy(n)


#: Functions of (rng, n, d) that return X, whose y is a signal ...
SIGNALS = {
    "plain": normal,
    "duplicates": lambda rng, n, d: normal(rng, n, d)[:, rng.integers(0, max(1, d // 2), d)],
    "negated": lambda rng, n, d: SIGNALS["duplicates"](rng, n, d) * rng.choice([-1.0, 1.0], d),
    "one_column": lambda rng, n, d: normal(rng, n, 1),
    **{f.__name__: f for f in (collinear, constant_columns, low_rank, one_spike)},
}
#: ... or X and y and, where they have it, whether scales are extreme.
OTHERS = {
    "zero_columns": lambda rng, n, d: (normal(rng, n, d) * (rng.random(d) < 0.5), rng.standard_normal(n)),
    "all_zero": lambda rng, n, d: (np.zeros((n, d)), rng.standard_normal(n)),
    "constant_y": lambda rng, n, d: (normal(rng, n, d), np.full(n, rng.choice([1, 0.1, -7, 1e9, 1e-9]))),
    "zero_y": lambda rng, n, d: (normal(rng, n, d), np.zeros(n)),
    "ties": lambda rng, n, d: (rng.integers(-1, 2, (n, d)).astype(float), rng.integers(-2, 3, n)),
    "orthogonal": lambda rng, n, d: (
        np.eye(max(n, d))[:n, :d][:, rng.permutation(d)] * rng.choice([1.0, 1.0, 3.0, 2.0**-30]),
        rng.integers(-3, 4, n),
    ),
    "in_the_span": lambda rng, n, d: (X := normal(rng, n, d), signal(rng, X, noise=0.0)),
    "one_row": lambda rng, n, d: (normal(rng, 1, d) * rng.choice([1.0, 1.0, 0.0]), rng.standard_normal(1)),
    "heavy_tails": lambda rng, n, d: (rng.standard_t(4, (n, d)), rng.standard_t(4, n)),
    "binary": lambda rng, n, d: (rng.random((n, d)) < rng.uniform(0.05, 0.6), rng.random(n) < 0.5),
    "counts": lambda rng, n, d: (rng.poisson(rng.uniform(0.05, 2.0), (n, d)), rng.poisson(2.0, n)),
    **{f.__name__: f for f in (near_collinear, scaled_x, scaled_y, scaled_columns, far_means)},
    **{f.__name__: f for f in (far_twins, cauchy, exploding)},
}
FAMILIES = [*SIGNALS, *OTHERS]


def draw_table(rng, family):
    """X and y of a family, arrays of float64."""
    shape = draw_shape(rng)
    if family in SIGNALS:
        X, extreme = SIGNALS[family](rng, *shape), ()
        y = signal(rng, X)
    else:
        X, y, *extreme = OTHERS[family](rng, *shape)
    return Table(np.ascontiguousarray(X, float), np.asarray(y, float), family, extreme=any(extreme))


# -- sources: functions of rng and X that return it in the form in which it is handed over ------------------


def strided(rng, X):
    view = rng.standard_normal((2 * X.shape[0], 3 * X.shape[1]))[::2, ::3]
    view[...] = X
    return view[::-1][::-1] if rng.random() < 0.5 else view


def float32(rng, X):
    with np.errstate(all="ignore"):
        given = X.astype(np.float32)
    if not np.isfinite(given).all():  # beyond its range: the largest that fits
        given = np.ldexp(X, -int(np.frexp(np.abs(X).max())[1])).astype(np.float32)
    return np.asfortranarray(given) if rng.random() < 0.5 else given


def coo(rng, X):
    """Each entry stored twice, as halves."""
    whole = sp.coo_array(X / 2)
    data, row, col = (np.concatenate([part, part]) for part in (whole.data, whole.row, whole.col))
    return sp.coo_array((data, (row, col)), shape=X.shape)


def design(rng, X):
    return skpursuit.as_design(X.copy(order=rng.choice(["C", "F"])))


def used_again(rng, X):
    """A design that other runs have used."""
    given = design(rng, X)
    for selector in rng.choice(["exact", "gram", "certified", "halving", "greedy", "quantized"], 2):
        with contextlib.suppress(ValueError):  # the case itself will tell
            y = rng.standard_normal(len(X))
            skpursuit.minimize(given, y, skpursuit.OMP(1), str(selector), random_state=0)
    return given


ARRAYS = {
    "c_order": lambda rng, X: X.copy(),
    "f_order": lambda rng, X: np.asfortranarray(X),
    "csr": lambda rng, X: sp.csr_array(X),
    "csc": lambda rng, X: sp.csc_matrix(X),
    "csr32": lambda rng, X: sp.csr_array(np.ascontiguousarray(float32(rng, X))),
    "strided": strided,
    "read_only": lambda rng, X: np.broadcast_to(X.copy(), X.shape),
    **{f.__name__: f for f in (float32, coo)},
}
SOURCES = ARRAYS | {
    "design": design,
    "used_again": used_again,
    "operator": lambda rng, X: aslinearoperator(X.copy()),
}


def hand_over(rng, table, sources=SOURCES):
    """Choose the form in which X is handed over, and take over what that changes of its values."""
    table.source = str(rng.choice(list(sources)))
    table.given = sources[table.source](rng, table.X)
    if table.source in ("float32", "csr32", "coo"):
        given = table.given.toarray() if sp.issparse(table.given) else table.given
        table.X = given.astype(float)


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
