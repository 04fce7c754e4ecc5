"""What the first use after an installation costs, and what every later process loses.

    python benchmarks/first_use.py [processes]

Each selector of the paper answers one query on a dense float64 X in C order, in a new process whose kernels
are not compiled yet, and then in new processes that find them compiled, less what a second answer takes.
Certified selection does so by itself, and the coder, by each of its solvers, codes 1000 signals. Processor
seconds; importing Numba is shown apart, scipy.linalg, which every fit needs, is left out.
"""

import os
import statistics
import subprocess
import sys
import tempfile

CHILD = """
import time
began = time.process_time()
import numba
imported = time.process_time()
import numpy as np
import scipy.linalg
from skpursuit import PursuitCoder, as_design
from skpursuit.selectors import Expect, Query, as_selector
rng = np.random.default_rng(0)
X, r = rng.standard_normal((1200, 1000)), rng.standard_normal(1200)
def answer():
    started = time.process_time()
    for name in {names}:
        if name in ("omp", "cosamp"):
            PursuitCoder(X[:256, :64], 10, name).transform(X[:1000, :64])
            continue
        design, selector = as_design(X), as_selector(name)
        selector.bind(design, Expect())
        selector.select(design, Query(r, rng=np.random.default_rng(0)))
    return time.process_time() - started
first = answer()
print(imported - began, first - min(answer() for _ in range(3)))
"""
PAPER = ("greedy", "uniform", "importance", "halving", "halving-random")


def measure(names: tuple[str, ...], cache: str) -> tuple[float, float]:
    """Seconds to import Numba, and those that the first answers lose."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", CHILD.format(names=names)],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    numba, lost = map(float, done.stdout.split())
    return numba, lost


def main(processes: int = 5) -> None:
    """Print both."""
    with tempfile.TemporaryDirectory() as cache:
        print(f"first use, all of {', '.join(PAPER)}: {measure(PAPER, cache)[1]:.2f} s")
        for names in (PAPER, ("halving",), ("greedy",)):
            runs = [measure(names, cache) for _ in range(processes)]
            lost = [lost for _, lost in runs]
            print(
                f"later process, {', '.join(names)}: {min(lost):.2f} s at best, median "
                f"{statistics.median(lost):.2f} s (importing Numba: {min(runs)[0]:.2f} s)"
            )
    for name in ("certified", "omp", "cosamp"):
        with tempfile.TemporaryDirectory() as cache:
            title = name if name == "certified" else f"coder, {name}"
            first, later = (measure((name,), cache)[1] for _ in range(2))
            print(f"{title}: first use {first:.2f} s, later process {later:.2f} s")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
