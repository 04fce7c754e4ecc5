"""The picture of a race: drawn for every selector that races, honest about the winner."""

import numpy as np
import pytest
import scipy.sparse as sp

from skpursuit import Budget, Exact, Greedy, Importance, SuccessiveHalving, Uniform
from skpursuit.plots import plot_race, trace

from .support.asking import ask, race

matplotlib = pytest.importorskip("matplotlib")


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
    assert ask(Greedy(stop=Budget(0.02)), X, r).indices.tolist() == [3]
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert any("misses: its winner is really number" in text for text in texts)


@pytest.mark.parametrize("selector", [Greedy(Budget(0.5)), Uniform(Budget(0.3)), Importance(Budget(0.3))])
def test_the_last_scores_are_those_of_the_answer(selector):
    X, r = problem()
    course = race(trace, selector, X, r, seed=1)
    again = ask(selector, X, r, seed=1)
    assert course.answer.indices.tolist() == again.indices.tolist() == [course.scores[-1].argmax()]
    np.testing.assert_allclose(course.scores[-1, again.indices], np.abs(again.estimates), rtol=1e-12)
    assert np.isinf(course.fell).all()


@pytest.mark.parametrize("order", ["energy", "random"])
def test_columns_fall_by_halves(order):
    X, r = problem()
    course = race(trace, SuccessiveHalving(order), X, r, seed=1)
    assert [left for _, left in course.rounds] == [12, 6, 3, 1]
    for rows, left in course.rounds:
        assert np.count_nonzero(course.fell > rows) == left
    np.testing.assert_allclose(course.scores[-1], np.abs(X.T @ r), rtol=1e-10)


def test_bad_arguments_are_named():
    X, r = problem()
    with pytest.raises(ValueError, match=r"r must have shape \(120,\)"):
        plot_race(X, r[:5])
    with pytest.raises(TypeError, match="Exact has none"):
        plot_race(X, r, [Exact()])
