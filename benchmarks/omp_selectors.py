"""Whole OMP fits against exact BLAS.

    python benchmarks/omp_selectors.py [n d k seeds [selector ...]]
    OMP_NUM_THREADS=2 python benchmarks/omp_selectors.py ...        # two threads against two-thread BLAS

"fresh" is a fit to an array, preparation included; "prepared" a fit to a design that served the same selector
before, for other targets, so that it has the codes and the norms but not the columns this fit will ask for;
"again" one that served it for the same targets. BALLAST=0: see timing.py.
"scikit-learn" is its orthogonal_mp. CPU seconds on one thread, elapsed seconds on several.
"""

import sys
import time

import numpy as np
from sklearn.linear_model import orthogonal_mp
from timing import THREADS, best_times  # limits BLAS and the kernels to one thread

from skpursuit import OMP, Certified, Greedy, Sketch, Stability, as_design, datasets, minimize

CHOICES = {
    "exact": "exact",
    "halving": "halving",
    "halving-random": "halving-random",
    "greedy 2%": Greedy(stop=Stability(0.02)),
    "greedy 5%": Greedy(stop=Stability(0.05)),
    "uniform": "uniform",
    "importance": "importance",
    "gram": "gram",
    "certified": Certified(),
    "sketch": Sketch(),
}
REPEATS = 3
n, d, k, seeds = [int(a) for a in sys.argv[1:5]] or [5000, 10000, 50, 5]
names = sys.argv[5:] or list(CHOICES)
rival = "scikit-learn" in names
names = [name for name in names if name != "scikit-learn"]
solver = OMP(n_nonzero_coefs=k)
figures = {name: [] for name in names}
rivals = []
for seed in range(seeds):
    X, y, w = datasets.make_sparse_signal(n, d, k, random_state=seed)
    noise = y - X @ w
    others = [X @ np.roll(w, shift + 1) + noise for shift in range(REPEATS)]
    fits, results = {}, {}
    for name in {*names, "exact"}:
        chosen, D = CHOICES[name], as_design(X)
        results[name] = minimize(D, y, solver, chosen, random_state=0)
        left = iter(others)
        fits[name, "again"] = lambda s=chosen, D=D: minimize(D, y, solver, s, random_state=0)
        fits[name, "fresh"] = lambda s=chosen: minimize(X, y, solver, s, random_state=0)
        fits[name, "prepared"] = lambda s=chosen, D=D, left=left: minimize(
            D, next(left), solver, s, random_state=0
        )
    if rival:
        fits["scikit-learn"] = lambda: orthogonal_mp(X, y, n_nonzero_coefs=k)
    times = best_times(fits, REPEATS, time.process_time if THREADS == 1 else time.perf_counter)
    if rival:
        rivals.append([times["scikit-learn"] / times[name, "fresh"] for name in names])
    exact = set(results["exact"].support)
    for name in names:
        result = results[name]
        same = sum(a == b for a, b in zip(results["exact"].support, result.support))
        figures[name].append((
            times["exact", "fresh"] / times[name, "fresh"],
            times["exact", "prepared"] / times[name, "prepared"],
            times["exact", "prepared"] / times[name, "again"],
            len(exact & set(result.support)) / k,
            same / k,
            result.entries_read / result.n_iter / (n * d),
            result.bytes_read / result.n_iter / X.nbytes,
        ))  # fmt: skip
print(f"OMP n={n} d={d} k={k} SNR 3, float64, {THREADS} thread(s), best of {REPEATS}, mean of {seeds} seeds")
heads = f"{'fresh':>8}{'prepared':>10}{'again':>9}{'atoms':>8}{'sequence':>10}{'entries':>9}{'bytes':>8}"
print(f"{'selector':<16}{heads}   (entries and bytes: share of X a step)")
for name, rows in figures.items():
    fresh, prepared, again, atoms, same, entries, nbytes = np.mean(rows, axis=0)
    speeds = f"{fresh:>7.2f}x{prepared:>9.2f}x{again:>8.2f}x"
    print(f"{name:<16}{speeds}{atoms:>8.1%}{same:>10.1%}{entries:>9.3f}{nbytes:>8.3f}")
for name, ratio in zip(names, np.mean(rivals, axis=0) if rival else []):
    print(f"{name}, fresh, against scikit-learn's orthogonal_mp: {ratio:.2f}x")
