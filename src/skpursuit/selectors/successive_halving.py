"""Successive halving: columns compete on the same rows, and the worse half is dropped each round.

The columns are the arms of a bandit, and a row is one pull of every arm that is left. Early rounds spend few
rows on many columns, late rounds many rows on few: the budget goes where the decision is close. Once few
columns are left they are scored exactly: on large X by codes, with bounds. Where rows do not lie together,
the rounds are sums of codes too. One byte an entry leaves most columns in doubt, but the winner by all rows,
which is known then too, nearly always stays beyond doubt, and so it is the answer. Else an X in memory is
copied, so that rows lie together from then on; on disk two bytes leave few columns to be summed in float64.

Successive reject drops one column per phase and reads single entries: the slow baseline of the paper.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import ceil, log2
from typing import ClassVar

import numpy as np

from skpursuit.data.design import Design
from skpursuit.numerics.arrays import Floats, Indices
from skpursuit.numerics.error_bounds import Estimate
from skpursuit.numerics.tuning import HALVING_CODES
from skpursuit.parameters import check_choice, check_flag, check_number
from skpursuit.problem.scores import top_k, top_k_by_index
from skpursuit.selectors.base import BoundSelector, Round, Selector
from skpursuit.selectors.contests import contest_of
from skpursuit.selectors.query import Query, Selection, Workload
from skpursuit.selectors.row_sampling import rows_by_energy, trace_partial_sums, zero_gradient
from skpursuit.selectors.top_k import CodeOrigin, resolve_top_k, split_certain


@dataclass(frozen=True)
class SuccessiveHalving(Selector):
    """Successive halving on the columns of X (algorithm "halving").

    Every round adds the same rows to all surviving columns, then drops the worse half, never below k.

    Parameters
    ----------
    order : "energy", "random" or "draws"
        Rows in decreasing |r_i| ||x_i|| (the paper's non-stochastic form), one random permutation, or rows
        drawn with replacement in every round (the paper's stochastic form, which needs `exact_fraction` 0).
    budget : float
        Pulls, as a fraction of n d.
    exact_fraction : float
        Once at most this share of the columns survives they are scored exactly; 0 follows the paper to
        its last round.
    doubling : bool
        Double the budget until two answers agree, reusing what was accumulated.
    """

    answers_contests: ClassVar[bool] = True
    order: str = "energy"
    budget: float = 0.2
    exact_fraction: float = 1 / 16
    doubling: bool = False

    def __post_init__(self) -> None:
        check_choice("order", self.order, ("energy", "random", "draws"))
        check_number("budget", self.budget, "(0, inf)")
        check_number("exact_fraction", self.exact_fraction, "[0, 1]")
        check_flag("doubling", self.doubling)
        if self.order == "draws" and (self.exact_fraction or self.doubling):
            raise ValueError("order='draws' scores nothing exactly; use exact_fraction=0, doubling=False")

    def bind(self, design: Design, expect: Workload) -> BoundSelector:
        if uses_codes(design) and self.order != "draws":
            design.codes(fine=not design.in_memory)
            design.norms(1)
        else:
            design.prepare_access("rows")
        return BoundSelector(self, design)

    def find(self, design: Design, query: Query) -> Selection:
        if self.order == "draws":
            *_, (used, columns, sums) = self._draw_rounds(design, query)
            return Selection(columns, sums * (design.shape[0] / max(1.0, used)), "heuristic")
        race = HalvingRun(design, query, self.order_rows(design, query), uses_codes(design))
        pulls = self.budget * design.shape[0] * race.contest.count(design.shape[1])
        answer = race.run(pulls, self.exact_fraction)
        while self.doubling and answer.certificate != "exact":
            pulls *= 2
            previous, answer = answer, race.run(pulls, self.exact_fraction)
            if previous.columns.tolist() == answer.columns.tolist():
                break
        return answer

    def rounds(self, design: Design, query: Query) -> Iterator[Round]:
        """Sums over more and more rows of the columns that are left, twice where some are dropped."""
        if self.order == "draws":
            yield from self._draw_rounds(design, query)
            return
        alive = query.allowed(design.shape[1])
        race = HalvingRun(design, query, self.order_rows(design, query), coded=False)
        race.run(self.budget * design.shape[0] * design.shape[1], self.exact_fraction)
        dropped = dict(race.rounds)
        few = ceil(self.exact_fraction * len(alive))
        finished = (race.rounds[-1][1] if race.rounds else alive).size <= few  # these were scored by all rows
        looks = [*dropped, len(race.rows) if finished else race.edges[-1]]
        for used, sums in trace_partial_sums(design, race.rows, query.r[race.rows], looks):
            yield used, alive, sums[alive]
            if used in dropped:
                alive = dropped[used]
                yield used, alive, sums[alive]

    def _draw_rounds(self, design: Design, query: Query) -> Iterator[Round]:
        """Rounds as the paper prints them: rows drawn anew for the columns that are left, then halved."""
        (n, d), contest, used = design.shape, contest_of(query.score), 0
        alive, rng = contest.allowed(query, d), query.rng or np.random.default_rng(0)
        columns, pulls, rounds = contest.columns(alive), self.budget * n * contest.count(d), 0
        sums = zero_gradient(design, query.r)[columns]
        if len(alive) > query.k:
            rounds = halving_rounds(len(alive), query.k)
        yield 0.0, columns, sums
        for left in reversed(range(rounds)):
            rows = rng.integers(n, size=max(1, int(pulls / (len(alive) * rounds))))
            used += len(rows)
            for part in np.array_split(rows, ceil(len(rows) / n)):
                design.add_rows(part, query.r[part], sums, columns)
            scores, count = contest.scores(sums, alive), max(query.k, len(alive) // 2)
            alive = alive[top_k_by_index(scores, count) if left else top_k(scores, count)]
            stay = contest.columns(alive)
            columns, sums = stay, np.ascontiguousarray(sums[places_of(stay, columns)].T).T
            yield float(used), columns, sums

    @property
    def plot_title(self) -> str:
        return f"Successive halving, rows in {self.order} order, budget {self.budget:g}"

    def order_rows(self, design: Design, query: Query) -> Indices:
        """The rows in the order in which they are read."""
        if self.order == "energy":
            return rows_by_energy(design, query.r)
        return (query.rng or np.random.default_rng(0)).permutation(design.shape[0])


class HalvingRun:
    """One selection: sums over the first rows for all columns, kept from one budget to the next.

    Dropped columns share cache lines with others, so that summing them as well costs nothing. Where `coded`,
    sums over all rows are estimates by codes of X, with bounds, and so are the others until sums of rows are
    cheap. Columns that these leave in doubt are summed. The answer is that of the sums alone.
    """

    def __init__(self, design: Design, query: Query, rows: Indices, coded: bool) -> None:
        self.design, self.query, self.rows, self.coded = design, query, rows, coded
        self.contest = contest_of(query.score)
        self.by_rows = design.access.has_fast_rows or not coded
        self.edges = [0]  # numbers of rows at which columns were compared so far
        # (rows read, surviving columns), each time columns were dropped; none where nobody had to know which
        self.rounds: list[tuple[int, Indices]] = []
        # Sums over the rows up to an edge; where they are estimates, what sums in float64 may differ by.
        self.sums: dict[int, tuple[Floats, Floats | None]] = {0: (zero_gradient(design, query.r), None)}

    def run(self, pulls: float, finish: float) -> Selection:
        """Halve until k columns are left, or few enough to be scored exactly."""
        alive, d = self.contest.allowed(self.query, self.design.shape[1]), self.design.shape[1]
        everyone, few = len(alive), ceil(finish * len(alive))
        plan = list(self._schedule(len(alive), pulls, few))
        edges = [edge for edge, _ in plan]
        by_all_rows = self._all_rows() or (plan[-1][1] if plan else len(alive)) <= few
        single = self.query.k == 1 and self.contest.count(d) == d  # of many some are in doubt
        if not self.by_rows and plan and by_all_rows and single:
            self._estimate([*edges, len(self.rows)], fine=False)
            sure = self._winner(alive, plan)
            if sure is not None:
                return sure
        if not self.by_rows and self.design.in_memory:
            self.by_rows, self.sums = True, {0: self.sums[0]}
        if self.by_rows:
            self._accumulate(edges)
        else:
            self._estimate([*edges, len(self.rows)], fine=True)
        for edge, count in plan:
            alive = self._survivors(alive, count, edge)
            self.rounds.append((edge, alive))
        if by_all_rows:
            answer = self._rank_exactly(alive)
            return answer._replace(certificate="exact" if len(alive) == everyone else "heuristic")
        columns = self.contest.columns(alive)
        sums = self._summed(columns, self.edges[-1])
        best = top_k(self.contest.scores(sums, alive), self.query.k)
        chosen = self.contest.columns(alive[best])
        return Selection(chosen, sums[places_of(chosen, columns)], "heuristic")

    def _schedule(self, alive: int, pulls: float, few: int) -> Iterator[tuple[int, int]]:
        """For each round the rows after which columns are compared, and how many stay."""
        rounds, until = halving_rounds(alive, self.query.k), 0
        for _ in range(rounds):
            if alive <= few:
                return
            until += max(1, int(pulls / (alive * rounds)))
            if min(until, len(self.rows)) > self.edges[-1]:
                self.edges.append(min(until, len(self.rows)))
            if self._all_rows() or alive <= self.query.k:
                return
            alive = max(self.query.k, alive // 2)
            yield self.edges[-1], alive

    def _all_rows(self) -> bool:
        return self.edges[-1] >= len(self.rows)

    def _accumulate(self, edges: list[int]) -> None:
        """Sum all columns up to these numbers of rows."""
        last = max(self.sums)
        for start, stop in pairwise([last, *sorted({edge for edge in edges if edge > last})]):
            part, sums = self.rows[start:stop], self.sums[start][0].copy(order="K")
            self.design.add_rows(part, self.query.r[part], sums)
            self.sums[stop] = sums, None

    def _estimate(self, edges: list[int], fine: bool) -> None:
        """Sums up to these numbers of rows by codes: one product with residuals that are zero elsewhere."""
        r, edges = self.query.r, sorted(set(edges))
        masked = np.zeros((len(r), len(edges), *r.shape[1:]))
        for i, stop in enumerate(edges):
            rows = self.rows[:stop]
            masked[rows, i] = r[rows]
        found = self.design.codes(fine).estimate(masked.reshape(len(r), -1), second_byte=fine)
        sums, bounds = (part.reshape(-1, *masked.shape[1:]) for part in found)
        for i, stop in enumerate(edges):
            self.sums[stop] = np.asfortranarray(sums[:, i]), bounds[:, i] + self.rounding

    def _winner(self, alive: Indices, plan: list[tuple[int, int]]) -> Selection | None:
        """The best column by all rows, if it is beyond doubt that it stays in every round; else None."""
        answer = self._rank_exactly(alive)
        best = np.searchsorted(alive, answer.columns)
        for edge, count in plan:
            scores, margin = self._estimated(alive, edge)
            if np.count_nonzero(scores + margin >= scores[best] - margin[best]) > count:
                return None
        return answer._replace(certificate="heuristic")

    def _estimated(self, alive: Indices, edge: int) -> tuple[Floats, Floats]:
        """Scores of some columns by the rows up to an edge, and what those by sums may differ by."""
        (sums, error), columns = self.sums[edge], self.contest.columns(alive)
        assert error is not None
        return self.contest.intervals(Estimate(sums[columns], error[columns]), alive)

    def _survivors(self, alive: Indices, count: int, edge: int) -> Indices:
        """The `count` best of some columns by the rows up to an edge, ascending."""
        if self.by_rows:
            sums = self.sums[edge][0][self.contest.columns(alive)]
            return alive[top_k_by_index(self.contest.scores(sums, alive), count)]
        sure, doubtful = split_certain(*self._estimated(alive, edge), count)
        some = alive[doubtful]
        sums = self._summed(self.contest.columns(some), edge)
        rest = top_k_by_index(self.contest.scores(sums, some), count - len(sure))
        best: Indices = np.sort(np.concatenate([sure, doubtful[rest]]))
        return alive[best]

    @cached_property
    def rounding(self) -> Floats:
        """Bound on the rounding of sums."""
        bound = self.design.rounding(self.query.r, any_order=True)
        assert bound is not None
        return bound

    def _summed(self, cols: Indices, edge: int) -> Floats:
        """Sums of some columns over the rows up to an edge."""
        start = max(self.sums) if self.by_rows else 0
        sums = np.ascontiguousarray(self.sums[start][0][cols].T).T
        steps = [step for step in self.edges if start <= step < edge]  # as all columns would be summed
        for first, last in pairwise([*steps, edge]):
            part = self.rows[first:last]
            self.design.add_rows(part, self.query.r[part], sums, cols)
        return sums

    def _rank_exactly(self, alive: Indices) -> Selection:
        """Score the survivors by all rows, and rank them."""
        design, query, columns = self.design, self.query, self.contest.columns(alive)
        if not self.coded:
            estimate = Estimate(self._summed(columns, len(self.rows)), self.rounding[columns])
            return resolve_top_k(design, query, estimate, alive)
        if self.by_rows:
            estimate = Estimate(*design.codes().estimate(query.r, columns))
        else:
            g, bound = self.sums[len(self.rows)]
            assert bound is not None
            estimate = Estimate(g[columns], bound[columns])
        return resolve_top_k(design, query, estimate, alive, CodeOrigin(fine=not self.by_rows))


def places_of(some: Indices, columns: Indices) -> Indices:
    """Where some of the columns are among them."""
    order = np.argsort(columns)
    return order[np.searchsorted(columns, some, sorter=order)]


def halving_rounds(arms: int, k: int) -> int:
    """Rounds until k columns are left, among which the budget is shared: all of it is spent for any k."""
    return max(1, ceil(log2(max(1.0, arms / k))))


def uses_codes(design: Design) -> bool:
    """Whether sums are estimated by codes of X."""
    return design.has_codes and design.shape[0] * design.shape[1] >= HALVING_CODES


@dataclass(frozen=True)
class SuccessiveReject(Selector):
    """Successive reject (Audibert, Bubeck and Munos, 2010): every column is pulled on rows of its own.

    A pull reads one entry of X. A linear operator gives no single entries, and is refused.

    Parameters
    ----------
    budget : float
        Pulls, as a fraction of n d; at least one pull per column is made where there is a choice.
    """

    random_access = "entries"
    budget: float = 0.2

    def __post_init__(self) -> None:
        check_number("budget", self.budget, "(0, inf)")

    def find(self, design: Design, query: Query) -> Selection:
        n, d = design.shape
        rng = query.rng or np.random.default_rng(0)
        alive = query.allowed(d)
        sums = np.zeros((d, *query.r.shape[1:]))
        pulled, plan = 0, phases(len(alive), self.budget * n * d, query.k)
        for wanted, left in plan:
            for _ in range(wanted - pulled):
                rows = rng.integers(n, size=len(alive))
                entries = design.entries(rows, alive)
                sums[alive] += (query.r[rows].T * (n * entries)).T
            pulled = max(pulled, wanted)
            scores = query.score.of(sums[alive])
            alive = alive[top_k_by_index(scores, left)]
        best = top_k(query.score.of(sums[alive]), query.k)
        return Selection(alive[best], sums[alive[best]] / max(1, pulled), "heuristic")


def phases(arms: int, pulls: float, k: int) -> list[tuple[int, int]]:
    """(pulls of each surviving arm so far, arms that survive): phases without new pulls are merged."""
    harmonic = 0.5 + sum(1.0 / i for i in range(2, arms + 1))
    out: list[tuple[int, int]] = []
    for phase in range(1, arms - k + 1):
        wanted = max(1, ceil((pulls - arms) / (harmonic * (arms + 1 - phase))))
        left = arms - phase
        if out and out[-1][0] == wanted:
            out[-1] = (wanted, left)
        else:
            out.append((wanted, left))
    return out
