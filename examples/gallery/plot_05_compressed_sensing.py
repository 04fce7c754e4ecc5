"""
An image from a third of its numbers
====================================

A camera that takes random sums of pixels instead of pixels can restore an image from far fewer sums than it
has pixels, if the image is sparse in some basis. The basis here is the two-dimensional cosine transform;
the measurement is a random matrix of Gaussian numbers."""

import matplotlib.pyplot as plt
import numpy as np
from scipy.fft import dctn, idctn

from skpursuit import OMP, as_design, minimize

rng = np.random.default_rng(0)
side = 48
xs, ys = np.meshgrid(np.linspace(-1, 1, side), np.linspace(-1, 1, side))
image = 0.9 * np.exp(-6 * (xs**2 + (ys + 0.2) ** 2)) + 0.35 * (1 + np.cos(9 * xs + 4 * ys)) * np.exp(
    -2 * ys**2
)
image = idctn(np.where(np.abs(dctn(image, norm="ortho")) > 0.06, dctn(image, norm="ortho"), 0), norm="ortho")
coefs = dctn(image, norm="ortho").ravel()
print(f"{side * side} pixels, {np.count_nonzero(np.abs(coefs) > 1e-9)} cosines")

# %%
# The columns of X are what the camera makes of each cosine. One design serves all targets.

sums = side * side // 3
camera = rng.standard_normal((sums, side * side)) / np.sqrt(sums)
cosines = np.array([idctn(unit.reshape(side, side), norm="ortho").ravel() for unit in np.eye(side * side)])
design = as_design(camera @ cosines.T)
measured = camera @ image.ravel() + 0.02 * rng.standard_normal(sums)

# %%
# A pursuit restores the image from 768 sums. The least-squares image of smallest norm, which has the same
# measurements, is noise: the sums alone say too little, sparsity says the rest.

result = minimize(design, measured, OMP(n_nonzero_coefs=150, rtol=1e-3))
restored = (result.coef @ cosines).reshape(side, side)
smallest = np.linalg.lstsq(camera, measured, rcond=None)[0].reshape(side, side)

figure, panels = plt.subplots(1, 3, figsize=(10, 3.9), layout="constrained")
for axes, picture, name in zip(
    panels,
    (image, smallest, restored),
    ("2304 pixels", f"{sums} sums, smallest norm", f"{sums} sums, {len(result.support)} cosines by OMP"),
):
    error = np.linalg.norm(picture - image) / np.linalg.norm(image)
    axes.imshow(picture, cmap="magma", vmin=image.min(), vmax=image.max())
    axes.set_title(name if picture is image else f"{name}\nerror {error:.0%}", fontsize=11)
    axes.axis("off")
plt.show()
