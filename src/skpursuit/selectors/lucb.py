"""LUCB: a bandit that pulls the leading columns and their nearest rivals.

Columns of X are arms. A pull of column j reads one entry x_ij, and n r_i x_ij is a sample of the entry of
X^T r. LUCB (Kalyanakrishnan, Tewari, Auer and Stone, 2012) keeps an interval around the mean of every arm and
spends its pulls where they matter: on the k arms that lead, and on those whose intervals reach highest among
the others. It stops when the intervals no longer overlap, or when its budget is spent.

All arms go through the rows in one random order, each as far as it was pulled. So no entry is read twice, an
arm that was pulled on all rows has an interval of no width, and once all arms have one the answer is exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf, log

import numpy as np

from skpursuit.data.design import Design
from skpursuit.numerics.arrays import Floats, Indices
from skpursuit.numerics.error_bounds import Estimate
from skpursuit.parameters import check_count, check_number
from skpursuit.problem.scores import top_k
from skpursuit.selectors.base import Round, Selector
from skpursuit.selectors.query import Query, Selection
from skpursuit.selectors.top_k import resolve_top_k

INITIAL_PULLS = 16  # pulls of every arm before intervals say anything
MIN_CHALLENGERS = 8  # arms that are pulled beside the leaders, at least


@dataclass(frozen=True)
class LUCB(Selector):
    """Lower and upper confidence bounds on columns that are read entry by entry.

    The intervals are those of means of many samples, so the answer is heuristic unless all was read. Single
    entries are slow to read; this selector is about how few of them an answer needs. A linear operator gives
    no single entries, and is refused.

    Parameters
    ----------
    budget : float
        Most pulls, as a fraction of n d. Every column is pulled a few times in any case.
    delta : float
        Chance of a wrong answer that the intervals allow for; 0 makes them infinite, so that the budget alone
        ends a selection.
    batch_size : int
        Rows that an arm is pulled on at a time.

    Examples
    --------
    >>> from skpursuit import LUCB, OMP, datasets, minimize
    >>> X, y, w = datasets.make_sparse_signal(200, 400, 3, snr=20.0, random_state=0)
    >>> result = minimize(X, y, OMP(3), LUCB(budget=0.5), random_state=0)
    >>> set(result.support.tolist()) == set(w.nonzero()[0].tolist())
    True
    """

    random_access = "entries"
    budget: float = 0.2
    delta: float = 0.05
    batch_size: int = 64

    def __post_init__(self) -> None:
        check_number("budget", self.budget, "(0, inf)")
        check_number("delta", self.delta, "[0, 1)")
        check_count("batch_size", self.batch_size, optional=False)

    def find(self, design: Design, query: Query) -> Selection:
        *_, arms = self._pulled(design, query)
        if (arms.pulls == design.shape[0]).all():
            rounding = design.rounding(query.r, any_order=True)
            error = None if rounding is None else rounding[arms.columns]
            return resolve_top_k(design, query, Estimate(arms.sums, error), arms.columns)
        means = arms.means()
        best = top_k(query.score.of(means), query.k)
        return Selection(arms.columns[best], means[best], "heuristic")

    def rounds(self, design: Design, query: Query) -> Iterator[Round]:
        """The estimates of all columns after more and more pulls."""
        for arms in self._pulled(design, query):
            yield arms.pulls.sum() / design.shape[1], arms.columns, arms.means()

    def _pulled(self, design: Design, query: Query) -> Iterator[Arms]:
        """What was read of each column, after the first pulls and after every later ones."""
        n, d = design.shape
        columns = query.allowed(d)
        rng = query.rng or np.random.default_rng(0)
        arms = Arms(design, query.r, columns, rng.permutation(n))
        if len(columns):
            arms.pull(np.arange(len(columns)), INITIAL_PULLS)
        yield arms
        while arms.pulls.sum() < self.budget * n * d:
            wanted = self._undecided(query, arms)
            if len(wanted) == 0:
                break
            arms.pull(wanted, self.batch_size)
            yield arms

    def _undecided(self, query: Query, arms: Arms) -> Indices:
        """The leaders and their nearest rivals, those with rows left to read; none once they are apart."""
        score = query.score.of(arms.means())
        margin = query.score.error(arms.widths(log(1 / self.delta) if self.delta else inf))
        leaders = top_k(score, query.k)
        upper = score + margin
        upper[leaders] = -inf
        rivals = top_k(upper, max(MIN_CHALLENGERS, query.k))
        if (score - margin)[leaders].min(initial=inf) > upper[rivals].max(initial=-inf):
            return rivals[:0]
        wanted: Indices = np.concatenate([leaders, rivals])
        return wanted[arms.pulls[wanted] < len(query.r)]


class Arms:
    """What was read of each column so far: sums of r_i x_ij, of their squares, and the number of rows."""

    def __init__(self, design: Design, r: Floats, columns: Indices, order: Indices) -> None:
        self.design, self.r, self.columns, self.order = design, r, columns, order
        self.sums = np.zeros((len(columns), *r.shape[1:]))
        self.squares = np.zeros_like(self.sums)
        self.pulls = np.zeros(len(columns), dtype=np.int64)

    def pull(self, arms: Indices, times: int) -> None:
        """Read the next rows of some columns, as far as there are any."""
        n = len(self.order)
        steps = np.minimum(times, n - self.pulls[arms])
        owner = np.repeat(np.arange(len(arms)), steps)
        nth = np.arange(len(owner)) - np.repeat(np.cumsum(steps) - steps, steps)
        rows = self.order[self.pulls[arms][owner] + nth]
        entries = self.design.entries(rows, self.columns[arms][owner])
        values = (self.r[rows].T * entries).T
        np.add.at(self.sums, arms[owner], values)
        np.add.at(self.squares, arms[owner], values * values)
        self.pulls[arms] += steps

    def means(self) -> Floats:
        """Estimates of the entries of X^T r."""
        return (self.sums.T * (len(self.order) / self.pulls)).T

    def widths(self, doubt: float) -> Floats:
        """Half-widths of intervals around the means that fail with a chance of about exp(-doubt) in all.

        One pull of average spread is added to each arm, so that those whose first entries are all zero
        keep a width. The last factor tells that rows are not drawn twice.
        """
        n, p = len(self.order), self.pulls
        average = self.squares.sum(axis=0) / p.sum()
        spread = np.sqrt((self.squares.T + average[..., None]) / (p + 1))
        with np.errstate(invalid="ignore"):  # infinity times the zero of an arm that was read to its end
            factor = n * np.sqrt(2 * (doubt + np.log(1.25 * len(p) * p**2.0)) / p * (1 - p / n))
            return np.where(p == n, 0.0, spread * factor).T
