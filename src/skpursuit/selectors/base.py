"""Questions to selectors, their answers, and the one way from an estimate to a decision.

A solver asks which entries of X^T r are largest (`Query`) and gets columns (`Selection`). Between the two
lies a selector, bound to a design and to what the solver expects: `selector.bind(design, expect)` makes
codes, layouts and stores of column sums, and gives a `Bound` that answers query after query.

Most selectors begin with an estimate of X^T r, from codes, partial sums or BLAS. Whatever its precision, it
comes with a bound on its error, and `settle` turns it into the exact answer: columns that the bounds cannot
tell apart are computed by products in a fixed order, so that equal columns tie and the lowest index wins,
whatever BLAS made of them. No other code decides.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import inf, isfinite, isnan
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from skpursuit.data.design import Design
from skpursuit.numerics.arrays import NO_COLUMNS, Floats, Indices
from skpursuit.numerics.estimate import EPS, Estimate
from skpursuit.numerics.finite import (
    LEAST_ENTRY,
    MOST,
    MOST_ENTRY,
    SAFE_EXPONENT,
    NotFinite,
    kth_largest,
)
from skpursuit.numerics.sums import fixed_order_dot
from skpursuit.numerics.tuning import FEW, MANY
from skpursuit.problem.score import Absolute, Score, top
from skpursuit.problem.state import State

if TYPE_CHECKING:
    from skpursuit.selectors.column_sums import ColumnSums
    from skpursuit.selectors.speculation import Speculation

Memory = Mapping[str, np.ndarray]
Round = tuple[float, Indices, Floats]

NOTHING: Memory = {}
LEAST_SIZE, MOST_SIZE = 1e-20, 1e20  # residuals in between are not the reason when sums left the float range


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
    at : State, optional
        The state whose residual r is, for gradients that follow from coefficients; None where r is another
        vector, such as the residual of a batch.
    left : int, optional
        Columns that the support may still gain, this one included.
    ordered : bool
        Whether the answer must be best first. Without it only the set is made sure of, which is cheaper.
    """

    r: Floats
    k: int = 1
    score: Score = field(default_factory=Absolute)
    exclude: Indices = field(default_factory=lambda: NO_COLUMNS)
    rng: np.random.Generator | None = None
    eps: float | None = None
    at: State | None = None
    left: int | None = None
    ordered: bool = True

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


class Selection(NamedTuple):
    """An answer: the columns, best first, what was read to find them, and what the answer is worth.

    Attributes
    ----------
    columns : ndarray of int
    g : ndarray
        Their entries of X^T r; the largest float in place of those beyond it. Of an ordered exact answer
        they are products in a fixed order, or estimates whose sign, and that they are not zero, are certain.
    certificate : str
        "exact", "delta" (right with probability 1 - delta), "heuristic", or "none" without columns.
    entries_read, bytes_read : int
    recomputed : int
        Columns that were computed exactly because estimates could not tell them apart.
    memory : mapping of str to ndarray
        What the selector wants to be given with the next query.
    estimate : Estimate, optional
        X^T r for all columns, where it was known without reading X.
    """

    columns: Indices
    g: Floats
    certificate: str
    entries_read: int = 0
    bytes_read: int = 0
    recomputed: int = 0
    memory: Memory = NOTHING
    estimate: Estimate | None = None

    @property
    def indices(self) -> Indices:
        """The columns."""
        return self.columns

    @property
    def estimates(self) -> Floats:
        """The entries of X^T r."""
        return self.g


@dataclass(frozen=True)
class Expect:
    """What a solver will ask for, as far as it knows beforehand.

    Parameters
    ----------
    steps : int
        Selections.
    visits : int
        Different columns.
    limit : int
        The most selections.
    roundings : int, optional
        Moves of the predictions since they were X_S w_S, whose rounding they carry. None: as many as there
        were steps, and `State.move` tells each of them.
    asks_many : bool
        Whether queries are for more than one column.
    targets : int
    y : ndarray, optional
        Where r is X_S w_S - y, so that the gradient follows from coefficients.
    """

    steps: int = 1
    visits: int = 1
    limit: int = 1
    roundings: int | None = 0
    asks_many: bool = False
    targets: int = 1
    y: Floats | None = None


