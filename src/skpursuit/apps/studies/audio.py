"""Sparse codes of sound: CoSaMP with k = 10 on pieces of a recording over learned atoms."""

from __future__ import annotations

import time
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

import skpursuit
from skpursuit.metrics import relative_error, support_overlap

from . import methods as compared
from .grid import Cell, CellRows
from .loaders import AudioRecording, find_audio, make_music
from .methods import OwnSelectors

MEASURED = ("error", "error_square", "seconds", "share_read", "entries_read", "iterations", "same_atoms")
K = 10
EPOCHS = 4
SEED = 5


@lru_cache(maxsize=1)
def recording(data: str | Path | None) -> AudioRecording:
    """The recordings of a folder, read once; generated notes without a folder."""
    return make_music(512, random_state=3) if data is None else find_audio(data)


@lru_cache(maxsize=1)
def learned(data: str | Path | None, atoms: int) -> np.ndarray:
    """Learn a dictionary, one atom a row; the same data give the same atoms."""
    learner = skpursuit.DictionaryLearner(atoms, K, max_iter=EPOCHS, random_state=SEED)
    return learner.fit(recording(data).pieces).components_


def run_audio(
    cell: Cell,
    data: str | Path | None,
    methods: tuple[str, ...],
    user_selectors: OwnSelectors = compared.NONE,
) -> CellRows:
    """Code some pieces by every method, one after the other on each piece, exact first."""
    dictionary = learned(data, cell["atoms"])
    X = skpursuit.as_design(np.ascontiguousarray(dictionary.T))
    pieces = recording(data).pieces[cell["first"] : cell["first"] + cell["count"]]
    pieces = pieces[pieces.any(axis=1)]  # silence has no code
    measured: dict[str, list[list[float]]] = {method: [] for method in methods if method != "coder"}
    chosen: dict[str, list[np.ndarray]] = {method: [] for method in measured}
    for i, y in enumerate(pieces):
        exact: np.ndarray | None = None
        for method, numbers in measured.items():
            selector = compared.make_selector(method, user_selectors=user_selectors)
            patient = compared.FixedIterationCoSaMP(n_nonzero_coefs=K, max_iter=K)
            solver = compared.stochastic(method, K, K) if method.startswith("stoch") else patient
            result, seconds = compared.timed_fit(X, y, solver, selector, seed=cell["first"] + i)
            exact = result.support if exact is None else exact
            chosen[method].append(result.support)
            error = relative_error(y, result.coef[result.support] @ dictionary[result.support])
            share = result.bytes_read / (max(1, result.n_iter) * dictionary.nbytes)
            same = support_overlap(exact, result.support)
            numbers.append([error, error**2, seconds, share, result.entries_read, result.n_iter, same])
    rows: list[dict[str, Any]] = []
    for method, numbers in measured.items():
        means = dict(zip(MEASURED, np.mean(numbers, axis=0).tolist()))
        text = compared.encode_columns(np.concatenate(chosen[method]), len(dictionary))
        new = not rows or text != rows[0]["columns"]
        rows.append({"method": method, "count": len(pieces), **means, "columns": text if new else None})
    return rows + ([_code_together(dictionary, pieces)] if "coder" in methods and len(pieces) else [])


def _code_together(dictionary: np.ndarray, pieces: np.ndarray) -> dict[str, Any]:
    """All pieces at once, which is what the coder is for."""
    coder = skpursuit.PursuitCoder(dictionary, n_nonzero_coefs=K, solver="cosamp")
    coder.transform(pieces[:1])  # compiles
    began = time.process_time()
    codes = coder.transform(pieces)
    seconds = (time.process_time() - began) / len(pieces)
    errors = [relative_error(y, z) for y, z in zip(pieces, codes @ dictionary)]
    means = {"error": float(np.mean(errors)), "error_square": float(np.mean(np.square(errors)))}
    return {"method": "coder", "count": len(pieces), "seconds": seconds, **means}
