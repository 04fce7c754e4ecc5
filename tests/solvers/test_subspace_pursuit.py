"""Subspace pursuit against the paper's algorithm written plainly, and at its edges."""

import numpy as np
import pytest
from scipy.optimize import nnls

from skpursuit import Status, SubspacePursuit, datasets, minimize


def most_worth(values, loss, labels, k, inside=(), sign=1):
    """Columns of the k groups of largest values, or least ones; those `inside` are first, or never there."""
    worth = -values if loss == "positive" and sign < 0 else values**2
    worth[inside] = sign * np.inf
    means = np.bincount(labels, worth) / np.bincount(labels)
    return np.flatnonzero(np.isin(labels, np.argsort(-means, kind="stable")[:k]))


def plain(X, y, k, loss="squared", inside=(), labels=None):
    """Dai and Milenkovic, algorithm 1, by `lstsq` or `nnls`; with columns that stay, and groups by labels."""
    labels = np.arange(X.shape[1]) if labels is None else labels
    inside, count = np.array(inside, dtype=int), k - len(set(labels[list(inside)]))

    def fitted(columns):
        A, coef, positive = X[:, columns], np.zeros(X.shape[1]), loss == "positive" and len(columns)
        coef[columns] = nnls(A, y)[0] if positive else np.linalg.lstsq(A, y, rcond=None)[0]
        return coef, y - X @ coef

    support, (_, rest) = inside, fitted(inside)
    while True:
        new = most_worth(-X.T @ rest, loss, labels, count, np.union1d(support, inside), sign=-1)
        coef = fitted(np.unique(np.concatenate([support, new, inside])))[0]
        chosen = most_worth(coef, loss, labels, k, inside)
        chosen = chosen[(coef[chosen] != 0) | np.isin(chosen, inside)]
        after = fitted(chosen)[1]
        if not np.linalg.norm(after) < np.linalg.norm(rest) * (1 - 1e-12):
            return support, fitted(support)[0][support]
        support, rest = chosen, after


@pytest.mark.parametrize("seed", range(20))
def test_it_is_the_algorithm_of_the_paper(seed):
    X, y, _ = datasets.make_sparse_signal(80, 150, 8, snr=6.0, random_state=seed)
    support, coef = plain(X, y, 8)
    result = minimize(X, y, SubspacePursuit(8), "exact")
    assert result.support.tolist() == support.tolist()
    np.testing.assert_allclose(result.coef[support], coef, rtol=1e-9)
    assert result.status is Status.STALLED


def test_an_exact_signal_is_found_to_the_last_digit():
    X, _, w = datasets.make_sparse_signal(100, 300, 6, random_state=0)
    result = minimize(X, X @ w, SubspacePursuit(6))
    assert result.status is Status.ZERO_RESIDUAL
    np.testing.assert_allclose(result.coef, w, atol=1e-12)


def test_dependent_and_zero_columns_do_no_harm():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((50, 12))
    X[:, 5], X[:, 8], X[:, 11] = X[:, 4], 0.0, X[:, 1] + X[:, 2]
    y = 3 * X[:, 4] - 2 * X[:, 1]
    result = minimize(X, y, SubspacePursuit(4))
    assert result.objective < 1e-20
    assert not {5, 8} & set(result.support.tolist())  # of equal columns the lower index


def test_all_columns_and_no_signal():
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((20, 5)), rng.standard_normal(20)
    result = minimize(X, y, SubspacePursuit(5))
    assert result.status is Status.OPTIMAL
    np.testing.assert_allclose(result.coef, np.linalg.lstsq(X, y, rcond=None)[0], rtol=1e-10)
    assert minimize(X, np.zeros(20), SubspacePursuit(2)).support.size == 0
    orthogonal = y - X @ result.coef
    nothing = minimize(X, orthogonal, SubspacePursuit(2))
    assert nothing.objective == pytest.approx(0.5 * orthogonal @ orthogonal)
