"""Codes of many signals over one dictionary."""

from __future__ import annotations

import numpy as np
from common import Race, rivals, sized, spams_omp
from scipy.sparse import random_array
from sklearn.linear_model import Lasso

from skpursuit import PursuitCoder

# length of signals, atoms, non-zeros, signals; least ratios to SPAMS in float32 and float64
SHAPES = (
    (64, 256, 5, 20000, 2.0, 3.5),
    (64, 256, 10, 20000, 2.2, 4.0),
    (64, 256, 20, 20000, 2.7, 5.0),
    (256, 1024, 32, 5000, 2.7, 5.0),
    (512, 2048, 64, 2000, 2.3, 5.0),
    (128, 4096, 16, 4000, 2.1, 4.3),
    (512, 10000, 10, 1000, 1.9, 4.2),
    (512, 10000, 10, 5000, 2.7, 5.0),
    (8064, 1207, 30, 300, 2.0, 3.0),
    (2304, 16384, 20, 200, 2.8, 0.0),
)


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def sparse_signals(n, d, k, count, dtype, seed):
    """Gaussian atoms of norm 1, and sums of k of them with a tenth of noise."""
    rng = np.random.default_rng(seed)
    atoms, signals = unit(rng.standard_normal((d, n))).astype(dtype), np.empty((count, n))
    for signal in signals:
        signal[:] = rng.standard_normal(k) @ atoms[rng.choice(d, k, replace=False)]
    noise = rng.standard_normal(signals.shape) * 0.1 * np.std(signals)
    return atoms, (signals + noise).astype(dtype)


def plain_lock_step(atoms, signals, k):
    """OMP of all signals together, a product of all residuals with the dictionary per step."""
    residual, every = signals.copy(), np.arange(len(signals))
    basis = np.zeros((len(signals), k, signals.shape[1]), signals.dtype)
    for t in range(k):
        new = atoms[np.abs(residual @ atoms.T).argmax(axis=1)][:, None]
        new = (new - (new @ basis[:, :t].transpose(0, 2, 1)) @ basis[:, :t])[:, 0]
        basis[every, t] = new / np.linalg.norm(new, axis=1, keepdims=True)
        residual -= np.einsum("ij,ij->i", basis[:, t], residual)[:, None] * basis[:, t]
    return residual


def coder(o):
    """Times as fast as SPAMS in the same dtype, the Gram matrix included, on one thread; relative errors."""
    for n, d, k, count, single, double in SHAPES:
        for dtype, least in ((np.float32, single), (np.float64, double)):
            if not least:
                continue
            count_, d_ = sized(o.quick, count, d)
            size = (30, d_, 5, count_, dtype) if o.quick else (n, d, k, count, dtype)

            def make(seed, size=size):
                (atoms, signals), k = sparse_signals(*size, seed), size[2]
                ways = {"omp": {}, "gain": {"atom_score": "gain"}, "positive": {"positive": True}}
                ways = dict(list(ways.items())[: 1 if len(atoms) > 5000 else 3])
                functions = rivals({"SPAMS": spams_omp(atoms.T, signals.T, k)})
                for name, way in ways.items():
                    one = PursuitCoder(atoms, k, n_jobs=1, memory_limit=2**31, **way)
                    one.transform(signals[:200])  # kernels are loaded
                    functions[name] = lambda one=one: one.transform(signals)
                if len(atoms) > 12000:
                    functions["NumPy, lock-step"] = lambda: plain_lock_step(atoms, signals, k)
                return functions, (atoms, signals)

            def figures(name, results, facts):
                atoms, signals = facts
                found = results[name].T if name == "SPAMS" else results[name]
                left = found if name.startswith("NumPy") else signals - found @ atoms
                return {"error": np.linalg.norm(left) / np.linalg.norm(signals)}

            name = f"{n} x {d}, k={k}, {count} signals, {np.dtype(dtype).name}"
            yield Race(name, make, figures=figures, limits={"omp": least})


def splice(o):
    """Non-negative codes of embeddings beside a loop over scikit-learn's Lasso, which codes every 25th."""
    n, d = sized(o.quick, 512, 10000)
    for count, least in ((1000, 15), (5000, 40)):
        (size,) = sized(o.quick, count)

        def make(seed, size=size):
            rng = np.random.default_rng(seed)
            atoms = unit(rng.standard_normal((d, n)) + 0.3 * rng.standard_normal(n))
            weights = random_array((size, d), density=min(20 / d, 1.0), rng=rng)
            signals = unit(weights @ atoms + 0.02 * rng.standard_normal((size, n)))
            some = signals[::25]

            def lasso():
                model = Lasso(alpha=3e-4, fit_intercept=False, positive=True, max_iter=1000)
                return np.array([model.fit(atoms.T, y).coef_ for y in some])

            counts = np.count_nonzero(lasso(), axis=1)
            k = np.resize(counts, size)
            k[::25] = counts
            coder = PursuitCoder(atoms, k, positive=True, n_jobs=1)
            return {"Lasso, a 25th": lasso, "positive": lambda: coder.transform(signals)}, (atoms, some)

        def figures(name, results, facts):
            atoms, some = facts
            codes = results[name] if name != "positive" else results[name][::25].toarray()
            return {
                "error": np.linalg.norm(some - codes @ atoms) / np.linalg.norm(some),
                "nonzeros": np.count_nonzero(codes) / len(some),
            }

        yield Race(f"{n} x {d}, {size} signals", make, figures=figures, limits={"positive": least / 25})


def cords(A, b, k):
    """Gradient matching as CORDS does on a CPU: least squares from the support's Gram matrix each step."""
    support, residual, weights = [], b.copy(), np.zeros(0)
    for _ in range(k):
        products = A.T @ residual
        products[support] = -np.inf
        support.append(int(products.argmax()))
        while True:
            chosen = A[:, support]
            weights = np.linalg.lstsq(chosen.T @ chosen, chosen.T @ b, rcond=None)[0]
            if weights.min() >= 0:
                break
            del support[int(weights.argmin())]
        residual = b - chosen @ weights
    return support, weights


def matching(o):
    """Gradient matching with non-negative weights: one signal over many atoms, seconds of each k."""
    n, d = sized(o.quick, 5130, 50000)

    def make(seed):
        rng = np.random.default_rng(seed)
        A = rng.standard_normal((n, d), dtype=np.float32)
        b = A @ np.abs(rng.standard_normal(d)).astype(np.float32) / d
        atoms, few, many = np.ascontiguousarray(A.T), *((5, 20) if o.quick else (100, 1000))
        functions = {f"CORDS, k={few}": lambda: cords(A, b, few)}
        for k, step in ((few, 1), (many, 1), (many, 10)):
            one = PursuitCoder(atoms, k, positive=True, n_jobs=1, atoms_per_step=step)
            functions[f"k={k}, {step} per step"] = lambda one=one: one.transform(b[None])
        return functions, None

    yield Race(f"{n} x {d}", make)
