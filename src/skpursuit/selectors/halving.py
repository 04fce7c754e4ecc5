"""Successive halving: columns compete on the same rows, and the worse half is dropped each round."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from math import ceil, log2
from numbers import Real

import numpy as np

from skpursuit.design.base import Design, Floats, Indices
from skpursuit.kernels.topk import keep
from skpursuit.selectors.base import Query, Selection, Selector, rank, sorted_out
from skpursuit.selectors.greedy import by_energy, empty_sums
from skpursuit.selectors.score import top

WORTH_CODING = 2**20  # entries of X from which a quantised twin of it pays
CODES_SLOWER = 2  # times longer that a byte of code takes than a byte of a row of floats


@dataclass(frozen=True)
class SuccessiveHalving(Selector):
    """Successive halving on the columns of X (algorithm "halving").

    Every round adds the same rows to all surviving columns, then drops the worse half, never below k.

    Parameters
    ----------
    order : "energy" or "random"
        Rows in decreasing |r_i| ||x_i|| (the paper's non-stochastic form), or one random permutation.
    budget : float
        Pulls, as a fraction of n d.
    finish : float
        Once at most this share of the columns survives they are scored exactly; 0 follows the paper to
        its last round.
    doubling : bool
        Double the budget until two answers agree, reusing what was accumulated.
    """

    order: str = "energy"
    budget: float = 0.2
    finish: float = 1 / 16
    doubling: bool = False

    def __post_init__(self) -> None:
        if self.order not in ("energy", "random"):
            raise ValueError(f"order must be 'energy' or 'random', got {self.order!r}")
        if not isinstance(self.budget, Real) or not 0 < self.budget < np.inf:
            raise ValueError(f"budget must be a positive fraction of n d, got {self.budget!r}")
        if not isinstance(self.finish, Real) or not 0 <= self.finish <= 1:
            raise ValueError(f"finish must be between 0 and 1, got {self.finish!r}")

    def prepare(self, design: Design) -> None:
        design.prepare_rows()
        if uses_twin(design):
            design.twin(fine=True)

    def memory(self, design: Design) -> int:
        codes = 2 * design.shape[0] * design.shape[1] if uses_twin(design) else 0
        return design.row_layout_bytes() + codes

    def find(self, design: Design, query: Query) -> Selection:
        race = Race(design, query, self.order_rows(design, query))
        pulls = self.budget * design.shape[0] * design.shape[1]
        answer = race.run(pulls, self.finish)
        while self.doubling and answer.certificate != "exact":
            pulls *= 2
            previous, answer = answer, race.run(pulls, self.finish)
            if previous.indices.tolist() == answer.indices.tolist():
                break
        return answer

    def order_rows(self, design: Design, query: Query) -> Indices:
        """The rows in the order in which they are read."""
        if self.order == "energy":
            return by_energy(design, query.r)
        rng = query.rng or np.random.default_rng(0)
        return rng.permutation(design.shape[0])


@dataclass
class Race:
    """One selection: sums over the first `used` rows for all columns, kept from one budget to the next.

    Where a twin of X can place the survivors for fewer bytes than whole rows, it does, and only the columns
    that its bounds leave in doubt are summed: every column lives or dies as it would by the sums alone.

    Attributes
    ----------
    edges : list of int
        Numbers of rows at which columns were compared so far. The sums are made in these steps wherever they
        are made, so that their bits do not depend on the way.
    rounds : list of (int, ndarray of int)
        For each time columns were dropped, the number of rows by which, and those that stayed.
    """

    design: Design
    query: Query
    rows: Indices
    used: int = 0
    edges: list[int] = field(default_factory=lambda: [0])
    rounds: list[tuple[int, Indices]] = field(default_factory=list)
    sums: Floats = field(init=False)
    ends: tuple[Floats, Floats] | None = None  # what the last round learned of the survivors' whole sums

    def __post_init__(self) -> None:
        self.sums = empty_sums(self.design, self.query.r)
        self.coded = uses_twin(self.design)

    def run(self, pulls: float, finish: float) -> Selection:
        """Halve until k columns are left, or few enough to be scored exactly."""
        everyone = alive = self.query.allowed(self.design.shape[1])
        few = ceil(finish * len(alive))
        rounds = max(1, ceil(log2(max(1, len(alive)))))
        until = 0
        for _ in range(rounds):
            if len(alive) <= few:
                break
            until += max(1, int(pulls / (len(alive) * rounds)))
            if min(until, len(self.rows)) > self.edges[-1]:
                self.edges.append(min(until, len(self.rows)))
            if self._all_rows() or len(alive) <= self.query.k:
                break
            count = max(self.query.k, len(alive) // 2)
            alive = self._better(alive, count, last=count <= few)
            self.rounds.append((self.edges[-1], alive))
        if len(alive) <= few or self._all_rows():
            answer = self._exact_among(alive)
            return answer if len(alive) == len(everyone) else replace(answer, certificate="heuristic")
        sums = self._summed(alive)
        best = top(self.query.score.of(sums), self.query.k)
        return Selection(alive[best], sums[best], "heuristic")

    def _all_rows(self) -> bool:
        return self.edges[-1] >= len(self.rows)

    def _better(self, alive: Indices, count: int, last: bool) -> Indices:
        """The `count` best of some columns by the rows so far, ascending."""
        if not self._codes_pay(alive):
            self._advance()
        if self.used == self.edges[-1]:
            return alive[keep(self.query.score.of(self.sums[alive]), count)]
        parts = [self.rows[self.used : self.edges[-1]]]
        if last:  # the rest will be asked for next, of columns that are just being read
            parts.append(self.rows[self.edges[-1] :])
        g, bound = self._coded(alive, parts)
        score = self.query.score
        sums, error = self.sums[alive], 2 * self.rounding[alive]
        sure, doubtful = sorted_out(score.of(sums + g[:, 0]), score.error(bound[:, 0] + error), count)
        rest = keep(score.of(self._summed(alive[doubtful])), count - len(sure))
        kept = np.sort(np.concatenate([sure, doubtful[rest]]))
        if last:
            self.ends = (sums + g.sum(axis=1))[kept], (bound.sum(axis=1) + error)[kept]
        return alive[kept]

    def _codes_pay(self, alive: Indices) -> bool:
        """Whether two bytes of every entry of the survivors are read faster than the rows that are due."""
        if not self.coded:
            return False
        due = self.rows[self.used : self.edges[-1]]
        return (
            CODES_SLOWER * self.design.twin(fine=True).refine_cost(len(alive)).bytes
            < self.design.cost(rows=due)[1]
        )

    def _coded(self, cols: Indices, parts: list[Indices]) -> tuple[Floats, Floats]:
        """Sums over each part of the rows from the twin, with bounds: (columns, parts[, targets])."""
        r = self.query.r.T
        split = np.zeros((len(parts), *r.shape))
        for masked, part in zip(split, parts):
            masked[..., part] = r[..., part]
        g, bound = self.design.refine(split.reshape(-1, r.shape[-1]).T, cols)
        shape = (len(cols), *split.shape[:-1])
        return g.reshape(shape), bound.reshape(shape)

    @cached_property
    def rounding(self) -> Floats:
        """Bound on the rounding of the sums."""
        return self.design.accumulate_error(self.query.r)

    def _advance(self) -> None:
        """Add rows to all columns: dropped ones share cache lines with others, so this costs nothing."""
        self._add(self.sums, None)
        self.used = self.edges[-1]

    def _summed(self, cols: Indices) -> Floats:
        """Sums over the rows so far of some columns."""
        sums = np.ascontiguousarray(self.sums[cols].T).T
        self._add(sums, cols)
        return sums

    def _add(self, sums: Floats, cols: Indices | None) -> None:
        for start, stop in pairwise([edge for edge in self.edges if edge >= self.used]):
            part = self.rows[start:stop]
            self.design.accumulate(part, self.query.r[part], sums, cols)

    def _exact_among(self, alive: Indices) -> Selection:
        """Add the remaining rows to the survivors alone, and rank them."""
        design, query, rest = self.design, self.query, self.rows[self.used :]
        sums, error = self.sums[alive], self.rounding[alive]
        if self.ends is not None:
            (sums, error), self.ends = self.ends, None
        elif self.coded and len(rest):
            g, bound = self._coded(alive, [rest])
            sums, error = sums + g[:, 0], 2 * error + bound[:, 0]
        else:
            sums = np.ascontiguousarray(sums.T).T
            design.accumulate(rest, query.r[rest], sums, alive)
        return rank(design, query, sums, error, alive)


def uses_twin(design: Design) -> bool:
    """Whether the survivors are placed by a quantised twin of X."""
    return design.has_twin() and design.shape[0] * design.shape[1] >= WORTH_CODING
