"""How the top entries of X^T r are found."""

from __future__ import annotations

from importlib import import_module

from skpursuit.parameters import check_choice, short_repr
from skpursuit.problem.scores import Absolute, GroupNorm, Signed
from skpursuit.selectors.base import BoundSelector, Selector
from skpursuit.selectors.query import Query, Selection, Workload

__all__ = ["Absolute", "BoundSelector", "GroupNorm", "Query", "Selection", "Selector", "Signed"]
__all__ += ["Workload", "as_selector"]

# Names callers may write, and where each selector lives. Modules load when they are used: some compile.
SELECTORS: dict[str, tuple[str, str, dict[str, object]]] = {
    "exact": ("base", "Exact", {}),
    "gram": ("gram", "Gram", {}),
    "greedy": ("row_sampling", "Greedy", {}),
    "uniform": ("row_sampling", "Uniform", {}),
    "importance": ("row_sampling", "Importance", {}),
    "reject": ("successive_halving", "SuccessiveReject", {}),
    "halving": ("successive_halving", "SuccessiveHalving", {}),
    "halving-random": ("successive_halving", "SuccessiveHalving", {"order": "random"}),
    "lucb": ("lucb", "LUCB", {}),
    "certified": ("certified", "Certified", {}),
    "quantized": ("certified", "Quantized", {}),
    "auto": ("auto", "Auto", {}),
}


def as_selector(selector: str | Selector) -> Selector:
    """Turn a name into a selector; selectors pass through."""
    if isinstance(selector, Selector):
        return selector
    if not isinstance(selector, str):
        raise TypeError(f"selector must be a name or a Selector, got {short_repr(selector)}")
    check_choice("selector", selector, SELECTORS)
    module, name, arguments = SELECTORS[selector]
    kind: type[Selector] = getattr(import_module(f"skpursuit.selectors.{module}"), name)
    return kind(**arguments)
