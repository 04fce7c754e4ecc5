"""Steps of plain Frank-Wolfe made many at a time, where columns of X^T X tell the gradient.

Such a run comes back to few atoms again and again. While their columns of X and of X^T X are at hand, a
kernel makes one step after the other, and the solver takes them one by one: the loop, its records and its
checkpoints know nothing of it. The selector is asked where an atom is new, or where the bound on the rounding
of X^T z leaves two columns in doubt. The arithmetic is that of the kernel, wherever a batch began.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from skpursuit.numerics.arrays import Floats
from skpursuit.problem.state import State
from skpursuit.selectors.query import Query, Selection

if TYPE_CHECKING:
    from skpursuit.problem.constraint_sets import ConvexSet
    from skpursuit.problem.problem import Problem
    from skpursuit.selectors.base import SelectionOracle

BATCH = 64  # steps
ROOM = 2**25  # entries of columns that are at hand
GramStep = tuple[int, list[float], Floats]  # column; gap, vertex, step size, objective; predictions


class GramSteps:
    """The steps of one run that are made already, and the atoms that it has visited."""

    def __init__(self, problem: Problem, constraint: ConvexSet, exact: bool, gap_tol: float, xty: Floats):
        from skpursuit.kernels import frank_wolfe as kernel

        self.design, self.kernel, self.targets = (
            problem.design,
            kernel,
            (np.ascontiguousarray(problem.y), xty),
        )
        (n, d), widest = self.design.shape, problem.max_column_norm
        reach, unit = constraint.radius * widest, self.design.rounding_unit + 8 * kernel.EPS
        scale, signed = 4 * widest * (problem.target_norm + reach), constraint.vertex(1.0) > 0
        self.rules = kernel.Rules(exact, signed, constraint.radius, gap_tol, reach, unit, scale)
        self.slots, self.visited, room = np.full(d, -1), 0, max(1, min(d, ROOM // (n + d)))
        self.atoms = np.empty((room, n)), np.empty((room, d))  # which take no memory before they are written
        self.z: Floats | None = None  # predictions that the next step starts from
        self.reach = np.array(reach)
        self.steps: Iterator[tuple[int, int, list[float]]] = iter(())

    def take(self, state: State, select: SelectionOracle, asked: bool = False) -> GramStep | None:
        """The step from a state, if it is made; its answer counts as one unless the selector was `asked`."""
        step = next(self.steps, None) if state.z is self.z else None
        if step is None:
            return None
        i, j, numbers = step
        if not asked:
            xtz = self.points[1][i]
            memory = {"xtz": xtz, "roundings": np.array(numbers.pop()), "reach": self.reach}
            select.take(Selection(np.array([j]), xtz[j : j + 1] - self.targets[1][j], "exact", memory=memory))
        self.design.reads.stored_bytes += 8 * len(self.slots)
        self.z = self.points[0][i + 1]
        return j, numbers[:4], self.z

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
        self.steps = zip(range(count), picks.tolist(), numbers.tolist())
        return answer

    def _visit(self, j: int, query: Query, select: SelectionOracle) -> None:
        """Have the columns of an atom at hand; where there is no room for more, forget the others."""
        if self.slots[j] < 0:
            if self.visited == len(self.atoms[0]):
                self.slots[:], self.visited = -1, 0
            self.atoms[0][self.visited] = self.design.columns(np.array([j]))[0]
            self.atoms[1][self.visited] = select.gram_column(j, query)
            self.slots[j], self.visited = self.visited, self.visited + 1
