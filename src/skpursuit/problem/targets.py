"""What targets and sample weights must be.

`checked_targets` and `checked_weights` compare what a caller gave with the rows of X; a loss then says what
else its targets must be (`Loss.check_targets`), for which most need no more than `finite_targets`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from skpursuit.numerics.arrays import Floats
from skpursuit.numerics.float_range import check_range
from skpursuit.parameters import as_array, short_repr


def finite_targets(y: ArrayLike) -> Floats:
    """Return y as float32 (if it is) or float64, refusing what is not a finite number."""
    checked = as_array("y", y)
    if checked.dtype not in (np.float32, np.float64):
        try:
            checked = checked.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"y must be numeric, got dtype {checked.dtype}") from error
    if not np.isfinite(checked).all():
        raise ValueError("y contains NaN or infinity")
    return checked


def checked_targets(y: object, n: int) -> Floats:
    """Targets of n samples as float64, one or several for each: finite numbers."""
    y = as_array("y", y)
    if y.dtype.kind not in "fiub":
        raise TypeError(f"y has dtype {y.dtype}; it needs numbers: encode labels first")
    if y.ndim not in (1, 2) or y.size == 0:
        raise ValueError(f"y must have shape (n,) or (n, targets), got {y.shape}")
    if len(y) != n:
        raise ValueError(f"y has {len(y)} rows and X has {n}; they must be the same samples")
    targets: Floats = y.astype(np.float64)
    if not np.isfinite(targets).all():
        raise ValueError("y contains NaN or infinity; drop those samples")
    return targets


def check_targets_range(y: Floats) -> None:
    """Refuse targets, as the caller gave them, whose squares leave the range of floats."""
    check_range(np.abs(y).max(initial=0.0, keepdims=True).ravel(), lambda _: "y")


def checked_weights(sample_weight: object, n: int) -> Floats:
    """Sample weights as float64: finite, not negative, not all zero."""
    weights = as_array("sample_weight", sample_weight)
    try:
        weights = weights.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        given = short_repr(sample_weight)
        raise TypeError(f"sample_weight must be an array of numbers, got {given}") from None
    if weights.shape != (n,):
        raise ValueError(f"sample_weight must have shape ({n},), got {weights.shape}")
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise ValueError("sample_weight must be finite and not negative")
    if not weights.any():
        raise ValueError("sample_weight is zero for every sample; give at least one a positive weight")
    check_range(weights.max(keepdims=True), lambda _: "sample_weight")
    return weights
