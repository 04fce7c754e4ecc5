"""Gram selection: the gradient of squared loss from columns of X^T X instead of X.

With r = X_S w_S - y the gradient is X^T r = sum of w_j X^T x_j, less X^T y: a sum of one Gram column for each
column of the support. Gram columns are a pure function of X, so the design keeps them, and they serve every
later step and every later y. One alone costs as much as X^T r itself, but several cost little more, because
they read X once. So when one is missing it is made together with those of the columns that score next best: a
pursuit takes nearly all of them soon.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
from scipy.linalg.blas import daxpy

from skpursuit.data.caches import gram_column
from skpursuit.data.design import Design
from skpursuit.data.options import as_bytes
from skpursuit.numerics import tuning
from skpursuit.numerics.arrays import Floats, Indices
from skpursuit.numerics.error_bounds import Estimate, outer_error_bound
from skpursuit.numerics.float_range import EPS
from skpursuit.numerics.sums import safe_norm
from skpursuit.numerics.tuning import COSTS, GRAM_BATCH, GRAM_BATCH_USED, NANO, RECOMPUTED
from skpursuit.problem.scores import Score, top_k
from skpursuit.problem.state import SparseUpdate, State
from skpursuit.selectors.base import BoundSelector, Selector, product_seconds
from skpursuit.selectors.query import NO_MEMORY, Memory, Query, Selection, Workload
from skpursuit.selectors.top_k import exact_selection, resolve_top_k

if TYPE_CHECKING:
    from skpursuit.problem.constraint_sets import ConvexSet
    from skpursuit.problem.problem import Problem
    from skpursuit.selectors.base import SelectionOracle

BATCH = 64  # steps
ROOM = 2**25  # entries of columns that are at hand
GramStep = tuple[SparseUpdate, float, float, Floats]  # the move, gap, objective and predictions


@dataclass(frozen=True)
class Gram(Selector):
    """Keep X^T x_j of every visited column: g = X^T X_S w_S - X^T y costs d |S|, not n d.

    Columns are made ahead: when one is missing, so are those that score next best, all in one product that
    costs as much as four with a single vector. A pursuit takes nearly all of them later, so that it reads X
    about every twelfth step. Visited columns are kept, at most `memory_limit` bytes of them; once a third
    of them was visited and the whole d x d matrix fits in that bound, it is formed at once. Squared loss
    only.

    Parameters
    ----------
    memory_limit : int or str
        Bound in bytes on what is kept, or text such as "2GB".
    """

    answers_contests: ClassVar[bool] = True
    memory_limit: int | str = 2**30

    def __post_init__(self) -> None:
        as_bytes("memory_limit", self.memory_limit, least=1)

    def bind(self, design: Design, expect: Workload) -> BoundSelector:
        bound = BoundSelector(self, design)
        if expect.y is not None:
            most = as_bytes("memory_limit", self.memory_limit, least=1)
            design.caches.gram_columns.max_bytes = min(most, design.limit.product_bytes)
            bound.gram_gradient = GramGradient(design, expect.y, expect.n_updates)
        return bound

    def find(self, design: Design, query: Query) -> Selection:
        return self.find_with_memory(BoundSelector(self, design), query, NO_MEMORY)

    def find_with_memory(self, bound: BoundSelector, query: Query, memory: Memory) -> Selection:
        """From Gram columns; from rows of X where r is not the residual of a state but that of a batch."""
        design = bound.design
        if query.state is None:
            return exact_selection(design, query)
        known = None if bound.gram_gradient is None else bound.gram_gradient.evaluate(query, memory)
        if known is None:
            needs = "squared loss and a solver that keeps its support"
            raise ValueError(f"gram selection needs {needs}; use 'exact'")
        answer = resolve_top_k(design, query, known.estimate)
        return answer._replace(memory=known.memory, full_gradient=known.estimate)

    def accepts_memory(self, design: Design, memory: Memory, targets: tuple[int, ...]) -> bool:
        shapes = {"xtz": (design.shape[1], *targets), "roundings": (), "reach": ()}
        return not memory or {name: part.shape for name, part in memory.items()} == shapes

    def predict_seconds(self, design: Design, expect: Workload) -> float:
        """X^T y, Gram columns of the visited atoms, made in blocks, and their sums in each step."""
        if expect.y is None:
            return inf
        d = design.shape[1]
        blocks = -(-expect.n_columns // GRAM_BATCH_USED) * product_seconds(design, GRAM_BATCH)
        terms = min(expect.n_columns, expect.n_queries) / 2
        terms *= COSTS.gram_term + d * expect.n_targets * COSTS.axpy
        left = design.access.gather_seconds(RECOMPUTED) if design.dtype == np.float32 else 0.0
        steps = expect.n_queries * ((terms + COSTS.gram_step) * NANO + left)
        width = GRAM_BATCH * -(-expect.n_columns // GRAM_BATCH_USED)
        before = design.access.pass_seconds + design.access.sweep_seconds(width)
        products = product_seconds(design, expect.n_targets) + product_seconds(design, 1)  # X^T y, norms
        return before + blocks + products + steps


class KnownGradient(NamedTuple):
    """X^T r for all columns, and what the sums want to be given with the next query."""

    estimate: Estimate
    memory: Memory = NO_MEMORY


class GramGradient:
    """X^T (X_S w_S - y) by columns of X^T X.

    A solver that moves its predictions step by step (`roundings` None) has its gradient followed: X^T z comes
    from that of the state before and the move between them, in d numbers for each column of the move, however
    many columns the support has. Memory: `xtz`; the `roundings` it has gone through; `reach`, the largest sum
    of |w_j| ||x_j|| of a state on the way.
    """

    def __init__(self, design: Design, y: Floats, roundings: int | None) -> None:
        self.design, self.y, self.roundings = design, y, roundings
        self.size_of_y = safe_norm(y.ravel(order="K"))
        self.last: tuple[State | None, KnownGradient | None] = None, None
        self.steps: GramSteps | None = None  # of plain Frank-Wolfe

    @cached_property
    def underflow(self) -> Floats | float:
        """What products of the float32 columns with one of norm 1 lose, beyond what `rounding_unit` tells."""
        lost = self.design.rounding(np.full(self.design.shape[0], self.design.shape[0] ** -0.5))
        return 0.0 if lost is None else lost

    @cached_property
    def xty(self) -> Floats:
        """X^T y."""
        return self.design.product(self.y)

    def evaluate(self, query: Query, memory: Memory) -> KnownGradient | None:
        """X^T r at the state of the query; None where it has none.

        `memory` is that of the state before, from which `State.last_update` led to this one.
        """
        at = query.state
        if at is None:
            return None
        if self.last[0] is at:  # a step that looked first
            return self.last[1]
        sizes = self.design.norm_bounds
        reach = float((np.abs(at.coef.T) * sizes[at.support]).sum())
        follows = "xtz" in memory and memory["roundings"] <= tuning.MAX_UPDATE_ROUNDINGS
        if self.roundings is None and at.last_update and follows:
            factor, columns, amounts = at.last_update
            xtz = self._add_gram_columns(factor * memory["xtz"], columns, amounts, query.score, memory["xtz"])
            roundings = abs(factor) * float(memory["roundings"]) + 4.0 * max(1.0, abs(factor))
            reach = max(reach, float(memory["reach"]))
        else:
            nothing = np.zeros((len(sizes), *at.coef.shape[1:]))
            xtz = self._add_gram_columns(nothing, at.support, at.coef, query.score)
            roundings = len(at.support) + (self.roundings or 0.0)
        unit, total = self.design.rounding_unit + EPS * (roundings + 8), self.size_of_y + reach
        error = outer_error_bound(4 * unit, sizes, total)
        if self.design.dtype == np.float32:
            error = error + total * self.underflow
        if xtz.ndim == 2:
            error = np.repeat(error[:, None], xtz.shape[1], axis=1)
        memory = {"xtz": xtz, "roundings": np.array(roundings), "reach": np.array(reach)}
        memory = memory if self.roundings is None else NO_MEMORY
        known = KnownGradient(Estimate(xtz - self.xty, error), memory)
        self.last = at, known
        return known

    def _add_gram_columns(
        self, xtz: Floats, columns: Indices, amounts: Floats, score: Score, before: Floats | None = None
    ) -> Floats:
        """The sum, and Gram columns times amounts."""
        for j, amount in zip(columns.tolist(), amounts):
            line = self.column(j, columns, xtz if before is None else before, score)
            xtz = daxpy(line, xtz, a=amount) if xtz.ndim == 1 else xtz + np.multiply.outer(line, amount)
        return xtz

    def column(self, j: int, wanted: Indices, xtz: Floats, score: Score) -> Floats:
        """A Gram column; a missing one is made with those that are wanted too, or score high at X^T z."""

        def likely(count: int) -> Indices:
            scores = score.of(xtz - self.xty)
            scores[list(self.design.caches.gram_columns.arrays)] = -np.inf
            return np.append(wanted, top_k(scores, count))

        return gram_column(self.design, j, likely)


class GramSteps:
    """Steps of plain Frank-Wolfe made many at a time, where columns of X^T X tell the gradient.

    Such a run comes back to few atoms again and again. While their columns of X and of X^T X are at hand, a
    kernel makes one step after the other, and the solver takes them one by one: the loop, its records and its
    checkpoints know nothing of it. The selector is asked where an atom is new, or where the bound on the
    rounding of X^T z leaves two columns in doubt. The arithmetic is the kernel's, wherever a batch began.
    """

    def __init__(self, problem: Problem, constraint: ConvexSet, exact: bool, gap_tol: float, xty: Floats):
        from skpursuit.kernels import gram_steps as kernel

        self.design, self.kernel = problem.design, kernel
        self.targets = np.ascontiguousarray(problem.y), xty
        (n, d), widest = self.design.shape, problem.max_column_norm
        reach, unit = constraint.radius * widest, self.design.rounding_unit + 8 * kernel.EPS
        scale, signed = 4 * widest * (problem.target_norm + reach), constraint.vertex(1.0) > 0
        self.rules = kernel.Rules(exact, signed, constraint.radius, gap_tol, reach, unit, scale)
        self.slots, self.visited, room = np.full(d, -1), 0, max(1, min(d, ROOM // (n + d)))
        self.atoms = np.empty((room, n)), np.empty((room, d))  # which take no memory before they are written
        self.z: Floats | None = None  # predictions that the next step starts from
        self.reach = np.array(reach)
        self.steps: Iterator[tuple[int, list[float]]] = iter(())

    def take(self, state: State, select: SelectionOracle, asked: bool = False) -> GramStep | None:
        """The step from a state, if it is made; its answer counts as one unless the selector was `asked`."""
        step = next(self.steps, None) if state.z is self.z else None
        if step is None:
            return None
        i, (gap, _, gamma, objective, roundings) = step
        columns, gradients, amounts = self.made
        one = slice(i, i + 1)
        if not asked:
            memory = {"xtz": self.points[1][i], "roundings": np.array(roundings), "reach": self.reach}
            select.take(Selection(columns[one], gradients[one], "exact", memory=memory))
        self.design.reads.stored_bytes += 8 * len(self.slots)
        self.z = self.points[0][i + 1]
        return SparseUpdate(1.0 - gamma, columns[one], amounts[one]), gap, objective, self.z

    def make(self, query: Query, z: Floats, t: int, select: SelectionOracle) -> Selection | None:
        """Make steps from predictions z; what the selector answered, where it was asked."""
        select.known_gradient(query)
        self.points = tuple(np.empty((BATCH + 1, len(part))) for part in self.targets)
        self.points[0][0], self.points[1][0], self.z = z, select.memory["xtz"], z
        picks, numbers, answer = np.empty(BATCH, np.int64), np.empty((BATCH, 5)), None
        numbers[0, 4] = select.memory["roundings"]
        arrays = self.slots, self.atoms, self.targets, self.points, picks, numbers
        count = self.kernel.vanilla_steps(-1, t, self.rules, *arrays)
        if not count:
            answer = select(query)
            j = int(answer.columns[0])
            self._visit(j, query, select)
            count = self.kernel.vanilla_steps(j, t, self.rules, *arrays)
        picks, numbers = picks[:count], numbers[:count]
        gradients = self.points[1][np.arange(count), picks] - self.targets[1][picks]
        self.made = picks, gradients, numbers[:, 2] * numbers[:, 1]
        self.steps = enumerate(numbers.tolist())
        return answer

    def _visit(self, j: int, query: Query, select: SelectionOracle) -> None:
        """Have the columns of an atom at hand; where there is no room for more, forget the others."""
        if self.slots[j] < 0:
            if self.visited == len(self.atoms[0]):
                self.slots[:], self.visited = -1, 0
            self.atoms[0][self.visited] = self.design.columns(np.array([j]))[0]
            self.atoms[1][self.visited] = select.gram_column(j, query)
            self.slots[j], self.visited = self.visited, self.visited + 1
