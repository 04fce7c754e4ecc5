"""X larger than memory in one `.npy` file: seconds, bytes read and memory of selectors on it.

    python benchmarks/files.py all /data --rows 60000 --columns 25000 --memory-limit 3GB --exact-steps 6
    python benchmarks/files.py make /data/c.npy --rows 60000 --columns 25000 --order C
    python benchmarks/files.py run /data/c.npy --selector certified --memory-limit 3GB [--noise]
    python benchmarks/files.py grid /data [--repeats 5]

`make` writes Gaussian columns in pieces. `run` evicts the file from the page cache, fits 50 atoms on one
thread and prints one line of JSON: bytes of X read as the library and as the system count them (`rchar`,
codes on disk included), the most anonymous memory above what the process had after a small fit, the speed of
the pass that encodes, and the atoms. Targets are 50 atoms that stand out, or with `--noise` 30, so that 20
steps are in the noise. `all` makes files in C and F order where there are none, measures how fast plain
`preadv` reads them, and runs certified, grouped exact (`gram`) and step-by-step exact selection, each in a
process of its own. Step-by-step exact selection reads X once for each step: `--exact-steps` of them are
measured, the others are taken to last as long as the median of these, and the table says so.

`grid` fits 10 atoms of an X of 80 MB in C and F order, to a signal and to noise, within several limits, and
compares `Result.file_bytes` with `rchar`, and the seconds of `auto` with those of the faster of exact and
certified selection (least of interleaved repeats, the file in the page cache). It fails where they differ by
more than 2 %, or `auto` takes more than 1.15 times as long.

A machine with more memory than the file keeps all of it in its page cache from the second read on, whatever
`memory_limit` says. `--machine 4.5GB` (as root, on Linux with control groups) gives each fit so much memory,
page cache included, so that a larger file is read from the disk every time.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import os
import subprocess
import sys
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
    encoded = 0.0
    with threadpool_limits(1):
        design = as_design(path, memory_limit=limit)
        if selector == "certified":  # which begins with this on X as tall as here
            design.codes(fine=True)
            encoded = time.perf_counter() - began
        result = minimize(design, y, OMP(n_nonzero_coefs=k), selector)
    seconds = time.perf_counter() - began
    peak.ended.set()
    size, loaded = os.path.getsize(path), design.store.file_reads[0].bytes
    told = status("rchar", "/proc/self/io", 1) - read
    return {
        "file": path.name,
        "selector": selector,
        "noise": noise,
        "steps": k,
        "seconds": round(seconds, 1),
        "step": float(np.median([record.seconds for record in result.history])),
        "encode_gb_s": round(size / encoded / 1e9, 2) if encoded else None,
        "reads": round(loaded / size, 3),
        "rchar": round(told / size, 3),
        "codes_read": round(design.store.file_reads[1].bytes / size, 3),
        "peak_mb": peak.most // 10**6,
        "limit_mb": as_bytes("limit", limit) // 10**6,
        "atoms": hashlib.sha256(result.support.tobytes()).hexdigest()[:8],
    }


def grid(folder: Path, repeats: int) -> bool:
    """A table of bytes and seconds on small files; whether all are as promised."""
    rng, fine = np.random.default_rng(0), True
    X, selectors = rng.standard_normal((20000, 500)), ("exact", "certified", "gram", "auto")
    targets = {"signal": X[:, ::50] @ rng.uniform(1.0, 2.0, 10) + 0.5 * rng.standard_normal(20000)}
    targets["noise"] = rng.standard_normal(20000)
    print(
        "order target  limit   seconds: " + " ".join(f"{name:>9}" for name in selectors) + "  ratio   MB read"
    )
    for order in "CF":
        path = folder / f"grid-{order}.npy"
        np.save(path, np.asarray(X, order=order))
        for selector in selectors:  # loads the kernels
            minimize(
                as_design(path, memory_limit="60MB"), targets["noise"], OMP(n_nonzero_coefs=10), selector
            )
        for (name, y), limit in itertools.product(targets.items(), ("20MB", "60MB", "100MB", "2GB")):
            seconds, read, wrong = dict.fromkeys(selectors, np.inf), {}, 0.0
            for selector in selectors * repeats:
                before, began = status("rchar", "/proc/self/io", 1), time.perf_counter()
                design = as_design(path, memory_limit=limit)
                opened = design.store.file_bytes
                result = minimize(design, y, OMP(n_nonzero_coefs=10), selector)
                seconds[selector] = min(seconds[selector], time.perf_counter() - began)
                true = status("rchar", "/proc/self/io", 1) - before
                read[selector] = opened + result.file_bytes
                wrong = max(wrong, abs(read[selector] - true) / true)
            ratio = seconds["auto"] / min(seconds["exact"], seconds["certified"])
            fine &= ratio <= 1.15 and wrong <= 0.02
            times = " ".join(f"{seconds[selector]:9.3f}" for selector in selectors)
            megabytes = " ".join(f"{read[selector] / 1e6:.0f}" for selector in selectors)
            print(
                f"{order:5} {name:7} {limit:>5} {times:>49} {ratio:6.2f}   {megabytes}, off by {wrong:.2%}",
                flush=True,
            )
        path.unlink()
    return fine


def plain_speed(path: Path, most: int = 3 * 10**9) -> float:
    """Bytes a second of `preadv` alone, of the first bytes of an evicted file."""
    evict(path)
    buffer, done, began = bytearray(8 * 2**20), 0, time.perf_counter()
    with open(path, "rb", buffering=0) as file:
        while done < most and (count := os.preadv(file.fileno(), [buffer], done)):
            done += count
    return done / (time.perf_counter() - began)


def measure_all(folder: Path, given: argparse.Namespace) -> None:
    """One table of everything."""
    head = "file  noise  selector   seconds  speedup  reads  rchar  codes read  peak MB  encode GB/s  atoms"
    for order in "CF":
        path = folder / f"{order.lower()}.npy"
        if not path.exists():
            make(path, given.rows, given.columns, order, given.seed)
        speed, limit = plain_speed(path) / 1e9, f"--memory-limit={given.memory_limit}"
        print(f"{path.name}: {os.path.getsize(path) / 1e9:.1f} GB, preadv alone {speed:.2f} GB/s\n{head}")
        steps = given.exact_steps or K
        command = [sys.executable, __file__, "run", str(path), limit]
        alone = run_apart([*command, "--selector=exact", f"--atoms={steps}"], given.machine)
        alone["seconds"] += (K - steps) * alone["step"]
        alone["reads"] += K - steps
        show(alone | {"atoms": f"({steps} steps measured)" if steps < K else alone["atoms"]}, alone)
        for noise in ([], ["--noise"]):
            for selector in ("gram", "certified"):
                show(run_apart([*command, f"--selector={selector}", *noise], given.machine), alone)


def run_apart(command: list[str], machine: str | None) -> dict:
    """One fit in a process of its own, which may have a part of the machine's memory."""
    if machine is None:
        return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    root = Path("/sys/fs/cgroup")
    old = root / "memory"  # control groups of version 1
    group = (old if old.exists() else root) / f"skpursuit-{os.getpid()}"
    group.mkdir()
    try:
        name = "memory.limit_in_bytes" if old.exists() else "memory.max"
        (group / name).write_text(str(as_bytes("machine", machine)))
        joined = ["sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh", *command]
        return json.loads(subprocess.run(joined, check=True, capture_output=True, text=True).stdout)
    finally:
        group.rmdir()


