"""`Audit`: how close each choice of a pursuit came to the best one, as a value that travels with a result."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skpursuit.numerics.arrays import Floats, Indices


@dataclass(frozen=True, repr=False)
class Audit:
    """What `skpursuit.audit` found: one entry per step.

    Attributes
    ----------
    columns : ndarray of int
        The column that was taken.
    best : ndarray of int
        The column that exact selection would have taken, among those not yet taken.
    rho : ndarray
        Score of the column taken, divided by that of the best: 1 where they tie. The score is |g_j|, the
        gradient's size at that step; -g_j where only one sign counts; a norm over targets.
    rank : ndarray of int
        Columns with a larger score than the one taken, as a product in any order of summation has them.
    gap, believed_gap : ndarray, or None
        Of Frank-Wolfe: the duality gap, and the one that the run took for it.
    """

    columns: Indices
    best: Indices
    rho: Floats
    rank: Indices
    gap: Floats | None = None
    believed_gap: Floats | None = None

    @property
    def rho_min(self) -> float:
        """The smallest rho; 1 of a path without steps."""
        return float(self.rho.min(initial=1.0))

    @property
    def exact_until(self) -> int:
        """Leading steps that took a best column."""
        return int(np.cumprod(self.rho == 1.0).sum())

    @property
    def same_atoms(self) -> int:
        """Steps that took a best column."""
        return int(np.count_nonzero(self.rho == 1.0))

    @property
    def sentence(self) -> str:
        """The audit in one line."""
        mean = float(self.rho.mean()) if len(self.rho) else 1.0
        return (
            f"each step took at least {self.rho_min:.3g} of the best score (mean {mean:.3g}); "
            f"{self.same_atoms} of {len(self.rho)} steps took a best column, the first {self.exact_until} all"
        )

    def __repr__(self) -> str:
        return f"Audit: {self.sentence}"
