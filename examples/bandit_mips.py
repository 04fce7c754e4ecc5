"""Newer bandits beside the paper's: how often they find the top entry of X^T r, and what they read.

    python examples/bandit_mips.py [picture.png]

BoundedME (Liu, Wu and Mozafari, 2019) is median elimination for pulls without replacement: every round
pulls all columns that are left as often as its confidence asks for, and drops the worse half. BanditMIPS
(Tiwari et al., 2022) keeps an interval around each column, of all samples so far, and drops every column
whose interval lies below that of the leader. Both read single entries of X. They are heuristic here: their
intervals take the spread of the pulls from the data, or do without it.

Each is a selector, so that it can be used in any solver and in the studies:

    skpursuit reproduce omp --selector examples/bandit_mips.py:BanditMIPS --methods exact,halving,BanditMIPS
"""

import sys
from dataclasses import dataclass
from math import ceil, log

import numpy as np

import skpursuit
from skpursuit.selectors import Query, Selection, Selector, as_selector


class EntryBandit(Selector):
    """Columns compete on the same random rows without replacement; `rounds` says who is left."""

    def find(self, design, query: Query) -> Selection:
        *_, (_, arms, estimates) = self.rounds(design, query)
        best = np.argsort(-query.score.of(estimates), kind="stable")[: query.k]
        return Selection(arms[best], estimates[best], "heuristic")

    def pull(self, design, query, rows, arms):
        """The terms r_i x_ij of some rows and columns, and so many entries read."""
        entries = design.entries(np.repeat(rows, len(arms)), np.tile(arms, len(rows)))
        return query.r[rows][:, None] * entries.reshape(len(rows), len(arms))


@dataclass(frozen=True)
class BoundedME(EntryBandit):
    """Median elimination, bounded pulls.

    Parameters
    ----------
    epsilon : float
        How far below the best the answer may be, in units of the spread of an entry of X^T r.
    delta : float
        Chance of a wrong answer that is allowed for.
    """

    epsilon: float = 0.5
    delta: float = 0.1

    def rounds(self, design, query: Query):
        n, d = design.shape
        order = (query.rng or np.random.default_rng(0)).permutation(n)
        arms, sums, used, read = query.allowed(d), np.zeros(d), 0, 0
        epsilon, delta = self.epsilon / 4, self.delta / 2
        while len(arms) > query.k:
            u = log(2 * len(arms) / delta / (len(arms) // 2 + 1)) / (2 * epsilon**2)
            wanted = min(n, ceil(n * u / (n + u)) + 1)  # Serfling: without replacement n pulls are enough
            terms = self.pull(design, query, order[used:wanted], arms)
            sums[arms] += terms.sum(axis=0)
            read += terms.size
            used = max(used, wanted)
            order_of = np.argsort(-query.score.of(sums[arms]), kind="stable")
            arms = np.sort(arms[order_of[: max(query.k, ceil(len(arms) / 2))]])
            yield read / d, arms, sums[arms] * (n / used)
            epsilon, delta = epsilon * 0.75, delta / 2
            if used == n:
                return


@dataclass(frozen=True)
class BanditMIPS(EntryBandit):
    """Successive elimination by intervals, a batch of rows at a time.

    Parameters
    ----------
    delta : float
        Chance of a wrong answer that the intervals allow for.
    batch_size : int
        Rows that all columns that are left are pulled on at a time.
    """

    delta: float = 0.1
    batch_size: int = 32

    def rounds(self, design, query: Query):
        n, d = design.shape
        order = (query.rng or np.random.default_rng(0)).permutation(n)
        arms, sums, squares, read = query.allowed(d), np.zeros(d), np.zeros(d), 0
        for start in range(0, n, self.batch_size):
            terms = self.pull(design, query, order[start : start + self.batch_size], arms)
            sums[arms] += terms.sum(axis=0)
            squares[arms] += (terms**2).sum(axis=0)
            read, used = read + terms.size, min(n, start + self.batch_size)
            spread = np.sqrt(np.maximum(squares[arms] / used - (sums[arms] / used) ** 2, 0))
            rest = (1 - used / n) / used
            doubt = log(4 * d * (start / self.batch_size + 1) ** 2 / self.delta)
            width = n * spread * np.sqrt(2 * max(0.0, doubt) * rest)
            score = query.score.of(sums[arms] * (n / used))
            least = np.sort(score - width)[-query.k]
            arms = arms[score + width >= least]
            yield read / d, arms, sums[arms] * (n / used)
            if len(arms) <= query.k:
                return


def main(path: str = "bandits.png", n: int = 1000, d: int = 400, trials: int = 20) -> None:
    """Draw the share of trials in which the top entry was found against the share of X that was read."""
    from matplotlib.figure import Figure

    settings = {
        "BoundedME": [BoundedME(epsilon=e) for e in (4, 2, 1, 0.5)],
        "BanditMIPS": [BanditMIPS(delta=c) for c in (1000, 300, 10, 0.1)],
        "lucb": [skpursuit.LUCB(budget=b) for b in (0.02, 0.05, 0.1, 0.2)],
        "halving, energy order": [
            skpursuit.SuccessiveHalving(budget=b, exact_fraction=0) for b in (0.02, 0.05, 0.1, 0.2)
        ],
        "halving, draws": [skpursuit.SuccessiveHalving("draws", b, 0) for b in (0.02, 0.05, 0.1, 0.2)],
        "greedy": [skpursuit.Greedy(skpursuit.Budget(b)) for b in (0.02, 0.05, 0.1, 0.2)],
        "importance": [skpursuit.Importance(skpursuit.Budget(b)) for b in (0.02, 0.05, 0.1, 0.2)],
        "exact": [as_selector("exact")],
    }
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.subplots()
    problems = [skpursuit.datasets.make_sparse_signal(n, d, 20, random_state=t)[:2] for t in range(trials)]
    for marker, (name, selectors) in zip("osD^vP*X", settings.items()):
        shares, rates = [], []
        for selector in selectors:
            answers = [
                selector.select(skpursuit.as_design(X), Query(-y, rng=np.random.default_rng(t)))
                for t, (X, y) in enumerate(problems)
            ]
            hits = [a.columns[0] == np.abs(X.T @ y).argmax() for a, (X, y) in zip(answers, problems)]
            shares.append(np.mean([answer.entries_read for answer in answers]) / (n * d))
            rates.append(np.mean(hits))
        print(f"{name:22s}", "  ".join(f"{s:6.1%} read: {r:4.0%}" for s, r in zip(shares, rates)))
        axes.semilogx(shares, rates, marker=marker, label=name)
    axes.set_xlabel("entries read, share of X")
    axes.set_ylabel("top entry found")
    axes.set_title(f"One selection, {n} rows, {d} columns, noise at 3 dB, {trials} problems")
    axes.legend()
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main(*sys.argv[1:])
