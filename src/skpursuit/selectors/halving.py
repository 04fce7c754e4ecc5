"""Successive halving: columns compete on the same rows, and the worse half is dropped each round."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import ceil, log2
from numbers import Real

import numpy as np

from skpursuit.design.base import Design, Floats, Indices
from skpursuit.kernels.topk import keep
from skpursuit.selectors.base import Query, Selection, Selector, rank
from skpursuit.selectors.greedy import by_energy, empty_sums
from skpursuit.selectors.score import top


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

    def memory(self, design: Design) -> int:
        return design.row_layout_bytes()

    def find(self, design: Design, query: Query) -> Selection:
        race = Race(design, query, self._rows(design, query))
        pulls = self.budget * design.shape[0] * design.shape[1]
        answer = race.run(pulls, self.finish)
        while self.doubling and answer.certificate != "exact":
            pulls *= 2
            previous, answer = answer, race.run(pulls, self.finish)
            if previous.indices.tolist() == answer.indices.tolist():
                break
        return answer

    def _rows(self, design: Design, query: Query) -> Indices:
        if self.order == "energy":
            return by_energy(design, query.r)
        rng = query.rng or np.random.default_rng(0)
        return rng.permutation(design.shape[0])


@dataclass
class Race:
    """One selection: sums over the first `used` rows for all columns, kept from one budget to the next."""

    design: Design
    query: Query
    rows: Indices
    used: int = 0
    sums: Floats = field(init=False)

    def __post_init__(self) -> None:
        self.sums = empty_sums(self.design, self.query.r)

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
            self._advance(until)
            if self.used >= len(self.rows) or len(alive) <= self.query.k:
                break
            alive = self._better_half(alive)
        if len(alive) <= few or self.used >= len(self.rows):
            answer = self._exact_among(alive)
            return answer if len(alive) == len(everyone) else replace(answer, certificate="heuristic")
        sums = self.sums[alive]
        best = top(self.query.score.of(sums), self.query.k)
        return Selection(alive[best], sums[best], "heuristic")

    def _advance(self, until: int) -> None:
        """Add rows to all columns: dropped ones share cache lines with others, so this costs nothing."""
        until = min(until, len(self.rows))
        if until > self.used:
            part = self.rows[self.used : until]
            self.design.accumulate(part, self.query.r[part], self.sums)
            self.used = until

    def _better_half(self, alive: Indices) -> Indices:
        scores = self.query.score.of(self.sums[alive])
        return alive[keep(scores, max(self.query.k, len(alive) // 2))]

    def _exact_among(self, alive: Indices) -> Selection:
        """Add the remaining rows to the survivors alone, and rank them."""
        design, query, rest = self.design, self.query, self.rows[self.used :]
        sums = np.ascontiguousarray(self.sums[alive].T).T
        design.accumulate(rest, query.r[rest], sums, alive)
        return rank(design, query, sums, design.accumulate_error(query.r)[alive], alive)
