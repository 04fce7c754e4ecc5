"""The methods that the studies compare, selectors with settings and labels; studies.toml declares them.

User-defined selectors come from a file (``FILE.py:NAME``), of which a study's settings include a digest.
"""

from __future__ import annotations

import base64
import importlib.util
import sys
import time
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any, TypeAlias

import numpy as np

import skpursuit
from skpursuit.numerics.error_bounds import Estimate
from skpursuit.selectors import Query, Selection, Selector, as_selector
from skpursuit.selectors.base import BoundSelector
from skpursuit.selectors.query import Workload
from skpursuit.selectors.row_sampling import zero_gradient
from skpursuit.selectors.top_k import resolve_top_k

from ..tables.errors import TableError

DECLARED = tomllib.loads(files(__package__).joinpath("studies.toml").read_text(encoding="utf-8"))
METHODS: dict[str, dict[str, Any]] = DECLARED["methods"]
RESULT_COLUMNS: dict[str, dict[str, str]] = DECLARED["columns"]
OwnSelectors: TypeAlias = Mapping[str, str]  # where selectors of one's own are, by their names
NONE: OwnSelectors = {}


@dataclass(frozen=True)
class RowExact(Selector):
    """X^T r as the paper's own baseline computes it: row after row. Rows with r_i = 0 are left out."""

    def bind(self, design: Any, expect: Workload) -> BoundSelector:
        design.prepare_access("rows")
        return BoundSelector(self, design)

    def find(self, design: Any, query: Query) -> Selection:
        sums = zero_gradient(design, query.r)
        rows = np.flatnonzero(query.r if query.r.ndim == 1 else query.r.any(axis=1))
        design.add_rows(rows, query.r[rows], sums)
        return resolve_top_k(design, query, Estimate(sums, design.rounding(query.r, any_order=True)))


class FixedIterationCoSaMP(skpursuit.CoSaMP):
    """CoSaMP that makes all its iterations, also once it has settled: the protocol of the paper."""

    def step(self, problem: Any, state: Any, select: Any, rng: np.random.Generator) -> Any:
        memory = {**state.memory, "seen": np.empty(0, dtype=np.int64)}
        return super().step(problem, replace(state, memory=memory), select, rng)


def label(method: str) -> str:
    """What a reader sees; a method that is not known is called by its name."""
    return METHODS[method]["label"] if method in METHODS else method


def settings_of(method: str) -> list[str]:
    """Which of ``stability`` and ``budget`` a method takes."""
    return METHODS[method].get("takes", []) if method in METHODS else []


def runs(study: str, method: str, user_selectors: OwnSelectors = NONE) -> bool:
    """Whether a study can run a method; a race needs one that records its rounds."""
    if study == "race" and make_selector(method, user_selectors=user_selectors).rounds is None:
        return False
    return method in user_selectors or study in METHODS[method].get("only", (study,))


def is_printed(method: str) -> bool:
    """Whether a method is to follow the paper to the letter."""
    return bool(METHODS.get(method, {}).get("printed"))


def stochastic(method: str, k: int, max_iter: int, **given: Any) -> Any:
    """StoGradMP with the rows a step, and the multiple of the iterations, of a method."""
    most = (3 if method.endswith("-3k") else 1) * max_iter
    batch = METHODS[method].get("batch")
    return skpursuit.StoGradMP(n_nonzero_coefs=k, max_iter=most, batch_size=batch, **given)


def encode_columns(columns: np.ndarray, d: int) -> str:
    """Columns as text, in their order; studies.toml says how."""
    return base64.b64encode(columns.astype("<u2" if d <= 2**16 else "<u4").tobytes()).decode()


def make_selector(
    method: str, stability: float = 0.02, budget: float = 0.2, user_selectors: OwnSelectors = NONE
) -> Selector:
    """The selector of a method, with N_s of the stability rule and the budget of the bandits."""
    if method in user_selectors:
        return load_selector(user_selectors[method])
    one = METHODS.get(method, {"selector": method})  # a selector by its name is a method as well
    made: Any = RowExact() if one["selector"] == "rows" else as_selector(one["selector"])
    if "error_bound" in one:
        made = replace(made, stop=skpursuit.ErrorBound(one["error_bound"]))
    if "stability" in settings_of(method):
        made = replace(made, stop=skpursuit.Stability(stability, check_every=one.get("check_every")))
    if "budget" in settings_of(method):
        made = replace(made, budget=budget)
    return replace(made, **one.get("given", {}))


def load_selector(place: str) -> Selector:
    """Return the selector of ``FILE.py:NAME``: an instance, or a class that needs no arguments.

    TableError if the file cannot be run, or holds no such selector.
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
        problem = f"no selector {name!r} could be made of it ({words})"
        raise TableError(path or place, problem, "correct it") from None
    if not isinstance(made, Selector):
        raise TableError(path, f"{name!r} is no Selector", "derive it from skpursuit.selectors.Selector")
    return made


_WARM: set[tuple[str, str, str]] = set()


def timed_fit(
    X: Any, y: np.ndarray, solver: Any, selector: Any, loss: str = "squared", seed: int = 0
) -> tuple[Any, float]:
    """Return the result of a run and its processor seconds, preparations included.

    The first run of its kind in a process makes one iteration before, which compiles.
    """
    key = (type(solver).__name__, repr(selector), loss)
    if key not in _WARM:
        skpursuit.minimize(X, y, solver, selector, loss, random_state=0, callback=lambda record: True)
        _WARM.add(key)
    began = time.process_time()
    result = skpursuit.minimize(X, y, solver, selector, loss, random_state=seed)
    return result, time.process_time() - began
