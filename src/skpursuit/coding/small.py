"""Codes of a few signals without a compiler: orthogonal matching pursuit of all of them at once, in NumPy.

Compiling the kernels of `kernels/batch.py` takes seconds, a small batch hundredths of one. Each step works on
all signals together: products of their residuals with the atoms follow Gram rows, in float64, orthogonalised
as in Rubinstein, Zibulevsky, Elad 2008. Nothing difficult is decided here. A signal for which a choice is not
clear (scores that are nearly equal or nearly zero, an atom that nearly depends on others, a residual that
nearly vanishes or nearly meets the tolerance) is left to the kernel, which codes signals that are pending.
"""

from __future__ import annotations

import numpy as np

from skpursuit.kernels.batch_types import Block, Codes
from skpursuit.numerics.arrays import Floats

APART = 1e-9  # of a signal's norm, or its square: what differs by more is different
ABOVE = 1e-4  # of a signal's norm: scores above it say something about the signal
LEFT = 1e-6  # of a signal's square, from which on its residual is a difference of squares
SHARP = 1e-2  # squared share of an atom left over by the others, above which no digits are lost


def code_clear_signals(block: Block, atoms: Floats, gram: Floats, k: int, codes: Codes) -> None:
    """Write the codes of signals whose choices are all clear; `gram` is the products of atoms in float64."""
    squares, energy, tol = np.diagonal(gram), block.energy, block.tol
    m, d = len(block.signals), len(atoms)
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
