"""
A file larger than the memory it may use
========================================

A file of 120 MB is fitted with 24 MB of memory allowed. Exact selection reads the whole file at every step.
Certified selection reads it about once, for codes of one byte an entry, and then little more than the
columns that it chooses. All choose the same. The file is in Fortran order; in C order, where a column
touches every page, certified selection needs some passes more."""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from skpursuit import OMP, as_design, minimize

folder = tempfile.TemporaryDirectory()
path = Path(folder.name) / "X.npy"
rng = np.random.default_rng(0)
n, d, k = 30_000, 500, 12
X = np.lib.format.open_memmap(path, "w+", np.float64, (n, d), fortran_order=True)
for j in range(d):
    X[:, j] = rng.standard_normal(n)
atoms = rng.choice(d, k, replace=False)
y = X[:, atoms] @ rng.uniform(0.5, 2, k) + rng.standard_normal(n)
X.flush()
size = path.stat().st_size
del X

# %%
# The path of the file stands in for the array. A callback after each step records what was read so far.

read, results = {}, {}
for selector in ("exact", "gram", "certified"):
    design = as_design(str(path), memory_limit="24MB")
    seen = [design.store.file_bytes]

    def watch(design=design, seen=seen):
        seen.append(design.store.file_bytes)

    results[selector] = minimize(design, y, OMP(k), selector, callback=lambda *_: watch())
    read[selector] = np.array(seen) / size
supports = [result.support.tolist() for result in results.values()]
print(
    "the same atoms:",
    supports[0] == supports[1] == supports[2],
    "true:",
    sorted(supports[0]) == sorted(atoms),
)

figure, axes = plt.subplots(figsize=(8, 4.4), layout="constrained")
for (selector, counts), colour in zip(read.items(), ("#9aa5b1", "#0072b2", "#0b7a4b")):
    axes.plot(range(len(counts)), counts, color=colour, marker="o", ms=4, label=selector)
    axes.text(len(counts) - 0.8, counts[-1], f"{counts[-1]:.1f} times", color=colour, va="center")
axes.set(
    xlabel="atoms chosen",
    title="how often the file was read (120 MB, 24 MB of memory allowed)",
    xlim=(-0.3, k + 2),
)
axes.legend(frameon=False)
axes.spines[["top", "right"]].set_visible(False)
plt.show()
folder.cleanup()
