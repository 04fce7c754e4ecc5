"""Sparse codes of sound: CoSaMP with k = 10 on pieces of a recording over learned atoms."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from skpursuit.data import Design, as_design
from skpursuit.loop.run import minimize
from skpursuit.metrics import relative_error
from skpursuit.solvers.base import Solver
from skpursuit.solvers.stochastic import StoGradMP

from .grid import Cell
from .loaders import Recording, find_audio
from .methods import Untiring, make_selector, warm
from .standins import make_music

COLUMNS = (
    "first",
    "count",
    "atoms",
    "method",
    "error",
    "error_square",
    "seconds",
    "share_read",
    "entries_read",
    "iterations",
    "same_atoms",
)
K = 10
EPOCHS = 4
SEED = 5
STAND_IN_PIECES = 512


@lru_cache(maxsize=1)
def recording(data: str | None) -> Recording:
    """The recordings of a folder, or generated notes."""
    return make_music(STAND_IN_PIECES, random_state=3) if data is None else find_audio(data)


@dataclass(frozen=True)
class Study:
    """Pieces and the atoms learned from them."""

    pieces: np.ndarray
    dictionary: np.ndarray
    design: Design


@lru_cache(maxsize=1)
def study(data: str | None, atoms: int) -> Study:
    """Learn the dictionary; the same data give the same atoms."""
    from skpursuit import DictionaryLearner

    pieces = recording(data).pieces
    learner = DictionaryLearner(atoms, K, max_iter=EPOCHS, random_state=SEED)
    dictionary = learner.fit(pieces).components_
    return Study(pieces, dictionary, as_design(np.ascontiguousarray(dictionary.T)))


def solver_of(method: str) -> Solver:
    """A fixed number of iterations: k, or 3k for the second stochastic method."""
    if method.startswith("stoch"):
        return StoGradMP(n_nonzero_coefs=K, max_iter=3 * K if method == "stoch-3k" else K)
    return Untiring(n_nonzero_coefs=K, max_iter=K)


def run_audio(
    cell: Cell, data: str | None, methods: tuple[str, ...], own: Mapping[str, str] | None = None
) -> list[Mapping[str, Any]]:
    """Code some pieces by every method, one after the other on each piece, exact first."""
    material = study(data, cell["atoms"])
    pieces = material.pieces[cell["first"] : cell["first"] + cell["count"]]
    pieces = pieces[np.linalg.norm(pieces, axis=1) > 0]
    sums: dict[str, list[np.ndarray]] = {method: [] for method in methods if method != "coder"}
    for i, y in enumerate(pieces):
        exact: np.ndarray | None = None
        for method in sums:
            numbers, support = _code(material.design, y, (method, own), cell["first"] + i, exact)
            exact = support if exact is None else exact
            sums[method].append(numbers)
    names = ("error", "error_square", "seconds", "share_read", "entries_read", "iterations", "same_atoms")
    rows = [
        {"method": method, "count": len(pieces), **dict(zip(names, np.mean(numbers, axis=0).tolist()))}
        for method, numbers in sums.items()
        if numbers
    ]
    return rows + ([_code_together(material, pieces)] if "coder" in methods and len(pieces) else [])


def _code(
    design: Design,
    y: np.ndarray,
    how: tuple[str, Mapping[str, str] | None],
    seed: int,
    exact: np.ndarray | None,
) -> tuple[np.ndarray, np.ndarray]:
    solver, selector = solver_of(how[0]), make_selector(how[0], own=how[1])
    warm(design, y, solver, selector)
    began = time.process_time()
    result = minimize(design, y, solver, selector, random_state=seed)
    seconds = time.process_time() - began
    error = relative_error(y, design.predict(result.support, result.coef[result.support]))
    n, d = design.shape
    share = result.bytes_read / (max(1, result.n_iter) * n * d * design.dtype.itemsize)
    same = 1.0 if exact is None else float(np.isin(exact, result.support).mean())
    numbers = [error, error**2, seconds, share, result.entries_read, result.n_iter, same]
    return np.array(numbers), result.support


def _code_together(material: Study, pieces: np.ndarray) -> dict[str, Any]:
    """All pieces at once, which is what the coder is for."""
    from skpursuit import PursuitCoder

    coder = PursuitCoder(material.dictionary, n_nonzero_coefs=K, solver="cosamp")
    coder.transform(pieces[:1])  # compiles
    began = time.process_time()
    codes = coder.transform(pieces)
    seconds = (time.process_time() - began) / len(pieces)
    errors = [relative_error(y, z) for y, z in zip(pieces, codes @ material.dictionary)]
    return {
        "method": "coder",
        "count": len(pieces),
        "error": float(np.mean(errors)),
        "error_square": float(np.mean(np.square(errors))),
        "seconds": seconds,
    }
