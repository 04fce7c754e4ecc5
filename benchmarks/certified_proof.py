"""Certified selections against long double: python benchmarks/certified_proof.py [selections [form ...]].

Hostile families of X (those of hostile_cases, and a few more) meet residuals of a pursuit's kind, one column
of X or a spike. For every pair the intervals of all columns, by single estimates and by followed paths, must
hold the product in long double, and the columns they leave must hold all that attain its maximum. Every form
of the kernel is forced in turn.
"""

import sys
import time
from collections.abc import Iterator

import numpy as np
from hostile_cases.tables import ARRAYS, OTHERS, SIGNALS

from skpursuit.data.codes.coded_tile import CodedTile
from skpursuit.kernels import codes as products

Matrix = np.ndarray
REAL = np.longdouble
FAMILIES = {
    **SIGNALS,
    **OTHERS,
    "correlated": lambda rng, n, d: rng.standard_normal((n, d)) + 3.0 * rng.standard_normal((n, 1)),
    "offsets": lambda rng, n, d: rng.standard_normal((n, d)) + 10.0 ** rng.uniform(0, 6, d),
    "drifts": lambda rng, n, d: rng.standard_normal((n, d)).cumsum(axis=0),
    "outliers": lambda rng, n, d: rng.standard_normal((n, d)) * 1e8 ** (rng.random((n, d)) < 0.003),
    "sizes": lambda rng, n, d: rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-12, 12, d),
    "few rows count": lambda rng, n, d: rng.standard_normal((n, d)) * (rng.random((n, 1)) < 0.02),
}
LAYOUTS = [ARRAYS[name] for name in ("c_order", "f_order", "strided", "float32")]


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
    drawn = FAMILIES[family](rng, n, d)
    X = np.asarray(drawn[0] if family in OTHERS else drawn, float)
    X = LAYOUTS[seed % len(LAYOUTS)](rng, X)
    tile, R = CodedTile.build(X, form, fine=True), residuals(rng, X, count)
    true, half = R.astype(REAL) @ X.astype(REAL), count // 2
    for fine in (False, True):
        g, bound = tile.estimate(R.T, fine)
        yield len(R), *wrong(g.T, bound.T, true)
        first = tile.path_products(R[:half], fine=fine)
        second = tile.path_products(R[half:], first.represented(-1), fine=fine)
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
