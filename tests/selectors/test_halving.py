"""Successive halving: the algorithm of the paper, its counts, its certificates, and what it promises."""

from dataclasses import replace
from math import ceil, log2

import numpy as np
import pytest
import scipy.sparse as sp

from skpursuit import SuccessiveHalving, as_design
from skpursuit.selectors import Query
from skpursuit.selectors import successive_halving as halving

from ..support.asking import (
    Absolute,
    GroupNorm,
    Question,
    Signed,
    ask,
    by_energy,
    plain_halving,
    prepare,
    random_question,
)
from ..support.data import codes, view
from ..support.sources import every_source, matrix

LAYOUTS = {"C": np.ascontiguousarray, "F": np.asfortranarray, "csr": sp.csr_array, "csc": sp.csc_array}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("exact_fraction", [0.0, 1 / 16, 0.3])
@pytest.mark.parametrize("order", ["energy", "random"])
def test_follows_the_algorithm_of_the_paper(order, exact_fraction, layout):
    rng = np.random.default_rng(0)
    for trial in range(100):
        n, d = int(rng.integers(20, 200)), int(rng.integers(2, 60))
        X = rng.standard_normal((n, d))
        question = random_question(rng, n, d, (Absolute(), Signed())[trial % 2])
        if len(question.allowed(d)) == 0:
            continue
        budget = float(rng.choice([0.01, 0.1, 0.2, 0.5, 2.0]))
        if order == "energy":
            rows = by_energy(X, question.r)
        else:
            seed = int(rng.integers(2**32))
            rows = np.random.default_rng(seed).permutation(n)
            question = replace(question, seed=seed)
        wanted, _ = plain_halving(X, question, rows, budget * n * d, exact_fraction)
        selector = SuccessiveHalving(order, budget, exact_fraction)
        assert ask(selector, LAYOUTS[layout](X), question).columns.tolist() == wanted.tolist()


def test_every_layout_gives_the_same_answer_to_the_last_tie():
    rng = np.random.default_rng(1)
    for _ in range(30):
        X = rng.choice([-1.0, 0.0, 1.0], (64, 48))
        X[:, 40:] = X[:, :8]
        question = random_question(rng, 64, 48)
        for budget in (0.1, 0.5):
            answers = [
                ask(SuccessiveHalving(budget=budget), layout(X), question) for layout in LAYOUTS.values()
            ]
            assert len({tuple(answer.columns.tolist()) for answer in answers}) == 1


class TestTwin:
    """On large X the survivors are placed by codes: the same columns stay, to the last tie."""

    @pytest.fixture(autouse=True)
    def coded(self, monkeypatch):
        self.patch = monkeypatch
        self.use(True)

    def use(self, yes):
        self.patch.setattr(halving, "HALVING_CODES", 0 if yes else np.inf)

    def both(self, selector, X, question, **given):
        """The answers with codes and without."""
        for yes in (True, False):
            self.use(yes)
            yield ask(selector, X, question, **given)

    @pytest.mark.parametrize(
        "name", ["C", "F", "strided", "float32", "integers", "view", "weighted", "intercept", "rows"]
    )
    def test_answers_are_those_without(self, name, tmp_path):
        X = matrix(150, 70)
        X[:, 60:] = X[:, :10]
        X[:, 50:55] = -X[:, 20:25]
        design, _ = every_source(X, tmp_path)[name]
        rng = np.random.default_rng(3)
        recomputed = 0
        for trial in range(60):
            question = random_question(rng, *design.shape)
            if name == "integers":  # ties everywhere
                question.r[:] = rng.integers(-2, 3, question.r.shape)
            settings = {
                "budget": (0.05, 0.2, 0.6)[trial % 3],
                "exact_fraction": (0.0, 1 / 16, 0.25)[trial // 3 % 3],
            }
            selector = SuccessiveHalving(("energy", "random")[trial % 2], doubling=trial % 5 == 0, **settings)
            coded, plain = self.both(selector, design, question, seed=trial)
            assert coded.columns.tolist() == plain.columns.tolist()
            assert coded.certificate == plain.certificate
            np.testing.assert_allclose(coded.gradient, plain.gradient, rtol=0.02, atol=0.1)
            recomputed += coded.n_recomputed
        assert recomputed > 0

    def test_codes_are_read_and_counted(self):
        """One byte of all entries where the winner stands out; else rows, and bytes at the end."""
        X, r = gaussian(512, 256)
        sure = X[:, 7] + 0.1 * r
        for layout, residual, rows, most in (("F", sure, 0, 1), ("F", r, 190, 2), ("C", r, 190, 1)):
            design, selector = as_design(LAYOUTS[layout](X)), SuccessiveHalving()
            prepare(selector, design)
            one, answer = codes(design).cost(), ask(selector, design, residual)
            assert one == (512 * 256, 256 * (512 + 16))
            by_bytes = (8 * answer.entries_read - answer.bytes_read) / (8 * one[0] - one[1])
            assert most - 1 < by_bytes <= most
            exact = answer.entries_read - by_bytes * one[0] - rows * 256
            assert 0 <= exact < 40 * 512  # columns that were left in doubt

    def test_no_column_left(self):
        X, r = gaussian(300, 40)
        for k in (1, 3):
            assert ask(SuccessiveHalving(), X, r, k=k, exclude=np.arange(40)).columns.tolist() == []

    def test_zero_columns_of_a_view_tie_as_without(self):
        rng = np.random.default_rng(5)
        X = rng.standard_normal((513, 24))
        X[:, ::3], X[:, 1::4] = 0.0, 2.5
        for _ in range(60):
            design, question = view(X, centre=X.mean(axis=0)), Question(rng.standard_normal(513), 4)
            coded, plain = self.both(SuccessiveHalving(exact_fraction=0.0), design, question)
            assert coded.columns.tolist() == plain.columns.tolist()

    def test_small_x_has_no_twin(self):
        self.patch.undo()
        design = as_design(gaussian(100, 64)[0])
        prepare(SuccessiveHalving(), design)
        assert design.store.caches.codes is None


def gaussian(n, d, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)), rng.standard_normal(n)


