"""Questions to selectors and their answers.

Before a run a solver says what it expects to ask (`Workload`). At every step it asks which entries of X^T r
are largest (`Query`) and gets columns (`Selection`), with what was read and what the answer is worth. All
three are values without functions in them: what a selector has to remember goes into the answer (`Memory`)
and comes back with the next question, so that a run can be saved and resumed between any two steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from skpursuit.numerics.arrays import NO_COLUMNS, Floats, Indices
from skpursuit.numerics.error_bounds import Estimate
from skpursuit.problem.scores import Absolute, Score
from skpursuit.problem.state import State

Memory = Mapping[str, np.ndarray]
NO_MEMORY: Memory = {}


@dataclass(frozen=True)
class Query:
    """The question: which k entries of X^T r score highest.

    Parameters
    ----------
    r : ndarray of shape (n,) or (n, m)
    k : int
    score : Score
    exclude : ndarray of int
        Columns that may not be chosen.
    rng : numpy.random.Generator, optional
    tolerated_error : float, optional
        The error a Frank-Wolfe step can bear, for `ErrorBound("auto")`.
    state : State, optional
        The state whose residual r is, for gradients that follow from coefficients; None where r is another
        vector, such as the residual of a batch.
    n_remaining : int, optional
        Columns that the support may still gain, this one included.
    ordered : bool
        Whether the answer must be best first. Without it only the set is made sure of, which is cheaper.
    """

    r: Floats
    k: int = 1
    score: Score = field(default_factory=Absolute)
    exclude: Indices = field(default_factory=lambda: NO_COLUMNS)
    rng: np.random.Generator | None = None
    tolerated_error: float | None = None
    state: State | None = None
    n_remaining: int | None = None
    ordered: bool = True

    def scores(self, g: Floats) -> Floats:
        """Scores of all columns, -inf where excluded."""
        scores = self.score.of(g)
        scores[self.exclude] = -np.inf
        return scores

    def allowed(self, d: int) -> Indices:
        """The columns that may be chosen, ascending."""
        mask = np.ones(d, dtype=bool)
        mask[self.exclude] = False
        return np.flatnonzero(mask)


class Selection(NamedTuple):
    """An answer: the columns, best first, what was read to find them, and what the answer is worth.

    Attributes
    ----------
    columns : ndarray of int
    gradient : ndarray
        Their entries of X^T r; the largest float in place of those beyond it. Of an ordered exact answer
        they are products in a fixed order, or estimates whose sign, and that they are not zero, are certain.
    certificate : str
        "exact", "heuristic", or "none" without columns.
    entries_read, bytes_read : int
    n_recomputed : int
        Columns that were computed exactly because estimates could not tell them apart.
    memory : mapping of str to ndarray
        What the selector wants to be given with the next query.
    full_gradient : Estimate, optional
        X^T r for all columns, where it was known without reading X.
    """

    columns: Indices
    gradient: Floats
    certificate: str
    entries_read: int = 0
    bytes_read: int = 0
    n_recomputed: int = 0
    memory: Memory = NO_MEMORY
    full_gradient: Estimate | None = None


@dataclass(frozen=True)
class Workload:
    """What a solver will ask for, as far as it knows beforehand."""

    n_queries: int = 1  # selections
    n_columns: int = 1  # different columns
    # Moves of the predictions since they were X_S w_S, whose rounding they carry. None: as many as there were
    # steps, and `State.last_update` has each of them.
    n_updates: int | None = 0
    many_columns: bool = False  # whether queries are for more than one column
    n_targets: int = 1
    y: Floats | None = None  # where r is X_S w_S - y, so that the gradient follows from coefficients
    contest: str = ""  # the parameter that makes scores a contest, as messages name it; empty without one

    @property
    def is_pursuit(self) -> bool:
        """Whether steps are those of a least-squares pursuit of one target, which can be guessed ahead."""
        pursues = self.y is not None and self.y.ndim == 1 and self.n_updates is not None
        return pursues and not (self.many_columns or self.contest)
