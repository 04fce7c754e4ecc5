"""Certified selections against long double: python benchmarks/certified_proof.py [selections [form ...]].

Hostile families of X (heavy tails, copies and near copies, drifts, offsets, few values, outliers, sizes far
apart) meet residuals of a pursuit's kind, one column of X or a spike. For every pair the intervals of all
columns, by single estimates and by followed paths, must hold the product in long double, and the columns
they leave must hold all that attain its maximum. Every form of the kernel is forced in turn.
"""

import sys
import time
from collections.abc import Callable, Iterator

import numpy as np
from common import ENTRIES

from skpursuit.data.codes.coded_tile import CodedTile
from skpursuit.kernels import code_products as products

Matrix = np.ndarray
REAL = np.longdouble


def copies(rng: np.random.Generator, n: int, d: int) -> Matrix:
    """Threes of columns: the first two are equal, the last is nearly."""
    X = rng.standard_normal((n, d))[:, np.arange(d) // 3 * 3]
    X[:, 2::3] += 1e-7 * rng.standard_normal((n, len(range(2, d, 3))))
    return X


def outliers(rng: np.random.Generator, n: int, d: int) -> Matrix:
    X = rng.standard_normal((n, d))
    X[rng.integers(0, n, 4 + n // 100), rng.integers(0, d, 4 + n // 100)] = 10.0 ** rng.uniform(1, 8)
    return X


FAMILIES: dict[str, Callable[[np.random.Generator, int, int], Matrix]] = {
    "gaussian": lambda rng, n, d: rng.standard_normal((n, d)),
    **{name: ENTRIES[name] for name in ("t(4)", "cauchy", "correlated")},
    "binary": lambda rng, n, d: (rng.random((n, d)) < rng.uniform(0.02, 0.5, d)).astype(float),
    "copies": copies,
    "offsets": lambda rng, n, d: rng.standard_normal((n, d)) + 10.0 ** rng.uniform(0, 6, d),
    "drifts": lambda rng, n, d: rng.standard_normal((n, d)).cumsum(axis=0),
    "outliers": outliers,
    "sizes": lambda rng, n, d: rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-12, 12, d),
    "few rows count": lambda rng, n, d: rng.standard_normal((n, d)) * (rng.random((n, 1)) < 0.02),
}
LAYOUTS: list[Callable[[Matrix], Matrix]] = [
    np.ascontiguousarray,
    np.asfortranarray,
    lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    lambda X: X.astype(np.float32),
]


def residuals(rng: np.random.Generator, X: Matrix, count: int) -> Matrix:
    """Rows: a path like that of a pursuit, single columns of X, noise, spikes and sparse vectors."""
    n, d = X.shape
    some = X[:, rng.integers(0, d, 6)].astype(float)
    some = some / np.where(np.abs(some).max(axis=0) > 0, np.abs(some).max(axis=0), 1.0)
    path = [
        some[:, : 6 - k % 6] @ rng.standard_normal(6 - k % 6) + 0.3 * rng.standard_normal(n)
        for k in range(count - 4)
    ]
    spike = np.zeros(n)
    spike[rng.integers(n)] = 3.0
    rest = [some[:, 0], spike, rng.standard_cauchy(n), rng.standard_normal(n) * (rng.random(n) < 0.01)]
    return np.array(path + rest)


def wrong(g: Matrix, bound: Matrix, true: Matrix) -> tuple[int, int]:
    """Intervals that miss the product, and selections (rows) whose winner is not among the candidates."""
    missed = ~(np.abs(g - true) <= bound)
    top = np.abs(g) + bound
    least = (np.abs(g) - bound).max(axis=1, keepdims=True)
    winners = np.abs(true) == np.abs(true).max(axis=1, keepdims=True)
    return int(missed.sum()), int((winners & (top < least)).any(axis=1).sum())


def check(form: str, family: str, seed: int, count: int = 24) -> Iterator[tuple[int, int, int]]:
    """(selections, intervals that missed, wrong selections) of one X."""
    rng = np.random.default_rng([seed, list(FAMILIES).index(family)])
    n, d = int(rng.integers(1, 700)), int(rng.integers(2, 60))
    if seed % 8 == 0:
        n += 2048  # scales are predicted
    X = LAYOUTS[seed % len(LAYOUTS)](FAMILIES[family](rng, n, d))
    tile, R = CodedTile.build(X, form, fine=True), residuals(rng, X, count)
    true, half = R.astype(REAL) @ X.astype(REAL), count // 2
    for fine in (False, True):
        g, bound = tile.estimate(R.T, fine)
        yield len(R), *wrong(g.T, bound.T, true)
        first = tile.start_path_product(R[:half], fine=fine)()
        second = tile.start_path_product(R[half:], first.represented(-1), fine=fine)()
        for trail, some in ((first, slice(0, half)), (second, slice(half, None))):
            bound = trail.vector_errors @ tile.column_factors.T + trail.norms @ tile.block_errors[int(fine)]
            yield len(trail.g), *wrong(trail.g, bound * (1 + 2.0**-40), true[some])


def main() -> None:
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
    for form in sys.argv[2:] or products.available_isas():
        start, seed, totals = time.perf_counter(), 0, np.zeros(3, int)
        while totals[0] < wanted:
            for family in FAMILIES:
                for found in check(form, family, seed):
                    totals += found
            seed += 1
        took = time.perf_counter() - start
        print(
            f"{form}: {totals[0]} selections, {totals[1]} intervals missed, {totals[2]} wrong, {took:.0f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