# 64 columns, 100 rows, 0.2: 1280 pulls, 6 rounds; rows by the end of each: 3, 9, 22, 48, then all.
# From 1/16 on, after four rounds, 4 columns are left.
@pytest.mark.parametrize(
    ("layout", "exact_fraction", "entries"),
    [
        ("C", 0.0, 100 * 64),
        ("C", 1 / 16, 48 * 64 + 52 * 64),  # four columns touch so many lines that whole rows are read
        ("C", 1 / 32, 100 * 64),
        ("C", 0.5, 3 * 64 + 97 * 64),
        ("F", 1 / 16, 48 * 64 + 52 * 4),  # in this order single entries are
        ("csr", 1 / 16, 100 * 64),
        ("csc", 1 / 16, 100 * 64),
    ],
)
def test_counts_by_hand(layout, exact_fraction, entries):
    X, r = gaussian(100, 64)
    answer = ask(SuccessiveHalving(exact_fraction=exact_fraction), LAYOUTS[layout](X), r)
    assert answer.n_recomputed <= 1
    assert answer.entries_read == entries
    assert answer.bytes_read == entries * (8 if layout in "CF" else 12)


def test_few_columns_are_picked_from_long_rows():
    X, r = gaussian(100, 512)
    answer = ask(SuccessiveHalving(exact_fraction=1 / 32), X, r)
    assert answer.entries_read == 66 * 512 + 34 * 16


def test_excluded_columns_are_no_arms():
    X, r = gaussian(200, 64)
    exclude = np.arange(0, 64, 2)
    answer = ask(SuccessiveHalving(exact_fraction=0.0, budget=0.1), X, r, exclude=exclude)
    inner = ask(SuccessiveHalving(exact_fraction=0.0, budget=0.2), X[:, 1::2].copy(), r)
    assert answer.columns.tolist() == (2 * inner.columns + 1).tolist()
    assert answer.entries_read == 120 * 64 + 80 * 2


def test_a_tiny_budget_still_pulls_every_arm_once():
    X, r = gaussian(1000, 32)
    answer = ask(SuccessiveHalving(budget=1e-9, exact_fraction=0.0), X, r)
    assert answer.entries_read == 5 * 32
    assert answer.certificate == "heuristic"


@pytest.mark.parametrize("k", [1, 3, 20, 32, 40])
def test_never_halves_below_k(k):
    X, r = gaussian(500, 32)
    for exact_fraction in (0.0, 1 / 16):
        answer = ask(SuccessiveHalving(budget=0.3, exact_fraction=exact_fraction), X, r, k=k)
        assert len(answer.columns) == min(k, 32)
        assert np.all(np.diff(np.abs(answer.gradient)) <= 0)


@pytest.mark.parametrize("order", ["energy", "random"])
def test_certificates(order):
    X, r = gaussian(200, 50)
    certificate = lambda **settings: (  # noqa: E731
        ask(SuccessiveHalving(order, **settings), X, r).certificate
    )
    assert certificate(budget=0.2) == "heuristic"
    assert certificate(budget=0.2, exact_fraction=1.0) == "exact"
    assert certificate(budget=5.9) == "heuristic"  # the first round ends before the last row
    assert certificate(budget=6.0) == "exact"
    assert certificate(budget=2.0, exact_fraction=0.0) == "heuristic"


