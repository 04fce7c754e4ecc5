"""What happens to a fit on a Dask cluster when workers or the scheduler die, stop or run out of memory.

    python benchmarks/dask_faults.py kill --fits 10 --seed 0   # --help lists the other scenes, `all` is all

`--write` puts what was seen into docs/figures/dask.csv. With `--limit 2MB` the basis is in a file.
X is made in chunks by a function of their number, as a reader of files would make them.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

os.environ["DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT"] = "10s"  # workers give up one that died after that

import dask
import dask.array as da
import numpy as np
from common import memory_of, peaks, record
from distributed import Client

from skpursuit import OMP, Checkpoint, as_design, minimize
from skpursuit.data.cluster.dask_client import ClusterError

COLUMNS, CHUNK, ATOMS = 2000, 2048, 30
LIMIT = "2GB"  # of the client


def chunk(number: int, columns: int, rows: int) -> np.ndarray:
    """Some rows of X; the first columns carry y."""
    return np.random.default_rng(number).standard_normal((rows, columns))


def make_x(chunks: int, columns: int = COLUMNS, rows: int = CHUNK) -> da.Array:
    """An X of `chunks` chunks that no process holds."""
    made = dask.delayed(chunk, pure=True)
    parts = [da.from_delayed(made(k, columns, rows), (rows, columns), np.float64) for k in range(chunks)]
    return da.concatenate(parts)


def make_y(chunks: int) -> np.ndarray:
    """Targets of 30 columns and noise."""
    parts = [chunk(k, COLUMNS, CHUNK)[:, : ATOMS * 7 : 7] @ (1.0 + np.arange(ATOMS)) for k in range(chunks)]
    y = np.concatenate(parts)
    return y + np.random.default_rng(1).standard_normal(len(y)) * 0.3 * y.std()


class Cluster:
    """A scheduler and workers as processes of their own, which nobody starts again, and a client."""

    def __init__(self, workers: int, memory: str = "2GB") -> None:
        self.folder, self.memory = tempfile.TemporaryDirectory(), memory
        self.file = Path(self.folder.name) / "scheduler.json"
        self.scheduler = self._start("scheduler", "--port", "0")
        self.workers = [self.worker() for _ in range(workers)]
        self.client = Client(scheduler_file=str(self.file), timeout=60)
        self.client.wait_for_workers(workers, timeout=60)

    def _start(self, what: str, *options: str) -> subprocess.Popen:
        command = [sys.executable, "-m", "dask", what, "--scheduler-file", str(self.file), *options]
        command += ["--host", "127.0.0.1", "--dashboard-address", "127.0.0.1:0"]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def worker(self) -> subprocess.Popen:
        """One more worker."""
        more = "--no-nanny", "--nthreads", "1", "--memory-limit", self.memory
        return self._start("worker", *more, "--local-directory", self.folder.name)

    def replace(self, victim: subprocess.Popen) -> None:
        """A new worker for one that was killed, once the scheduler has noticed that."""
        victim.wait()
        while len(self.client.nthreads()) == len(self.workers):
            time.sleep(0.1)
        self.workers[self.workers.index(victim)] = self.worker()
        self.client.wait_for_workers(len(self.workers), timeout=60)

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_) -> None:
        self.client.close(timeout=2)
        for process in [*self.workers, self.scheduler]:
            process.kill()
            process.wait()
        self.folder.cleanup()


def bits(result) -> str:
    """A digest of all that must be equal."""
    parts = result.support.tobytes(), result.coef.tobytes(), np.float64(result.objective).tobytes()
    return hashlib.sha256(b"".join(parts)).hexdigest()[:16]


def fit(X, y, **more):
    """The fit of all experiments."""
    return minimize(as_design(X, memory_limit=LIMIT), y, OMP(ATOMS), "certified", **more)


def kill(options):
    """Fits during which a worker is killed; a new one takes its place before the next fit."""
    draw, X, y = random.Random(options.seed), make_x(20), make_y(20)
    with Cluster(2) as made:
        whole, times = bits(fit(X, y)), []
        for _ in range(2):
            began = time.perf_counter()
            assert bits(fit(X, y)) == whole
            times.append(time.perf_counter() - began)
        usual, slowest, equal, struck = min(times), 0.0, 0, 0
        while struck < options.fits:
            moment, victim = draw.uniform(0.0, 0.9 * usual), draw.choice(made.workers)
            blow, began = threading.Timer(moment, victim.kill), time.perf_counter()
            blow.start()
            same = bits(fit(X, y)) == whole
            spent = time.perf_counter() - began
            blow.cancel(), blow.join()
            if spent < moment and victim.poll() is None:
                continue  # the fit was over first
            struck, equal, slowest = struck + 1, equal + same, max(slowest, spent - usual)
            made.replace(victim)
    yield {"method": f"seed {options.seed}", "fits": struck, "equal": equal, "s": usual, "s more": slowest}


def lost(options):
    """A cluster that does not come back: an error in time, and a checkpoint to go on from."""
    X, y = make_x(10), make_y(10)
    with Cluster(2):
        whole = bits(fit(X, y))
    victims = {
        "all workers dead": lambda made: [(process, signal.SIGKILL) for process in made.workers],
        "one worker stopped": lambda made: [(made.workers[0], signal.SIGSTOP)],
        "scheduler dead": lambda made: [(made.scheduler, signal.SIGKILL)],
    }
    dask.config.set({"skpursuit.deadline": 15, "skpursuit.no-workers": 10})
    with tempfile.TemporaryDirectory() as folder:
        for what, chosen in victims.items():
            path, struck = Path(folder) / what.replace(" ", "-"), []

            def strike(record) -> None:
                if record.iteration == ATOMS // 2:
                    struck.append(time.perf_counter())
                    for process, sign in chosen(made):
                        process.send_signal(sign)

            with Cluster(2) as made:
                try:
                    fit(X, y, checkpoint=Checkpoint(path, interval=1e9), callback=strike)
                    told = {"error": "none"}
                except ClusterError as error:
                    told = {"s": time.perf_counter() - struck[0], "error": str(error).partition(".")[0]}
            with Cluster(2):
                result = fit(X, y, checkpoint=path)
            yield {"method": what, "fits": 1, "equal": int(bits(result) == whole), **told}


def memory(options):
    """What the client needs for an X of 640 MB."""
    X, y, small = make_x(20), make_y(20), make_x(2)
    with Cluster(2):
        fit(small, y[: small.shape[0]])  # imports, kernels and connections are there
        before = memory_of(os.getpid(), "RssAnon")
        with peaks([os.getpid()], "RssAnon") as tops:
            fit(X, y)
    yield {"method": "growth of the client", "MB of X": X.nbytes / 1e6, "MB": tops[0] - before}


def beyond(options):
    """What two workers need for an X of twice their limits."""
    limit = 600  # MB
    chunks = 2 * 2 * limit * 10**6 // (CHUNK * COLUMNS * 8)
    X, y, began = make_x(chunks), make_y(chunks), time.perf_counter()
    with Cluster(2, f"{limit}MB") as made, peaks([one.pid for one in made.workers], "VmRSS") as tops:
        atoms = len(fit(X, y).support)
    seconds = time.perf_counter() - began
    yield {"method": f"two workers of {limit} MB", "MB of X": X.nbytes / 1e6, "MB": max(tops), "s": seconds,
           "atoms": atoms}  # fmt: skip


def beside(options):
    """An array on this machine against two workers that have its chunks in memory; best of two."""
    for chunks in (3, 20, 31):
        lazy, y = make_x(chunks), make_y(chunks)
        with Cluster(2) as made:
            for where, X in (("array", lazy.compute()), ("two workers", made.client.persist(lazy))):
                for selector in ("exact", "certified"):
                    times = []
                    for _ in range(2):
                        began = time.perf_counter()
                        design = as_design(X, memory_limit=LIMIT)
                        minimize(design, y, OMP(ATOMS), selector)
                        times.append(time.perf_counter() - began)
                    row = {"method": f"{lazy.nbytes / 1e6:.0f} MB, {selector}, {where}", "s": min(times)}
                    yield row | ({} if where == "array" else {"trips": design.store.cluster.round_trips})


PARTS = {part.__name__: part for part in (kill, lost, memory, beyond, beside)}

if __name__ == "__main__":
    about = "\n".join(f"{name:10}{part.__doc__}" for name, part in PARTS.items())
    parser = argparse.ArgumentParser(formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("what", choices=["all", *sorted(PARTS)], metavar="SCENE", help=about)
    parser.add_argument("--fits", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", default=LIMIT)
    parser.add_argument("--write", action="store_true")
    chosen = parser.parse_args()
    LIMIT = chosen.limit
    for name in [name for name in PARTS if chosen.what in (name, "all")]:
        for row in PARTS[name](chosen):
            print(name, row, flush=True)
            if chosen.write:
                record("dask", [{"problem": name, **row}])
