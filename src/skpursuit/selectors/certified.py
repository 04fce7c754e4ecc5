"""Certified selection: the answer of exact selection, proven, from one byte an entry.

Codes of X give an estimate of X^T r with an interval for every column. Columns whose interval lies below the
best lower end cannot win; usually one is left, else the few that are left are computed exactly (`settle`).
For squared loss the estimate is a sum of products that were made ahead (`column_sums.py`), so that the codes
are read about every seventh step. With delta > 0 codes are rounded at random, and intervals are narrower.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, log
from typing import ClassVar

from skpursuit.data.design import Design
from skpursuit.numerics.blas import one_thread
from skpursuit.numerics.estimate import Estimate
from skpursuit.numerics.tuning import LONG, NANO, PRICES, RECOMPUTED, SERVES, TALL, TILE_LOOK
from skpursuit.parameters import check_count, check_flag, check_number
from skpursuit.selectors.base import Bound, Selector
from skpursuit.selectors.column_sums import CodeSums, codes_pay
from skpursuit.selectors.exact import Exact
from skpursuit.selectors.query import NOTHING, Expect, Memory, Query, Selection
from skpursuit.selectors.settle import CodeOrigin, exact_answer, settle
from skpursuit.selectors.speculation import Speculation


@dataclass(frozen=True)
class Certified(Selector):
    """Estimate X^T r on int8 codes of X with a rigorous interval, and compute what could still win exactly.

    The answer is that of `Exact`, ties to the lowest index included, unless the top entries differ by less
    than the rounding of a float64 product. Where the intervals leave many columns, a second byte of each
    narrows them down first. On large X and with squared loss the codes are not read at every step: their
    products with likely columns are made ahead, several in one pass (see `column_sums.py`). On sparse X the
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
        Whether a second byte an entry is made beforehand; without `delta` set for solvers that ask for many
        columns, for long runs and tall X, and later where one byte leaves too many columns.
    """

    compiled: ClassVar[bool] = True
    delta: float = 0.0
    seed: int = 0
    events: int | None = None
    fine: bool = False

    def __post_init__(self) -> None:
        check_number("delta", self.delta, "[0, 1)")
        check_count("seed", self.seed, optional=False, least=0)
        check_count("events", self.events)
        check_flag("fine", self.fine)

    def bind(self, design: Design, expect: Expect) -> Bound:
        if not design.has_codes:
            return Exact().bind(design, expect)
        d = design.shape[1]
        events = (self.events or expect.limit * d * expect.targets) if self.delta else None
        fitted = replace(self, events=events, fine=self._fine(design, expect))
        design.codes(fitted.codes.seed, fitted.fine)
        if expect.y is None or expect.roundings is None or self.delta or expect.asks_many:
            return Bound(fitted, design)
        speculation = Speculation(design, expect) if expect.y.ndim == 1 else None
        pay = codes_pay(design, expect.targets, 0)
        sums = CodeSums(design, expect.y, expect.roundings) if pay else None
        return Bound(fitted, design, sums, speculation)

    def _fine(self, design: Design, expect: Expect) -> bool:
        """Whether a second byte an entry will be needed; on disk a pass makes it later."""
        (n, d), store = design.shape, design.store
        tall = n > TALL or (store.on_disk and n > TALL // 4 and store.has_room(2 * n * d))
        proof = not self.delta  # else intervals are narrow enough for one byte
        return self.fine or (proof and (expect.asks_many or tall or expect.steps >= LONG))

    @property
    def codes(self) -> CodeOrigin:
        """The codes of X that are read."""
        return CodeOrigin(self.fine, self.seed if self.delta else None)

    def find(self, design: Design, query: Query) -> Selection:
        if not design.has_codes:
            return Exact().find(design, query)
        with one_thread():  # as in a run
            return self.answer(Bound(self, design), query, NOTHING)

    def answer(self, bound: Bound, query: Query, memory: Memory) -> Selection:
        design, codes = bound.design, self.codes
        found = None if bound.speculation is None else bound.speculation.answer(query)
        if found is not None:
            return found
        factor = None if query.at is None else query.at.factor
        if factor is not None and factor.Q.is_away and design.store.keeps_tiles:
            # One trip, and codes need three: steps are not proven together.
            return exact_answer(design, query)
        known = None if bound.sums is None else bound.sums.gradient(query, memory)
        if known is not None:
            return settle(design, query, known.estimate, codes=codes)
        if self.delta:
            log_delta = log(self.delta / (self.events or design.shape[1]))
            estimate = Estimate(*design.codes(codes.seed).estimate(query.r, log_delta))
            return settle(design, query, estimate, codes=codes)._replace(certificate="delta")
        if query.k > 1 and self.fine:  # one byte would leave many columns in doubt
            return settle(design, query, Estimate(*design.codes(fine=True).refine(query.r)))
        return settle(design, query, Estimate(*design.codes().estimate(query.r)), codes=codes)

    def price(self, design: Design, expect: Expect) -> float:
        (n, d), targets = design.shape, expect.targets
        fine, there = self._fine(design, expect), None in design.store.kept.codes
        if not (design.has_codes and (there or design.store.has_room((1 + fine) * n * d))):
            return inf
        planes = 1 + expect.asks_many  # of bytes
        read, alone = targets * n * d * planes * PRICES.codes, expect.y is not None and not expect.asks_many
        if alone and targets == 1 and expect.roundings is not None and not self.delta:
            read = n * d * (PRICES.codes / SERVES + PRICES.path)  # to guess, and to prove
        elif alone and codes_pay(design, targets, expect.visits / 2):
            read = min(read, n * d * PRICES.ahead + expect.visits / 2 * d * targets * PRICES.axpy)
        build = PRICES.build + PRICES.fine * fine
        if design.store.on_disk and not fine and n > TALL // 4:  # many columns in doubt, which cost a pass
            read += design.store.pass_seconds / NANO
        return codes_seconds(design, expect, build, read, there)

    def nbytes(self, design: Design) -> int:
        products = 0.5  # of codes, made ahead
        bytes_an_entry = 1 + self.fine + products if design.has_codes else 0
        return min(int(bytes_an_entry * design.shape[0] * design.shape[1]), design.store.limit.limit)

    def identity(self) -> str:
        return repr(replace(self, events=None, fine=False))


def codes_seconds(design: Design, expect: Expect, build: float, read: float, there: bool) -> float:
    """Building codes where there are none yet, selections that read them, and sweeps to gather columns."""
    n, d = design.shape
    passes = 0.0 if there else 1.0  # over an X on disk
    seconds = passes * (n * d * build * NANO + design.store.pass_seconds)
    if design.store.on_disk:
        paths = -(
            -expect.visits // max(1, design.store.limit.columns // (32 * n))
        )  # that memory has room for
        seconds += (paths + (paths > 1)) * design.store.sweep_seconds(1)  # to guess, and to verify
        seconds += (2 * paths + 2) * len(design.store.places) * TILE_LOOK
    left = RECOMPUTED * n * PRICES.gather + PRICES.codes_step
    return seconds + expect.steps * (read + left) * NANO
