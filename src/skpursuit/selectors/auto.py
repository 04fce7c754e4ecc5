"""Auto: the fastest selector whose answer is exact, by the seconds that selectors predict for themselves."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from time import process_time
from typing import ClassVar

from skpursuit.data.design import Design
from skpursuit.data.options import available_memory
from skpursuit.kernels import imported_module
from skpursuit.numerics.tuning import AUTO_MARGIN, CODES_MARGIN, LOAD_KERNELS, WAITING_SHARE
from skpursuit.selectors.base import BoundSelector, Exact, Selector
from skpursuit.selectors.certified import Certified
from skpursuit.selectors.gram import Gram
from skpursuit.selectors.query import Query, Selection, Workload
from skpursuit.selectors.top_k import exact_selection


@dataclass(frozen=True)
class Auto(Selector):
    """Pick among exact, gram and certified selection, whose answers are the same, by predicted time.

    Exact selection stays unless another promises to take a quarter less: it needs no memory beside X.
    """

    answers_contests: ClassVar[bool] = True

    def bind(self, design: Design, expect: Workload) -> BoundSelector:
        best, costs = self._best(design, expect)
        bound = best.bind(design, expect)
        seconds = ", ".join(f"{type(s).__name__.lower()} {c:.2g} s" for s, c in costs.items())
        bound.auto_reason = f"predicted: {seconds}"
        return bound

    def _best(self, design: Design, expect: Workload) -> tuple[Selector, dict[Selector, float]]:
        costs = predicted_seconds(design, expect)

        def price(selector: Selector) -> float:
            return costs[selector] * (1 if selector.encodes(design, expect) is None else CODES_MARGIN)

        plain, best = next(iter(costs)), min(costs, key=price)
        # exact selection needs no memory of its own
        return (plain if costs[best] > AUTO_MARGIN * costs[plain] else best), costs

    def encodes(self, design: Design, expect: Workload) -> bool | None:
        return self._best(design, expect)[0].encodes(design, expect)

    def find(self, design: Design, query: Query) -> Selection:
        return exact_selection(design, query)


def predicted_seconds(design: Design, expect: Workload) -> dict[Selector, float]:
    """Predicted seconds of selection over a whole run, for each selector allowed."""
    choices: list[Selector] = [Exact(), Gram(), Certified()]
    costs = {selector: selector.predict_seconds(design, expect) for selector in choices}
    if costs[choices[-1]] < inf:
        codes = min(design.shape[0] * design.shape[1], design.limit.total_bytes)
        costs[choices[-1]] += kernel_load_seconds() if 2 * codes < available_memory() else inf
    return {selector: cost for selector, cost in costs.items() if cost < inf}


def kernel_load_seconds() -> float:
    """Seconds to charge a fit for loading compiled kernels: nothing where they are there already."""
    # A single fit may be too short to wait for them, many are not, and only the process knows how many there
    # are. So a fraction of the time that it has worked so far is taken off: waiting for kernels never makes
    # up more than that fraction of what a program does, and one that goes on for some seconds has them.
    return 0.0 if imported_module("numba") else max(0.0, LOAD_KERNELS - WAITING_SHARE * process_time())