class Selector(ABC):
    """A way to find the top entries of X^T r. Subclasses are frozen dataclasses.

    A simple one gives `find`. One that remembers, or adds up products of columns, gives `answer` as well.
    """

    compiled: ClassVar[bool] = False  # whether it needs compiled kernels
    #: a method (design, query) that yields the rounds in which columns compete, for `skpursuit.plots`: the
    #: rows read so far, the columns that are left, and their estimates of X^T r; None where there are none
    rounds: ClassVar[Callable[..., Iterator[Round]] | None] = None

    def select(self, design: Design, query: Query) -> Selection:
        """Answer a single query, on an X that is what it was when the design was made.

        Raises `NotFinite` where there is no answer because r or the column norms are not finite.
        """
        design.store.check_unchanged()
        with np.errstate(over="ignore", invalid="ignore"):  # bounds become infinite, which settles nothing
            return Bound(self, design).select(query)

    def bind(self, design: Design, expect: Expect) -> Bound:
        """Make what is kept on the design for all queries (codes, layouts, norms), and be ready for them."""
        return Bound(self, design)

    def answer(self, bound: Bound, query: Query, memory: Memory) -> Selection:
        """Answer one query of a run, given the memory of the answer before it, or an empty one."""
        return self.find(bound.design, query)

    @abstractmethod
    def find(self, design: Design, query: Query) -> Selection:
        """Find the top entries; reading is counted by the design.

        Scores that are NaN may raise `NotFinite`; an answer that is not finite is not used.
        """

    def can_have(self, design: Design, memory: Memory, targets: tuple[int, ...]) -> bool:
        """Whether a memory that was read from a file has the form of one that `answer` gives."""
        return True

    def price(self, design: Design, expect: Expect) -> float:
        """Predicted seconds for all queries of a run; infinity where `auto` must not choose it."""
        return inf

    def nbytes(self, design: Design) -> int:
        """Bytes kept beside X."""
        return 0

    @property
    def title(self) -> str:
        """What stands above a picture of its rounds."""
        return type(self).__name__

    def identity(self) -> str:
        """What a checkpoint compares: the parameters the caller gave."""
        return repr(self)


class Bound:
    """A selector at work on one design.

    Parameters
    ----------
    selector : Selector
    design : Design
    sums : ColumnSums, optional
        Gradients known more cheaply than by reading X.
    speculation : Speculation, optional
        Answers to several steps, made together.

    Attributes
    ----------
    chosen : str
        Why `auto` chose the selector, if it did.
    """

    def __init__(
        self,
        selector: Selector,
        design: Design,
        sums: ColumnSums | None = None,
        speculation: Speculation | None = None,
    ) -> None:
        self.selector = selector
        self.design = design
        self.sums = sums
        self.speculation = speculation
        self.chosen = ""

    def describe(self) -> str:
        """One line for `Result.selector`."""
        return f"auto: {self.selector!r}, {self.chosen}" if self.chosen else repr(self.selector)

    def select(self, query: Query, memory: Memory | None = None) -> Selection:
        """Answer one query, a single one if no memory is given, and say what was read.

        Where numbers left the float range on the way, the answer is the exact one.
        """
        reads = self.design.reads
        entries, nbytes = reads.entries, reads.bytes
        try:
            if memory is None:
                found = self.selector.find(self.design, query)
            else:
                found = self.selector.answer(self, query, memory)
            used = in_float_range(found, query.r)
        except NotFinite:
            used = False
        if not used:
            found = scaled_answer(self.design, query)
        return found._replace(
            certificate=found.certificate if len(found.columns) else "none",
            entries_read=reads.entries - entries,
            bytes_read=reads.bytes - nbytes,
        )


class Asking:
    """What one step calls to ask its selector.

    The selector's memory belongs to one transition: the step is given that of the state it starts from, and
    its last answer has that of the state it leads to. A step that did not ask leaves none.
    """

    def __init__(self, bound: Bound, given: Memory) -> None:
        self.bound = bound
        self.given = given
        self.memory: Memory = NOTHING
        self.answers: list[Selection] = []

    def __call__(self, query: Query) -> Selection:
        answer = self.bound.select(query, self.given)
        self.given = self.memory = answer.memory
        self.answers.append(answer)
        return answer

    def exactly(self, query: Query) -> Selection:
        """The exact answer, where a solver has to be sure of it."""
        from skpursuit.selectors.exact import Exact

        answer = Bound(Exact(), self.bound.design).select(query)
        self.answers.append(answer)
        return answer

    def look(self, query: Query) -> Estimate | None:
        """X^T r, where the selector knows it without reading X."""
        sums = self.bound.sums
        known = None if sums is None else self.counting(lambda: sums.gradient(query, self.given))
        self.memory = self.given if known is None else known.memory
        return None if known is None else known.estimate

    def counting(self, look: Callable[[], Any]) -> Any:
        """What a look at X outside a query gives, its reads counted like those of an answer."""
        reads = self.bound.design.reads
        entries, nbytes = reads.entries, reads.bytes
        found = look()
        read = reads.entries - entries, reads.bytes - nbytes
        self.answers.append(Selection(NO_COLUMNS, np.empty(0), "exact", *read))
        return found


