"""Programs for faults found once: float32 of low rank, far means with every loss."""

from __future__ import annotations

import warnings

import numpy as np

import skpursuit as sk
from skpursuit.problem.losses import LOSSES, as_loss

from .programs import common, minimize
from .reference import Reference
from .tables import Table


def float32_of_low_rank(rng, table):
    """Coefficients give the objective told, and estimators predict as with float64."""
    n, d, rank = (int(part) for part in rng.integers([10, 5, 1], [60, 40, 6]))
    X = (rng.standard_normal((n, rank)) @ rng.standard_normal((rank, d))).astype(np.float32)
    X = X + (rng.random() < 0.3) * np.float32(1e-6) * rng.standard_normal((n, d)).astype(np.float32)
    y, k = rng.standard_normal(n), int(rng.integers(1, min(n, d) + 1))
    exact = Table(X.astype(np.float64), y, given=X, source=f"float32 of rank {rank}")
    wrong = common(Reference(exact), minimize(exact, sk.OMP(k), "auto"), k)
    table.notes = exact.notes
    scores = [sk.PursuitRegressor(n_nonzero_coefs=k).fit(A, y).score(A, y) for A in (X, exact.X)]
    if not abs(scores[0] - scores[1]) <= 1e-3:
        wrong.append(("float32", f"R2 {scores[0]:.4f} where float64 has {scores[1]:.4f}"))
    return wrong


def far_means_of_every_loss(rng, table):
    """No run is done above its own start, and the objective told is that of the coefficients."""
    n, d, k = (int(part) for part in rng.integers([10, 2, 1], [80, 30, 4]))
    name = str(rng.choice([name for name, loss in LOSSES.items() if not loss.couples_targets]))
    X = rng.standard_normal((n, d)) + rng.choice([1e4, -1e4, 1e3])
    y = rng.poisson(2.0, n) + 0.5
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0) if as_loss(name).gives_probability else y
    refit, k = bool(rng.random() < 0.5), min(k, d)
    solvers = [sk.OMP(k), sk.GraSP(k, refit=refit), sk.MatchingPursuit(k, max_iter=20), sk.OMP(k, ridge=0.1)]
    solver = solvers[rng.integers(len(solvers))]
    table.notes["call"] = f"{solver!r}, {name}, X {X.shape}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = sk.minimize(X, y, solver, loss=name)
    loss = as_loss(name).resolved(y)
    with np.errstate(over="ignore"):
        start, there = (float(np.sum(loss.value(y, z))) for z in (np.zeros(n), X @ result.coef))
    wrong = []
    if result.status.ok and not result.objective <= start + 1e-6 * abs(start):
        wrong.append(("start", f"{result.status.name} at {result.objective:.6g}, zero has {start:.6g}"))
    if not abs(there - result.objective) <= 1e-6 * (abs(there) + abs(start)):
        wrong.append(("objective", f"{result.objective:.6g} is told, coefficients give {there:.6g}"))
    return wrong


PROGRAMS = {float32_of_low_rank: 6, far_means_of_every_loss: 8}
