import numpy as np
import pytest

from skpursuit.kernels import batch_select
from skpursuit.kernels.batch_types import Dictionary, Scratch
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


def test_what_is_left_of_a_shortlist_of_nan_is_nothing():
    atoms = np.eye(4)
    nothing = np.zeros((0, 4), np.float32), np.full(4, -1)
    dictionary = Dictionary(atoms, atoms.astype(np.float32), np.ones(4), *nothing)
    scores = np.zeros(64, np.float32)
    work = Scratch(
        scores, scores.view(np.int32), np.zeros(1, np.int32), np.full(4, np.nan),
        np.array([2, 1, 0, 9]), np.array([0.0, 0.0, 0.0, 5.0]), np.zeros(4, np.int64),
    )  # fmt: skip
    assert batch_select._settle(1, 2, dictionary, work, 0.0, 0.0) == 0  # the last places are from before
