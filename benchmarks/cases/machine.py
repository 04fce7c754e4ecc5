"""What programs feel: threads, the first use after an installation, and a table that is read and fitted."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import gate
import numpy as np
from common import Race, sized
from threadpoolctl import threadpool_limits

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
CALLS = {name: f"select({name!r})" for name in (*PAPER, "lucb", "quantized", "certified")}
CALLS |= {f"coder, {s}, {m} signals": f"code({s!r}, {m})" for m in (2000, 100) for s in ("omp", "cosamp")}


def first_use(o):
    """Processor seconds that a first answer takes more than a later one of the same process.

    First where no kernel is compiled yet, then in new processes that find them compiled. The import of Numba
    is part of it, that of scipy.linalg, which every fit needs, is not. At most 5 and 2 s are wanted.
    """
    wrong = 0
    for name, call in CALLS.items():
        if o.only in name and not (o.quick and name != "uniform"):
            with tempfile.TemporaryDirectory() as cache:
                environment = {**os.environ, "NUMBA_CACHE_DIR": cache, "OMP_NUM_THREADS": "1"}
                command = [sys.executable, "-c", CHILD.replace("{call}", call)]
                how = {"env": environment, "capture_output": True, "text": True, "check": True}
                first, *later = (float(subprocess.run(command, **how).stdout) for _ in range(1 + o.repeats))
            wrong += first > 5 or statistics.median(later) > 2
            print(
                f"{name:30s} first use {first:5.2f} s, later process {statistics.median(later):5.2f} s",
                flush=True,
            )
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


def table(o):
    import pandas as pd
    from sklearn.linear_model import LassoCV

    from skpursuit.apps.models.fit_table import FitOptions, fit_table
    from skpursuit.apps.tables import EncodingOptions, read_table

    rng, (rows, columns) = np.random.default_rng(0), sized(o.quick, 300_000, 60)
    X = rng.standard_normal((rows, columns))
    frame = pd.DataFrame(X).rename(columns="x{}".format)
    frame["y"] = X[:, :8] @ rng.standard_normal(8) + rng.standard_normal(rows)

    def pandas_and_lasso():
        table = pd.read_csv(path)
        LassoCV(n_jobs=1).fit(table.drop(columns="y").to_numpy(), table.y.to_numpy())

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        frame.to_csv(path, index=False, float_format="%.6g")
        ours = lambda: fit_table(read_table(path, EncodingOptions("y")), FitOptions(needs_path=False))  # noqa: E731
        make = lambda seed: ({"pandas, LassoCV": pandas_and_lasso, "skpursuit fit": ours}, None)  # noqa: E731
        yield Race(f"{rows} x {columns}", make)
        yield Race(f"{rows} x {columns}, seconds on the clock", make, elapsed=True)
