"""Sparse X in pieces on disk, larger than its memory limit: the model of the matrix in memory.

    python benchmarks/sparse_files.py /data/pieces --rows 300000 --columns 100000 --entries 30000000

Writes a CSR matrix in 30 `.npz` pieces where there are none, fits 50 coefficients of a logistic model with
`memory_limit="150MB"` and then in memory, and compares atoms and coefficients. Memory is anonymous, above
what the process had after a small fit.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from files import Peak

from skpursuit import OMP, as_design, minimize

PIECES = 30


def piece(number: int, rows: int, columns: int, entries: int) -> sp.csr_array:
    """Some rows of X: as many entries in each, some columns more often than others."""
    rng = np.random.default_rng(number)
    each = entries // rows
    indices = np.minimum(rng.random((rows, each)) ** 2 * columns, columns - 1).astype(np.int32)
    data = rng.exponential(1.0, rows * each)
    found = sp.csr_array((data, indices.ravel(), np.arange(rows + 1) * each), shape=(rows, columns))
    found.sum_duplicates()
    return found


def make(folder: Path, rows: int, columns: int, entries: int) -> None:
    """Write the pieces, and labels that forty frequent columns tell."""
    folder.mkdir(parents=True)
    weights = np.zeros(columns)
    weights[: 20 * 40 : 20] = np.resize([3.0, -3.0], 40)
    labels = []
    for k in range(PIECES):
        X = piece(k, rows // PIECES, columns, entries // PIECES)
        sp.save_npz(folder / f"piece{k}.npz", X, compressed=False)
        chance = 1.0 / (1.0 + np.exp(-(X @ weights)))
        labels.append(np.random.default_rng([k, 1]).random(len(chance)) < chance)
    np.save(folder.with_suffix(".labels.npy"), np.where(np.concatenate(labels), 1.0, -1.0))


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=300_000)
    parser.add_argument("--columns", type=int, default=100_000)
    parser.add_argument("--entries", type=int, default=30_000_000)
    parser.add_argument("--atoms", type=int, default=50)
    parser.add_argument("--memory-limit", default="150MB")
    given = parser.parse_args()
    if not given.folder.exists():
        make(given.folder, given.rows, given.columns, given.entries)
    y, solver = np.load(given.folder.with_suffix(".labels.npy")), OMP(n_nonzero_coefs=given.atoms)
    small = piece(0, 2000, 500, 20000)
    minimize(small, y[:2000], OMP(n_nonzero_coefs=3), loss="logistic")
    peak, began = Peak(), time.perf_counter()
    peak.start()
    design = as_design(given.folder, memory_limit=given.memory_limit)
    ours = minimize(design, y, solver, loss="logistic")
    peak.ended.set()
    seconds, loaded = time.perf_counter() - began, design.store.file_reads[0].bytes
    size = sum(path.stat().st_size for path in given.folder.glob("*.npz"))
    print(f"on disk: {seconds:.1f} s, {size / 1e6:.0f} MB read {loaded / size:.1f} times, {ours.selector}")
    print(f"memory: {peak.most / 1e6:.0f} MB, limit {given.memory_limit}")
    X = sp.vstack([sp.load_npz(given.folder / f"piece{k}.npz") for k in range(PIECES)], format="csr")
    began = time.perf_counter()
    true = minimize(X, y, solver, loss="logistic")
    print(f"in memory: {time.perf_counter() - began:.1f} s")
    same, far = set(ours.support) == set(true.support), np.abs(ours.coef - true.coef).max()
    print(f"{len(true.support)} atoms {'equal' if same else 'DIFFER'}, coefficients within {far:.1e}")


if __name__ == "__main__":
    main()
