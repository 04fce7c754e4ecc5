"""Linear operators: ties go to the lowest index, calls are counted, and single entries are refused."""

import numpy as np
import pytest
from scipy.sparse.linalg import LinearOperator, aslinearoperator

from skpursuit import OMP, MatchingPursuit, as_design, minimize
from skpursuit.data import operator_tile as operator
from skpursuit.problem.scores import GroupNorm
from skpursuit.selectors import Absolute, Query, Signed, as_selector
from tests.support.data import view, with_intercept


def with_copies(rng):
    """A matrix with many columns that are copies or opposites of others, and the names of the originals."""
    n, d = int(rng.integers(1, 90)), int(rng.integers(2, 70))
    first = rng.standard_normal((n, d))
    of = np.where(rng.random(d) < 0.5, rng.integers(d, size=d), np.arange(d))
    return first[:, of] * rng.choice([-1.0, 1.0], d), of


def check_ties(seed):
    rng = np.random.default_rng(seed)
    X, of = with_copies(rng)
    n, d = X.shape
    k = 1 if rng.random() < 0.5 else int(rng.integers(1, d + 1))
    several = rng.random() < 0.3
    r = rng.standard_normal((n, 2) if several else n)
    design = as_design(aslinearoperator(np.asarray(X, order="CF"[seed % 2])))
    views = [design, view(design, root=rng.uniform(1, 2, n)), with_intercept(design)]
    for seen in views:
        for name in ("exact", "certified", "auto"):
            answer = as_selector(name).select(seen, Query(r, k, GroupNorm() if several else Absolute()))
            chosen = [int(j) for j in answer.columns if j < d]
            for place, j in enumerate(chosen):  # copies come in the order of their indices
                earlier = np.flatnonzero(of[:j] == of[j]).tolist()
                assert [i for i in chosen[:place] if of[i] == of[j]] == earlier


@pytest.mark.parametrize("last", [60, pytest.param(1000, marks=pytest.mark.slow)])
def test_equal_and_opposite_columns_tie(last):
    for seed in range(last):
        check_ties(seed)


def test_pursuits_take_the_lowest_of_equal_columns():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X, _ = with_copies(rng)
        y = rng.standard_normal(len(X))
        solver = OMP(n_nonzero_coefs=min(*X.shape, 8))
        wanted = minimize(X, y, solver, "exact").support.tolist()
        assert minimize(aslinearoperator(X), y, solver, "exact").support.tolist() == wanted


def test_columns_are_told_apart_where_all_that_is_left_is_rounding(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 12))
    r = rng.standard_normal(60)
    r -= X @ np.linalg.lstsq(X, r)[0]  # X^T r is rounding
    monkeypatch.setattr(operator, "MOST_FETCHED", 4)
    answer = as_selector("exact").select(as_design(aslinearoperator(X)), Query(r))
    assert len(answer.columns) == 1
    result = minimize(aslinearoperator(X), r + X[:, 3], MatchingPursuit(max_iter=200), "exact")
    np.testing.assert_allclose(result.coef, np.eye(12)[3], atol=1e-6)


class Spied:
    """An operator that counts the calls of its functions."""

    def __init__(self, X):
        self.X, self.calls = X, 0
        forward, back = self.spy(lambda v: X @ v), self.spy(lambda v: X.T @ v)
        self.operator = LinearOperator(
            X.shape, matvec=forward, rmatvec=back, matmat=forward, rmatmat=back, dtype=np.float64
        )

    def spy(self, function):
        def called(v):
            self.calls += 1
            return function(v)

        return called


def total(design):
    return design.reads.entries + design.reads.prepared_entries


def test_every_call_is_counted():
    rng = np.random.default_rng(1)
    X, r = rng.standard_normal((90, 70)), rng.standard_normal(90)
    spied = Spied(X)
    design = as_design(spied.operator)
    rows, cols = np.arange(5), np.array([3, 9, 20])
    verbs = [
        lambda: design.product(r),
        lambda: design.dots(cols, r),
        lambda: design.columns(cols + 1),
        lambda: design.add_rows(rows, r[rows], np.zeros(70)),
        lambda: design.rounding(r),
        lambda: design.norms(0),
        lambda: design.norms(1),
        lambda: view(design, root=np.arange(90.0)).norms(0),
        design.data_fingerprint,
    ]
    for verb in verbs:
        calls, entries = spied.calls, total(design)
        verb()
        assert total(design) - entries == (spied.calls - calls) * X.size > 0
    calls, entries = spied.calls, design.reads.entries
    design.dots(cols, r)  # they are kept
    assert (spied.calls, design.reads.entries) == (calls, entries + 3 * 90)


@pytest.mark.parametrize("selector", ["lucb", "reject"])
@pytest.mark.parametrize("seen", [lambda X: X, lambda X: view(X, root=np.ones(407)), with_intercept])
def test_single_entries_are_refused(seen, selector):
    spied = Spied(np.random.default_rng(2).standard_normal((407, 797)))
    design = seen(as_design(spied.operator))
    with pytest.raises(ValueError, match="of a linear operator each costs a product with all of X"):
        minimize(design, np.ones(407), OMP(n_nonzero_coefs=2), selector)
    assert spied.calls <= 1  # the product that tells the scale of X


def test_signed_scores_tie_too():
    X = np.random.default_rng(3).standard_normal((59, 30))[:, np.repeat(np.arange(30), 2)]
    r = np.random.default_rng(4).standard_normal(59)
    answer = as_selector("exact").select(as_design(aslinearoperator(X)), Query(r, 60, Signed()))
    assert (answer.columns[::2] % 2 == 0).all()
    assert (answer.columns[1::2] == answer.columns[::2] + 1).all()
