"""When to stop adding rows: stability of the leader, a bound on the error, a budget; they combine with |.

A rule is a frozen value. For one selection it gives a function that is called at every look at the sums so
far and says whether they are enough.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from typing import NamedTuple

import numpy as np

from skpursuit.data.design import Design
from skpursuit.numerics.arrays import Floats, Indices
from skpursuit.parameters import check_count, check_number, short_repr
from skpursuit.selectors.query import Query

CHECK_EVERY = 128  # rows between two looks at the estimates, at most: a look costs as much as two rows


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
