"""What happens to a fit on a Dask cluster when workers or the scheduler die, stop or run out of memory.

    python benchmarks/dask_faults.py kill --fits 10 --seed 0   # kill -9 of a random worker at a random moment
    python benchmarks/dask_faults.py lost   # all workers dead, one stopped, scheduler dead
    python benchmarks/dask_faults.py memory   # what the client needs
    python benchmarks/dask_faults.py beyond   # what workers need for an X of twice their limits
    python benchmarks/dask_faults.py restart   # a client that starts again from a checkpoint
    python benchmarks/dask_faults.py workers   # 1, 2 and 3 workers
    python benchmarks/dask_faults.py trips   # what a trip costs

With `--limit 2MB` the rows of the basis are in a file. `--loss logistic` fits classes in these scenes.

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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import dask
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

from skpursuit import OMP, Checkpoint, as_design, minimize
from skpursuit.data.cluster.dask_client import ClusterError

COLUMNS, CHUNK, ATOMS = 2000, 2048, 30
LIMIT = "2GB"  # of the client
LOSS = "squared"


def chunk(number: int, columns: int, rows: int) -> np.ndarray:
    """Some rows of X; the first columns carry y."""
    return np.random.default_rng(number).standard_normal((rows, columns))


def make_x(chunks: int, columns: int = COLUMNS, rows: int = CHUNK) -> da.Array:
    """An X of `chunks` chunks that no process holds."""
    made = dask.delayed(chunk, pure=True)
    parts = [da.from_delayed(made(k, columns, rows), (rows, columns), np.float64) for k in range(chunks)]
    return da.concatenate(parts)


def make_y(chunks: int, columns: int = COLUMNS, rows: int = CHUNK) -> np.ndarray:
    """Targets of 30 columns and noise, or their signs."""
    parts = [chunk(k, columns, rows)[:, : ATOMS * 7 : 7] @ (1.0 + np.arange(ATOMS)) for k in range(chunks)]
    y = np.concatenate(parts)
    y += np.random.default_rng(1).standard_normal(len(y)) * 0.3 * y.std()
    return y if LOSS == "squared" else np.sign(y)


def cluster(workers: int, memory: str = "2GB") -> tuple[LocalCluster, Client]:
    """A cluster of processes on this machine, on which workers that died are given up after 10 s."""
    dask.config.set({"distributed.comm.timeouts.connect": "10s"})
    made = LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        memory_limit=memory,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        worker_dashboard_address="127.0.0.1:0",
        silence_logs="CRITICAL",
    )
    return made, Client(made)


def bits(result) -> str:
    """A digest of all that must be equal."""
    parts = result.support.tobytes(), result.coef.tobytes(), np.float64(result.objective).tobytes()
    return hashlib.sha256(b"".join(parts)).hexdigest()[:16]


def fit(X, y, **more):
    """The fit of all experiments."""
    return minimize(
        as_design(X, memory_limit=LIMIT), y, OMP(n_nonzero_coefs=ATOMS), "certified", LOSS, **more
    )


def kill(options) -> None:
    """Fits during which a worker is killed; a new one takes its place before the next fit."""
    made, draw = Processes(2), random.Random(options.seed)
    X, y = make_x(20), make_y(20)
    whole, times = bits(fit(X, y)), []
    for _ in range(2):
        began = time.perf_counter()
        assert bits(fit(X, y)) == whole
        times.append(time.perf_counter() - began)
    usual, slowest, equal, struck = min(times), 0.0, 0, 0
    while struck < options.fold_fits:
        moment, victim, over = draw.uniform(0.0, 0.9 * usual), draw.choice(made.workers), threading.Event()
        hit: list[subprocess.Popen] = []

        def strike() -> None:
            if not over.wait(moment):
                victim.kill(), hit.append(victim)

        thread, began = threading.Thread(target=strike), time.perf_counter()
        thread.start()
        same = bits(fit(X, y)) == whole
        spent = time.perf_counter() - began
        over.set(), thread.join()
        if not hit:
            continue  # the fit was over first
        struck, equal, slowest = struck + 1, equal + same, max(slowest, spent - usual)
        told = "equal" if same else "OTHER BITS"
        print(f"fit {struck}: killed after {moment:.1f} s, {spent:.1f} s in all, {told}", flush=True)
        made.replace(victim)
    print(f"{equal} of {struck} equal; a fit takes {usual:.1f} s, slowest recovery {slowest:.1f} s more")
    made.close()


class Processes:
    """A scheduler and workers as processes of their own, which nobody starts again."""

    def __init__(self, workers: int) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.file = Path(self.folder.name) / "scheduler.json"
        self.scheduler = self._start("scheduler", "--host", "127.0.0.1", "--port", "0")
        self.workers = [self.worker() for _ in range(workers)]
        self.client = Client(scheduler_file=str(self.file), timeout=60)
        self.client.wait_for_workers(workers, timeout=60)

    def _start(self, what: str, *options: str) -> subprocess.Popen:
        command = [sys.executable, "-m", "dask", what, "--scheduler-file", str(self.file), *options]
        command += ["--dashboard-address", "127.0.0.1:0"]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def worker(self) -> subprocess.Popen:
        """One more worker."""
        more = "--host", "127.0.0.1", "--no-nanny", "--nthreads", "1", "--memory-limit", "2GB"
        return self._start("worker", *more, "--local-directory", self.folder.name)

    def replace(self, victim: subprocess.Popen) -> None:
        """A new worker for one that was killed, once the scheduler has noticed that."""
        victim.wait()
        while len(self.client.nthreads()) == len(self.workers):
            time.sleep(0.1)
        self.workers[self.workers.index(victim)] = self.worker()
        self.client.wait_for_workers(len(self.workers), timeout=60)

    def close(self) -> None:
        """End all that still runs."""
        self.client.close(timeout=2)
        for process in [*self.workers, self.scheduler]:
            process.kill()
            process.wait()
        self.folder.cleanup()


def lost(options) -> None:
    """A cluster that does not come back: an error in time, and a checkpoint to go on from."""
    X, y = make_x(10), make_y(10)
    first = Processes(2)
    whole = bits(fit(X, y))
    first.close()
    victims = {
        "all workers dead": lambda made: [(process, signal.SIGKILL) for process in made.workers],
        "one worker stopped": lambda made: [(made.workers[0], signal.SIGSTOP)],
        "scheduler dead": lambda made: [(made.scheduler, signal.SIGKILL)],
    }
    dask.config.set({"skpursuit.deadline": 15, "skpursuit.no-workers": 10})
    for what, chosen in victims.items():
        made = Processes(2)
        path = Path(made.folder.name) / "checkpoint"
        struck: list[float] = []

        def strike(record) -> None:
            if record.iteration == ATOMS // 2:
                struck.append(time.perf_counter())
                for process, sign in chosen(made):
                    process.send_signal(sign)

        try:
            fit(X, y, checkpoint=Checkpoint(path, interval=1e9), callback=strike)
            print(f"{what}: NO ERROR")
        except ClusterError as error:
            print(f"{what}: after {time.perf_counter() - struck[0]:.1f} s: {error}")
        kept = path.read_bytes()
        made.close()
        again = Processes(2)
        path = Path(again.folder.name) / "checkpoint"
        path.write_bytes(kept)
        result = fit(X, y, checkpoint=path)
        print(f"{what}: went on, {'equal' if bits(result) == whole else 'OTHER BITS'}")
        again.close()


def workers(options) -> None:
    """The same bits on any number of workers, and in this process."""
    X, y = make_x(20), make_y(20)
    found = {}
    for count in (1, 2, 3):
        made, client = cluster(count)
        began = time.perf_counter()
        found[count] = bits(fit(X, y))
        print(f"{count} workers: {found[count]}, {time.perf_counter() - began:.1f} s")
        client.close(), made.close()
    found[0] = bits(fit(X, y))
    print(f"no cluster: {found[0]}; {'equal' if len(set(found.values())) == 1 else 'OTHER BITS'}")


def restart(options) -> None:
    """A client that is killed, and another one that goes on from its checkpoint."""
    X, y = make_x(10), make_y(10)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "checkpoint"
        told = "--path", str(path), "--limit", LIMIT, "--loss", LOSS
        child = subprocess.Popen([sys.executable, __file__, "child", *told])
        while not path.exists():
            time.sleep(0.05)
        time.sleep(1.0)
        child.kill(), child.wait()
        made, client = cluster(2)
        whole, steps = fit(X, y), []
        result = fit(X, y, checkpoint=path, callback=lambda record: steps.append(record.iteration))
        print(f"went on from step {steps[0]}: {'equal' if bits(result) == bits(whole) else 'OTHER BITS'}")
        client.close(), made.close()


def child(options) -> None:
    """A client that saves every step."""
    cluster(2)
    slow = lambda record: time.sleep(0.1)  # noqa: E731
    fit(make_x(10), make_y(10), checkpoint=Checkpoint(options.path, interval=0.0), callback=slow)


def anonymous(pid: int | str = "self") -> float:
    """Anonymous memory of a process in MB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("RssAnon"):
            return int(line.split()[1]) / 1024
    return 0.0