def test_ties_go_to_the_lowest_index():
    X, r = gaussian(300, 40)
    X[:, [33, 21, 8]] = X[:, [2]] - 9 * r[:, None]  # equal, and far ahead
    for order in ("energy", "random"):
        for budget, exact_fraction in ((0.05, 0.0), (0.2, 1 / 16), (6.0, 0.0), (0.2, 1.0)):
            selector = SuccessiveHalving(order, budget, exact_fraction)
            assert ask(selector, X, r).columns.tolist() == [8]
            assert ask(selector, X, r, k=3).columns.tolist() == [8, 21, 33]


def test_degenerate_questions():
    X, r = gaussian(20, 5)
    every = np.arange(5)
    for selector in (
        SuccessiveHalving(),
        SuccessiveHalving(exact_fraction=0.0),
        SuccessiveHalving(doubling=True),
    ):
        assert ask(selector, X, r, exclude=every).columns.tolist() == []
        assert ask(selector, X, r, exclude=every[1:]).columns.tolist() == [0]
        assert ask(selector, X, np.zeros(20)).columns.tolist() == [0]
        assert ask(selector, X[:, :1], r).columns.tolist() == [0]
        assert ask(selector, X[:1], r[:1], k=2).columns.shape == (2,)


class TestDoubling:
    def test_stops_when_two_answers_agree(self):
        rng = np.random.default_rng(2)
        doubled = exact = 0
        for trial in range(100):
            X, r = gaussian(300, 40, trial)
            X[:, 17] -= 0.5 * rng.random() * r
            answer = ask(SuccessiveHalving(budget=0.05, exact_fraction=0.0, doubling=True), X, r)
            exact += answer.certificate == "exact"
            doubled += answer.entries_read > 0
            if answer.certificate == "exact":
                assert answer.columns.tolist() == [np.abs(X.T @ r).argmax()]
                continue
            rows, budget, last = by_energy(X, r), 0.05, None
            while True:
                found, _ = plain_halving(X, Question(r), rows, budget * X.size, 0.0)
                if last is not None and found.tolist() == last.tolist():
                    break
                last, budget = found, 2 * budget
            assert budget < 10
        assert doubled == 100
        assert 0 < exact < 100

    def test_reuses_what_was_read(self):
        X, r = gaussian(400, 64)
        answer = ask(SuccessiveHalving(budget=0.02, exact_fraction=0.0, doubling=True), X, r)
        assert answer.entries_read <= X.size
        assert answer.entries_read % 64 == 0


def test_group_scores_of_one_target_are_absolute_ones():
    X, r = gaussian(300, 60)
    for budget in (0.05, 0.2):
        selector = SuccessiveHalving(budget=budget)
        one = ask(selector, X, r, k=3)
        group = ask(selector, X, r[:, None], k=3, score=GroupNorm())
        assert group.columns.tolist() == one.columns.tolist()
        np.testing.assert_allclose(group.gradient[:, 0], one.gradient, rtol=1e-12)


def test_draws_follow_the_printed_algorithm_and_spend_the_budget():
    X, r = gaussian(50, 64)
    for k in (1, 5):
        rng, alive, sums, used = np.random.default_rng(7), np.arange(64), np.zeros(64), 0
        rounds = ceil(log2(64 / k))
        for _ in range(rounds):
            rows = rng.integers(50, size=int(3.0 * 50 * 64 / (len(alive) * rounds)))
            sums[alive] += X[rows][:, alive].T @ r[rows]
            used += len(rows)
            best = np.argsort(-np.abs(sums[alive]), kind="stable")[: max(k, len(alive) // 2)]
            alive = alive[np.sort(best)]
        answer = ask(SuccessiveHalving("draws", 3.0, 0), X, Question(r, k=k, seed=7))
        assert sorted(answer.columns.tolist()) == alive.tolist()
        assert answer.certificate == "heuristic"
        np.testing.assert_allclose(np.sort(answer.gradient), np.sort(sums[alive] * 50 / used))
        assert answer.entries_read > 0.9 * 3.0 * X.size


@pytest.mark.parametrize("k", [20, 40, 100])
def test_the_whole_budget_is_spent_for_many_columns(k):
    X, r = gaussian(4000, 512)
    design, query = as_design(X), Query(r, k)
    race = halving.HalvingRun(design, query, SuccessiveHalving().order_rows(design, query), coded=False)
    assert len(race.run(0.05 * X.size, 0.0).columns) == k
    rows, arms = [0, *(rows for rows, _ in race.rounds)], [512, *(len(left) for _, left in race.rounds)]
    pulls = sum((after - before) * count for before, after, count in zip(rows, rows[1:], arms))
    assert rows[-1] < 4000  # no round is cut off by the end of the rows
    assert 0.95 * 0.05 * X.size < pulls <= 0.05 * X.size


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"order": "draws"}, "use exact_fraction=0"),
        ({"order": "draws", "exact_fraction": 0, "doubling": True}, "doubling=False"),
    ],
)
def test_parameters_that_do_not_go_together_are_named(settings, message):
    with pytest.raises((TypeError, ValueError), match=message):
        SuccessiveHalving(**settings)
