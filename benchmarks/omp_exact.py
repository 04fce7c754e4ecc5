"""Exact OMP against scikit-learn's and SPAMS: python benchmarks/omp_exact.py [n d k repeats]."""

import sys

import numpy as np
from sklearn.linear_model import orthogonal_mp
from timing import best_times  # limits BLAS and the kernels to one thread

from skpursuit import OMP, datasets, minimize

n, d, k, repeats = [int(a) for a in sys.argv[1:]] or [5000, 10000, 50, 3]
X, y, _ = datasets.make_sparse_signal(n, d, k, random_state=0)
XF = np.asfortranarray(X)
functions = {
    "skpursuit exact, C order": lambda: minimize(X, y, OMP(n_nonzero_coefs=k), "exact"),
    "skpursuit exact, F order": lambda: minimize(XF, y, OMP(n_nonzero_coefs=k), "exact"),
    "skpursuit gram, C order": lambda: minimize(X, y, OMP(n_nonzero_coefs=k), "gram"),
    "skpursuit auto, C order": lambda: minimize(X, y, OMP(n_nonzero_coefs=k), "auto"),
    "scikit-learn, C order": lambda: orthogonal_mp(X, y, n_nonzero_coefs=k),
    "scikit-learn, F order": lambda: orthogonal_mp(XF, y, n_nonzero_coefs=k),
    "k products X^T r (the floor of exact OMP)": lambda: [X.T @ y for _ in range(k)],
}
try:
    import spams

    yF = np.asfortranarray(y[:, None])
    functions["SPAMS, F order"] = lambda: spams.omp(yF, XF, L=k, numThreads=1)
except ImportError:
    print("spams is not installed: pip install spams-bin")
times = best_times(functions, repeats)
ours = times["skpursuit exact, C order"]
print(f"n={n} d={d} k={k}, float64, one thread, best of {repeats}; ratio to skpursuit exact, C order")
for name, seconds in times.items():
    print(f"{name:<45}{seconds:>8.3f} s {seconds / ours:>7.2f}")
