import numpy as np
import pytest

from skpursuit.kernels import topk


def by_sorting(scores, k):
    return np.argsort(-scores, kind="stable")[:k]


@pytest.mark.parametrize("seed", range(20))
def test_top_and_keep_agree_with_a_stable_sort(seed):
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, 6, rng.integers(1, 60)).astype(float)  # many ties
    for k in range(scores.size + 3):
        np.testing.assert_array_equal(topk.top(scores, k), by_sorting(scores, k))
        np.testing.assert_array_equal(topk.keep(scores, k), np.sort(by_sorting(scores, k)))
    assert topk.first(scores) == by_sorting(scores, 1)[0]


def test_keep_half_rounds_up_and_never_goes_below_least():
    scores = np.array([3.0, 1.0, 3.0, 2.0, 3.0])
    np.testing.assert_array_equal(topk.keep_half(scores), [0, 2, 4])
    np.testing.assert_array_equal(topk.keep_half(scores, least=4), [0, 2, 3, 4])
    np.testing.assert_array_equal(topk.keep_half(np.ones(4)), [0, 1])
    np.testing.assert_array_equal(topk.keep_half(scores, least=9), np.arange(5))


def test_absolute_and_signed_scores_leave_the_excluded_last():
    v = np.array([-5.0, 4.0, -4.0, 1.0])
    assert topk.first(topk.absolute(v)) == 0
    assert topk.first(topk.absolute(v, np.array([0]))) == 1
    assert topk.first(topk.signed(v, np.array([True, False, False, False]))) == 2
    np.testing.assert_array_equal(v, [-5, 4, -4, 1])


def test_scores_can_be_written_into_a_buffer():
    buffer = np.empty(3)
    assert topk.absolute(np.array([-1.0, 2.0, 3.0]), out=buffer) is buffer
    np.testing.assert_array_equal(buffer, [1, 2, 3])


def test_excluded_entries_are_never_kept_before_others():
    scores = topk.absolute(np.zeros(6), np.array([0, 1, 2]))
    np.testing.assert_array_equal(topk.keep_half(scores), [3, 4, 5])
