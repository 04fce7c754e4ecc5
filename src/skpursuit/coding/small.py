"""Codes of a few signals without a compiler: each step works on all of them at once, in NumPy.

Compiling the kernels of `kernels/batch.py` takes seconds, a small batch hundredths of one. Products of the
residuals with the atoms follow Gram rows, in float64; for orthogonal matching pursuit they are orthogonalised
as in Rubinstein, Zibulevsky, Elad 2008. Nothing difficult is decided here. A signal for which a choice is not
clear (scores or weights that are nearly equal or nearly zero, an atom that nearly depends on others, a
residual that nearly vanishes or nearly meets a limit) is left to the kernel, which codes pending signals.
"""

from __future__ import annotations

import numpy as np

from skpursuit.kernels.batch_types import STALL, Block, Codes, Limits
from skpursuit.numerics.arrays import Floats, Indices

APART = 1e-9  # of a signal's norm, or its square: what differs by more is different
ABOVE = 1e-4  # of a signal's norm: scores above it say something about the signal
LEFT = 1e-6  # of a signal's square, from which on its residual is a difference of squares
SHARP = 1e-2  # squared share of an atom left over by the others, above which no digits are lost


def omp_clear_signals(block: Block, atoms: Floats, gram: Floats, limits: Limits, codes: Codes) -> None:
    """Write the codes of signals whose choices are all clear; `gram` is the products of atoms in float64."""
    squares, energy, tol = np.diagonal(gram), block.energy, block.tol
    m, d, k = len(block.signals), len(atoms), limits.k
    signal, largest = np.arange(m), np.sqrt(energy * squares.max(initial=0.0))
    wide = block.signals.astype(np.float64)
    c = np.matmul(atoms.astype(np.float64), wide[:, :, None])[..., 0]  # one by one: bits of each are its own
    V, scores = np.empty((m, k, d)), np.empty((m, d))
    lower, half = np.tile(np.eye(k), (m, 1, 1)), np.zeros((m, k))
    chosen, size = np.zeros((m, k), np.int64), np.zeros(m, np.int64)
    left, going, clear = energy.copy(), energy > tol, np.ones(m, bool)
    for t in range(k):
        np.abs(c, out=scores)
        np.put_along_axis(scores, chosen[:, :t], 0.0, axis=1)
        best = scores.argmax(axis=1)
        top = scores[signal, best]
        scores[signal, best] = 0.0
        shadow = V[signal, :t, best]
        pivot = squares[best] - np.einsum("mt,mt->m", shadow, shadow)
        clear &= ~going | (top > ABOVE * largest) & (top - scores.max(axis=1) > APART * largest)
        clear &= ~going | (pivot > SHARP * squares[best])
        going &= clear
        if not going.any():
            break
        root, direction = np.sqrt(np.where(going, pivot, 1.0)), V[:, t]
        np.subtract(gram[best], np.matmul(shadow[:, None], V[:, :t])[:, 0], out=direction)
        direction /= root[:, None]
        step = np.where(going, c[signal, best] / root, 0.0)
        c -= np.multiply(step[:, None], direction, out=scores)
        lower[going, t, :t], lower[going, t, t] = shadow[going], root[going]
        chosen[:, t], half[:, t] = best, step
        size += going
        left -= step * step
        clear &= ~going | (left > LEFT * energy) & (np.abs(left - tol) > APART * energy)
        going &= clear & (left > tol)
    for i in range(k - 1, -1, -1):
        half[:, i] -= np.einsum("mt,mt->m", lower[:, i + 1 :, i], half[:, i + 1 :])
        half[:, i] /= lower[:, i, i]
    codes.indices[clear], codes.values[clear], codes.counts[clear] = chosen[clear], half[clear], size[clear]


