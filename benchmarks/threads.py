"""Default threads against one thread, for every kind of fit: no fit may be much slower by default.

A thread that has to wait for another makes a fit slower when something else runs on the machine, so the
second table is measured beside two processes that do nothing but spin.

    python benchmarks/threads.py [--limit 1.2] [--rounds 5] [--only NAME]
"""

import argparse
import multiprocessing
import statistics
import sys
import time

import numpy as np
from threadpoolctl import threadpool_limits

import skpursuit as sp


def signal(n, d, k=50):
    X, y, _ = sp.datasets.make_sparse_signal(n, d, k, snr=3.0, random_state=0)
    return X, y


def fits():
    """Names and functions without arguments; the data are made once."""
    X, y = signal(2000, 4000)
    F = np.asfortranarray(X)
    small_X, small_y = signal(300, 500, 10)
    part, part_y, many = X[:1000, :500], y[:1000], np.tile(y[:, None], 20)
    labels = np.where(y > 0, 1.0, -1.0)
    rng = np.random.default_rng(0)
    tall = rng.standard_normal((300_000, 60))
    tall_y = tall[:, :10].sum(axis=1) + rng.standard_normal(len(tall))
    atoms = rng.standard_normal((1024, 512))
    signals = rng.standard_normal((2048, 512))
    pieces = rng.standard_normal((3000, 64))
    omp = sp.OMP(50)
    coder = sp.PursuitCoder(atoms, n_nonzero_coefs=10)
    learner = sp.DictionaryLearner(128, n_nonzero_coefs=5, max_iter=2, random_state=0)
    return {
        "OMP exact 2000 x 4000": lambda: sp.minimize(X, y, omp, "exact"),
        "OMP gram": lambda: sp.minimize(X, y, omp, "gram"),
        "OMP certified": lambda: sp.minimize(X, y, omp, "certified"),
        "OMP certified, F order": lambda: sp.minimize(F, y, omp, "certified"),
        "OMP halving": lambda: sp.minimize(X, y, omp, "halving"),
        "OMP greedy": lambda: sp.minimize(X, y, omp, "greedy"),
        "OMP auto 300 x 500": lambda: sp.minimize(small_X, small_y, sp.OMP(10)),
        "CoSaMP auto": lambda: sp.minimize(X, y, sp.CoSaMP(50, max_iter=10)),
        "OMP logistic": lambda: sp.minimize(X, labels, sp.OMP(20), loss="logistic"),
        "Frank-Wolfe auto": lambda: sp.minimize(X, y, sp.FrankWolfe(sp.L1Ball(5.0), 500)),
        "orthogonal_mp, 20 targets": lambda: sp.orthogonal_mp(X[:, :500], many, n_nonzero_coefs=20),
        "OrthogonalMatchingPursuit 1000 x 500": lambda: sp.OrthogonalMatchingPursuit().fit(part, part_y),
        "OrthogonalMatchingPursuitCV 1000 x 500": lambda: sp.OrthogonalMatchingPursuitCV().fit(part, part_y),
        "PursuitRegressor 2000 x 4000": lambda: sp.PursuitRegressor(n_nonzero_coefs=50).fit(X, y),
        "PursuitRegressorCV 300000 x 60": lambda: sp.PursuitRegressorCV().fit(tall, tall_y),
        "PursuitClassifierCV 2000 x 100": lambda: sp.PursuitClassifierCV().fit(X[:, :100], labels),
        "PursuitCoder": lambda: coder.fit(signals).transform(signals),
        "DictionaryLearner": lambda: learner.fit(pieces),
    }


def seconds(function, times):
    begun = time.perf_counter()
    for _ in range(times):
        function()
    return (time.perf_counter() - begun) / times


def compare(function, rounds):
    """Median seconds with one thread and with the default, the two interleaved.

    Short fits are repeated for a third of a second: beside other processes a turn of the scheduler takes
    several milliseconds.
    """
    function()
    times = 1 + int(0.33 / seconds(function, 1))
    one, default = [], []
    for _ in range(rounds):
        with threadpool_limits(1):
            one.append(seconds(function, times))
        default.append(seconds(function, times))
    return statistics.median(one), statistics.median(default)


def spin():
    while True:
        pass


def table(title, rounds, only, limit):
    print(f"\n{title}\n{'fit':42}{'one thread':>12}{'default':>12}{'ratio':>8}")
    worst = 0.0
    for name, function in fits().items():
        if only and only not in name:
            continue
        one, default = compare(function, rounds)
        worst = max(worst, default / one)
        mark = "  <-- slower" if default > limit * one else ""
        print(f"{name:42}{one:10.3f} s{default:10.3f} s{default / one:8.2f}{mark}", flush=True)
    return worst


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--limit", type=float, default=1.2)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    worst = table("quiet", args.rounds, args.only, args.limit)
    spinning = [multiprocessing.Process(target=spin, daemon=True) for _ in range(2)]
    for process in spinning:
        process.start()
    try:
        worst = max(worst, table("beside two spinning processes", args.rounds, args.only, args.limit))
    finally:
        for process in spinning:
            process.kill()
    print(f"\nworst ratio {worst:.2f}, limit {args.limit}")
    return int(worst > args.limit)


if __name__ == "__main__":
    multiprocessing.set_start_method("spawn")
    sys.exit(main())
