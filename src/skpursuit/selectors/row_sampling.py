"""Partial sums of X^T r over some rows: in decreasing order of energy, or drawn at random.

A row adds at most |r_i| ||x_i|| to any entry of X^T r, its energy. `Greedy` adds the rows with the most
energy first, `Uniform` and `Importance` draw rows and scale what they drew to an unbiased estimate. All three
stop by a rule: once the leader has lasted, the rest is bounded, or a share was read. A rule is a frozen
value; for each selection it gives a function that says at every look whether the sums so far are enough.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import ceil, isfinite
from typing import ClassVar, NamedTuple

import numpy as np

from skpursuit.data.design import Design
from skpursuit.numerics.arrays import NO_COLUMNS, Floats, Indices
from skpursuit.numerics.error_bounds import Estimate
from skpursuit.numerics.float_range import NonFiniteError
from skpursuit.parameters import check_count, check_number, short_repr
from skpursuit.selectors.base import Round, Selector
from skpursuit.selectors.contests import contest_of
from skpursuit.selectors.query import Query, Selection
from skpursuit.selectors.top_k import resolve_top_k

CHECK_EVERY = 128  # rows between two looks at the estimates, at most: a look costs as much as two rows
LINE_POINTS = 90  # of a line in a picture of the rounds


def row_energies(design: Design, r: Floats) -> Floats:
    """|r_i| ||x_i||, the most a row can add to an entry; with several targets the norm of r_i."""
    size = np.abs(r) if r.ndim == 1 else np.sqrt(np.einsum("im,im->i", r, r))
    energy = size * design.norms(1)
    if design.is_complex:  # both parts of a row come with one reading
        energy = np.repeat(np.hypot(energy[::2], energy[1::2]), 2)
    if not isfinite(energy.max(initial=0.0)):
        raise NonFiniteError("r, or the norm of a row, is not finite")
    return energy


def rows_by_energy(design: Design, r: Floats) -> Indices:
    """Rows in decreasing order of energy, ties by index; rows that add nothing are left out."""
    energy = row_energies(design, r)
    return argsort_descending(energy)[: int(np.count_nonzero(energy))]


def argsort_descending(values: Floats) -> Indices:
    """Indices of values >= 0 from the largest to the smallest, the lowest first among equals.

    Sorting is faster where the order of equals does not matter, and equals are rare.
    """
    order = np.argsort(-values)
    ranked = values[order]
    return order if (ranked[1:] < ranked[:-1]).all() else np.argsort(-values, kind="stable")


def zero_gradient(design: Design, r: Floats) -> Floats:
    """Zeros shaped as X^T r, each target contiguous as the kernels want it."""
    return np.zeros((*r.shape[1:], design.shape[1])).T


def trace_partial_sums(
    design: Design, rows: Indices, weights: Floats, looks: Sequence[int]
) -> Iterator[tuple[int, Floats]]:
    """Yield (rows used, their sums) at these looks, and at as many more before the last as make a line."""
    smooth = np.geomspace(1, max([1, *looks]), LINE_POINTS).astype(int)
    sums = np.zeros((design.shape[1], *weights.shape[1:]))
    for start, end in pairwise([0, *np.unique(np.append(smooth, looks).astype(int)).tolist()]):
        design.add_rows(rows[start:end], weights[start:end], sums)
        yield end, sums


class PartialSum(NamedTuple):
    """What a stop rule may look at while rows are added."""

    design: Design
    query: Query
    used: Indices  # rows
    estimates: Floats

    def bound(self) -> float:
        """What the unused rows can add to any entry, at most: the sum of ||x_i||_inf |r_i|."""
        r = self.query.r
        size = np.abs(r) if r.ndim == 1 else np.linalg.norm(r, axis=1)
        bound = size * self.design.norms(1, np.inf)
        bound[self.used] = 0.0
        return float(bound.sum())


StopCheck = Callable[[PartialSum], bool]


class StopRule(ABC):
    """A rule for Greedy, Uniform and Importance. ``a | b`` stops when either would."""

    needs_distinct_rows = False  # it holds for sums in which every row is used at most once, not for samples

    @abstractmethod
    def new_check(self, query: Query, n: int) -> StopCheck:
        """Start watching one selection over n rows."""

    @abstractmethod
    def next_check(self, rows_used: int, n: int) -> int:
        """The number of rows at which the rule wants to look next."""

    def __or__(self, other: StopRule) -> StopRule:
        if not isinstance(other, StopRule):
            return NotImplemented
        return AnyOf((self, other))


@dataclass(frozen=True)
class AnyOf(StopRule):
    """Stop as soon as one of several rules does."""

    rules: tuple[StopRule, ...]

    @property
    def needs_distinct_rows(self) -> bool:  # type: ignore[override]
        return any(rule.needs_distinct_rows for rule in self.rules)

    def new_check(self, query: Query, n: int) -> StopCheck:
        watches = [rule.new_check(query, n) for rule in self.rules]
        return lambda rows: any([is_enough(rows) for is_enough in watches])  # every rule must see every look

    def next_check(self, rows_used: int, n: int) -> int:
        return min(rule.next_check(rows_used, n) for rule in self.rules)


@dataclass(frozen=True)
class Stability(StopRule):
    """Stop once the top index has not changed during the last rows.

    Parameters
    ----------
    rows : int or float
        N_s of the paper: a number of rows, or a fraction of n when below 1.
    check_every : int, optional
        Rows between two looks at the leader; 1 is the rule as the paper prints it. Default: N_s in as few
        equal parts as have at most 128 rows, and the leader is seen at the ends of parts alone.
    """

    rows: float = 0.02
    check_every: int | None = None

    def __post_init__(self) -> None:
        check_number("rows", self.rows, "(0, inf)")
        check_count("check_every", self.check_every)

    def patience(self, n: int) -> int:
        """N_s as a number of rows."""
        return max(1, ceil(self.rows * n) if self.rows < 1 else int(self.rows))

    def new_check(self, query: Query, n: int) -> StopCheck:
        patience, leaders, since = self.patience(n), None, 0

        def is_enough(rows: PartialSum) -> bool:
            nonlocal leaders, since
            now = int(query.scores(rows.estimates).argmax())
            if now != leaders:
                leaders, since = now, len(rows.used)
            return len(rows.used) - since >= patience

        return is_enough

    def next_check(self, rows_used: int, n: int) -> int:
        patience = self.patience(n)
        return rows_used + (self.check_every or ceil(patience / ceil(patience / CHECK_EVERY)))


@dataclass(frozen=True)
class ErrorBound(StopRule):
    """Stop once the rows not yet used can move no entry by more than eps.

    For `Greedy`, which adds every row at most once. `Uniform` and `Importance` refuse it: they draw rows with
    replacement and scale what they drew, and the rows not yet drawn do not bound the error of that.

    Parameters
    ----------
    eps : float or "auto"
        The bound on sum of ||x_i||_inf |r_i| over unused rows. "auto" takes what a Frank-Wolfe step can bear:
        factor gamma_t C_f / (4 radius).
    factor : float
        Factor of the automatic bound; the guaranteed gap is 2 C_f (1 + factor) / (t + 2).
    """

    needs_distinct_rows = True
    eps: float | str = "auto"
    factor: float = 1.0

    def __post_init__(self) -> None:
        if isinstance(self.eps, str):
            if self.eps != "auto":
                raise ValueError(f"eps must be a number or 'auto', got {short_repr(self.eps)}")
        else:
            check_number("eps", self.eps, "[0, inf]")
        check_number("factor", self.factor, "(0, inf)")

    def new_check(self, query: Query, n: int) -> StopCheck:
        if self.eps == "auto" and query.tolerated_error is None:
            raise ValueError("ErrorBound('auto') needs Frank-Wolfe and bounded curvature; give a number")
        eps = self.factor * (query.tolerated_error or 0.0) if self.eps == "auto" else float(self.eps)
        return lambda rows: rows.bound() <= eps

    def next_check(self, rows_used: int, n: int) -> int:
        return rows_used + CHECK_EVERY


@dataclass(frozen=True)
class Budget(StopRule):
    """Stop after a fixed share of the rows.

    Parameters
    ----------
    fraction : float
        Between 0 (excluded) and 1.
    """

    fraction: float = 0.2

    def __post_init__(self) -> None:
        check_number("fraction", self.fraction, "(0, 1]")

    def new_check(self, query: Query, n: int) -> StopCheck:
        return lambda rows: len(rows.used) >= ceil(self.fraction * n)

    def next_check(self, rows_used: int, n: int) -> int:
        return max(rows_used + 1, ceil(self.fraction * n))


@dataclass(frozen=True)
class RowSelector(Selector):
    """Adds rows until a stop rule fires. Subclasses say which rows, with which weights."""

    random_access = "rows"
    answers_contests: ClassVar[bool] = True
    order_text: ClassVar[str]  # how rows come, in words
    draws: ClassVar[bool] = False  # with replacement, so that the sums of all rows are no answer either
    stop: StopRule = field(default_factory=Stability)

    def __post_init__(self) -> None:
        if not isinstance(self.stop, StopRule):
            raise TypeError(f"stop must be an object such as Stability(0.02), got {short_repr(self.stop)}")

    @abstractmethod
    def row_schedule(self, design: Design, query: Query) -> tuple[Indices, Floats]:
        """All rows that may be used, in order, and the weight of each."""

    def accumulate(self, design: Design, query: Query) -> Iterator[tuple[int, int, Floats]]:
        """Yield (rows used, rows there are, partial sums) at every look, until the rule fires."""
        n = design.shape[0]
        rows, weights = self.row_schedule(design, query)
        sums = zero_gradient(design, query.r)
        is_enough, used = self.stop.new_check(query, n), 0
        while used < len(rows):
            until = min(self.stop.next_check(used, n), len(rows))
            design.add_rows(rows[used:until], weights[used:until], sums)
            used = until
            yield used, len(rows), sums
            if is_enough(PartialSum(design, query, rows[:used], self.estimate_from_sums(sums, used))):
                return

    def find(self, design: Design, query: Query) -> Selection:
        used, available, sums = 0, 0, zero_gradient(design, query.r)
        for used, available, sums in self.accumulate(design, query):  # noqa: B007
            pass
        if used == available and not self.draws:
            return resolve_top_k(design, query, Estimate(sums, design.rounding(query.r, any_order=True)))
        g = self.estimate_from_sums(sums, max(1, used))
        best = contest_of(query.score).best(g, query)
        return Selection(best, g[best], "heuristic")

    def estimate_from_sums(self, sums: Floats, used: int) -> Floats:
        """Estimates of X^T r from the sums."""
        return sums

    def rounds(self, design: Design, query: Query) -> Iterator[Round]:
        """Estimates by more and more rows, as far as the rule lets it go; no column is dropped."""
        again, columns = replace(query, rng=deepcopy(query.rng)), query.allowed(design.shape[1])
        looks = [used for used, _, _ in self.accumulate(design, again)]
        for used, sums in trace_partial_sums(design, *self.row_schedule(design, query), looks):
            yield used, columns, self.estimate_from_sums(sums, used)[columns]

    @property
    def plot_title(self) -> str:
        return f"{type(self).__name__}: rows {self.order_text}"


@dataclass(frozen=True)
class Greedy(RowSelector):
    """Rows in decreasing |r_i| ||x_i||, accumulated until a stop rule fires (algorithm "greedy").

    With all rows used the answer is exact.

    Parameters
    ----------
    stop : StopRule
        Default ``Stability(0.02)``.
    """

    order_text = "by energy"

    def row_schedule(self, design: Design, query: Query) -> tuple[Indices, Floats]:
        rows = rows_by_energy(design, query.r)
        return rows, query.r[rows]


@dataclass(frozen=True)
class Uniform(RowSelector):
    """Rows drawn uniformly with replacement: an unbiased estimate of X^T r (algorithm "empirical").

    At most n draws; never called exact.

    Parameters
    ----------
    stop : StopRule
        Default ``Stability(0.02)``. `ErrorBound` is refused, also as a part of ``a | b``.
    """

    order_text = "at random"
    draws = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.stop.needs_distinct_rows:
            raise ValueError(
                "stop: ErrorBound bounds a partial sum in which every row is used once, not a sample of rows "
                f"such as that of {type(self).__name__}; use it with Greedy, or stop by Stability or Budget"
            )

    def probabilities(self, design: Design, query: Query) -> Floats:
        """Chance of each row to be drawn."""
        return np.full(design.shape[0], 1.0 / design.shape[0])

    def row_schedule(self, design: Design, query: Query) -> tuple[Indices, Floats]:
        n = design.shape[0]
        p = self.probabilities(design, query)
        if not p.any():
            return NO_COLUMNS, query.r[:0]
        rng = query.rng or np.random.default_rng(0)
        steps = np.cumsum(p)
        rows = np.searchsorted(steps, rng.random(n) * steps[-1], side="right")
        rows = np.minimum(rows, int(np.flatnonzero(p)[-1]))
        weight = query.r[rows].T / p[rows]
        return rows, weight.T

    def estimate_from_sums(self, sums: Floats, used: int) -> Floats:
        return sums / used


@dataclass(frozen=True)
class Importance(Uniform):
    """As `Uniform`, with chances proportional to |r_i| ||x_i||: the smallest variance (the paper's `best`).

    Rows with zero chance add nothing and are never drawn.

    Parameters
    ----------
    stop : StopRule
        As for `Uniform`.
    """

    order_text = "drawn by energy"

    def probabilities(self, design: Design, query: Query) -> Floats:
        energy = row_energies(design, query.r)
        energy /= energy.max(initial=0.0) or 1.0  # whose sum is not beyond the float range
        return energy / (energy.sum() or 1.0)
