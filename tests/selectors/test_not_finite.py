"""Sums that leave the float range: no answer is empty, made of NaN, or called exact when it is not."""

from fractions import Fraction
from itertools import starmap

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator

from skpursuit import OMP, as_design, minimize
from skpursuit.estimators.gram_omp import GramPursuit, omp_path
from skpursuit.numerics.finite import NotFinite, kth_largest
from skpursuit.problem.score import Group, top, top_set
from skpursuit.selectors import NAMES, Absolute, Query, Signed, as_selector
from skpursuit.selectors.settle import candidates, sorted_out
from tests.support import data

SELECTORS = [name for name in NAMES if name != "gram"]  # which answers for solvers alone
EXACT = ("exact", "certified", "auto")
BLIND = ("uniform", "reject", "lucb", "halving-random")  # which may not draw a row that is not finite


def wild(rng):
    """A matrix and a residual whose products leave the float range, in most entries or in a few."""
    n, d = int(rng.integers(1, 12)), int(rng.integers(1, 9))
    X, r = rng.standard_normal((n, d)), rng.standard_normal(n)
    kind = rng.integers(4)
    if kind == 0:
        X, r = X * 2.0 ** rng.integers(400, 1000), r * 2.0 ** rng.integers(400, 1000)
    elif kind == 1:  # columns of all sizes
        X, r = X * 2.0 ** rng.integers(-900, 1000, d), r * 2.0 ** rng.integers(0, 900)
    elif kind == 2:  # partial sums overflow and come back, or become NaN
        X[:, rng.integers(d)] = 2.0**1000 * rng.choice([-1, 1], n)
        r = 2.0**30 * rng.choice([-3.0, -1.0, 1.0, 2.0], n)
    else:
        r = r * 2.0**1010
    return X, r


def sources(X):
    """The designs of a matrix, and those of its views."""
    d = X.shape[1]
    return [
        as_design(X),
        as_design(np.asfortranarray(X)),
        as_design(sp.csr_array(X)),
        as_design(sp.csc_array(X)),
        as_design(aslinearoperator(X)),
        data.view(X, scale=np.full(d, 0.5)),
    ]


def exact_sums(X, r):
    columns = [[Fraction(x) for x in column] for column in X.T.tolist()]
    right = [Fraction(v) for v in r.tolist()]
    return [sum((a * b for a, b in zip(column, right)), Fraction(0)) for column in columns]


def check_answer(name, design, X, r, seed):
    rng = np.random.default_rng(seed)
    score = (Absolute(), Signed())[rng.integers(2)]
    exclude = np.flatnonzero(rng.random(X.shape[1]) < rng.choice([0.0, 0.4]))
    k = int(rng.integers(1, X.shape[1] + 2)) if rng.random() < 0.4 else 1
    query = Query(r, k, score, exclude, np.random.default_rng(seed))
    answer = as_selector(name).select(design, query)
    allowed = query.allowed(X.shape[1])
    assert len(answer.indices) == min(k, len(allowed)) == len(set(answer.indices.tolist()))
    assert set(answer.indices.tolist()) <= set(allowed.tolist())
    assert np.isfinite(answer.estimates).all()
    assert (answer.certificate == "none") == (len(allowed) == 0)
    if answer.certificate != "exact":
        assert name not in EXACT or len(allowed) == 0
        return 0
    sums = exact_sums(X, r)
    scores = [abs(g) if isinstance(score, Absolute) else -g for g in sums]
    # Rounding of a product with all columns: what is closer than that may change places.
    size = sum(map(abs, map(Fraction, r.tolist())))
    room = [Fraction(1, 2**40) * size * Fraction(float(np.abs(column).max())) for column in X.T]
    for i in answer.indices.tolist():
        beaten = sum(scores[j] - room[j] > scores[i] + room[i] for j in allowed.tolist())
        assert beaten < k
    return 1


