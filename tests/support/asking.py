"""Questions to selectors, asked in one place, and plain answers to them."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from skpursuit import as_design
from skpursuit.problem.problem import make_problem
from skpursuit.problem.scores import top_k
from skpursuit.problem.state import State
from skpursuit.selectors import (
    Absolute,
    BoundSelector,
    GroupNorm,
    Query,
    Selection,
    Selector,
    Signed,
    Workload,
)
from skpursuit.selectors.auto import predicted_seconds

__all__ = ["Absolute", "GroupNorm", "Question", "Selection", "Selector", "Signed", "ask", "random_question"]


@dataclass(frozen=True)
class Question:
    """Which k entries of X^T r score highest? `memory` is that of an earlier answer."""

    r: np.ndarray
    k: int = 1
    score: Any = field(default_factory=Absolute)
    exclude: Any = ()
    seed: Any = None
    memory: Any = None

    def scores(self, g):
        """Scores of all columns, -inf where excluded."""
        scores = np.array(self.score.of(g))
        scores[np.asarray(self.exclude, dtype=np.intp)] = -np.inf
        return scores

    def allowed(self, d):
        """The columns that may be chosen, ascending."""
        return np.setdiff1d(np.arange(d), np.asarray(self.exclude, dtype=np.intp))


def ask(selector, X, question, **given):
    """The answer to a question, or to that about a residual with the other parts `given`."""
    design, query = as_design(X), query_of(question, **given)
    memory = given.get("memory", question.memory if isinstance(question, Question) else None)
    if memory is None:
        return selector.select(design, query)
    with np.errstate(over="ignore", invalid="ignore"):
        return BoundSelector(selector, design).select(query, memory)


def query_of(question, **given):
    """A question in the package's own form."""
    if not isinstance(question, Question):
        question = Question(question)
    question = replace(question, **given)
    return Query(
        question.r,
        question.k,
        question.score,
        np.asarray(question.exclude, dtype=np.intp),
        None if question.seed is None else np.random.default_rng(question.seed),
    )


def query_at(support, coef, r, score, left=None):
    """The question of a pursuit that has these coefficients."""
    at = State(np.asarray(support, dtype=np.intp), np.asarray(coef), r, 0.0)
    return Query(r, 1, score, at.support, state=at, n_remaining=left)


def prepare(selector, design):
    """Have a selector make what it keeps on a design."""
    selector.bind(design, Workload())


def estimate(selector, X, question, **given):
    """Estimates of all entries of X^T r by a selector that samples rows, and the number of rows."""
    *_, (used, _, sums) = selector.accumulate(as_design(X), query_of(question, **given))
    return selector.estimate_from_sums(sums, used), used


def draws(selector, X, question, **given):
    """The rows that a sampling selector draws, and their weights."""
    return selector.row_schedule(as_design(X), query_of(question, **given))


def picked(selector, X, y, solver):
    """The selector that really runs for a problem of least squares."""
    problem = make_problem(as_design(X), y, "squared")
    return selector.bind(problem.design, solver.workload(problem)).selector


def predicted(X, y, solver):
    """Seconds that each selector of `auto` expects to need for a problem of least squares."""
    problem = make_problem(as_design(X), y, "squared")
    return predicted_seconds(problem.design, solver.workload(problem))


def race(trace, selector, X, question, **given):
    """The course of a selection, as `plots.trace` records it."""
    return trace(selector, as_design(X), query_of(question, **given))


def random_question(rng, n, d, score=None):
    """A question with random k, score and exclusions; some residuals have zeros or several targets."""
    score = score or (Absolute(), Signed(), GroupNorm())[rng.integers(3)]
    r = rng.standard_normal((n, 3) if isinstance(score, GroupNorm) else n)
    if rng.random() < 0.3:
        r[rng.random(n) < 0.3] = 0.0
    k = 1 if rng.random() < 0.5 else int(rng.integers(1, d + 2))
    exclude = np.flatnonzero(rng.random(d) < rng.choice([0.0, 0.3]))
    return Question(r, k, score, exclude, rng.integers(2**32))


def by_energy(X, r):
    """Rows in decreasing |r_i| ||x_i||, those without energy left out."""
    size = np.abs(r) if r.ndim == 1 else np.linalg.norm(r, axis=1)
    energy = size * np.linalg.norm(X, axis=1)
    return np.argsort(-energy, kind="stable")[: np.count_nonzero(energy)]


def plain_halving(X, question, order, pulls, finish):
    """Successive halving as the paper's algorithm has it: the answer, and the columns that survived."""
    partial = lambda rows, cols: question.score.of(X[rows][:, cols].T @ question.r[rows])  # noqa: E731
    alive = question.allowed(X.shape[1])
    few = np.ceil(finish * len(alive))
    rounds = max(1, int(np.ceil(np.log2(max(1, len(alive) / question.k)))))
    used = 0
    for _ in range(rounds):
        if len(alive) <= few:
            break
        used = min(len(order), used + max(1, int(pulls / (len(alive) * rounds))))
        if used == len(order) or len(alive) <= question.k:
            break
        best = np.argsort(-partial(order[:used], alive), kind="stable")[: max(question.k, len(alive) // 2)]
        alive = alive[np.sort(best)]
    seen = order if len(alive) <= few else order[:used]
    return alive[top_k(partial(seen, alive), question.k)], alive
