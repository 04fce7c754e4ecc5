"""What the benchmarks share: the environment of a measurement, timing in turns, data and rivals.

Import this module before NumPy. It chooses the kernels of OpenBLAS by the processor, so that exact selection
is as fast as it can be (OpenBLAS does not know some virtual processors and then takes slow kernels).
"""

from __future__ import annotations

import csv
import io
import os
import platform
import re
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

CPU = Path("/proc/cpuinfo").read_text("ascii") if os.path.exists("/proc/cpuinfo") else ""
PROCESSOR = (re.findall(r"model name\s*: (.*)", CPU) or [platform.processor()])[0]
if "avx" in CPU and "numpy" not in sys.modules:
    os.environ.setdefault("OPENBLAS_CORETYPE", "SkylakeX" if "avx512f" in CPU else "Haswell")
CORETYPE = os.environ.get("OPENBLAS_CORETYPE", "by OpenBLAS")

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

THREADS = int(os.environ.get("OMP_NUM_THREADS", "1"))
#: A virtual machine may give memory back to its host a second or two after it was freed, and then takes 2 ms
#: per megabyte to get it again (0.1 otherwise). This much is touched before each run, so that no function
#: pays for how long the others took. BALLAST=0 in the environment turns that off.
BALLAST = int(os.environ.get("BALLAST", "600000000"))
#: Whether other programs run on this machine while this one begins.
LOAD = Path("/proc/loadavg")
RUNNING = [int(LOAD.read_text("ascii").split()[3].split("/")[0]) for _ in range(200 if LOAD.exists() else 0)]
MACHINE = "busy" if RUNNING and statistics.median(RUNNING) > 1 else "quiet"
ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("SKPURSUIT_DATA", Path(__file__).parents[2] / "shared" / "data"))
Function = Callable[[], Any]


class Mismatch(Exception):
    """A result that is not what it must be."""


@dataclass(frozen=True)
class Race:
    """Functions that do the same work. They are timed in turns, and compared with the fastest of `versus`."""

    name: str
    make: Callable[[int], tuple[dict[str, Function], Any]]  # of a seed: functions, facts about the data
    versus: tuple[str, ...] = ()  # the first function if there is none
    figures: Callable[[str, dict[str, Any], Any], dict[str, float]] = lambda name, results, facts: {}
    limits: dict[str, float] = field(default_factory=dict)  # least ratios, by function
    elapsed: bool = False  # time on the clock instead of processor time
    limited: bool = True  # to the number of threads in OMP_NUM_THREADS


