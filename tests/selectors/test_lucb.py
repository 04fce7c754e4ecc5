"""LUCB: its budget, its economy, and what it refuses. All rows give the exact answer: test_all_rows."""

import numpy as np
import pytest

from skpursuit import LUCB, as_design
from skpursuit.selectors import Query
from skpursuit.selectors.lucb import INITIAL_PULLS, Arms

from ..support.asking import Question, ask


def clear_problem(rng, n=1000, d=50, winner=17):
    """A residual that one column has most of."""
    X = rng.standard_normal((n, d))
    return X, X[:, winner] + 0.5 * rng.standard_normal(n)


def test_a_clear_winner_needs_few_pulls():
    rng = np.random.default_rng(0)
    for seed in range(20):
        X, r = clear_problem(rng)
        answer = ask(LUCB(budget=1.0), X, Question(r, seed=seed))
        assert answer.columns.tolist() == [17]
        assert answer.certificate == "heuristic"
        assert 50 * INITIAL_PULLS <= answer.entries_read < 0.3 * X.size


def test_the_budget_is_kept_but_for_the_last_batch():
    rng = np.random.default_rng(1)
    X, r = rng.standard_normal((400, 30)), rng.standard_normal(400)
    for budget in (0.01, 0.1, 0.4):
        answer = ask(LUCB(budget, batch_size=5), X, Question(r, seed=0))
        assert (
            answer.entries_read <= max(30 * INITIAL_PULLS, budget * X.size) + 5 * 9
        )  # the leader and 8 rivals
    assert answer.entries_read >= 0.4 * X.size


@pytest.mark.parametrize("targets", [(), (2,)])
def test_intervals_hold_and_close(targets):
    """Means of rows that are not drawn twice lie within their intervals, which have no width in the end."""
    rng = np.random.default_rng(3)
    X, r = rng.standard_normal((200, 40)), rng.standard_normal((200, *targets))
    arms = Arms(as_design(X), r, np.arange(40), rng.permutation(200))
    for times in (20, 80, 99, 1, 10):
        arms.pull(np.arange(40), times)
        assert (np.abs(arms.means() - X.T @ r) <= arms.widths(np.log(20)) + 1e-10).all()
    assert (arms.pulls == 200).all()
    assert not arms.widths(np.inf).any()


def test_a_column_of_zeros_among_the_first_rows_keeps_a_width():
    X = np.ones((100, 2))
    X[:50, 1] = 0.0
    arms = Arms(as_design(X), np.ones(100), np.arange(2), np.arange(100))
    arms.pull(np.arange(2), 20)
    assert arms.means().tolist() == [100.0, 0.0]
    assert (arms.widths(np.log(20)) > 0).all()


def test_its_rounds_end_in_its_answer():
    X, r = clear_problem(np.random.default_rng(1))
    query = Question(r, seed=3)
    *_, (pulled, columns, estimates) = LUCB().rounds(as_design(X), Query(r, rng=np.random.default_rng(3)))
    answer = ask(LUCB(), X, query)
    assert columns[np.abs(estimates).argmax()] == answer.columns[0]
    assert pulled * X.shape[1] == pytest.approx(answer.entries_read)
