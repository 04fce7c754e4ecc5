"""The one way from an estimate of X^T r to a decision.

Most selectors begin with an estimate, from codes, partial sums or BLAS. Whatever its precision, it comes with
a bound on its error, and `resolve_top_k` turns it into the exact answer: columns that the bounds cannot tell
apart are computed by products in a fixed order, so that equal columns tie and the lowest index wins, whatever
BLAS made of them. No other code decides.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf, isfinite, isnan
from typing import NamedTuple

import numpy as np

from skpursuit.data.design import Design
from skpursuit.numerics.arrays import NO_COLUMNS, Floats, Indices
from skpursuit.numerics.error_bounds import Estimate
from skpursuit.numerics.float_range import EPS, NonFiniteError, kth_largest
from skpursuit.numerics.sums import fixed_order_dot
from skpursuit.numerics.tuning import MAX_EXACT_CANDIDATES, SECOND_BYTE_CANDIDATES
from skpursuit.problem.scores import top_k
from skpursuit.selectors.contests import Contest
from skpursuit.selectors.query import Query, Selection


def exact_selection(design: Design, query: Query, cols: Indices | None = None) -> Selection:
    """The answer, or that among `cols`, from all of X^T r; from the rows where r is not zero if few."""
    r = query.r
    used = r if r.ndim == 1 else r.any(axis=1)
    few = 2 * np.count_nonzero(used) < len(r)  # a batch, a fold: the other rows add nothing
    batch = np.flatnonzero(used) if few else None
    error = design.rounding(r)  # before the product, which empties the caches
    estimate = Estimate(design.product(r, batch), error)
    if cols is not None:
        estimate = Estimate(estimate.value[cols], None if error is None else error[cols])
    return resolve_top_k(design, query, estimate, cols)


class CodeOrigin(NamedTuple):
    """The codes that an estimate came from: whether their second bytes are made, and used."""

    fine: bool = False
    refined: bool = False


class Contenders(NamedTuple):
    """Columns that may be among the top k, ascending, with their scores and what those may be wrong by."""

    names: Indices
    scores: Floats
    margin: Floats
    g: Floats


def resolve_top_k(
    design: Design,
    query: Query,
    estimate: Estimate,
    cols: Indices | None = None,
    codes: CodeOrigin | None = None,
) -> Selection:
    """The exact top k from an estimate of X^T r, for all columns or candidates or those in `cols`, ascending.

    Columns that the bounds leave in doubt are computed by the design's fixed-order product. Where the
    estimate came from `codes`, whose bounds are wide, there are ways to doubt fewer of them first; and where
    those that are left would cost a pass over X on disk, the pass is an exact product.
    """
    if isinstance(contest := query.score, Contest):
        if cols is not None:  # the others are out of it
            columns, d = contest.columns(cols), design.shape[1]
            value, error = np.zeros((2, d, *query.r.shape[1:]))
            value[columns], error[columns] = estimate.value, 0.0 if estimate.error is None else estimate.error
            query = replace(query, exclude=np.setdiff1d(np.arange(d), columns))
            estimate = Estimate(value, error)
        return _resolve_contest(design, query, contest, estimate, codes)
    scores = query.score.of(estimate.value)
    if cols is None:
        scores[query.exclude] = -np.inf

    def likely(count: int) -> Indices:
        best = top_k(scores, count)
        return best if cols is None else cols[best]

    g, error = estimate
    if error is None or not error.any():
        best = top_k(scores, query.k)
        answer = Selection(best if cols is None else cols[best], g[best], "exact")
    else:
        margin = query.score.error(error)
        left = find_contenders(scores, margin, query.k)
        if len(left) <= query.k and (not query.ordered or _in_order(scores, margin, left)):
            best = left if len(left) == 1 else left[np.lexsort((left, -scores[left]))]
            names, values = best if cols is None else cols[best], g[best]
            if query.ordered:
                not_zero = np.abs(values) > error[best]
                if not (not_zero if values.ndim == 1 else not_zero.any(axis=1)).all():
                    # From gathered columns: whoever asked for them is about to use them.
                    values = fixed_order_dot(list(design.columns(names)), query.r)
            answer = Selection(names, values, "exact")
        else:
            close = Contenders(left if cols is None else cols[left], scores[left], margin[left], g[left])
            if codes is not None and codes.refined >= codes.fine and design.access.costs_a_pass(close.names):
                answer = exact_selection(design, query, close.names)
            elif codes is None or codes.refined or len(left) <= query.k:
                answer = _computed(design, query, close, likely=likely)
            else:
                answer = _narrowed(design, query, close, codes, likely)
    if design.column_costs_full_pass and query.k == 1:  # the winner will be asked for
        design.columns(answer.columns, prefetch_candidates=likely)
    return answer


def _resolve_contest(
    design: Design, query: Query, contest: Contest, estimate: Estimate, codes: CodeOrigin | None
) -> Selection:
    """The columns of the k best candidates of a contest, exactly; the same stages as for single columns."""
    (scores, margin), recomputed = contest.intervals(estimate), 0
    scores[contest.without(query.exclude)] = -inf
    left = find_contenders(scores, margin, query.k)
    best = left[np.lexsort((left, -scores[left]))]
    settled = len(left) <= query.k and (not query.ordered or _in_order(scores, margin, left))
    if not (settled and (scores[left] > margin[left]).all()):  # a score of zero is no reason to be chosen
        doubtful = np.sort(contest.columns(left))
        wide = codes is not None and not codes.refined
        few = MAX_EXACT_CANDIDATES if codes is None or codes.fine else SECOND_BYTE_CANDIDATES
        if wide and len(doubtful) > few:
            refined = design.codes(fine=True).estimate(query.r, doubtful, second_byte=True)
            both = Estimate(estimate.value.copy(), np.array(estimate.error))
            both.value[doubtful], both.error[doubtful] = refined  # type: ignore[index]
            return _resolve_contest(design, query, contest, both, CodeOrigin(True, True))
        if codes is not None and design.access.costs_a_pass(doubtful):
            bound = design.rounding(query.r)
            exact = Estimate(design.product(query.r), bound)
            return _resolve_contest(design, query, contest, exact, None)
        best = left[top_k(contest.decide(design, query.r, left), query.k)]
        recomputed = len(doubtful)
    columns = contest.columns(best)
    g = design.dots(columns, query.r) if recomputed else estimate.value[columns]
    if design.column_costs_full_pass:
        design.columns(columns, prefetch_candidates=lambda count: top_k(contest.of(estimate.value), count))
    return Selection(columns, g, "exact", n_recomputed=recomputed)


def _in_order(scores: Floats, margin: Floats, left: Indices) -> bool:
    """Whether the order of the candidates is beyond doubt."""
    if len(left) <= 1:
        return True
    order = left[np.argsort(-scores[left], kind="stable")]
    gaps = scores[order[:-1]] - scores[order[1:]]
    return bool((gaps > margin[order[:-1]] + margin[order[1:]]).all())


def _narrowed(
    design: Design, query: Query, close: Contenders, codes: CodeOrigin, likely: Callable[[int], Indices]
) -> Selection:
    """The exact top k of candidates that codes leave; a second byte narrows many of them down."""
    # The best guesses, computed exactly, have no interval any more and rule out most of the others. Those
    # with the same estimate stay: they may be copies, and the lowest of copies wins. Where columns are so
    # many that they cost a pass over X on disk, the second byte comes first.
    few = max(MAX_EXACT_CANDIDATES if codes.fine else SECOND_BYTE_CANDIDATES, query.k)
    few = 0 if design.access.costs_a_pass(close.names) else few
    guesses, guessed = NO_COLUMNS, close.g[:0]
    if few and (query.k == 1 or (query.ordered and len(close.names) <= few)):
        guesses = top_k(close.scores, query.k)
        names = close.names[guesses]
        guessed = design.dots(names, query.r, likely)
        least = float(query.score.of(guessed).min())
        if not isfinite(least):
            raise NonFiniteError("an entry of X^T r is not finite")
        stay = (close.scores + close.margin >= least) | (close.scores >= close.scores[guesses].min())
        if query.k == 1 == np.count_nonzero(stay):
            return Selection(names, guessed, "exact", n_recomputed=1)
        close = Contenders(*(part[stay] for part in close))
        guesses = np.cumsum(stay)[guesses] - 1
    if len(close.names) > few:
        refined = Estimate(*design.codes(fine=True).estimate(query.r, close.names, second_byte=True))
        return resolve_top_k(design, query, refined, close.names, codes._replace(fine=True, refined=True))
    return _computed(design, query, close, guesses, guessed, likely)


def _computed(
    design: Design,
    query: Query,
    close: Contenders,
    guesses: Indices = NO_COLUMNS,
    guessed: Floats | float = 0.0,
    likely: Callable[[int], Indices] | None = None,
) -> Selection:
    """The exact top k of candidates by products with them; those of some `guesses` are known already.

    Where only the set is asked for, candidates that are in it for certain are not computed.
    """
    sure, doubtful = NO_COLUMNS, np.arange(len(close.names))
    if not query.ordered and len(close.names) <= query.k:
        sure, doubtful = top_k(close.scores, query.k), NO_COLUMNS
    elif not query.ordered:
        sure, doubtful = split_certain(close.scores, close.margin, query.k)
    values = close.g.astype(np.float64)
    values[guesses] = guessed
    unknown = np.ones(len(values), bool)
    unknown[guesses] = False
    new = doubtful[unknown[doubtful]]
    if len(new):
        ahead = likely if design.column_costs_full_pass else None
        values[new] = design.dots(close.names[new], query.r, ahead)
    best = doubtful[top_k(query.score.of(values[doubtful]), query.k - len(sure))]
    chosen = np.concatenate([sure, best])
    recomputed = len(guesses) + len(new)
    return Selection(close.names[chosen], values[chosen], "exact", n_recomputed=recomputed)


def split_certain(scores: Floats, margin: Floats, count: int) -> tuple[Indices, Indices]:
    """Those that are among the `count` best for certain, and those that may be; both ascending."""
    lower, upper, size = scores - margin, scores + margin, len(scores)
    if count >= size:
        return np.arange(size), NO_COLUMNS
    surely_beaten, needed = kth_largest(upper, count + 1), kth_largest(lower, count)
    sure = lower > surely_beaten
    return np.flatnonzero(sure), np.flatnonzero(~sure & (upper >= needed))


def find_contenders(scores: Floats, margin: Floats, k: int) -> Indices:
    """Columns that could be among the top k, ascending."""
    # Of a single winner only columns within two margins of the best can be one, and usually that is the best
    # alone, so that no intervals are needed.
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
        raise NonFiniteError("some scores are NaN")
    return close[scores[close] + margin[close] >= cut]