def in_float_range(answer: Selection, r: Floats) -> bool:
    """Whether no sum on the way to an answer can have left the float range, up or down."""
    g = answer.g
    if g.size == 1 and LEAST_ENTRY < abs(float(g.flat[0])) < MOST_ENTRY:
        return True  # nearly always
    if not isfinite(g.sum()):
        return False
    best = float(np.abs(g[:1]).max(initial=0.0))
    if answer.certificate != "exact" or LEAST_ENTRY < best < MOST_ENTRY:
        return True
    largest = float(np.abs(r).max(initial=0.0))
    return largest == 0.0 or LEAST_SIZE < largest < MOST_SIZE


def scaled_answer(design: Design, query: Query) -> Selection:
    """The exact answer from r times a power of two: below one, and smaller where X^T r would overflow."""
    largest, widest = float(np.abs(query.r).max()), float(design.sizes.max())
    if not isfinite(largest) or not isfinite(widest):
        raise NotFinite("X^T r has no largest entry: r, or the norm of a column, is not finite")
    exponent, growth = np.frexp([largest, widest])[1].tolist()
    shift = exponent + max(0, growth + len(query.r).bit_length() - SAFE_EXPONENT)
    answer = exact_answer(design, replace(query, r=np.ldexp(query.r, -shift)))
    return answer._replace(g=np.clip(np.ldexp(answer.g, shift), -MOST, MOST))


def exact_answer(design: Design, query: Query) -> Selection:
    """The answer from all of X^T r, or from the rows where r is not zero if those are few."""
    r = query.r
    used = r if r.ndim == 1 else r.any(axis=1)
    few = 2 * np.count_nonzero(used) < len(r)  # a batch, a fold: the other rows add nothing
    batch = np.flatnonzero(used) if few else None
    error = design.rounding(r)  # before the product, which empties the caches
    return settle(design, query, Estimate(design.product(r, batch), error))


class CodeOrigin(NamedTuple):
    """The codes that an estimate came from: their seed, and whether their second bytes are made already."""

    fine: bool = False
    seed: int | None = None


class Close(NamedTuple):
    """Columns that may be among the top k, ascending, with their scores and what those may be wrong by."""

    names: Indices
    scores: Floats
    margin: Floats
    g: Floats


def settle(
    design: Design,
    query: Query,
    estimate: Estimate,
    cols: Indices | None = None,
    codes: CodeOrigin | None = None,
) -> Selection:
    """The exact top k from an estimate of X^T r, for all columns or for those in `cols`, ascending.

    Columns that the bounds leave in doubt are computed by the design's fixed-order product. Where the
    estimate came from `codes`, whose bounds are wide, there are ways to doubt fewer of them first.
    """
    scores = query.scores(estimate.value) if cols is None else query.score.of(estimate.value)

    def likely(count: int) -> Indices:
        best = top(scores, count)
        return best if cols is None else cols[best]

    answer = _settled(design, query, estimate, scores, cols, codes, likely)
    if design.columns_are_dear and query.k == 1:  # the winner will be asked for
        design.columns(answer.columns, likely=likely)
    return answer


def _settled(
    design: Design,
    query: Query,
    estimate: Estimate,
    scores: Floats,
    cols: Indices | None,
    codes: CodeOrigin | None,
    likely: Callable[[int], Indices],
) -> Selection:
    """As `settle`, given the scores, and a function that tells so many columns with high ones."""
    g, error = estimate
    if error is None or not error.any():
        best = top(scores, query.k)
        return Selection(best if cols is None else cols[best], g[best], "exact")
    margin = query.score.error(error)
    left = candidates(scores, margin, query.k)
    if len(left) <= query.k and (not query.ordered or _in_order(scores, margin, left)):
        best = left if len(left) == 1 else left[np.lexsort((left, -scores[left]))]
        names, values = best if cols is None else cols[best], g[best]
        if query.ordered and not _not_zero(values, error[best]):
            # From gathered columns: whoever asked for them is about to use them.
            values = fixed_order_dot(list(design.columns(names)), query.r)
        return Selection(names, values, "exact")
    close = Close(left if cols is None else cols[left], scores[left], margin[left], g[left])
    if codes is None or len(left) <= query.k:
        return _computed(design, query, close, likely=likely)
    return _narrowed(design, query, close, codes, likely)