def cosamp_clear_signals(block: Block, atoms: Floats, gram: Floats, limits: Limits, codes: Codes) -> None:
    """The same by CoSaMP; a clear signal keeps k atoms from its first iteration on."""
    wide, signals, k = atoms.astype(np.float64), block.signals.astype(np.float64), limits.k
    norms, norm, m = np.sqrt(np.diagonal(gram)), np.sqrt(block.energy), len(signals)
    start = np.matmul(wide, signals[:, :, None])[..., 0]  # one by one, as above
    kept, weights, coded = np.zeros((m, k), np.int64), np.zeros((m, k)), np.zeros(m, bool)
    best, clear, rows = block.energy.copy(), np.ones(m, bool), np.flatnonzero(block.energy > block.tol)
    for _ in range(limits.max_iter):
        if not len(rows):
            break
        old, c, tol, energy = kept[rows], start[rows], block.tol[rows], block.energy[rows]
        scores = np.abs(c - np.matmul(weights[rows, None], gram[old])[:, 0])
        order, largest = np.argsort(-scores, axis=1), norm[rows] * norms.max()
        picks, rest = order[:, : 2 * k], np.take_along_axis(scores, order[:, 2 * k : 2 * k + 1], axis=1)
        least = np.take_along_axis(scores, picks[:, -1:], axis=1)[:, 0]
        sure = (least > ABOVE * largest) & (least - rest.max(axis=1, initial=0.0) > APART * largest)
        known = np.broadcast_to(coded[rows, None], old.shape)
        used = np.hstack([known, ~((picks[:, :, None] == old[:, None]) & known[:, None]).any(axis=2)])
        merged = np.hstack([old, picks])
        fitted, sharp = _fit(gram, c, merged, used, limits.penalty)
        order = np.argsort(-np.abs(fitted), axis=1)[:, : k + 1]
        merged, fitted = (np.take_along_axis(each, order, axis=1) for each in (merged, fitted))
        size = np.abs(fitted)
        sure &= sharp & (size[:, k - 1] - size[:, k] > APART * size[:, 0])
        merged, fitted = merged[:, :k], fitted[:, :k]
        sure &= (np.abs(fitted) * norms[merged]).min(axis=1) > ABOVE * norm[rows]
        if limits.refit:
            fitted, sharp = _fit(gram, c, merged, np.ones(merged.shape, bool), limits.penalty)
            sure &= sharp
        residual = signals[rows] - np.matmul(fitted[:, None], wide[merged])[:, 0]
        left = np.einsum("mn,mn->m", residual, residual)
        value = left + limits.penalty * np.einsum("mk,mk->m", fitted, fitted)
        ratio = value / best[rows] - (1 - STALL)
        sure &= (left > LEFT * energy) & (np.abs(left - tol) > APART * energy) & (np.abs(ratio) > STALL / 8)
        clear[rows[~sure]] = False
        better = sure & (ratio < 0)
        now = rows[better]
        kept[now], weights[now], best[now], coded[now] = merged[better], fitted[better], value[better], True
        rows = rows[better & (left > tol)]
    codes.indices[clear], codes.values[clear] = kept[clear], weights[clear]
    codes.counts[clear] = k * coded[clear]


def _fit(gram: Floats, c: Floats, atoms: Indices, used: np.ndarray, penalty: float) -> tuple[np.ndarray, ...]:
    """Weights of the atoms that are used, zeros elsewhere; whether none nearly depends on the others."""
    unit = np.eye(atoms.shape[1])
    square = np.where(used[:, :, None] & used[:, None], gram[atoms[:, :, None], atoms[:, None]], unit)
    try:
        spread = np.einsum("mii,mii->mi", square, np.linalg.inv(square))
        right = np.where(used, np.take_along_axis(c, atoms, axis=1), 0.0)
        weights = np.linalg.solve(square + penalty * unit, right[..., None])[..., 0]
    except np.linalg.LinAlgError:
        return np.zeros(atoms.shape), np.zeros(len(atoms), bool)
    return weights, ((spread > 0) & (spread < 1 / SHARP)).all(axis=1)