def record(case: str, rows: list[dict[str, Any]]) -> None:
    """Put rows into docs/figures/CASE.csv, each in place of that of its problem, method and threads.

    `python docs/figures.py` writes them into the pages. Floats keep four digits.
    """
    path = ROOT / "docs" / "figures" / f"{case}.csv"
    git = ["git", "rev-parse", "--short=8", "HEAD"]
    commit = subprocess.run(git, cwd=ROOT, capture_output=True, text=True).stdout.strip()
    stamp = {"threads": THREADS, "processor": PROCESSOR, "blas": CORETYPE, "commit": commit}
    stamp |= {"machine": MACHINE, "date": date.today().isoformat()}
    table: dict[tuple[str, ...], dict[str, Any]] = {}
    with path.open(encoding="utf-8", newline="") if path.exists() else io.StringIO() as lines:
        for row in [*csv.DictReader(lines), *(row | stamp for row in rows)]:
            short = {key: f"{v:.4g}" if isinstance(v, float) else str(v) for key, v in row.items()}
            table[tuple(short.get(key, "") for key in ("problem", "method", "threads"))] = short
    names = dict.fromkeys(key for row in table.values() for key in row if key not in stamp) | stamp
    with path.open("w", encoding="utf-8", newline="") as lines:
        writer = csv.DictWriter(lines, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(table.values())


def best_times(
    functions: dict[str, Function], repeats: int = 3, elapsed: bool = False, limited: bool = True
) -> tuple[dict[str, float], dict[str, Any]]:
    """Seconds of the fastest run of each function, and its last result; the functions take turns."""
    clock = time.perf_counter if elapsed or THREADS > 1 else time.process_time
    best, results = dict.fromkeys(functions, float("inf")), {}
    for _ in range(repeats):
        for name, function in functions.items():
            if limited:
                threadpool_limits(THREADS)  # of every BLAS that is loaded by now
            np.empty(BALLAST, np.uint8)[::4096] = 1
            began = clock()
            results[name] = function()
            best[name] = min(best[name], clock() - began)
    return best, results


def sized(quick: bool, *sizes: int) -> tuple[int, ...]:
    """The sizes, or small ones."""
    return tuple(max(40, size // 25) for size in sizes) if quick else sizes


def memory_of(pid: int, what: str) -> float:
    """Memory of a process in MB, of a kind that the system knows."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(what):
            return int(line.split()[1]) * 1024 / 1e6
    return 0.0


@contextmanager
def peaks(pids: list[int], what: str) -> Iterator[list[float]]:
    """The most memory that processes have meanwhile, in MB, by their order."""
    tops, over = [0.0] * len(pids), threading.Event()

    def watch() -> None:
        while not over.wait(0.02):
            tops[:] = [max(top, memory_of(pid, what)) for top, pid in zip(tops, pids)]

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield tops
    finally:
        over.set(), thread.join()


def rchar() -> int:
    """Bytes that this process has read, as the system counts them."""
    with open("/proc/self/io") as lines:
        return int(next(line.split()[1] for line in lines if line.startswith("rchar")))


def counted_fit(
    path: str | Path, y: np.ndarray, k: int, limit: str | int, selector: str, axis: int = 0
) -> tuple[int, int, Any]:
    """Bytes that OMP on a file reports, those that the system counted, and the result."""
    from skpursuit import OMP, as_design, minimize

    before = rchar()
    design = as_design(path, memory_limit=limit, axis=axis)
    opened = design.store.file_bytes
    result = minimize(design, y, OMP(k), selector)
    return opened + result.file_bytes, rchar() - before, result


def signal(
    n: int, d: int, k: int = 50, seed: int = 0, order: str = "C", **given: Any
) -> tuple[Any, Any, Any]:
    """Columns of unit norm, k of which make y with noise; X, y and the coefficients."""
    from skpursuit import datasets

    X, y, w = datasets.make_sparse_signal(n, d, k, random_state=seed, **given)
    return np.asarray(X, order=order), y, w


def with_signal(X: np.ndarray, seed: int, k: int = 50) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Gaussian coefficients for k columns of X, and noise 3 dB below."""
    rng = np.random.default_rng([1, seed])
    w = np.zeros(X.shape[1])
    w[rng.choice(len(w), min(k, len(w)), replace=False)] = rng.standard_normal(min(k, len(w)))
    signal, noise = X @ w, rng.standard_normal(len(X))
    return X, signal + noise * np.linalg.norm(signal) / np.linalg.norm(noise) * 10 ** (-3 / 20), w


def chain(rng: np.random.Generator, n: int, d: int, rho: float) -> np.ndarray:
    """Gaussian columns of which neighbours have correlation rho."""
    X = rng.standard_normal((n, d))
    for j in range(1, d):
        X[:, j] = rho * X[:, j - 1] + np.sqrt(1 - rho**2) * X[:, j]
    return X


def near_copies(rng: np.random.Generator, n: int, d: int, less: float = 1e-3) -> np.ndarray:
    """Every second column is a copy of its neighbour but for a thousandth of another one."""
    X = rng.standard_normal((n, d))
    X[:, 1::2] = X[:, : d - 1 : 2] + less * X[:, 1::2]
    return X


ENTRIES: dict[str, Callable[[np.random.Generator, int, int], np.ndarray]] = {
    "AR(.7)": lambda rng, n, d: chain(rng, n, d, 0.7),
    "t(4)": lambda rng, n, d: rng.standard_t(4, (n, d)),
    "cauchy": lambda rng, n, d: rng.standard_cauchy((n, d)),
    "binary": lambda rng, n, d: (rng.random((n, d)) < 0.3).astype(float),
    "correlated": lambda rng, n, d: rng.standard_normal((n, d)) + 3.0 * rng.standard_normal((n, 1)),
    "near": near_copies,
}


def documents(
    classes: int, n: int = 2000, d: int = 10_000, words: int = 120
) -> tuple[sp.csr_array, np.ndarray]:
    """Unit rows of few words, common and rare ones, and the class of each."""
    rng = np.random.default_rng(0)
    rows = np.repeat(np.arange(n, dtype=np.int32), words)
    columns = np.minimum((d ** rng.random(n * words)).astype(np.int32), d - 1)
    X = unit_rows(sp.csr_array((np.ones(n * words), (rows, columns)), shape=(n, d)))
    telling = rng.standard_normal((d, classes)) * (rng.random((d, 1)) < 0.02)
    return X, (X @ telling + 0.02 * rng.standard_normal((n, classes))).argmax(axis=1)


def collection(name: str) -> tuple[sp.csr_array, np.ndarray]:
    """Counts of words and the class of each document of a collection below the folder DATA."""
    z = np.load(DATA / "text" / f"{name}.npz")
    return sp.csr_array((z["data"], z["indices"], z["indptr"]), shape=z["shape"]), z["y"]


def unit_rows(X: sp.csr_array) -> sp.csr_array:
    """Rows scaled to norm 1; empty ones stay."""
    norms = np.sqrt(X.multiply(X).sum(axis=1))
    return sp.csr_array(X.multiply(1 / np.where(norms > 0, norms, 1.0)[:, None]))


def music(length: int = 1024) -> np.ndarray:
    """Pieces of a recording below the folder DATA, one in a row, or of made music; without silence."""
    from skpursuit.apps.studies.loaders import DataError, find_audio, make_music

    try:
        pieces = find_audio(DATA, length).pieces
    except DataError:
        pieces = make_music(4096, length).pieces
    return pieces[np.linalg.norm(pieces, axis=1) > 1e-3]


def least_penalty(size: Callable[[float], float], most: float, low: float, rounds: int) -> float:
    """The least penalty with which a size is at most that, by bisection of its power of ten, `low` to 0."""
    high = 0.0
    for _ in range(rounds):
        middle = (low + high) / 2
        low, high = (middle, high) if size(10**middle) > most else (low, middle)
    return 10**high


# -- rivals: functions without arguments, by name; those that are not installed are missing ----------------


def rivals(makers: dict[str, Callable[[], Function]]) -> dict[str, Function]:
    """The functions of the libraries that are installed."""
    made = {}
    for name, make in makers.items():
        try:
            made[name] = make()
        except ImportError as error:
            print(f"  ({name} is left out: {error}; pip install --group bench)")
    return made


def spams_omp(X: np.ndarray, Y: np.ndarray, k: int) -> Callable[[], Function]:
    """OMP of SPAMS, which returns empty codes of float32 data unless eps is given too."""

    def make() -> Function:
        import spams

        atoms, signals = np.asfortranarray(X), np.asfortranarray(Y.reshape(len(Y), -1))
        return lambda: spams.omp(signals, atoms, L=k, eps=0.0, numThreads=1)

    return make
