"""Seconds and bytes of OMP by its number of atoms, for the picture on the front page of the site.

python benchmarks/landing.py writes docs/results/landing.csv: 5000 x 10000, noise at 3 dB, one
thread, each time with its preparation. The selectors take turns, and each keeps its best of three runs.
"""

from common import CORETYPE, PROCESSOR, best_times, signal  # isort: skip  # before NumPy

import csv
import sys
from pathlib import Path

from skpursuit import OMP, minimize

FILE = Path(__file__).parents[1] / "docs" / "results" / "landing.csv"
SELECTORS = ("exact", "auto", "quantized", "halving")


def main(n: int = 5000, d: int = 10_000, sizes: tuple[int, ...] = (10, 25, 50, 100, 200)) -> None:
    rows = []
    for k in sizes:
        X, y, _ = signal(n, d, k)
        fits = {name: lambda name=name: minimize(X, y, OMP(k), name, random_state=0) for name in SELECTORS}
        seconds, results = best_times(fits)
        for name, result in results.items():
            same = len(set(result.support) & set(results["exact"].support))
            read = result.bytes_read + result.prepared_bytes + result.stored_bytes
            rows.append((n, d, k, name, f"{seconds[name]:.4f}", read, same, PROCESSOR, CORETYPE))
            print(*rows[-1])
    if "--dry" not in sys.argv:
        with open(FILE, "w", newline="", encoding="utf-8") as out:
            head = ("n", "d", "k", "selector", "seconds", "bytes_read", "same_atoms", "processor", "blas")
            csv.writer(out).writerows([head, *rows])


if __name__ == "__main__":
    main()
