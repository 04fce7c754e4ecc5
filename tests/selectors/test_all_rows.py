"""With all rows read, greedy and halving give the answer of exact selection, on every data source."""

import numpy as np
import pytest

from skpursuit import Budget, Exact, Greedy, SuccessiveHalving, SuccessiveReject, Uniform
from skpursuit.selectors import Absolute, Group, Query, Signed

from ..design.sources import NAMES, every_source, matrix
from .problems import random_query

ALL_ROWS = {
    "greedy": Greedy(stop=Budget(1.0)),
    "halving": SuccessiveHalving(budget=64.0),
    "halving-random": SuccessiveHalving(order="random", budget=64.0),
    "halving-finish": SuccessiveHalving(finish=1.0),
}
PROBLEMS = 500
MATRICES = 5


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    folders = [tmp_path_factory.mktemp("sources") for _ in range(MATRICES)]
    shapes = [(23, 17), (9, 30), (64, 5), (40, 40), (17, 1)]
    return [every_source(wide_matrix(*shape), folder) for shape, folder in zip(shapes, folders)]


def wide_matrix(n, d):
    X = matrix(max(n, 4), max(d, 4))[:n, :d].copy()
    if d > 8:
        X[:, 8] = X[:, 1]  # a tie: the lower index wins
        X[:, 6] = -X[:, 2]
    return X


def parts(design):
    """A design, and the one it is a view of."""
    return [design, *(parts(design.inner) if hasattr(design, "inner") else [])]


@pytest.mark.parametrize("selector", ALL_ROWS)
@pytest.mark.parametrize("name", NAMES)
def test_all_rows_read_is_exact_without_the_full_product(sources, name, selector, monkeypatch):
    rng = np.random.default_rng(NAMES.index(name))
    for source in sources:
        design, _ = source[name]
        queries = [random_query(rng, *design.shape) for _ in range(PROBLEMS // MATRICES)]
        wanted = [Exact().select(design, query) for query in queries]
        with monkeypatch.context() as patch:
            for part in parts(design) if name != "operator" else []:  # an operator offers nothing else
                patch.setattr(part, "_correlate", forbidden)
            for query, right in zip(queries, wanted):
                answer = ALL_ROWS[selector].select(design, query)
                assert answer.indices.tolist() == right.indices.tolist()
                assert answer.certificate == ("exact" if len(answer.indices) else "none")
                np.testing.assert_allclose(answer.estimates, right.estimates, rtol=1e-5, atol=1e-6)


def forbidden(r):
    raise AssertionError("the full product was called")


def test_the_spy_sees_the_full_product(sources, monkeypatch):
    design, _ = sources[0]["view"]
    monkeypatch.setattr(design.inner, "_correlate", forbidden)
    with pytest.raises(AssertionError, match="full product"):
        Exact().select(design, Query(np.ones(23)))


PARTIAL = {
    "greedy": Greedy(stop=Budget(0.5)),
    "uniform": Uniform(stop=Budget(0.5)),
    "halving": SuccessiveHalving(budget=1.5),
    "halving-random": SuccessiveHalving(order="random", budget=1.0, finish=0.0),
    "doubling": SuccessiveHalving(budget=0.2, doubling=True),
    "reject": SuccessiveReject(budget=1.0),
}


@pytest.mark.parametrize("score", [Absolute(), Signed(), Group()], ids=lambda score: type(score).__name__)
@pytest.mark.parametrize("selector", PARTIAL)
@pytest.mark.parametrize("name", NAMES)
def test_partial_answers_on_every_source(sources, name, selector, score):
    """Allowed columns, best first, as many as asked for, and what was read is told."""
    design, _ = sources[0][name]
    rng = np.random.default_rng(3)
    for k in (1, 2, 4):
        exclude = rng.choice(17, 5, replace=False)
        r = rng.standard_normal((23, 2) if isinstance(score, Group) else 23)
        answer = PARTIAL[selector].select(design, Query(r, k, score, exclude, np.random.default_rng(k)))
        assert len(answer.indices) == k == len(set(answer.indices.tolist()))
        assert not set(answer.indices.tolist()) & set(exclude.tolist())
        assert np.all(np.diff(score.of(answer.estimates)) <= 0)
        assert answer.certificate in ("heuristic", "exact")
        assert type(answer.entries_read) is int is type(answer.bytes_read)
        assert 0 < answer.entries_read <= answer.bytes_read
