"""The drop-in estimators against scikit-learn's: python benchmarks/drop_in.py [--small]."""

import sys

import numpy as np
from sklearn import linear_model as theirs
from timing import best_times  # sets one thread before NumPy loads

import skpursuit as ours
from skpursuit import datasets

big = (2000, 4000) if "--small" in sys.argv else (5000, 10000)
signals, width, atoms = 200, 256, 512


def problem(n, d):
    X, y, _ = datasets.make_sparse_signal(n, d, 50, random_state=0)
    return X + 0.01, y


def programs(library):
    """What a user's program does, with one import changed."""
    X, y = problem(*big)
    Z, t = problem(1000, 500)
    D = problem(width, atoms)[0]
    Y = np.random.default_rng(0).standard_normal((width, signals))
    G, DY = D.T @ D, D.T @ Y
    shape = f"{big[0]} x {big[1]}"
    fit = library.OrthogonalMatchingPursuit(n_nonzero_coefs=50)
    select = library.OrthogonalMatchingPursuitCV(max_iter=50)
    return {
        f"OrthogonalMatchingPursuit, {shape}, k=50": lambda: fit.fit(X, y),
        "OrthogonalMatchingPursuit, 1000 x 500, k=50": lambda: library.OrthogonalMatchingPursuit().fit(Z, t),
        "OrthogonalMatchingPursuitCV, 1000 x 500, k<=50": lambda: select.fit(Z, t),
        f"orthogonal_mp_gram, {signals} targets, {atoms} atoms, k=10": lambda: library.orthogonal_mp_gram(
            G, DY, n_nonzero_coefs=10
        ),
    }


mine, reference = programs(ours), programs(theirs)
functions = {}
for name in mine:
    functions[name, "skpursuit"] = mine[name]
    functions[name, "scikit-learn"] = reference[name]
times = best_times(functions, 3)
print("one thread, float64, best of 3")
for name in mine:
    a, b = times[name, "skpursuit"], times[name, "scikit-learn"]
    print(f"{name:<60}{1e3 * a:>9.1f} ms, scikit-learn {1e3 * b:>9.1f} ms: {b / a:>6.2f}x")
