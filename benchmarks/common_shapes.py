"""Shapes that users of scikit-learn bring, against its estimators of the same name.

    python benchmarks/common_shapes.py [--only PART] [--repeats R]

One process; the number of threads is that of OMP_NUM_THREADS (default 1). Each pair takes turns; best of R.
A ratio above 1 means that skpursuit is faster.
"""

import argparse
import time

import numpy as np
from sklearn import linear_model as theirs
from timing import THREADS, best_times  # sets the threads before NumPy loads

import skpursuit as ours
from skpursuit import datasets


def problem(n, d, k=10, order="C"):
    X, y, _ = datasets.make_sparse_signal(n, d, k, snr=10.0, random_state=0)
    return np.asarray(X + 0.01, order=order), y


def omp(n, d, k, order="C"):
    X, y = problem(n, d, min(k, 20), order)
    return lambda library: library.OrthogonalMatchingPursuit(n_nonzero_coefs=k).fit(X, y)


def omp_cv(n, d, most=None):
    X, y = problem(n, d)
    return lambda library: library.OrthogonalMatchingPursuitCV(max_iter=most).fit(X, y)


def batch(count, n, d, k):
    data = [problem(n, d, 5) for _ in range(count)]

    def run(library):
        model = library.OrthogonalMatchingPursuit(n_nonzero_coefs=k)
        for X, y in data:
            model.fit(X, y)

    return run


PROGRAMS = {
    "OMP 100 x 4000, k=90": lambda: omp(100, 4000, 90),
    "OMP 200 x 5000, k=50": lambda: omp(200, 5000, 50),
    "OMP 200 x 5000, k=150": lambda: omp(200, 5000, 150),
    "OMP 1000 x 500, k=50": lambda: omp(1000, 500, 50),
    "OMP 1000 x 500, k=50, F order": lambda: omp(1000, 500, 50, "F"),
    "OMP 100000 x 50, k=5": lambda: omp(100_000, 50, 5),
    "OMP 100000 x 50, k=25": lambda: omp(100_000, 50, 25),
    "OMPCV 100000 x 50": lambda: omp_cv(100_000, 50),
    "OMPCV 300000 x 60": lambda: omp_cv(300_000, 60),
    "OMPCV 1000 x 500, k<=50": lambda: omp_cv(1000, 500, 50),
    "OMPCV 200 x 5000, k<=50": lambda: omp_cv(200, 5000, 50),
    "50 fits 100 x 20, k=5": lambda: batch(50, 100, 20, 5),
    "50 fits 50 x 200, k=10": lambda: batch(50, 50, 200, 10),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    print(f"{THREADS} thread(s), float64, best of {options.repeats}; wall-clock times")
    for name, make in PROGRAMS.items():
        if options.only in name:
            program = make()
            pair = {"ours": lambda: program(ours), "theirs": lambda: program(theirs)}
            times = best_times(pair, options.repeats, time.perf_counter)
            a, b = times["ours"], times["theirs"]
            print(f"{name:<34}{1e3 * a:>9.1f} ms, scikit-learn {1e3 * b:>9.1f}: {b / a:>6.2f}x", flush=True)


if __name__ == "__main__":
    main()
