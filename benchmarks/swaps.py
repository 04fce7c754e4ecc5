"""Exchanges of atoms: support, objective and time on correlated columns, beside plain OMP and abess.

    python benchmarks/swaps.py [seeds]

AR(.95) columns, 500 x 1000, 20 of them with coefficients of +-U(.5, 1.5), SNR 10. F is that of the support;
the objective is relative to the least-squares fit on the true support, the time to that of OMP, one thread.
"""

from __future__ import annotations

import sys
import time

import numpy as np
from threadpoolctl import threadpool_limits

from skpursuit import OMP, minimize

N, D, K, RHO, SNR = 500, 1000, 20, 0.95, 10.0
TIMES = 5


def problem(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, D))
    for j in range(1, D):
        X[:, j] = RHO * X[:, j - 1] + np.sqrt(1 - RHO**2) * X[:, j]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    true = rng.choice(D, K, replace=False)
    signal = X[:, true] @ (rng.choice([-1, 1], K) * rng.uniform(0.5, 1.5, K))
    y = signal + rng.standard_normal(N) * np.sqrt(signal.var() / SNR)
    return X, y - y.mean(), true


def objective(X, y, support):
    return np.linalg.lstsq(X[:, support], y, rcond=None)[1][0]


def fits():
    yield "omp", lambda X, y: minimize(X, y, OMP(K)).support
    yield "omp swaps", lambda X, y: minimize(X, y, OMP(K, swaps=True)).support
    try:
        from abess import LinearRegression
    except ImportError:
        return
    yield "abess", lambda X, y: np.flatnonzero(LinearRegression(support_size=K).fit(X, y).coef_)


def main(seeds):
    rows = {}
    for seed in seeds:
        X, y, true = problem(seed)
        least = objective(X, y, true)
        for name, fit in fits():
            spent = []
            for _ in range(TIMES):
                begun = time.perf_counter()
                support = fit(X, y)
                spent.append(time.perf_counter() - begun)
            shared = len(set(support) & set(true))
            rows.setdefault(name, []).append((shared / K, objective(X, y, support) / least, min(spent)))
    base = np.mean(rows["omp"], axis=0)[2]
    for name, row in rows.items():
        f, value, seconds = np.mean(row, axis=0)
        error = np.std(row, axis=0)[0] / np.sqrt(len(row))
        print(f"{name:10s} F {f:.3f} +- {error:.3f}  objective {value:.4f}  time {seconds / base:.2f}")
    print(f"OMP takes {1e3 * base:.2f} ms")


if __name__ == "__main__":
    with threadpool_limits(1):
        main(range(int(sys.argv[1]) if len(sys.argv) > 1 else 20))
