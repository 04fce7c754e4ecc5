"""With all rows read, greedy and halving give the answer of exact selection, on every data source."""

import numpy as np
import pytest

from skpursuit import LUCB, Budget, Exact, Greedy, SuccessiveHalving, SuccessiveReject, Uniform

from ..support.asking import Absolute, GroupNorm, Question, Signed, ask, random_question
from ..support.sources import NAMES, every_source, matrix

ALL_ROWS = {
    "greedy": Greedy(stop=Budget(1.0)),
    "halving": SuccessiveHalving(budget=64.0),
    "halving-random": SuccessiveHalving(order="random", budget=64.0),
    "halving-finish": SuccessiveHalving(exact_fraction=1.0),
    "lucb": LUCB(budget=1.0, delta=0.0),
}
READ_ENTRIES = LUCB, SuccessiveReject  # which an operator does not give
PROBLEMS = 15  # of each of these matrices
SHAPES = [(23, 17), (9, 30), (64, 5), (40, 40), (17, 1)]


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    return [every_source(wide_matrix(*shape), tmp_path_factory.mktemp("sources")) for shape in SHAPES]


def wide_matrix(n, d):
    X = matrix(max(n, 4), max(d, 4))[:n, :d].copy()
    if d > 8:
        X[:, 8] = X[:, 1]  # a tie: the lower index wins
        X[:, 6] = -X[:, 2]
    return X


def forbidden(r, rows=None):
    raise AssertionError("the full product was called")


@pytest.mark.parametrize("selector", ALL_ROWS)
@pytest.mark.parametrize("name", NAMES)
def test_all_rows_read_is_exact_without_the_full_product(sources, name, selector, monkeypatch):
    if name == "operator" and isinstance(ALL_ROWS[selector], READ_ENTRIES):
        pytest.skip("an operator has no entries")
    rng = np.random.default_rng(NAMES.index(name))
    for source in sources:
        design, _ = source[name]
        questions = [random_question(rng, *design.shape) for _ in range(PROBLEMS)]
        wanted = [ask(Exact(), design, question) for question in questions]
        with monkeypatch.context() as patch:
            if name != "operator":  # which offers nothing else
                patch.setattr(design.store, "product", forbidden)
            for question, right in zip(questions, wanted):
                answer = ask(ALL_ROWS[selector], design, question)
                assert answer.columns.tolist() == right.columns.tolist()
                assert answer.certificate == ("exact" if len(answer.columns) else "none")
                np.testing.assert_allclose(answer.gradient, right.gradient, rtol=1e-5, atol=1e-6)


def test_the_spy_sees_the_full_product(sources, monkeypatch):
    design, _ = sources[0]["view"]
    monkeypatch.setattr(design.store, "product", forbidden)
    with pytest.raises(AssertionError, match="full product"):
        ask(Exact(), design, np.ones(23))


PARTIAL = {
    "greedy": Greedy(stop=Budget(0.5)),
    "uniform": Uniform(stop=Budget(0.5)),
    "halving": SuccessiveHalving(budget=1.5),
    "halving-random": SuccessiveHalving(order="random", budget=1.0, exact_fraction=0.0),
    "doubling": SuccessiveHalving(budget=0.2, doubling=True),
    "reject": SuccessiveReject(budget=1.0),
    "lucb": LUCB(budget=0.7),
}


@pytest.mark.parametrize("score", [Absolute(), Signed(), GroupNorm()], ids=lambda score: type(score).__name__)
@pytest.mark.parametrize("selector", PARTIAL)
@pytest.mark.parametrize("name", NAMES)
def test_partial_answers_on_every_source(sources, name, selector, score):
    """Allowed columns, best first, as many as asked for, and what was read is told."""
    if name == "operator" and isinstance(PARTIAL[selector], READ_ENTRIES):
        pytest.skip("an operator has no entries")
    design, _ = sources[0][name]
    rng = np.random.default_rng(3)
    for k in (1, 2, 4):
        exclude = rng.choice(17, 5, replace=False)
        r = rng.standard_normal((23, 2) if isinstance(score, GroupNorm) else 23)
        answer = ask(PARTIAL[selector], design, Question(r, k, score, exclude, seed=k))
        assert len(answer.columns) == k == len(set(answer.columns.tolist()))
        assert not set(answer.columns.tolist()) & set(exclude.tolist())
        assert np.all(np.diff(score.of(answer.gradient)) <= 0)
        assert answer.certificate in ("heuristic", "exact")
        assert type(answer.entries_read) is int is type(answer.bytes_read)
        assert 0 < answer.entries_read <= answer.bytes_read