def check_seed(seed):
    rng = np.random.default_rng(seed)
    X, r = wild(rng)
    certified = 0
    for design in sources(X):
        factor = 2.0 if not design.view.is_unmoved else 1.0
        name = SELECTORS[rng.integers(len(SELECTORS))]
        certified += check_answer(name, design, factor * X, r, seed)
    return certified


def test_answers_beyond_the_float_range():
    assert sum(map(check_seed, range(50))) > 50


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 2000, 100))
def test_many_answers_beyond_the_float_range(first):
    for seed in range(first, first + 100):
        check_seed(seed)


@pytest.mark.parametrize("name", SELECTORS)
def test_nothing_is_certified_where_nothing_may_be_chosen(name):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 6))
    for design in (*sources(X), data.with_intercept(X)):
        everyone = np.arange(design.shape[1])
        for k in (1, 3):
            answer = as_selector(name).select(design, Query(rng.standard_normal(20), k, exclude=everyone))
            assert (len(answer.indices), answer.certificate) == (0, "none")
    zero = as_design(np.zeros((20, 6)))
    answer = as_selector(name).select(zero, Query(rng.standard_normal(20), 2))
    assert answer.indices.tolist() == [0, 1]


@pytest.mark.parametrize("name", [name for name in SELECTORS if name not in BLIND])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_residual_that_is_not_finite_has_no_answer(name, bad):
    X = np.random.default_rng(0).standard_normal((30, 8))
    for design in sources(X):
        for many in (False, True):
            r = np.ones((30, 2) if many else 30)
            r[7] = bad
            for k in (1, 3):
                with pytest.raises(NotFinite, match="not finite"):
                    as_selector(name).select(design, Query(r, k, Group() if many else Absolute()))


def test_large_designs_too():
    """Those on which halving and certified selection use codes of X."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((1024, 1100)) * 2.0**700
    design, r = as_design(X), rng.standard_normal(1024) * 2.0**400
    small = (X * 2.0**-700).T @ (r * 2.0**-400)
    cases = [("halving", 1, Signed()), ("certified", 1, Absolute()), ("certified", 5, Signed())]
    for name, k, score in cases:
        answer = as_selector(name).select(design, Query(r, k, score))
        assert answer.certificate == "exact"
        assert answer.indices.tolist() == top(score.of(small), k).tolist()
    with pytest.raises(NotFinite):
        as_selector("halving").select(design, Query(np.full(1024, np.nan)))


def test_ordering_refuses_nan_wherever_it_stands():
    rng = np.random.default_rng(0)
    for _ in range(300):
        scores = rng.standard_normal(rng.integers(1, 12))
        k = int(rng.integers(1, len(scores) + 1))
        assert kth_largest(scores, k) == np.sort(scores)[-k]
        scores[rng.integers(len(scores))] = np.nan
        zero = np.zeros(len(scores))
        uses = [(top, scores, k), (candidates, scores, zero, k), (candidates, zero, scores, k)]
        if k < len(scores):
            uses += [(top_set, scores, k), (sorted_out, scores, zero, k), (sorted_out, zero, scores, k)]
        for use, *arguments in uses:
            with pytest.raises(NotFinite):
                use(*arguments)
    assert list(starmap(top, [(np.full(3, -np.inf), 1), (np.full(3, -np.inf), 2)]))[1].size == 0


def test_an_operator_is_told_when_it_is_to_blame():
    X = np.random.default_rng(0).standard_normal((6, 4))
    X[2, 1] = np.nan
    with pytest.raises(ValueError, match=r"linear operator .* gave a product with NaN"):
        minimize(aslinearoperator(X), np.ones(6), OMP(2), "exact")


def test_the_small_loop_on_a_gram_matrix_ends_at_nan():
    path = omp_path(GramPursuit(np.eye(3), np.array([np.nan, 1.0, 2.0]), 3))
    assert (path.premature, len(path.support)) == (True, 0)
