"""What depends on the machine: threads, the first use after an installation, and the constants of `auto`."""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import gate
import numpy as np
import scipy.sparse as sp
from common import Race, best_times, signal, sized
from scipy.linalg.blas import daxpy
from threadpoolctl import threadpool_limits

from skpursuit import OMP, DictionaryLearner, PursuitCoder, as_design, minimize
from skpursuit.numerics import tuning

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
SELECTORS = ("greedy", "uniform", "halving", "reject", "lucb", "quantized", "certified")
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
    for name, call in CALLS.items():
        if o.only in name and not (o.quick and name != "uniform"):
            with tempfile.TemporaryDirectory() as cache:
                given = {"NUMBA_CACHE_DIR": cache, "OMP_NUM_THREADS": "1"}
                first, *later = first_answers(call, 1 + o.repeats, **given)
            usual = statistics.median(later)
            yield {"problem": "seconds", "method": name, "first use": first, "later process": usual}
            if first > 5 or usual > 2:
                yield f"{name}: at most 5 s at the first use and 2 s later are wanted"


def many_signals(learn):
    """Codes over a dictionary, or the dictionary, with as many threads as BLAS has."""
    rng = np.random.default_rng(0)
    atoms, signals = rng.standard_normal((1024, 256)), rng.standard_normal((8000, 256))
    if learn:
        return lambda: DictionaryLearner(1024, max_iter=1, random_state=0).fit(signals)
    return lambda: PursuitCoder(atoms, n_nonzero_coefs=10).transform(signals)


#: Fits with so many signals, and the least that two threads are to gain.
SIGNALS = {"coder": False, "dictionary learning": True}
GAINS = {"selectors/exact, prepared": 1.2, "certified fresh/C order": 1.2, "certified prepared/C order": 1.35,
         "coder": 1.8, "dictionary learning": 1.5}  # fmt: skip


def threads(o):
    """No fit may be much slower by default: see it beside busy processes too."""
    for name in [
        name for name in dict.fromkeys([*GAINS, *gate.FITS]) if name.startswith("small/") or not o.quick
    ]:

        def make(seed, name=name):
            fit = many_signals(SIGNALS[name]) if name in SIGNALS else gate.made_fit(name)

            def one():
                with threadpool_limits(1):
                    return fit()

            return {"one thread": one, "default": fit}, None

        least = GAINS.get(name, 1 / 1.2)
        yield Race(name, make, limits={"default": least}, elapsed=True, limited=False)


# -- the constants of auto's cost model ------------------------------------------------------------------

FILE = Path(tuning.__file__)  # of the constants
NUMBER = r"[0-9][0-9_.]*(?:e[+-]?[0-9]+)?"


def written(text, costs):
    """The text of `tuning.py` with these numbers, by name, in place of those that it has."""
    for name, cost in costs.items():
        line = re.compile(rf"^( *{name}(?:: float)? = ){NUMBER}", re.MULTILINE)
        text, found = line.subn(rf"\g<1>{float(f'{cost:.2g}')!r}", text)
        if found != 1:
            raise ValueError(f"{name} stands {found} times in {FILE.name}, not once")
    return text


def products(quick, seconds):
    rng, (n, d) = np.random.default_rng(0), sized(quick, 4000, 8000)
    large, small = rng.standard_normal((n, d)), rng.standard_normal((400, 900))
    r, sparse = rng.standard_normal(n), sp.random_array((n, d), density=0.01, format="csr", rng=rng)
    designs = as_design(large), as_design(small), as_design(sparse)
    one, few, many = (
        seconds(lambda m=m: designs[0].product(rng.standard_normal((n, m)) if m > 1 else r))
        for m in (1, 4, 32)
    )
    each, stored = (many - few) / 28 / one, seconds(lambda: designs[2].product(r))
    sixteen = seconds(lambda: designs[2].product(rng.standard_normal((n, 16))))
    line, g = rng.standard_normal((2, 10_000))
    return {
        "byte": one / large.nbytes * 1e9,
        "cached_byte": seconds(lambda: designs[1].product(small[:, 0]), 50) / small.nbytes * 1e9,
        "sparse_entry": stored / sparse.nnz * 1e9,
        "multi_residual": few / one - 4 * each,
        "per_residual": each,
        "SPARSE_SHARE": sixteen / stored / 16,
        "axpy": seconds(lambda: daxpy(line, g, a=0.5), 100) / 10_000 * 1e9,
        "gather": seconds(lambda: designs[0].store.take(np.arange(8))) / (8 * n) * 1e9,
    }


def codes_of_x(quick, seconds):
    X, y, _ = signal(*sized(quick, 4000, 8000), 30)
    design, per_entry = as_design(X), 1e9 / X.size
    build = seconds(lambda: as_design(X, check=False).codes())
    fine = seconds(lambda: as_design(X, check=False).codes(fine=True)) - build
    codes = seconds(lambda: design.codes().estimate(y))
    target = (seconds(lambda: design.codes().estimate(X[:, :3].copy())) - codes) / 2
    way = np.linspace(y, y - X[:, :32] @ (X[:, :32].T @ y), 48)
    path = seconds(lambda: design.codes().path_products(way)) / 48
    names = "encode_entry", "encode_second_byte", "code_product", "target", "path_code_product"
    return {name: cost * per_entry for name, cost in zip(names, (build, fine, codes, target, path))}


def steps(repeats):
    """What a step costs more than an exact one where X costs nothing: fits of 30 steps less those of 5.

    That of certified selection with another loss than squared, where every step reads the codes.
    """
    X, y, _ = signal(60, 40, 20, snr=0.0)
    pairs = (("exact", "squared"), ("gram", "squared"), ("exact", "huber"), ("certified", "huber"))
    keys = [(s, loss, k) for s, loss in pairs for k in (5, 30)]
    fits = {key: lambda s=key[0], loss=key[1], k=key[2]: minimize(X, y, OMP(k), s, loss=loss) for key in keys}
    times, _ = best_times(fits, 4 * repeats)
    step = {(s, loss): (times[s, loss, 30] - times[s, loss, 5]) / 25 * 1e9 for s, loss in pairs}
    gram = step["gram", "squared"] - step["exact", "squared"]
    return {"gram_step": gram, "codes_step": step["certified", "huber"] - step["exact", "huber"]}


def costs(o):
    """Print each constant beside the number in the file; `--write` writes them there, two digits each.

    Measured with warm kernels on one thread: nanoseconds per entry (of X, or of what the name says), except
    where a ratio or seconds are meant.
    """

    def seconds(function, times=1):
        function()
        return best_times({"it": lambda: [function() for _ in range(times)]}, o.repeats)[0]["it"] / times

    loading = {"LOAD_KERNELS": min(first_answers(CALLS["certified"], 1 + o.repeats))}
    measured = products(o.quick, seconds) | codes_of_x(o.quick, seconds) | steps(o.repeats) | loading
    for name, value in measured.items():
        present = getattr(tuning, name) if name.isupper() else getattr(tuning.COSTS, name)
        print(f"{name:<16}{value:12.4g}   {present:g} in the file")
    if o.write:
        # A step may come out faster than an exact one, which no cost can express.
        least = {name: max(value, 0.0) for name, value in measured.items()}
        FILE.write_text(written(FILE.read_text("utf-8"), least), "utf-8")
    return 0
