"""Gram-Schmidt that grows by one column at a time and can be replayed.

A new column is split into its coefficients on the orthonormal rows of Q and a remainder, which becomes the
next row. One pass over Q loses digits where little remains of the column; the pass is then repeated on the
remainder, and twice is nearly always enough. A column of which only rounding remains depends on the others.

Q is as large as the columns it was made of, everything else is k x k numbers or less. The way from a column
to its row of Q consists of the coefficients of each pass, at most three times k numbers, and of the norm of
the remainder. A checkpoint keeps those (`Factor.numbers`), and `Factor.replay` makes Q again from the
columns: the same operations on the same numbers in the same order, and so the same bits. Products of all rows
of Q in use have other bits than those of a part of them; the replay therefore grows Q as the run did.

A ridge changes the coefficients, and not which columns depend on others. With X_S = Q^T R it is least squares
on R with the roots of the penalties below it: 2k numbers a column, however large n is. These are factorised
in the same way, one column at a time (`RidgeFactor`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from math import sqrt
from typing import Any

import numpy as np

from skpursuit.numerics.arrays import Floats, Indices
from skpursuit.numerics.float_range import NonFiniteError
from skpursuit.numerics.rank_tolerance import rank_tolerance
from skpursuit.numerics.row_buffer import RowBuffer
from skpursuit.numerics.sums import BLOCK_ROWS

MOST_PASSES = 3


@dataclass(frozen=True, eq=False)
class RidgeFactor:
    """The triangle R of a factor with roots of penalties below it, as Q^T R once more: a value.

    Rows of R and roots take turns, so that the k-th column ends with its root and rows grow by two numbers.

    Attributes
    ----------
    Q : ndarray of shape (k, 2 k)
        Orthonormal rows.
    R : ndarray
        The columns of the new triangle one after the other.
    roots : ndarray of shape (k,)
        Square roots of the penalties.
    """

    Q: Floats = field(default_factory=lambda: np.empty((0, 0)))
    R: Floats = field(default_factory=lambda: np.empty(0))
    roots: Floats = field(default_factory=lambda: np.empty(0))

    def add(self, column: Floats, root: float) -> RidgeFactor:
        """Grow by a column of R, of k + 1 numbers, and the root of its penalty."""
        k = len(self.roots)
        Q, x = np.zeros((k, 2 * k + 2)), np.zeros(2 * k + 2)
        Q[:, : 2 * k], x[::2], x[-1] = self.Q, column, root
        q, h, _ = orthogonalise(Q, x, sqrt(x @ x), 0.0, np.zeros(k))
        assert q is not None  # R has a diagonal
        return RidgeFactor(np.vstack([Q, q]), np.concatenate([self.R, h]), np.append(self.roots, root))

    def first(self, k: int) -> RidgeFactor:
        """That of the first k columns."""
        return RidgeFactor(self.Q[:k, : 2 * k], self.R[: k * (k + 1) // 2], self.roots[:k])

    def rotate_targets(self, b: Floats) -> Floats:
        """The new triangle times the coefficients, from products b of the old rows with the targets."""
        return self.Q[:, ::2] @ b


@dataclass(frozen=True, eq=False)
class QRFactor:
    """The k columns of a support as Q^T R: a value, whose large parts share memory with those it grows from.

    Attributes
    ----------
    Q : Stack of shape (rank, n)
        Orthonormal rows.
    columns : Stack of shape (k, n), or None
        The columns themselves, if the factor keeps them.
    root : ndarray of shape (n,), or None
        What columns are multiplied by before they are split: roots of weights.
    unit : float
        The size of a remainder that is rounding, relative to its column.
    b : ndarray of shape (rank,) or (rank, m)
        The products of the rows of Q with the targets, where those were given.
    R : ndarray
        The columns of the triangle one after the other.
    noise_share : ndarray of shape (rank,)
        The share of each row of Q that was rounding in its column before (`Design.noise_floor`).
    counts : ndarray of int, shape (k,)
        Passes that were made for each column; 0 for one that depends on others and has no row of Q.
    passes : ndarray
        The coefficients of all passes one after the other.
    shrinkage : Shrinkage, or None
        What a ridge adds, if there is one.
    fitted : ndarray of shape (n,) or (n, m), or None
        The sum of rows of Q times b, where it is known.
    """

    Q: RowBuffer
    columns: RowBuffer | None
    row_scale: Floats | None
    rank_tol: float
    b: Floats
    R: Floats = field(default_factory=lambda: np.empty(0))
    noise_share: Floats = field(default_factory=lambda: np.empty(0))
    pass_counts: Indices = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    passes: Floats = field(default_factory=lambda: np.empty(0))
    shrinkage: RidgeFactor | None = None
    fitted: Floats | None = None

    @property
    def lines(self) -> Floats:
        """The columns as rows of an array, where the factor keeps them."""
        assert self.columns is not None
        return self.columns.rows

    def add(
        self,
        column: Floats,
        floor: float,
        rest: Floats | None = None,
        keep_dependent: bool = False,
        penalty: float = 0.0,
    ) -> QRFactor | None:
        """The factor with one more column; None where that depends on the others.

        `floor` is the norm of the rounding that the column had before, `rest` what the others leave of the
        targets, for `b`, `penalty` that of its coefficient. With `keep_dependent` a column that depends on
        others, and is more than rounding itself, is added without a row of Q.
        """
        floor = floor if self.row_scale is None else floor * self.row_scale.max()
        v = column if self.row_scale is None else column * self.row_scale
        size = sqrt(v @ v)
        q, h, passes = orthogonalise(self.Q.rows, v, size, max(floor, self.rank_tol * size), self.noise_share)
        if q is None and not (keep_dependent and size > floor):
            return None
        columns = None if self.columns is None else self.columns.extend(column[None])
        if q is None:
            R, counts = np.append(self.R, h[:-1]), np.append(self.pass_counts, 0)
            return replace(self, columns=columns, R=R, pass_counts=counts)
        return QRFactor(
            Q=self.Q.extend(q[None]),
            columns=columns,
            row_scale=self.row_scale,
            rank_tol=self.rank_tol,
            b=np.concatenate([self.b, np.empty((1, 0)) if rest is None else (q @ rest)[None]]),
            R=np.concatenate([self.R, h]),
            noise_share=np.concatenate([self.noise_share, [floor / h[-1]]]),
            pass_counts=np.concatenate([self.pass_counts, [len(passes)]]),
            passes=np.concatenate([self.passes, *passes]),
            shrinkage=self.shrinkage and self.shrinkage.add(h, sqrt(penalty)),
        )

    def triangle(self) -> Floats:
        """R as a matrix of shape (rank, k)."""
        before, grown = ranks(self.pass_counts)
        rows = np.zeros((len(grown), len(self.noise_share)))
        rows[np.arange(len(self.noise_share)) < (before + grown)[:, None]] = self.R
        return rows.T

    def first(self, k: int) -> QRFactor:
        """The factor of the first k columns, none of which depends on others."""
        return replace(
            self,
            Q=self.Q.first(k),
            columns=None if self.columns is None else self.columns.first(k),
            b=self.b[:k],
            fitted=None,
            R=self.R[: k * (k + 1) // 2],
            noise_share=self.noise_share[:k],
            pass_counts=self.pass_counts[:k],
            passes=self.passes[: int(self.pass_counts[:k] @ np.arange(k))],
            shrinkage=self.shrinkage and self.shrinkage.first(k),
        )

    def predictions_and_fit(self, coef: Floats) -> tuple[Floats, QRFactor]:
        """X_S w, of shape (n,) or (n, m), and the factor with its `fitted`."""
        return self.Q.combine(self.triangle() @ coef), replace(self, fitted=self.Q.combine(self.b))

    def checkpoint_arrays(self) -> dict[str, np.ndarray]:
        """All that `replay` needs besides the columns: no array of them has a length of n."""
        arrays = {
            "b": self.b,
            "R": self.R,
            "noise": self.noise_share,
            "counts": self.pass_counts,
            "passes": self.passes,
        }
        return arrays if self.shrinkage is None else arrays | {"roots": self.shrinkage.roots}

    def check_arrays(self, numbers: dict[str, Any], k: int) -> None:
        """Raise ValueError, or KeyError, where the numbers cannot be those of k columns in this form."""
        counts = numbers["counts"]
        whole = counts.dtype.kind == "i" and np.isin(counts, range(MOST_PASSES + 1)).all()
        if not whole or counts.shape != (k,):
            raise ValueError("not a number of passes for each column")
        before, grown = ranks(counts)
        rank, ends = int(grown.sum()), np.cumsum(before + grown)
        shapes = {"b": (rank, *self.b.shape[1:]), "noise": (rank,), "passes": (int(counts @ before),)}
        shapes |= {"R": (int((before + grown).sum()),)}
        shapes |= {} if self.shrinkage is None else {"roots": (rank,)}
        for name, shape in shapes.items():
            part = numbers[name]
            if part.shape != shape or part.dtype.kind != "f" or not np.isfinite(part).all():
                raise ValueError(f"{name} is not of {shape} numbers")
        if not (numbers["R"][ends[grown] - 1] > 0).all():
            raise ValueError("a remainder has no length")

    def replay(self, numbers: dict[str, Any], columns: Iterable[Floats]) -> QRFactor:
        """The factor of these columns that has these numbers, which were checked, to the same bits.

        It takes its form (targets, weights, whether columns are kept) from this one.
        """
        kept = None if self.columns is None else self.columns.first(0)

        def weighted() -> Iterator[Floats]:
            nonlocal kept
            for column in columns:
                kept = kept if kept is None else kept.extend(column[None])
                yield column if self.row_scale is None else column * self.row_scale

        Q = replay_rows(self.Q.first(0), numbers, weighted())
        ends = np.cumsum(np.add(*ranks(numbers["counts"])))
        known: dict[str, Any] = {name: numbers[name] for name in ("b", "R", "passes")}
        known |= {"noise_share": numbers["noise"], "pass_counts": numbers["counts"]}
        if self.shrinkage is not None:
            known["shrinkage"] = self.shrinkage.first(0)
            for column, root in zip(np.split(numbers["R"], ends[:-1]), numbers["roots"].tolist()):
                known["shrinkage"] = known["shrinkage"].add(column, root)
        return replace(self, Q=Q, columns=kept, fitted=None, **known)


def empty_factor(
    n: int,
    targets: tuple[int, ...] = (0,),
    weights: Floats | None = None,
    keeps_columns: bool = False,
    room: float = np.inf,
) -> QRFactor:
    """A factor without columns, of targets of that trailing shape; by default there are no targets.

    Rows of Q, and columns, that take more than `room` bytes are in files.
    """
    root = None if weights is None else np.sqrt(weights)
    none, b = RowBuffer(np.empty((0, n)), limit=room), np.empty((0, *targets))
    return QRFactor(none, none.first(0) if keeps_columns else None, root, rank_tolerance(n), b)


def ranks(counts: Indices) -> tuple[Indices, np.ndarray]:
    """The rank before each column, and which columns raise it, from the passes made for each."""
    grown = counts > 0
    return np.cumsum(grown) - grown, grown


def replay_rows(Q: RowBuffer, numbers: dict[str, Any], columns: Iterable[Floats]) -> RowBuffer:
    """The rows of Q that a factor with these numbers made of these columns; all of them or the same part."""
    counts, passes, R = (numbers[name] for name in ("counts", "passes", "R"))
    before, grown = ranks(counts)
    used, ends = counts * before, np.cumsum(before + grown)
    starts = np.cumsum(used) - used
    for at, v in enumerate(columns):
        if grown[at]:
            for part in passes[starts[at] :][: used[at]].reshape(counts[at], before[at]):
                v = v - part @ Q.rows
            with np.errstate(over="ignore"):
                row = v / R[ends[at] - 1]
            if not np.isfinite(row).all():
                raise NonFiniteError("a direction is not finite")
            Q = Q.extend(row[None])
    return Q


def orthogonalise(
    Q: Floats, v: Floats, size: float, tiny: float, noise: Floats
) -> tuple[Floats | None, Floats, list[Floats]]:
    """A vector as its coefficients on orthonormal rows and a unit remainder; None when it depends on them.

    `size` is the norm of the vector v, `tiny` that of a remainder which is rounding
    (`numerics/rank_tolerance.py`), `noise` the share of the rows that was rounding. Returns the unit
    remainder; the coefficients with the norm of the remainder behind them; and the coefficients of each pass,
    of which those are the sum.
    """
    h: Floats = np.zeros(len(noise) + 1)
    passes: list[Floats] = []
    left, noisy = size, noise.any()
    for _ in range(MOST_PASSES):
        part = row_products(Q, v)
        v = v - part @ Q
        h[:-1] = h[:-1] + part if passes else part
        passes.append(part)
        before, left = left, sqrt(v @ v)
        if left <= tiny or (noisy and left <= float(np.linalg.norm(noise * h[:-1]))):
            return None, h, passes
        if left > 0.5 * before:
            break
    h[-1] = left
    return v / left, h, passes


def row_products(Q: Floats, v: Floats) -> Floats:
    """Products of the rows of Q with v, in an order that does not depend on how their numbers are cut."""
    if len(v) <= BLOCK_ROWS:
        return Q @ v
    v, pieces = np.ascontiguousarray(v), len(v) // BLOCK_ROWS  # strided numbers are added in another order
    whole = pieces * BLOCK_ROWS
    lines = Q[:, :whole].reshape(len(Q), pieces, BLOCK_ROWS).transpose(1, 0, 2)
    parts = np.matmul(lines, v[:whole].reshape(pieces, BLOCK_ROWS, 1))[..., 0]
    if whole < len(v):
        parts = np.vstack([parts, Q[:, whole:] @ v[whole:]])
    return np.ascontiguousarray(parts.cumsum(axis=0)[-1])
