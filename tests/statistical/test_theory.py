"""The promises of the theory against plain simulations of successive halving."""

from math import ceil, exp, inf, log, log2

import numpy as np
import pytest
from scipy import sparse
from tests.support.data import reads

from skpursuit import SuccessiveReject
from skpursuit.data import as_design
from skpursuit.selectors import Query, Signed
from skpursuit.theory import (
    budget,
    envelope,
    h2,
    nonstochastic_budget,
    nonstochastic_gap,
    reject_probability,
    sequence_probability,
    success_probability,
)

TRIALS = 500


def size(sums):
    """Rank for the largest absolute value; the halvings below keep the smallest."""
    return -np.abs(sums)


def halve_stochastic(pulls, T, rng, rank=np.asarray):
    """Winners of many independent halvings of the arms in the rows of `pulls`, each pull a random entry."""
    arms, n = pulls.shape
    rounds = ceil(log2(arms))
    alive = np.tile(np.arange(arms), (TRIALS, 1))
    sums = np.zeros((TRIALS, arms))
    while alive.shape[1] > 1:
        t = int(T // (alive.shape[1] * rounds))
        counts = rng.multinomial(t, np.full(n, 1 / n), size=alive.shape)
        sums += np.einsum("tan,tan->ta", counts, pulls[alive])
        best = np.argsort(rank(sums), axis=1, kind="stable")[:, : alive.shape[1] // 2]
        alive, sums = np.take_along_axis(alive, best, 1), np.take_along_axis(sums, best, 1)
    return alive[:, 0]


def halve_in_order(X, r, order, T, rank):
    """Winner of one halving over the columns of X, the rows read once each, in that order."""
    n, d = X.shape
    sums = np.vstack([np.zeros(d), np.cumsum(X[order] * r[order, None], axis=0)])
    alive, rows, rounds = np.arange(d), 0, max(1, ceil(log2(d)))
    while len(alive) > 1:
        rows = min(n, rows + max(1, int(T // (len(alive) * rounds))))
        alive = alive[np.argsort(rank(sums[rows, alive]), kind="stable")[: len(alive) // 2]]
    return alive[0]


def sign_problem(d, seed, agree=25, n=32):
    """Entries ±1; the best column follows the signs of -r in `agree` of n rows, the others in about half."""
    rng = np.random.default_rng(seed)
    r = rng.choice([-1.0, 1.0], n)
    X = rng.choice([-1.0, 1.0], (n, d))
    X[:, -1] = -r
    X[rng.choice(n, n - agree, replace=False), -1] *= -1
    assert np.argmax(np.abs(X.T @ r)) == np.argmin(X.T @ r) == d - 1
    return X, r


def pulls_of(X, r):
    return (len(r) * r[:, None] * X).T


@pytest.mark.parametrize("absolute", [False, True])  # where each column is two arms
@pytest.mark.parametrize("promise", [0.55, 0.8, 0.95])
@pytest.mark.parametrize("d", [4, 8, 32])
def test_halving_succeeds_as_often_as_promised(d, promise, absolute):
    X, r = sign_problem(d, seed=d)
    pulls = pulls_of(X, r)
    pulls = np.vstack([-pulls, pulls]) if absolute else pulls
    arms, H2 = len(pulls), h2(X, r, absolute=absolute)
    T = budget(1 - promise, H2, arms)
    bound = success_probability(T, H2, arms)
    assert 0.5 < bound < 0.99
    rng = np.random.default_rng(1)
    assert np.mean(halve_stochastic(pulls, T, rng) == arms - 1) >= bound
    # The comparison has teeth: with the least that halving can spend the promise would not be kept.
    assert np.mean(halve_stochastic(pulls, arms * ceil(log2(arms)), rng) == arms - 1) < bound


@pytest.mark.parametrize("d", [4, 16])
def test_ranking_columns_by_size_keeps_its_own_promise(d):
    X, r = sign_problem(d, seed=d)
    H2 = h2(X, r)
    T = 8 * H2 * log2(d) * log(6 * log2(d) / 0.2)
    winners = halve_stochastic(pulls_of(X, r), T, np.random.default_rng(3), rank=size)
    assert np.mean(winners == d - 1) >= 1 - 6 * log2(d) * exp(-T / (8 * H2 * log2(d))) >= 0.8 - 1e-12


def test_sequence_of_steps_succeeds_as_often_as_promised():
    K, d = 5, 4
    problems = [sign_problem(d, seed) for seed in range(K)]
    H2 = max(h2(X, r, absolute=False) for X, r in problems)
    T = budget(0.3, H2, d, K)
    promised = sequence_probability(K, 1 - success_probability(T, H2, d))
    assert promised == pytest.approx(0.7)
    rng = np.random.default_rng(4)
    right = np.array([halve_stochastic(pulls_of(X, r), T, rng) == d - 1 for X, r in problems])
    assert right.all(axis=0).mean() >= promised


@pytest.mark.parametrize("promise", [0.55, 0.9])
def test_successive_reject_succeeds_as_often_as_promised(promise):
    d = 8
    X, r = sign_problem(d, seed=d)
    H2, harmonic = h2(X, r, absolute=False), 0.5 + sum(1 / i for i in range(2, d + 1))
    T = d + harmonic * H2 * log(d * (d - 1) / 2 / (1 - promise))
    assert reject_probability(T, H2, d) == pytest.approx(promise)
    assert reject_probability(0, H2, d) < 0

    def rate(budget):
        asked = [Query(r, score=Signed(), rng=np.random.default_rng(seed)) for seed in range(100)]
        selector, design = SuccessiveReject(budget / X.size), as_design(X)
        return np.mean([selector.select(design, query).columns[0] == d - 1 for query in asked])

    assert rate(T) >= promise
    assert rate(d) < promise  # what must be spent at the least does not keep the promise


def test_h2_by_hand():
    # Pulls n r x: columns (4, 4), (4, 0), (-4, 4): means 4, 2, 0 and range 8.
    X, r = np.array([[1.0, 1.0, -1.0], [1.0, 0.0, 1.0]]), np.array([2.0, 2.0])
    # Smallest entry 0: gaps 1/4, 1/2.
    assert h2(X, r, absolute=False) == max(2 * 16, 3 * 4)
    # Largest size 4 among 4, 2, 0, 0, -2, -4: gaps 1/4, 1/2, 1/2, 3/4, 1.
    assert h2(X, r) == max(2 * 16, 3 * 4, 4 * 4, 5 * 16 / 9, 6)


@pytest.mark.parametrize("scale", [1e-60, 1e60])
def test_h2_does_not_depend_on_scale(scale):
    X, r = sign_problem(8, seed=0)
    assert h2(X * scale, r) == pytest.approx(h2(X, r), rel=1e-12)
    assert h2(X, r * scale) == pytest.approx(h2(X, r), rel=1e-12)


def test_ties_are_infinitely_hard():
    X, r = np.array([[1.0, 1.0, 0.5]]), np.ones(1)
    assert h2(X, r) == inf
    assert h2(X, r, absolute=False) < inf
    assert h2(X, np.zeros(1)) == inf
    assert nonstochastic_budget(X, r) == inf
    assert success_probability(1e9, inf, 6) < 0


def test_formulas_by_hand():
    assert success_probability(1000.0, 10.0, 4) == pytest.approx(1 - 6 * exp(-1000 / 160))
    assert budget(0.1, 10.0, 4) == pytest.approx(160 * log(60))
    assert budget(0.1, 10.0, 4, K=7) == pytest.approx(160 * log(420))
    assert sequence_probability(7, 0.01) == pytest.approx(0.93)
    assert sequence_probability(7, 0.01, "power") == pytest.approx(0.99**7)
    assert sequence_probability(2, [0.01, 0.2], "product") == pytest.approx(0.99 * 0.8)
    assert sequence_probability(2, [0.01, 0.2]) == pytest.approx(0.6)


def test_bound_is_loose_at_practical_sizes():
    """As the documentation says: nothing is promised at n=1000, d=2000 for a fifth of the entries."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1000, 2000))
    X /= np.linalg.norm(X, axis=0)
    y = X[:, 0] + rng.standard_normal(1000) * np.sqrt(1e-3 / 2)
    assert success_probability(0.2 * X.size, h2(X, -y), 2 * 2000) < 0


@pytest.mark.parametrize("rank", [size, np.asarray], ids=["absolute", "signed"])
def test_nonstochastic_budget_and_gap_are_kept(rank):
    sufficient = insufficient = informative = 0
    for seed in range(300):
        X, r, order = random_problem(seed)
        scores = rank(X.T @ r)
        T = nonstochastic_budget(X, r, order, absolute=rank is size)
        for share in (1.0, 1.5):
            assert halve_in_order(X, r, order, share * T, rank) == np.argmin(scores)
        sufficient += X.size > T
        insufficient += halve_in_order(X, r, order, T / 20, rank) != np.argmin(scores)
        for entries in X.size * np.array([0.1, 0.3, 1.0, 3.0]):
            lost = scores[halve_in_order(X, r, order, entries, rank)] - scores.min()
            bound = nonstochastic_gap(entries, X, r, order)
            assert lost <= bound + 1e-12
            informative += lost > 0.01 * bound > 0
    assert sufficient > 50
    assert insufficient > 10
    assert informative > 50


def random_problem(seed):
    """Rows of very different energy, so that the first ones decide, in energy order or at random."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(100, 400)), int(rng.integers(2, 20))
    X = rng.standard_normal((n, d))
    r = rng.standard_normal(n) * np.exp(-np.arange(n) / rng.uniform(1, 10))
    order = np.argsort(-np.abs(r) * np.linalg.norm(X, axis=1), kind="stable")
    return X, r, order if seed % 3 else rng.permutation(n)


def test_envelope_bounds_what_is_missing():
    X, r, _ = random_problem(1)
    order = np.argsort(-np.abs(r) * np.linalg.norm(X, axis=1), kind="stable")
    gamma = envelope(X, r)
    np.testing.assert_array_equal(gamma, envelope(X, r, order))
    assert gamma.shape == (len(r) + 1,)
    assert gamma[-1] == 0
    assert np.all(np.diff(gamma) <= 0)
    assert gamma[0] == pytest.approx(np.sum(np.abs(r) * np.abs(X).max(axis=1)))
    read = np.vstack([np.zeros(X.shape[1]), np.cumsum((X * r[:, None])[order], axis=0)])
    assert np.all(np.abs(read - X.T @ r).max(axis=1) <= gamma + 1e-12)


def test_sparse_and_design_give_the_same():
    X, r, _ = random_problem(2)
    X[np.abs(X) < 1] = 0
    design = as_design(X)
    for other in (sparse.csr_array(X), sparse.csc_array(X), design):
        assert h2(other, r) == pytest.approx(h2(X, r))
        assert nonstochastic_budget(other, r) == nonstochastic_budget(X, r)
        assert nonstochastic_gap(500, other, r) == pytest.approx(nonstochastic_gap(500, X, r))
    assert reads(design).entries == 0  # those of selection alone are counted


@pytest.mark.parametrize(
    ("function", "arguments", "message"),
    [
        (success_probability, (10, 1.0, 1), "d must be at least 2, got 1"),
        (success_probability, (-1, 1.0, 4), "T must be at least 0"),
        (success_probability, (10, 0.0, 4), "H2 must be above 0"),
        (success_probability, (10, np.nan, 4), "H2 must be above 0"),
        (sequence_probability, (-1, 0.1), "K must be at least 0"),
        (sequence_probability, (1, -0.1), "P must be at least 0"),
        (sequence_probability, (2, [0.1, 0.1], "sum"), "form must be one of"),
        (reject_probability, (10, 1.0, 1), "d must be at least 2, got 1"),
        (budget, (0.0, 1.0, 4), "delta must be above 0 and below 1"),
        (budget, (1.0, 1.0, 4), "delta must be above 0 and below 1"),
        (budget, (0.1, -1.0, 4), "H2 must be above 0"),
        (budget, (0.1, 1.0, 1), "d must be at least 2"),
        (budget, (0.1, 1.0, 4, 0), "K must be at least 1"),
        (h2, (np.eye(3), np.ones(2)), r"r must have shape \(3,\), got \(2,\)"),
        (h2, (np.eye(3), np.array([1, np.nan, 1])), "r contains NaN"),
        (envelope, (np.eye(3), np.ones(3), [0, 0, 1]), "permutation"),
        (nonstochastic_gap, (-1, np.eye(3), np.ones(3)), "T must be at least 0"),
    ],
)
def test_arguments_are_checked(function, arguments, message):
    with pytest.raises(ValueError, match=message):
        function(*arguments)


def test_a_budget_without_bounds_reads_all_rows():
    X, r = np.random.default_rng(0).standard_normal((6, 5)), np.ones(6)
    assert nonstochastic_gap(np.inf, X, r) == 0.0
    for order in ([True, False, True, False, True, False], [0.0, 1, 2, 3, 4, 5]):
        with pytest.raises(ValueError, match="order must be a permutation"):
            envelope(X, r, order)
