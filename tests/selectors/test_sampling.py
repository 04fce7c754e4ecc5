"""Uniform and importance sampling: unbiased, with the variance that theory gives."""

import numpy as np
import pytest

from skpursuit import Budget, Importance, Uniform, as_design

from ..support.asking import ask, draws, estimate

DRAWS = 20000
N, D = 40, 12


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D)) * rng.exponential(size=(N, 1)) ** 2
    r = rng.standard_normal(N)
    r[5:8] = 0.0
    return X, r


def chances(kind, X, r):
    if kind is Uniform:
        return np.full(N, 1 / N)
    energy = np.abs(r) * np.linalg.norm(X, axis=1)
    return energy / energy.sum()


def estimates(kind, X, r, share=1.0):
    """Estimates of X^T r from DRAWS draws in all, and the number of draws of each."""
    design, rows = as_design(X), int(np.ceil(share * N))
    selector, trials = kind(stop=Budget(share)), range(DRAWS // rows)
    found = [estimate(selector, design, r, seed=[7, trial]) for trial in trials]
    assert {used for _, used in found} == {rows}
    return np.array([g for g, _ in found]), rows


@pytest.mark.parametrize("share", [0.25, 1.0])
@pytest.mark.parametrize("kind", [Uniform, Importance])
def test_estimates_are_unbiased(problem, kind, share):
    X, r = problem
    found, rows = estimates(kind, X, r, share)
    p = chances(kind, X, r)
    used = p > 0
    pulls = (X[used].T * r[used]) / p[used]  # (D, rows): what one draw adds
    g = X.T @ r
    variance = (pulls**2 @ p[used]) - g**2
    sigma = np.sqrt(variance / (len(found) * rows))
    assert np.all(np.abs(found.mean(axis=0) - g) <= 5 * sigma)
    np.testing.assert_allclose(found.var(axis=0) * rows, variance, rtol=0.35)


def test_importance_has_the_smaller_variance_of_the_paper(problem):
    X, r = problem
    g, energy = X.T @ r, np.abs(r) * np.linalg.norm(X, axis=1)
    predicted = {
        Uniform: N * (energy**2).sum() - (g**2).sum(),
        Importance: energy.sum() ** 2 - (g**2).sum(),  # the least of all choices of chances
    }
    measured = {}
    for kind in predicted:
        found, rows = estimates(kind, X, r, 0.25)
        measured[kind] = rows * ((found - g) ** 2).sum(axis=1).mean()
        assert measured[kind] == pytest.approx(predicted[kind], rel=0.1)
    assert measured[Importance] < 0.5 * measured[Uniform]


def test_rows_without_energy_are_never_drawn(problem):
    rows, weights = draws(Importance(), *problem, seed=1)
    assert len(rows) == N
    assert not set(rows.tolist()) & {5, 6, 7}
    assert np.all(np.isfinite(weights))


@pytest.mark.parametrize("kind", [Uniform, Importance])
def test_the_sample_is_never_called_exact_and_seeds_decide(problem, kind):
    answers = [ask(kind(stop=Budget(1.0)), *problem, seed=seed) for seed in (1, 1, 2)]
    assert {(answer.certificate, answer.entries_read) for answer in answers} == {("heuristic", N * D)}
    assert answers[0].gradient.tolist() == answers[1].gradient.tolist() != answers[2].gradient.tolist()


def test_several_targets(problem):
    X, r = problem
    R = np.column_stack([r, -2 * r])
    one, _ = estimate(Uniform(stop=Budget(0.5)), X, r, seed=3)
    two, _ = estimate(Uniform(stop=Budget(0.5)), X, R, seed=3)
    np.testing.assert_allclose(two, np.column_stack([one, -2 * one]), rtol=1e-12)
