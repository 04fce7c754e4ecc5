"""Row and column kernels against BLAS, and what they make of a whole orthogonal matching pursuit.

    OPENBLAS_NUM_THREADS=1 taskset -c 1 python benchmarks/kernels_rows.py [--seeds 5] [--small]

Prints ratios: above 1 the kernel (or the fit) is faster than BLAS (or than the fit with BLAS), measured in
turns in one process, best of several. The fits are prototypes: what a selector built on the kernels can
reach. Greedy looks at the leader every 64 rows, or every 16. Halving ends with exact scores of 1/16 of the
columns, where the memory layout decides; four ways:

    pick   single entries of the C-ordered X
    keep   columns are copied to contiguous memory when first needed, and stay there
    cold   a transposed copy of X is made first, its time included
    warm   the transposed copy is there already, as on a design that is used again (1/8: it ends earlier)
"""

import argparse
import math
import time
from collections.abc import Callable
from itertools import pairwise

import numpy as np

from skpursuit.datasets import make_sparse_signal
from skpursuit.kernels import columns, rows
from skpursuit.numerics import threads
from skpursuit.problem.score import top_set

K = 50


def best(*calls: Callable[[], object], times: int = 5) -> list[float]:
    """Milliseconds of each call, best of several, in turns."""
    seconds = [math.inf] * len(calls)
    for _ in range(times):
        for i, call in enumerate(calls):
            start = time.perf_counter()
            call()
            seconds[i] = min(seconds[i], time.perf_counter() - start)
    return [1e3 * s for s in seconds]


def pursue(X: np.ndarray, y: np.ndarray, select: Callable) -> list[int]:
    """OMP by Gram-Schmidt: the same refit whatever selects."""
    Q, r, support = np.empty((K, X.shape[0])), y.copy(), []
    for k in range(K):
        j = select(r, np.array(support, dtype=int))
        x = X[:, j].copy()
        x -= (Q[:k] @ x) @ Q[:k]
        Q[k] = x / np.sqrt(x @ x)
        r -= (Q[k] @ r) * Q[k]
        support.append(j)
    return support


def best_of(sums: np.ndarray, support: np.ndarray) -> int:
    """The column with the largest |sum| off the support."""
    scores = np.abs(sums)
    scores[support] = -np.inf
    return int(scores.argmax())


class Exact:
    def __init__(self, X: np.ndarray) -> None:
        self.X, self.read = X, 0

    def __call__(self, r: np.ndarray, support: np.ndarray) -> int:
        self.read += self.X.size
        return best_of(self.X.T @ r, support)


class Greedy:
    """Rows by decreasing energy until the best column has stayed the same for a share of the rows."""

    def __init__(self, X: np.ndarray, share: float, block: int = 64) -> None:
        self.X, self.read = X, 0
        self.patience = math.ceil(share * X.shape[0])
        self.block = min(block, self.patience)
        self.norms = np.sqrt(np.vecdot(X, X))

    def __call__(self, r: np.ndarray, support: np.ndarray) -> int:
        n, d = self.X.shape
        order = np.argsort(-np.abs(r) * self.norms)
        weights, sums = r[order], np.zeros(d)
        leader, since = -1, 0
        for a in range(0, n, self.block):
            b = min(a + self.block, n)
            rows.accumulate_dense(self.X, order[a:b], weights[a:b], sums)
            now = best_of(sums, support)
            if now != leader:
                leader, since = now, b
            elif b - since >= self.patience:
                break
        self.read += b * d
        return leader


