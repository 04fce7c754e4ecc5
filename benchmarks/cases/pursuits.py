"""OMP by selector, and auto on a grid of problems."""

from __future__ import annotations

from functools import partial
from itertools import cycle

import numpy as np
import scipy.sparse as sp
from common import ENTRIES, Mismatch, Race, music, signal, sized, with_signal
from sklearn.linear_model import orthogonal_mp

import skpursuit as sk
from skpursuit import OMP, CoSaMP, FrankWolfe, Greedy, as_design, minimize

N, D, K = 5000, 10_000, 50
PLAIN = "exact certified gram auto quantized halving halving-random uniform importance"
SELECTORS = {name: name for name in PLAIN.split()}
SELECTORS |= {f"greedy {share:.0%}": Greedy(stop=sk.Stability(share)) for share in (0.02, 0.05)}


def drawn(name, n, d, seed):
    return with_signal(ENTRIES[name](np.random.default_rng(seed), n, d), seed)


def recording(seed):
    pieces = music()
    return np.ascontiguousarray(pieces[:-1].T), pieces[-1].copy(), np.ones(len(pieces) - 1)


def gaussian(n, d, k, given, seed):
    return signal(n, d, k, seed, **given)


#: Shapes, atoms and arguments of Gaussian designs; the others have columns of other distributions.
GAUSSIAN = {
    "gaussian": (N, D, K, {}),
    "k=100": (N, D, 100, {}),
    "k=200": (N, D, 200, {}),
    "float32": (N, D, K, {"dtype": np.float32}),
    "SNR 1": (N, D, K, {"snr": 1.0}),
    "20000x20000": (20_000, 20_000, K, {}),
    "tall": (100_000, 2000, K, {}),
    "wide": (500, 200_000, K, {}),
}


def designs(quick):
    """Makers of X, y and coefficients, and the number of atoms."""
    for name, (n, d, k, given) in GAUSSIAN.items():
        k = min(k, 8) if quick else k
        yield name, partial(gaussian, *sized(quick, n, d), k, given), k
    for name in ENTRIES:
        yield name, partial(drawn, name, *sized(quick, N, D)), 8 if quick else K
    yield "music", recording, 8 if quick else K


def same_atoms(name, results, _):
    """Atoms, which must be those of exact selection."""
    result = results[name]
    if not hasattr(result, "support"):
        return {}
    if result.support.tolist() != results["exact"].support.tolist():
        raise Mismatch("its atoms differ from those of exact selection")
    return {"atoms": len(result.support)}


def certified_fits(make, k, more, seed):
    """Fits to arrays; with `more` in F order and by scikit-learn too."""
    X, y, _ = make(seed)
    fits = {name: lambda name=name: minimize(X, y, OMP(k), name) for name in ("exact", "certified")}
    if more:
        F = np.asfortranarray(X)
        fits["certified, F order"] = lambda: minimize(F, y, OMP(k), "certified")
        fits["scikit-learn"] = lambda: orthogonal_mp(X, y, n_nonzero_coefs=k)
    return fits, None


def prepared_fits(make, solver, names, seed):
    """Fits to designs that served other targets."""
    X, y, w = make(seed)
    others = [X @ np.roll(w, shift) + (y - X @ w) for shift in range(9)]

    def prepared(name):
        design, targets = as_design(X), cycle(others)
        fit = lambda: minimize(design, next(targets), solver, SELECTORS[name], random_state=0)  # noqa: E731
        fit()
        return fit

    return {name: prepared(name) for name in names}, X


def certified(o):
    """Fresh and prepared fits; certified atoms must be those of exact selection."""
    for name, make, k in designs(o.quick):
        plain = name == "gaussian"
        fits = partial(certified_fits, make, k, plain)
        floors = {"certified": 6.5, "certified, F order": 6.5} if plain else {}
        yield Race(f"{name}, fresh", fits, ("exact",), same_atoms, floors)
        fits = partial(prepared_fits, make, OMP(k), ("exact", "certified"))
        yield Race(f"{name}, prepared", fits, ("exact",), same_atoms, {"certified": 9.0} if plain else {})


