"""What audits and proofs say and cost."""

from __future__ import annotations

import contextlib
import io
import time

import numpy as np
import scipy.sparse as sp
from common import Race, chain, documents, near_copies, signal, sized, with_signal
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.preprocessing import PolynomialFeatures

from skpursuit import OMP, audit, certify, minimize

SELECTORS = ("exact", "certified", "quantized", "halving", "importance", "greedy", "uniform")
RIDGE, SIZES, NODES = 1e-3, 10, 200


def genes(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    """Columns that share a few of many factors."""
    factors = rng.standard_normal((n, max(5, d // 20)))
    loads = 1.2 * rng.standard_normal((factors.shape[1], d)) * (rng.random((factors.shape[1], d)) < 0.15)
    return factors @ loads + 0.7 * rng.standard_normal((n, d))


def families(n: int, d: int):
    rng = np.random.default_rng(0)
    yield "Gaussian", rng.standard_normal((n, d))
    yield "AR(.9)", chain(rng, n, d, 0.9)
    yield "near-duplicate", near_copies(rng, n, d)
    yield "gene-like", genes(rng, n, d)
    yield "text", documents(4, n, d)[0]


def audits(o):
    """rho by selector and family of data."""
    for family, X in families(*sized(o.quick, 1000, 2000)):
        y = with_signal(X.toarray() if sp.issparse(X) else X, 0, 30)[1]
        for selector in SELECTORS:
            if sp.issparse(X) and selector in ("certified", "quantized"):
                continue  # sparse X has no codes
            solver = OMP(n_nonzero_coefs=8 if o.quick else 30)
            found = minimize(X, y, solver, selector, audit=True, random_state=0).audit
            yield {
                "problem": family, "method": selector, "rho_min": found.rho_min,
                "rho_mean": found.rho.mean(), "best": found.same_atoms, "steps": len(found.rho),
            }  # fmt: skip


def tables(quick: bool):
    rng = np.random.default_rng(21)
    for name, n, d in (("Gaussian", 500, 100), ("Gaussian", 2000, 200), ("gene-like", 1000, 200)):
        shape = (n // 10, d // 10) if quick else (n, d)
        X = rng.standard_normal(shape) if name == "Gaussian" else genes(rng, *shape)
        w = np.zeros(shape[1])
        w[rng.choice(shape[1], 10, replace=False)] = rng.choice([-1, 1], 10) * (0.5 + rng.random(10))
        y = X / X.std(axis=0) @ w
        yield f"{name} {n} x {d}", X, y + rng.standard_normal(len(y)) * y.std() / np.sqrt(2)
    X, y = load_diabetes(return_X_y=True)
    X = PolynomialFeatures(2, include_bias=False).fit_transform(X)
    yield "diabetes with interactions", np.delete(X, 20, axis=1), y  # the square of a column with two values
    yield "breast cancer", *load_breast_cancer(return_X_y=True)


def okridge(X, y, k, seconds):
    """Bounds of OKRidge in our units."""
    from okridge.tree import BNBTree

    with contextlib.redirect_stdout(io.StringIO()):
        tree = BNBTree(X, y, lambda2=RIDGE * len(y))
        upper, *_, lower, _ = tree.solve(k, gap_tol=1e-4, time_limit=seconds)
    return 0.5 * (upper + y @ y), 0.5 * (lower + y @ y)


def proofs(o):
    """Sizes proven within 1 %, and OKRidge with the same seconds per size."""
    for name, X, y in tables(o.quick):
        X, y = (X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std()
        path = minimize(X, y, OMP(n_nonzero_coefs=SIZES, ridge=RIDGE)).support
        began = time.perf_counter()
        proof = certify(X, y, path, ridge=RIDGE, max_nodes=5 if o.quick else NODES)
        seconds = (time.perf_counter() - began) / SIZES
        row = {"problem": name, "sizes": SIZES}
        yield row | summary("certify", proof.objective, proof.lower_bound, seconds)
        try:
            other = np.array([okridge(X, y, k, seconds) for k in range(1, SIZES + 1)]).T
        except ImportError as error:
            print(f"  (OKRidge is left out: {error}; pip install --no-deps okridge requests)")
            continue
        yield row | summary("okridge", *other, seconds)


def summary(method, objective, bound, seconds):
    gap = 1.0 - np.clip(bound / objective, 0.0, 1.0)  # zero is a bound that all know
    return {
        "method": method, "within_1_percent": (gap <= 0.01).mean(), "optimal": (gap <= 1e-4).mean(),
        "gap_mean": gap.mean(), "seconds_per_size": seconds,
    }  # fmt: skip


def guarantees(o):
    """The rows of both parts."""
    for part in (audits, proofs):
        yield from part(o) if o.only in part.__name__ else ()


def audit_time(o):
    """An audit of a path beside the run of exact selection that would say the same."""
    n, d = sized(o.quick, 5000, 10_000)

    def make(seed):
        X, y, _ = signal(n, d, 50, seed)
        X = np.asfortranarray(X)
        path = minimize(X, y, OMP(n_nonzero_coefs=50), "halving", random_state=0).support
        exact = lambda: minimize(X, y, OMP(n_nonzero_coefs=50), "exact")  # noqa: E731
        return {"exact": exact, "audit": lambda: audit(X, y, path)}, None

    yield Race(f"OMP, {n}x{d}, k=50", make, limits={"audit": 4.0})
