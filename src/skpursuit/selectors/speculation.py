"""Speculate, then verify: the next atoms of a pursuit are guessed together and proven together.

A pursuit by squared loss that asks for one column at a time reads the codes of X once a step, although
nearly all of its next atoms are among the hundred columns that score best now. So a round guesses them first.
It runs orthogonal matching pursuit on those hundred alone, whose products with each other are cheap; gathers
the atoms it found from X, all in one sweep; and repeats the pursuit among them exactly. That gives the
residual before every step. All these residuals are multiplied with the codes of X in one pass, and one kernel
(`kernels/pursue.py`) says for every step which columns could have won instead of the guess. Those few are
computed too. The path is proven up to the first step where one of them wins; that step has its answer as
well, and the next round begins behind it.

The solver knows nothing of this. It asks step by step, and an answer comes from the path as long as the
residual is that of the path. The two are computed in different ways and differ by rounding: every proof holds
for all residuals within a small distance of the path's (`Path.reach`), and the distance of the solver's is
measured at each step. What may win at a step goes to `settle` with its bounds, so that close decisions are
made by products in a fixed order, as everywhere. Nothing is remembered in the state: after a checkpoint the
path is made again. Where guesses are poor, rounds end after few steps and the selector's other way goes on.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skpursuit.data.design import Design
from skpursuit.numerics.arrays import Floats, Indices
from skpursuit.numerics.estimate import Estimate, EPS
from skpursuit.numerics.finite import are_ordinary
from skpursuit.numerics.sums import scaled_norm, scaled_norms
from skpursuit.numerics.threads import over_ranges
from skpursuit.problem.score import Absolute, top
from skpursuit.problem.state import State
from skpursuit.selectors.base import Query, Selection, settle
from skpursuit.selectors.following import FollowingCodes

ORDINARY = 1e-15, 1e15  # norms of residuals that codes can follow
NEAR = 2.0**-26  # distance from the path up to which it is proven, relative to the residual
NEAR_Y = 2.0**-46  # and relative to y, whose rounding the solver's residuals carry
ABOVE = 1.1  # guesses are made while they score so many times as high as the columns left out
WIDTH = 96  # columns among which guesses are made
MOST_GUESSES = 64  # in one round
MOST_DOUBTS = 160  # columns of one round that are computed exactly because they could have won
PATIENCE = 2  # rounds of few steps after which no more are made
FEW_STEPS = 3


class Path(NamedTuple):
    """Answers to the next steps of a pursuit.

    Attributes
    ----------
    taken : the columns that were excluded before the first step
    atoms : those chosen, step by step
    residuals : (steps, n), the residual before each step
    reach : (steps,), the distance from it within which the answer is proven
    contenders : for each step the columns that may win, ascending, all others being ruled out
    estimates : their products with the residual, with bounds that hold within that distance
    """

    taken: frozenset[int]
    atoms: list[int]
    residuals: Floats
    reach: Floats
    contenders: list[Indices]
    estimates: list[Estimate]

    def at(self, query: Query) -> int | None:
        """The step that the query is at, if the path answers it."""
        step = len(query.exclude) - len(self.taken)
        if not 0 <= step < len(self.contenders):
            return None
        if scaled_norm(query.r - self.residuals[step]) > 0.99 * self.reach[step]:
            return None
        excluded = set(query.exclude.tolist())
        follows = excluded.issuperset(self.taken) and excluded.issuperset(self.atoms[:step])
        return step if follows else None


class Guess(NamedTuple):
    """Columns in the order a pursuit would take them, gathered, and the residual before each step."""

    atoms: Indices
    lines: Floats
    residuals: Floats
    scores: Floats


class Speculation:
    """Answers of a pursuit, made in rounds.

    Parameters
    ----------
    design : Design
    y : ndarray of shape (n,)
    """

    def __init__(self, design: Design, y: Floats) -> None:
        self.design = design
        self.size = scaled_norm(y)
        self.codes: FollowingCodes | None = None
        self.usable = are_ordinary(y[None], *ORDINARY)
        self.path: Path | None = None
        self.known: tuple | None = None  # what is represented, scores
        self.most = MOST_GUESSES
        self.poor = 0

    def answer(self, query: Query) -> Selection | None:
        """The column that wins, proven; None where another way has to find it."""
        step = None if self.path is None else self.path.at(query)
        if step is None:
            if not self._suits(query):
                return None
            self.path = self._proven(query)
            step = None if self.path is None else self.path.at(query)
        if step is None or self.path is None:
            return None
        cols, estimate = self.path.contenders[step], self.path.estimates[step]
        return settle(self.design, query, estimate, cols)

    def _suits(self, query: Query) -> bool:
        """Whether a round may be made for a query."""
        at = query.at
        if at is None or at.factor is None or query.k > 1 or query.score != Absolute() or query.left == 0:
            return False
        if not self.usable or self.poor >= PATIENCE or not are_ordinary(query.r[None], *ORDINARY):
            return False
        if self.codes is None:
            self.codes = FollowingCodes(self.design)
            self.usable = self.codes.can_follow
            if self.usable:
                self._frames()
        return self.usable

    def _frames(self) -> None:
        """What the codes lose, for the kernel: rounded up to float32, columns last."""
        self.errors = single(self.codes.block_errors)
        self.wide = single(self.codes.block_errors.sum(axis=0))
        self.sizes = self.codes.sizes
        self.factors = single(np.vstack([self.codes.factors.T, self.sizes]))

    # -- a round --------------------------------------------------------------------------------------------

    def _proven(self, query: Query) -> Path | None:
        """A path from the residual of a query on, as far as it could be proven."""
        guess = self._guess(query)
        if guess is None or len(guess.atoms) == 0:
            self.poor += 1
            return None
        steps = len(guess.atoms)
        norms = scaled_norms(guess.residuals)
        reach = NEAR * norms + NEAR_Y * self.size
        followed = self.codes.following(guess.residuals, self.known[0])()
        limits = guess.scores * (1.0 - 2.0**-20) - reach * self.sizes[guess.atoms]
        first = self._overlooked(guess, followed, reach, limits)
        first[query.exclude] = steps
        first[guess.atoms] = steps
        count = np.cumsum(np.bincount(first, minlength=steps + 1)[:steps])
        doubted = int(np.searchsorted(count, MOST_DOUBTS, side="right"))
        steps = max(1, min(steps, doubted))
        if count[0] > 4 * MOST_DOUBTS:
            self.poor += 1
            return None
        cols = np.flatnonzero(first < steps)
        lines = self.design.columns(cols, keep=False) if len(cols) else guess.lines[:0]
        path, values = self._decided(query, guess, cols, lines, reach, norms, limits, steps)
        made = len(path.contenders)
        last = max(0, made - 1)
        scores = np.abs(followed.g[last].astype(np.float64))
        scores[cols] = np.abs(values[len(guess.atoms) :, last])
        self.known = followed.represented(last), guess.residuals[last], scores
        self.poor = self.poor + 1 if made < min(FEW_STEPS, len(guess.atoms)) else 0
        self.most = min(MOST_GUESSES, max(4, 2 * made)) if made < len(guess.atoms) else min(MOST_GUESSES, 2 * self.most)
        return path if made else None

    def _guess(self, query: Query) -> Guess | None:
        """Guess the next atoms, gather them, and pursue among them exactly."""
        from skpursuit.kernels.pursue import pursue

        r = query.r
        if self.known is None or scaled_norm(r - self.known[1]) > 0.5 * scaled_norm(r):
            followed = self.codes.following(r[None])()
            self.known = followed.represented(0), r, np.abs(followed.g[0].astype(np.float64))
        scores = self.known[2]
        scores[query.exclude] = -np.inf
        steps = min(self.most, query.left or self.most)
        pool = top(scores, max(48, min(WIDTH, 2 * steps + 16)))
        if len(pool) == 0:
            return None
        decoded = self.codes.decoded(pool)
        Q = query.at.factor.Q.rows
        gram, c, sizes = products_off(decoded, Q.astype(np.float32), r.astype(np.float32))
        order, rows, amounts = np.empty(min(steps, len(pool)), np.intp), np.empty((steps, len(pool))), np.empty(steps)
        least = ABOVE * float(scores[pool[-1]]) if len(pool) < self.design.shape[1] else 0.0
        count = pursue(gram, c, sizes, least, order, rows, amounts)
        atoms = pool[order[: max(1, count)]] if count else pool[:1]
        lines = self.design.columns(atoms)
        gram, c, sizes = products_off(lines, Q, r)
        steps = len(atoms)
        order, rows, amounts = np.empty(steps, np.intp), np.empty((steps, steps)), np.empty(steps)
        scores = np.empty(steps)
        steps = pursue(gram, c, sizes, 0.0, order, rows, amounts)
        order, amounts = order[:steps], amounts[:steps]
        atoms, lines = atoms[order], lines[order]
        scores = np.abs(amounts) * np.diagonal(rows[:steps, order])
        return Guess(atoms, lines, residuals(lines, Q, r, rows[:steps, order], amounts), scores)

    def _overlooked(self, guess, followed, reach, limits):
        from skpursuit.kernels.pursue import overlooked

        steps, d = followed.g.shape
        rounding = 4 * (len(guess.residuals[0]) + 8) * EPS
        norms = self.codes.block_norms(guess.residuals)
        sizes = scaled_norms(guess.residuals)
        loss = np.column_stack([followed.loss, reach + rounding * sizes])
        terms = norms.shape[1] + loss.shape[1] + 16
        limits = (limits * (1.0 - terms * 2.0**-22)).astype(np.float32)
        first = np.full(d, steps, np.int64)
        args = (followed.g, single(norms), self.errors, self.wide, single(loss), self.factors, limits, first)
        over_ranges(overlooked, d, 256, 2 * steps * d, args)
        return first

    def _decided(self, query, guess, cols, lines, reach, norms, limits, steps):
        """The path: at each step the columns that may win."""
        names = np.concatenate([guess.atoms, cols])
        values = np.concatenate([guess.lines, lines]) @ guess.residuals[:steps].T
        rounding = 4 * (len(query.r) + 8) * EPS
        errors = np.multiply.outer(self.sizes[names], reach[:steps] + rounding * norms[:steps])
        scores = np.abs(values)
        contenders, estimates = [], []
        for t in range(steps):
            upper, lower = scores[t:, t] + errors[t:, t], scores[t:, t] - errors[t:, t]
            best = lower.max()
            if not best >= limits[t]:
                break
            near = t + np.flatnonzero(upper >= best)
            near = near[np.argsort(names[near])]
            contenders.append(names[near])
            estimates.append(Estimate(values[near, t], errors[near, t]))
            if t not in near:
                break
        made = len(contenders)
        return Path(frozenset(query.exclude.tolist()), guess.atoms.tolist(), guess.residuals, reach, contenders, estimates), values


def single(values: Floats) -> Floats:
    """Bounds in float32, rounded up."""
    return np.ascontiguousarray(values * (1.0 + 2.0**-22), dtype=np.float32)


def products_off(lines: Floats, Q: Floats, r: Floats) -> tuple[Floats, Floats, Floats]:
    """Products of lines with each other and with r beside what the orthonormal rows of Q span, and squares."""
    gram, shadow = lines @ lines.T, lines @ Q.T
    sizes = np.diagonal(gram).astype(np.float64)
    return (gram - shadow @ shadow.T).astype(np.float64), (lines @ r).astype(np.float64), sizes


def residuals(lines: Floats, Q: Floats, r: Floats, rows: Floats, amounts: Floats) -> Floats:
    """The residual before each step of a pursuit; `rows` is its upper triangle."""
    from scipy.linalg import solve_triangular

    steps = len(amounts)
    inverse = solve_triangular(rows, np.eye(steps), trans=1, lower=False, check_finite=False)
    weights = np.zeros((steps, steps))
    weights[1:] = np.cumsum(inverse * amounts[:, None], axis=0)[:-1]
    return r - (weights @ lines - (weights @ (lines @ Q.T)) @ Q)
