"""Gram-Schmidt that grows by one column at a time and can be replayed.

A new column is split into its coefficients on the orthonormal rows of Q and a remainder, which becomes the
next row. One pass over Q loses digits where little remains of the column; the pass is then repeated on the
remainder, and twice is nearly always enough. A column of which only rounding remains depends on the others.

A `Factor` is a value. The factor with one more column is another one, which shares the memory of the first:
rows behind the last one that is in use are free to be written to. Where two factors grow from the same one,
the second gets memory of its own.

Q is as large as the columns it was made of, everything else is k x k numbers or less. The way from a column
to its row of Q consists of the coefficients of each pass, at most three times k numbers, and of the norm of
the remainder. A checkpoint keeps those (`Factor.numbers`), and `Factor.rebuilt` makes Q again from the
columns: the same operations on the same numbers in the same order, and so the same bits. Products of all rows
of Q in use have other bits than those of a part of them; the replay therefore grows Q as the run did.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from skpursuit.data.base import Floats
from skpursuit.numerics.remainder import remainder_unit
from skpursuit.numerics.sums import scaled_norm

ROOM = 2**22  # entries of Q that there is room for at the beginning
FEWEST_COLUMNS, USUAL_COLUMNS = 8, 64  # that there is room for at the beginning, if they are long or short
MOST_PASSES = 3


class Buffers:
    """The memory of a factor and of those that grow from it, of which `filled` columns are in use."""

    def __init__(self, room: int, n: int, targets: tuple[int, ...], keeps_columns: bool) -> None:
        self.room = room
        self.filled = 0
        self.keeps_columns = keeps_columns
        self.Q = np.empty((room, n))
        self.noise = np.empty(room)
        self.b = np.empty((room, *targets))
        self.R = np.empty(room * (room + 1) // 2)
        self.lengths = np.empty(room, dtype=np.intp)
        self.columns = np.empty((room if keeps_columns else 0, n))

    def emptied(self, room: int) -> Buffers:
        """Other memory of the same form."""
        return Buffers(room, self.Q.shape[1], self.b.shape[1:], self.keeps_columns)


class Factor:
    """Columns of a support as Q^T R.

    Attributes
    ----------
    Q : ndarray of shape (rank, n)
        Orthonormal rows.
    noise : ndarray of shape (rank,)
        The share of each row of Q that was rounding in its column before (`Design.lost`).
    b : ndarray of shape (rank,) or (rank, m)
        The products of the rows of Q with the targets, where those were given.
    R : ndarray
        The columns of the triangle one after the other.
    lengths : ndarray of int, shape (k,)
        Their lengths: 1, 2, ..., k, unless some columns depend on others and have no row of Q.
    columns : ndarray of shape (k, n), or (0, n)
        The columns themselves, if the factor keeps them.
    repeated : tuple
        (position of a column, coefficients of each pass) where there was more than one pass.
    """

    def __init__(
        self,
        held: Buffers,
        root: Floats | None = None,
        rank: int = 0,
        size: tuple[int, int] = (0, 0),
        repeated: tuple[tuple[int, Floats], ...] = (),
    ) -> None:
        k, entries = size
        self.Q, self.noise, self.b = held.Q[:rank], held.noise[:rank], held.b[:rank]
        self.R, self.lengths, self.columns = held.R[:entries], held.lengths[:k], held.columns[:k]
        self.repeated = repeated
        self._held, self._root = held, root

    @classmethod
    def empty(
        cls,
        n: int,
        targets: tuple[int, ...] = (0,),
        weights: Floats | None = None,
        keeps_columns: bool = False,
    ) -> Factor:
        """No columns yet.

        Parameters
        ----------
        n : int
        targets : tuple of int
            The trailing shape of the targets; by default there are none.
        weights : ndarray of shape (n,), optional
            Columns are multiplied by their roots before they are split.
        keeps_columns : bool
            Whether the columns themselves are kept, too.
        """
        return cls(Buffers(0, n, targets, keeps_columns), None if weights is None else np.sqrt(weights))

    def add(
        self, column: Floats, lost: float, rest: Floats | None = None, keep_dependent: bool = False
    ) -> Factor | None:
        """The factor with one more column; None where that depends on the others.

        Parameters
        ----------
        column : ndarray of shape (n,)
        lost : float
            The norm of the rounding that the column had before.
        rest : ndarray of shape (n,) or (n, m), optional
            What the others leave of the targets, for `b`.
        keep_dependent : bool
            Add a column that depends on the others, too. It gets no row of Q.
        """
        x, root = column, self._root
        if root is not None:
            x, lost = column * root, lost * root.max()
        q, h, passes = orthogonalise(self.Q, x, lost, self.noise)
        if q is None and not keep_dependent:
            return None
        held, k, rank, start = self._writable(), len(self.lengths), len(self.Q), len(self.R)
        repeated = self.repeated
        if q is None:
            h = h[:-1]
        else:
            held.Q[rank], held.noise[rank] = q, lost / h[-1]
            if rest is not None:
                held.b[rank] = q @ rest
            if len(passes) > 1:
                repeated = (*repeated, (k, np.array(passes)))
            rank += 1
        end = start + len(h)
        held.R[start:end], held.lengths[k] = h, len(h)
        if held.keeps_columns:
            held.columns[k] = column
        return Factor(held, root, rank, (k + 1, end), repeated)

    def _writable(self) -> Buffers:
        """Memory that holds this factor and has room for one more column."""
        held, k = self._held, len(self.lengths)
        if held.filled > k or k == held.room:
            # Room costs nothing until it is written to, copies do.
            room = min(USUAL_COLUMNS, ROOM // max(1, held.Q.shape[1]))
            held = held.emptied(max(FEWEST_COLUMNS, room, 2 * k))
            for name in ("Q", "noise", "b", "R", "lengths", "columns"):
                own = getattr(self, name)
                getattr(held, name)[: len(own)] = own
        held.filled = k + 1
        return held

    def triangle(self) -> Floats:
        """R as a matrix of shape (rank, k)."""
        rows = np.zeros((len(self.lengths), len(self.Q)))
        rows[np.arange(len(self.Q)) < self.lengths[:, None]] = self.R
        return rows.T

    # -- checkpoints --------------------------------------------------------------------------------

    def numbers(self) -> dict[str, np.ndarray]:
        """All that `rebuilt` needs besides the columns: no array of them has a length of n."""
        counts = np.ones(len(self.lengths), dtype=np.intp)
        for at, passes in self.repeated:
            counts[at] = len(passes)
        flat = [passes.ravel() for _, passes in self.repeated]
        return {
            "R": self.R,
            "lengths": self.lengths,
            "noise": self.noise,
            "b": self.b,
            "pass_counts": counts,
            "passes": np.concatenate(flat) if flat else np.empty(0),
        }

    def rebuilt(self, numbers: Mapping[str, np.ndarray], columns: Floats) -> Factor:
        """The factor of these columns that has these numbers, to the same bits.

        It takes its form (targets, weights, whether columns are kept) from this one. Raises ValueError where
        the numbers do not belong to so many columns.
        """
        before = self._checked_ranks(numbers, len(columns))
        held, root, rank = self._held.emptied(len(columns)), self._root, 0
        held.filled = len(columns)
        for name in ("R", "lengths", "noise", "b"):
            getattr(held, name)[: len(numbers[name])] = numbers[name]
        if held.keeps_columns:
            held.columns[:] = columns
        starts = np.cumsum(numbers["lengths"]) - numbers["lengths"]
        passes, repeated = numbers["passes"], []
        for at, (start, rank, grown) in enumerate(zip(starts, before, numbers["lengths"] > before)):
            if not grown:
                continue
            coefficients = held.R[None, start : start + rank]
            if count := int(numbers["pass_counts"][at]) - 1:
                taken, passes = np.split(passes, [(count + 1) * rank])
                coefficients = taken.reshape(count + 1, rank)
                repeated.append((at, coefficients))
            v = columns[at] if root is None else columns[at] * root
            for part in coefficients:
                v = v - part @ held.Q[:rank]
            held.Q[rank] = v / held.R[start + rank]
        return Factor(held, root, len(numbers["noise"]), (len(columns), len(numbers["R"])), tuple(repeated))

    def _checked_ranks(self, numbers: Mapping[str, np.ndarray], k: int) -> np.ndarray:
        """The rank before each of k columns; ValueError where the numbers do not fit together."""
        lengths, counts = numbers["lengths"], numbers["pass_counts"]
        if any(part.shape != (k,) or part.dtype.kind != "i" for part in (lengths, counts)):
            raise ValueError("the factor has not as many columns as the support")
        ranks = np.maximum.accumulate(np.concatenate([[0], lengths]))
        before, rank = ranks[:-1], int(ranks[-1])
        grown = lengths > before
        shapes = {
            "R": (int(lengths.sum()),),
            "noise": (rank,),
            "b": (rank, *self.b.shape[1:]),
            "passes": (int((counts * before)[grown & (counts > 1)].sum()),),
        }
        fits = all(
            (part := numbers[name]).shape == shape and part.dtype.kind == "f" and np.isfinite(part).all()
            for name, shape in shapes.items()
        )
        steps = np.isin(lengths - before, (0, 1)).all() and np.isin(counts, range(1, MOST_PASSES + 1)).all()
        if not (fits and steps):
            raise ValueError("the numbers of the factor do not fit together")
        return before


def orthogonalise(
    Q: Floats, x: Floats, lost: float, noise: Floats
) -> tuple[Floats | None, Floats, list[Floats]]:
    """Split x into its coefficients on the rows of Q and a unit remainder; None when it depends on them.

    Parameters
    ----------
    Q : ndarray of shape (k, n)
    x : ndarray of shape (n,)
    lost : float
        The norm of the rounding that x had before.
    noise : ndarray of shape (k,)
        The share of the rows of Q that comes from such rounding.

    Returns
    -------
    ndarray of shape (n,), or None
        The remainder, divided by its norm.
    ndarray of shape (k + 1,)
        The coefficients, and the norm of the remainder.
    list of ndarray
        The coefficients of each pass, of which those are the sum.
    """
    size = left = scaled_norm(x)
    tiny = max(lost, remainder_unit(len(x)) * size)
    h: Floats = np.zeros(len(Q) + 1)
    passes: list[Floats] = []
    v, noisy = x, noise.any()
    for _ in range(MOST_PASSES):
        part = Q @ v
        v = v - part @ Q
        h[:-1] = h[:-1] + part if passes else part
        passes.append(part)
        before, left = left, scaled_norm(v)
        if left <= tiny or (noisy and left <= scaled_norm(noise * h[:-1])):
            return None, h, passes
        if left > 0.5 * before:
            break
    h[-1] = left
    v /= left
    return v, h, passes
