"""A selector of one's own: LUCB, a bandit that pulls the leader and its nearest challengers.

Columns of X are arms, and a pull of column j is n r_i x_ij for a row i drawn at random: its mean is the entry
of X^T r. LUCB (Kalyanakrishnan et al., 2012) keeps an interval around every mean and spends its pulls where
they matter: on the arms that lead, and on those whose upper ends are highest among the others. It stops when
the intervals no longer overlap, or when its budget is spent.

`rounds` records how the race goes, and `find` takes the best of the last round. A selector that has such a
`rounds` can be drawn, beside any other:

    skpursuit.plots.plot_race(X, r, ["halving", LUCB()])

It competes with the selectors of the paper in every study, and gets a line on the page of results:

    skpursuit reproduce omp --selector examples/lucb.py:LUCB --methods exact,halving,LUCB --out mine
    skpursuit report mine
"""

from dataclasses import dataclass

import numpy as np

from skpursuit.selectors import Query, Selection, Selector


@dataclass(frozen=True)
class LUCB(Selector):
    """Upper and lower confidence bounds on single entries; heuristic, as its intervals are asymptotic.

    Parameters
    ----------
    budget : float
        Most pulls, as a fraction of n d.
    delta : float
        Chance of a wrong answer that the intervals allow for.
    batch : int
        Rows that an arm is pulled on at a time.
    """

    budget: float = 0.02
    delta: float = 0.05
    batch: int = 64

    def find(self, design, query: Query) -> Selection:
        *_, (_, arms, estimates) = self.rounds(design, query)
        best = np.argsort(-query.score.of(estimates), kind="stable")[: query.k]
        return Selection(arms[best], estimates[best], "heuristic")

    def rounds(self, design, query: Query):
        """Yield (rows read, columns that may still win, their estimates) at every look."""
        n, d = design.shape
        rng = query.rng or np.random.default_rng(0)
        arms = query.allowed(d)
        sums, squares, pulls = np.zeros(d), np.zeros(d), np.zeros(d)
        self._pull(design, query.r, arms, 16, rng, sums, squares, pulls)
        while True:
            mean = sums[arms] / pulls[arms]
            spread = np.sqrt(np.maximum(squares[arms] / pulls[arms] - mean**2, 0))
            width = spread * np.sqrt(2 * np.log(1.25 * d * pulls[arms] ** 2 / self.delta) / pulls[arms])
            score = query.score.of(mean)
            order = np.argsort(-score, kind="stable")
            leaders, others = order[: query.k], order[query.k :]
            left = score + width >= (score - width)[leaders].min()
            yield pulls.sum() / d, arms[left], mean[left]
            if left.sum() <= query.k or pulls.sum() >= self.budget * n * d:
                return
            rivals = others[np.argsort(-(score + width)[others], kind="stable")[: max(8, query.k)]]
            chosen = arms[np.concatenate([leaders, rivals])]
            self._pull(design, query.r, chosen, self.batch, rng, sums, squares, pulls)

    @staticmethod
    def _pull(design, r, arms, times, rng, sums, squares, pulls):
        n = design.shape[0]
        rows = rng.integers(n, size=(times, len(arms)))
        entries = design.entries(rows.ravel(), np.tile(arms, times)).reshape(rows.shape)
        values = n * r[rows] * entries
        sums[arms] += values.sum(axis=0)
        squares[arms] += (values**2).sum(axis=0)
        pulls[arms] += times
