"""Certified selection: the answer of exact selection, proven, from one byte an entry.

Codes of X give an estimate of X^T r with an interval for every column. Columns whose interval lies below the
best lower end cannot win; usually one is left, else the few that are left are computed exactly (`settle`).
For least squares several steps are guessed and proven together (`speculation.py`), so that the codes are read
once for all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from typing import ClassVar

from skpursuit.data.design import Design
from skpursuit.numerics.blas import one_thread
from skpursuit.numerics.estimate import Estimate
from skpursuit.numerics.tuning import LONG, NANO, PRICES, RECOMPUTED, SERVES, TALL, TILE_LOOK
from skpursuit.parameters import check_flag
from skpursuit.selectors.base import Bound, Selector
from skpursuit.selectors.exact import Exact
from skpursuit.selectors.query import NOTHING, Expect, Memory, Query, Selection
from skpursuit.selectors.settle import CodeOrigin, settle
from skpursuit.selectors.speculation import Speculation


@dataclass(frozen=True)
class Certified(Selector):
    """Estimate X^T r on int8 codes of X with a rigorous interval, and compute what could still win exactly.

    The answer is that of `Exact`, ties to the lowest index included, unless the top entries differ by less
    than the rounding of a float64 product. Where the intervals leave many columns, a second byte of each
    narrows them down first. OMP with squared loss has several steps proven in one pass over the codes. On
    sparse X the exact product is the certificate.

    Parameters
    ----------
    fine : bool
        Whether a second byte an entry is made beforehand; set for solvers that ask for many columns, for long
        runs and tall X, and later where one byte leaves too many columns.
    """

    compiled: ClassVar[bool] = True
    fine: bool = False

    def __post_init__(self) -> None:
        check_flag("fine", self.fine)

    def bind(self, design: Design, expect: Expect) -> Bound:
        if not design.has_codes:
            return Exact().bind(design, expect)
        fitted = replace(self, fine=self._fine(design, expect))
        design.codes(fitted.fine)
        guesses = expect.y is not None and expect.y.ndim == 1 and expect.roundings is not None
        speculates = guesses and not expect.asks_many
        return Bound(fitted, design, speculation=Speculation(design, expect) if speculates else None)

    def encodes(self, design: Design, expect: Expect) -> bool | None:
        return self._fine(design, expect) if design.has_codes else None

    def _fine(self, design: Design, expect: Expect) -> bool:
        """Whether a second byte an entry will be needed; on disk a pass makes it later."""
        (n, d), store = design.shape, design.store
        tall = n > TALL or (design.on_disk and n > TALL // 4 and store.has_room(2 * n * d))
        return self.fine or expect.asks_many or tall or expect.steps >= LONG

    def find(self, design: Design, query: Query) -> Selection:
        if not design.has_codes:
            return Exact().find(design, query)
        with one_thread():  # as in a run
            return self.answer(Bound(self, design), query, NOTHING)

    def answer(self, bound: Bound, query: Query, memory: Memory) -> Selection:
        design = bound.design
        found = None if bound.speculation is None else bound.speculation.answer(query)
        if found is not None:
            return found
        if query.k > 1 and self.fine:  # one byte would leave many columns in doubt
            return settle(design, query, Estimate(*design.codes(fine=True).estimate(query.r, fine=True)))
        return settle(design, query, Estimate(*design.codes().estimate(query.r)), codes=CodeOrigin(self.fine))

    def price(self, design: Design, expect: Expect) -> float:
        (n, d), targets = design.shape, expect.targets
        fine, there = self._fine(design, expect), design.has_made_codes
        if not (design.has_codes and (there or design.store.has_room((1 + fine) * n * d))):
            return inf
        # Residuals of several targets share a pass over the codes, of one byte or both.
        read = n * d * (1 + expect.asks_many) * (PRICES.codes + (targets - 1) * PRICES.target)
        if expect.y is not None and not expect.asks_many and targets == 1 and expect.roundings is not None:
            read = n * d * (PRICES.codes / SERVES + PRICES.path)  # to guess, and to prove
        build = PRICES.build + PRICES.fine * fine
        if design.on_disk and not fine and n > TALL // 4:  # many columns in doubt, which cost a pass
            read += design.pass_seconds / NANO
        return codes_seconds(design, expect, build, read, there)

    def nbytes(self, design: Design) -> int:
        bytes_an_entry = 1 + self.fine if design.has_codes else 0
        return min(bytes_an_entry * design.shape[0] * design.shape[1], design.limit.limit)

    def identity(self) -> str:
        return repr(replace(self, fine=False))


def codes_seconds(design: Design, expect: Expect, build: float, read: float, there: bool) -> float:
    """Building codes where there are none yet, selections that read them, and sweeps to gather columns."""
    n, d = design.shape
    passes = 0.0 if there else 1.0  # over an X on disk
    seconds = passes * (n * d * build * NANO + design.pass_seconds)
    if design.on_disk:
        paths = -(-expect.visits // max(1, design.limit.columns // (32 * n)))  # that memory has room for
        seconds += (paths + (paths > 1)) * design.store.sweep_seconds(1)  # to guess, and to verify
        seconds += (2 * paths + 2) * len(design.store.places) * TILE_LOOK
    left = RECOMPUTED * n * PRICES.gather + PRICES.codes_step
    return seconds + expect.steps * (read + left) * NANO
