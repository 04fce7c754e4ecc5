"""Speculate, then verify: the next atoms of a pursuit are guessed together and proven together.

A pursuit with squared loss that asks for one column at a time would read the codes of X once a step, although
nearly all of its next atoms are among the hundred columns that score best now. So a round guesses them first.
It runs orthogonal matching pursuit on those hundred columns, decoded, as long as its winners stay clearly
above all other columns; gathers the atoms from X in one sweep; and pursues once more among them exactly. That
gives the residual before every step. One pass over the codes multiplies all these residuals, and the bounds
of the products tell for every step which columns could have won instead of the guess. Those few are computed.
The path is proven up to the first step where one of them wins. That step has its answer too, and the next
round begins behind it.

The solver knows nothing of this. It asks step by step, and is answered from the path as long as its residual
is that of the path. The two are computed in different ways and differ by rounding. So every proof holds for
all residuals within a small distance of the path's (`Path.reach`), and the distance of the solver's is
measured at each step. Whatever may win at a step goes to `settle` with its bounds: close decisions are made
by products in a fixed order, as everywhere. A path is no memory of the state; after a checkpoint it is made
again. Where one byte proves little, as in steps in the noise of tall X, rounds go on with both bytes of the
codes. Where guesses are poor, rounds end after few steps, and the selector goes on in its other way.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from math import sqrt
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from skpursuit.data.codes import ORDINARY
from skpursuit.data.design import Design
from skpursuit.data.panel_codes import Followed
from skpursuit.numerics.arrays import NO_COLUMNS, Floats, Indices
from skpursuit.numerics.estimate import EPS, Estimate
from skpursuit.numerics.sums import scaled_norm, scaled_norms
from skpursuit.numerics.tuning import ABOVE, FEW_STEPS, GUESSES, MOST_DOUBTS, PATIENCE, POOL
from skpursuit.problem.score import Absolute, top
from skpursuit.selectors.query import Expect, Query, Selection
from skpursuit.selectors.settle import settle

if TYPE_CHECKING:  # what it imports takes a second to load
    from skpursuit.data.panels import Represented

NEAR = 2.0**-26  # the distance from the path within which it is proven, relative to the residual
NEAR_Y = 2.0**-46  # and relative to y, whose rounding the solver's residual carries


class Path(NamedTuple):
    """Proven answers to the next steps of a pursuit.

    Attributes
    ----------
    taken : the columns that were excluded before the first step
    atoms : the guessed columns, one a step
    residuals : (steps, n), the residual before each step
    reach : (steps,), the distance from that residual within which the answer is proven
    contenders : for each step the columns that may win, ascending; usually the atom alone
    estimates : their products with the residual, with bounds that hold within that distance
    """

    taken: frozenset[int]
    atoms: list[int]
    residuals: Floats
    reach: Floats
    contenders: list[Indices]
    estimates: list[Estimate]

    def step_of(self, query: Query) -> int | None:
        """The step that answers a query: the same residual, and at least the columns excluded that were.

        To win against more columns than are allowed is more than is asked for.
        """
        step = len(query.exclude) - len(self.taken)
        if not 0 <= step < len(self.contenders):
            return None
        away = query.r - self.residuals[step]
        if sqrt(away @ away) > 0.99 * self.reach[step]:
            return None
        excluded = set(query.exclude.tolist())
        return step if excluded.issuperset(self.taken) and excluded.issuperset(self.atoms[:step]) else None


class Guess(NamedTuple):
    """The atoms of a pursuit, gathered, with the residual before each step and the score of its winner."""

    atoms: Indices
    lines: Floats
    residuals: Floats
    scores: Floats


class Here(NamedTuple):
    """Where the last round ended: a residual, what gives its product with the codes, and scores."""

    r: Floats
    represented: Callable[[], Represented | None]  # made only where a round goes on from it
    scores: Floats


class Speculation:
    """Answers to the steps of a pursuit, made in rounds; the only state is what makes them cheap.

    Parameters
    ----------
    design : Design
    expect : Expect
        With `y` of one target.
    above : float
        Guesses end where a winner scores less than this times the last column of the pool did.
    """

    def __init__(self, design: Design, expect: Expect, above: float = ABOVE) -> None:
        assert expect.y is not None
        self.design, self.above = design, above
        self.steps, self.size_of_y = expect.steps, scaled_norm(expect.y)
        # What a round holds for each guess: its column, its residual, and two decoded columns of the pool.
        self.room = min(GUESSES, design.store.limit.columns // (32 * design.shape[0]))
        self.most = self.room if expect.steps <= 4 * GUESSES else min(self.room, GUESSES // 4)
        self.poor = 0
        self.path: Path | None = None
        self.here: Here | None = None
        self.frames: Frames | None = None

    def answer(self, query: Query) -> Selection | None:
        """The column that wins; None where another way has to find it."""
        path = self.path
        step = None if path is None else path.step_of(query)
        if step is None:
            path = self.path = self._round(query) if self._serves(query) else None
            step = None if path is None else path.step_of(query)
        if path is None or step is None:
            return None
        return settle(self.design, query, path.estimates[step], path.contenders[step])

    def guess(self, query: Query) -> Indices:
        """The next atoms, not verified; none where there is no guess."""
        self.here = None  # a guess depends on the query alone
        guess = self._guess(query) if self._serves(query) else None
        return NO_COLUMNS if guess is None else guess.atoms

    def _serves(self, query: Query) -> bool:
        """Whether a round may be made for a query: of a solver that fits by least squares, and if it pays."""
        factor = None if query.at is None else query.at.factor
        if factor is None or factor.shrinkage is not None or query.k > 1 or query.score != Absolute():
            return False
        largest = float(np.abs(query.r).max(initial=0.0))
        if self.room < FEW_STEPS or not (largest == 0.0 or ORDINARY[0] < largest < ORDINARY[1]):
            return False
        if self.poor >= PATIENCE and not self._refined():
            return False
        if self.frames is None or self.frames.codes.panels is not self.design.store.kept.codes:
            self.frames, self.here = Frames(self.design), None
        return self.frames.codes.can_follow

    def _refined(self) -> bool:
        """Go on with both bytes of the codes, where there are two and one was used so far."""
        if self.frames is None or self.frames.fine or not self.design.codes().has_fine:
            return False
        self.frames, self.here, self.poor = Frames(self.design, fine=True), None, 0
        return True

    def _round(self, query: Query) -> Path | None:
        """Guess, multiply, verify; the path is None where the first step could not be proven."""
        guess = self._guess(query)
        path = None if guess is None else self._verified(query, guess)
        good, tried = (0, 0) if guess is None or path is None else (len(path.contenders), len(guess.atoms))
        self.poor = 0 if good >= min(FEW_STEPS, tried) > 0 else self.poor + 1
        if self.poor and self._refined():
            return self._round(query)
        self.most = min(self.room, 2 * max(good, 2) if good < tried else 2 * self.most)
        return path if good else None

    def _guess(self, query: Query) -> Guess | None:
        """The next atoms among the columns that score best, in the order of an exact pursuit among them."""
        assert self.frames is not None
        assert query.at is not None
        assert query.at.factor is not None
        r, codes, Q = query.r, self.frames.codes, query.at.factor.Q.rows
        if self.here is None or scaled_norm(r - self.here.r) > 0.5 * scaled_norm(r):
            first = codes.following(r[None], fine=self.frames.fine)()
            self.here = Here(r, partial(first.represented, 0), np.abs(first.g[0]))
        scores = self.here.scores.copy()
        scores[query.exclude] = -np.inf
        left = self.steps - len(query.at.support) if query.left is None else query.left
        steps = max(1, min(self.most, left, self.steps))
        pool = top(scores, min(POOL, 2 * steps + POOL // 4))
        if len(pool) == 0:
            return None
        single_r, single_Q = r.astype(np.float32), Q.astype(np.float32)
        decoded, least = codes.decoded(pool, self.frames.fine), self.above * float(scores[pool[-1]])
        rough = pursued(decoded, single_Q, single_r, steps, least)
        atoms = pool[rough.order] if len(rough.order) else pool[:1]
        # Where a column costs a pass over X, those that score high are gathered too.
        likely = (lambda count: top(scores, count)) if self.design.columns_are_dear else None
        lines = self.design.columns(atoms, likely=likely)
        exact = pursued(lines, Q, r, len(atoms))
        atoms = atoms[exact.order]
        lines = np.take(lines, exact.order, axis=0)
        return Guess(atoms, lines, exact.residuals(lines, Q, r), exact.scores) if len(atoms) else None

    def _verified(self, query: Query, guess: Guess) -> Path | None:
        """The path of a guess, up to the first step where another column wins or too many could."""
        assert self.frames is not None
        assert self.here is not None
        frames, steps = self.frames, len(guess.atoms)
        norms = scaled_norms(guess.residuals)
        reach = NEAR * norms + NEAR_Y * self.size_of_y
        limits = guess.scores * (1.0 - 2.0**-20) - reach * frames.sizes[guess.atoms]
        followed = frames.codes.following(guess.residuals, self.here.represented(), frames.fine)()
        first = frames.overlooked(followed, reach + frames.rounding * norms, limits)
        first[query.exclude] = first[guess.atoms] = steps
        doubts = np.cumsum(np.bincount(first, minlength=steps + 1)[:steps])
        most = min(MOST_DOUBTS, self.design.store.limit.columns // (16 * self.design.shape[0]))
        steps = int(np.searchsorted(doubts, most, side="right"))
        cols = np.flatnonzero(first < steps)
        narrows = not frames.fine and frames.codes.has_fine and self.design.columns_are_dear
        if steps == 0 or (narrows and not self.design.kept.columns.holds(cols)):  # that takes a pass over X
            return None
        residuals, lines = guess.residuals[:steps].T, (guess.lines, self.design.columns(cols, keep=False))
        names, values = np.concatenate([guess.atoms, cols]), np.vstack([some @ residuals for some in lines])
        errors = np.multiply.outer(frames.sizes[names], (reach + frames.rounding * norms)[:steps])
        contenders, estimates = decided(names, values, errors, limits)
        last = max(0, len(contenders) - 1)
        scores = np.abs(followed.g[last])
        scores[cols] = np.abs(values[len(guess.atoms) :, last])
        self.here = Here(guess.residuals[last], partial(followed.represented, last), scores)
        taken = frozenset(query.exclude.tolist())
        return Path(taken, guess.atoms.tolist(), guess.residuals, reach, contenders, estimates)


class Frames:
    """What one byte of the codes, or both, may lose: in float32, rounded up, columns last."""

    def __init__(self, design: Design, fine: bool = False) -> None:
        self.design, self.codes, self.fine = design, design.codes(), fine
        self.rounding = 4 * (design.shape[0] + 8) * EPS  # of a product in float64, in any order

    @cached_property
    def sizes(self) -> Floats:
        """Upper bounds of the column norms."""
        return self.codes.sizes

    @cached_property
    def _factors(self) -> Floats:
        return single(np.vstack([self.codes.block_errors(self.fine), self.codes.factors.T, self.sizes]))

    def overlooked(self, followed: Followed, reach: Floats, limits: Floats) -> Indices:
        """For each column the first step at which it may score limits[t] within `reach` of the residual."""
        steps, d = followed.g.shape
        amounts = single(np.column_stack([followed.norms, followed.loss, reach]))
        terms = amounts.shape[1] + 16  # of sums in float32, whose rounding lowers the limits
        lowered = (limits * (1.0 - terms * 2.0**-22)).astype(np.float32)
        most = amounts @ self._factors
        most += np.abs(followed.g)
        able = ~(most < lowered[:, None])  # NaN may be anything
        cols, first = np.flatnonzero(able.any(axis=0)), np.full(d, steps)
        first[cols] = able[:, cols].argmax(axis=0)
        return first


def single(bounds: Floats) -> Floats:
    """Bounds in float32, rounded up."""
    return np.ascontiguousarray(bounds * (1.0 + 2.0**-22), dtype=np.float32)


def decided(
    names: Indices, values: Floats, errors: Floats, limits: Floats
) -> tuple[list[Indices], list[Estimate]]:
    """For each step the columns that may win, with their products.

    The t-th of `names` is the atom of step t and no longer allowed afterwards. Columns that are not named
    score less than limits[t], so something must be certain to reach it. Ends behind a step whose atom loses.
    """
    contenders, estimates = [], []
    scores = np.abs(values)
    upper, lower = scores + errors, scores - errors
    for t in range(values.shape[1]):
        best = lower[t:, t].max()
        if not best >= limits[t]:
            break
        near = t + np.flatnonzero(upper[t:, t] >= best)
        near = near[np.argsort(names[near])]
        contenders.append(names[near])
        estimates.append(Estimate(values[near, t], errors[near, t]))
        if t not in near:
            break
    return contenders, estimates


class Pursued(NamedTuple):
    """A pursuit among some columns.

    Attributes
    ----------
    order : the columns, as they were taken
    triangle : their products with its orthonormal directions
    amounts : those of the residual with them
    shadow : those of the columns with what was there before
    """

    order: Indices
    triangle: Floats
    amounts: Floats
    shadow: Floats

    @property
    def scores(self) -> Floats:
        """|x_j . r| of the winner of each step."""
        return np.abs(self.amounts) * np.diagonal(self.triangle)

    def residuals(self, lines: Floats, Q: Floats, r: Floats) -> Floats:
        """The residual before each step, from the columns in their order."""
        from scipy.linalg import solve_triangular

        steps = len(self.order)
        directions = solve_triangular(self.triangle, np.eye(steps), trans=1, check_finite=False)
        weights = np.zeros((steps, steps))
        np.cumsum(self.amounts[:-1, None] * directions[:-1], axis=0, out=weights[1:])
        out = weights @ lines
        if len(Q):
            out -= weights @ self.shadow @ Q
        return np.subtract(r, out, out=out)


def pursued(lines: Floats, Q: Floats, r: Floats, steps: int, least: float = 0.0) -> Pursued:
    """Pursue r among lines, beside what the orthonormal rows of Q span, while winners score `least`."""
    from skpursuit.kernels.pursue import pursue

    shadow, whole = lines @ Q.T, lines @ lines.T
    sizes, c = np.diagonal(whole).astype(np.float64), (lines @ r).astype(np.float64)
    gram = (whole - shadow @ shadow.T).astype(np.float64, copy=False)
    steps = min(steps, len(lines))
    order, rows, amounts = np.empty(steps, np.intp), np.empty((steps, len(lines))), np.empty(steps)
    order = order[: pursue(gram, c, sizes, least, order, rows, amounts)]
    return Pursued(order, rows[: len(order), order], amounts[: len(order)], shadow[order])
