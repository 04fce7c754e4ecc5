"""Is `auto` close to the best allowed choice? python benchmarks/auto_grid.py [repeats]

The grid below is fixed: 32 problems over shapes, layouts, precisions, sparsity, targets, solvers and losses.
For each, whole fits on fresh designs with exact, gram (squared loss only) and certified selection, and with
auto; the figure is auto's time over the best of the three. Kernels are warm.
"""

import sys

import numpy as np
import scipy.sparse as sp
from timing import best_times  # limits BLAS and the kernels to one thread

from skpursuit import OMP, CoSaMP, FrankWolfe, GraSP, L1Ball, MatchingPursuit, datasets, minimize


def signal(n, d, k=20, dtype=np.float64, order="C", seed=0):
    X, y, _ = datasets.make_sparse_signal(n, d, k, dtype=dtype, random_state=seed)
    return np.asarray(X, order=order), y


def labels(n, d):
    X, y = signal(n, d)
    return X, np.where(y > 0, 1.0, -1.0)


def targets(n, d, m):
    X, y = signal(n, d)
    return X, np.random.default_rng(0).standard_normal((n, m)) + y[:, None]


def sparse(n, d, density):
    X = sp.random_array((n, d), density=density, format="csr", rng=np.random.default_rng(0))
    return X, X @ np.random.default_rng(1).standard_normal(d)


FW, GRASP = FrankWolfe(L1Ball(20.0), 500), GraSP(10, ridge=1e-2, max_iter=10)
SHAPES = [(50, 80, 5), (200, 400, 20), (500, 1000, 10), (500, 1000, 50), (1000, 2000, 20), (1000, 2000, 100),
          (2000, 4000, 5), (2000, 4000, 50), (2000, 4000, 200), (4000, 8000, 30), (500, 40000, 20),
          (40000, 500, 20), (100, 20000, 30)]  # fmt: skip
GRID = [
    *((f"omp {n}x{d} k={k}", lambda n=n, d=d: signal(n, d), OMP(k), "squared")
      for n, d, k in SHAPES),
    ("omp F 2000x4000 k=50", lambda: signal(2000, 4000, order="F"), OMP(50), "squared"),
    ("omp f32 2000x4000 k=50", lambda: signal(2000, 4000, dtype=np.float32), OMP(50), "squared"),
    ("omp f32 500x1000 k=20", lambda: signal(500, 1000, dtype=np.float32), OMP(20), "squared"),
    ("omp 3 targets 1000x2000 k=30", lambda: targets(1000, 2000, 3), OMP(30), "squared"),
    ("omp 20 targets 500x800 k=30", lambda: targets(500, 800, 20), OMP(30), "squared"),
    ("omp logistic 1000x2000 k=10", lambda: labels(1000, 2000), OMP(10, ridge=1e-3), "logistic"),
    ("omp logistic 3000x6000 k=20", lambda: labels(3000, 6000), OMP(20, ridge=1e-3), "logistic"),
    ("omp sparse 3000x20000 k=50", lambda: sparse(3000, 20000, 0.005), OMP(50), "squared"),
    ("omp sparse 500x2000 k=20", lambda: sparse(500, 2000, 0.02), OMP(20), "squared"),
    ("mp 1000x2000 300 steps", lambda: signal(1000, 2000), MatchingPursuit(max_iter=300), "squared"),
    ("mp 200x400 300 steps", lambda: signal(200, 400), MatchingPursuit(max_iter=300), "squared"),
    ("cosamp 500x1000 k=20", lambda: signal(500, 1000), CoSaMP(20, max_iter=20), "squared"),
    ("cosamp 2000x4000 k=50", lambda: signal(2000, 4000), CoSaMP(50, max_iter=20), "squared"),
    ("cosamp 4000x8000 k=30", lambda: signal(4000, 8000), CoSaMP(30, max_iter=20), "squared"),
    ("grasp logistic 1000x2000 k=10", lambda: labels(1000, 2000), GRASP, "logistic"),
    ("fw 1000x2000 500 steps", lambda: signal(1000, 2000), FrankWolfe(L1Ball(20.0), 500), "squared"),
    ("fw 2000x4000 1000 steps", lambda: signal(2000, 4000), FrankWolfe(L1Ball(20.0), 1000), "squared"),
    ("fw logistic 500x1000 100 steps", lambda: labels(500, 1000), FrankWolfe(L1Ball(20.0), 100), "logistic"),
    ("fw sparse 2000x8000 500 steps", lambda: sparse(2000, 8000, 0.01), FW, "squared"),
]  # fmt: skip


def main() -> None:
    repeats = int(sys.argv[1]) if sys.argv[1:] else 3
    X, y = signal(300, 600)
    minimize(X, y, OMP(5), "certified")  # kernels warm
    minimize(X.astype(np.float32), y, OMP(5), "certified")
    ratios = []
    for name, make, solver, loss in GRID:
        X, y = make()
        allowed = ["exact", "certified"] + (["gram"] if loss == "squared" else [])
        if sp.issparse(X):
            allowed.remove("certified")  # the same as exact there
        fits = {s: lambda s=s: minimize(X, y, solver, s, loss) for s in ["auto", *allowed]}
        picked = minimize(X, y, solver, "auto", loss).selector.split(",")[0].removeprefix("auto: ")
        times = best_times(fits, repeats)
        best = min(allowed, key=times.get)
        ratios.append(times["auto"] / times[best])
        told = "  ".join(f"{s} {1e3 * times[s]:.1f}" for s in allowed)
        print(f"{name:<34}{ratios[-1]:>6.2f}  best {best:<10} picked {picked:<22} ms: {told}", flush=True)
    mean = np.exp(np.mean(np.log(ratios)))
    print(f"{len(ratios)} problems: geometric mean {mean:.3f}, worst {max(ratios):.2f}")


if __name__ == "__main__":
    main()
