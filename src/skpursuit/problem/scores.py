"""What "largest" means: by absolute value, by sign, or by the norm of a row over several targets."""

from dataclasses import dataclass
from math import isnan
from typing import Protocol

import numpy as np

from skpursuit.numerics.arrays import Floats, Indices
from skpursuit.numerics.float_range import NonFiniteError, kth_largest


class Score(Protocol):
    """A function of gradient entries, one number per column; the largest wins."""

    def of(self, g: Floats) -> Floats:
        """Scores of the columns with gradient entries g."""
        ...

    def error(self, bound: Floats) -> Floats:
        """How far a score can move when g moves by at most `bound`."""
        ...


@dataclass(frozen=True)
class Absolute:
    """|g_j|."""

    def of(self, g: Floats) -> Floats:
        return np.abs(g)

    def error(self, bound: Floats) -> Floats:
        return bound


@dataclass(frozen=True)
class Signed:
    """-g_j: the smallest signed entry wins, the direction of steepest descent for non-negative weights."""

    def of(self, g: Floats) -> Floats:
        scores = -g
        scores[scores == -np.inf] = np.nan  # a sum that overflowed; -inf is the score of excluded columns
        return scores

    def error(self, bound: Floats) -> Floats:
        return bound


@dataclass(frozen=True)
class GroupNorm:
    """Euclidean norm of row j of g, shape (d, m): one support shared by m targets."""

    def of(self, g: Floats) -> Floats:
        top: Floats = np.abs(g).max(axis=1, initial=0.0)
        if not np.isfinite(top).all():
            return np.asarray(np.abs(g).sum(axis=1))
        power = np.frexp(top)[1]  # dividing by powers of two rounds nothing, so that ties stay ties
        scaled = np.ldexp(g, -power[:, None])
        norms: Floats = np.ldexp(np.sqrt(np.einsum("jm,jm->j", scaled, scaled)), power)
        return norms

    def error(self, bound: Floats) -> Floats:
        return self.of(bound)


def top_k(scores: Floats, k: int) -> Indices:
    """Indices of the k largest scores, best first, ties to the lowest index; -inf is never chosen.

    Raises `NonFiniteError` where a score is NaN.
    """
    if k == 1 and len(scores):
        best = int(np.argmax(scores))  # the first NaN, if there is one
        if isnan(scores[best]):
            raise NonFiniteError("some scores are NaN")
        return np.array([best] if scores[best] > -np.inf else [], dtype=np.intp)
    chosen = top_k_by_index(scores, k)
    return chosen[np.lexsort((chosen, -scores[chosen]))]


def top_k_by_index(scores: Floats, k: int) -> Indices:
    """As `top`, ascending."""
    k = min(k, int(np.count_nonzero(scores != -np.inf)))
    if k <= 0:
        return np.empty(0, dtype=np.intp)
    cut = kth_largest(scores, k)
    above = scores > cut
    tied = np.flatnonzero(scores == cut)[: k - np.count_nonzero(above)]
    above[tied] = True
    return np.flatnonzero(above)
