"""The question every selector answers, its answer, and how an answer with known error becomes exact."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import isfinite, isnan
from typing import Any, NamedTuple

import numpy as np

from skpursuit.data.base import Design, Floats, Indices
from skpursuit.numerics.finite import NotFinite, kth_largest
from skpursuit.problem.score import Absolute, Score, top

NO_COLUMNS: Indices = np.empty(0, dtype=np.intp)
FEW = 32  # columns that are computed exactly without looking at their second byte, if there is one
LIKELY = 24  # columns that score so high that their turn may come soon
MANY = 512  # columns left from which a second byte is made, if there is none
SAFE_EXPONENT = 1000  # sums up to two to this power have room below the end of the float range
MOST = float(np.finfo(np.float64).max)
LEAST_ENTRY, MOST_ENTRY = 1e-280, 1e280  # entries of X^T r in between were summed within the range of floats
LEAST_SIZE, MOST_SIZE = 1e-20, 1e20  # residuals in between are not the reason when they were not


class Shortlist(NamedTuple):
    """Columns, ascending, that looked best in a rough look at all entries of X^T r, and this r.

    `least` is the score of the worst of them in that look, `scores` are those of a closer one.
    """

    cols: Indices
    r: Floats
    least: float
    scores: Floats


@dataclass(frozen=True)
class Query:
    """The question: which k entries of X^T r score highest.

    Parameters
    ----------
    r : ndarray of shape (n,) or (n, m)
    k : int
    score : Score
    exclude : ndarray of int
        Columns that may not be chosen.
    rng : numpy.random.Generator, optional
    eps : float, optional
        The error a Frank-Wolfe step can bear, for `ErrorBound("auto")`.
    known : callable, optional
        Gives (g, error): the gradient by a cheaper way than reading X, where the solver has one.
    coded : callable, optional
        As known, from products of the codes of X; it may have nothing to say.
    ordered : bool
        Whether the answer must be best first. Without it only the set is made sure of, which is cheaper.
    shortlist : Shortlist, optional
        That of the answer before, for selectors that make one.
    """

    r: Floats
    k: int = 1
    score: Score = field(default_factory=Absolute)
    exclude: Indices = field(default_factory=lambda: NO_COLUMNS)
    rng: np.random.Generator | None = None
    eps: float | None = None
    known: Callable[[], tuple[Floats, Floats]] | None = None
    coded: Callable[[], tuple[Floats, Floats] | None] | None = None
    ordered: bool = True
    shortlist: Shortlist | None = None

    def scores(self, g: Floats) -> Floats:
        """Scores of all columns, -inf where excluded."""
        scores = self.score.of(g)
        scores[self.exclude] = -np.inf
        return scores

    def allowed(self, d: int) -> Indices:
        """The columns that may be chosen, ascending."""
        mask = np.ones(d, dtype=bool)
        mask[self.exclude] = False
        return np.flatnonzero(mask)


@dataclass(frozen=True)
class Selection:
    """An answer: the columns, best first, what was read to find them, and what the answer is worth.

    `certificate` is "exact", "delta" (right with probability 1 - delta), "heuristic", or "none" for an answer
    without columns; `recomputed` counts the columns whose entries were computed again because estimates could
    not tell them apart. `estimates` are the entries of X^T r, the largest float in place of those beyond it.
    `shortlist` may serve the next query.
    """

    indices: Indices
    estimates: Floats
    certificate: str
    entries_read: int = 0
    bytes_read: int = 0
    recomputed: int = 0
    shortlist: Shortlist | None = None


class Selector(ABC):
    """A way to find the top entries of X^T r. Subclasses are frozen dataclasses that give `find`."""

    def select(self, design: Design, query: Query) -> Selection:
        """Answer a single query, on an X that is what it was when the design was made.

        Raises `NotFinite` where there is no answer because r or the column norms are not finite.
        """
        design.check_unchanged()
        return self.answer(design, query)

    def answer(self, design: Design, query: Query) -> Selection:
        """Answer one query of a run and say what was read."""
        entries, nbytes = design.reads.entries, design.reads.bytes
        with np.errstate(over="ignore", invalid="ignore"):  # bounds become infinite, which settles nothing
            found = self._finite_answer(design, query)
        return replace(
            found,
            certificate=found.certificate if len(found.indices) else "none",
            entries_read=design.reads.entries - entries,
            bytes_read=design.reads.bytes - nbytes,
        )

    def _finite_answer(self, design: Design, query: Query) -> Selection:
        """What `find` gives, or the exact answer where numbers left the float range on the way to it."""
        try:
            answer = self.find(design, query)
            if in_float_range(answer, query.r):
                return answer
        except NotFinite:
            pass
        return scaled_answer(design, query)

    @abstractmethod
    def find(self, design: Design, query: Query) -> Selection:
        """Find the top entries; reading is counted by the design.

        Scores that are NaN may raise `NotFinite`; an answer that is not finite is not used.
        """

    def resolve(self, problem: Any, solver: Any) -> Selector:
        """The selector that really runs: `Auto` picks one, the others are themselves."""
        return self

    def identity(self) -> str:
        """What a checkpoint compares: the parameters the caller gave."""
        return repr(self)

    def describe(self) -> str:
        """One line for `Result.selector`."""
        return repr(self)

    def prepare(self, design: Design) -> None:
        """Make what is kept on the design for all queries (twins, layouts, norms)."""
        return

    def memory(self, design: Design) -> int:
        """Bytes kept beside X."""
        return 0

    def wants_known(self, design: Design) -> bool:
        """Whether the solver should keep the gradient known by Gram columns."""
        return False


def in_float_range(answer: Selection, r: Floats) -> bool:
    """Whether no sum on the way to an answer can have left the float range, up or down."""
    if answer.estimates.size == 1 and LEAST_ENTRY < abs(float(answer.estimates.flat[0])) < MOST_ENTRY:
        return True  # nearly always
    if not isfinite(answer.estimates.sum()):
        return False
    best = float(np.abs(answer.estimates[:1]).max(initial=0.0))
    if answer.certificate != "exact" or LEAST_ENTRY < best < MOST_ENTRY:
        return True
    largest = float(np.abs(r).max(initial=0.0))
    return largest == 0.0 or LEAST_SIZE < largest < MOST_SIZE


def scaled_answer(design: Design, query: Query) -> Selection:
    """The exact answer from r times a power of two: below one, and smaller where X^T r would overflow."""
    from skpursuit.selectors.exact import Exact

    largest, widest = float(np.abs(query.r).max()), float(design.column_sizes().max())
    if not isfinite(largest) or not isfinite(widest):
        raise NotFinite("X^T r has no largest entry: r, or the norm of a column, is not finite")
    exponent, growth = np.frexp([largest, widest])[1].tolist()
    shift = exponent + max(0, growth + len(query.r).bit_length() - SAFE_EXPONENT)
    scaled = replace(query, r=np.ldexp(query.r, -shift), known=None, coded=None)
    answer = Exact().find(design, scaled)
    return replace(answer, estimates=np.clip(np.ldexp(answer.estimates, shift), -MOST, MOST))


def rank(
    design: Design, query: Query, g: Floats, error: Floats | None, cols: Indices | None = None
) -> Selection:
    """The exact top k from a gradient with entrywise error bounds, among all columns or those in `cols`.

    Columns that the bounds cannot tell apart are computed again by the design's fixed-order product, so
    that equal columns tie and the lowest index wins, whatever BLAS made of them.
    """
    scores = query.scores(g) if cols is None else query.score.of(g)
    names = np.arange(len(scores)) if cols is None else cols
    if error is None or not error.any():
        best = top(scores, query.k)
        return Selection(names[best], g[best], "exact")
    margin = query.score.error(error)
    left = candidates(scores, margin, query.k)
    settled = not query.ordered or len(left) == 1 or _separated(scores, margin, left)
    if len(left) <= query.k and settled:
        best = left[np.lexsort((left, -scores[left]))]
        return Selection(names[best], g[best], "exact")
    sure = NO_COLUMNS
    if not query.ordered:
        first, second = sorted_out(scores[left], margin[left], query.k)
        sure, left = left[first], left[second]
    exact = design.correlate(query.r, cols=names[left])
    best = top(query.score.of(exact), query.k - len(sure))
    chosen = np.concatenate([names[sure], names[left[best]]])
    return Selection(chosen, np.concatenate([g[sure], exact[best]]), "exact", recomputed=len(left))


def settled(
    design: Design,
    query: Query,
    g: Floats,
    bound: Floats,
    cols: Indices | None,
    fine: bool,
    seed: int | None = None,
) -> Selection:
    """The exact top k, as `rank`, from estimates of a twin; a second byte narrows many candidates down."""
    scores = query.scores(g) if cols is None else query.score.of(g)
    margin = query.score.error(bound)
    left = candidates(scores, margin, query.k)
    few = max(FEW if fine else MANY, query.k)
    if query.k < len(left) and (query.k == 1 or len(left) <= few):
        # Without the width of their own intervals the best guesses, computed exactly, rule out most of the
        # others. Those with the same estimate stay: they may be copies, and the lowest of copies wins.
        guesses = left[top(scores[left], query.k)]
        names = guesses if cols is None else cols[guesses]
        design.fetch(names, lambda: _best(scores, cols))
        least = float(query.score.of(design.correlate(query.r, cols=names)).min())
        if not isfinite(least):
            raise NotFinite("an entry of X^T r is not finite")
        left = left[(scores[left] + margin[left] >= least) | (scores[left] >= scores[guesses].min())]
    names = left if cols is None else cols[left]
    if len(left) > few:
        return rank(design, query, *design.refine(query.r, names, seed), cols=names)
    return rank(design, query, g[left], bound[left], cols=names)


def _best(scores: Floats, cols: Indices | None) -> Indices:
    """Columns that a pursuit will soon come to."""
    best = top(scores, LIKELY)
    return best if cols is None else cols[best]


def sorted_out(scores: Floats, margin: Floats, count: int) -> tuple[Indices, Indices]:
    """Those that are among the `count` best for certain, and those that may be; both ascending."""
    lower, upper, size = scores - margin, scores + margin, len(scores)
    if count >= size:
        return np.arange(size), NO_COLUMNS
    surely_beaten, needed = kth_largest(upper, count + 1), kth_largest(lower, count)
    sure = lower > surely_beaten
    return np.flatnonzero(sure), np.flatnonzero(~sure & (upper >= needed))


def candidates(scores: Floats, margin: Floats, k: int) -> Indices:
    """Columns that could be among the top k, ascending."""
    lower = scores - margin
    if len(lower) == 0:
        return NO_COLUMNS
    if k == 1:
        cut = lower.max()
        if isnan(cut):
            raise NotFinite("some scores are NaN")
    else:
        cut = kth_largest(lower, min(k, len(lower)))
    return np.flatnonzero((scores + margin >= cut) & (scores > -np.inf))


def _separated(scores: Floats, margin: Floats, left: Indices) -> bool:
    """Whether the order of the candidates is beyond doubt."""
    order = left[np.argsort(-scores[left], kind="stable")]
    gaps = scores[order[:-1]] - scores[order[1:]]
    return bool((gaps > margin[order[:-1]] + margin[order[1:]]).all())


class Oracle:
    """A selector bound to a design: what a solver calls. Remembers the answers of one iteration."""

    def __init__(self, selector: Selector, design: Design) -> None:
        self.selector = selector
        self.design = design
        self.wants_known = selector.wants_known(design)
        self.answers: list[Selection] = []
        self.shortlist: Shortlist | None = None

    def __call__(self, query: Query) -> Selection:
        if self.shortlist is not None:
            query = replace(query, shortlist=self.shortlist)
        answer = self.selector.answer(self.design, query)
        self.shortlist = answer.shortlist
        self.answers.append(answer)
        return answer

    def exactly(self, query: Query) -> Selection:
        """The exact answer, where a solver has to be sure of it."""
        from skpursuit.selectors.exact import Exact

        answer = Exact().answer(self.design, query)
        self.answers.append(answer)
        return answer

    def counting(self, look: Callable[[], Any]) -> Any:
        """What a look at X outside a query gives, its reads counted like those of an answer."""
        entries, nbytes = self.design.reads.entries, self.design.reads.bytes
        with np.errstate(over="ignore", invalid="ignore"):  # as in `select`
            found = look()
        reads = self.design.reads.entries - entries, self.design.reads.bytes - nbytes
        self.answers.append(Selection(NO_COLUMNS, np.empty(0), "exact", *reads))
        return found

    def take(self) -> list[Selection]:
        """The answers since the last call."""
        answers, self.answers = self.answers, []
        return answers


def exclude(*groups: Any) -> Indices:
    """One index array from several."""
    return np.unique(np.concatenate([np.asarray(g, dtype=np.intp) for g in groups])) if groups else NO_COLUMNS
