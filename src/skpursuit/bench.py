"""A quick check of the speed on this machine: how fast X is read, and what selection makes of it."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from threadpoolctl import threadpool_limits

from skpursuit.demo import Line, fit_lines
from skpursuit.design import as_design
from skpursuit.selectors.greedy import empty_sums

QUICK = ("exact", "auto", "certified", "sketch", "halving", "greedy")


def rates(n: int, d: int, rounds: int = 7) -> dict[str, float]:
    """Bytes of X read in a second: by BLAS, by the row kernel, and by that on a fifth of the rows."""
    rng = np.random.default_rng(0)
    X, r = rng.standard_normal((n, d)), rng.standard_normal(n)
    design = as_design(X)
    rows = np.arange(n, dtype=np.intp)
    some = np.sort(rng.permutation(n)[: n // 5]).astype(np.intp)
    sums = empty_sums(design, r)
    ways: dict[str, tuple[Callable[[], object], int]] = {
        "X^T r by BLAS": (lambda: design.correlate(r), X.nbytes),
        "rows accumulated, all": (lambda: design.accumulate(rows, r, sums), X.nbytes),
        "rows accumulated, a random fifth": (
            lambda: design.accumulate(some, r[some], sums),
            len(some) * d * X.itemsize,
        ),
    }
    best = dict.fromkeys(ways, np.inf)
    with threadpool_limits(1):
        for _ in range(rounds):
            for name, (work, _) in ways.items():
                began = time.perf_counter()
                work()
                best[name] = min(best[name], time.perf_counter() - began)
    return {name: size / best[name] for name, (_, size) in ways.items()}


def pursuits(n: int, d: int, k: int) -> list[Line]:
    """The pursuit of the demo by the quickest selectors."""
    return fit_lines(n, d, k, names=QUICK)