def show(row: dict, exact: dict) -> None:
    """One line of the table."""
    print(
        f"{row['file']:5} {'yes' if row['noise'] else 'no':>5}  {row['selector']:9} {row['seconds']:8.1f} "
        f"{exact['seconds'] / row['seconds']:8.1f} {row['reads']:6.2f} {row['rchar']:6.2f} "
        f"{row['codes_read']:11.2f} {row['peak_mb']:5}/{row['limit_mb']} "
        f"{row['encode_gb_s'] or '':>9}  {row['atoms']}",
        flush=True,
    )


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["all", "make", "run", "grid"])
    parser.add_argument("path", type=Path)
    parser.add_argument("--rows", type=int, default=60000)
    parser.add_argument("--columns", type=int, default=25000)
    parser.add_argument("--order", choices=["C", "F"], default="C")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--selector", default="certified")
    parser.add_argument("--memory-limit", default="3GB")
    parser.add_argument("--machine", help="memory of the machine that each fit is given, such as 4.5GB")
    parser.add_argument("--noise", action="store_true")
    parser.add_argument("--atoms", type=int, default=K)
    parser.add_argument("--exact-steps", type=int, default=0, help="steps of exact selection; default: all")
    parser.add_argument("--repeats", type=int, default=5, help="of each fit of the grid")
    given = parser.parse_args()
    if given.what == "make":
        make(given.path, given.rows, given.columns, given.order, given.seed)
    elif given.what == "grid":
        sys.exit(0 if grid(given.path, given.repeats) else 1)
    elif given.what == "run":
        print(json.dumps(run(given.path, given.selector, given.memory_limit, given.noise, given.atoms)))
    else:
        measure_all(given.path, given)


if __name__ == "__main__":
    main()
