import numpy as np
import pytest

from skpursuit.metrics import f_measure, relative_error, support_overlap


@pytest.mark.parametrize(
    ("w", "coef", "wanted"),
    [
        ([1, 0, 2, 0], [3, 0, -1, 0], 1.0),
        ([1, 0, 2, 0], [0, 1, 0, 1], 0.0),
        ([1, 1, 0, 0], [1, 0, 1, 1], 2 / 5),
        ([1, 1, 1, 1], [1, 0, 0, 0], 2 / 5),
        ([0, 0], [0, 0], 1.0),
        ([1, 0], [0, 0], 0.0),
        ([], [], 1.0),
        (np.eye(3), np.diag([1.0, 1.0, 0.0]), 4 / 5),
        (np.array([-128, 1], np.int8), np.array([5, 0], np.int8), 2 / 3),  # integers that do not wrap
    ],
)
def test_f_measure_by_hand(w, coef, wanted):
    assert f_measure(w, coef) == f_measure(coef, w) == pytest.approx(wanted)


def test_f_measure_threshold_is_exclusive_and_symmetric_in_sign():
    assert f_measure([1, 0], [1, 1e-3]) == 1.0
    assert f_measure([1, 0], [1, -1.1e-3]) == 2 / 3
    assert f_measure([1, 0.4], [1, 0], threshold=0.5) == 1.0


@pytest.mark.parametrize(
    ("w", "coef", "threshold", "message"),
    [
        ([1, 0], [1, 0, 0], 1e-3, r"same shape, got \(2,\) and \(3,\)"),
        ([1, np.nan], [1, 0], 1e-3, "w contains NaN"),
        ([1, 0], [np.inf, 0], 1e-3, "coef contains NaN or infinity"),
        ([1, 0], [1, 0], -1, "threshold"),
        ([1, 0], [1, 0], np.nan, "threshold"),
    ],
)
def test_f_measure_refuses(w, coef, threshold, message):
    with pytest.raises(ValueError, match=message):
        f_measure(w, coef, threshold)


def test_support_overlap():
    assert support_overlap([3, 1, 7, 9], [9, 3, 4]) == 0.5
    assert support_overlap([3, 1], [1, 2, 3, 4]) == 1.0
    assert support_overlap([], [1]) == 1.0
    assert support_overlap([1, 2], []) == 0.0


def test_relative_error():
    assert relative_error([3.0, 4.0], [3.0, 0.0]) == 0.8
    assert relative_error([0.0], [0.0]) == 0.0
    assert relative_error([0.0], [1.0]) == np.inf
    assert relative_error(np.array([1], np.uint8), np.array([2], np.uint8)) == 1.0
    with pytest.raises(ValueError, match="same shape"):
        relative_error([1.0], [1.0, 2.0])
