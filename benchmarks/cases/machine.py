"""What depends on the machine: threads, and the first use after an installation."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile

import gate
from common import Race
from threadpoolctl import threadpool_limits

CHILD = """
import time
import numpy as np
import scipy.linalg
from skpursuit import OMP, PursuitCoder, minimize
rng = np.random.default_rng(0)
X, y, signals = rng.standard_normal((1200, 1000)), rng.standard_normal(1200), rng.standard_normal((2000, 64))
def answer():
    started = time.process_time()
    {call}
    return time.process_time() - started
first = answer()
print(first - min(answer() for _ in range(3)))
"""
PAPER = ("greedy", "uniform", "importance", "halving", "halving-random", "reject")
SELECTORS = (*PAPER, "lucb", "quantized", "certified")
CODES = [(solver, count) for count in (2000, 100) for solver in ("omp", "cosamp")]
CALLS = {name: f"minimize(X, y, OMP(1), {name!r}, random_state=0)" for name in SELECTORS}
CALLS |= {
    f"coder, {s}, {m}": f"PursuitCoder(X[:256, :64], 10, {s!r}).transform(signals[:{m}])" for s, m in CODES
}


def first_answers(call, count, **environment):
    """Processor seconds that the first answer takes more than a later one, in so many new processes."""
    command = [sys.executable, "-c", CHILD.replace("{call}", call)]
    how = {"env": os.environ | environment, "capture_output": True, "text": True, "check": True}
    return [float(subprocess.run(command, **how).stdout) for _ in range(count)]


def first_use(o):
    """First where no kernel is compiled yet, then in new processes that find them compiled.

    The import of Numba is part of it, that of scipy.linalg, which every fit needs, is not. At most 5 and 2 s
    are wanted.
    """
    wrong = 0
    for name, call in CALLS.items():
        if o.only in name and not (o.quick and name != "uniform"):
            with tempfile.TemporaryDirectory() as cache:
                given = {"NUMBA_CACHE_DIR": cache, "OMP_NUM_THREADS": "1"}
                first, *later = first_answers(call, 1 + o.repeats, **given)
            usual = statistics.median(later)
            wrong += first > 5 or usual > 2
            print(f"{name:30s} first use {first:5.2f} s, later process {usual:5.2f} s", flush=True)
    return int(wrong > 0)


def threads(o):
    """No fit may be much slower by default: see it beside busy processes too."""
    for name in [name for name in gate.FITS if name.startswith("small/") or not o.quick]:

        def make(seed, name=name):
            fit = gate.made_fit(name)

            def one():
                with threadpool_limits(1):
                    return fit()

            return {"one thread": one, "default": fit}, None

        yield Race(name, make, limits={"default": 1 / 1.2}, elapsed=True, limited=False)
