"""Speculate, then verify: the next atoms of a pursuit are guessed together and proven together.

Nearly all of the next atoms of a least-squares pursuit are among the hundred columns that score best now. A
round runs orthogonal matching pursuit on these, decoded, as long as its winners stay clearly above all other
columns; gathers the atoms from X in one sweep; and pursues once more among them exactly. That gives the
residual before every step. One pass over the codes multiplies all these residuals, and the bounds of the
products tell for every step which columns could have won instead of the guess. Those few are computed. The
path is proven up to the first step where one of them wins, whose answer is known too.

The solver knows nothing of this. It asks step by step, and is answered from the path as long as its residual
is that of the path. The two are computed in different ways and differ by rounding. So every proof holds for
all residuals within a small distance of the path's (`VerifiedSteps.reach`), and the distance of the solver's
is measured at each step. Whatever may win at a step goes to `resolve_top_k` with its bounds: close decisions
are made by products in a fixed order, as everywhere. A path is no memory of the state; after a checkpoint it
is made again. Where one byte proves little, as in steps in the noise of tall X, rounds go on with both bytes
of the codes. Where guesses are poor, rounds end after few steps, and the selector goes on in its other way.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from math import sqrt
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from skpursuit.data.codes.coded_matrix import F32_SAFE_NORMS, PathProducts
from skpursuit.data.design import Design
from skpursuit.numerics import tuning
from skpursuit.numerics.arrays import NO_COLUMNS, Floats, Indices
from skpursuit.numerics.error_bounds import Estimate
from skpursuit.numerics.float_range import EPS
from skpursuit.numerics.sums import safe_norm, safe_norms
from skpursuit.problem.scores import Absolute, top_k
from skpursuit.selectors.query import Query, Selection, Workload
from skpursuit.selectors.top_k import resolve_top_k

if TYPE_CHECKING:  # what it imports takes a second to load
    from skpursuit.data.codes.coded_tile import PathState

PROOF_RADIUS = 2.0**-26  # the distance from the path within which it is proven, relative to the residual
PROOF_RADIUS_Y = 2.0**-46  # and relative to y, whose rounding the solver's residual carries


class VerifiedSteps(NamedTuple):
    """Proven answers to the next steps of a pursuit."""

    excluded: frozenset[int]  # columns, before the first step
    atoms: list[int]  # the guessed columns, one a step
    residuals: Floats  # (steps, n), the residual before each step
    reach: Floats  # (steps,), the distance from that residual within which the answer is proven
    contenders: list[Indices]  # for each step the columns that may win, ascending; usually the atom alone
    estimates: list[Estimate]  # their products with the residual, with bounds that hold within that distance

    def step_of(self, query: Query) -> int | None:
        """The step that answers a query: the same residual, and at least the columns excluded that were."""
        # To win against more columns than are allowed is more than is asked for.
        step = len(query.exclude) - len(self.excluded)
        if not 0 <= step < len(self.contenders):
            return None
        away = query.r - self.residuals[step]
        if sqrt(away @ away) > 0.99 * self.reach[step]:
            return None
        excluded = set(query.exclude.tolist())
        return step if excluded.issuperset(self.excluded) and excluded.issuperset(self.atoms[:step]) else None


class Draft(NamedTuple):
    """The atoms of a pursuit, gathered, with the residual before each step and the score of its winner."""

    atoms: Indices
    lines: Floats
    residuals: Floats
    scores: Floats


class RoundEnd(NamedTuple):
    """Where the last round ended: a residual, what gives its product with the codes, and scores."""

    r: Floats
    represented: Callable[[], PathState | None]  # made only where a round goes on from it
    scores: Floats


class SpeculativePursuit:
    """Answers to the steps of a pursuit of one target, made in rounds; its state only makes them cheap.

    Guesses end where a winner scores less than `score_factor` times what the last column of the pool did.
    """

    def __init__(
        self, design: Design, expect: Workload, score_factor: float = tuning.GUESS_STOP_RATIO
    ) -> None:
        assert expect.y is not None
        self.design, self.score_factor = design, score_factor
        self.steps, self.size_of_y = expect.n_queries, safe_norm(expect.y)
        # What a round holds for each guess: its column, its residual, and two decoded columns of the pool.
        self.draft_capacity = min(tuning.MAX_GUESSES, design.limit.columns // (32 * design.shape[0]))
        first = tuning.MAX_GUESSES if expect.n_queries <= 4 * tuning.MAX_GUESSES else tuning.MAX_GUESSES // 4
        self.max_draft = min(self.draft_capacity, first)
        self.poor_rounds = 0
        self.path: VerifiedSteps | None = None
        self.here: RoundEnd | None = None
        self.frames: CodeErrorBounds | None = None

    def answer(self, query: Query) -> Selection | None:
        """The column that wins; None where another way has to find it."""
        path = self.path
        step = None if path is None else path.step_of(query)
        if step is None:
            path = self.path = self._draft_and_verify(query) if self._can_speculate(query) else None
            step = None if path is None else path.step_of(query)
        if path is None or step is None:
            return None
        return resolve_top_k(self.design, query, path.estimates[step], path.contenders[step])

    def draft(self, query: Query) -> Indices:
        """The next atoms, not verified; none where there is no guess."""
        self.here = None  # a guess depends on the query alone
        guess = self._draft(query) if self._can_speculate(query) else None
        return NO_COLUMNS if guess is None else guess.atoms

    def _can_speculate(self, query: Query) -> bool:
        """Whether a round may be made for a query: of a solver that fits by least squares, and if it pays."""
        factor = None if query.state is None else query.state.factor
        if factor is None or factor.shrinkage is not None or query.k > 1 or query.score != Absolute():
            return False
        largest = float(np.abs(query.r).max(initial=0.0))
        in_range = largest == 0.0 or F32_SAFE_NORMS[0] < largest < F32_SAFE_NORMS[1]
        if self.draft_capacity < tuning.MIN_ROUND_STEPS or not in_range:
            return False
        if self.poor_rounds >= tuning.MAX_POOR_ROUNDS and not self._use_fine_codes():
            return False
        if self.frames is None or self.frames.codes.panels is not self.design.codes().panels:
            self.frames, self.here = CodeErrorBounds(self.design), None
        return self.frames.codes.supports_path_products

    def _use_fine_codes(self) -> bool:
        """Go on with both bytes of the codes, where there are two and one was used so far."""
        if self.frames is None or self.frames.fine or not self.design.codes().panels.fine:
            return False
        self.frames, self.here, self.poor_rounds = CodeErrorBounds(self.design, fine=True), None, 0
        return True

    def _draft_and_verify(self, query: Query) -> VerifiedSteps | None:
        """Guess, multiply, verify; the path is None where the first step could not be proven."""
        guess = self._draft(query)
        path = None if guess is None else self._verify(query, guess)
        good, tried = (0, 0) if guess is None or path is None else (len(path.contenders), len(guess.atoms))
        self.poor_rounds = 0 if good >= min(tuning.MIN_ROUND_STEPS, tried) > 0 else self.poor_rounds + 1
        if self.poor_rounds and self._use_fine_codes():
            return self._draft_and_verify(query)
        self.max_draft = min(self.draft_capacity, 2 * max(good, 2) if good < tried else 2 * self.max_draft)
        return path if good else None

    def _draft(self, query: Query) -> Draft | None:
        """The next atoms among the columns that score best, in the order of an exact pursuit among them."""
        assert self.frames is not None
        assert query.state is not None
        r, codes, Q = query.r, self.frames.codes, query.state.factorised.Q.rows
        if self.here is None or safe_norm(r - self.here.r) > 0.5 * safe_norm(r):
            first = codes.path_products(r[None], second_byte=self.frames.fine)
            self.here = RoundEnd(r, partial(first.represented, 0), np.abs(first.g[0]))
        scores = self.here.scores.copy()
        scores[query.exclude] = -np.inf
        left = self.steps - len(query.state.support) if query.n_remaining is None else query.n_remaining
        steps = max(1, min(self.max_draft, left, self.steps))
        pool = top_k(scores, min(tuning.GUESS_POOL, 2 * steps + tuning.GUESS_POOL // 4))
        if len(pool) == 0:
            return None
        single_r, single_Q = r.astype(np.float32), Q.astype(np.float32)
        decoded, least = codes.decoded(pool, self.frames.fine), self.score_factor * float(scores[pool[-1]])
        rough = pursue_subset(decoded, single_Q, single_r, steps, least)
        atoms = pool[rough.order] if len(rough.order) else pool[:1]
        # Where a column costs a pass over X, those that score high are gathered too.
        likely = (lambda count: top_k(scores, count)) if self.design.column_costs_full_pass else None
        lines = self.design.columns(atoms, prefetch_candidates=likely)
        exact = pursue_subset(lines, Q, r, len(atoms))
        atoms = atoms[exact.order]
        lines = np.take(lines, exact.order, axis=0)
        return Draft(atoms, lines, exact.residuals(lines, Q, r), exact.scores) if len(atoms) else None

    def _verify(self, query: Query, guess: Draft) -> VerifiedSteps | None:
        """The path of a guess, up to the first step where another column wins or too many could."""
        assert self.frames is not None
        assert self.here is not None
        frames, steps = self.frames, len(guess.atoms)
        norms = safe_norms(guess.residuals)
        reach = PROOF_RADIUS * norms + PROOF_RADIUS_Y * self.size_of_y
        limits = guess.scores * (1.0 - 2.0**-20) - reach * frames.sizes[guess.atoms]
        followed = frames.codes.path_products(guess.residuals, self.here.represented(), frames.fine)
        first = frames.first_possible_win(followed, reach + frames.rounding * norms, limits)
        first[query.exclude] = first[guess.atoms] = steps
        doubts = np.cumsum(np.bincount(first, minlength=steps + 1)[:steps])
        most = min(tuning.MAX_CONTENDERS, self.design.limit.columns // (16 * self.design.shape[0]))
        steps = int(np.searchsorted(doubts, most, side="right"))
        cols = np.flatnonzero(first < steps)
        narrows = not frames.fine and frames.codes.panels.fine and self.design.column_costs_full_pass
        takes_pass = narrows and not self.design.caches.columns.contains_all(cols)  # over X
        if steps == 0 or takes_pass:
            return None
        residuals, lines = guess.residuals[:steps].T, (guess.lines, self.design.columns(cols, cache=False))
        names, values = np.concatenate([guess.atoms, cols]), np.vstack([some @ residuals for some in lines])
        errors = np.multiply.outer(frames.sizes[names], (reach + frames.rounding * norms)[:steps])
        contenders, estimates = contenders_by_step(names, values, errors, limits)
        last = max(0, len(contenders) - 1)
        scores = np.abs(followed.g[last])
        scores[cols] = np.abs(values[len(guess.atoms) :, last])
        self.here = RoundEnd(guess.residuals[last], partial(followed.represented, last), scores)
        taken = frozenset(query.exclude.tolist())
        return VerifiedSteps(taken, guess.atoms.tolist(), guess.residuals, reach, contenders, estimates)


class CodeErrorBounds:
    """What one byte of the codes, or both, may lose: in float32, rounded up, columns last."""

    def __init__(self, design: Design, fine: bool = False) -> None:
        self.design, self.codes, self.fine = design, design.codes(), fine
        self.rounding = 4 * (design.shape[0] + 8) * EPS  # of a product in float64, in any order

    @cached_property
    def sizes(self) -> Floats:
        """Upper bounds of the column norms."""
        return self.codes.norm_bounds

    @cached_property
    def _factors(self) -> Floats:
        losses = self.codes.block_errors(self.fine), self.codes.column_factors.T, self.sizes
        return float32_upper_bound(np.vstack(losses))

    def first_possible_win(self, followed: PathProducts, reach: Floats, limits: Floats) -> Indices:
        """For each column the first step at which it may score limits[t] within `reach` of the residual."""
        steps, d = followed.g.shape
        amounts = float32_upper_bound(np.column_stack([followed.norms, followed.vector_errors, reach]))
        terms = amounts.shape[1] + 16  # of sums in float32, whose rounding lowers the limits
        lowered = (limits * (1.0 - terms * 2.0**-22)).astype(np.float32)
        most = amounts @ self._factors
        most += np.abs(followed.g)
        able = ~(most < lowered[:, None])  # NaN may be anything
        cols, first = np.flatnonzero(able.any(axis=0)), np.full(d, steps)
        first[cols] = able[:, cols].argmax(axis=0)
        return first


def float32_upper_bound(bounds: Floats) -> Floats:
    """Bounds in float32, rounded up."""
    return np.ascontiguousarray(bounds * (1.0 + 2.0**-22), dtype=np.float32)


def contenders_by_step(
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


class SubsetPursuit(NamedTuple):
    """A pursuit among some columns."""

    order: Indices  # the columns, as they were taken
    triangle: Floats  # their products with its orthonormal directions
    amounts: Floats  # those of the residual with them
    shadow: Floats  # those of the columns with what was there before

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


def pursue_subset(lines: Floats, Q: Floats, r: Floats, steps: int, least: float = 0.0) -> SubsetPursuit:
    """Pursue r among lines, beside what the orthonormal rows of Q span, while winners score `least`."""
    from skpursuit.kernels.gram_steps import omp_on_gram

    shadow, whole = lines @ Q.T, lines @ lines.T
    sizes, c = np.diagonal(whole).astype(np.float64), (lines @ r).astype(np.float64)
    gram = (whole - shadow @ shadow.T).astype(np.float64, copy=False)
    steps = min(steps, len(lines))
    order, rows, amounts = np.empty(steps, np.intp), np.empty((steps, len(lines))), np.empty(steps)
    order = order[: omp_on_gram(gram, c, sizes, least, order, rows, amounts)]
    return SubsetPursuit(order, rows[: len(order), order], amounts[: len(order)], shadow[order])
