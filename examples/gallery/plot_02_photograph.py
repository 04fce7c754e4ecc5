"""
A photograph, denoised by its patches
=====================================

Patches of 8 x 8 pixels of a noisy photograph are written as sums of a few patterns, learned from the noisy
picture alone. Averaging what all patches say about a pixel removes most of the noise."""

import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import gaussian_filter
from sklearn.datasets import load_sample_image
from sklearn.feature_extraction.image import extract_patches_2d, reconstruct_from_patches_2d

from skpursuit import DictionaryLearner, PursuitCoder

rng = np.random.default_rng(0)
photograph = load_sample_image("china.jpg").mean(axis=2)[130:322, 240:496] / 255
noise = 0.1
noisy = photograph + noise * rng.standard_normal(photograph.shape)

# %%
# The mean of a patch is kept apart. A patch takes patterns until its rest is as small as the noise.

patches = extract_patches_2d(noisy, (8, 8)).reshape(-1, 64)
means = patches.mean(axis=1, keepdims=True)
patches = patches - means
sample = patches[rng.choice(len(patches), 15_000, replace=False)]
learner = DictionaryLearner(196, n_nonzero_coefs=4, max_iter=8, random_state=0).fit(sample)
coder = PursuitCoder(learner.components_, n_nonzero_coefs=10, tol=1.15**2 * 64 * noise**2)
codes = coder.transform(patches)
decoded = coder.inverse_transform(codes) + means
denoised = reconstruct_from_patches_2d(decoded.reshape(-1, 8, 8), photograph.shape)


def decibels(picture):
    """Peak signal-to-noise ratio."""
    return -10 * np.log10(((picture - photograph) ** 2).mean())


blurred = max((gaussian_filter(noisy, s) for s in np.linspace(0.3, 2, 18)), key=decibels)
print(f"{len(patches)} patches, {codes.nnz / len(patches):.2f} patterns in each")

# %%
# A blur, at its best width, removes noise and edges alike. Where the picture has no pattern that
# returns, as in the leaves, the patches lose detail too.

figure, panels = plt.subplots(2, 2, figsize=(9, 7.4), layout="constrained")
for axes, picture, name in zip(
    panels.flat, (photograph, noisy, blurred, denoised), ("original", "noisy", "best blur", "learned patches")
):
    axes.imshow(picture, cmap="gray", vmin=0, vmax=1)
    axes.set_title(name if picture is photograph else f"{name}: {decibels(picture):.1f} dB")
    axes.axis("off")
plt.show()