@contextmanager
def peaks(processes: Callable[[], list[int]]) -> Iterator[dict[int, float]]:
    """The most anonymous memory that processes have meanwhile, by their numbers, in MB."""
    tops: dict[int, float] = {}
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.02):
            for pid in processes():
                tops[pid] = max(tops.get(pid, 0.0), anonymous(pid))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield tops
    finally:
        over.set(), thread.join()


def memory(options) -> None:
    """What the client needs for an X of 640 MB."""
    chunks = 20
    y, small = make_y(chunks), make_x(2)
    made, client = cluster(2)
    fit(small, y[: small.shape[0]])  # imports, kernels and connections are there
    before, X = anonymous(), make_x(chunks)
    with peaks(lambda: [os.getpid()]) as tops:
        fit(X, y)
    print(f"client: X has {X.nbytes / 1e6:.0f} MB, it grew by {tops[os.getpid()] - before:.0f} MB")
    client.close(), made.close()


def beyond(options) -> None:
    """What two workers need for an X of twice their limits: all of their memory, as Dask counts it."""
    limit = 600  # MB
    chunks = 2 * 2 * limit * 10**6 // (CHUNK * COLUMNS * 8)
    made, client = cluster(2, f"{limit}MB")
    X, y, began, most = make_x(chunks), make_y(chunks), time.perf_counter(), {}

    def look() -> list[int]:
        for worker in list(made.scheduler.workers.values()):
            most[worker.address] = max(most.get(worker.address, 0.0), worker.memory.process / 1e6)
        return []

    with peaks(look):
        result = fit(X, y)
    used, seconds = ", ".join(f"{top:.0f}" for top in most.values()), time.perf_counter() - began
    print(
        f"workers: X has {X.nbytes / 1e6:.0f} MB, limits are {limit} MB each, most used {used} MB; ", end=""
    )
    print(f"{len(most)} workers in all, {seconds:.0f} s, {len(result.support)} atoms")
    client.close(), made.close()


def trips(options) -> None:
    """Seconds of a trip by the number of tasks and the size of what is sent."""
    made, client = cluster(2, "6GB")
    for tiles in (2, 10, 50):
        store = as_design(make_x(tiles, 64, 2**16)).store
        for width in (1, 8):
            r = np.ones((store.shape[0], width))
            store.product(r)
            began = time.perf_counter()
            for _ in range(5):
                store.product(r)
            spent = (time.perf_counter() - began) / 5
            print(f"{len(store.places)} tasks, {r.nbytes / 1e6:.1f} MB sent: {1000 * spent:.0f} ms a trip")
    client.close(), made.close()


PARTS = {part.__name__: part for part in (kill, lost, memory, beyond, restart, child, workers, trips)}

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=sorted(PARTS))
    parser.add_argument("--fits", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--path", default="")
    parser.add_argument("--limit", default=LIMIT)
    parser.add_argument("--loss", default=LOSS)
    chosen = parser.parse_args()
    LIMIT, LOSS = chosen.limit, chosen.loss
    PARTS[chosen.what](chosen)
