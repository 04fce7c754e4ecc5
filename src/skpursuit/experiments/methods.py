"""The ways of finding the top entries that the experiments compare, by the name a results file uses."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skpursuit._files import FileError
from skpursuit.data.design import Design
from skpursuit.loop.run import minimize
from skpursuit.numerics.estimate import Estimate
from skpursuit.problem.problem import Problem
from skpursuit.problem.state import State
from skpursuit.selectors import Bound, Expect, Query, Selection, Selector, as_selector
from skpursuit.selectors.base import settle
from skpursuit.selectors.greedy import Greedy, Importance, Uniform, empty_sums
from skpursuit.selectors.halving import SuccessiveHalving
from skpursuit.selectors.reject import SuccessiveReject
from skpursuit.selectors.stop import ErrorBound, Stability
from skpursuit.solvers.base import Asks, Solver
from skpursuit.solvers.cosamp import CoSaMP

#: name: (what a reader sees, what the paper calls it)
LABELS: dict[str, tuple[str, str]] = {
    "exact": ("exact, BLAS", ""),
    "rows": ("exact, accumulated rows", "exact"),
    "exact-k": ("exact, BLAS, k iterations", ""),
    "rows-k": ("exact, accumulated rows, k iterations", "exact"),
    "greedy": ("greedy", "deterministic"),
    "bound": ("greedy, error bound", "grad upb"),
    "uniform": ("uniform sampling", "uniform"),
    "importance": ("importance sampling", "best"),
    "reject": ("successive reject", "succ"),
    "halving-random": ("halving, random rows", "SuccHalvSame"),
    "halving": ("halving, energy order", "SuccHalvNonStoch"),
    "halving-doubling": ("halving, energy order, doubling", ""),
    "halving-plain": ("halving, energy order, to the last round", "SuccHalvNonStoch"),
    "stoch": ("StoGradMP", "stoch"),
    "stoch-3k": ("StoGradMP, 3k iterations", "stoch 3k"),
    "certified": ("certified (ours)", ""),
    "sketch": ("sketch (ours)", ""),
    "gram": ("Gram columns", ""),
    "auto": ("auto (ours)", ""),
    "coder": ("batched coder (ours)", ""),
    "grasp": ("GraSP, logistic loss, exact", ""),
    "grasp-halving": ("GraSP, logistic loss, halving", ""),
}


def label(method: str) -> str:
    """What a reader sees; a method that is not known is called by its name."""
    return LABELS[method][0] if method in LABELS else method


def load_selector(place: str) -> Selector:
    """Return the selector of ``FILE.py:NAME``: an instance, or a class that needs no arguments.

    Raises
    ------
    MethodError
        If the file cannot be run, or holds no such selector.
    """
    path, _, name = place.rpartition(":")
    try:
        spec = importlib.util.spec_from_file_location(f"own_{name}", path)
        if spec is None or spec.loader is None:
            raise ImportError("this is no Python file")
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module  # dataclasses look their module up
        spec.loader.exec_module(module)
        found = getattr(module, name)
        made = found() if isinstance(found, type) else found
    except Exception as error:  # whatever the user's file raises
        words = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        raise MethodError(
            path or place, f"no selector {name!r} could be made of it ({words})", "correct it"
        ) from None
    if not isinstance(made, Selector):
        raise MethodError(path, f"{name!r} is no Selector", "derive it from skpursuit.selectors.Selector")
    return made


class MethodError(FileError):
    """A file that holds no selector."""


def settings_of(method: str) -> tuple[str, ...]:
    """Which of ``stability`` and ``budget`` a method looks at."""
    if method in ("greedy", "uniform", "importance"):
        return ("stability",)
    return ("budget",) if method == "reject" or method.startswith("halving") else ()


@dataclass(frozen=True)
class RowExact(Selector):
    """X^T r as the paper's own baseline computes it: row after row. Rows with r_i = 0 are left out."""

    def bind(self, design: Design, expect: Expect) -> Bound:
        design.prepare("rows")
        return Bound(self, design)

    def find(self, design: Design, query: Query) -> Selection:
        sums = empty_sums(design, query.r)
        rows = np.flatnonzero(query.r if query.r.ndim == 1 else query.r.any(axis=1))
        design.add_rows(rows, query.r[rows], sums)
        return settle(design, query, Estimate(sums, design.rounding(query.r, any_order=True)))


class Untiring(CoSaMP):
    """CoSaMP that makes all its iterations, also once it has settled: the protocol of the paper."""

    def step(self, problem: Problem, state: State, select: Asks, rng: np.random.Generator) -> State:
        memory = {**state.memory, "seen": np.empty(0, dtype=np.int64)}
        return super().step(problem, replace(state, memory=memory), select, rng)


def make_selector(
    method: str, stability: float = 0.02, budget: float = 0.2, own: Mapping[str, str] | None = None
) -> Selector:
    """The selector of a method, with N_s of the stability rule and the budget of the bandits.

    ``own`` says where selectors of one's own are, by the name of the method.
    """
    if own and method in own:
        return load_selector(own[method])
    rule = Stability(stability)
    table: dict[str, Selector] = {
        "rows": RowExact(),
        "rows-k": RowExact(),
        "stoch": RowExact(),
        "stoch-3k": RowExact(),
        "greedy": Greedy(stop=rule),
        "bound": Greedy(stop=ErrorBound("auto")),
        "uniform": Uniform(stop=rule),
        "importance": Importance(stop=rule),
        "reject": SuccessiveReject(budget),
        "halving-random": SuccessiveHalving(order="random", budget=budget),
        "halving": SuccessiveHalving(budget=budget),
        "halving-doubling": SuccessiveHalving(budget=budget, doubling=True),
        "halving-plain": SuccessiveHalving(budget=budget, finish=0),
    }
    return table.get(method) or as_selector(method.removesuffix("-k"))


_WARM: set[tuple[str, str, str]] = set()


def warm(X: Any, y: np.ndarray, solver: Solver, selector: Selector | str, loss: str = "squared") -> None:
    """Make one iteration, once per process and kind, so that no measured run waits for a compiler."""
    key = (type(solver).__name__, repr(selector), loss)
    if key not in _WARM:
        minimize(X, y, solver, selector, loss, random_state=0, callback=lambda record: True)
        _WARM.add(key)
