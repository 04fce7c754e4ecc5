"""The constants of `auto`'s cost model on this machine: python benchmarks/prices.py [repeats] [--write]

Measures what `Prices` in src/skpursuit/numerics/tuning.py holds, and the two constants beside it, one by one
with warm kernels on one thread, and prints each beside the number that stands there. `--write` writes them
there, two digits each; the other lines of the file stay as they are. Nanoseconds an entry (of X, or of what
the name says), except where a ratio or seconds are meant.
"""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from scipy.linalg.blas import daxpy

from skpursuit import OMP, as_design, datasets, minimize
from skpursuit.numerics import tuning

FILE = Path(tuning.__file__)
NUMBER = r"[0-9][0-9_.]*(?:e[+-]?[0-9]+)?"
LOADING = (
    "import numpy, time; from skpursuit import OMP, minimize; X = numpy.eye(64);"
    "minimize(X, X[0], OMP(1), 'exact'); began = time.perf_counter();"
    "minimize(X, X[0], OMP(1), 'certified'); print(time.perf_counter() - began)"
)


def written(text, prices):
    """The text of `tuning.py` with these numbers, by name, in place of those that it has."""
    for name, price in prices.items():
        line = re.compile(rf"^( *{name}(?:: float)? = ){NUMBER}", re.MULTILINE)
        text, found = line.subn(rf"\g<1>{float(f'{price:.2g}')!r}", text)
        if found != 1:
            raise ValueError(f"{name} stands {found} times in {FILE.name}, not once")
    return text


def present(name):
    """The number that stands in `tuning.py`."""
    return getattr(tuning, name) if name.isupper() else getattr(tuning.PRICES, name)


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
    gather = seconds(lambda: designs[0].store.take(columns)) / (8 * 4000)
    return {
        "byte": one / large.nbytes * 1e9,
        "cached_byte": cached / small.nbytes * 1e9,
        "stored": stored / sparse.nnz * 1e9,
        "several": few / one - 4 * each,
        "each": each,
        "SPARSE_SHARE": sixteen / stored / 16,
        "axpy": axpy / 10000 * 1e9,
        "gather": gather * 1e9,
    }


def codes_of_x():
    X, y, _ = datasets.make_sparse_signal(4000, 8000, 30, random_state=0)
    design = as_design(X)
    design.codes()
    build = seconds(lambda: as_design(X, check=False).codes())
    fine = seconds(lambda: as_design(X, check=False).codes(fine=True)) - build
    codes = seconds(lambda: design.codes().estimate(y))
    three = X[:, :3].copy()
    target = (seconds(lambda: design.codes().estimate(three)) - codes) / 2
    way = np.linspace(y, y - X[:, :32] @ (X[:, :32].T @ y), 48)
    path = seconds(lambda: design.codes().following(way)()) / 48
    per_entry = 1e9 / X.size
    return {
        "build": build * per_entry,
        "fine": fine * per_entry,
        "codes": codes * per_entry,
        "target": target * per_entry,
        "path": path * per_entry,
    }


def steps():
    """What a step costs more than an exact one where X costs nothing: fits of 30 steps less those of 5.

    That of certified selection with another loss than squared, where every step reads the codes.
    """
    X, y, _ = datasets.make_sparse_signal(60, 40, 20, snr=0.0, random_state=0)
    pairs = (("exact", "squared"), ("gram", "squared"), ("exact", "huber"), ("certified", "huber"))
    fits = {
        (s, loss, k): lambda s=s, loss=loss, k=k: minimize(X, y, OMP(k), s, loss=loss)
        for s, loss in pairs
        for k in (5, 30)
    }
    times = best_times(fits, 4 * REPEATS)
    step = {(s, loss): (times[s, loss, 30] - times[s, loss, 5]) / 25 * 1e9 for s, loss in pairs}
    gram = step["gram", "squared"] - step["exact", "squared"]
    return {"gram_step": gram, "codes_step": step["certified", "huber"] - step["exact", "huber"]}


def loading():
    """Seconds to load what is compiled, in a fresh process."""
    runs = [subprocess.run([sys.executable, "-c", LOADING], capture_output=True, text=True, check=True)]
    runs += [subprocess.run(runs[0].args, capture_output=True, text=True, check=True) for _ in range(REPEATS)]
    return {"LOAD_KERNELS": min(float(run.stdout) for run in runs)}


if __name__ == "__main__":
    from timing import best_times  # limits BLAS and the kernels to one thread

    REPEATS = next((int(given) for given in sys.argv[1:] if given.isdigit()), 5)
    measured = products() | codes_of_x() | steps() | loading()
    for name, value in measured.items():
        print(f"{name:<16}{value:12.4g}   {present(name):g} in the file")
    if "--write" in sys.argv[1:]:
        # A step may come out faster than an exact one, which no price can say.
        text = written(FILE.read_text("utf-8"), {name: max(value, 0.0) for name, value in measured.items()})
        FILE.write_text(text, "utf-8")
