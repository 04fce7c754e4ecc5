"""What the first use after an installation costs, and what every later process loses.

    python benchmarks/first_use.py [processes]

Each selector answers one query on a dense float64 X in C order, in a new process whose kernels are not
compiled yet, and then in new processes that find them compiled, less what a second answer takes. The coder,
by each of its solvers, codes 2000 signals, which are too many to be coded without a kernel, and then 100,
which are few enough. Processor seconds with the import of Numba, without that of scipy.linalg, which every
fit needs. Wanted: at most 5 s for a first use, 2 s for a later one.
"""

import os
import statistics
import subprocess
import sys
import tempfile

CHILD = """
import time
import numpy as np
import scipy.linalg
from skpursuit import PursuitCoder, as_design
from skpursuit.selectors import Expect, Query, as_selector
rng = np.random.default_rng(0)
X, r, signals = rng.standard_normal((1200, 1000)), rng.standard_normal(1200), rng.standard_normal((2000, 64))
def select(selector):
    design, selector = as_design(X), as_selector(selector)
    selector.bind(design, Expect())
    selector.select(design, Query(r, rng=np.random.default_rng(0)))
def code(solver, count):
    PursuitCoder(X[:256, :64], 10, solver).transform(signals[:count])
def answer():
    started = time.process_time()
    {call}
    return time.process_time() - started
first = answer()
print(first - min(answer() for _ in range(3)))
"""
PAPER = ("greedy", "uniform", "importance", "halving", "halving-random", "reject")
CALLS = {name: f"select({name!r})" for name in (*PAPER, "lucb", "sketch", "certified")}
CALLS |= {f"coder, {s}, {m} signals": f"code({s!r}, {m})" for m in (2000, 100) for s in ("omp", "cosamp")}


def measure(call: str, cache: str) -> float:
    """Seconds that a first answer loses."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", CHILD.format(call=call)]
    return float(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)


def main(processes: int = 5) -> None:
    """Print both, line by line."""
    for name, call in CALLS.items():
        with tempfile.TemporaryDirectory() as cache:
            first = measure(call, cache)
            later = statistics.median(measure(call, cache) for _ in range(processes))
        print(f"{name:30s} first use {first:5.2f} s, later process {later:5.2f} s", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
