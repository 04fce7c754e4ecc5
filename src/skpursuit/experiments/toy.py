"""Experiments on toy signals: Frank-Wolfe, OMP and CoSaMP, one cell per problem and method."""

from __future__ import annotations

import gc
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from skpursuit.datasets import make_sparse_signal
from skpursuit.loop.run import minimize
from skpursuit.metrics import f_measure
from skpursuit.problem.sets import L1Ball
from skpursuit.selectors import Selector
from skpursuit.solvers.base import Solver
from skpursuit.solvers.cosamp import CoSaMP
from skpursuit.solvers.frank_wolfe import FrankWolfe
from skpursuit.solvers.pursuit import OMP
from skpursuit.solvers.stochastic import StoGradMP

from .grid import Cell
from .methods import Untiring, make_selector, warm

#: What is measured of every run. `share_read`: bytes per iteration, as a share of X.
MEASURED = (
    "seconds",
    "f_measure",
    "same_atoms",
    "share_read",
    "entries_read",
    "bytes_read",
    "iterations",
    "residual",
    "status",
)
COLUMNS = ("n", "d", "k", "trial", "method", "stability", "budget", "iteration_limit", *MEASURED)
NONE: Mapping[str, str] = {}  # of one's own selectors
THRESHOLD = 1e-3  # of the F-measure: coefficients up to this size count as zero
TOLERANCE = 1.001  # times the residual of exact CoSaMP


@dataclass(frozen=True)
class Toy:
    """One toy problem."""

    X: np.ndarray
    y: np.ndarray
    w: np.ndarray
    seed: int


@dataclass(frozen=True)
class Measured:
    """One run: its coefficients and a row of measurements."""

    coef: np.ndarray
    row: dict[str, Any]


@lru_cache(maxsize=1)
def toy(n: int, d: int, k: int, trial: int) -> Toy:
    """The problem of a trial; every trial draws X, w and the noise anew."""
    gc.collect()
    seed = np.random.SeedSequence([n, d, k, trial])
    X, y, w = make_sparse_signal(n, d, k, random_state=seed)
    return Toy(X, y, w, trial)


def toy_of(cell: Cell) -> Toy:
    """The problem of a cell."""
    return toy(cell["n"], cell["d"], cell["k"], cell["trial"])


def measure(
    problem: Toy, solver: Solver, selector: Selector | str, exact: np.ndarray | None = None
) -> Measured:
    """Run once, preparations included in the time; `exact`: coefficients found by exact selection."""
    warm(problem.X, problem.y, solver, selector)
    began = time.process_time()
    result = minimize(problem.X, problem.y, solver, selector, random_state=problem.seed)
    seconds = time.process_time() - began
    reference = result.coef if exact is None else exact
    wanted = np.abs(reference) > THRESHOLD
    found = np.abs(result.coef) > THRESHOLD
    row = {
        "seconds": seconds,
        "f_measure": f_measure(problem.w, result.coef, THRESHOLD),
        "same_atoms": float(np.mean(found[wanted])) if wanted.any() else 1.0,
        "share_read": result.bytes_read / (max(1, result.n_iter) * problem.X.nbytes),
        "entries_read": result.entries_read,
        "bytes_read": result.bytes_read,
        "iterations": result.n_iter,
        "residual": float(np.sqrt(2.0 * result.objective)),
        "status": result.status.name,
    }
    return Measured(result.coef, row)


def _rows(run: Measured) -> list[Mapping[str, Any]]:
    return [run.row]


def _selector(cell: Cell, own: Mapping[str, str]) -> Selector:
    given = {name: cell[name] for name in ("stability", "budget") if cell.get(name) is not None}
    return make_selector(cell["method"], **given, own=own)


# -- orthogonal matching pursuit ----------------------------------------------------------------


@lru_cache(maxsize=1)
def _exact_omp(n: int, d: int, k: int, trial: int) -> Measured:
    return measure(toy(n, d, k, trial), OMP(n_nonzero_coefs=k), "exact")


def run_omp(cell: Cell, own: Mapping[str, str] = NONE) -> list[Mapping[str, Any]]:
    """OMP for k iterations."""
    exact = _exact_omp(cell["n"], cell["d"], cell["k"], cell["trial"])
    if cell["method"] == "exact":
        return _rows(exact)
    return _rows(measure(toy_of(cell), OMP(n_nonzero_coefs=cell["k"]), _selector(cell, own), exact.coef))


# -- Frank-Wolfe -----------------------------------------------------------------------------------


def _frank_wolfe(problem: Toy, iterations: int) -> FrankWolfe:
    return FrankWolfe(L1Ball(float(np.abs(problem.w).sum())), max_iter=iterations)


@lru_cache(maxsize=1)
def _known_fw(n: int, d: int, k: int, trial: int, iterations: int) -> Measured:
    """The iterates of exact selection, by Gram columns: the same, and quick enough to compute again."""
    problem = toy(n, d, k, trial)
    return measure(problem, _frank_wolfe(problem, iterations), "gram")


def run_fw(cell: Cell, own: Mapping[str, str] = NONE) -> list[Mapping[str, Any]]:
    """Frank-Wolfe on the ball of radius ‖w*‖_1, exact line search."""
    problem = toy_of(cell)
    iterations = cell["iteration_limit"]
    exact = _known_fw(cell["n"], cell["d"], cell["k"], cell["trial"], iterations)
    return _rows(measure(problem, _frank_wolfe(problem, iterations), _selector(cell, own), exact.coef))


# -- CoSaMP ----------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _settled_cosamp(n: int, d: int, k: int, trial: int) -> Measured:
    """Exact CoSaMP until it settles: its residual is what the others are stopped by."""
    return measure(toy(n, d, k, trial), CoSaMP(n_nonzero_coefs=k, max_iter=k, tol=1e-6), "exact")


def _near(exact: Measured, k: int) -> CoSaMP:
    """CoSaMP that stops at 1.001 times the residual of exact."""
    return CoSaMP(n_nonzero_coefs=k, max_iter=k, tol=(TOLERANCE * exact.row["residual"]) ** 2)


@lru_cache(maxsize=1)
def _exact_cosamp(n: int, d: int, k: int, trial: int) -> Measured:
    """Exact CoSaMP under the same stop rule as the others."""
    return measure(toy(n, d, k, trial), _near(_settled_cosamp(n, d, k, trial), k), "exact")


def run_cosamp(cell: Cell, own: Mapping[str, str] = NONE) -> list[Mapping[str, Any]]:
    """CoSaMP: methods ending in -k make k iterations, the others stop at 1.001 times exact's residual."""
    problem, k, method = toy_of(cell), cell["k"], cell["method"]
    place = (cell["n"], cell["d"], k, cell["trial"])
    settled = _settled_cosamp(*place)
    if method.endswith("-k"):
        patient = Untiring(n_nonzero_coefs=k, max_iter=k, tol=1e-6)
        return _rows(measure(problem, patient, _selector(cell, own), settled.coef))
    exact = _exact_cosamp(*place)
    if method == "exact":
        return _rows(exact)
    solver = _near(settled, k)
    if method == "stoch":
        solver = StoGradMP(n_nonzero_coefs=k, max_iter=3 * k, tol=solver.tol)
    return _rows(measure(problem, solver, _selector(cell, own), exact.coef))