def _in_order(scores: Floats, margin: Floats, left: Indices) -> bool:
    """Whether the order of the candidates is beyond doubt."""
    if len(left) <= 1:
        return True
    order = left[np.argsort(-scores[left], kind="stable")]
    gaps = scores[order[:-1]] - scores[order[1:]]
    return bool((gaps > margin[order[:-1]] + margin[order[1:]]).all())


def _not_zero(values: Floats, error: Floats) -> bool:
    """Whether it is certain of all columns that their entries, or those of a target, are not zero."""
    certain = np.abs(values) > error
    return bool((certain if values.ndim == 1 else certain.any(axis=1)).all())


def _narrowed(
    design: Design, query: Query, close: Close, codes: CodeOrigin, likely: Callable[[int], Indices]
) -> Selection:
    """The exact top k of candidates that codes leave; a second byte narrows many of them down.

    The best guesses, computed exactly, have no interval any more and rule out most of the others. Those with
    the same estimate stay: they may be copies, and the lowest of copies wins.
    """
    few = max(FEW if codes.fine else MANY, query.k)
    guesses, guessed = NO_COLUMNS, close.g[:0]
    if query.k == 1 or (query.ordered and len(close.names) <= few):
        guesses = top(close.scores, query.k)
        names = close.names[guesses]
        guessed = design.dots(names, query.r, likely)
        least = float(query.score.of(guessed).min())
        if not isfinite(least):
            raise NotFinite("an entry of X^T r is not finite")
        stay = (close.scores + close.margin >= least) | (close.scores >= close.scores[guesses].min())
        if query.k == 1 == np.count_nonzero(stay):
            return Selection(names, guessed, "exact", recomputed=1)
        close = Close(*(part[stay] for part in close))
        guesses = np.cumsum(stay)[guesses] - 1
    if len(close.names) > few:
        refined = Estimate(*design.codes(fine=True).refine(query.r, close.names))
        return settle(design, query, refined, close.names)
    return _computed(design, query, close, guesses, guessed, likely)


def _computed(
    design: Design,
    query: Query,
    close: Close,
    guesses: Indices = NO_COLUMNS,
    guessed: Floats | float = 0.0,
    likely: Callable[[int], Indices] | None = None,
) -> Selection:
    """The exact top k of candidates by products with them; those of some `guesses` are known already.

    Where only the set is asked for, candidates that are in it for certain are not computed.
    """
    sure, doubtful = NO_COLUMNS, np.arange(len(close.names))
    if not query.ordered and len(close.names) <= query.k:
        sure, doubtful = top(close.scores, query.k), NO_COLUMNS
    elif not query.ordered:
        sure, doubtful = sorted_out(close.scores, close.margin, query.k)
    values = close.g.astype(np.float64)
    values[guesses] = guessed
    new = np.setdiff1d(doubtful, guesses, assume_unique=True)
    if len(new):
        values[new] = design.dots(close.names[new], query.r, likely if design.columns_are_dear else None)
    best = doubtful[top(query.score.of(values[doubtful]), query.k - len(sure))]
    chosen = np.concatenate([sure, best])
    recomputed = len(guesses) + len(new)
    return Selection(close.names[chosen], values[chosen], "exact", recomputed=recomputed)


def sorted_out(scores: Floats, margin: Floats, count: int) -> tuple[Indices, Indices]:
    """Those that are among the `count` best for certain, and those that may be; both ascending."""
    lower, upper, size = scores - margin, scores + margin, len(scores)
    if count >= size:
        return np.arange(size), NO_COLUMNS
    surely_beaten, needed = kth_largest(upper, count + 1), kth_largest(lower, count)
    sure = lower > surely_beaten
    return np.flatnonzero(sure), np.flatnonzero(~sure & (upper >= needed))


def candidates(scores: Floats, margin: Floats, k: int) -> Indices:
    """Columns that could be among the top k, ascending.

    Of a single winner only columns within two margins of the best can be one, and usually that is the best
    alone, so that no intervals are needed.
    """
    if len(scores) == 0:
        return NO_COLUMNS
    if k > 1:
        cut = kth_largest(scores - margin, min(k, len(scores)))
        return np.flatnonzero((scores + margin >= cut) & (scores > -np.inf))
    best, widest = float(scores[scores.argmax()]), float(margin[margin.argmax()])  # NaN, if there is one
    least = best - 2.5 * widest - 4 * EPS * abs(best)
    if not isfinite(least):
        close = np.flatnonzero(scores > -np.inf)
    else:
        close = np.flatnonzero(scores >= least)
        if len(close) == 1:
            return close
    cut = float((scores[close] - margin[close]).max(initial=-inf))
    if isnan(best) or isnan(widest) or isnan(cut):
        raise NotFinite("some scores are NaN")
    return close[scores[close] + margin[close] >= cut]
