"""Greedy rules: what they find among columns that are alike, and what gain costs, beside PySINDy's FROLS."""

from __future__ import annotations

from functools import partial

import numpy as np
from common import Mismatch, Race, chain, near_copies, rivals, signal, sized

from skpursuit import OMP, CoSaMP, SubspacePursuit, as_design, metrics, minimize

FAMILIES = {
    "gaussian": lambda rng, n, d: rng.standard_normal((n, d)),
    "AR(.9)": lambda rng, n, d: chain(rng, n, d, 0.9),
    "AR(.95)": lambda rng, n, d: chain(rng, n, d, 0.95),
    "near": partial(near_copies, less=0.1),
}
RULES = {
    "OMP": OMP,
    "OMP, gain": partial(OMP, score="gain"),
    "OMP, swaps": partial(OMP, swaps=True),
    "CoSaMP": CoSaMP,
    "CoSaMP, prune by gain": partial(CoSaMP, prune="gain"),
    "CoSaMP, refit": partial(CoSaMP, refit=True),
    "CoSaMP, refit, by gain": partial(CoSaMP, refit=True, prune="gain"),
    "subspace pursuit": SubspacePursuit,
    "subspace pursuit, by gain": partial(SubspacePursuit, prune="gain"),
}


def recovery(make, n, d, k, seed):
    """Coefficients between 0.5 and 1.5 of either sign, noise of a twentieth of the variance."""
    rng = np.random.default_rng([seed, 39])
    X, w = make(rng, n, d), np.zeros(d)
    w[rng.choice(d, k, replace=False)] = rng.choice([-1, 1], k) * rng.uniform(0.5, 1.5, k)
    z = X @ w
    y = z + rng.standard_normal(n) * z.std() / np.sqrt(20)
    return {name: partial(minimize, X, y, rule(k), "exact") for name, rule in RULES.items()}, w


def gain_beside_omp(n, d, k, seed):
    X, y, _ = signal(n, d, k, seed)

    def fresh(solver):
        return minimize(as_design(X), y, solver, "gram")

    solvers = {"OMP": OMP(k), "gain": OMP(k, score="gain")}
    return {name: partial(fresh, solver) for name, solver in solvers.items()}, None


def lorenz(samples, degree):
    """Polynomials of the coordinates of the Lorenz system, as on PySINDy's pages, and their derivatives."""
    from scipy.integrate import solve_ivp
    from sklearn.preprocessing import PolynomialFeatures

    def slope(_, u):
        return [10 * (u[1] - u[0]), u[0] * (28 - u[2]) - u[1], u[0] * u[1] - 8 / 3 * u[2]]

    times = np.linspace(0, 10, samples)
    path = solve_ivp(slope, (0, 10), [-8.0, 8.0, 27.0], t_eval=times, rtol=1e-12, atol=1e-12).y.T
    return PolynomialFeatures(degree).fit_transform(path), np.gradient(path, times, axis=0)


def frols(samples, degree, k, seed):
    X, slopes = lorenz(samples, degree)

    def theirs():
        from pysindy import FROLS

        return lambda: [set(np.flatnonzero(row)) for row in FROLS(max_iter=k).fit(X, slopes).history_[k]]

    def ours():
        runs = (minimize(X, y, OMP(k, score="gain"), "gram") for y in slopes.T)
        return [set(run.support.tolist()) for run in runs]

    return {"OMP, gain": ours, **rivals({"FROLS": theirs})}, None


def same_terms(name, results, _):
    if results[name] != results["OMP, gain"]:
        raise Mismatch(f"its terms are {results[name]}, those of OMP by gain {results['OMP, gain']}")
    return {"terms": len(set.union(*results[name]))}


def found(name, results, w):
    return {"F": metrics.f_measure(w, results[name].coef)}


def greedy(o):
    """What PySINDy finds needs `pip install pysindy`."""
    for name, make in FAMILIES.items():
        yield Race(name, partial(recovery, make, *sized(o.quick, 200, 400), 3 if o.quick else 20), (), found)
    for n, d, k in ((1000, 4000, 100), (2000, 4000, 50), (5000, 10_000, 100)):
        make = partial(gain_beside_omp, *sized(o.quick, n, d), 8 if o.quick else k)
        yield Race(f"gain, {n} x {d}, k={k}", make, limits={"gain": 1 / 1.6})
    for degree, k in ((3, 5), (5, 8)):
        samples = 400 if o.quick else 5000
        yield Race(f"Lorenz, degree {degree}, k={k}", partial(frols, samples, degree, k), (), same_terms)
