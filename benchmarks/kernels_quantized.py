"""Quantised codes against BLAS: build and product, and orthogonal matching pursuits built on them.

    OPENBLAS_NUM_THREADS=1 python benchmarks/kernels_quantized.py [--n 5000] [--d 10000] [--k 50] [--float32]

All times are CPU seconds on one thread (so that other processes disturb less), and ratios to work done in the
same process, interleaved: products to one BLAS gemv, fits to a pursuit
that computes X^T r by BLAS and shares the refit. A fit "with preparation" makes its codes from X first.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from skpursuit.data.panels import PanelTile
from skpursuit.data.quantized import QuantizedTile
from skpursuit.datasets import make_sparse_signal
from skpursuit.kernels.columns import gather_columns

Fitted = tuple[list[int], dict[str, float]]  # the columns, and figures of the run


class Columns:
    """Columns of X gathered once each, as rows of a growing array."""

    def __init__(self, X: np.ndarray, dtype: type = np.float64) -> None:
        self.X = X
        self.place = np.full(X.shape[1], -1)
        self.held = np.empty((64, X.shape[0]), dtype)
        self.count = 0

    def get(self, cols: np.ndarray) -> np.ndarray:
        """Rows of `held` of these columns."""
        new = cols[self.place[cols] < 0]
        if new.size:
            while self.count + new.size > len(self.held):
                self.held = np.vstack([self.held, np.empty_like(self.held)])
            gather_columns(self.X, new, self.held[self.count : self.count + new.size])
            self.place[new] = np.arange(self.count, self.count + new.size)
            self.count += new.size
        return self.place[cols]


class Refit:
    """Orthonormal basis of the chosen columns and the residual of y on it."""

    def __init__(self, y: np.ndarray, k: int) -> None:
        self.basis = np.empty((k, y.size))
        self.r = y.astype(float)
        self.count = 0

    def add(self, x: np.ndarray) -> None:
        basis = self.basis[: self.count]
        v = x - (basis @ x) @ basis
        if v @ v < 0.25 * (x @ x):  # cancellation: once more
            v -= (basis @ v) @ basis
        v /= np.sqrt(v @ v)
        self.basis[self.count] = v
        self.count += 1
        self.r -= (v @ self.r) * v


def exact(X: np.ndarray, y: np.ndarray, k: int, _codes: Any = None) -> Fitted:
    fit, chosen = Refit(y, k), []
    for _ in range(k):
        g = np.abs(X.T @ fit.r.astype(X.dtype, copy=False))
        g[chosen] = -1.0
        chosen.append(int(g.argmax()))
        fit.add(X[:, chosen[-1]].astype(float))
    return chosen, {}


def certified(X: np.ndarray, y: np.ndarray, k: int, codes: Any) -> Fitted:
    fit, chosen, columns = Refit(y, k), [], Columns(X)
    survivors, recomputed, read = [], [], 0
    for _ in range(k):
        g, bound = codes.estimate(fit.r)
        size = np.abs(g, out=g)
        size[chosen] = -np.inf
        cols = np.flatnonzero(size + bound >= (size - bound).max())
        survivors.append(cols.size)
        read += codes.estimate_cost().bytes
        if cols.size > 1 and codes.fine.size:
            g, bound = (part[cols] for part in codes.estimate(fit.r, fine=True))
            size = np.abs(g)
            read += codes.estimate_cost(fine=True).bytes
            cols = cols[size + bound >= (size - bound).max()]
        at = columns.get(cols)
        recomputed.append(cols.size)
        read += cols.size * X.shape[0] * X.itemsize
        best = int(np.abs([columns.held[a] @ fit.r for a in at]).argmax()) if cols.size > 1 else 0
        chosen.append(int(cols[best]))
        fit.add(columns.held[at[best]])
    share = np.mean(survivors) / X.shape[1]
    facts = {"survivors": share, "recomputed a step": np.mean(recomputed), "bytes": read / k / X.nbytes}
    return chosen, facts


def best_of(repeats: int, **tasks: Callable[[], Any]) -> tuple[dict[str, float], dict[str, Any]]:
    """Shortest time and last answer of each task, interleaved, after a warm-up."""
    answers = {name: task() for name, task in tasks.items()}
    times = dict.fromkeys(tasks, np.inf)
    for _ in range(repeats):
        for name, task in tasks.items():
            start = time.process_time()
            answers[name] = task()
            times[name] = min(times[name], time.process_time() - start)
    return times, answers


def products(X: np.ndarray, repeats: int) -> None:
    rng = np.random.default_rng(1)
    r, few = rng.standard_normal(X.shape[0]), rng.permutation(X.shape[1])[:100]
    codes, panels = QuantizedTile.build(X), PanelTile.build(X)
    by_columns = np.asfortranarray(X)
    path = r - np.cumsum(np.random.default_rng(1).standard_normal((51, len(r))) * 0.02, axis=0)
    times, _ = best_of(
        repeats,
        gemv=lambda: X.T @ r.astype(X.dtype, copy=False),
        panels_build=lambda: PanelTile.build(X),
        panels_build_f_order=lambda: PanelTile.build(by_columns),
        panels_estimate=lambda: panels.estimate(r),
        panels_following_51=lambda: panels.following(path)(),
        panels_build_fine=lambda: PanelTile.build(X, fine=True),
        codes_build=lambda: QuantizedTile.build(X),
        codes_estimate_100=lambda: codes.estimate(r, cols=few),
    )
    gemv = times.pop("gemv")
    print(f"one gemv {1e3 * gemv:.1f} ms; codes {codes.nbytes / X.nbytes:.3f} of X")
    for name, seconds in times.items():
        print(f"  {name:24s} {seconds / gemv:7.3f} gemv  {1e3 * seconds:8.2f} ms")


def fits(X: np.ndarray, y: np.ndarray, k: int, repeats: int) -> None:
    codes, fine = PanelTile.build(X), PanelTile.build(X, fine=True)
    times, answers = best_of(
        repeats,
        exact=lambda: exact(X, y, k),
        certified=lambda: certified(X, y, k, PanelTile.build(X)),
        certified_prepared=lambda: certified(X, y, k, codes),
        certified_fine=lambda: certified(X, y, k, PanelTile.build(X, fine=True)),
        certified_fine_prepared=lambda: certified(X, y, k, fine),
    )
    truth = answers["exact"][0]
    print(f"{k} atoms, exact by BLAS {1e3 * times['exact']:.0f} ms")
    for name in list(times)[1:]:
        atoms, facts = answers[name]
        same = "identical sequence" if atoms == truth else f"{len(set(atoms) & set(truth))}/{k} atoms"
        facts = ", ".join(f"{key} {value:.3g}" for key, value in facts.items())
        ratio = times["exact"] / times[name]
        print(f"  {name:24s} {ratio:6.2f} x  {1e3 * times[name]:7.1f} ms  {same}; {facts}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--n", type=int, default=5000)
    parser.add_argument("--d", type=int, default=10000)
    parser.add_argument("--k", type=int, nargs="+", default=[50])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--float32", action="store_true")
    args = parser.parse_args()
    dtype = np.float32 if args.float32 else np.float64
    X, y, _ = make_sparse_signal(args.n, args.d, max(args.k), snr=3.0, dtype=dtype, random_state=args.seed)
    print(f"n={args.n} d={args.d} {X.dtype} {'C' if X.flags.c_contiguous else 'F'} order")
    products(X, 2 * args.repeats)
    for k in args.k:
        X, y, _ = make_sparse_signal(args.n, args.d, k, snr=3.0, dtype=dtype, random_state=args.seed)
        fits(X, y, k, args.repeats)


if __name__ == "__main__":
    main()
