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

import numpy as np

from skpursuit.fit.gram_schmidt import MOST_PASSES, QRFactor
from skpursuit.numerics.arrays import Floats, Indices
from skpursuit.numerics.error_bounds import dependence_threshold
from skpursuit.numerics.row_buffer import RowBuffer
from skpursuit.numerics.sums import safe_norms_per_row
from skpursuit.numerics.tuning import DEPENDENCE_ENTRIES
from skpursuit.problem.problem import Problem
from skpursuit.problem.state import State

PROBE_FACTOR = 8.0  # |<x, v>| is at most this many times the norm of what the support leaves of x


def dependent_columns(problem: Problem, state: State) -> Indices:
    """All columns off the support, and not dropped yet, that depend on the support."""
    design, root, factor = problem.design, np.sqrt(problem.row_weights), state.factorised
    gone = np.concatenate([state.support, state.dropped])
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite does not depend
        cols = np.setdiff1d(dependence_candidates(problem, factor, root), gone, assume_unique=True)
        step = max(1, DEPENDENCE_ENTRIES // design.shape[0])
        parts = [cols[start : start + step] for start in range(0, len(cols), step)]
        found = []
        for part in parts:
            lines, floor = design.columns(part, cache=False) * root, design.noise_floor(part) * root.max()
            found.append(part[are_dependent(factor.Q, lines, floor, factor.noise_share)])
    return np.concatenate(found) if found else cols


def dependence_candidates(problem: Problem, factor: QRFactor, root: Floats) -> Indices:
    """Columns whose product with a random vector orthogonal to the rows of Q is small; ascending."""
    design, Q = problem.design, factor.Q
    v = np.random.default_rng(len(factor.noise_share)).standard_normal(len(root))
    for _ in range(2):  # the second time for digits that the first one lost
        v -= Q.combine(Q.inner_products(v))
    g = np.abs(design.product(v * root))
    error = design.rounding(v * root)
    sizes = design.norm_bounds * root.max()
    small = dependence_threshold(len(v), sizes, design.noise_floor(np.arange(len(sizes))) * root.max())
    small = np.maximum(small, factor.noise_share.max(initial=0.0) * sizes)
    return np.flatnonzero(~(g > PROBE_FACTOR * small + (0.0 if error is None else error)))


def are_dependent(Q: RowBuffer, lines: Floats, noise_floor: Floats, noise: Floats) -> np.ndarray:
    """Which of the columns `lines` depend on the rows of Q, as `orthogonalise` decides it for one."""
    tiny = dependence_threshold(lines.shape[1], safe_norms_per_row(lines), noise_floor)
    h = np.zeros((len(lines), len(noise)))
    found = np.zeros(len(lines), dtype=bool)
    for _ in range(MOST_PASSES):
        part = Q.inner_products(lines.T).T
        lines = lines - Q.combine(part.T).T
        h += part
        found |= safe_norms_per_row(lines) <= np.maximum(tiny, safe_norms_per_row(noise * h))
        if found.all():
            break
    return found
