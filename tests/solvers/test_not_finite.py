"""Solvers, losses and selectors on numbers at the ends of the float range: a clear status, and no crash."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator

from skpursuit import OMP, FrankWolfe, Simplex, Status, minimize
from skpursuit.selectors import SELECTORS

from .test_product import SOLVERS as NAMED

LOSSES = ("squared", "logistic", "huber", "poisson")
SOLVERS = {**NAMED, "omp positive": OMP(positive=True)}


def solver_of(name, k, radius):
    """The solver of this name for k columns, or for a set of this radius."""
    solver = SOLVERS[name]
    if "constraint" in vars(solver):
        return replace(solver, constraint=type(solver.constraint)(radius))
    return replace(solver, n_nonzero_coefs=k)


COMBINATIONS = [
    (solver, loss, selector)
    for solver, loss, selector in itertools.product(SOLVERS, LOSSES, SELECTORS)
    if (loss == "squared" or solver not in ("cosamp", "subspace pursuit", "omp positive"))
    and (loss == "squared" or selector != "gram")
]


def hostile(rng, loss):
    """X and y, and a radius for Frank-Wolfe, of one of several kinds."""
    n, d = int(rng.integers(1, 25)), int(rng.integers(2, 15))
    X, radius = rng.standard_normal((n, d)), 2.0
    kind = rng.integers(6)
    if kind == 0:
        X[:] = 0.0
    elif kind == 1:
        X *= 10.0 ** rng.uniform(-90, 90)
    elif kind == 2:
        X *= 10.0 ** rng.uniform(-90, 90, d)
    elif kind == 3:
        X[rng.integers(n), rng.integers(d)] = 10.0 ** rng.uniform(2, 99)
    elif kind == 4:  # exp(z) overflows on the way
        X, radius = X * 10.0 ** rng.uniform(1, 4), 10.0 ** rng.uniform(0, 3)
    z = rng.standard_normal(n) * 10.0 ** rng.choice([0, 0, 2, 90, -90])
    targets = {"logistic": np.where(z > 0, 1.0, -1.0), "poisson": np.floor(np.exp(np.clip(z, -5, 20)))}
    return X, targets.get(loss, z), radius


def check(seed):
    rng = np.random.default_rng(seed)
    solver, loss, selector = COMBINATIONS[rng.integers(len(COMBINATIONS))]
    X, y, radius = hostile(rng, loss)
    kinds = (np.asarray, np.asfortranarray, sp.csr_array, aslinearoperator)
    kind = kinds[rng.choice(4, p=[0.7, 0.1, 0.1, 0.1])]
    if kind is aslinearoperator and selector in ("lucb", "reject"):  # which are refused there
        selector = "exact"
    chosen = solver_of(solver, min(3, X.shape[1]), radius)
    result = minimize(kind(X), y, chosen, selector, loss, random_state=0)
    assert np.isfinite(result.coef).all()
    assert np.isfinite(result.objective) or result.status is Status.DIVERGED
    for record in result.history:
        assert not np.isnan(record.objective)
        assert record.gap is None or not np.isnan(record.gap)
        assert (len(record.selected) > 0) or record.certificate == "none" or selector == "gram"
        assert all(0 <= j < X.shape[1] for j in record.selected)
    return result.status


@pytest.mark.parametrize("last", [60, pytest.param(1000, marks=pytest.mark.slow)])
def test_hostile_problems(last):
    found = {check(seed) for seed in range(last)}
    assert {Status.DIVERGED, Status.OPTIMAL, Status.COMPLETE} <= found


def test_a_simplex_whose_first_vertex_overflows_is_diverged():
    X = np.array([[800.0, 1.0], [900.0, 2.0]])
    for selector in ("exact", "certified", "halving", "greedy", "uniform", "quantized", "auto"):
        result = minimize(X, np.ones(2), FrankWolfe(Simplex(1.0), 10), selector, "poisson")
        assert (result.status, result.n_iter) == (Status.DIVERGED, 0)
