"""Experiments on synthetic signals: OMP, Frank-Wolfe and CoSaMP, one selection as a race, and the theory."""

from __future__ import annotations

import gc
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.signal import lfilter

import skpursuit
from skpursuit import theory
from skpursuit.metrics import f_measure, support_overlap
from skpursuit.plots import trace
from skpursuit.selectors import Query, Signed

from . import methods as compared
from .grid import Cell, CellRows
from .methods import OwnSelectors

ProblemKey = tuple[int, int, int, int, float, str]  # n, d, k, the trial, the noise and the family of X
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
    """X, y and w of the problem of a trial; every trial draws them anew, and the noise but for its size."""
    gc.collect()
    n, d, k, trial, snr, family = place
    seed = np.random.SeedSequence([n, d, k, trial])
    X, y, w = skpursuit.datasets.make_sparse_signal(n, d, k, snr, random_state=seed)
    if family:
        noise, rng = (y - X @ w) / np.linalg.norm(X @ w), np.random.default_rng(seed)
        X = FAMILIES[family](X, rng)
        X /= np.linalg.norm(X, axis=0)
        y = X @ w + noise * np.linalg.norm(X @ w)
    return X, y, w


#: Other families of X than Gaussian columns: made from those, which have unit norm.
FAMILIES: dict[str, Any] = {
    "correlated": lambda X, rng: lfilter([1.0], [1.0, -0.9], X, axis=1),  # neighbours by 0.9
    "coherent": lambda X, rng: X + 2 * rng.standard_normal((len(X), 1)) / len(X) ** 0.5,  # any two by 0.8
    "heavy tails": lambda X, rng: rng.standard_t(1.5, X.shape),
    "unequal rows": lambda X, rng: X * np.exp(1.5 * rng.standard_normal((len(X), 1))),
}


def place_of(cell: Cell) -> ProblemKey:
    """What the problem of a cell is made from."""
    family = cell.get("design", "gaussian").replace("gaussian", "")
    return cell["n"], cell["d"], cell["k"], cell["trial"], cell.get("snr", 3.0), family


def measure(place: ProblemKey, solver: Any, selector: Any, exact: np.ndarray | None = None) -> Measurement:
    """Run once; `exact` are the atoms that exact selection finds, by default those found here."""
    X, y, w = toy(place)
    result, seconds = compared.timed_fit(X, y, solver, selector, seed=place[3])
    atoms = np.flatnonzero(np.abs(result.coef) > THRESHOLD)
    same, both = (atoms, atoms) if exact is None else (exact, np.union1d(exact, atoms))
    second_looks = np.mean([record.entries_read > X.size for record in result.history])
    row = {
        "seconds": seconds,
        "f_measure": f_measure(w, result.coef, THRESHOLD),
        "same_atoms": support_overlap(same, atoms),
        "precision": support_overlap(atoms, same),
        "jaccard": support_overlap(both, np.intersect1d(same, atoms)),
        "second_looks": float(second_looks) if isinstance(solver, skpursuit.FrankWolfe) else None,
        "share_read": result.bytes_read / (max(1, result.n_iter) * X.nbytes),
        "entries_read": result.entries_read,
        "bytes_read": result.bytes_read,
        "iterations": result.n_iter,
        "residual": float(np.sqrt(2.0 * result.objective)),
        "status": result.status.name,
        "columns": compared.encode_columns(result.support, X.shape[1]),
    }
    return Measurement(atoms, row, result.history[-1].certificate, result)


#: The run that all methods of a problem are compared with.
reference = lru_cache(maxsize=2)(measure)


def _run(cell: Cell, solver: Any, exact: Measurement, user_selectors: OwnSelectors) -> CellRows:
    given = {name: cell[name] for name in ("stability", "budget") if cell.get(name) is not None}
    selector = compared.make_selector(cell["method"], **given, user_selectors=user_selectors)
    row = measure(place_of(cell), solver, selector, exact.atoms).row
    if row["columns"] == exact.row["columns"] and cell["method"] != "exact" and cell["method"][-2:] != "-k":
        row["columns"] = None
    return [row]


def run_omp(cell: Cell, user_selectors: OwnSelectors = compared.NONE) -> CellRows:
    """OMP for k iterations."""
    solver = skpursuit.OMP(n_nonzero_coefs=cell["k"])
    exact = reference(place_of(cell), solver, "exact")
    return [exact.row] if cell["method"] == "exact" else _run(cell, solver, exact, user_selectors)


def run_fw(cell: Cell, user_selectors: OwnSelectors = compared.NONE) -> CellRows:
    """Frank-Wolfe on the ball of radius ‖w*‖_1, exact line search."""
    radius = float(np.abs(toy(place_of(cell))[2]).sum())
    ball, steps = skpursuit.L1Ball(radius), cell["iteration_limit"]
    # Gram columns give the iterates of exact selection, and are quick enough to compute again.
    exact = reference(place_of(cell), skpursuit.FrankWolfe(ball, max_iter=steps), "gram")
    solver = skpursuit.FrankWolfe(ball, max_iter=steps, confirm=not compared.is_printed(cell["method"]))
    return _run(cell, solver, exact, user_selectors)


