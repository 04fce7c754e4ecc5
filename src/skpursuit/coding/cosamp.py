"""CoSaMP of one signal in NumPy, for the signals whose atoms nearly depend on each other."""

from __future__ import annotations

import numpy as np

from skpursuit.kernels.batch_types import STALL, Limits


def cosamp(
    atoms: np.ndarray,
    norms: np.ndarray,
    limits: Limits,
    max_iter: int,
    refit: bool,
    y: np.ndarray,
    tol: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Atoms and weights of a signal of ordinary size; atoms that depend on earlier ones are left out."""
    norm, room = np.linalg.norm(y), min(3 * limits.k, len(y))
    support, weights, residual, best = np.empty(0, np.int64), np.empty(0), y, y @ y
    for _ in range(max_iter):
        left = residual @ residual
        if left <= tol or left <= (limits.floor * norm) ** 2:
            break
        margin = norm + np.abs(weights) @ norms[support]
        scores = np.abs(atoms @ residual)
        scores[scores <= limits.floor * margin * norms] = -1
        noise, picks = limits.fine * margin * limits.scale**0.5, []
        for _ in range(min(2 * limits.k, int(np.count_nonzero(scores > 0)))):
            picks.append(int(np.argmax(scores >= scores.max() - noise)))
            scores[picks[-1]] = -1
        merged = [*support, *(j for j in picks if j not in support)]
        now, fitted = _least_squares(atoms, merged, limits, y, room)
        size = np.abs(fitted)
        order = np.lexsort((now, -size))[: limits.k]
        order = order[size[order] * norms[now[order]] > limits.floor * norm]
        now, fitted = now[order], fitted[order]
        if refit:
            now, fitted = _least_squares(atoms, now, limits, y, room)
        rest = y - fitted @ atoms[now]
        value = rest @ rest + limits.penalty * (fitted @ fitted)
        if not value < best * (1 - STALL):
            break
        support, weights, residual, best = now, fitted, rest, value
    return support, weights


def _least_squares(
    atoms: np.ndarray, chosen: list[int] | np.ndarray, limits: Limits, y: np.ndarray, room: int
) -> tuple[np.ndarray, np.ndarray]:
    """Independent ones among the chosen atoms, in order, and their weights."""
    basis = np.zeros((0, len(y)))
    kept: list[int] = []
    for j in chosen:
        rest = atoms[j].astype(np.float64)
        square = rest @ rest
        for _ in range(2):
            rest = rest - (basis @ rest) @ basis
        left = rest @ rest
        if len(kept) < room and left > limits.dependence * square:
            basis, kept = np.vstack([basis, rest / left**0.5]), [*kept, int(j)]
    matrix = np.vstack([atoms[kept].T, limits.penalty**0.5 * np.eye(len(kept))]).astype(np.float64)
    weights = np.linalg.lstsq(matrix, np.append(y, np.zeros(len(kept))), rcond=None)[0]
    return np.array(kept, np.int64), weights
