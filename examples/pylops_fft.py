"""Tones in samples that are half missing: a dictionary of PyLops, never formed, in complex OMP.

    pip install pylops
    python examples/pylops_fft.py

The signal is a sum of a few complex tones, of which a random half of 4,096 samples is known. X is the
inverse Fourier transform, restricted to these: a PyLops operator that makes products by FFT. It has a column
for each frequency, and OMP asks for X^H r and for the columns that it takes alone.
"""

import numpy as np
import pylops

from skpursuit import OMP, minimize

SAMPLES, TONES = 4096, {17: 1.0, 300: 0.7j, 301: -0.5, 1024: 0.4 + 0.4j, 3999: 0.3}


def main():
    rng = np.random.default_rng(0)
    known = np.sort(rng.choice(SAMPLES, SAMPLES // 2, replace=False))
    fft = pylops.signalprocessing.FFT(SAMPLES, norm="ortho", dtype=np.complex128)
    X = pylops.Restriction(SAMPLES, known, dtype=np.complex128) @ fft.H
    w = np.zeros(SAMPLES, complex)
    w[list(TONES)] = np.sqrt(SAMPLES) * np.array(list(TONES.values()))
    y = X @ w + 0.5 * (rng.standard_normal(len(known)) + 1j * rng.standard_normal(len(known)))
    result = minimize(X, y, OMP(n_nonzero_coefs=len(TONES)), "exact")
    for j in sorted(result.support.tolist()):
        print(f"frequency {j:4}   {result.coef[j] / np.sqrt(SAMPLES):.3f}   true {TONES.get(j, 0)}")
    print("all tones found" if set(result.support.tolist()) == set(TONES) else "not all tones found")


if __name__ == "__main__":
    main()
