"""X in `.npy` files: seconds, bytes read and memory.

`large` writes Gaussian columns in C and F order and evicts the file from the page cache before every fit,
which has a process of its own. Step-by-step exact selection reads X once per step: `--exact-steps` of them
are measured. A machine with more memory than the file keeps it in its page cache from the second read on,
whatever `--memory-limit` says; `systemd-run --scope -p MemoryMax=4.5G` before the command takes that away.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from common import Mismatch, Race, counted_fit, memory_of, peaks, signal, sized
from threadpoolctl import threadpool_limits

from skpursuit import OMP, minimize

K = 50


def count_right(name, results, _):
    told, true, result = results[name]
    if abs(told - true) > 0.02 * true:
        raise Mismatch(f"{told} bytes reported, {true} read")
    if result.support.tolist() != results["exact"][2].support.tolist():
        raise Mismatch("its atoms differ from those of exact selection")
    return {"MB read": told / 1e6}


def grid(o):
    """10 atoms of 20000 x 500: auto takes at most 1.15 times the faster of exact and certified."""
    rng, (n, d) = np.random.default_rng(0), sized(o.quick, 20_000, 500)
    X = rng.standard_normal((n, d))
    targets = {"signal": X[:, :: d // 10][:, :10] @ rng.uniform(1.0, 2.0, 10) + 0.5 * rng.standard_normal(n)}
    targets["noise"] = rng.standard_normal(n)
    limits = ("20MB",) if o.quick else ("20MB", "60MB", "100MB", "2GB")
    with tempfile.TemporaryDirectory(dir=o.folder) as folder:
        path = Path(folder) / "x.npy"
        for order in "CF":
            np.save(path, np.asarray(X, order=order))
            for name, limit in ((name, limit) for name in targets for limit in limits):

                def make(seed, y=targets[name], limit=limit):
                    fits = {
                        s: lambda s=s: counted_fit(path, y, 10, limit, s)
                        for s in ("exact", "certified", "gram", "auto")
                    }
                    for fit in fits.values():
                        fit()  # the system counts the files of kernels as well
                    return fits, None

                at_least = {"auto": 1 / 1.15}
                race = f"{order} order, {name}, {limit}"
                yield Race(race, make, ("exact", "certified"), count_right, at_least, elapsed=True)


def make_file(path, rows, columns, order):
    """Write a Gaussian matrix piece by piece, and beside it targets of 50 atoms, and of 30 and noise."""
    rng, f_order = np.random.default_rng(0), order == "F"
    X = np.lib.format.open_memmap(path, "w+", float, (rows, columns), fortran_order=f_order)
    lines = X.T if f_order else X
    step = max(1, 2**24 // lines.shape[1])
    for start in range(0, len(lines), step):
        part = lines[start : start + step]
        part[:] = rng.standard_normal(part.shape, dtype=np.float32)
    chosen, coef = rng.choice(columns, K, replace=False), rng.choice([-1, 1], K) * rng.uniform(1.0, 2.0, K)
    signals, noise = [X[:, chosen[:count]] @ coef[:count] for count in (K, 30)], rng.standard_normal(rows)
    np.save(f"{path}.targets.npy", [s + noise * np.linalg.norm(s) / np.sqrt(10 * rows) for s in signals])
    X.flush()


def evict(path):
    """Have no page of a file in memory."""
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)


def one_fit(path, selector, noise, k, limit):
    """Print a line of JSON about one fit of an evicted file."""
    small, target, _ = signal(2000, 4500, 5)
    for order in "CF":  # loads the kernels
        minimize(np.asarray(small, order=order), target, OMP(n_nonzero_coefs=20), selector)
    y = np.load(f"{path}.targets.npy")[int(noise)]
    evict(path)
    before, began = memory_of(os.getpid(), "RssAnon"), time.perf_counter()
    with threadpool_limits(1), peaks([os.getpid()], "RssAnon") as most:
        reads, true, result = counted_fit(path, y, k, limit, selector)
        seconds = time.perf_counter() - began
    size, step = os.path.getsize(path), float(np.median([record.seconds for record in result.history]))
    atoms = hashlib.sha256(result.support.tobytes()).hexdigest()[:8]
    told = {"seconds": seconds + (K - k) * step, "reads": reads / size, "rchar": true / size}
    print(json.dumps(told | {"peak": most[0] - before, "atoms": atoms}))


def large(o):
    """Exact, gram and certified selection on a signal of 50 atoms, and on one of 30 and noise."""
    if o.fit:
        selector, target, k = o.fit.split(",")
        one_fit(Path(o.folder), selector, target == "noise", int(k), o.memory_limit)
        return
    (rows, columns), steps = ((4000, 300), 2) if o.quick else (o.shape, min(K, o.exact_steps))
    fits = [
        ("exact", "signal", steps),
        *((s, y, K) for y in ("signal", "noise") for s in ("gram", "certified")),
    ]
    for order in "CF":
        with tempfile.TemporaryDirectory(dir=o.folder) as folder:
            path, exact = Path(folder) / "x.npy", 0.0
            make_file(path, rows, columns, order)
            for selector, target, k in fits:
                command = [sys.executable, sys.argv[0], "large", f"--fit={selector},{target},{k}"]
                command += [f"--folder={path}", f"--memory-limit={o.memory_limit}"]
                told = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
                exact = exact or told["seconds"]
                problem = f"{rows} x {columns}, {o.memory_limit}, {order} order, {target}"
                yield {"problem": problem, "method": selector, "ratio": exact / told["seconds"], **told}
