"""How good a sparse answer is: recovered supports and reconstruction error."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skpursuit.parameters import check_number


def f_measure(w: ArrayLike, coef: ArrayLike, threshold: float = 1e-3) -> float:
    """F-measure between the supports of two coefficient arrays.

    With A and B the positions where ``|w|`` and ``|coef|`` exceed the threshold it is
    2 |A ∩ B| / (|A| + |B|): 1 for equal supports (also if both are empty), 0 for disjoint ones.

    Parameters
    ----------
    w : array-like
        True coefficients.
    coef : array-like of the same shape
        Coefficients found.
    threshold : float, default 1e-3
        Entries up to this size count as zero.
    """
    truth, found = np.asarray(w, dtype=np.float64), np.asarray(coef, dtype=np.float64)
    if truth.shape != found.shape:
        raise ValueError(f"w and coef must have the same shape, got {truth.shape} and {found.shape}")
    check_number("threshold", threshold, "[0, inf]")
    A, B = _support(truth, "w", threshold), _support(found, "coef", threshold)
    total = np.count_nonzero(A) + np.count_nonzero(B)
    return float(2.0 * np.count_nonzero(A & B) / total) if total else 1.0


def support_overlap(reference: ArrayLike, support: ArrayLike) -> float:
    """Share of the reference indices that are in the other support, 1 if there are none.

    Parameters
    ----------
    reference : array-like of int
        Indices that should be there, such as ``result.support`` of an exact run.
    support : array-like of int
        Indices found, in any order.
    """
    wanted = np.unique(np.asarray(reference))
    return float(np.isin(wanted, np.asarray(support)).mean()) if wanted.size else 1.0


def relative_error(y: ArrayLike, prediction: ArrayLike) -> float:
    """Reconstruction error ‖y - prediction‖ / ‖y‖ (Frobenius norm); 0 / 0 counts as 0.

    Parameters
    ----------
    y : array-like
        True values.
    prediction : array-like of the same shape
        Their reconstruction.
    """
    truth, guess = np.asarray(y, dtype=np.float64), np.asarray(prediction, dtype=np.float64)
    if truth.shape != guess.shape:
        raise ValueError(f"y and prediction must have the same shape, got {truth.shape} and {guess.shape}")
    size, error = float(np.linalg.norm(truth)), float(np.linalg.norm(truth - guess))
    if size == 0:
        return 0.0 if error == 0 else np.inf
    return error / size


def _support(values: NDArray[np.floating], name: str, threshold: float) -> NDArray[np.bool_]:
    """Positions above the threshold; a NaN would silently count as zero."""
    if not np.isfinite(values).all():
        raise ValueError(f"{name} contains NaN or infinity")
    return np.abs(values) > threshold
