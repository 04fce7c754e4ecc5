"""From estimates to decisions: what `settle` computes, what it leaves, and what its answers promise."""

from dataclasses import replace

import numpy as np
import pytest

from skpursuit import Certified, Exact, Gram, as_design
from skpursuit.numerics.error_bounds import Estimate
from skpursuit.problem.scores import top_k, top_k_by_index
from skpursuit.selectors.top_k import CodeOrigin, resolve_top_k

from ..support.asking import Absolute, GroupNorm, Signed, ask, query_of, random_question
from ..support.data import codes, reads, view


@pytest.mark.parametrize("score", [Absolute(), Signed(), GroupNorm()], ids=repr)
def test_signs_and_zeros_of_exact_answers_are_certain(score):
    rng = np.random.default_rng(0)
    zeros = 0
    for trial in range(200):
        X = rng.integers(-1, 2, (4, 2)).astype(float)  # whole numbers: many entries of X^T r are zero
        r = rng.integers(-1, 2, (4, 2) if isinstance(score, GroupNorm) else 4).astype(float)
        for selector in (Exact(), Certified()):
            answer = ask(selector, X if trial % 2 else view(X, scale=np.full(2, 2.0)), r, score=score)
            truth = X[:, answer.columns].T @ r
            assert (truth.any(axis=-1) == np.asarray(answer.gradient).any(axis=-1)).all()
            if not isinstance(score, GroupNorm):
                assert np.sign(answer.gradient).tolist() == np.sign(truth).tolist()
            zeros += not truth.any()
    assert zeros


def test_no_column_is_computed_twice():
    rng = np.random.default_rng(1)
    several = 0
    for _ in range(40):
        X = rng.standard_normal((700, 90))
        X[:, 40:80] = X[:, :40] + 0.01 * rng.standard_normal((700, 40))
        design = as_design(X)
        one = codes(design).cost()[0]
        answer = ask(Certified(), design, random_question(rng, 700, 90))
        assert answer.entries_read == one + 700 * answer.n_recomputed
        several += answer.n_recomputed > 1
    assert several > 5


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("k", [1, 4])
def test_an_estimate_within_its_bound_gives_the_exact_answer(k, ordered):
    rng = np.random.default_rng(k)
    X, r = rng.standard_normal((50, 300)), rng.standard_normal(50)
    design, right = as_design(X), np.argsort(-np.abs(X.T @ r))[:k]
    for size in (1e-9, 0.3, 3.0, 100.0):
        error = rng.uniform(0.0, size, 300)
        estimate = Estimate(X.T @ r + rng.uniform(-1, 1, 300) * error, error)
        for how in (None, True, False):
            query = replace(query_of(r, k=k), ordered=ordered)
            answer = resolve_top_k(design, query, estimate, codes=None if how is None else CodeOrigin(how))
            found = answer.columns.tolist()
            assert found == right.tolist() if ordered else sorted(found) == sorted(right.tolist())


def test_gram_selection_answers_for_a_batch_from_its_rows():
    rng = np.random.default_rng(2)
    X, r = rng.standard_normal((60, 20)), np.zeros(60)
    r[[3, 8, 40]] = rng.standard_normal(3)
    design = as_design(X)
    before = reads(design).entries
    answer = ask(Gram(), design, r, k=2)
    assert answer.columns.tolist() == ask(Exact(), X, r, k=2).columns.tolist()
    assert reads(design).entries - before == 3 * 20


def test_equal_norms_of_groups_are_ties_whatever_their_entries():
    """Whole numbers have exact squares: 1 4 8, 4 4 7 and 9 0 0 all have norm 9."""
    g = np.array([[0.0, 9.0, 0.0], [1.0, 4.0, 8.0], [4.0, 4.0, 7.0], [8.0, 4.0, 1.0]])
    for size in (1.0, 3.0, 2.0**300):
        assert np.ptp(GroupNorm().of(g * size)) == 0.0
        assert top_k(GroupNorm().of(g * size), 2).tolist() == [0, 1]
    g = np.array([[3e-200, 4e-200], [3e150, 4e150], [0.0, 0.0]])  # squares leave the range
    np.testing.assert_allclose(GroupNorm().of(g), [5e-200, 5e150, 0.0])


@pytest.mark.parametrize("seed", range(20))
def test_the_top_set_agrees_with_a_stable_sort(seed):
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, 6, rng.integers(1, 60)).astype(float)  # many ties
    for k in range(scores.size + 3):
        by_sorting = np.argsort(-scores, kind="stable")[:k]
        np.testing.assert_array_equal(top_k_by_index(scores, k), np.sort(by_sorting))


def test_excluded_entries_are_never_kept_before_others():
    scores = np.zeros(6)
    scores[:3] = -np.inf
    np.testing.assert_array_equal(top_k_by_index(scores, 3), [3, 4, 5])
