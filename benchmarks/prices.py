"""The constants of `auto`'s cost model on this machine: python benchmarks/prices.py [repeats]

Prints what `Prices` in src/skpursuit/numerics/tuning.py holds, measured one by one with warm kernels on one
thread. Nanoseconds an entry (of X, or of what the name says), except where a ratio is meant.
"""

import sys

import numpy as np
import scipy.sparse as sp
from scipy.linalg.blas import daxpy
from timing import best_times  # limits BLAS and the kernels to one thread

from skpursuit import OMP, Certified, Sketch, as_design, datasets, minimize
from skpursuit.data.codes import BitCodes
from skpursuit.selectors import Query

RANKED = 4  # steps of a pursuit for each time that the sketch ranks all columns
REPEATS = int(sys.argv[1]) if sys.argv[1:] else 5


def seconds(function):
    """Best time of one function."""
    function()
    return best_times({"it": function}, REPEATS)["it"]


def products():
    rng = np.random.default_rng(0)
    large, small = rng.standard_normal((4000, 8000)), rng.standard_normal((400, 900))
    r, sparse = rng.standard_normal(4000), sp.random_array((4000, 20000), density=0.01, format="csr", rng=rng)
    designs = as_design(large), as_design(small), as_design(sparse)
    one = seconds(lambda: designs[0].product(r))
    few = seconds(lambda: designs[0].product(rng.standard_normal((4000, 4))))
    many = seconds(lambda: designs[0].product(rng.standard_normal((4000, 32))))
    each = (many - few) / 28 / one
    cached = seconds(lambda: [designs[1].product(r[:400]) for _ in range(50)]) / 50
    stored = seconds(lambda: designs[2].product(r))
    sixteen = seconds(lambda: designs[2].product(rng.standard_normal((4000, 16))))
    line, g = rng.standard_normal((2, 10000))
    axpy = seconds(lambda: [daxpy(line, g, a=0.5) for _ in range(100)]) / 100
    columns = np.arange(8)
    gather = seconds(lambda: designs[0]._gather(columns)) / (8 * 4000)
    return {
        "byte": one / large.nbytes * 1e9,
        "cached_byte": cached / small.nbytes * 1e9,
        "stored": stored / sparse.nnz * 1e9,
        "several (ratio)": few / one - 4 * each,
        "each (ratio)": each,
        "SPARSE_SHARE (ratio)": sixteen / stored / 16,
        "axpy": axpy / 10000 * 1e9,
        "gather": gather * 1e9,
    }


def twins():
    X, y, _ = datasets.make_sparse_signal(4000, 8000, 30, random_state=0)
    design = as_design(X)
    query = Query(-y)
    design.codes()
    build = seconds(lambda: as_design(X, check=False).codes())
    sketch_build = seconds(lambda: BitCodes(as_design(X, check=False)))
    codes = seconds(lambda: design.estimate(y))
    several = X[:, :8].copy()
    ahead = seconds(lambda: design.decoded().multiplying(several)()) / 8
    ranked = int(Sketch().second * X.shape[1])
    bits = seconds(lambda: BitCodes(design).estimate(y)) / RANKED
    bits += seconds(lambda: BitCodes(design).refine(y, np.arange(ranked)))
    whole = seconds(lambda: Certified().select(design, query))
    per_entry = 1e9 / X.size
    return {
        "build": build * per_entry,
        "codes": codes * per_entry,
        "ahead (before guesses in vain)": ahead * per_entry,
        "sketch_build": sketch_build * per_entry,
        "bits": bits * per_entry,
        "survivors (ns a selection, all columns kept already)": (whole - codes) * 1e9,
    }


def steps():
    """What a step of a pursuit costs where X costs nothing: the same fit with and without more steps."""
    X, y, _ = datasets.make_sparse_signal(60, 40, 20, snr=0.0, random_state=0)
    fits = {s: lambda s=s: minimize(X, y, OMP(30), s) for s in ("exact", "gram", "certified")}
    fits |= {f"{s} 5": lambda s=s: minimize(X, y, OMP(5), s) for s in ("exact", "gram", "certified")}
    times = best_times(fits, 4 * REPEATS)
    per_step = {s: (times[s] - times[f"{s} 5"]) / 25 * 1e9 for s in ("exact", "gram", "certified")}
    return {f"{s} step (ns)": cost for s, cost in per_step.items()}


if __name__ == "__main__":
    for name, value in (products() | twins() | steps()).items():
        print(f"{name:<56}{value:12.4g}")
