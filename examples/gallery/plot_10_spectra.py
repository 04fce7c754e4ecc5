"""
What is in the mixture? Spectra unmixed on the simplex
======================================================

A pixel of an imaging spectrometer sees several materials at once: its spectrum is a mixture with shares
that are positive and sum to one. Frank-Wolfe on the simplex moves towards one material at a time, so its
iterates are mixtures of few, and its duality gap bounds how far they are from the best one."""

import matplotlib.pyplot as plt
import numpy as np

from skpursuit import FrankWolfe, Simplex, as_design, minimize

rng = np.random.default_rng(1)
bands, materials = 220, 150
x = np.linspace(0.4, 2.5, bands)
library = np.full((bands, materials), 0.5)
for j in range(materials):
    for _ in range(4):
        centre, width, depth = rng.uniform(0.4, 2.5), rng.uniform(0.02, 0.12), rng.uniform(-0.35, 0.35)
        library[:, j] += depth * np.exp(-(((x - centre) / width) ** 2))

shares = np.zeros(materials)
true = rng.choice(materials, 4, replace=False)
shares[true] = (0.4, 0.3, 0.2, 0.1)
spectrum = library @ shares + 0.004 * rng.standard_normal(bands)

# %%
# The shares sum to one, so the mean of the library can be taken from everything: the problem is the
# same, and much better conditioned. The away variant may also take weight from a material, which ends
# the zigzag of the plain method. It stops once the duality gap is so small that no mixture can be better
# by more.

mean = library.mean(axis=1)
design = as_design(library - mean[:, None])
runs = {
    variant: minimize(
        design, spectrum - mean, FrankWolfe(Simplex(), variant=variant, gap_tol=1e-6, max_iter=2000)
    )
    for variant in ("vanilla", "away", "pairwise")
}
for variant, result in runs.items():
    print(f"{variant:9} {result.n_iter:5} steps, {len(result.support)} materials, {result.status.name}")
found = runs["away"].coef

# %%
# Materials that look alike can stand in for each other: small shares beside the true ones are such. The
# plain method keeps many of them after thousands of steps.

figure, (left, middle, right) = plt.subplots(1, 3, figsize=(11, 3.8), layout="constrained")
left.plot(x, spectrum, color="#9aa5b1", lw=3, label="measured")
left.plot(x, library @ found, color="#0b7a4b", lw=1, label="mixture found")
left.set(xlabel="micrometres", title="one pixel")
left.legend(frameon=False)
order = np.argsort(-np.maximum(shares, found))[:8]
middle.bar(np.arange(8) - 0.2, shares[order], 0.38, color="#9aa5b1", label="true shares")
middle.bar(np.arange(8) + 0.2, found[order], 0.38, color="#0b7a4b", label="found")
middle.set_xticks(range(8), [f"#{j}" for j in order], fontsize=8)
middle.set(title="materials")
middle.legend(frameon=False)
for variant, colour in zip(runs, ("#9aa5b1", "#0b7a4b", "#0072b2")):
    gaps = [step.gap for step in runs[variant].history]
    right.loglog(range(1, len(gaps) + 1), gaps, color=colour, label=variant)
right.set(xlabel="steps", title="duality gap")
right.legend(frameon=False)
for axes in (left, middle, right):
    axes.spines[["top", "right"]].set_visible(False)
plt.show()