def run_cosamp(cell: Cell, user_selectors: OwnSelectors = compared.NONE) -> CellRows:
    """CoSaMP: methods ending in -k make k iterations, the others stop at 1.001 times exact's residual."""
    k, method, place = cell["k"], cell["method"], place_of(cell)
    settled = reference(place, skpursuit.CoSaMP(n_nonzero_coefs=k, max_iter=k, tol=1e-6), "exact")
    if method.endswith("-k"):
        patient = compared.FixedIterationCoSaMP(n_nonzero_coefs=k, max_iter=k, tol=1e-6)
        return _run(cell, patient, settled, user_selectors)
    enough = (RESIDUAL_FACTOR * settled.row["residual"]) ** 2
    solver = skpursuit.CoSaMP(n_nonzero_coefs=k, max_iter=k, tol=enough)
    exact = reference(place, solver, "exact")
    if method == "exact":
        return [exact.row]
    if method.startswith("stoch"):
        solver = compared.stochastic(method, k, 3 * k, tol=enough)
    return _run(cell, solver, exact, user_selectors)


def run_race(cell: Cell, user_selectors: OwnSelectors = compared.NONE) -> CellRows:
    """Follow the first selection of a pursuit; one row for every step of it that is kept."""
    X, y, _ = toy(place_of(cell))
    query = Query(-y, rng=np.random.default_rng(cell["trial"]))
    selector = compared.make_selector(cell["method"], user_selectors=user_selectors)
    course = trace(selector, skpursuit.as_design(X), query)
    exact = np.abs(X.T @ y)
    order = np.argsort(-exact, kind="stable")
    rank = int(np.flatnonzero(order == course.answer.columns[0])[0]) + 1
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


def sign_problem(trial: int, n: int = 32, d: int = 16, agree: int = 25) -> tuple[np.ndarray, np.ndarray]:
    """Entries and residuals are 1 or -1, where bounds promise most; the last column is the smallest entry."""
    rng = np.random.default_rng(trial)
    r, X = rng.choice([-1.0, 1.0], n), rng.choice([-1.0, 1.0], (n, d))
    X[:, -1] = np.where(rng.permutation(n) < agree, -r, r)
    return X, r


def run_theory(cell: Cell) -> CellRows:
    """What the theorems promise, and what is measured: a kind of comparison a cell."""
    if cell["kind"] == "success":
        return _success(cell)
    X, y, _ = toy(place_of(cell))
    design = skpursuit.as_design(X)
    if cell["kind"] == "envelope":  # how far below the best entry the one found is
        g, selector = np.abs(X.T @ y), compared.make_selector("halving-printed", budget=cell["x"])
        gap = float(1 - g[selector.select(design, Query(-y)).columns[0]] / g.max())
        bound = theory.nonstochastic_gap(cell["x"] * X.size, X, -y) / float(g.max())
        return [{"method": "halving-printed", "measured": gap, "bound": bound, "margin": bound - gap}]
    rows, path = [], skpursuit.minimize(X, y, skpursuit.OMP(cell["k"]), "exact").support
    for step, best in enumerate(path):  # of exact OMP: is it hit, how hard is that, what budget is certain?
        before = path[:step]
        r = X[:, before] @ np.linalg.lstsq(X[:, before], y, rcond=None)[0] - y
        known = {"x": step + 1, "bound": theory.h2(X, r), "power": theory.nonstochastic_budget(X, r) / X.size}
        for method in ("halving", "halving-printed", "halving-random", "halving-draws"):
            query = Query(r, exclude=before, rng=np.random.default_rng(step))
            hit = compared.make_selector(method).select(design, query).columns[0] == best
            rows.append({"method": method, "measured": float(hit), **known})
    return rows


def _success(cell: Cell) -> CellRows:
    """How often a bandit finds the smallest entry of one problem, and of five in a row."""
    promise = theory.reject_probability if cell["method"] == "reject" else theory.success_probability
    selector, hits, chances = compared.make_selector(cell["method"], budget=cell["x"]), [], []
    problems = [sign_problem(trial) for trial in range(1 if cell["method"] == "reject" else 5)]
    for X, r in problems:
        asked = [Query(r, 1, Signed(), rng=np.random.default_rng(seed)) for seed in range(cell["repeats"])]
        design, d = skpursuit.as_design(X), X.shape[1]
        hits.append([selector.select(design, query).columns[0] == d - 1 for query in asked])
        chances.append(promise(cell["x"] * X.size, theory.h2(X, r, absolute=False), d))
    once, row, missed = float(np.mean(hits)), float(np.mean(np.all(hits, axis=0))), 1 - np.array(chances)
    rows: list[dict[str, Any]] = [
        {"measured": once, "bound": max(0.0, min(chances)), "margin": once - min(chances)}
    ]
    if len(problems) > 1:
        forms = {
            form: theory.sequence_probability(5, missed, form) for form in ("linear", "power", "product")
        }
        linear, margin = max(0.0, forms.pop("linear")), row - forms["product"]
        rows.append({"kind": "sequence", "measured": row, "bound": linear, **forms, "margin": margin})
    return rows
