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
from skpursuit.fit.growing import QRFactor
from skpursuit.fit.remainders import remainder_norm
from skpursuit.numerics.arrays import Floats, Indices
from skpursuit.numerics.error_bounds import Estimate
from skpursuit.numerics.float_range import EPS
from skpursuit.problem.column_groups import ColumnGroups
from skpursuit.problem.scores import Score


class Contest(ABC):
    """A score of candidates, each of which stands for one or several columns."""

    @abstractmethod
    def intervals(self, estimate: Estimate) -> tuple[Floats, Floats]:
        """Scores of all candidates from an estimate of X^T r, and by how much they may be wrong."""

    @abstractmethod
    def decide(self, design: Design, r: Floats, candidates: Indices) -> Floats:
        """Scores of some candidates from products in a fixed order: those of equal columns are equal."""

    @abstractmethod
    def columns(self, candidates: Indices) -> Indices:
        """The columns that candidates stand for."""

    @abstractmethod
    def without(self, columns: Indices) -> Indices:
        """The candidates of which these columns leave nothing to choose."""

    def of(self, g: Floats) -> Floats:
        """The score of each column, for guesses at what comes next."""
        return self.intervals(Estimate(g, None))[0]

    def error(self, bound: Floats) -> Floats:
        """Refused: a score here does not move as its entry does."""
        raise NotImplementedError("a contest gives intervals")


@dataclass(frozen=True, eq=False)
class Gain(Contest):
    """The root of what a column lowers the loss by: its score by what the support leaves of it."""

    score: Score
    factor: QRFactor
    squares: Floats  # of what the support leaves of each column
    errors: Floats

    def intervals(self, estimate: Estimate) -> tuple[Floats, Floats]:
        g, error = estimate
        with np.errstate(invalid="ignore", divide="ignore"):  # of columns that are not asked about
            tops = self.score.of(g)
            scores = tops / np.sqrt(self.squares)
            most = tops if error is None else tops + self.score.error(error)
            margin = most / np.sqrt(self.squares - self.errors) - scores + 8 * EPS * scores
        absent = ~(self.squares > self.errors)
        scores[absent] = margin[absent] = 0.0
        return scores, margin

    def decide(self, design: Design, r: Floats, candidates: Indices) -> Floats:
        tops, left = self.score.of(design.dots(candidates, r)), np.zeros(len(candidates))
        left[:] = [remainder_norm(self.factor, line) for line in design.columns(candidates)]
        return np.divide(tops, left, out=np.zeros_like(tops), where=left > 0)

    def columns(self, candidates: Indices) -> Indices:
        return candidates

    def without(self, columns: Indices) -> Indices:
        return columns


@dataclass(frozen=True, eq=False)
class GroupContest(Contest):
    """The root of the mean square of the scores in each group, ||X_g^T r|| / sqrt(|g|)."""

    score: Score
    groups: ColumnGroups

    def intervals(self, estimate: Estimate) -> tuple[Floats, Floats]:
        scores = self.groups.scores(self.score.of(estimate.value))
        margin = (self.groups.sizes + 8) * EPS * scores
        if estimate.error is not None:
            margin += self.groups.scores(self.score.error(estimate.error)) * (1 + 2.0**-20)
        return scores, margin

    def decide(self, design: Design, r: Floats, candidates: Indices) -> Floats:
        columns = self.groups.columns(candidates)
        return self.groups.scores(self.score.of(design.dots(columns, r)), columns)

    def columns(self, candidates: Indices) -> Indices:
        return self.groups.columns(candidates)

    def without(self, columns: Indices) -> Indices:
        return self.groups.whole(columns)

    def of(self, g: Floats) -> Floats:
        return super().of(g)[self.groups.labels]


def among(score: Score, groups: ColumnGroups | None) -> Score:
    """A score of columns, or of the groups that they are in."""
    return score if groups is None else GroupContest(score, groups)
