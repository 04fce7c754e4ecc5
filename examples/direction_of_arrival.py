"""Directions of three sources from one look of an array of antennas: complex OMP on a grid of angles.

    python examples/direction_of_arrival.py

A plane wave from angle theta reaches antenna m of a line, half a wavelength from the next one, with phase
pi m sin(theta). The columns of X are such waves for every quarter of a degree, so that neighbours are nearly
equal; y is what 64 antennas receive. OMP finds the sources one after the other; their complex coefficients
are amplitudes and phases.
"""

import numpy as np

from skpursuit import OMP, as_design, minimize

ANTENNAS, SOURCES = 64, {-21.5: 1.0, 4.0: 0.8j, 37.25: -0.6 + 0.3j}  # degrees, amplitudes


def waves(degrees):
    """What each antenna receives from each angle, columns of norm 1."""
    phase = np.pi * np.multiply.outer(np.arange(ANTENNAS), np.sin(np.radians(degrees)))
    return np.exp(1j * phase) / np.sqrt(ANTENNAS)


def main():
    rng = np.random.default_rng(0)
    grid = np.arange(-90.0, 90.0, 0.25)
    X = as_design(waves(grid))
    noise = 0.03 * (rng.standard_normal(ANTENNAS) + 1j * rng.standard_normal(ANTENNAS))
    y = waves(np.array(list(SOURCES))) @ np.array(list(SOURCES.values())) + noise
    result = minimize(X, y, OMP(n_nonzero_coefs=len(SOURCES)))
    for j in sorted(result.support):
        print(f"{grid[j]:7.2f} degrees   {abs(result.coef[j]):.2f} at {np.angle(result.coef[j]):5.2f} rad")
    found, told = np.sort(grid[result.support]), np.array(sorted(SOURCES))
    print(f"largest error: {np.abs(found - told).max():.2f} degrees")


if __name__ == "__main__":
    main()
