"""Programs for faults found once: far means with every loss, and X in files."""

from __future__ import annotations

import os
import tempfile
import warnings

import numpy as np
from common import counted_fit

import skpursuit as sk
from skpursuit.problem.losses import LOSSES, as_loss

SELECTORS = ("exact", "certified", "gram", "auto")
KINDS = ("C", "F", "pieces by rows", "pieces by columns", "Parquet")


def far_means_of_every_loss(rng, table):
    """No run is done above its own start, and the objective told is that of the coefficients."""
    n, d, k = (int(part) for part in rng.integers([10, 2, 1], [80, 30, 4]))
    name = str(rng.choice([name for name, loss in LOSSES.items() if not loss.couples_targets]))
    X = rng.standard_normal((n, d)) + rng.choice([1e4, -1e4, 1e3])
    y = rng.poisson(2.0, n) + 0.5
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0) if as_loss(name).gives_probability else y
    refit, k = bool(rng.random() < 0.5), min(k, d)
    solvers = [sk.OMP(k), sk.GraSP(k, refit=refit), sk.MatchingPursuit(k, max_iter=20), sk.OMP(k, ridge=0.1)]
    solver = solvers[rng.integers(len(solvers))]
    table.notes["call"] = f"{solver!r}, {name}, X {X.shape}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = sk.minimize(X, y, solver, loss=name)
    loss = as_loss(name).resolved(y)
    with np.errstate(over="ignore"):
        start, there = (float(np.sum(loss.value(y, z))) for z in (np.zeros(n), X @ result.coef))
    wrong = []
    if result.status.ok and not result.objective <= start + 1e-6 * abs(start):
        wrong.append(("start", f"{result.status.name} at {result.objective:.6g}, zero has {start:.6g}"))
    if type(solver) is sk.GraSP and refit and k == 1 and not (result.status.ok and result.objective < start):
        wrong.append(("start", f"{result.status.name}, but one column that is fitted lowers the objective"))
    if not abs(there - result.objective) <= 1e-6 * (abs(there) + abs(start)):
        wrong.append(("objective", f"{result.objective:.6g} is told, coefficients give {there:.6g}"))
    return wrong


def written(rng, kind, X, folder):
    """X in files of a kind; the path."""
    if kind == "Parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = pa.table({f"x{j}": X[:, j] for j in range(X.shape[1])})
        rows, how = int(rng.integers(512, 2048)), str(rng.choice(["none", "snappy", "zstd"]))
        pq.write_table(table, f"{folder}/X.parquet", row_group_size=rows, compression=how)
        return f"{folder}/X.parquet"
    if kind in "CF":
        np.save(f"{folder}/X.npy", np.asarray(X, order=kind))
        return f"{folder}/X.npy"
    axis, order = int(kind == "pieces by columns"), str(rng.choice(["C", "F"]))
    cuts = np.sort(rng.choice(np.arange(1, X.shape[axis]), int(rng.integers(1, 6)), replace=False))
    for k, part in enumerate(np.split(X, cuts, axis=axis)):
        np.save(f"{folder}/piece{k}.npy", np.asarray(part, order=order))
    return folder


def bytes_on_files(rng, table):
    """Fit X in files; the table that was drawn is not used, its X is too small to be read in parts."""
    if not os.path.exists("/proc/self/io"):
        return []
    n, d = int(rng.integers(600, 7000)), int(rng.integers(20, 160))
    n = max(n, 150_000 // d)  # so that the count of the system itself is no part of 2 %
    X = rng.standard_normal((n, d)).astype(rng.choice([np.float32, np.float64]))
    noise = rng.standard_normal(n)
    y = noise if rng.random() < 0.5 else X[:, ::9] @ rng.standard_normal(len(range(0, d, 9))) + 0.3 * noise
    kind, selector, k = str(rng.choice(KINDS)), str(rng.choice(SELECTORS)), int(rng.integers(1, 12))
    limit = max(1_100_000, int(X.nbytes * rng.choice([0.4, 0.8, 1.5, 4.0])))
    table.notes["call"] = f"{kind}, {X.dtype} {X.shape}, memory_limit={limit}, OMP({k}), {selector!r}"
    axis = int(kind == "pieces by columns")
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*row group")
        path = written(rng, kind, X, folder)
        for _ in range(2):  # where the first fit had kernels to load, the second counts
            told, true, result = counted_fit(path, y, k, limit, selector, axis)
            if abs(told - true) <= 0.02 * true:
                break
    wrong = [] if abs(told - true) <= 0.02 * true else [("bytes", f"{told} bytes told, {true} read")]
    atoms = sk.minimize(X, y, sk.OMP(k), "exact").support
    if not np.array_equal(result.support, atoms):
        wrong.append(("atoms", f"{result.support.tolist()} instead of {atoms.tolist()}"))
    return wrong


PROGRAMS = {far_means_of_every_loss: 8, bytes_on_files: 3}
