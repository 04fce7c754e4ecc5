"""Columns that depend on the support, found together.

A pursuit that has spanned what X can span has nothing more to choose from: every column left is a
combination of the support, and asking for them one at a time costs one selection each, thousands of them in
a wide X. So once a few in a row were rejected, all that are left are looked at. A random vector v orthogonal
to the support tells most columns apart for the price of one product: <x_j, v> is zero to rounding if x_j
depends on the support, and almost never otherwise. That is a proposal; the columns it leaves are gathered in
blocks and decided by the rule that decides a single column. Those that depend leave the competition for
good, and a run that has no others left is done.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from skpursuit.data.base import Floats, Indices
from skpursuit.fit.refit import as_stack, depend, smallest_remainder
from skpursuit.numerics.blas import one_thread
from skpursuit.problem.problem import Problem
from skpursuit.problem.state import State

IN_A_ROW = 4  # columns rejected one after the other before all are looked at
SPREAD = 8.0  # |<x, v>| is at most this many times the norm of what the support leaves of x


def rejected(problem: Problem, before: State, after: State, select: Any) -> State:
    """The state after a column was rejected; each time a few were in a row, all that depend go with it.

    Memory of the state: `rejected`, their number so far. It is forgotten when a column is added.
    """
    count = int(np.asarray(before.memory.get("rejected", 0))) + 1
    if count >= IN_A_ROW:
        count = 0
        more = select.counting(lambda: dependent_columns(problem, after))
        after = replace(after, dropped=np.concatenate([after.dropped, more]))
    return replace(after, memory={**after.memory, "rejected": np.array(count)})


def dependent_columns(problem: Problem, state: State) -> Indices:
    """All columns off the support, and not dropped yet, that depend on the support."""
    design, root = problem.design, np.sqrt(problem.row_weights)
    Q, noise = (as_stack(state.memory[name]).rows for name in ("Q", "noise"))
    gone = np.concatenate([state.support, state.dropped])
    with one_thread(), np.errstate(over="ignore", invalid="ignore"):  # what is not finite does not depend
        cols = np.setdiff1d(suspects(problem, Q, noise, root), gone, assume_unique=True)
        found = [
            part[depend(Q, lines * root, design.lost(part) * root.max(), noise)]
            for part, lines in design.blocks(cols)
        ]
    return np.concatenate(found) if found else cols


def suspects(problem: Problem, Q: Floats, noise: Floats, root: Floats) -> Indices:
    """Columns whose product with a random vector orthogonal to the rows of Q is small; ascending."""
    design = problem.design
    v = np.random.default_rng(len(Q)).standard_normal(len(root))
    for _ in range(2):  # the second time for digits that the first one lost
        v -= (Q @ v) @ Q
    g = np.abs(design.correlate(v * root))
    error = design.correlate_error(v * root)
    sizes = design.column_sizes() * root.max()
    small = smallest_remainder(len(v), sizes, design.lost(np.arange(len(sizes))) * root.max())
    small = np.maximum(small, noise.max(initial=0.0) * sizes)
    return np.flatnonzero(~(g > SPREAD * small + (0.0 if error is None else error)))
