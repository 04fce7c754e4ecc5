"""What a selector remembers belongs to one step, and moves tell how a point came from the last one."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest

from skpursuit import FrankWolfe, L1Ball, Simplex, as_design, datasets, minimize
from skpursuit.loop.run import make_run
from skpursuit.problem.state import State
from skpursuit.selectors import BoundSelector, Query, Selection, Selector
from skpursuit.selectors.base import SelectionOracle

X, Y, _ = datasets.make_sparse_signal(80, 120, 6, random_state=0)
WAYS = [(variant, lazy) for variant in ("vanilla", "away", "pairwise", "blended") for lazy in (False, True)]


@dataclass(frozen=True)
class Counting(Selector):
    """Remembers how often it was asked in a row."""

    def find(self, design, query):
        raise AssertionError

    def find_with_memory(self, bound, query, memory):
        asked = int(memory.get("asked", 0)) + 1
        return Selection(np.array([0]), np.ones(1), "heuristic", memory={"asked": np.array(asked)})


def test_a_step_that_did_not_ask_drops_the_memory():
    bound, query, memory = BoundSelector(Counting(), as_design(X)), Query(Y), {}
    for expected in (1, 2, 3):
        asking = SelectionOracle(bound, memory)
        asking(query)
        memory = asking.memory
        assert memory["asked"] == expected
    asking = SelectionOracle(bound, memory)
    asking.select_exactly(query)
    asking.count_reads(lambda: None)
    assert not asking.memory
    assert [answer.certificate for answer in asking.answers] == ["exact", "exact"]


def test_a_look_hands_the_memory_on():
    asking = SelectionOracle(BoundSelector(Counting(), as_design(X)), {"asked": np.array(7)})
    assert asking.known_gradient(Query(Y)) is None
    assert not asking.answers
    assert asking.memory["asked"] == 7
    assert asking(Query(Y)).memory["asked"] == 8


@pytest.mark.parametrize("selector", ["exact", "gram"])
@pytest.mark.parametrize("constraint", [L1Ball(2.0), Simplex(2.0)], ids=repr)
@pytest.mark.parametrize(("variant", "lazy"), WAYS)
def test_moves_lead_from_each_point_to_the_next(variant, lazy, constraint, selector):
    solver = FrankWolfe(constraint, 40, variant=variant, lazy=lazy)
    run = make_run(as_design(X), Y, solver, selector, "squared")
    points: list[State] = [run.state, *run.iterate()]
    assert len(points) > 10
    for before, after in pairwise(points[:-1]):
        w = np.zeros(X.shape[1])
        w[before.support] = after.last_update.factor * before.coef
        np.add.at(w, after.last_update.columns, after.last_update.amounts)
        w[after.support] -= after.coef
        assert np.abs(w).max() <= 1e-14
        assert ("xtz" in after.selector_memory) is (selector == "gram")
        if selector == "gram":
            np.testing.assert_allclose(after.selector_memory["xtz"], X.T @ before.z, atol=1e-12)


@pytest.mark.parametrize(("variant", "lazy"), [*WAYS, ("corrective", False)])
def test_a_gradient_that_follows_moves_resumes_to_the_same_bits(variant, lazy, tmp_path):
    solver = FrankWolfe(L1Ball(3.0), 50, variant=variant, lazy=lazy)
    whole = minimize(X, Y, solver, "gram")
    for stop in (0, 3, 11):
        path = tmp_path / f"run {stop}"
        minimize(
            X, Y, solver, "gram", checkpoint=path, callback=lambda record, stop=stop: record.iteration == stop
        )
        resumed = minimize(X, Y, solver, "gram", checkpoint=path)
        assert resumed.coef.tobytes() == whole.coef.tobytes()
        assert [r.selected for r in resumed.history] == [r.selected for r in whole.history]
