"""How the top entries of X^T r are found."""

from __future__ import annotations

from importlib import import_module

from skpursuit.parameters import check_choice, shown
from skpursuit.problem.score import Absolute, Group, Signed
from skpursuit.selectors.base import Bound, Selector
from skpursuit.selectors.query import Expect, Query, Selection

__all__ = ["Absolute", "Bound", "Expect", "Group", "Query", "Selection", "Selector", "Signed", "as_selector"]

# Names callers may write, and where each selector lives. Modules load when they are used: some compile.
NAMES: dict[str, tuple[str, str, dict[str, object]]] = {
    "exact": ("exact", "Exact", {}),
    "gram": ("gram", "Gram", {}),
    "greedy": ("greedy", "Greedy", {}),
    "uniform": ("greedy", "Uniform", {}),
    "importance": ("greedy", "Importance", {}),
    "reject": ("reject", "SuccessiveReject", {}),
    "halving": ("halving", "SuccessiveHalving", {}),
    "halving-random": ("halving", "SuccessiveHalving", {"order": "random"}),
    "lucb": ("lucb", "LUCB", {}),
    "certified": ("certified", "Certified", {}),
    "sketch": ("sketch", "Sketch", {}),
    "auto": ("auto", "Auto", {}),
}


def as_selector(selector: str | Selector) -> Selector:
    """Turn a name into a selector; selectors pass through."""
    if isinstance(selector, Selector):
        return selector
    if not isinstance(selector, str):
        raise TypeError(f"selector must be a name or a Selector, got {shown(selector)}")
    check_choice("selector", selector, NAMES)
    module, name, arguments = NAMES[selector]
    kind: type[Selector] = getattr(import_module(f"skpursuit.selectors.{module}"), name)
    return kind(**arguments)
