"""Between a step and its selector: the answers of one iteration, and what the selector remembers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from skpursuit.numerics.arrays import NO_COLUMNS
from skpursuit.numerics.estimate import Estimate
from skpursuit.selectors import Bound, Query, Selection
from skpursuit.selectors.base import NOTHING, Memory
from skpursuit.selectors.exact import Exact


class Asking:
    """What one step calls to ask its selector.

    The selector's memory belongs to one transition: the step is given that of the state it starts from, and
    its last answer has that of the state it leads to. A step that did not ask leaves none.
    """

    def __init__(self, bound: Bound, given: Memory) -> None:
        self.bound = bound
        self.given = given
        self.memory: Memory = NOTHING
        self.answers: list[Selection] = []

    def __call__(self, query: Query) -> Selection:
        answer = self.bound.select(query, self.given)
        self.given = self.memory = answer.memory
        self.answers.append(answer)
        return answer

    def exactly(self, query: Query) -> Selection:
        """The exact answer, where a solver has to be sure of it."""
        answer = Bound(Exact(), self.bound.design).select(query)
        self.answers.append(answer)
        return answer

    def look(self, query: Query) -> Estimate | None:
        """X^T r, where the selector knows it without reading X."""
        sums = self.bound.sums
        known = None if sums is None else self.counting(lambda: sums.gradient(query, self.given))
        self.memory = self.given if known is None else known.memory
        return None if known is None else known.estimate

    def counting(self, look: Callable[[], Any]) -> Any:
        """What a look at X outside a query gives, its reads counted like those of an answer."""
        reads = self.bound.design.reads
        entries, nbytes = reads.entries, reads.bytes
        found = look()
        read = reads.entries - entries, reads.bytes - nbytes
        self.answers.append(Selection(NO_COLUMNS, np.empty(0), "exact", *read))
        return found
