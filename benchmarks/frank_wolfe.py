"""Frank-Wolfe with Gram columns against a BLAS gradient a step.

    python benchmarks/frank_wolfe.py [n d k iterations repeats]

Vanilla with exact line search, three ways in one process and on one thread: a plain NumPy loop with X^T r at
each step, our own with selector="exact", our own with selector="gram". Then blended pairwise, until it has
the objective that vanilla ends with.
"""

import cProfile
import pstats
import sys

import numpy as np
from timing import best_times  # limits BLAS and the kernels to one thread

from skpursuit import FrankWolfe, L1Ball, datasets, minimize

n, d, k, iterations, repeats = [int(a) for a in sys.argv[1:]] or [2000, 4000, 50, 5000, 2]
X, y, w = datasets.make_sparse_signal(n, d, k, random_state=0)
radius = float(np.abs(w).sum())
results = {}


def plain():
    coef, z = np.zeros(d), np.zeros(n)
    for _ in range(iterations):
        r = z - y
        g = X.T @ r
        j = np.argmax(np.abs(g))
        vertex = -radius * np.sign(g[j])
        dz = vertex * X[:, j] - z
        gamma = min(1.0, max(0.0, -(r @ dz) / (dz @ dz)))
        coef *= 1 - gamma
        coef[j] += gamma * vertex
        z += gamma * dz
    results["NumPy, BLAS gradient"] = coef


def vanilla(selector):
    results[selector] = minimize(X, y, FrankWolfe(L1Ball(radius), iterations), selector)


def blended():
    goal = results["gram"].objective
    solver = FrankWolfe(L1Ball(radius), iterations, variant="blended")
    results["blended"] = minimize(X, y, solver, "gram", callback=lambda record: record.objective <= goal)


times = best_times(
    {
        "NumPy, BLAS gradient": plain,
        "skpursuit, exact": lambda: vanilla("exact"),
        "skpursuit, gram": lambda: vanilla("gram"),
        "skpursuit, gram, blended": blended,
    },
    repeats,
)
gram, fast = results["gram"], results["blended"]
print(f"Frank-Wolfe n={n} d={d} k={k}, {iterations} iterations, float64, one thread, best of {repeats}")
for name, seconds in times.items():
    print(f"{name:<28}{seconds:>8.3f} s   {seconds / times['skpursuit, gram']:>6.2f} of vanilla with gram")
difference = np.abs(gram.coef - results["NumPy, BLAS gradient"]).max()
print(f"coefficients differ from NumPy's by at most {difference:.1e}; {len(gram.support)} atoms visited")
print(f"X read {gram.entries_read / X.size:.1f} times by vanilla with gram, {iterations} by exact")
read = fast.entries_read / X.size
print(f"blended reaches the same objective in {fast.n_iter} iterations, reading X {read:.1f} times")
print("what bounds the two, by own time:")
for name, function in {"vanilla": lambda: vanilla("gram"), "blended": blended}.items():
    profile = cProfile.Profile()
    profile.runcall(function)
    rows = sorted(pstats.Stats(profile).stats.items(), key=lambda item: -item[1][2])
    total = sum(row[2] for _, row in rows)
    shares = ", ".join(
        f"{key[2]} ({key[0].split('/')[-1]}) {100 * row[2] / total:.0f}%" for key, row in rows[:4]
    )
    print(f"  {name}: {shares}")
