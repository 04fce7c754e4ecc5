import numpy as np
import pytest

from skpursuit.problem.scores import top_k_by_index


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
