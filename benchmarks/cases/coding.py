"""Codes of many signals over one dictionary."""

from __future__ import annotations

import numpy as np
from common import Race, music, rivals, sized, spams_omp

from skpursuit import PursuitCoder


def signals_of(kind, quick):
    """Atoms of norm 1, and signals: Gaussian, or pieces of a recording with atoms that are noisy pieces."""
    (n_atoms, length), rng = sized(quick, 2048, 1024), np.random.default_rng(0)
    if kind == "gaussian":
        atoms, signals = rng.standard_normal((n_atoms, length)), rng.standard_normal((4 * n_atoms, length))
    else:
        signals = music(length)
        atoms, noise = signals[rng.choice(len(signals), n_atoms)], rng.standard_normal((n_atoms, length))
        atoms = atoms + 0.3 * noise * (np.linalg.norm(atoms, axis=1) / np.linalg.norm(noise, axis=1))[:, None]
    return atoms / np.linalg.norm(atoms, axis=1, keepdims=True), signals[: 4 * n_atoms]


def coder(o):
    """One thread against SPAMS, and two threads against one; scikit-learn codes an eighth of the signals."""
    from sklearn.linear_model import orthogonal_mp_gram

    for kind, dtype in (
        (kind, dtype) for kind in ("gaussian", "music") for dtype in (np.float64, np.float32)
    ):

        def make(seed, kind=kind, dtype=dtype):
            atoms, signals = (array.astype(dtype) for array in signals_of(kind, o.quick))
            few = signals[: len(signals) // 8].T
            fits = {
                "omp": PursuitCoder(atoms, 10, n_jobs=1),
                "omp, two threads": PursuitCoder(atoms, 10, n_jobs=2),
            }
            fits["cosamp"] = PursuitCoder(atoms, 10, solver="cosamp", n_jobs=1)
            fits = {name: lambda coder=coder: coder.transform(signals) for name, coder in fits.items()}
            fits["scikit-learn, 1/8"] = lambda: (
                orthogonal_mp_gram(atoms @ atoms.T, atoms @ few, n_nonzero_coefs=10).T
            )
            return rivals({"SPAMS": spams_omp(atoms.T, signals.T, 10)}) | fits, None

        def figures(name, results, facts):
            if not name.startswith("omp"):
                return {}
            theirs = results["scikit-learn, 1/8"]
            ours = results[name][: len(theirs)].toarray()
            return {"supports other than scikit-learn's": ((ours != 0) != (theirs != 0)).any(axis=1).sum()}

        yield Race(f"{kind}, {np.dtype(dtype).name}", make, figures=figures, elapsed=True)
