"""Contests: rules of what is largest that look at more than one entry of X^T r.

A plain score is a function of one entry of X^T r. In a contest the entries of a group compete together, or an
entry is compared with what the support leaves of its column. The way from an estimate to a decision is the
same for all of them (`resolve_top_k`): intervals of scores, and exact scores for what these leave in doubt.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from skpursuit.data.design import Design
from skpursuit.fit.growing import QRFactor, remainder_norm
from skpursuit.numerics.arrays import Floats, Indices
from skpursuit.numerics.error_bounds import Estimate
from skpursuit.numerics.float_range import EPS
from skpursuit.problem.column_groups import ColumnGroups
from skpursuit.problem.scores import Score, top_k
from skpursuit.selectors.query import Query


class Contest(ABC):
    """A score of candidates, each of which stands for one or several columns."""

    @abstractmethod
    def intervals(self, estimate: Estimate, candidates: Indices | None = None) -> tuple[Floats, Floats]:
        """Scores of candidates from an estimate of X^T r, and by how much they may be wrong.

        Of all; or of some, ascending, with an estimate of the entries at their `columns`.
        """

    @abstractmethod
    def decide(self, design: Design, r: Floats, candidates: Indices) -> Floats:
        """Scores of some candidates from products in a fixed order: those of equal columns are equal."""

    @abstractmethod
    def columns(self, candidates: Indices) -> Indices:
        """The columns that candidates stand for."""

    @abstractmethod
    def without(self, columns: Indices) -> Indices:
        """The candidates of which these columns leave nothing to choose."""

    def count(self, d: int) -> int:
        """The number of candidates among d columns."""
        return d

    def allowed(self, query: Query, d: int) -> Indices:
        """The candidates among d columns that a query lets be chosen, ascending."""
        mask = np.ones(self.count(d), dtype=bool)
        mask[self.without(query.exclude)] = False
        return np.flatnonzero(mask)

    def scores(self, g: Floats, candidates: Indices | None = None) -> Floats:
        """Scores of candidates by entries of X^T r, as in `intervals`."""
        return self.intervals(Estimate(g, None), candidates)[0]

    def best(self, g: Floats, query: Query) -> Indices:
        """The columns of the candidates that a query asks for, by entries of X^T r."""
        scores = self.scores(g)
        scores[self.without(query.exclude)] = -np.inf
        return self.columns(top_k(scores, query.k))

    def of(self, g: Floats) -> Floats:
        """The score of each column, for guesses at what comes next."""
        return self.scores(g)

    def error(self, bound: Floats) -> Floats:
        """Refused: a score here does not move as its entry does."""
        raise NotImplementedError("a contest gives intervals")


@dataclass(frozen=True, eq=False)
class SingleColumns(Contest):
    """A plain score as a contest, in which every column is a candidate."""

    score: Score

    def intervals(self, estimate: Estimate, candidates: Indices | None = None) -> tuple[Floats, Floats]:
        scores, error = self.score.of(estimate.value), estimate.error
        return scores, np.zeros_like(scores) if error is None else self.score.error(error)

    def decide(self, design: Design, r: Floats, candidates: Indices) -> Floats:
        return self.score.of(design.dots(candidates, r))

    def columns(self, candidates: Indices) -> Indices:
        return candidates

    def without(self, columns: Indices) -> Indices:
        return columns


@dataclass(frozen=True, eq=False)
class Gain(SingleColumns):
    """The root of what a column lowers the loss by: its score by what the support leaves of it."""

    factor: QRFactor
    squares: Floats  # of what the support leaves of each column
    errors: Floats

    def intervals(self, estimate: Estimate, candidates: Indices | None = None) -> tuple[Floats, Floats]:
        (g, error), at = estimate, slice(None) if candidates is None else candidates
        squares, errors = self.squares[at], self.errors[at]
        with np.errstate(invalid="ignore", divide="ignore"):  # of columns that are not asked about
            tops = self.score.of(g)
            scores = tops / np.sqrt(squares)
            most = tops if error is None else tops + self.score.error(error)
            margin = most / np.sqrt(squares - errors) - scores + 8 * EPS * scores
        absent = ~(squares > errors)
        scores[absent] = margin[absent] = 0.0
        return scores, margin

    def decide(self, design: Design, r: Floats, candidates: Indices) -> Floats:
        tops, left = super().decide(design, r, candidates), np.zeros(len(candidates))
        left[:] = [remainder_norm(self.factor, line) for line in design.columns(candidates)]
        return np.divide(tops, left, out=np.zeros_like(tops), where=left > 0)


@dataclass(frozen=True, eq=False)
class GroupContest(Contest):
    """The root of the mean square of the scores in each group, ||X_g^T r|| / sqrt(|g|)."""

    score: Score
    groups: ColumnGroups

    def intervals(self, estimate: Estimate, candidates: Indices | None = None) -> tuple[Floats, Floats]:
        columns = None if candidates is None else self.columns(candidates)
        scores = self.groups.scores(self.score.of(estimate.value), columns)
        margin = (self.groups.sizes[slice(None) if candidates is None else candidates] + 8) * EPS * scores
        if estimate.error is not None:
            margin += self.groups.scores(self.score.error(estimate.error), columns) * (1 + 2.0**-20)
        return scores, margin

    def decide(self, design: Design, r: Floats, candidates: Indices) -> Floats:
        columns = self.groups.columns(candidates)
        return self.groups.scores(self.score.of(design.dots(columns, r)), columns)

    def columns(self, candidates: Indices) -> Indices:
        return self.groups.columns(candidates)

    def without(self, columns: Indices) -> Indices:
        return self.groups.whole(columns)

    def count(self, d: int) -> int:
        return len(self.groups)

    def of(self, g: Floats) -> Floats:
        return super().of(g)[self.groups.labels]


def among(score: Score, groups: ColumnGroups | None) -> Score:
    """A score of columns, or of the groups that they are in."""
    return score if groups is None else GroupContest(score, groups)


def contest_of(score: Score) -> Contest:
    """A score as a contest."""
    return score if isinstance(score, Contest) else SingleColumns(score)
