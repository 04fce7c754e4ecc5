"""The question every selector answers, its answer, and how an answer with known error becomes exact."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from skpursuit.design.base import Design, Floats, Indices
from skpursuit.design.sums import spare_bits
from skpursuit.selectors.score import Absolute, Score, top

NO_COLUMNS: Indices = np.empty(0, dtype=np.intp)
FEW = 32  # columns that are computed exactly without looking at their second byte, if there is one
LIKELY = 24  # columns that score so high that their turn may come soon
MANY = 512  # columns left from which a second byte is made, if there is none
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

    `certificate` is "exact", "delta" (right with probability 1 - delta) or "heuristic"; `recomputed` counts
    the columns whose entries were computed again because estimates could not tell them apart. `shortlist`
    may serve the next query.
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
        """Answer a single query, on an X that is what it was when the design was made."""
        design.check_unchanged()
        return self.answer(design, query)

    def answer(self, design: Design, query: Query) -> Selection:
        """Answer one query of a run and say what was read."""
        entries, nbytes = design.reads.entries, design.reads.bytes
        with np.errstate(over="ignore", invalid="ignore"):  # bounds become infinite, which settles nothing
            found = self.find(design, query)
            if found.certificate == "exact" and out_of_range(found.estimates):
                found = scaled_answer(design, query) or found
        return replace(
            found,
            entries_read=design.reads.entries - entries,
            bytes_read=design.reads.bytes - nbytes,
        )

    @abstractmethod
    def find(self, design: Design, query: Query) -> Selection:
        """Find the top entries; reading is counted by the design."""

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


def out_of_range(estimates: Floats) -> bool:
    """Whether the first entry, the best, is so large or small that sums may have left the float range."""
    single = estimates.ndim == 1 and len(estimates)
    best = abs(float(estimates[0])) if single else float(np.abs(estimates[:1]).max(initial=0.0))
    return not LEAST_ENTRY < best < MOST_ENTRY


def scaled_answer(design: Design, query: Query) -> Selection | None:
    """The exact answer, found with r times a power of two, which changes no order; None for an ordinary r."""
    from skpursuit.selectors.exact import Exact

    largest = float(np.abs(query.r).max(initial=0.0))
    if LEAST_SIZE < largest < MOST_SIZE or not 0 < largest < np.inf:
        return None
    exponent = int(np.frexp(largest)[1])
    if exponent > 0:
        exponent += spare_bits(len(query.r))  # sums of so many entries of X must not overflow
    answer = Exact().find(design, replace(query, r=np.ldexp(query.r, -exponent), known=None, coded=None))
    return replace(answer, estimates=np.ldexp(answer.estimates, exponent))


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
        least = query.score.of(design.correlate(query.r, cols=names)).min()
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
    surely_beaten = np.partition(upper, size - count - 1)[size - count - 1]
    needed = np.partition(lower, size - count)[size - count]
    sure = lower > surely_beaten
    return np.flatnonzero(sure), np.flatnonzero(~sure & (upper >= needed))


def candidates(scores: Floats, margin: Floats, k: int) -> Indices:
    """Columns that could be among the top k, ascending."""
    lower = scores - margin
    if len(lower) == 0:
        return NO_COLUMNS
    if k == 1:
        cut = lower.max()
    else:
        place = max(0, len(lower) - k)
        cut = np.partition(lower, place)[place]
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
