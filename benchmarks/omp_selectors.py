"""Whole OMP fits against exact BLAS: python benchmarks/omp_selectors.py [n d k seeds [selector ...]]."""

import sys

import numpy as np
from timing import best_times  # limits BLAS and the kernels to one thread

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
n, d, k, seeds = [int(a) for a in sys.argv[1:5]] or [5000, 10000, 50, 5]
names = sys.argv[5:] or list(CHOICES)
figures = {name: [] for name in names}
for seed in range(seeds):
    X, y, _ = datasets.make_sparse_signal(n, d, k, random_state=seed)
    D = as_design(X)
    solver = OMP(n_nonzero_coefs=k)
    results = {name: minimize(D, y, solver, CHOICES[name], random_state=0) for name in {*names, "exact"}}
    exact = set(results["exact"].support)
    fits = {}
    for name in {*names, "exact"}:
        fits[name, "fresh"] = lambda s=CHOICES[name]: minimize(X, y, solver, s, random_state=0)
        fits[name, "prepared"] = lambda s=CHOICES[name]: minimize(D, y, solver, s, random_state=0)
    times = best_times(fits, 3)
    for name in names:
        result = results[name]
        same = sum(a == b for a, b in zip(results["exact"].support, result.support))
        figures[name].append((
            times["exact", "fresh"] / times[name, "fresh"],
            times["exact", "prepared"] / times[name, "prepared"],
            len(exact & set(result.support)) / k,
            same / k,
            result.entries_read / result.n_iter / (n * d),
            result.bytes_read / result.n_iter / X.nbytes,
        ))  # fmt: skip
print(f"OMP n={n} d={d} k={k} SNR 3, float64, one thread, best of 3, mean of {seeds} seeds")
heads = f"{'ratio':>8}{'prepared':>10}{'atoms':>8}{'sequence':>10}{'entries':>9}{'bytes':>8}"
print(f"{'selector':<16}{heads}   (entries and bytes: share of X a step)")
for name, rows in figures.items():
    fresh, prepared, atoms, same, entries, nbytes = np.mean(rows, axis=0)
    print(f"{name:<16}{fresh:>7.2f}x{prepared:>9.2f}x{atoms:>8.1%}{same:>10.1%}{entries:>9.3f}{nbytes:>8.3f}")
