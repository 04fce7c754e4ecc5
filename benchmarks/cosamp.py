"""CoSaMP by selector: selection, whole fit and residual against exact selection and against plain NumPy.

    python benchmarks/cosamp.py [n d k iterations seeds [selector ...]]

The same number of iterations for all, one process, one thread. "prepared" is a design whose norms and twin
are there already, as on the second y; "fresh" pays for them. Gathered columns are forgotten between fits.
"""

import cProfile
import pstats
import sys
import time
from dataclasses import dataclass, field, replace

import numpy as np
from timing import best_times  # limits BLAS and the kernels to one thread

from skpursuit import Budget, CoSaMP, Greedy, SuccessiveHalving, as_design, datasets, minimize
from skpursuit.data.kept import ColumnCache
from skpursuit.selectors import Selector, as_selector

n, d, k, iterations, seeds = [int(a) for a in sys.argv[1:6]] or [5000, 10000, 50, 4, 3]
CHOICES = {"halving 0.1": SuccessiveHalving(budget=0.1), "greedy 15%": Greedy(stop=Budget(0.15))}
names = sys.argv[6:] or ["halving", "halving 0.1", "greedy 15%", "certified"]


@dataclass(frozen=True)
class Timed(Selector):
    """Another selector, and the CPU seconds of its answers."""

    inner: Selector
    seconds: list[float] = field(default_factory=list)

    def find(self, design, query):
        return self.inner.find(design, query)

    def bind(self, design, expect):
        bound = self.inner.bind(design, expect)
        bound.selector = replace(self, inner=bound.selector)
        return bound

    def answer(self, bound, query, memory):
        began = time.process_time()
        answer = self.inner.answer(bound, query, memory)
        self.seconds.append(time.process_time() - began)
        return answer


def plain(X, y):
    """CoSaMP as a careful NumPy user would write it."""
    w, z = np.zeros(d), np.zeros(n)
    for _ in range(iterations):
        g = np.abs(X.T @ (z - y))
        merged = np.union1d(np.argpartition(g, d - 2 * k)[d - 2 * k :], np.flatnonzero(w))
        A = X[:, merged]
        b = np.linalg.solve(A.T @ A, A.T @ y)
        keep = np.argpartition(np.abs(b), len(b) - k)[len(b) - k :]
        w = np.zeros(d)
        w[merged[keep]] = b[keep]
        z = A[:, keep] @ b[keep]
    return w


def fit(design, y, selector):
    timed = Timed(as_selector(CHOICES.get(selector, selector)))
    if hasattr(design, "column_cache"):
        design.column_cache = ColumnCache()
    began = time.process_time()  # after the columns of the last fit were given back
    result = minimize(design, y, CoSaMP(k, max_iter=iterations), timed, random_state=0)
    return result, sum(timed.seconds), time.process_time() - began


figures = {name: [] for name in [*names, "NumPy"]}
for seed in range(seeds):
    X, y, _ = datasets.make_sparse_signal(n, d, k, random_state=seed)
    D = as_design(X)
    selections = {name: np.inf for name in ["exact", *names]}
    residuals = {"NumPy": np.sum((X @ plain(X, y) - y) ** 2)}

    wholes = dict.fromkeys(selections, np.inf)

    def prepared(name, D=D, y=y, selections=selections, residuals=residuals, wholes=wholes):
        result, seconds, whole = fit(D, y, name)
        selections[name] = min(selections[name], seconds / result.n_iter)
        wholes[name] = min(wholes[name], whole)
        residuals[name] = 2 * result.objective

    fits = {("NumPy", "prepared"): lambda X=X, y=y: plain(X, y)}
    for name in ["exact", *names]:
        prepared(name)  # norms, twin, compiled kernels
        fits[name, "prepared"] = lambda name=name: prepared(name)
        fits[name, "fresh"] = lambda name=name, X=X, y=y: fit(X, y, name)
    times = best_times(fits, 4)
    times |= {(name, "prepared"): seconds for name, seconds in wholes.items()}
    times["NumPy", "fresh"] = times["NumPy", "prepared"]
    selections["NumPy"] = selections["exact"]
    for name in figures:
        figures[name].append((
            selections["exact"] / selections[name],
            times["exact", "prepared"] / times[name, "prepared"],
            times["NumPy", "prepared"] / times[name, "prepared"],
            times["exact", "fresh"] / times[name, "fresh"],
            residuals[name] / residuals["exact"],
        ))  # fmt: skip
print(f"CoSaMP n={n} d={d} k={k} SNR 3, {iterations} iterations, float64, one thread, {seeds} seeds")
print("times of exact (or NumPy) divided by ours, best of 4, mean over seeds")
print(f"{'selector':<12}{'selection':>10}{'fit':>8}{'fit/NumPy':>11}{'fresh fit':>11}{'residual':>10}")
for name, rows in figures.items():
    selection, whole, numpy, fresh, residual = np.mean(rows, axis=0)
    print(f"{name:<12}{selection:>9.2f}x{whole:>7.2f}x{numpy:>10.2f}x{fresh:>10.2f}x{residual:>10.4f}")
for name in ["exact", names[0]]:
    profile = cProfile.Profile()
    profile.runcall(prepared, name)
    rows = sorted(pstats.Stats(profile).stats.items(), key=lambda item: -item[1][2])
    total = sum(row[2] for _, row in rows)
    shares = (f"{key[2]} ({key[0].split('/')[-1]}) {100 * row[2] / total:.0f}%" for key, row in rows[:6])
    print(f"what bounds {name}: {', '.join(shares)}")