class Halving:
    """Successive halving in energy order, budget 0.2, exact columns once few survive."""

    def __init__(self, X: np.ndarray, finish: Callable, share: float = 1 / 16) -> None:
        self.X, self.read, self.finish, self.share = X, 0, finish, share
        self.norms = np.sqrt(np.vecdot(X, X))

    def __call__(self, r: np.ndarray, support: np.ndarray) -> int:
        n, d = self.X.shape
        plan = self.plan(d - support.size, 0.2 * n * d)
        energy = np.abs(r) * self.norms
        ends = np.cumsum([0, *plan])
        order = np.argpartition(-energy, ends[1:]) if ends[-1] < n else np.argsort(-energy)
        alive, sums = np.delete(np.arange(d), support), np.zeros(d)
        for a, b in pairwise(ends):
            some = np.sort(order[a:b])
            rows.accumulate_dense(self.X, some, r[some], sums)
            alive = alive[top_set(np.abs(sums[alive]), -(-alive.size // 2))]
        self.read += ends[-1] * d + n * alive.size
        return int(alive[np.abs(self.finish(r, alive)).argmax()])

    def plan(self, arms: int, budget: float) -> list[int]:
        rounds, left, plan = max(1, math.ceil(math.log2(arms))), arms, []
        while left > math.ceil(arms * self.share):
            plan.append(max(1, int(budget / (left * rounds))))
            left = -(-left // 2)
        return plan


def pick(X: np.ndarray) -> Callable:
    every = np.arange(X.shape[0])

    def scores(r: np.ndarray, cols: np.ndarray) -> np.ndarray:
        out = np.zeros(cols.size)
        columns.accumulate_dense_columns(X, every, r, cols, out)
        return out

    return scores


def dots(store: np.ndarray, r: np.ndarray, places: np.ndarray) -> np.ndarray:
    out = np.zeros((1, places.size))
    args = (*rows.flat_rows(store), r[None], places, out)
    threads.over_ranges(columns.dot_columns, places.size, 8, r.size * places.size, args)
    return out[0]


def keep(X: np.ndarray) -> Callable:
    store, place, held = np.empty((X.shape[1], X.shape[0])), np.full(X.shape[1], -1), [0]

    def scores(r: np.ndarray, cols: np.ndarray) -> np.ndarray:
        new = cols[place[cols] < 0]
        place[new] = np.arange(held[0], held[0] + new.size)
        columns.gather_columns(X, new, store[held[0] : held[0] + new.size])
        held[0] += new.size
        return dots(store, r, place[cols])

    return scores


def warm(X: np.ndarray) -> Callable:
    tall = columns.transposed(X)
    return lambda r, cols: dots(tall, r, cols)


def fits(n: int, d: int, seeds: int) -> None:
    ways = {
        "greedy 2%": lambda X: Greedy(X, 0.02),
        "greedy 5%": lambda X: Greedy(X, 0.05),
        "greedy 2%, 16": lambda X: Greedy(X, 0.02, block=16),
        "greedy 5%, 16": lambda X: Greedy(X, 0.05, block=16),
        "halving, pick": lambda X: Halving(X, pick(X)),
        "halving, keep": lambda X: Halving(X, keep(X)),
        "halving, cold": lambda X: Halving(X, warm(X)),
        "halving, warm": lambda X: Halving(X, warm(X)),
        "1/8, warm": lambda X: Halving(X, warm(X), 1 / 8),
    }
    table = {name: [] for name in ways}
    for seed in range(seeds + 1):  # the first is not counted: it compiles, and touches the memory once
        X, y, _ = make_sparse_signal(n, d, K, snr=3.0, random_state=seed)
        for name, way in ways.items():
            ratios, exact = [], []
            for _ in range(2):
                start = time.perf_counter()
                exact = pursue(X, y, Exact(X))
                middle = time.perf_counter()
                select = way(X)
                ready = time.perf_counter() if name.endswith("warm") else middle
                found = pursue(X, y, select)
                ratios.append((middle - start, time.perf_counter() - ready))
            base, took = np.min(ratios, axis=0)
            if seed:
                same = len(set(found) & set(exact)) / K
                table[name].append((base / took, same, select.read / (K * n * d), 1e3 * took))
            del select
    print(f"\nOMP, {K} atoms, {n} x {d}, mean of {seeds} seeds")
    print(f"{'':16}{'x BLAS':>8}{'same atoms':>12}{'share read':>12}{'ms':>8}")
    for name, results in table.items():
        ratio, same, read, ms = np.mean(results, axis=0)
        print(f"{name:16}{ratio:8.2f}{same:12.1%}{read:12.3f}{ms:8.0f}")


def kernels(n: int, d: int, dtype: type) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d), dtype=dtype)
    r = rng.standard_normal(n)
    low, order, cols = r.astype(dtype), rng.permutation(n), np.sort(rng.permutation(d)[: d // 16])
    tall = columns.transposed(X)
    sums, some = np.zeros(d), np.zeros(cols.size)
    weights = r[order]
    copy = np.empty((cols.size, n), dtype)
    names = ["all rows, random order", "1/16 of columns, C order", "1/16 of columns, F order"]
    names += ["copy 1/16 of columns", "copy all (transpose)"]
    blas, *times = best(
        lambda: X.T @ low,
        lambda: rows.accumulate_dense(X, order, weights, sums),
        lambda: columns.accumulate_dense_columns(X, order, weights, cols, some),
        lambda: columns.accumulate_dense_columns(tall.T, order, weights, cols, some),
        lambda: columns.gather_columns(X, cols, copy),
        lambda: columns.gather_columns(X, np.arange(d), tall),
    )
    print(f"\n{n} x {d} {np.dtype(dtype).name}: X.T @ r by BLAS {blas:.2f} ms")
    for name, ms in zip(names, times):
        print(f"  {name:28}{ms:8.2f} ms {blas / ms:8.2f} x BLAS")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--small", action="store_true", help="2000 x 4000 only")
    options = parser.parse_args()
    for n, d in [(2000, 4000)] if options.small else [(5000, 10000), (2000, 4000)]:
        for dtype in (np.float64, np.float32):
            kernels(n, d, dtype)
        fits(n, d, options.seeds)


if __name__ == "__main__":
    main()
