"""Auto: the fastest selector whose answer is exact, by a cost model with measured constants."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import Any

from skpursuit.design.base import Design
from skpursuit.selectors.base import Query, Selection, Selector
from skpursuit.selectors.certified import Certified
from skpursuit.selectors.exact import Exact
from skpursuit.selectors.gram import Gram
from skpursuit.selectors.sketch import Sketch

NANO = 1e-9
CACHE = 2**22  # bytes of X up to which it stays close to the processor
LOAD_KERNELS = 0.6  # seconds to import numba and load compiled kernels, when nothing has yet


@dataclass(frozen=True)
class Prices:
    """Nanoseconds per entry of X, one thread, on a two-core machine of 2026.

    `byte` and `build` follow timings of products and of twins; the others are estimates, kept because
    the choices they lead to were right on benchmarks/auto_grid.py.
    """

    byte: float = 0.050  # of a dense product, memory-bound
    cached_byte: float = 0.025  # the same when X stays in the cache
    stored: float = 1.2  # of a sparse product, per stored entry
    several: float = 3.2  # a product with several residuals, in products with one
    each: float = 0.1  # and for each residual
    build: float = 0.9  # of the twin, per entry
    codes: float = 0.075  # of an estimate on the twin, per entry and residual
    sketch_build: float = 1.4
    bits: float = 0.012
    survivors: float = 3.0e5  # nanoseconds a selection on a twin needs besides


@dataclass(frozen=True)
class Picked(Selector):
    """What `Auto` chose, and why."""

    inner: Selector
    reason: str
    asked: Selector

    def find(self, design: Design, query: Query) -> Selection:
        return self.inner.find(design, query)

    def prepare(self, design: Design) -> None:
        self.inner.prepare(design)

    def memory(self, design: Design) -> int:
        return self.inner.memory(design)

    def wants_known(self, design: Design) -> bool:
        return self.inner.wants_known(design)

    def identity(self) -> str:
        return repr(self.asked)

    def describe(self) -> str:
        return f"auto: {self.inner!r}, {self.reason}"


@dataclass(frozen=True)
class Auto(Selector):
    """Pick among exact, gram and certified selection, whose answers are the same, by predicted time.

    Parameters
    ----------
    heuristic : bool
        Whether answers that prove nothing (sketch) may be picked too.
    """

    heuristic: bool = False

    def resolve(self, problem: Any, solver: Any) -> Selector:
        costs = predict(problem, solver, self.heuristic)
        best = min(costs, key=lambda selector: costs[selector])
        told = ", ".join(f"{type(s).__name__.lower()} {c:.2g} s" for s, c in costs.items())
        return Picked(best, f"predicted: {told}", self)

    def find(self, design: Design, query: Query) -> Selection:
        return Exact().find(design, query)


def predict(problem: Any, solver: Any, heuristic: bool = False) -> dict[Selector, float]:
    """Predicted seconds of selection over a whole run, for each selector allowed."""
    design, prices = problem.design, Prices()
    steps, visited = solver.work(problem)
    residuals = max(1, problem.targets[0]) if problem.targets else 1
    one = product_seconds(design, prices)
    full = one if residuals == 1 else one * (prices.several + prices.each * residuals)
    costs: dict[Selector, float] = {Exact(): steps * full}
    if problem.quadratic:
        d = design.shape[1]
        per_step = d * residuals * min(visited, steps) * 0.5 * NANO + 2e-5
        costs[Gram()] = visited * one + steps * per_step
    if design.has_twin() and 2 * Certified().memory(design) < free_memory():
        costs[Certified()] = twin_seconds(design, steps, residuals, (prices.build, prices.codes), "twin")
        if heuristic:
            costs[Sketch()] = twin_seconds(
                design, steps, residuals, (prices.sketch_build, prices.bits), "sketch"
            )
    return costs


def product_seconds(design: Design, prices: Prices) -> float:
    """One product X^T r."""
    entries, nbytes = design.cost()
    if not design.has_twin():
        return entries * prices.stored * NANO + 2e-5
    return nbytes * (prices.byte if nbytes > CACHE else prices.cached_byte) * NANO + 5e-6


def twin_seconds(design: Design, steps: int, residuals: int, prices: tuple[float, float], kind: str) -> float:
    """Building a twin where there is none yet, loading its kernels, and `steps` selections on it."""
    entries = design.shape[0] * design.shape[1]
    build, read = prices
    ready = design.is_prepared(kind)
    seconds = 0.0 if ready else entries * build * NANO
    seconds += 0.0 if "numba" in sys.modules else LOAD_KERNELS
    return seconds + steps * residuals * (entries * read + Prices().survivors) * NANO


def free_memory() -> float:
    """Bytes of memory that can be had now; infinity where the system does not tell."""
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return float("inf")
