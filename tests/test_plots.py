"""The picture of a race: drawn for every selector that races, honest about the winner."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from skpursuit import Budget, Exact, Greedy, Importance, SuccessiveHalving, Uniform
from skpursuit.apps.studies.methods import load_selector
from skpursuit.plots import plot_race, trace

from .support.asking import ask, race

matplotlib = pytest.importorskip("matplotlib")
LUCB = Path(__file__).parents[1] / "examples" / "lucb.py"


def problem(n=120, d=24):
    rng = np.random.default_rng(0)
    X, r = rng.standard_normal((n, d)), rng.standard_normal(n)
    X[:, 7] -= 0.8 * r
    return X, r


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_draws_a_panel_for_each_selector(tmp_path, layout):
    X, r = problem()
    figure = plot_race(layout(X), r)
    texts = [text.get_text() for axes in figure.axes for text in axes.texts]
    assert len(figure.axes) == 4
    assert sum("of the entries" in text for text in texts) == 4
    assert any("finds the exact winner" in text for text in texts)
    assert "12 left " in texts
    figure.savefig(tmp_path / "race.png")
    assert (tmp_path / "race.png").stat().st_size > 10_000


def test_a_wrong_winner_is_called_wrong():
    X, r = problem()
    r[:2] = 50.0  # two rows speak louder than all others
    X[:2] = 0.01
    X[0, 3] = X[1, 3] = 0.4
    figure = plot_race(X, r, [Greedy(stop=Budget(0.02))])
    assert int(np.abs(X.T @ r).argmax()) == 7
    assert ask(Greedy(stop=Budget(0.02)), X, r).columns.tolist() == [3]
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert any("misses: its winner is really number" in text for text in texts)


@pytest.mark.parametrize("selector", [Greedy(Budget(0.5)), Uniform(Budget(0.3)), Importance(Budget(0.3))])
def test_the_last_scores_are_those_of_the_answer(selector):
    X, r = problem()
    course = race(trace, selector, X, r, seed=1)
    again = ask(selector, X, r, seed=1)
    assert course.answer.columns.tolist() == again.columns.tolist() == [course.scores[-1].argmax()]
    np.testing.assert_allclose(course.scores[-1, again.columns], np.abs(again.gradient), rtol=1e-12)
    assert np.isinf(course.dropped_at).all()


@pytest.mark.parametrize("order", ["energy", "random"])
def test_columns_fall_by_halves(order):
    X, r = problem()
    course = race(trace, SuccessiveHalving(order), X, r, seed=1)
    assert [left for _, left in course.rounds] == [12, 6, 3, 1]
    for rows, left in course.rounds:
        assert np.count_nonzero(course.dropped_at > rows) == left
    np.testing.assert_allclose(
        course.scores[-1, np.isinf(course.dropped_at)], np.abs(X.T @ r).max(), rtol=1e-10
    )


def test_bad_arguments_are_named():
    X, r = problem()
    with pytest.raises(ValueError, match=r"r must have shape \(120,\)"):
        plot_race(X, r[:5])
    with pytest.raises(TypeError, match=r"Exact has none \(no method `rounds`\)"):
        plot_race(X, r, [Exact()])


class Recorded(Exact):
    """Exact, with a record that a test gives."""

    record = ()

    def rounds(self, design, query):
        yield from self.record


def test_a_selector_of_ones_own_is_followed_by_its_rounds():
    X, r = problem()
    mine = Recorded()
    every = np.arange(24)
    object.__setattr__(
        mine,
        "record",
        [(5, every, -every), (9.5, [3, 7], [1.0, -2.0]), (20, [7, 9], [3.0, 1.0]), (30, [7], [4.0])],
    )
    course = race(trace, mine, X, r)
    assert course.rows.tolist() == [5, 9.5, 20, 30]
    assert course.rounds == [(9.5, 2), (30, 1)]
    assert course.dropped_at[[3, 7, 9, 11]].tolist() == [20, np.inf, 30, 9.5]  # 9 had come back
    assert course.scores[0].tolist() == every.tolist()  # absolute values
    assert course.scores[1, 7] == 2
    assert np.isnan(course.scores[1, 9])
    texts = [text.get_text() for text in plot_race(X, r, [mine]).axes[0].texts]
    assert "2 left " in texts
    assert any("finds the exact winner" in text for text in texts)
    object.__setattr__(mine, "record", [])
    with pytest.raises(ValueError, match=r"Recorded\.rounds yields no round"):
        plot_race(X, r, [mine])


def test_the_worked_example_is_drawn_beside_the_others_and_its_record_ends_in_its_answer():
    X, r = problem(600)
    lucb = replace(load_selector(f"{LUCB}:LUCB"), budget=50.0)
    course = race(trace, lucb, X, r, seed=1)
    assert course.answer.columns.tolist() == [np.nanargmax(course.scores[-1])]
    assert course.rows[-1] * 24 <= course.answer.entries_read + 24
    assert len(course.rounds) > 0
    figure = plot_race(X, r, ["halving", lucb])
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles[1] == "LUCB"
    assert all(any("of the entries" in text.get_text() for text in axes.texts) for axes in figure.axes)
