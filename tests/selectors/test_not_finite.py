"""Sums that leave the float range have no largest entry: no selector answers, none orders NaN."""

from itertools import starmap

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator

from skpursuit import OMP, as_design, minimize
from skpursuit.estimators.omp_functions import GramPursuit, omp_path
from skpursuit.numerics.float_range import NonFiniteError, kth_largest
from skpursuit.problem.scores import GroupNorm, top_k, top_k_by_index
from skpursuit.selectors import SELECTORS, Absolute, Query, as_selector
from skpursuit.selectors.top_k import find_contenders, split_certain
from tests.support import data

SELECTORS = [name for name in SELECTORS if name != "gram"]  # which answers for solvers alone
BLIND = ("uniform", "reject", "lucb", "halving-random")  # which may not draw a row that is not finite


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


@pytest.mark.parametrize("name", SELECTORS)
def test_nothing_is_certified_where_nothing_may_be_chosen(name):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 6))
    for design in (*sources(X), data.with_intercept(X)):
        everyone = np.arange(design.shape[1])
        for k in (1, 3):
            answer = as_selector(name).select(design, Query(rng.standard_normal(20), k, exclude=everyone))
            assert (len(answer.columns), answer.certificate) == (0, "none")
    zero = as_design(np.zeros((20, 6)))
    answer = as_selector(name).select(zero, Query(rng.standard_normal(20), 2))
    assert answer.columns.tolist() == [0, 1]


@pytest.mark.parametrize("name", [name for name in SELECTORS if name not in BLIND])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_residual_that_is_not_finite_has_no_answer(name, bad):
    X = np.random.default_rng(0).standard_normal((30, 8))
    for design in sources(X):
        for many in (False, True):
            r = np.ones((30, 2) if many else 30)
            r[7] = bad
            for k in (1, 3):
                with pytest.raises(NonFiniteError):
                    as_selector(name).select(design, Query(r, k, GroupNorm() if many else Absolute()))


@pytest.mark.parametrize("name", SELECTORS)
@pytest.mark.parametrize("shape", [(30, 8), (1024, 1100)])  # on the larger one codes of X serve
def test_products_that_overflow_have_no_answer(name, shape):
    rng = np.random.default_rng(3)
    design, r = as_design(rng.standard_normal(shape) * 1e90), rng.standard_normal(shape[0]) * 1e250
    with pytest.raises(NonFiniteError):
        as_selector(name).select(design, Query(r, rng=rng))


def test_ordering_refuses_nan_wherever_it_stands():
    rng = np.random.default_rng(0)
    for _ in range(300):
        scores = rng.standard_normal(rng.integers(1, 12))
        k = int(rng.integers(1, len(scores) + 1))
        assert kth_largest(scores, k) == np.sort(scores)[-k]
        scores[rng.integers(len(scores))] = np.nan
        zero = np.zeros(len(scores))
        uses = [(top_k, scores, k), (find_contenders, scores, zero, k), (find_contenders, zero, scores, k)]
        if k < len(scores):
            uses += [
                (top_k_by_index, scores, k),
                (split_certain, scores, zero, k),
                (split_certain, zero, scores, k),
            ]
        for use, *arguments in uses:
            with pytest.raises(NonFiniteError):
                use(*arguments)
    assert list(starmap(top_k, [(np.full(3, -np.inf), 1), (np.full(3, -np.inf), 2)]))[1].size == 0


def test_an_operator_is_told_when_it_is_to_blame():
    X = np.random.default_rng(0).standard_normal((6, 4))
    X[2, 1] = np.nan
    with pytest.raises(ValueError, match=r"linear operator .* gave a product with NaN"):
        minimize(aslinearoperator(X), np.ones(6), OMP(2), "exact")


def test_the_small_loop_on_a_gram_matrix_ends_at_nan():
    path = omp_path(GramPursuit(np.eye(3), np.array([np.nan, 1.0, 2.0]), 3))
    assert (path.ended_early, len(path.support)) == (True, 0)
