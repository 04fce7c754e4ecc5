"""Successive reject: one column dropped per phase, single-entry pulls: the slow baseline of the paper."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

import numpy as np

from skpursuit.data.design import Design
from skpursuit.parameters import check_number
from skpursuit.problem.scores import top_k, top_k_by_index
from skpursuit.selectors.base import Selector
from skpursuit.selectors.query import Query, Selection


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
