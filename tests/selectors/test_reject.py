"""Successive reject: phases by the formula, counts, and that it is right where it can be."""

from math import ceil

import numpy as np
import pytest

from skpursuit import SuccessiveReject
from skpursuit.selectors.successive_halving import phases

from ..support.asking import Question, Signed, ask


def test_phases_by_hand():
    # log-bar 4 = 1/2 + 1/2 + 1/3 + 1/4; (100 - 4) / log-bar / (5 - phase).
    harmonic = 0.5 + 1 / 2 + 1 / 3 + 1 / 4
    assert phases(4, 100, 1) == [(ceil(96 / harmonic / (5 - p)), 4 - p) for p in (1, 2, 3)]
    assert phases(4, 100, 3) == [(ceil(96 / harmonic / 4), 3)]
    assert phases(5, 1, 1) == [(1, 1)]  # one pull each is the least
    assert phases(3, 100, 3) == []


def test_pulls_keep_the_budget():
    rng = np.random.default_rng(0)
    for _ in range(50):
        n, d = int(rng.integers(5, 60)), int(rng.integers(2, 30))
        X, budget = rng.standard_normal((n, d)), rng.uniform(0.3, 2)
        answer = ask(SuccessiveReject(budget), X, rng.standard_normal(n))
        assert d <= answer.entries_read <= max(d, budget * n * d)
        assert answer.bytes_read == 8 * answer.entries_read
        assert answer.certificate == "heuristic"


def test_counts_by_hand():
    X, r = np.ones((10, 4)), np.ones(10)
    answer = ask(SuccessiveReject(2.5), X, r)
    pulls = [wanted for wanted, _ in phases(4, 100, 1)]
    assert answer.entries_read == 4 * pulls[0] + 3 * (pulls[1] - pulls[0]) + 2 * (pulls[2] - pulls[1])
    assert answer.columns.tolist() == [0]
    np.testing.assert_allclose(answer.gradient, 10.0)


@pytest.mark.parametrize("k", [1, 3])
def test_finds_what_stands_out(k):
    rng = np.random.default_rng(1)
    hits = 0
    for trial in range(40):
        X, r = rng.choice([-1.0, 1.0], (100, 16)), rng.choice([-1.0, 1.0], 100)
        X[:, :k] = -r[:, None]
        answer = ask(SuccessiveReject(1.0), X, Question(r, k, Signed(), [15], seed=trial))
        hits += set(answer.columns.tolist()) == set(range(k))
    assert hits >= 38


def test_more_columns_asked_for_than_there_are():
    X, r = np.eye(4), np.arange(4.0)
    answer = ask(SuccessiveReject(), X, r, k=9, exclude=[1])
    assert sorted(answer.columns.tolist()) == [0, 2, 3]
