"""X larger than memory in one `.npy` file: seconds, bytes read and memory of selectors on it.

    python benchmarks/files.py make /data/x.npy --rows 60000 --columns 25000 --order C
    python benchmarks/files.py run /data/x.npy --selector certified --memory-limit 3GB [--noise]
    python benchmarks/files.py encode /data/x.npy --memory-limit 3GB

`make` writes Gaussian columns in pieces. `run` evicts the file from the page cache, fits 50 atoms on one
thread and prints one line of JSON: bytes of X read as the library and as the system count them (`rchar`,
codes on disk included), the most anonymous memory above what the process had after a small fit, and the
atoms. Targets are 50 atoms that stand out, or with `--noise` 30, so that 20 steps are in the noise.
"""

from __future__ import annotations

import argparse
import json
import os
import threading
import time
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from skpursuit import OMP, as_design, datasets, minimize
from skpursuit.data.memory import as_bytes

K = 50


def make(path: Path, rows: int, columns: int, order: str, seed: int) -> None:
    """Write a Gaussian matrix piece by piece, and 50 and 30 atoms as targets beside it."""
    rng = np.random.default_rng(seed)
    lines, length = (rows, columns) if order == "C" else (columns, rows)
    chosen = rng.choice(columns, K, replace=False)
    coef = rng.choice([-1.0, 1.0], K) * rng.uniform(1.0, 2.0, K)
    signals = np.zeros((2, rows))
    header = {"descr": "<f8", "fortran_order": order == "F", "shape": (rows, columns)}
    with open(path, "wb") as file:
        np.lib.format.write_array_header_2_0(file, header)
        step = max(1, 2**24 // length)
        for start in range(0, lines, step):
            block = rng.standard_normal((min(step, lines - start), length), dtype=np.float32).astype(float)
            block.tofile(file)
            for which, count in enumerate((K, 30)):
                some, weights = chosen[:count], coef[:count]
                if order == "C":
                    signals[which, start : start + len(block)] = block[:, some] @ weights
                else:
                    inside = (some >= start) & (some < start + len(block))
                    signals[which] += weights[inside] @ block[some[inside] - start]
    noise = rng.standard_normal(rows)
    targets = [signal + noise * np.linalg.norm(signal) / np.sqrt(10 * rows) for signal in signals]
    np.savez(path.with_suffix(".targets"), out=targets[0], noise=targets[1])


def evict(path: Path) -> None:
    """Have no page of a file in memory."""
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)


def status(field: str, path: str = "/proc/self/status", unit: int = 1024) -> int:
    """A number of the system about this process, in bytes."""
    with open(path) as lines:
        return unit * int(next(line.split()[1] for line in lines if line.startswith(field)))


class Peak(threading.Thread):
    """The most anonymous memory while it runs."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.before, self.most, self.ended = status("RssAnon"), 0, threading.Event()

    def run(self) -> None:
        """Look every 10 ms."""
        while not self.ended.wait(0.01):
            self.most = max(self.most, status("RssAnon") - self.before)


def run(path: Path, selector: str, limit: str, noise: bool, k: int) -> dict:
    """One fit of an evicted file."""
    small, target, _ = datasets.make_sparse_signal(2000, 4500, 5, random_state=0)
    for order in "CF":  # loads the kernels
        minimize(np.asarray(small, order=order), target, OMP(n_nonzero_coefs=20), selector)
    with np.load(path.with_suffix(".targets.npz")) as targets:
        y = targets["noise" if noise else "out"]
    evict(path)
    peak, read, began = Peak(), status("rchar", "/proc/self/io", 1), time.perf_counter()
    peak.start()
    with threadpool_limits(1):
        design = as_design(path, memory_limit=limit)
        result = minimize(design, y, OMP(n_nonzero_coefs=k), selector)
    seconds = time.perf_counter() - began
    peak.ended.set()
    size, loaded = os.path.getsize(path), design.store.loaded_bytes
    told = status("rchar", "/proc/self/io", 1) - read
    return {
        "file": path.name,
        "selector": result.selector,
        "noise": noise,
        "seconds": round(seconds, 1),
        "reads": round(loaded / size, 3),
        "rchar": round(told / size, 3),
        "codes_read": round(getattr(design.store, "code_bytes", 0) / size, 3),
        "peak_mb": peak.most // 2**20,
        "limit_mb": as_bytes("limit", limit) // 2**20,
        "atoms": int(np.int64(np.abs(hash(tuple(result.support.tolist()))) % 10**9)),
        "n": len(result.support),
        "slowest_steps": sorted((round(r.seconds, 2) for r in result.history), reverse=True)[:5],
    }


def encode(path: Path, limit: str) -> dict:
    """The pass that makes codes."""
    as_design(np.random.default_rng(0).standard_normal((2048, 512))).codes(fine=True)
    evict(path)
    with threadpool_limits(1):
        design, began = as_design(path, memory_limit=limit), time.perf_counter()
        design.codes(fine=True)
        seconds = time.perf_counter() - began
    size = os.path.getsize(path)
    return {"file": path.name, "seconds": round(seconds, 1), "GB_per_s": round(size / seconds / 1e9, 2)}


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["make", "run", "encode"])
    parser.add_argument("path", type=Path)
    parser.add_argument("--rows", type=int, default=60000)
    parser.add_argument("--columns", type=int, default=25000)
    parser.add_argument("--order", choices=["C", "F"], default="C")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--selector", default="certified")
    parser.add_argument("--memory-limit", default="3GB")
    parser.add_argument("--noise", action="store_true")
    parser.add_argument("--atoms", type=int, default=K)
    given = parser.parse_args()
    if given.what == "make":
        make(given.path, given.rows, given.columns, given.order, given.seed)
    elif given.what == "run":
        print(json.dumps(run(given.path, given.selector, given.memory_limit, given.noise, given.atoms)))
    else:
        print(json.dumps(encode(given.path, given.memory_limit)))


if __name__ == "__main__":
    main()
