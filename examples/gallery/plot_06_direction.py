"""
Where do the waves come from? Direction of arrival with complex data
====================================================================

Sixteen antennas in a row hear three senders, one of them faint. A wave from an angle arrives at each
antenna with another phase, so every angle is a column of complex numbers, and what the antennas measure is
a sum of three of 721 columns: a sparse problem over the complex numbers."""

import matplotlib.pyplot as plt
import numpy as np

from skpursuit import OMP, minimize

rng = np.random.default_rng(0)
antennas, angles = np.arange(16), np.linspace(-90, 90, 721)


def arrivals(degrees):
    """Phases at the antennas, which stand half a wavelength apart: a column of norm one for each angle."""
    return np.exp(1j * np.pi * np.outer(antennas, np.sin(np.deg2rad(degrees)))) / np.sqrt(len(antennas))


true, strength = np.array([-22.5, 10.0, 27.0]), np.array([0.8, 1.0, 0.12])
sent = strength * np.exp(2j * np.pi * rng.random(3))
noise = 0.01 * (rng.standard_normal(16) + 1j * rng.standard_normal(16))
X, heard = arrivals(angles), arrivals(true) @ sent + noise

# %%
# The classical beam former asks each angle alone how strong a wave from it would be. A strong sender
# answers at other angles too, by its side lobes, and the faint one cannot be told from those.

beam = np.abs(X.conj().T @ heard)

# %%
# A pursuit takes the strongest angle, explains it away, and asks what is left. The side lobes go with
# their sender, and the faint one stands out.

result = minimize(X, heard, OMP(3))
found, amplitude = angles[result.support], np.abs(result.coef[result.support])
for angle, value in sorted(zip(found, amplitude)):
    print(f"{angle:7.2f} degrees, strength {value:.2f}")

# %%
# Two senders inside one lobe, nearer than about six degrees here, are not told apart: the first column
# taken lies between them, and a pursuit over complex numbers takes no column back.

figure, axes = plt.subplots(figsize=(9, 4.2), layout="constrained")
axes.plot(angles, beam, color="#9aa5b1", label="beam former")
axes.plot(true, strength, "x", color="#d9822b", ms=10, mew=2, label="senders", zorder=4)
axes.stem(found, amplitude, linefmt="#0b7a4b", markerfmt="o", basefmt=" ", label="OMP")
axes.set(xlabel="angle, degrees", ylabel="strength", xlim=(-70, 70), title="three senders, sixteen antennas")
axes.annotate("faint sender", (27, 0.12), (36, 0.45), arrowprops={"arrowstyle": "->"})
axes.legend(frameon=False)
axes.spines[["top", "right"]].set_visible(False)
plt.show()
