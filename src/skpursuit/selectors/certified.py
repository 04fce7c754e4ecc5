"""Certified selection: the answer of exact selection, proven, from one byte an entry."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import log
from typing import Any

from skpursuit.data.base import Design
from skpursuit.numerics.blas import one_thread
from skpursuit.parameters import check_count, check_flag, check_number
from skpursuit.selectors.base import Query, Selection, Selector, settled
from skpursuit.selectors.exact import Exact

LONG = 100  # selections from which a second byte has paid for itself
TALL = 20000  # rows from which one byte leaves many columns


@dataclass(frozen=True)
class Certified(Selector):
    """Estimate X^T r on int8 codes of X with a rigorous interval, and compute what could still win exactly.

    The answer is that of `Exact`, ties to the lowest index included, unless the top entries differ by less
    than the rounding of a float64 product. Where the intervals leave many columns, a second byte of each
    narrows them down first. On large X and with squared loss the codes are not read at every step: their
    products with likely columns are made ahead, several in one pass (see `ahead.py`). On sparse X the
    exact product is the certificate.

    Parameters
    ----------
    delta : float
        0: a proof. Above 0: codes rounded at random, narrower intervals, and one chance of at most `delta`
        that any answer of the run differs from the exact one (certificate "delta").
    seed : int
        Seed of the random rounding.
    events : int, optional
        Number of intervals that share `delta`; found from the solver when None.
    fine : bool
        Whether a second byte an entry is made beforehand; set for solvers that ask for many columns,
        for long runs and tall X, and later where one byte leaves too many columns.
    """

    delta: float = 0.0
    seed: int = 0
    events: int | None = None
    fine: bool = False

    def __post_init__(self) -> None:
        check_number("delta", self.delta, "[0, 1)")
        check_count("seed", self.seed, optional=False, least=0)
        check_count("events", self.events)
        check_flag("fine", self.fine)

    def resolve(self, problem: Any, solver: Any) -> Selector:
        n, d = problem.design.shape
        wide = max(1, *problem.targets) if problem.targets else 1
        events = self.events or solver.iterations(problem) * d * wide
        fine = self.fine or solver.asks_many or n > TALL or solver.work(problem)[0] >= LONG
        return replace(self, events=events if self.delta else None, fine=fine)

    def identity(self) -> str:
        return repr(replace(self, events=None, fine=False))

    def prepare(self, design: Design) -> None:
        if design.has_twin():
            design.twin(self._twin_seed(), self.fine)

    def memory(self, design: Design) -> int:
        products = 0.5  # of codes, made ahead
        bytes_an_entry = 1 + self.fine + products if design.has_twin() else 0
        return int(bytes_an_entry * design.shape[0] * design.shape[1])

    def find(self, design: Design, query: Query) -> Selection:
        if not design.has_twin():
            return Exact().find(design, query)
        with one_thread():
            ahead = query.coded() if query.coded is not None and not self.delta else None
            g, bound = ahead or design.estimate(query.r, self._twin_seed(), self._log_delta(design))
            answer = settled(design, query, g, bound, None, self.fine, self._twin_seed())
        return replace(answer, certificate="delta") if self.delta else answer

    def _twin_seed(self) -> int | None:
        return self.seed if self.delta else None

    def _log_delta(self, design: Design) -> float | None:
        if not self.delta:
            return None
        return log(self.delta / (self.events or design.shape[1]))