def reading(name, results, X):
    """Atoms of exact selection that were found, and shares of X that a step reads."""
    result, exact = results[name], results["exact"]
    return {
        "atoms": len(set(exact.support) & set(result.support)) / max(1, len(exact.support)),
        "objective": result.objective / exact.objective,
        "entries": result.entries_read / result.n_iter / X.size,
        "bytes": result.bytes_read / result.n_iter / X.nbytes,
    }


def selectors(o):
    """Fresh fits beside others, and fits to prepared designs."""
    k, names = (8 if o.quick else K), tuple(SELECTORS)
    make = partial(gaussian, *sized(o.quick, N, D), k, {})

    def fresh(seed):
        X, y, _ = make(seed)
        return {s: lambda s=s: minimize(X, y, OMP(k), SELECTORS[s], random_state=0) for s in names}, X

    yield Race("fresh", fresh, ("exact",), reading)
    yield Race("prepared", partial(prepared_fits, make, OMP(k), names), ("exact",), reading)


def landing(o):
    """Seconds and bytes of OMP by its number of atoms, preparation included, for the front page."""

    def make(k, seed):
        X, y, _ = signal(*sized(o.quick, N, D), k, seed)
        names = ("exact", "auto", "quantized", "halving")
        return {name: lambda name=name: minimize(X, y, OMP(k), name, random_state=0) for name in names}, None

    def figures(name, results, _):
        one, exact = results[name], results["exact"]
        read = one.bytes_read + one.prepared_bytes + one.stored_bytes
        return {"bytes": read, "same atoms": len(set(one.support) & set(exact.support))}

    for k in (10, 25, 50, 100, 200):
        yield Race(f"k={k}", partial(make, min(k, 8) if o.quick else k), figures=figures)


def fits(o):
    """Fits of estimators against the same run of `minimize`, and the variants of Frank-Wolfe."""

    def of_estimators(seed):
        (X, y, _), k = signal(*sized(o.quick, N, D), 8 if o.quick else K, seed), 8 if o.quick else K
        models = sk.OrthogonalMatchingPursuit(), sk.PursuitRegressor(scale="none")
        given = {type(one).__name__: partial(one.set_params(n_nonzero_coefs=k).fit, X, y) for one in models}
        return {"minimize": lambda: minimize(X, y, OMP(k), "certified")} | given, None

    def of_variants(seed):
        X, y, w = signal(*sized(o.quick, 2000, 4000), 8 if o.quick else K, seed, snr=30)
        solver = partial(FrankWolfe, sk.L1Ball(float(np.abs(w).sum())), 3000, gap_tol=1e-6)
        ways = {way: solver(variant=way) for way in ("vanilla", "away", "pairwise", "blended")}
        found = {way: lambda one=one: minimize(X, y, one, "gram") for way, one in ways.items()}
        return found | {"corrective": lambda: minimize(X, y, solver(variant="corrective"))}, None

    def ended(name, results, _):
        last = results[name].history[-1]
        return {"steps": results[name].n_iter, "gap": last.gap, "columns": len(results[name].support)}

    limits = {"OrthogonalMatchingPursuit": 0.8, "PursuitRegressor": 0.8}
    yield Race("a fit of 50 atoms", of_estimators, limits=limits)
    plain, limits = ("away", "pairwise", "blended"), {"corrective": 5.0}  # vanilla does not come so far
    yield Race("Frank-Wolfe, gap 1e-6", of_variants, figures=ended, versus=plain, limits=limits)


# -- auto: a fixed grid over shapes, layouts, precisions, sparsity, targets, solvers and losses ------


def dense(n, d, **given):
    return signal(n, d, 20, **given)[:2]


def labels(n, d):
    X, y = dense(n, d)
    return X, np.where(y > 0, 1.0, -1.0)


