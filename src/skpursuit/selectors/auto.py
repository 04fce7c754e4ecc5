"""Auto: the fastest selector whose answer is exact, by a cost model with measured constants."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np

from skpursuit.data.base import Design
from skpursuit.data.grams import GRAM_WIDTH
from skpursuit.parameters import check_flag
from skpursuit.selectors import ahead
from skpursuit.selectors.base import Query, Selection, Selector
from skpursuit.selectors.certified import Certified
from skpursuit.selectors.exact import Exact
from skpursuit.selectors.gram import Gram
from skpursuit.selectors.sketch import Sketch

NANO = 1e-9
CACHE = 2**22  # bytes of X up to which it stays close to the processor
RECOMPUTED = 8  # columns that a selection on the twin, or in float32, computes exactly and none before it did
SPARSE_SHARE = 0.5  # of a sparse product with one residual, for each of several
TWINS = (Certified, Sketch)  # selectors that need compiled kernels
MADE_AHEAD = 12  # of the Gram columns made together, those that are used
MEMINFO = "/proc/meminfo"  # of Linux
LOAD_KERNELS = 0.6  # seconds to import numba and load compiled kernels, when nothing has yet


@dataclass(frozen=True)
class Prices:
    """Nanoseconds an entry of X on one thread, from benchmarks/prices.py on a two-core machine of 2026."""

    byte: float = 0.054  # of a dense product, memory-bound
    cached_byte: float = 0.021  # the same when X stays in the cache
    stored: float = 1.3  # of a sparse product, per stored entry
    several: float = 1.8  # a product with several residuals, in products with one
    each: float = 0.1  # and for each residual
    build: float = 1.2  # of the twin
    codes: float = 0.044  # of an estimate on the twin, per residual
    ahead: float = 0.026  # of a product of codes made ahead, guesses in vain included
    sketch_build: float = 0.6
    bits: float = 0.013
    gather: float = 6.0  # of a column that is not contiguous
    axpy: float = 0.2  # per entry of a Gram column that is added to the gradient
    gram_term: float = 2.0e3  # nanoseconds for each such column besides, estimated
    gram_step: float = 3.0e4  # nanoseconds a step takes longer than one of exact selection
    twin_step: float = 9.0e4


class Kernels:
    """Whether compiled kernels are loaded, and what their loading is still worth.

    One fit may be too short to wait for them, many are not: what each would have gained with them is
    taken off the price of loading them, so that a program waits once, about as long as it has lost before.
    """

    lost = 0.0

    @classmethod
    def price(cls) -> float:
        """Seconds to charge for loading them now."""
        return 0.0 if "numba" in sys.modules else max(0.0, LOAD_KERNELS - cls.lost)

    @classmethod
    def regret(cls, chosen: float, with_kernels: float) -> None:
        """Remember what a fit loses by not loading them."""
        cls.lost += max(0.0, chosen - (with_kernels - cls.price()))


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

    def __post_init__(self) -> None:
        check_flag("heuristic", self.heuristic)

    def resolve(self, problem: Any, solver: Any) -> Selector:
        costs = predict(problem, solver, self.heuristic)
        best = min(costs, key=lambda selector: costs[selector])
        Kernels.regret(costs[best], min((c for s, c in costs.items() if isinstance(s, TWINS)), default=inf))
        told = ", ".join(f"{type(s).__name__.lower()} {c:.2g} s" for s, c in costs.items())
        return Picked(best.resolve(problem, solver), f"predicted: {told}", self)

    def find(self, design: Design, query: Query) -> Selection:
        return Exact().find(design, query)

    def memory(self, design: Design) -> int:
        """The most that any of those it picks from would keep."""
        return max(selector.memory(design) for selector in (Gram(), Certified()))


def predict(problem: Any, solver: Any, heuristic: bool = False) -> dict[Selector, float]:
    """Predicted seconds of selection over a whole run, for each selector allowed."""
    design, prices = problem.design, Prices()
    steps, visited = solver.work(problem)
    residuals = max(1, problem.targets[0]) if problem.targets else 1
    one = product_seconds(design, prices)
    costs: dict[Selector, float] = {Exact(): steps * one * several(design, residuals)}
    if problem.quadratic:
        costs[Gram()] = gram_seconds(design, steps, visited, residuals)
    if design.has_twin() and 2 * Certified().memory(design) < free_memory():
        n, d = design.shape
        read = residuals * n * d * prices.codes
        if problem.quadratic and not solver.asks_many and ahead.pays(design, residuals, visited / 2):
            read = min(read, n * d * prices.ahead + visited / 2 * d * residuals * prices.axpy)
        costs[Certified()] = twin_seconds(design, steps, prices.build, read, "twin")
        if heuristic:
            read = residuals * n * d * prices.bits
            costs[Sketch()] = twin_seconds(design, steps, prices.sketch_build, read, "sketch")
    return costs


def several(design: Design, residuals: int) -> float:
    """A product with several residuals, in products with one."""
    if residuals == 1:
        return 1.0
    return Prices().several + Prices().each * residuals if design.has_twin() else SPARSE_SHARE * residuals


def gram_seconds(design: Design, steps: int, visited: int, residuals: int) -> float:
    """X^T y, Gram columns of the visited atoms, made ahead in blocks, and their sums in each step."""
    prices, (n, d) = Prices(), design.shape
    blocks = -(-visited // MADE_AHEAD) * several(design, GRAM_WIDTH) + several(design, residuals)
    terms = min(visited, steps) / 2 * (prices.gram_term + d * residuals * prices.axpy)
    left = RECOMPUTED * n * prices.gather if design.dtype == np.float32 else 0.0
    return blocks * product_seconds(design, prices) + steps * (terms + left + prices.gram_step) * NANO


def product_seconds(design: Design, prices: Prices) -> float:
    """One product X^T r."""
    entries, nbytes = design.cost()
    if not design.has_twin():
        return entries * prices.stored * NANO + 2e-5
    return nbytes * (prices.byte if nbytes > CACHE else prices.cached_byte) * NANO + 5e-6


def twin_seconds(design: Design, steps: int, build: float, read: float, kind: str) -> float:
    """Building a twin where there is none yet, loading its kernels, and `steps` selections that read it."""
    n, d = design.shape
    seconds = 0.0 if design.is_prepared(kind) else n * d * build * NANO
    seconds += Kernels.price()
    left = RECOMPUTED * n * Prices().gather + Prices().twin_step
    return seconds + steps * (read + left) * NANO


def free_memory() -> float:
    """Bytes of memory that can be had now, cached files included; infinity where the system does not tell."""
    try:
        with open(MEMINFO, encoding="ascii") as lines:
            return next(1024.0 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration):
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return float("inf")
