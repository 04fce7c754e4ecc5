"""Experiments on synthetic signals: OMP, Frank-Wolfe and CoSaMP, and one selection as a race.

A cell is one problem and one method.
"""

from __future__ import annotations

import gc
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

import skpursuit
from skpursuit.metrics import f_measure, support_overlap
from skpursuit.plots import trace
from skpursuit.selectors import Query

from .grid import Cell
from .methods import NO_USER_SELECTORS, FixedIterationCoSaMP, make_selector, timed_fit

ProblemKey = tuple[int, int, int, int]  # n, d, k and the trial
RACE_STEPS = 25  # rows of a race, beside those where columns are dropped
THRESHOLD = 1e-3  # of the F-measure: coefficients up to this size count as zero
RESIDUAL_FACTOR = 1.001  # times the residual of exact CoSaMP


class Measurement(NamedTuple):
    """One run: the atoms it found, a row of measurements, and what is certain about its last answer."""

    atoms: np.ndarray
    row: dict[str, Any]
    certificate: str
    result: skpursuit.Result


@lru_cache(maxsize=1)
def toy(place: ProblemKey) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """X, y and w of the problem of a trial; every trial draws them and the noise anew."""
    gc.collect()
    return skpursuit.datasets.make_sparse_signal(*place[:3], random_state=np.random.SeedSequence(place))


def place_of(cell: Cell) -> ProblemKey:
    """What the problem of a cell is made from."""
    return cell["n"], cell["d"], cell["k"], cell["trial"]


def measure(place: ProblemKey, solver: Any, selector: Any, exact: np.ndarray | None = None) -> Measurement:
    """Run once; `exact` are the atoms that exact selection finds, by default those found here."""
    X, y, w = toy(place)
    result, seconds = timed_fit(X, y, solver, selector, seed=place[-1])
    atoms = np.flatnonzero(np.abs(result.coef) > THRESHOLD)
    row = {
        "seconds": seconds,
        "f_measure": f_measure(w, result.coef, THRESHOLD),
        "same_atoms": support_overlap(atoms if exact is None else exact, atoms),
        "share_read": result.bytes_read / (max(1, result.n_iter) * X.nbytes),
        "entries_read": result.entries_read,
        "bytes_read": result.bytes_read,
        "iterations": result.n_iter,
        "residual": float(np.sqrt(2.0 * result.objective)),
        "status": result.status.name,
    }
    return Measurement(atoms, row, result.history[-1].certificate, result)


#: The run that all methods of a problem are compared with.
reference = lru_cache(maxsize=2)(measure)


def _run(
    cell: Cell, solver: Any, exact: Measurement, user_selectors: Mapping[str, str]
) -> list[dict[str, Any]]:
    given = {name: cell[name] for name in ("stability", "budget") if cell.get(name) is not None}
    selector = make_selector(cell["method"], **given, user_selectors=user_selectors)
    return [measure(place_of(cell), solver, selector, exact.atoms).row]


def run_omp(cell: Cell, user_selectors: Mapping[str, str] = NO_USER_SELECTORS) -> list[dict[str, Any]]:
    """OMP for k iterations."""
    solver = skpursuit.OMP(n_nonzero_coefs=cell["k"])
    exact = reference(place_of(cell), solver, "exact")
    return [exact.row] if cell["method"] == "exact" else _run(cell, solver, exact, user_selectors)


def run_fw(cell: Cell, user_selectors: Mapping[str, str] = NO_USER_SELECTORS) -> list[dict[str, Any]]:
    """Frank-Wolfe on the ball of radius ‖w*‖_1, exact line search."""
    radius = float(np.abs(toy(place_of(cell))[2]).sum())
    solver = skpursuit.FrankWolfe(skpursuit.L1Ball(radius), max_iter=cell["iteration_limit"])
    # Gram columns give the iterates of exact selection, and are quick enough to compute again.
    return _run(cell, solver, reference(place_of(cell), solver, "gram"), user_selectors)


def run_cosamp(cell: Cell, user_selectors: Mapping[str, str] = NO_USER_SELECTORS) -> list[dict[str, Any]]:
    """CoSaMP: methods ending in -k make k iterations, the others stop at 1.001 times exact's residual."""
    k, method, place = cell["k"], cell["method"], place_of(cell)
    settled = reference(place, skpursuit.CoSaMP(n_nonzero_coefs=k, max_iter=k, tol=1e-6), "exact")
    if method.endswith("-k"):
        patient = FixedIterationCoSaMP(n_nonzero_coefs=k, max_iter=k, tol=1e-6)
        return _run(cell, patient, settled, user_selectors)
    enough = (RESIDUAL_FACTOR * settled.row["residual"]) ** 2
    solver = skpursuit.CoSaMP(n_nonzero_coefs=k, max_iter=k, tol=enough)
    exact = reference(place, solver, "exact")
    if method == "exact":
        return [exact.row]
    if method == "stoch":
        solver = skpursuit.StoGradMP(n_nonzero_coefs=k, max_iter=3 * k, tol=enough)
    return _run(cell, solver, exact, user_selectors)


def run_race(cell: Cell, user_selectors: Mapping[str, str] = NO_USER_SELECTORS) -> list[dict[str, Any]]:
    """Follow the first selection of a pursuit; one row for every step of it that is kept."""
    X, y, _ = toy(place_of(cell))
    query = Query(-y, rng=np.random.default_rng(cell["trial"]))
    selector = make_selector(cell["method"], user_selectors=user_selectors)
    course = trace(selector, skpursuit.as_design(X), query)
    exact = np.abs(X.T @ y)
    order = np.argsort(-exact, kind="stable")
    rank = int(np.flatnonzero(order == course.answer.indices[0])[0]) + 1
    answer = {"rank": rank, "read": course.answer.entries_read / X.size}
    steps = np.linspace(0, len(course.rows) - 1, RACE_STEPS).round().astype(int)
    dropped = np.searchsorted(course.rows, [rows for rows, _ in course.rounds])
    rows = []
    for step in np.unique(np.concatenate([steps, dropped])):
        running = (course.dropped_at >= course.rows[step]) & np.isfinite(course.scores[step])
        scores = np.where(running, course.scores[step] / exact.max(), -np.inf)
        best = zip(("winner", "second", "third", "others"), [*scores[order[:3]], scores[order[3:]].max()])
        estimates = {name: float(score) for name, score in best if np.isfinite(score)}
        left = int(np.count_nonzero(course.dropped_at > course.rows[step]))
        rows.append({"rows_read": float(course.rows[step]), "left": left, **estimates, **answer})
    return rows