def targets(n, d, m):
    X, y = dense(n, d)
    return X, np.random.default_rng(0).standard_normal((n, m)) + y[:, None]


def sparse(n, d, density):
    X = sp.random_array((n, d), density=density, format="csr", rng=np.random.default_rng(0))
    return X, X @ np.random.default_rng(1).standard_normal(d)


SHAPES = [(50, 80, 5), (200, 400, 20), (500, 1000, 10), (500, 1000, 50), (1000, 2000, 20), (1000, 2000, 100),
          (2000, 4000, 5), (2000, 4000, 50), (2000, 4000, 200), (4000, 8000, 30), (500, 40000, 20),
          (40000, 500, 20), (100, 20000, 30)]  # fmt: skip
BALL, GRASP = sk.L1Ball(20.0), sk.GraSP(10, ridge=1e-2, max_iter=10)
GRID = [
    *((f"omp {n}x{d} k={k}", (dense, n, d), OMP(k), "squared") for n, d, k in SHAPES),
    ("omp F 2000x4000 k=50", (partial(dense, order="F"), 2000, 4000), OMP(50), "squared"),
    ("omp f32 2000x4000 k=50", (partial(dense, dtype=np.float32), 2000, 4000), OMP(50), "squared"),
    ("omp 3 targets 1000x2000 k=30", (targets, 1000, 2000, 3), OMP(30), "squared"),
    ("omp 20 targets 500x800 k=30", (targets, 500, 800, 20), OMP(30), "squared"),
    ("omp logistic 1000x2000 k=10", (labels, 1000, 2000), OMP(10, ridge=1e-3), "logistic"),
    ("omp logistic 3000x6000 k=20", (labels, 3000, 6000), OMP(20, ridge=1e-3), "logistic"),
    ("omp sparse 3000x20000 k=50", (sparse, 3000, 20000, 0.005), OMP(50), "squared"),
    ("omp sparse 500x2000 k=20", (sparse, 500, 2000, 0.02), OMP(20), "squared"),
    ("mp 1000x2000 300 steps", (dense, 1000, 2000), sk.MatchingPursuit(max_iter=300), "squared"),
    ("mp 200x400 300 steps", (dense, 200, 400), sk.MatchingPursuit(max_iter=300), "squared"),
    ("cosamp 500x1000 k=20", (dense, 500, 1000), CoSaMP(20, max_iter=20), "squared"),
    ("cosamp 2000x4000 k=50", (dense, 2000, 4000), CoSaMP(50, max_iter=20), "squared"),
    ("cosamp 4000x8000 k=30", (dense, 4000, 8000), CoSaMP(30, max_iter=20), "squared"),
    ("grasp logistic 1000x2000 k=10", (labels, 1000, 2000), GRASP, "logistic"),
    ("fw 1000x2000 500 steps", (dense, 1000, 2000), FrankWolfe(BALL, 500), "squared"),
    ("fw 2000x4000 1000 steps", (dense, 2000, 4000), FrankWolfe(BALL, 1000), "squared"),
    ("fw logistic 500x1000 100 steps", (labels, 500, 1000), FrankWolfe(BALL, 100), "logistic"),
    ("fw sparse 2000x8000 500 steps", (sparse, 2000, 8000, 0.01), FrankWolfe(BALL, 500), "squared"),
]  # fmt: skip


def auto(o):
    """The ratio of auto is the best other time over its own."""

    def fits(data, solver, loss, seed):
        X, y = data[0](*data[1:])
        names = ["exact"] + ["gram"] * (loss == "squared") + ["certified"] * (not sp.issparse(X)) + ["auto"]
        return {s: lambda s=s: minimize(X, y, solver, s, loss) for s in names}, None

    for name, *problem in GRID:
        if not o.quick or name in ("omp 50x80 k=5", "fw logistic 500x1000 100 steps"):
            yield Race(name, partial(fits, *problem), ("exact", "gram", "certified"))
