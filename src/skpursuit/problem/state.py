"""Values that travel: the state of a run, the record of an iteration, the result, and the ways to stop.

A state is all that a run needs to go on, and it never changes: a step makes a new one. So a run can be saved
after any step and resumed to the same bits, and the loop can keep the last good state when a step fails.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from skpursuit.numerics.arrays import NO_COLUMNS, Floats, Indices

if TYPE_CHECKING:
    from skpursuit.fit.growing import QRFactor
    from skpursuit.problem.problem import Problem


class Status(Enum):
    """Why a run stopped."""

    COMPLETE = "the requested number of non-zero coefficients was reached"
    CONVERGED = "the tolerance was reached"
    ZERO_RESIDUAL = "the residual is zero to working precision"
    OPTIMAL = "no column that is left improves the objective"
    STALLED = "the iterates stopped changing"
    CYCLING = "the iterates repeat; the best one is returned"
    MAX_ITER = "the limit on iterations was reached"
    TIME_LIMIT = "the time limit was reached"
    CALLBACK = "the callback asked to stop"
    DIVERGED = "an iterate was not finite or the objective grew; the best iterate is returned"
    INCONSISTENT = "the coefficients do not give the predictions the solver reached; the objective is theirs"

    @property
    def ok(self) -> bool:
        """Whether the solver itself was done, rather than cut short."""
        return self not in UNFINISHED


UNFINISHED = (Status.MAX_ITER, Status.TIME_LIMIT, Status.CALLBACK, Status.DIVERGED, Status.INCONSISTENT)


class SparseUpdate(NamedTuple):
    """How a point came from the one before: w <- factor w + sum of amounts e_columns."""

    factor: float
    columns: Indices
    amounts: Floats


@dataclass(frozen=True)
class State:
    """All a run needs to go on: a small immutable value.

    Attributes
    ----------
    support : ndarray of int
        Columns in the model, in order of selection.
    coef : ndarray of shape (len(support),) or (len(support), m)
    z : ndarray of shape (n,) or (n, m)
        Predictions.
    objective : float
    dropped : ndarray of int
        Columns found to depend on the support; never asked for again.
    memory : mapping of str to ndarray
        What a solver carries from step to step.
    status : Status, optional
        Set by the solver when it is done.
    factor : QRFactor, optional
        The support as `fit/growing.py` factorised it, for fits that grow it column by column. A
        checkpoint leaves it out.
    last_update : SparseUpdate, optional
        How this point came from the last one, where a solver moves instead of fitting.
    selector_memory : mapping of str to ndarray
        That of the last answer in the step that led here; empty if nothing was asked.
    """

    support: Indices
    coef: Floats
    z: Floats
    objective: float
    dropped: Indices = field(default_factory=lambda: NO_COLUMNS)
    memory: Mapping[str, np.ndarray] = field(default_factory=dict)
    status: Status | None = None
    factor: QRFactor | None = None
    last_update: SparseUpdate | None = None
    selector_memory: Mapping[str, np.ndarray] = field(default_factory=dict)

    @property
    def factorised(self) -> QRFactor:
        """The factor, of a state that has one."""
        assert self.factor is not None
        return self.factor


def empty_state(problem: Problem, factor: QRFactor | None = None) -> State:
    """The zero model."""
    z = np.zeros((problem.design.shape[0], *problem.target_shape))
    coef = np.empty((0, *problem.target_shape))
    return State(NO_COLUMNS, coef, z, problem.value(z), factor=factor)


@dataclass(frozen=True)
class Record:
    """One iteration, as callbacks and `Result.history` see it."""

    iteration: int
    objective: float
    selected: tuple[int, ...]
    entries_read: int
    bytes_read: int
    certificate: str
    seconds: float
    gap: float | None = None


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
        steps = len(self.rho)
        if self.exact_until == steps:
            return f"each of {steps} steps took a best column"
        return (
            f"{self.same_atoms} of {steps} steps took a best column, the first {self.exact_until} all; "
            f"of the best score at least {self.rho_min:.3g}, on average {self.rho.mean():.3g}"
        )

    def __repr__(self) -> str:
        return f"Audit: {self.sentence}"


@dataclass(frozen=True, repr=False)
class Result:
    """What `minimize` returns.

    Attributes
    ----------
    coef : ndarray of shape (d,) or (d, m)
        float64, whatever the dtype of X.
    support : ndarray of int
        Columns in order of selection.
    status : Status
    n_iter : int
    objective : float
        Of `coef`; infinite where it is beyond the float range. With other losses than squared these were
        fitted to the last digit at the end, and the last record of `history` may show slightly more.
    entries_read, bytes_read : int
        Entries and bytes that selection read: of X, of gathered columns, or of the codes that stand for X.
        Contains the indices of sparse X and the scales of codes; each call of an operator counts as all of X.
    prepared_bytes : int
        Bytes of the same kinds that this run read once for all its selections: for norms, layouts, codes and
        their norms, gathered columns and, with a checkpoint, a digest of X. What an earlier run prepared on
        the same design is not read again, and not counted.
    stored_bytes : int
        Bytes of stored products that selection read instead of X: columns of X^T X, and products of codes
        with columns. Vectors (y, residuals, norms, bounds) are in none of these counts.
    file_bytes : int
        Bytes that this run read from the files of an X on disk, and of its codes that are there, as the
        system counts them (`rchar` of /proc/self/io): headers, and columns that were read again, included;
        memory-mapped rows of the fit and checkpoints are not. Where `minimize` was given a path, making
        the design of it is included. The other counts are of entries that were used, whether they came from
        a file or from memory, and not of what had to be read for them.
    history : list of Record
    dropped : ndarray of int
        Columns that were found to depend on the support, and were left out.
    selector : str
        The selector used, and for `auto` why.
    audit : Audit, or None
        How close each step came to the best one, where `minimize` was asked for it. What that read is in none
        of the counts.
    """

    coef: Floats
    support: Indices
    status: Status
    n_iter: int
    objective: float
    entries_read: int
    bytes_read: int
    prepared_bytes: int
    history: list[Record]
    dropped: Indices
    selector: str
    stored_bytes: int = 0
    file_bytes: int = 0
    audit: Audit | None = None

    def __repr__(self) -> str:
        files = f"\n  files        read {self.file_bytes:,} bytes" if self.file_bytes else ""
        return (
            f"Result: {self.status.name}, {len(self.support)} columns after {self.n_iter} steps, "
            f"objective {self.objective:.6g}\n"
            f"  selector     {self.selector}\n"
            f"  selection    read {self.entries_read:,} entries, {self.bytes_read:,} bytes, "
            f"and {self.stored_bytes:,} bytes of stored products\n"
            f"  preparation  read {self.prepared_bytes:,} bytes once{files}"
            + ("" if self.audit is None else f"\n  audit        {self.audit.sentence}")
        )
