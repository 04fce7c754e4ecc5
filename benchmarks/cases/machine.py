"""What depends on the machine: threads, and the first use after an installation."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile

import numpy as np
from common import Race, signal, sized
from threadpoolctl import threadpool_limits

import skpursuit as sk

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
    """No fit may be much slower by default: a thread that waits for another costs on a busy machine."""
    X, y, _ = signal(*sized(o.quick, 2000, 4000), 10)
    F, part, labels, rng = (
        np.asfortranarray(X),
        X[:1000, :500],
        np.where(y > 0, 1.0, -1.0),
        np.random.default_rng(0),
    )
    tall = rng.standard_normal((sized(o.quick, 300_000)[0], 60))
    target, k = tall[:, :10].sum(axis=1) + rng.standard_normal(len(tall)), 8 if o.quick else 50
    atoms, signals = rng.standard_normal((2, *sized(o.quick, 2048, 512)))
    many = rng.standard_normal((len(part), 20))
    learner = sk.DictionaryLearner(16, n_nonzero_coefs=5, max_iter=2, random_state=0)
    fits = {
        **{f"OMP {s}": lambda s=s: sk.minimize(X, y, sk.OMP(k), s) for s in
           ("exact", "gram", "certified", "halving", "greedy")},
        "OMP certified, F order": lambda: sk.minimize(F, y, sk.OMP(k), "certified"),
        "OMP auto, small": lambda: sk.minimize(X[:300, :500], y[:300], sk.OMP(8)),
        "OMP logistic": lambda: sk.minimize(X, labels, sk.OMP(8), loss="logistic"),
        "CoSaMP auto": lambda: sk.minimize(X, y, sk.CoSaMP(k, max_iter=10)),
        "Frank-Wolfe auto": lambda: sk.minimize(X, y, sk.FrankWolfe(sk.L1Ball(5.0), 500)),
        "orthogonal_mp, 20 targets": lambda: sk.orthogonal_mp(part, many, n_nonzero_coefs=20),
        "OrthogonalMatchingPursuit": lambda: sk.OrthogonalMatchingPursuit().fit(part, y[:1000]),
        "OrthogonalMatchingPursuitCV": lambda: sk.OrthogonalMatchingPursuitCV().fit(part, y[:1000]),
        "PursuitRegressor": lambda: sk.PursuitRegressor(n_nonzero_coefs=k).fit(X, y),
        "PursuitRegressorCV 300000 x 60": lambda: sk.PursuitRegressorCV().fit(tall, target),
        "PursuitClassifierCV 2000 x 100": lambda: sk.PursuitClassifierCV().fit(X[:, :100], labels),
        "PursuitCoder": lambda: sk.PursuitCoder(atoms[: len(atoms) // 2], 10).transform(signals),
        "DictionaryLearner": lambda: learner.fit(signals[:, :64]),
    }  # fmt: skip
    for name, fit in fits.items():

        def one(fit=fit):
            with threadpool_limits(1):
                return fit()

        make = lambda seed, one=one, fit=fit: ({"one thread": one, "default": fit}, None)  # noqa: E731
        yield Race(name, make, limits={"default": 1 / 1.2}, elapsed=True, limited=False)
